"""Reports on the rules of a trained model: their effects, and learned clauses."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice
from math import inf, isnan
from pathlib import Path
from time import process_time

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from scipy.sparse import csr_array
from scipy.special import expit, softmax

from r2n.data.herbrand import Codes, HerbrandBase, QueryPattern, closed_atoms
from r2n.data.knowledge_base import Evidence, KnowledgeBase, counterparts, reciprocal_codes
from r2n.errors import ConfigError, TheoryError, counted, refusing
from r2n.evaluation.evaluate import evaluate_each
from r2n.evaluation.metrics import drawn
from r2n.evaluation.ranking import EvaluationOptions, Filter, ScoreByRow, row_memory
from r2n.evaluation.report import Score
from r2n.explanation.counterfactuals import Changes, Neighbourhood, without_reciprocals
from r2n.explanation.rules import (
    MOST_GROUND_RULES,
    Kind,
    Occurrence,
    Outs,
    PathRule,
    RuleAccount,
    RuleEffect,
    RuleReport,
    Truths,
    chain_weights,
    counted_occurrences,
    learned_clauses,
    occurrences,
)
from r2n.files import write_atomically
from r2n.grounding.counting import Chain, ChainStep, StepMatrices
from r2n.grounding.paths import FactIndex
from r2n.logic.formula import Atom
from r2n.logic.language import Predicate
from r2n.logic.theory import Rule, Theory
from r2n.mining.searches import MOST_STEPS, path_rule
from r2n.model.model import Model
from r2n.model.preflight import unused_rules
from r2n.network.factor_graph import FactorGraph, known_truths
from r2n.network.graph_sources import counted_rules, layered_rules, reachable_rules
from r2n.network.paths import PathReasoner
from r2n.progress import Progress, no_progress
from r2n.scoring import AtomLogits

FOLDS = 4  # in which the atoms of a position are masked, if they stand at others too
MOST_HIDDEN = 2**28  # atoms of the graph, times passes: above, no atom is masked


def plain_rule(rule: Rule, base: HerbrandBase) -> tuple[Rule, list[int]]:
    """A rule as the problem states it, without reciprocals, and its atoms' positions; of equal atoms the first."""
    reciprocals = {p.name: p.reciprocal_of for p in base.language.predicates if p.reciprocal_of is not None}
    atoms: dict[Atom, int] = {}
    for position, atom in enumerate(rule.atoms):
        name = reciprocals.get(atom.predicate)
        atoms.setdefault(atom if name is None else Atom(name, atom.terms[::-1]), position)
    return replace(rule, atoms=tuple(atoms)), list(atoms.values())


def ground_rules_of(graph: FactorGraph, name: str) -> Int64[np.ndarray, "ground_rules positions"]:
    """The distinct ground rules of a rule, as codes of their atoms; at most `MOST_GROUND_RULES`."""
    codes = graph.atoms[graph.neighbours[[rule.name for rule in graph.rules].index(name)]].numpy()
    codes = np.unique(codes, axis=0) if graph.answered < len(graph.atoms) else codes
    return codes if len(codes) <= MOST_GROUND_RULES else codes[drawn(len(codes), MOST_GROUND_RULES, 0)]


