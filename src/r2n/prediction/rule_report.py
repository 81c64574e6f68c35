"""A trained network, asked: what each of its rules does, and what it has learned for the implicit ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float64

from r2n.errors import ConfigError, counted
from r2n.evaluation.sampling import drawn
from r2n.explanation.contexts import Marks, find_contexts
from r2n.explanation.learned_clauses import learned_clauses
from r2n.explanation.rule_records import Kind, LearnedClause, Occurrence, RuleAccount, RuleReport
from r2n.explanation.rule_statistics import Outs, counted_occurrences, occurrences
from r2n.graph.factor_graph import FactorGraph
from r2n.graph.known_states import known_truths
from r2n.graph.left_out import counted_rules, layered_rules
from r2n.knowledge.closed_world import closed_atoms
from r2n.knowledge.knowledge_base import Evidence
from r2n.logic.theory import Rule
from r2n.prediction.rule_beliefs import PlainRule, ground_rules_of, rule_truths
from r2n.prediction.rule_effects import Logits, RuleSwitches, rule_effects
from r2n.prediction.trained import Trained
from r2n.progress import Progress, no_progress
from r2n.runs.config import as_trained, make_source

MOST_RULES = 20  # told of
TRIED_FOR_ONE_TOLD = 10  # rules that are left out once, to find those with the largest effect
QUERIES_TO_RANK = 500
SHARE_HELD_BACK = 0.2  # of what is known, where it is asked as if it were not
KNOWN_TO_GROUND = 5_000  # known atoms, where ground rules are found from what is asked


def rule_report(
    trained: Trained,
    *,
    split: str | None = None,
    most: int | None = MOST_RULES,
    contexts: bool = True,
    clauses: bool = True,
    progress: Progress = no_progress,
) -> RuleReport:
    """What the rules of a trained network do, by the queries of a split (default: `valid`, else `test`).

    At most `most` rules are told of, those with the largest effect (None: all). Each costs two passes over the ground
    rules that the queries feel, and in a ranking two rankings of at most 500 queries. `contexts` and `clauses` say
    whether these are sought.
    """
    rules = {rule.name: rule for rule in trained.problem.knowledge.theory.rules}
    kinds = _kinds(trained)
    if not kinds:
        return _nothing_read(trained, list(rules.values()))
    switches, notes = _switches(trained, split)
    seen = Seen.of(trained, switches, progress)
    tried = sorted(kinds, key=lambda name: -seen.found[name].ground_rules)
    if most is not None and len(tried) > TRIED_FOR_ONE_TOLD * most:
        tried = tried[: TRIED_FOR_ONE_TOLD * most]
        notes.append(f"of {len(kinds):,} rules, the {len(tried):,} with the most ground rules were tried")
    accounts = {name: RuleAccount(rules[name], kinds[name], seen.found[name]) for name in tried}
    if switches is None:
        report = _report(trained, [accounts[name] for name in tried[:most]])
    else:
        notes += [switches.whole.why_not] if switches.whole.why_not else []
        effects, gains = rule_effects(switches, tried, most, progress)
        told = [replace(accounts[name], effect=effect) for name, effect in effects.items()]
        report = _report(trained, told, switches)
        if contexts:
            report = _with_contexts(report, switches, gains, is_chosen=split is not None, progress=progress)
    if clauses:
        told = [_with_clauses(account, trained, seen, progress) for account in report.rules]
        report = replace(report, rules=tuple(told))
    return replace(report, left_out=len(kinds) - len(report.rules), notes=(*notes, *seen.notes))


def _report(trained: Trained, accounts: Sequence[RuleAccount], switches: RuleSwitches | None = None) -> RuleReport:
    """What stands in a report beside the rules."""
    name, told = trained.problem.name, tuple(accounts)
    if switches is None:
        return RuleReport(name, None, 0, None, None, None, told)
    whole, none = switches.whole, switches.none
    return RuleReport(name, switches.split, len(switches.queries), whole.metric, whole.value, none.value, told)


def _kinds(trained: Trained) -> dict[str, Kind]:
    """The rules that the network reads, by name, and how."""
    found: dict[str, Kind] = {rule.name: "counted" for rule in counted_rules(trained.source)}
    if trained.model.layers:
        layered = layered_rules(trained.source)
        found |= {rule.name: "implicit" if rule.is_implicit else "explicit" for rule in layered}
    return found


def _nothing_read(trained: Trained, rules: list[Rule]) -> RuleReport:
    """A report on a network that reads no rule, or on a theory that has none."""
    model, training = trained.options.model, trained.options.training
    if not rules:
        why = "the theory has no rules"
    else:
        why = f"the network reads no rules (model.reasoner = {model.reasoner}, model.layers = {model.layers})"
        if training.regularisation != "off":
            why += f"; in training they acted on the outputs (training.regularisation = {training.regularisation})"
    accounts = tuple(RuleAccount(rule, "implicit" if rule.is_implicit else "explicit") for rule in rules)
    return RuleReport(trained.problem.name, None, 0, None, None, None, accounts, notes=(why,))


def _switches(trained: Trained, split: str | None) -> tuple[RuleSwitches | None, list[str]]:
    """Whom to ask, and what to say of it: a split's queries, or, where there are none, known facts as if unknown."""
    there = [name for name, queries in trained.problem.queries.items() if len(queries)]
    if split is not None and split not in there:
        known = f"it has: {', '.join(there)}" if there else "it has none: leave out --split"
        raise ConfigError(f"the problem has no queries '{split}'", hint=known)
    chosen = split or next((name for name in ("valid", "test", *there) if name in there), None)
    if chosen is None:
        found = held_back(trained)
        if found is None:
            return None, ["there are no queries, and nothing is known that could be asked: no effects are told"]
        return found, [f"there are no queries: asked for are {found.split}, which the training did know"]
    queries, notes = trained.problem.queries[chosen], []
    if queries.truth.all():
        notes.append(f"all queries '{chosen}' are true, or have no label: they are ranked, and taken for true")
        if len(queries) > QUERIES_TO_RANK:
            notes.append(f"a sample of {QUERIES_TO_RANK:,} of {len(queries):,} queries '{chosen}'")
            some = drawn(len(queries), QUERIES_TO_RANK, 0)
            queries = Evidence(queries.atoms[some], queries.truth[some])
    return RuleSwitches(trained, chosen, queries), notes


