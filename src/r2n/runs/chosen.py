"""Predictions -> a run: options that nobody set, chosen from the problem, each with its reason.

A choice is made only where the problem asks for it: what is set stays, and small problems keep the defaults.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from r2n.errors import counted
from r2n.grounding.counting import is_counted
from r2n.knowledge.closed_world import closed_atoms
from r2n.knowledge.contradictions import FORMULAS
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.options import Options
from r2n.knowledge.problem import Problem
from r2n.knowledge.sides import Side
from r2n.training.negatives import count_negatives

MANY_NEGATIVES = 200_000  # corruptions of all facts: above, one step over all of them takes seconds
MANY_CONSTANTS = 15_000  # above, a step compares facts with some constants instead of all
FEW_FACTS_A_ROW = 2.0  # times the fewest: positions whose rows hold more are not for corruption
SETTLING = frozenset(
    ["loss", "negatives", "batches", "hiding", "layers", "evidence_input", "rules", "regularisation", "relation_weight"]
)


@dataclass(frozen=True, slots=True)
class Choice:
    """An option that was chosen, and why."""

    key: str
    value: object
    reason: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.key} = {self.value} ({self.reason})"


def choose_options(problem: Problem, options: Options) -> tuple[Options, tuple[Choice, ...]]:
    """The options with what nobody set chosen, and the choices made."""
    made: list[Choice] = []
    assignments: dict[str, dict[str, object]] = {}
    for choice in _wanted(problem, options):
        section, _, key = choice.key.partition(".")
        current = getattr(options, section)
        if key not in current.model_fields_set and getattr(current, key) != choice.value:
            made.append(choice)
            assignments.setdefault(section, {})[key] = choice.value
    changed = {section: getattr(options, section).model_copy(update=values) for section, values in assignments.items()}
    return options.model_copy(update=changed), tuple(made)


def _wanted(problem: Problem, options: Options) -> Iterator[Choice]:
    wide = [predicate for predicate in problem.knowledge.language.predicates if predicate.arity > 2]
    if wide:
        yield Choice("model.input", "distmult", f"{wide[0].name} has {wide[0].arity} positions")
    if _asks_for_rows(problem, options):
        yield from _for_rows(problem)
    else:
        yield from _for_labels(problem)


def _asks_for_rows(problem: Problem, options: Options) -> bool:
    """Whether this is a large graph to be completed: true queries alone, constants without features.

    Options that say how facts are asked, or which network answers, leave nothing to choose.
    """
    knowledge, settled = problem.knowledge, options.training.model_fields_set | options.model.model_fields_set
    if settled & SETTLING or (options.model.reasoner != "none" and "reasoner" in settled):
        return False
    if not problem.queries or not all(queries.truth.all() for queries in problem.queries.values()):
        return False
    if options.model.input not in FORMULAS or knowledge.features:
        return False
    if any(rule.is_implicit for rule in knowledge.theory.rules):
        return False
    return count_negatives(knowledge.base, knowledge.evidence, options.training) > MANY_NEGATIVES


def _for_rows(problem: Problem) -> Iterator[Choice]:
    """A graph is completed by its input layer, asked row by row, and by rules that are counted beside it."""
    knowledge = problem.knowledge
    constants, facts = len(knowledge.language.constants), int(knowledge.evidence.truth.sum())
    size = f"{facts:,} facts of {constants:,} constants"
    rules = sum(map(is_counted, knowledge.theory.rules))
    others = len(knowledge.theory.rules) - rules
    if rules:
        yield Choice("model.rules", "counted", f"{counted(rules, 'Horn rule')} on a graph of {size}")
    if others:
        told = f"{counted(others, 'rule')} left out: on a graph of {size} only rules that conclude one atom are read"
        yield Choice("model.reasoner", "none", told)
    elif not rules:
        yield Choice("model.reasoner", "none", "there is no rule; r2n mine finds some")
    yield Choice("model.dim", 100, "queries are ranked")
    yield Choice("model.init_scale", 0.001, "for Adagrad")
    if all(predicate.arity <= 2 for predicate in knowledge.language.predicates):
        yield Choice("grounding.reciprocal", True, "both positions of a pair are asked for")
        yield Choice("training.corrupted_positions", (-1,), "the first one is asked of the reciprocal")
    yield Choice("training.hiding", 0.0, "the input layer answers alone")
    yield Choice("training.optimiser", "adagrad", "only the rows that a step touches are changed")
    yield Choice("training.learning_rate", 0.1, "for Adagrad")
    if constants > MANY_CONSTANTS:
        yield Choice("training.loss", "softmax", "queries are ranked")
        yield Choice("training.negatives", 1000, f"{constants:,} constants are too many to compare each fact with")
        yield Choice("training.batch_size", 1000, size)
        yield Choice("training.n3", 0.1, size)
    else:
        yield Choice("training.loss", "full-softmax", "queries are ranked, and all constants can be compared")
        yield Choice("training.batch_size", 250, size)
        yield Choice("training.n3", 0.02, size)
    yield Choice("training.epochs", 30, "in batches")
    if "valid" in problem.queries:
        yield Choice("training.validate_every", 5, "there are validation queries")
        yield Choice("training.patience", 10, "there are validation queries")


def _for_labels(problem: Problem) -> Iterator[Choice]:
    """Where facts exclude others, and where they do not, is read off the facts."""
    positions = corrupted_positions(problem.knowledge)
    if positions is not None:
        yield Choice("training.corrupted_positions", positions, "the other positions of a fact take several constants")


def corrupted_positions(knowledge: KnowledgeBase) -> tuple[int, ...] | None:
    """The positions of pairs to corrupt, counted from the end, where not all of them: those whose rows hold few facts.

    A fact p(a, b) excludes p(a, c) only where a stands in few facts of p. All open predicates of two positions speak.
    """
    base, evidence = knowledge.base, knowledge.evidence
    facts = evidence.atoms[evidence.truth]
    facts = facts[~closed_atoms(base, facts)]
    index = base.decode(facts)[0]
    shares = []
    for predicate in np.unique(index).tolist():
        if len(base.shapes[predicate]) == 2:
            own = facts[index == predicate]
            rows = [len(np.unique(Side.of(base, predicate, position).located(own)[0])) for position in (0, 1)]
            shares.append([len(own) / rows[0], len(own) / rows[1], len(own)])
    if not shares:
        return None
    first, second = np.average([share[:2] for share in shares], axis=0, weights=[share[2] for share in shares])
    fewest = min(first, second)
    kept = tuple(position - 2 for position, mean in enumerate((first, second)) if mean <= FEW_FACTS_A_ROW * fewest)
    return kept if len(kept) == 1 else None