def rule_truths(trained: Model, positions: list[int], codes: Int64[np.ndarray, "ground_rules positions"]) -> Truths:
    """What is known and believed of positions of ground rules; those with one atom at two positions are left out."""
    base = trained.network.base
    own = without_reciprocals(base, codes[:, positions].ravel()).reshape(-1, len(positions))
    own = own[(np.diff(np.sort(own, axis=1), axis=1) > 0).all(axis=1)]
    atoms, index = np.unique(own, return_inverse=True)
    index = index.reshape(own.shape)
    known = known_truths(base, atoms, trained.knowledge.evidence)
    logits = trained.scores(atoms)
    threshold = np.zeros(len(atoms))
    if trained.options.training.compares_facts or trained.network.counted is not None:
        predicates = base.decode(atoms)[0]
        for predicate in np.unique(predicates):
            of_predicate = predicates == predicate
            threshold[of_predicate] = best_threshold(logits[of_predicate], known[of_predicate] == 1)
    answers = logits > threshold
    believed = np.where(known >= 0, known == 1, answers)
    says, full_pass = answers[index], trained.members[0].full_pass
    passes = len(positions) * FOLDS * len(trained.members)
    learned_masked = trained.options.training.hiding > 0 and trained.network.counted is None
    if learned_masked and full_pass is not None and len(full_pass.graph.atoms) * passes <= MOST_HIDDEN:
        for i in range(len(positions)):
            masked = np.unique(index[:, i])
            masked = masked[full_pass.graph.contains(torch.from_numpy(atoms[masked])).numpy()]
            folds = FOLDS if np.isin(masked, np.delete(index, i, axis=1)).any() else 1
            found = logits.copy()
            for some in (masked[fold::folds] for fold in range(folds)):
                if len(some):
                    found[some] = np.mean([_masked(member, atoms[some]) for member in trained.members], axis=0)
            says[:, i] = (found > threshold)[index[:, i]]
    return Truths(known[index], believed[index], says)


def best_threshold(logits: Float64[np.ndarray, " atoms"], true: Bool[np.ndarray, " atoms"]) -> float:
    """Just below the logit that separates facts from other atoms with the best F1; infinite if there is no fact."""
    if not true.any():
        return float("inf")
    order = np.argsort(-logits, kind="stable")
    scores = 2 * np.cumsum(true[order]) / (np.arange(1, len(order) + 1) + true.sum())
    return float(np.nextafter(logits[order][scores.argmax()], -np.inf))


@torch.no_grad()
def _masked(logits: AtomLogits, codes: Codes) -> Float64[np.ndarray, " atoms"]:
    """The logits of atoms that are masked all together, with their reciprocals."""
    made, model = logits.full_pass, logits.model
    assert made is not None
    reciprocals = counterparts(model.base, codes)
    both = np.unique(np.concatenate([codes, reciprocals[reciprocals >= 0]]))
    there = both[made.graph.contains(torch.from_numpy(both)).numpy()]
    hidden = torch.zeros(len(made.graph.atoms), dtype=torch.bool, device=model.device)
    hidden[torch.from_numpy(made.rows(there))] = True
    was_training, known = model.training, made.known.to(model.device)
    out = model.eval()(made.batch, hidden=hidden, known=known, rule_outputs=False).atoms
    model.train(was_training)
    return out.double().cpu().numpy()[made.rows(codes)]


CANDIDATES_AT_ONCE = 2**23
LEAST_CHANGE = 1e-3  # of a logit: below, a change is no change
CHANGES_AT_ONCE = 2**22  # of logits

Logits = Float64[np.ndarray, " _"]


@dataclass(frozen=True, eq=False)
class Answered:
    """The logits of queries, the probability of what is true of each, and how good they are.

    Of a query that is ranked, the probability is its share among the candidates of its rows, because only comparisons
    are trained. `why_not` says why a ranking has no value.
    """

    logits: Logits
    of_truth: Logits
    metric: str
    value: float | None
    why_not: str = ""