def held_back(trained: Trained) -> RuleSwitches | None:
    """The network on a problem that has never heard of some known atoms, and these as queries; None where none is."""
    problem = trained.problem
    known = problem.train
    asked = np.flatnonzero(~closed_atoms(problem.knowledge.base, known.atoms))
    number = min(QUERIES_TO_RANK, max(1, round(SHARE_HELD_BACK * len(asked))))
    if not len(asked):
        return None
    some = asked[drawn(len(asked), number, 0)]
    rest = np.delete(np.arange(len(known)), some)
    knowledge = replace(problem.knowledge, evidence=Evidence(known.atoms[rest], known.truth[rest]))
    own = as_trained(knowledge, trained.options.grounding)
    source = make_source(own, trained.options, memory=trained.memory)
    made = replace(trained, problem=replace(problem, knowledge=knowledge), knowledge=own, source=source)
    queries = Evidence(known.atoms[some], known.truth[some])
    return RuleSwitches(made, f"{counted(number, 'known atom')}, asked as if they were not known", queries)


@dataclass(frozen=True, eq=False)
class Seen:
    """The graph that rules are looked at in, how often each stands there, and what to say of it."""

    graph: FactorGraph
    found: dict[str, Occurrence]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, trained: Trained, switches: RuleSwitches | None, progress: Progress) -> "Seen":
        """All ground rules, or those around the queries and what is known, where each atom has its own."""
        evidence, source, notes = trained.knowledge.evidence, trained.source, []
        graph = source.whole
        if graph is None:
            known = evidence.atoms[~closed_atoms(trained.model.base, evidence.atoms)]
            some = known[drawn(len(known), KNOWN_TO_GROUND, 0)] if len(known) else known
            about = "known atoms" if len(some) == len(known) else f"{len(some):,} of {len(known):,} known atoms"
            notes.append(f"ground rules are those around the queries and {about}")
            progress("ground", 0, 0)
            graph = source.around(np.union1d(some, some if switches is None else switches.queries.atoms))
        truths = known_truths(trained.model.base, graph.atoms.numpy(), evidence)
        found = occurrences(graph, truths, _outs(trained, graph)) if trained.model.layers else {}
        if source.counts is not None:
            found |= counted_occurrences(source.counts, evidence)
        return cls(graph, found, tuple(notes))


