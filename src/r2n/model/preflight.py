"""Preflight checks: what may make a result wrong or slow, said before the work."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from time import perf_counter

import numpy as np

from r2n.data.candidates import Candidates, candidate_sources, find_candidates
from r2n.data.herbrand import Codes, HerbrandBase, are_among, closed_atoms
from r2n.data.knowledge_base import Evidence, KnowledgeBase, as_trained
from r2n.data.problem import Problem
from r2n.data.validation import contradictions
from r2n.errors import ConfigError, GroundingError, counted, first_names
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.counting import RuleCounts, as_chain, is_counted, split_rules
from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.grounding.joins import budget_error, encode_substitutions
from r2n.grounding.store import Store
from r2n.grounding.strategies import (
    MOST_WORK,
    Size,
    expected_size,
    expected_total,
    ground_rules_left_out,
    make_grounder,
    mean_neighbourhood,
)
from r2n.logic.formula import Variable
from r2n.logic.theory import Rule, Theory
from r2n.mining.mine import mine_rules
from r2n.mining.searches import MiningOptions
from r2n.model.memory import over_grids
from r2n.options import GroundingOptions, Options
from r2n.progress import shown_duration
from r2n.training.negatives import assumed_false, count_negatives, draw_negatives

MOST_GROUNDINGS = 200_000  # of a rule, to find out
MOST_TRIED = 200  # queries of a split that are grounded around
MOST_STARTS = 2_000  # facts and queries that are grounded around to see which rules backward grounding meets
FEW_FACTS = 20  # of a predicate, whose corruptions are drawn to see whether there are negatives
MINING_SECONDS = 1.0  # of a search for rules, to see whether there are more than the given ones
MOST_MINED_FACTS = 50_000
STRONG_CONFIDENCE, STRONG_SUPPORT = 0.5, 20  # of a mined rule that is worth adding
FEWEST_MINED = 3  # or as many as there are rules: fewer are not worth a note


def preflight_warnings(problem: Problem, options: Options) -> list[str]:
    """What may make a training on a problem fail or mislead, one sentence each."""
    empty = "the split '{}' holds no query: add rows to its table, or leave it out of [queries]"
    found = [empty.format(split) for split, queries in problem.queries.items() if not len(queries)]
    if options.training.with_valid:
        count = counted(len(problem.valid), "query", "queries")
        used = f": {count} of 'valid' used for training, and not reported"
        used = used if len(problem.valid) else " changes nothing: there are no queries 'valid'"
        found.append(f"training.with_valid{used}")
    found += [*_unlearned(problem, options), *_asked_closed(problem), *_without_negatives(problem, options)]
    found += assumed_false(problem.knowledge, options.training)
    found += _loose_variables(problem.knowledge.theory)
    if options.model.reasoner == "paths":
        rules, are_counted = problem.knowledge.theory.rules, options.model.rules == "counted"
        left_out = sum(not (are_counted and is_counted(rule)) for rule in rules)
        mixed = "only Horn rules can be counted" if are_counted else "model.rules = 'counted' mixes Horn rules in"
        if left_out:
            found.append(f"{counted(left_out, 'rule')} of the theory left out along paths; {mixed}")
    if options.model.has_layers and problem.knowledge.theory.rules:
        store = Store(as_trained(problem.knowledge, options.grounding), asks_closed=options.training.reads_closed)
        found += _ungrounded(problem, store, options)
        found += _unused_rules(problem, store, options)
        if options.model.rules == "layers":
            found += [*_over_budget(store, options.grounding), *asked_in_bodies(problem, options)]
            found += _unreached(problem, store, options.grounding)
    return found


def _loose_variables(theory: Theory) -> Iterator[str]:
    """Variables that stand once in a rule, in its head: the rule speaks of every constant."""
    for rule in theory.rules:
        terms = [term for atom in rule.atoms for term in atom.terms]
        heads = [term for position in rule.head_positions if rule.body for term in rule.atoms[position].terms]
        for term in heads:
            if isinstance(term, Variable) and terms.count(term) == 1:
                what = f"rule '{rule.name}' concludes something of every {term.name}, which is in no other atom of it"
                yield f"{what}: see whether the name of the variable is right"


def _open_atoms(base: HerbrandBase, evidence: Evidence, *, true: bool = False) -> Codes:
    atoms = evidence.facts if true else evidence.atoms
    return atoms[~closed_atoms(base, atoms)]


def _unlearned(problem: Problem, options: Options) -> Iterator[str]:
    """Asked predicates of which nothing open is known; those that are all closed have a warning of their own."""
    if options.training.ask_closed:
        return
    base = problem.knowledge.base
    known = base.predicates(_open_atoms(base, problem.train))
    asked = base.predicates(*(_open_atoms(base, part) for part in problem.queries.values()))
    if not known and not asked and len(problem.train):
        yield (
            "no atom of an open predicate is known, so that a training has nothing to learn from: add facts of one to"
            " [facts] train, or ask r2n infer, which answers from facts and rules alone"
        )
    for predicate in (one for one in asked if one not in known):
        yield (
            f"{predicate.name} is asked, and no open atom of it is known: a training learns nothing"
            " of it but what the rules say; add facts of it to [facts] train, or ask r2n infer, which needs none"
        )


def _asked_closed(problem: Problem) -> Iterator[str]:
    base = problem.knowledge.base
    for split, queries in problem.queries.items():
        closed = queries.atoms[closed_atoms(base, queries.atoms)]
        if len(closed):
            names = ", ".join(predicate.name for predicate in base.predicates(closed))
            asked = f"{len(closed):,} of {counted(len(queries), 'query', 'queries')} '{split}'"
            false = f"what is no fact of {names} is false; take 'closed' from its declaration where that is not so"
            yield f"{asked} {'is' if len(closed) == 1 else 'are'} closed: {false}"


def _without_negatives(problem: Problem, options: Options) -> Iterator[str]:
    """Open predicates of which a training would see true atoms alone; with reciprocals every position is corrupted."""
    base, evidence = problem.knowledge.base, problem.train
    positions = None if options.grounding.reciprocal else options.training.corrupted_positions
    some = options.training.model_copy(update={"negatives": FEW_FACTS, "corrupted_positions": positions})
    every, generator = some.model_copy(update={"negatives": None}), np.random.default_rng(0)
    facts, false = _open_atoms(base, evidence, true=True), evidence.atoms[~evidence.truth]
    for drawn in (some, every):  # first a few corruptions of a few facts; all of them where these are no negatives
        facts = facts[~np.isin(base.decode(facts)[0], base.decode(false)[0])]
        index, first, which = np.unique(base.decode(facts)[0], return_index=True, return_inverse=True)
        tried = facts if drawn is every else facts[np.arange(len(facts)) - first[which] < FEW_FACTS]
        if count_negatives(base, Evidence(tried, np.ones(len(tried), bool)), drawn) > MOST_WORK:
            return
        false = draw_negatives(base, evidence, drawn, generator, tried).codes
    for i in np.setdiff1d(index, base.decode(false)[0]):
        predicate, arity = base.language.predicates[i], base.language.predicates[i].arity
        corrupted = range(-arity, 0) if positions is None else [p for p in positions if -arity <= p < arity]
        domains = {position: predicate.domains[position] for position in corrupted}
        reason = "every corruption of its facts is a fact"
        if predicate.name in options.training.labels_only:
            reason = "training.labels_only asks its labelled atoms alone, and none is labelled false"
        elif not domains:
            reason = "training.corrupted_positions names none of its positions, and no atom of it is labelled false"
        elif all(len(base.language.members(domain)) == 1 for domain in domains.values()):
            reason = " and ".join(f"position {p} has one constant ({domain.name})" for p, domain in domains.items())
        yield (
            f"no negative of {predicate.name} can be drawn: {reason}; training would see only true atoms of it and"
            " learn that it is always true: label some of its atoms false, name the constants of its domains in"
            " [domains], or corrupt other positions (training.corrupted_positions)"
        )


def _ungrounded(problem: Problem, store: Store, options: Options) -> Iterator[str]:
    """Rules that surely have no ground rule, those with the same reason in one sentence."""
    around, named, every = None, dict[str, list[str]](), store.with_closed()
    if options.model.rules == "layers" and (left_out := ground_rules_left_out(store, options.grounding.strategy)):
        yield left_out
    if options.grounding.strategy == "backward" and len(problem.atoms) <= MOST_STARTS:
        around = _tried(store, problem.atoms, options.grounding)  # None if that takes long
    for number, rule in enumerate(store.theory.rules):
        is_in_counts = options.model.rules == "counted" and is_counted(rule)
        strategy = "known-body" if is_in_counts else options.grounding.strategy
        reason = None
        if expected_size(every, rule, "full").is_zero:
            reason = f": {_missing(store, rule, 'full')}"
        elif strategy == "known-body" and expected_size(every, rule, strategy).is_zero:
            where = "where rules are counted" if is_in_counts else "under known-body grounding"
            reason = f" {where}: {_missing(store, rule, strategy)}"
        elif around is not None and not is_in_counts and not (store.is_left_out(rule) or around.ground_rules[number]):
            heads = " and ".join(dict.fromkeys(rule.atoms[i].predicate for i in rule.head_positions))
            reason = (
                f" under backward grounding: it concludes {heads} around no fact or query, from what is known or other"
                f" rules conclude; add facts or queries of {heads}, raise grounding.width or grounding.depth, or take"
                " grounding.strategy 'full'"
            )
        if reason is not None:
            named.setdefault(reason, []).append(rule.name)
    for reason, names in named.items():
        subject = f"rule '{names[0]}' has" if len(names) == 1 else f"{len(names):,} rules ({first_names(names)}) have"
        yield f"{subject} no ground rule{reason}"


def _unused_rules(problem: Problem, store: Store, options: Options) -> Iterator[str]:
    """Rules with a known body that conclude nothing that is asked or labelled, if that is found out quickly."""
    rules, most = tuple(filter(is_counted, store.theory.rules)), min(MOST_GROUNDINGS, options.grounding.max_groundings)
    is_read_so = options.model.rules == "counted" or options.grounding.strategy == "known-body"
    if is_read_so and rules and len(problem.train) * len(rules) <= MOST_WORK:
        with suppress(GroundingError):
            yield from unused_rules(RuleCounts.from_store(store, rules, max_groundings=most), problem.atoms)


def unused_rules(counts: RuleCounts, atoms: Codes) -> list[str]:
    """A sentence about rules that conclude something, but nothing among some atoms (ascending), if there are any."""
    concluded, inside = (
        np.bincount(rule, minlength=len(counts.rules))
        for rule in (counts.rule, counts.rule[are_among(counts.codes, atoms)])
    )
    if not (names := [counts.rules[j].name for j in np.flatnonzero((concluded > 0) & (inside == 0))]):
        return []
    return [
        f"{len(names):,} of {counted(len(counts.rules), 'rule')} ({first_names(names)}): none of the ground rules"
        " concludes a query or a labelled atom, so that they change no answer that is asked for; see whether predicates"
        " and arguments are in the right order, or leave them out"
    ]


def mining_notes(problem: Problem) -> list[str]:
    """What a short search for rules finds in the facts that the theory does not state, if it is much."""
    knowledge, rules = problem.knowledge, problem.knowledge.theory.rules
    has_pairs = any(predicate.arity == 2 for predicate in knowledge.language.predicates)
    if not rules or not has_pairs or len(knowledge.evidence) > MOST_MINED_FACTS:
        return []
    chains = [chain for rule in rules if (chain := as_chain(knowledge, rule))]
    given = {(read.head, read.steps, read.is_reversed) for chain in chains for read in (chain, chain.backwards())}
    heads = {predicate.name for predicate in problem.asked_predicates}
    options = MiningOptions(seconds=MINING_SECONDS, min_confidence=STRONG_CONFIDENCE, min_support=STRONG_SUPPORT)
    mined = ((part.rule, as_chain(knowledge, part.rule)) for part in mine_rules(knowledge, options).rules)
    new = [
        str(rule)
        for rule, chain in mined
        if chain and chain.head in heads and (chain.head, chain.steps, chain.is_reversed) not in given
    ]
    if len(new) < max(FEWEST_MINED, len(rules)):
        return []
    return [
        f"a search of {MINING_SECONDS:g} s finds {counted(len(new), 'rule')} with a confidence of"
        f" {STRONG_CONFIDENCE:.0%} or more that the theory does not state (as {new[0]}): r2n mine P --out FILE.r2n"
        " writes a theory with such rules; a training with it shows whether they help"
    ]


def _missing(store: Store, rule: Rule, strategy: str) -> str:
    """Why no substitution of a rule meets what the strategy asks of its body, and what to do."""
    variables = zip(rule.variables, store.domains(rule), strict=True)
    empty = [relation.domains[0].name for _, relation in variables if not len(relation)]
    if empty:
        return f"the domain {empty[0]} has no constant; name some in [domains]"
    for literal in rule.body:
        is_closed = store.theory.is_closed(rule, literal.position)
        (relation, atom), is_in = store.known_by(rule, literal)
        if not is_in or len(relation) or not (is_closed or strategy == "known-body"):
            continue
        facts = f"add facts of {atom.predicate} to [facts] train"
        if is_closed:
            closed = f"{atom.predicate} is closed, and no fact of it is known"
            return f"{closed}; {facts}, or take 'closed' from its declaration"
        known = "fact of {} is known" if literal.positive else "atom of {} is known to be false"
        return f"no {known.format(atom.predicate)}; {facts}, or take grounding.strategy 'full'"
    limited = next((atom.predicate for atom in rule.atoms if atom.predicate in store.knowledge.candidates), None)
    if limited is not None:
        return (
            f"no atoms that are candidates of {limited} meet in it; name those that are missing in a table of"
            f" [candidates.{limited}], p(b, a) next to p(a, b) where a rule turns them round"
        )
    hint = "see whether the arguments in its body are in the right order"
    return f"no facts meet its body; {hint}{', or take a wider strategy' if strategy == 'known-body' else ''}"


def _over_budget(store: Store, options: GroundingOptions) -> Iterator[str]:
    """Rules that are refused by their estimate alone."""
    if options.strategy == "backward":
        return
    for rule in store.theory.rules:
        size = expected_size(store, rule, options.strategy)
        if size.exceeds(options.max_groundings):
            error = budget_error(rule, size.count, options.max_groundings, exact=size.exact)
            yield f"grounding is refused: {error}"


def asked_in_bodies(problem: Problem, options: Options) -> Iterator[str]:
    """Rules of which a training under known-body grounding may learn from the facts that it asks."""
    is_left_out = options.training.batch_size is not None and options.training.leave_one_out is not False
    if options.grounding.strategy != "known-body" or is_left_out:
        return
    rules, asked = problem.knowledge.theory.rules, {predicate.name for predicate in problem.asked_predicates}
    found = ((rule.name, [name for name in rule.body_predicates if name in asked]) for rule in rules)
    if held := [f"{name}: {', '.join(predicates)}" for name, predicates in found if predicates]:
        yield (
            f"{len(held):,} of {counted(len(rules), 'rule')} {'has' if len(held) == 1 else 'have'} a predicate that is"
            f" asked in {'its' if len(held) == 1 else 'their'} body ({first_names(held, separator='; ')}): under"
            " known-body grounding only facts stand there, in training also those that are asked, so that a training"
            " may learn from them what no test query has; set training.batch_size, which leaves out what a step asks,"
            " or model.rules = 'counted'"
        )


def _unreached(problem: Problem, store: Store, options: GroundingOptions) -> Iterator[str]:
    """Splits of which no query stands in a ground rule, if that is found out quickly."""
    knowledge = store.knowledge
    names = {atom.predicate for rule in knowledge.theory.rules for atom in rule.atoms}
    for split, queries in problem.queries.items():
        step = max(1, len(queries) // MOST_TRIED) if options.strategy == "backward" else 1
        asked = queries.atoms[::step]
        in_rules = [predicate.name in names for predicate in knowledge.base.predicates(asked)]
        grounding = _tried(store, asked, options) if any(in_rules) and options.strategy != "full" else None
        is_reached = any(in_rules) if grounding is None else are_among(asked, grounding.atoms).any()
        if len(queries) and not is_reached:
            asked = f"the {counted(len(queries), 'query', 'queries')} '{split}' ({options.strategy})"
            shown = "the rules say nothing of them; r2n ground shows what each rule gives"
            yield f"no ground rule reaches any of {asked}: {shown}"


def _tried(store: Store, asked: Codes, options: GroundingOptions) -> Grounding | None:
    """The grounding around some atoms; None if that would take long."""
    if len(store.knowledge.evidence) * len(store.theory.rules) > MOST_WORK:
        return None
    budget = min(MOST_GROUNDINGS, options.max_groundings)
    try:
        return make_grounder(options.model_copy(update={"max_groundings": budget})).ground(store, asked)
    except GroundingError:
        return None


LONG = 120.0  # seconds of a training that are said before it
SHORT_WORK = 3e11  # operations of a training that surely take less: about 20 s on two cores
OPERATIONS_OF_FLOAT = 64  # of a float of a ground rule that is read and written, in multiplications
FEW_MEASURED = 2_000  # ground rules or atoms of the smallest graph that is measured
TIMES_LARGER = 16  # than the smallest graph that is measured is the other one
TIMES_MEASURED = 3  # passes over a graph
LONG_PASSES = 1.0  # seconds of passes over a graph, after which it is not passed once more
FEWER = 2  # times: what has fewer ground rules by less is not worth naming
MOST_SAMPLED = 100  # facts, and as many negatives, whose neighbourhoods stand for all
SHARED_WORDS = 2  # of candidates by blocking


@dataclass(frozen=True, eq=False)
class Work:
    """What each step of an epoch goes through, at most: ground rules of rules that are reasoning layers, and atoms."""

    knowledge: KnowledgeBase
    options: Options
    sizes: tuple[Size, ...]
    atoms: int
    steps: int = 1

    @property
    def of_step(self) -> int:
        """The ground rules of a step."""
        return sum(size.count for size in self.sizes)

    @property
    def size(self) -> Size:
        """The ground rules of an epoch."""
        return Size(self.steps * self.of_step, all(size.exact for size in self.sizes))

    @property
    def operations(self) -> int:
        """About how many multiplications an epoch is, of which reading and writing count as some."""
        model, rules = self.options.model, self.knowledge.theory.rules
        width = model.rule_dim or model.dim
        positions = sum(len(rule.atoms) * size.count for rule, size in zip(rules, self.sizes, strict=True))
        return self.steps * positions * model.layers * width * (width + OPERATIONS_OF_FLOAT)

    @classmethod
    def from_knowledge(cls, knowledge: KnowledgeBase, options: Options) -> "Work | None":
        """That of a training on a problem's knowledge; None if it cannot be found quickly."""
        knowledge = as_trained(knowledge, options.grounding)
        if options.model.rules == "counted":
            knowledge = split_rules(knowledge)[0]
        base, evidence, training = knowledge.base, knowledge.evidence, options.training
        known = evidence.atoms if training.ask_closed else evidence.atoms[~closed_atoms(base, evidence.atoms)]
        listed = base.size if training.asks_base else count_negatives(base, evidence, training)
        negatives = min(listed, base.size - len(known))
        store = Store(knowledge, asks_closed=training.reads_closed)
        rules, grounder = knowledge.theory.rules, make_grounder(options.grounding)
        asked, steps = len(known) + negatives, max(1, -(-len(known) // (training.batch_size or len(known) or 1)))
        if isinstance(grounder, BackwardGrounder):  # each neighbourhood has its own ground rules and atoms
            dice, one = np.random.default_rng(0), training.model_copy(update={"negatives": 1})
            facts = dice.choice(known, min(len(known), MOST_SAMPLED), replace=False)
            true = facts[np.isin(facts, evidence.facts)]
            false = draw_negatives(base, evidence, one, dice, true).codes[:MOST_SAMPLED]
            of_fact, of_negative = (mean_neighbourhood(store, grounder, sample) for sample in (facts, false))
            if of_fact is None or of_negative is None:
                return None
            counts = [round(count) for count in len(known) * of_fact + negatives * of_negative]
            asked += sum(len(rule.atoms) * count for rule, count in zip(rules, counts, strict=True))
            sizes = [Size(-(-count // steps), exact=False) for count in counts]
        else:
            sizes = [expected_size(store, rule, options.grounding.strategy) for rule in rules]
        return cls(knowledge, options, tuple(sizes), -(-asked // steps), steps)


def measured_speed(work: Work) -> tuple[float, float]:
    """The seconds of a training step on this machine whatever its size, and those for each ground rule.

    They are measured in passes over two small graphs of the same rules. Neither the state of the random generator nor
    the number of threads is changed.
    """
    import torch

    from r2n.model.memory import make_device
    from r2n.model.run import threads_for
    from r2n.network.factor_graph import FactorGraph
    from r2n.network.r2n import R2N

    training, threads = work.options.training, torch.get_num_threads()
    share = min(1.0, FEW_MEASURED / max(1, work.of_step, work.atoms))
    found: list[tuple[int, float]] = []
    torch.set_num_threads(threads_for(training, work.of_step))
    try:
        with torch.random.fork_rng(devices=[]):
            model = R2N.build(work.knowledge, work.options.model).to(make_device(training.device))
            for part in (share, min(1.0, TIMES_LARGER * share)):
                grounding, atoms = _sample(work, part)
                batch, seconds = model.collate(FactorGraph.from_grounding(grounding, atoms), "dense"), list[float]()
                while len(seconds) < TIMES_MEASURED and sum(seconds) < LONG_PASSES:
                    start = perf_counter()
                    predictions = model(batch, rule_outputs=training.semantic_weight > 0)
                    loss = predictions.atoms.sum() + sum(rule.sum() for rule in predictions.rules)
                    loss.backward()
                    float(loss.detach())  # a device has finished
                    seconds.append(perf_counter() - start)
                found.append((len(grounding), min(seconds[1:] or seconds)))  # the first finds out what the batch needs
    finally:
        torch.set_num_threads(threads)
    (few, short), (many, long) = found
    if many <= few or long <= short:  # more ground rules made no difference
        return long, 0.0
    rate = (long - short) / (many - few)
    return max(0.0, long - rate * many), rate


def _sample(work: Work, share: float) -> tuple[Grounding, np.ndarray]:
    """A share of the ground rules of each rule, over a part of each domain, and of the atoms."""
    base, language = work.knowledge.base, work.knowledge.language
    parts: list[GroundRules] = []
    for rule, size in zip(work.knowledge.theory.rules, work.sizes, strict=True):
        domains = [language.members(domain) for domain in work.knowledge.theory.variable_domains(rule)]
        every = prod(map(len, domains))
        scale = (max(1.0, share * size.count) / every) ** (1 / max(1, len(domains))) if size.count and every else 0.0
        shape = tuple(min(len(domain), max(int(scale > 0), round(scale * len(domain)))) for domain in domains)
        left, substitutions = np.arange(prod(shape)), np.zeros((prod(shape), len(shape)), np.int64)
        for variable in reversed(range(len(shape))):
            left, own = np.divmod(left, max(1, shape[variable]))
            substitutions[:, variable] = domains[variable][own]
        atoms = encode_substitutions(base, rule, substitutions)
        parts.append(GroundRules(rule, atoms, 0.0, shape if size.count == every else None))
    dice = np.random.default_rng(0)
    return Grounding(tuple(parts)), np.unique(dice.integers(0, max(1, base.size), round(share * work.atoms)))


def cost_warnings(problem: Problem, options: Options) -> list[str]:
    """The time of a long training, and what has fewer ground rules here; nothing of a short one."""
    if not options.model.has_layers or not problem.knowledge.theory.rules or over_grids(options):
        return []
    work, epochs = Work.from_knowledge(problem.knowledge, options), options.training.epochs
    if work is None or work.operations * epochs < SHORT_WORK:
        return []
    if any(size.exceeds(options.grounding.max_groundings) for size in work.sizes):
        return []  # grounding refuses it, and says why
    fixed, of_ground_rule = measured_speed(work)
    seconds = work.steps * (fixed + of_ground_rule * work.of_step)
    if seconds * epochs < LONG:
        return []
    largest = max(zip(work.sizes, work.knowledge.theory.rules, strict=True), key=lambda pair: pair[0].count)
    of_rule = f", most of them of rule '{largest[1].name}'" if len(work.sizes) > 1 else ""
    steps, most = (f" in {work.steps:,} steps", "at most ") if work.steps > 1 else ("", "")
    of_epoch = f"{seconds:.1f} s" if seconds < 10 else shown_duration(seconds)
    hints = "; ".join(_cheaper_settings(problem, options, work)) or (
        "narrow the domains of variables (x: DOMAIN) or close a predicate of a body; or set model.dim, model.layers or"
        " training.epochs lower"
    )
    return [
        f"the training takes {most}about {shown_duration(seconds * epochs)} on this machine: {counted(epochs, 'epoch')}"
        f" of {of_epoch}, each over {work.size} ground rules{steps}"
        f" ({options.grounding.strategy} grounding{of_rule}). Settings with fewer ground rules: {hints}"
    ]


def _cheaper_settings(problem: Problem, options: Options, work: Work) -> Iterator[str]:
    """What makes the ground rules far fewer, with their number."""
    knowledge, refused = problem.knowledge, len(contradictions(problem, options))

    def size(known: KnowledgeBase, changed: Options) -> Size | None:
        found = None if len(contradictions(problem, changed)) > refused else Work.from_knowledge(known, changed)
        return None if found is None or found.size.count * FEWER > work.size.count else found.size

    sections = [(section, size(known, options)) for section, known in _with_candidates(problem)]
    counts = [(found.count, f"{section} in the problem file ({found})") for section, found in sections if found]
    if counts:
        yield min(counts)[1]
    for strategy in ("known-body", "backward"):
        grounding = options.grounding.model_copy(update={"strategy": strategy, "kept": None})
        changed = options.model_copy(update={"grounding": grounding})
        found = size(knowledge, changed)
        if found is not None and found.count:
            leak = " and training.batch_size" if list(asked_in_bodies(problem, changed)) else ""
            yield f"grounding.strategy = '{strategy}'{leak} ({found})"
    changed = options.model_copy(update={"model": options.model.model_copy(update={"rules": "counted"})})
    left, rules = size(knowledge, changed), split_rules(knowledge)[1]
    if left is not None and rules:
        once = expected_total(Store(knowledge), rules, "known-body")
        yield f"model.rules = 'counted' ({left}, and {once} with a known body that are counted once)"


def _with_candidates(problem: Problem) -> Iterator[tuple[str, KnowledgeBase]]:
    """Sections [candidates.P] that would do here, as they are written, and what is known with them."""
    knowledge = problem.knowledge
    texts = {name for name, part in knowledge.features.items() if part.texts is not None}
    names = dict.fromkeys(atom.predicate for rule in knowledge.theory.rules for atom in rule.atoms)
    for predicate in (knowledge.language.predicate(name) for name in names if name not in knowledge.candidates):
        name = predicate.name if re.fullmatch(r"[\w-]+", predicate.name, re.ASCII) else json.dumps(predicate.name)
        forms = [(f"[candidates.{name}]", Candidates())]
        if predicate.arity == 2 and texts & {domain.name for domain in predicate.domains}:
            words = f"shared_words = {SHARED_WORDS} under {forms[0][0]}"
            forms.append((words, Candidates(shared_words=SHARED_WORDS)))
        for section, wanted in [] if predicate.closed else forms:
            try:
                sources = candidate_sources(knowledge.base, {predicate.name: wanted}, problem.train, problem.queries)
                found = find_candidates(knowledge.base, sources, problem.atoms, knowledge.features)
            except ConfigError:  # to be labelled would be to be true; or too many pairs share words
                continue
            if len(found[predicate.name]):
                yield section, replace(knowledge, candidates={**knowledge.candidates, **found})
                break
