"""The time of a training, predicted before the work from a rate that is measured here, and what would take less.

A few passes over a small graph of the same rules are timed, and extended in proportion to the ground rules. Without
many ground rules nothing is measured, and torch is not imported.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from time import perf_counter

import numpy as np

from r2n.errors import ConfigError, counted
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.counting import split_rules
from r2n.grounding.estimates import Size, expected_size, mean_neighbourhood
from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.grounding.store import Store
from r2n.grounding.strategies import make_grounder
from r2n.grounding.substitutions import encode_substitutions
from r2n.knowledge.candidates import Candidates, candidate_sources, find_candidates
from r2n.knowledge.closed_world import closed_atoms
from r2n.knowledge.contradictions import contradictions
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.options import Options
from r2n.knowledge.problem import Problem
from r2n.knowledge.reciprocal import as_trained
from r2n.progress import shown_duration
from r2n.runs.memory import over_grids
from r2n.runs.preflight import asked_in_bodies
from r2n.training.negatives import count_negatives, draw_negatives

LONG = 120.0  # seconds of a training that are said before it
SHORT_WORK = 3e11  # operations of a training that surely take less: about 20 s on two cores
OPERATIONS_OF_FLOAT = 64  # of a float of a ground rule that is read and written, in multiplications
FEW_MEASURED = 2_000  # ground rules or atoms of the smallest graph that is measured
LONG_ENOUGH = 0.1  # seconds that a pass takes longer than over the graph before: then no larger graph is measured
MOST_SECONDS = 10.0  # of measuring, after which no larger graph is measured
TIMES_MEASURED = 3  # passes over a graph
LONG_PASSES = 1.0  # seconds of passes over a graph, after which it is not passed once more
FEWER = 2  # times: what has fewer ground rules by less is not worth naming
MOST_SAMPLED = 100  # facts, and as many negatives, whose neighbourhoods stand for all
SHARED_WORDS = 2  # of candidates by blocking


@dataclass(frozen=True, eq=False)
class Work:
    """What each of the steps of an epoch goes through, at most: the ground rules of each rule, and atoms.

    `knowledge` has the rules that are reasoning layers, in the language of the training.
    """

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
    def of(cls, knowledge: KnowledgeBase, options: Options) -> "Work | None":
        """That of a training on a problem's knowledge; None where it cannot be told at once."""
        knowledge = as_trained(knowledge, options.grounding)
        if options.model.rules == "counted":
            knowledge = split_rules(knowledge)[0]
        base, evidence, training = knowledge.base, knowledge.evidence, options.training
        known = evidence.atoms if training.ask_closed else evidence.atoms[~closed_atoms(base, evidence.atoms)]
        listed = base.size if training.loss == "full-softmax" else count_negatives(base, evidence, training)
        negatives = min(listed, base.size - len(known))
        sizes = _sizes(knowledge, options, known, negatives)
        if sizes is None:
            return None
        asked, steps = len(known) + negatives, max(1, -(-len(known) // (training.batch_size or len(known) or 1)))
        if options.grounding.strategy == "backward":  # each neighbourhood has its own ground rules and atoms
            asked += sum(len(rule.atoms) * size.count for rule, size in zip(knowledge.theory.rules, sizes, strict=True))
            sizes = [Size(-(-size.count // steps), exact=False) for size in sizes]
        return cls(knowledge, options, tuple(sizes), -(-asked // steps), steps)


def _sizes(knowledge: KnowledgeBase, options: Options, known: np.ndarray, negatives: int) -> list[Size] | None:
    """The ground rules of each rule."""
    store, rules, grounder = Store(knowledge), knowledge.theory.rules, make_grounder(options.grounding)
    if not isinstance(grounder, BackwardGrounder):
        return [expected_size(store, rule, options.grounding.strategy) for rule in rules]
    dice, evidence = np.random.default_rng(0), knowledge.evidence
    facts = dice.choice(known, min(len(known), MOST_SAMPLED), replace=False)
    one = options.training.model_copy(update={"negatives": 1})
    true = facts[np.isin(facts, evidence.atoms[evidence.truth])]
    false = draw_negatives(knowledge.base, evidence, one, dice, true).codes
    means = [mean_neighbourhood(store, grounder, sample) for sample in (facts, false[:MOST_SAMPLED])]
    if means[0] is None or means[1] is None:
        return None
    return [Size(round(count), exact=False) for count in len(known) * means[0] + negatives * means[1]]


@dataclass(frozen=True, slots=True)
class Speed:
    """The seconds of a training step on this machine: some whatever its size, and some for each ground rule."""

    fixed: float
    of_ground_rule: float

    def seconds(self, ground_rules: int) -> float:
        """Of a step over so many ground rules."""
        return self.fixed + self.of_ground_rule * ground_rules


def measured_speed(work: Work) -> Speed:
    """The speed of a training, from passes over small graphs of the same rules, each four times as large as the last.

    Neither the state of the random generator nor the number of threads is changed.
    """
    import torch

    from r2n.graph.factor_graph import FactorGraph
    from r2n.model.r2n import R2N
    from r2n.runs.config import make_device
    from r2n.runs.run import threads_for

    training, threads = work.options.training, torch.get_num_threads()
    share = min(1.0, FEW_MEASURED / max(1, work.of_step, work.atoms))
    found: list[tuple[int, float]] = []
    end = perf_counter() + MOST_SECONDS
    torch.set_num_threads(threads_for(training, work.of_step))
    try:
        with torch.random.fork_rng(devices=[]):
            model = R2N.build(work.knowledge, work.options.model).to(make_device(training.device))
            while len(found) < 2 or (share <= 1 and _grown(found) < LONG_ENOUGH and perf_counter() < end):
                grounding, atoms = _sample(work, min(1.0, share))
                layout = model.lay_out(FactorGraph.from_grounding(grounding, atoms), "dense")
                seconds: list[float] = []
                while len(seconds) < TIMES_MEASURED and sum(seconds) < LONG_PASSES:
                    start = perf_counter()
                    predictions = model(layout, rule_outputs=training.semantic_weight > 0)
                    loss = predictions.atoms.sum() + sum(rule.sum() for rule in predictions.rules)
                    loss.backward()
                    float(loss.detach())  # a device has finished
                    seconds.append(perf_counter() - start)
                found.append((len(grounding), min(seconds[1:] or seconds)))  # the first finds out what the layout needs
                share *= 4
    finally:
        torch.set_num_threads(threads)
    (few, short), (many, long) = found[-2:]
    if many <= few or long <= short:  # more ground rules made no difference
        return Speed(long, 0.0)
    rate = (long - short) / (many - few)
    return Speed(max(0.0, long - rate * many), rate)


def _grown(found: list[tuple[int, float]]) -> float:
    """By how many seconds the last pass took longer than the one before."""
    return found[-1][1] - found[-2][1]


def _sample(work: Work, share: float) -> tuple[Grounding, np.ndarray]:
    """A share of the ground rules of each rule, over a part of each domain, and of the atoms."""
    base, language = work.knowledge.base, work.knowledge.language
    parts: list[GroundRules] = []
    for rule, size in zip(work.knowledge.theory.rules, work.sizes, strict=True):
        domains = [language.members(domain) for domain in work.knowledge.theory.variable_domains(rule)]
        every = prod(map(len, domains))
        scale = (max(1.0, share * size.count) / every) ** (1 / max(1, len(domains))) if size.count and every else 0.0
        shape = tuple(min(len(domain), max(int(scale > 0), round(scale * len(domain)))) for domain in domains)
        chosen = np.indices(shape).reshape(len(shape), prod(shape)).T
        substitutions = np.zeros(chosen.shape, np.int64)
        for variable, domain in enumerate(domains):
            substitutions[:, variable] = domain[chosen[:, variable]]
        atoms = encode_substitutions(base, rule, substitutions)
        parts.append(GroundRules(rule, atoms, len(atoms), 0.0, shape if size.count == every else None))
    dice = np.random.default_rng(0)
    return Grounding(tuple(parts)), np.unique(dice.integers(0, max(1, base.size), round(share * work.atoms)))


def cost_warnings(problem: Problem, options: Options) -> list[str]:
    """The time of a long training, and what has fewer ground rules here; nothing of a short one."""
    if not options.model.has_layers or not problem.knowledge.theory.rules or over_grids(options):
        return []
    work, epochs = Work.of(problem.knowledge, options), options.training.epochs
    if work is None or work.operations * epochs < SHORT_WORK:
        return []
    seconds = work.steps * measured_speed(work).seconds(work.of_step)
    if seconds * epochs < LONG:
        return []
    largest = max(zip(work.sizes, work.knowledge.theory.rules, strict=True), key=lambda pair: pair[0].count)
    of_rule = f", most of them of rule '{largest[1].name}'" if len(work.sizes) > 1 else ""
    steps, most = (f" in {work.steps:,} steps", "at most ") if work.steps > 1 else ("", "")
    ways_out = "; ".join(_ways_out(problem, options, work)) or (
        "narrow the domains of variables (x: DOMAIN) or close a predicate of a body; or set model.dim, model.layers or"
        " training.epochs lower"
    )
    return [
        f"the training takes {most}about {shown_duration(seconds * epochs)} on this machine: {counted(epochs, 'epoch')}"
        f" of {_shown_seconds(seconds)}, each over {work.size} ground rules{steps}"
        f" ({options.grounding.strategy} grounding{of_rule}). Settings with fewer ground rules: {ways_out}"
    ]


def _shown_seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else shown_duration(seconds)


def _ways_out(problem: Problem, options: Options, work: Work) -> Iterator[str]:
    """What makes the ground rules far fewer, with their number."""
    knowledge, refused = problem.knowledge, len(contradictions(problem, options))

    def size(known: KnowledgeBase, changed: Options) -> Size | None:
        found = None if len(contradictions(problem, changed)) > refused else Work.of(known, changed)
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
        store = Store(knowledge)
        sizes = [expected_size(store, rule, "known-body") for rule in rules]
        once = Size(sum(found.count for found in sizes), all(found.exact for found in sizes))
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