@torch.no_grad()
def _outs(trained: Trained, graph: FactorGraph) -> Outs | None:
    """The logits of all ground rules, the mean over the networks; none where no training made them mean anything."""
    if trained.options.training.semantic_weight == 0 or trained.model.rule_output is None:
        return None
    outs: list[list[Float64[np.ndarray, " _"]]] = []
    for member in trained.members:
        kept, model = member.whole, member.model.eval()
        layout = kept.layout if kept is not None and kept.graph is graph else model.lay_out(graph)
        known = torch.from_numpy(known_truths(model.base, graph.atoms.numpy(), member.evidence) + 1)
        outs.append([out.double().cpu().numpy() for out in model(layout, known=known.to(model.device)).rules])
    means = [np.mean(parts, axis=0) for parts in zip(*outs, strict=True)]
    return [None if rule.is_implicit else mean for rule, mean in zip(graph.rules, means, strict=True)]


def _with_contexts(
    report: RuleReport, switches: RuleSwitches, gains: dict[str, Logits], *, is_chosen: bool, progress: Progress
) -> RuleReport:
    """The same, with where each rule helps and hurts.

    The labels of a split other than `valid` are looked at only where it was chosen; else known atoms are asked.
    """
    if not is_chosen and switches.split != "valid" and switches.split in switches.trained.problem.queries:
        others = held_back(switches.trained)
        if others is None:
            return report
        switches, names, gains = others, list(gains), {}
        for done, name in enumerate(names):
            progress("contexts", done, len(names))
            gains[name] = switches.gains(switches.off(name))
    knowledge, queries = switches.trained.problem.knowledge, switches.queries
    marks = Marks.of(knowledge.base, queries.atoms, knowledge.features)
    found = find_contexts(marks, gains)
    rules = tuple(replace(account, contexts=found[account.name]) for account in report.rules)
    return replace(report, rules=rules, contexts_on=switches.split)


def _with_clauses(account: RuleAccount, trained: Trained, seen: Seen, progress: Progress) -> RuleAccount:
    """The same, with the clauses learned where the rule is implicit."""
    if account.kind != "implicit":
        return account
    progress("learned clauses", 0, 0)
    return replace(account, clauses=clauses_of(trained, seen.graph, account.name))


def clauses_of(trained: Trained, graph: FactorGraph, name: str) -> tuple[LearnedClause, ...]:
    """The clauses that the network has learned for an implicit rule, from its ground rules in a graph."""
    rule = next(rule for rule in graph.rules if rule.name == name)
    plain = PlainRule.of(rule, trained.model.base)
    codes = ground_rules_of(graph, name)
    own = {p.name for p in trained.problem.knowledge.language.predicates}
    targets = [i for i, position in enumerate(plain.positions) if rule.atoms[position].predicate in own]
    truths = rule_truths(trained, plain, codes)
    return learned_clauses(plain.rule, truths, trained.problem.knowledge.theory, targets=targets)