@dataclass(frozen=True, eq=False)
class RuleSwitches:
    """A trained network and labelled queries, evaluated again and again, each time without some of the rules."""

    trained: Model
    split: str
    queries: Evidence

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All rules that the network reads."""
        source = self.trained.source
        return tuple(rule.name for rule in (*layered_rules(source), *counted_rules(source)))

    @cached_property
    def full(self) -> Answered:
        """With all rules."""
        return self.without(())

    @cached_property
    def none(self) -> Answered:
        """Without any."""
        return self.without(self.names)

    @cached_property
    def reachable(self) -> frozenset[str]:
        """The rules that may make a difference to the queries' logits."""
        source = self.trained.source
        if counted_rules(source):
            return frozenset(self.names)
        reciprocals = reciprocal_codes(self.trained.network.base, self.queries.atoms)
        codes = np.union1d(self.queries.atoms, reciprocals[reciprocals >= 0])  # in both directions
        return reachable_rules(source, codes, len(self.trained.network.layers))

    def logits(self, names: Collection[str]) -> Logits:
        """The queries' logits without the rules of these names."""
        if self._near is None:
            return self.trained.scores.without_rules(names)(self.queries.atoms)
        return self._near.changed(_leaving_out(self._near, [names]))[0]

    def changes(self, names: Sequence[str]) -> Iterator[Logits]:
        """How much each of the rules adds to each query's logit; many by one pass, if all atoms share a graph."""
        if self._near is None:
            for name in names:
                is_reachable = name in self.reachable
                yield self.full.logits - self.logits([name]) if is_reachable else np.zeros(len(self.queries))
            return
        size = max(1, CHANGES_AT_ONCE // max(1, len(self.queries)))
        for start in range(0, len(names), size):
            sets = [[name] for name in names[start : start + size]]
            yield from self._near.logits - self._near.changed(_leaving_out(self._near, sets))

    def without(self, names: Collection[str]) -> Answered:
        """The answers without the rules of these names."""
        problem = self.trained.problem
        options = EvaluationOptions(ask=problem.ask, memory=row_memory(self.trained.memory))
        base = problem.knowledge.base
        scores: Score = self.trained.scores.without_rules(names)
        logits = scores(self.queries.atoms) if self._is_ranking else self.logits(names)
        asked = scores if self._is_ranking else lambda _: logits
        (report,) = evaluate_each([asked], self.queries, base, Filter.from_problem(problem), options, split=self.split)
        name, value = report.main
        if self._is_ranking and isinstance(scores, ScoreByRow):
            of_truth = _shares(scores, base, self.queries.atoms)
        else:
            of_truth = expit(np.where(self.queries.truth, logits, -logits))
        return Answered(logits, of_truth, name, None if isnan(value) else value, report.nothing_to_rank)

    def off(self, name: str) -> Answered:
        """Without one rule; in a ranking, the candidates may change too."""
        return self.without([name]) if self._is_ranking or name in self.reachable else self.full

    def alone(self, name: str) -> Answered:
        """With one rule only."""
        others = [other for other in self.names if other != name]
        if not others:
            return self.full
        return self.without(others) if self._is_ranking or name in self.reachable else self.none

    @property
    def _is_ranking(self) -> bool:
        return bool(self.queries.truth.all())

    @cached_property
    def _near(self) -> Neighbourhood | None:
        """The part of the graph that reaches the queries; None if it depends on what is asked."""
        if self.trained.source.counts is not None or self.trained.source.full_graph is None:
            return None
        return Neighbourhood.around(self.trained.members, self.queries.atoms)


def _leaving_out(near: Neighbourhood, sets: Sequence[Collection[str]]) -> Changes:
    """Changes that leave out all ground rules of a set of rules each."""
    index = {rule.name: j for j, rule in enumerate(near.graph.rules)}
    pairs = [[k, number] for k, names in enumerate(sets) for name in names for number in near.numbers(index[name])]
    return Changes(len(sets), np.array(pairs, np.int64).reshape(-1, 2))


def rule_effects(
    switches: RuleSwitches,
    names: Iterable[str],
    most: int | None = None,
    progress: Progress = no_progress,
    until: float = inf,
) -> dict[str, RuleEffect]:
    """What each of the rules does, the largest effect first; of more than `most`, those that move logits most.

    After the process has taken `until` CPU-seconds no rule is looked at: those before in `names` are compared.
    """
    best, found, began = list(names), {}, process_time()
    if most is not None and len(best) > most:
        sizes = []
        for change in switches.changes(best):
            progress("which rules matter", len(sizes), len(best))
            sizes.append(float(np.abs(change).mean()))
            if process_time() > began + (until - began) / 2:
                break
        best = [best[i] for i in np.argsort(-np.array(sizes), kind="stable")[:most]]
    full = switches.full
    for done, name in enumerate(best):
        if process_time() > until:
            break
        progress("without a rule, and with it alone", done, len(best))
        off = switches.off(name)
        change, gain = np.abs(full.logits - off.logits), float((full.of_truth - off.of_truth).mean())
        effect, moved = float(change.mean()), int((change > LEAST_CHANGE).sum())
        found[name] = RuleEffect(effect, gain, moved, full.value, off.value, switches.alone(name).value)
    return {name: found[name] for name in sorted(found, key=lambda name: -found[name].effect)}


def _shares(scores: ScoreByRow, base: HerbrandBase, codes: Codes) -> Logits:
    """The share of each atom among the candidates of its rows, the mean over its positions."""
    index, arguments = base.decode(codes)
    found = np.zeros(len(codes))
    for predicate in np.unique(index).tolist():
        own, arity = np.flatnonzero(index == predicate), len(base.shapes[predicate])
        for position in range(arity):
            pattern = QueryPattern.from_base(base, predicate, position)
            for some in np.array_split(own, -(-len(own) * pattern.candidates // CANDIDATES_AT_ONCE)):
                rows = np.asarray(scores.rows(predicate, position, arguments[some, :arity]), np.float64)
                found[some] += softmax(rows, axis=1)[np.arange(len(some)), pattern.located(codes[some])[1]] / arity
    return found


def helps(account: RuleAccount) -> bool:
    """Whether the metric is better with the rule; where it is the same, whether the truth is more probable."""
    effect = account.effect
    if effect is None or effect.metric is None or effect.without is None or effect.metric == effect.without:
        return effect is not None and effect.gain > 0
    return effect.metric > effect.without


def export_theory(report: RuleReport, theory: Theory, path: Path) -> str:
    """Write the theory with the rules that help, the learned clauses and path rules, and say what was written.

    Each has its counts in a comment. The weight of a clause is its confidence, or its fidelity if nothing is known.
    """
    taken = {rule.name for rule in theory.rules}
    commented = [pair for account in report.rules for pair in _commented(account, report.metric or "", taken)]
    names = (name for name in (f"path{i}" for i in count()) if name not in taken)
    counts = "weight {0.weight:.3f}, support {0.support:,} of {0.pairs:,} pairs"
    commented += [(replace(part.rule, name=next(names)), counts.format(part)) for part in report.paths]
    if not commented:
        what = "there is nothing to export: no explicit rule helps, and no clause was learned"
        raise ConfigError(what, hint="train longer, or ask by other queries: --split")
    lines = [f"# {' '.join(comment.split())}\n{rule}\n" for rule, comment in commented]
    with refusing(f"{path} cannot be written"):
        write_atomically(path, "".join([str(replace(theory, rules=())), *lines]).encode())
    return f"{counted(len(commented), 'rule')} in {path}"


def _commented(account: RuleAccount, metric: str, taken: set[str]) -> Iterator[tuple[Rule, str]]:
    """The rules that stand for one rule of the run, each with a comment."""
    if account.kind != "implicit":
        effect = account.effect
        if helps(account) and effect is not None:
            with_it, without = (f"{v:.4f}" if v is not None else "unknown" for v in (effect.metric, effect.without))
            yield account.rule, f"{metric} {with_it}, without it {without}"
        return
    for number, clause in enumerate(account.clauses, start=1):
        name = f"{account.name}_{number}"
        while name in taken:
            name += "_"
        taken.add(name)
        weight = clause.fidelity if clause.confidence is None else clause.confidence
        yield replace(clause.rule, name=name, weight=round(weight, 4)), f"learned by '{account.name}': {clause.counts}"


MOST_RULES = 20  # reported
MOST_PATH_RULES = 10  # reported, of each predicate that is asked
BEAM = 30  # chains of each length that are extended, and that may be rules
MOST_STARTS = 1_000  # constants from which the pairs of a chain are counted
TRIED_FOR_ONE_SHOWN = 10  # rules that are left out once, to find those with the largest effect
QUERIES_TO_RANK = 500
SHARE_HELD_BACK = 0.2  # of what is known, where it is asked as if it were not
LEFT_TO_REPORT = "r2n report RUN has no limit"
KNOWN_TO_GROUND = 5_000  # known atoms, where ground rules are found from what is asked


def rule_report(
    trained: Model,
    *,
    split: str | None = None,
    most: int | None = MOST_RULES,
    progress: Progress = no_progress,
    until: float = inf,
    most_path_rules: int | None = MOST_PATH_RULES,
) -> RuleReport:
    """What the rules of a trained network do, by the queries of a split (default: `valid`, else `test`).

    At most `most` rules are reported, those with the largest effect (None: all). Each costs two passes over the ground
    rules near the queries, and in a ranking two rankings of at most 500 queries. After the process has taken `until`
    CPU-seconds nothing more is looked at, and a note says so. Of each predicate, `most_path_rules` are reported.
    """
    networks, problem = [one.model.paths for one in trained.members if one.model.paths is not None], trained.problem
    asked = problem.asked_predicates or problem.knowledge.base.predicates(problem.train.atoms)
    along_paths = tuple(path_rules(networks, trained.knowledge, asked, most_path_rules, progress))
    rules = {rule.name: rule for rule in trained.problem.knowledge.theory.rules}
    kinds: dict[str, Kind] = {rule.name: "counted" for rule in counted_rules(trained.source)}
    if trained.network.layers:
        layered = layered_rules(trained.source)
        kinds |= {rule.name: "implicit" if rule.is_implicit else "explicit" for rule in layered}
    if not kinds:
        model, training = trained.options.model, trained.options.training
        why = f"the network reads no rules (model.reasoner = {model.reasoner}, model.layers = {model.layers})"
        if training.regularisation != "off":
            why += f"; in training they acted on the outputs (training.regularisation = {training.regularisation})"
        unread = tuple(RuleAccount(rule, "implicit" if rule.is_implicit else "explicit") for rule in rules.values())
        if trained.network.atom_embedding.reads_facts:
            what = "the input layer counts the ground rules that decide an atom"
            why = f"{what}: r2n explain RUN ATOM shows their effects"
        why = why if rules else "the theory has no rules"
        return RuleReport(trained.problem.name, None, 0, None, None, None, unread, notes=(why,), paths=along_paths)
    switches, notes = _switches(trained, split)
    graph, found, more_notes = _seen(trained, switches, progress)
    tried = sorted(kinds, key=lambda name: -found[name].ground_rules)
    if most is not None and len(tried) > TRIED_FOR_ONE_SHOWN * most:
        tried = tried[: TRIED_FOR_ONE_SHOWN * most]
        notes.append(f"of {len(kinds):,} rules, the {len(tried):,} with the most ground rules were tried")
    accounts = {name: RuleAccount(rules[name], kinds[name], found[name]) for name in tried}
    report = RuleReport(trained.problem.name, None, 0, None, None, None, tuple(accounts.values())[:most])
    if switches is not None:
        full = switches.full
        notes += [full.why_not] if full.why_not else []
        effects = rule_effects(switches, tried, most, progress, until)
        shown = tuple(replace(accounts[name], effect=effect) for name, effect in effects.items())
        values = full.metric, full.value, switches.none.value
        report = RuleReport(trained.problem.name, switches.split, len(switches.queries), *values, shown)
    implicit = [account.name for account in report.rules if account.kind == "implicit"]
    learned, own = {}, {predicate.name for predicate in trained.problem.knowledge.language.predicates}
    for done, name in enumerate(implicit):
        if process_time() > until:
            break
        progress("learned clauses", done, len(implicit))
        rule = next(rule for rule in graph.rules if rule.name == name)
        plain, positions = plain_rule(rule, trained.network.base)
        targets = [i for i, position in enumerate(positions) if rule.atoms[position].predicate in own]
        truths = rule_truths(trained, positions, ground_rules_of(graph, name))
        learned[name] = learned_clauses(plain, truths, trained.problem.knowledge.theory, targets=targets)
    if process_time() > until:
        more_notes = [*more_notes, f"only these rules were examined in the time for a report; {LEFT_TO_REPORT}"]
    shown = tuple(replace(account, clauses=learned.get(account.name, ())) for account in report.rules)
    notes, left_out = (*notes, *more_notes), len(kinds) - len(report.rules)
    return replace(report, rules=shown, left_out=left_out, notes=notes, paths=along_paths)


def path_rules(
    networks: Sequence[PathReasoner],
    knowledge: KnowledgeBase,
    asked: Sequence[Predicate],
    most: int | None,
    progress: Progress = no_progress,
) -> Iterator[PathRule]:
    """Of each asked predicate, `most` chains of known facts with positive weights.

    The best of each length are extended by every predicate of which a known fact follows.
    """
    if not networks or most == 0:
        return
    predicates, index = knowledge.language.predicates, FactIndex.from_evidence(knowledge.base, knowledge.evidence)
    (r, z, y), shape, steps = index.facts, (index.constants, len(predicates)), StepMatrices(knowledge)
    first, last = (csr_array((np.ones(len(r)), (column, r)), shape=shape) for column in (z, y))
    follows, begins, ends = ((a.T @ b).toarray() > 0 for a, b in ((last, first), (first, first), (last, last)))
    for done, q in enumerate(knowledge.language.predicate_index(part.name) for part in asked if part.arity == 2):
        progress("path rules", done, len(asked))
        chains, found = np.flatnonzero(begins[q])[:, None], list[tuple[float, list[int]]]()
        for length in range(1, min(MOST_STEPS, len(networks[0].layers)) + 1):
            weights = chain_weights(networks, index.reciprocals, q, chains)
            order = np.argsort(-weights, kind="stable")
            is_rule = ends[q, chains[order, -1]] & (weights[order] > 0) & ((chains[order, 0] != q) | (length > 1))
            found += [(float(weights[i]), chains[i].tolist()) for i in order[is_rule][:BEAM]]
            best = chains[order[:BEAM]].tolist()
            longer = [[*chain, r] for chain in best for r in np.flatnonzero(follows[chain[-1]]).tolist()]
            chains = np.array(longer, np.int64).reshape(-1, length + 1)
        found.sort(key=lambda pair: -pair[0])
        rules = (_path_rule(steps, predicates[q].name, [predicates[i] for i in chain], w) for w, chain in found)
        yield from islice((rule for rule in rules if rule is not None), most)


def _path_rule(steps: StepMatrices, head: str, chain: Sequence[Predicate], weight: float) -> PathRule | None:
    """The rule of a chain, with its counts; None if no theory can state it, or no known fact supports it."""
    parts = tuple(ChainStep(each.reciprocal_of or each.name, each.reciprocal_of is None) for each in chain)
    names = [steps.knowledge.language.predicate(name) for name in (head, *(part.predicate for part in parts))]
    numbers = [2 * i + (not part.forward) for i, part in enumerate(parts, start=1)]
    rule = replace(path_rule(names, [0], numbers), guards=())
    with suppress(TheoryError):
        steps.knowledge.theory.variable_domains(rule)
        pairs, support = steps.joined(Chain(head, parts, distinct=False), MOST_STARTS)
        if support:
            return PathRule(head, replace(rule, weight=round(support / pairs, 4)), weight, support, pairs)
    return None


def _switches(trained: Model, split: str | None) -> tuple[RuleSwitches | None, list[str]]:
    """Whom to ask, and what to say of it: a split's queries, or, where there are none, known facts as if unknown."""
    there = [name for name, queries in trained.problem.queries.items() if len(queries)]
    if split is not None and split not in there:
        known = f"it has: {', '.join(there)}" if there else "it has none: leave out --split"
        raise ConfigError(f"the problem has no queries '{split}'", hint=known)
    chosen = split or next((name for name in ("valid", "test", *there) if name in there), None)
    if chosen is None:
        found = held_back(trained)
        if found is None:
            return None, ["there are no queries, and nothing is known that could be asked: no effects are reported"]
        return found, [f"there are no queries: asked for are {found.split}, which the training did know"]
    queries, notes = trained.problem.queries[chosen], []
    if queries.truth.all():
        notes.append(f"all queries '{chosen}' are true, or have no label: they are ranked, and taken for true")
        if len(queries) > QUERIES_TO_RANK:
            notes.append(f"a sample of {QUERIES_TO_RANK:,} of {len(queries):,} queries '{chosen}'")
            some = drawn(len(queries), QUERIES_TO_RANK, 0)
            queries = Evidence(queries.atoms[some], queries.truth[some])
    return RuleSwitches(trained, chosen, queries), notes


def held_back(trained: Model) -> RuleSwitches | None:
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
    changed = replace(trained.changed, problem=replace(problem, knowledge=knowledge))
    queries = Evidence(known.atoms[some], known.truth[some])
    split = f"{counted(number, 'known atom')}, asked as if they were not known"
    return RuleSwitches(replace(trained, changed=changed), split, queries)


def _seen(
    trained: Model, switches: RuleSwitches | None, progress: Progress
) -> tuple[FactorGraph, dict[str, Occurrence], list[str]]:
    """The graph of all ground rules (or of those around the queries and what is known), occurrences, and notes."""
    evidence, source, notes = trained.knowledge.evidence, trained.source, []
    graph = source.full_graph
    if graph is None:
        known = evidence.atoms[~closed_atoms(trained.network.base, evidence.atoms)]
        some = known[drawn(len(known), KNOWN_TO_GROUND, 0)] if len(known) else known
        about = "known atoms" if len(some) == len(known) else f"{len(some):,} of {len(known):,} known atoms"
        notes.append(f"ground rules are those around the queries and {about}")
        progress("ground", 0, 0)
        graph = source.around(np.union1d(some, some if switches is None else switches.queries.atoms))
    truths = known_truths(trained.network.base, graph.atoms.numpy(), evidence)
    found = occurrences(graph, truths, _outs(trained, graph)) if trained.network.layers else {}
    if source.counts is not None:
        found |= counted_occurrences(source.counts, evidence)
        notes += unused_rules(source.counts, trained.problem.atoms)
    return graph, found, notes


@torch.no_grad()
def _outs(trained: Model, graph: FactorGraph) -> Outs | None:
    """The logits of all ground rules, the mean over the networks; none where no training made them mean anything."""
    if trained.options.training.semantic_weight == 0 or trained.network.rule_output is None:
        return None
    outs: list[list[Float64[np.ndarray, " _"]]] = []
    for member in trained.members:
        kept, model = member.full_pass, member.model.eval()
        batch = kept.batch if kept is not None and kept.graph is graph else model.collate(graph)
        known = torch.from_numpy(known_truths(model.base, graph.atoms.numpy(), member.evidence) + 1)
        outs.append([out.double().cpu().numpy() for out in model(batch, known=known.to(model.device)).rules])
    means = [np.mean(parts, axis=0) for parts in zip(*outs, strict=True)]
    return [None if rule.is_implicit else mean for rule, mean in zip(graph.rules, means, strict=True)]
