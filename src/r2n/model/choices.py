"""Options that nobody set, chosen from the data with a reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from r2n.components import input_layers
from r2n.data.herbrand import QueryPattern, closed_atoms
from r2n.data.knowledge_base import KnowledgeBase
from r2n.data.problem import Problem
from r2n.data.validation import contradictions
from r2n.errors import counted
from r2n.grounding.counting import is_counted
from r2n.options import Options
from r2n.training.negatives import count_negatives

MANY_NEGATIVES = 200_000  # corruptions of all facts: above, one step over all of them takes seconds
MANY_CONSTANTS = 15_000  # above, a step compares facts with some constants instead of all
FEW_LABELS = 10  # true facts to a false one: above, the false facts of a pair are not all its negatives
FEW_FACTS_A_ROW = 2.0  # times the fewest: positions whose rows hold more are not for corruption
SETTLING = frozenset(["loss", "negatives", "batches", "hiding", "layers", "evidence_input", "rules", "regularisation"])


@dataclass(frozen=True, slots=True)
class Choice:
    """An option that was chosen, and why."""

    key: str
    value: object
    reason: str

    def __str__(self) -> str:
        return f"{self.key} = {self.value} ({self.reason})"


def choose_options(problem: Problem, options: Options) -> tuple[Options, tuple[Choice, ...]]:
    """The options with what nobody set chosen, and the choices made."""
    made: list[Choice] = []
    wide = [predicate for predicate in problem.knowledge.language.predicates if predicate.arity > 2]
    first = [Choice("model.input", "distmult", f"{wide[0].name} has {wide[0].arity} positions")] if wide else []
    for choice in (*first, *(_for_rows if _asks_for_rows(problem, options) else _for_labels)(problem, options)):
        section, _, key = choice.key.partition(".")
        current = getattr(options, section)
        if key not in current.model_fields_set and getattr(current, key) != choice.value:
            made.append(choice)
    made = _withdrawn(problem, options, made)
    return _with_choices(options, made), tuple(made)


def _with_choices(options: Options, choices: list[Choice]) -> Options:
    assignments: dict[str, dict[str, object]] = {}
    for choice in choices:
        section, _, key = choice.key.partition(".")
        assignments.setdefault(section, {})[key] = choice.value
    changed = {section: getattr(options, section).model_copy(update=values) for section, values in assignments.items()}
    return options.model_copy(update=changed)


def _withdrawn(problem: Problem, options: Options, choices: list[Choice]) -> list[Choice]:
    """The choices without those that a training would refuse next to what is set: one by one, or all of them."""

    def refused(some: list[Choice]) -> set[str]:
        return {str(error) for error in contradictions(problem, _with_choices(options, some))} - own

    own: set[str] = set()
    own = refused([])
    while found := refused(choices):
        fewer = ([other for other in choices if other is not choice] for choice in choices)
        choices = next((some for some in fewer if refused(some) < found), [])
    return choices


def _asks_for_rows(problem: Problem, options: Options) -> bool:
    """Whether this is a large graph with true queries alone, and no option says how facts are asked or answered."""
    knowledge, settled = problem.knowledge, options.training.model_fields_set | options.model.model_fields_set
    if settled & SETTLING or (options.model.reasoner != "none" and "reasoner" in settled):
        return False
    if not problem.queries or not all(queries.truth.all() for queries in problem.queries.values()):
        return False
    if not input_layers[options.model.input].scores_rows:
        return False
    if any(rule.is_implicit for rule in knowledge.theory.rules):
        return False
    return count_negatives(knowledge.base, knowledge.evidence, options.training) > MANY_NEGATIVES


def _for_rows(problem: Problem, options: Options) -> Iterator[Choice]:
    """A graph is completed by its input layer, asked row by row, and by counted rules."""
    knowledge, training = problem.knowledge, options.training
    constants, facts = len(knowledge.language.constants), int(knowledge.evidence.truth.sum())
    size = f"{facts:,} facts of {constants:,} constants"
    rules = sum(map(is_counted, knowledge.theory.rules))
    others = len(knowledge.theory.rules) - rules
    if rules:
        yield Choice("model.rules", "counted", f"{counted(rules, 'Horn rule')} on a graph of {size}")
    if others:
        reason = f"{counted(others, 'rule')} left out: on a graph of {size} only rules that conclude one atom are read"
        yield Choice("model.reasoner", "none", reason)
    elif not rules:
        yield Choice("model.reasoner", "none", "there is no rule; r2n mine finds some")
    yield Choice("model.dim", 100, "queries are ranked")
    is_wide = any(predicate.arity > 2 for predicate in knowledge.language.predicates)
    if not is_wide and (options.grounding.reciprocal or "reciprocal" not in options.grounding.model_fields_set):
        yield Choice("grounding.reciprocal", True, "both positions of a pair are asked for")
        yield Choice("training.corrupted_positions", (-1,), "the first one is asked of the reciprocal")
    yield Choice("training.hiding", 0.0, "the input layer answers alone")
    if training.optimiser == "adagrad" or "optimiser" not in training.model_fields_set:
        yield Choice("training.optimiser", "adagrad", "only the rows that a step touches are changed")
        yield Choice("training.learning_rate", 0.1, "for Adagrad")
        yield Choice("model.init_scale", 0.001, "for Adagrad")
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
        every = training.validate_every if "validate_every" in training.model_fields_set else 5
        every = min(every, training.patience or every)
        yield Choice("training.validate_every", every, "there are validation queries")
        yield Choice("training.patience", 2 * every, "there are validation queries")


def _for_labels(problem: Problem, options: Options) -> Iterator[Choice]:
    """What is asked as false: labelled facts, and where facts exclude others, which is read off the facts."""
    labels_only, training = options.training.labels_only, options.training
    settled = training.model_fields_set & {"corrupted_positions", "negatives", "labels_only"}
    if not training.compares_facts and not settled:
        labels = labelled_predicates(problem.knowledge)
        labels_only = tuple(labels)
        counts = ", ".join(
            f"{name} has {true:,} true and {false:,} false ones" for name, (true, false) in labels.items()
        )
        yield Choice("training.labels_only", labels_only, f"labelled false facts are the negatives: {counts}")
    positions = corrupted_positions(problem.knowledge, labels_only)
    if positions is not None:
        yield Choice("training.corrupted_positions", positions, "the other positions of a fact take several constants")


def labelled_predicates(knowledge: KnowledgeBase) -> dict[str, tuple[int, int]]:
    """Open predicates whose labelled false facts are their negatives, with counts; of pairs, not a few of many."""
    base, evidence = knowledge.base, knowledge.evidence
    is_open = ~closed_atoms(base, evidence.atoms)
    index, truth = base.decode(evidence.atoms[is_open])[0], evidence.truth[is_open]
    predicates = base.language.predicates
    true, false = (np.bincount(index[truth == t], minlength=len(predicates)).tolist() for t in (True, False))
    return {
        predicate.name: (true[i], false[i])
        for i, predicate in enumerate(predicates)
        if false[i] and (predicate.arity == 1 or true[i] <= FEW_LABELS * false[i])
    }


def corrupted_positions(knowledge: KnowledgeBase, labels_only: Sequence[str] = ()) -> tuple[int, ...] | None:
    """The positions of pairs to corrupt, counted from the end, where not all of them: those whose rows hold few facts.

    A fact p(a, b) excludes p(a, c) only where a stands in few facts of p. All open predicates of two positions speak,
    but for those that are not corrupted.
    """
    base, evidence = knowledge.base, knowledge.evidence
    facts = evidence.atoms[evidence.truth]
    facts = facts[~closed_atoms(base, facts)]
    index = base.decode(facts)[0]
    shares = []
    for predicate in np.unique(index).tolist():
        if len(base.shapes[predicate]) == 2 and base.language.predicates[predicate].name not in labels_only:
            own = facts[index == predicate]
            rows = [len(np.unique(QueryPattern.from_base(base, predicate, i).located(own)[0])) for i in (0, 1)]
            shares.append([len(own) / rows[0], len(own) / rows[1], len(own)])
    if not shares:
        return None
    first, second = np.average([share[:2] for share in shares], axis=0, weights=[share[2] for share in shares])
    fewest = min(first, second)
    kept = tuple(position - 2 for position, mean in enumerate((first, second)) if mean <= FEW_FACTS_A_ROW * fewest)
    return kept if len(kept) == 1 else None
