"""Options that nobody set, chosen from the data with a reason."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from r2n.components import input_layers
from r2n.data.herbrand import QueryPattern, closed_atoms
from r2n.data.knowledge_base import KnowledgeBase, as_trained
from r2n.data.problem import Problem
from r2n.data.validation import contradictions
from r2n.errors import counted
from r2n.grounding.clauses import deciding_rules
from r2n.grounding.counting import is_counted
from r2n.grounding.paths import QUERIES_AN_EPOCH
from r2n.grounding.store import Store
from r2n.grounding.strategies import chosen_strategy
from r2n.options import OPTION_SECTIONS, Options
from r2n.training.negatives import count_negatives, labelled_shares

MANY_NEGATIVES = 200_000  # corruptions of all facts: above, one step over all of them takes seconds
MANY_CONSTANTS = 15_000  # above, a step compares facts with some constants instead of all
MINUTES = 60
FEWEST_FACTS = 50  # of a small graph that is asked row by row
FEW_FACTS = 1000  # below, vectors of constants that only add to rules are held smaller
FEW_LABELS = 10  # true facts to a false one: above, the false facts of a pair are not all its negatives
FEW_FACTS_A_ROW = 2.0  # times the fewest: positions whose rows hold more are not for corruption
MANY_FACTS_A_CONSTANT = 5  # above, three steps along paths reach far enough
MANY_FACTS = 50_000  # and so many a constant: some atoms of a query go on along paths, not all
TIMES_ASKED = 1  # each fact, at both positions, by a training along paths if nobody says how long it may take
FEWEST_EPOCHS, MOST_EPOCHS = 20, 80
FACTS_A_MINUTE = 5_000
FEWEST_MINUTES, MOST_MINUTES = 2.0, 20.0
Needed = Mapping[str, tuple[object, ...]]
"""Options with the values that a recipe goes with; if another one is set, the recipe is not chosen."""
BY_ROWS: Needed = {
    "model.reasoner": ("none",), "model.layers": (0,), "model.rules": ("counted",), "model.evidence_input": ("off",),
    "training.loss": ("softmax", "full-softmax"), "training.negatives": (None,), "training.batches": (None,),
    "training.hiding": (0,), "training.regularisation": ("off",),
}  # fmt: skip
BY_ATTRIBUTES: Needed = {
    "model.input": ("regression",), "model.reasoner": ("mean-field", "none"), "model.rules": ("layers",),
    "model.evidence_input": ("add",), "model.input_score": (True,), "model.aggregation": (), "model.output": (),
    "model.residual": (False,), "training.loss": ("bce",), "training.batches": (None,),
    "training.regularisation": ("off",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choice:
    """An option that was chosen, and why."""

    key: str
    value: object
    reason: str

    def __str__(self) -> str:
        return f"{self.key} = {self.value} ({self.reason})"


Chosen = tuple[Options, tuple[Choice, ...]]
"""Options with what nobody set chosen, and the choices made."""


def choose_options(problem: Problem, options: Options, *, along_paths: bool = True) -> Chosen:
    """The first of the `alternatives`."""
    return alternatives(problem, options, along_paths=along_paths)[0]


def alternatives(
    problem: Problem, options: Options, *, has_encoders: bool = False, along_paths: bool = True
) -> list[Chosen]:
    """The options with what nobody set chosen: more than once if only a training can tell which choice is better.

    `has_encoders`: the caller gives modules for features, which the regression on features would not read.
    `along_paths`: a training along paths may be chosen, which processes cannot share.
    """
    predicates = problem.knowledge.language.predicates
    wide = [predicate for predicate in predicates if predicate.arity > 2]
    first = [Choice("model.input", "distmult", f"{wide[0].name} has {wide[0].arity} positions")] if wide else []
    are_attributes = not has_encoders and _reads_off_attributes(problem, options, of_pairs=False)
    if "paths" in (options.grounding.strategy, options.model.reasoner) and not options.model.blends:
        recipes = [(*first, *_for_paths(problem, options))]
    elif are_attributes or not (options.model.blends or _asks_for_rows(problem, options)):
        recipes = [(*first, *_for_labels(problem, options, has_encoders=has_encoders))]
    else:
        negatives = count_negatives(problem.knowledge.base, problem.knowledge.evidence, options.training)
        blend = _for_blend(problem, options) if along_paths and not wide else ()
        recipes, names = [(*first, *_for_rows(problem, options), *blend)], {p.name for p in problem.asked_predicates}
        # where a rule concludes from what is asked, one answer may rest on others, which counting does not see
        is_chained = any(not names.isdisjoint(rule.body_predicates) for rule in problem.knowledge.theory.rules)
        if negatives <= MANY_NEGATIVES and is_chained:
            by_layers = (*first, *_for_labels(problem, options, has_encoders=has_encoders))
            recipes = [*recipes, by_layers] if "valid" in problem.queries else [by_layers]
    found = []
    for recipe in recipes:
        made: list[Choice] = []
        for choice in {choice.key: choice for choice in recipe}.values():  # the last choice of an option counts
            section, _, key = choice.key.partition(".")
            current = getattr(options, section)
            if key not in current.model_fields_set and getattr(current, key) != choice.value:
                made.append(choice)
        made = _withdrawn(problem, options, made)
        found.append((_with_choices(options, made), tuple(made)))
    return found


RECIPES = frozenset(["model.input", "model.reasoner", "model.rules"])  # choices that others belong to


def lost_choices(problem: Problem, options: Options, made: Sequence[Choice], *, has_encoders: bool) -> str | None:
    """What is chosen for a problem as it is, but not next to the options that somebody set for this training."""
    sections = {name: (getattr(options, name), getattr(problem.options, name)) for name in OPTION_SECTIONS}
    changed = [
        f"{name}.{key}"
        for name, (now, own) in sections.items()
        for key in sorted(now.model_fields_set)
        if key not in own.model_fields_set or getattr(now, key) != getattr(own, key)
    ]
    if not changed:
        return None
    kept = {*changed, *(choice.key for choice in made)}
    own = alternatives(problem, problem.options, has_encoders=has_encoders)[0][1]
    lost = [choice for choice in own if choice.key not in kept]
    if not RECIPES & {choice.key for choice in lost}:
        return None
    values = ", ".join(f"{choice.key} = {choice.value}" for choice in lost)
    return f"not chosen, because {', '.join(changed)} is set: {values}; set these too, or leave out what is set"


def with_budget(chosen: Chosen, given: Options) -> Chosen:
    """A choice with the most minutes of a training, if nobody set these or the epochs."""
    options, choices = chosen
    if given.training.model_fields_set & {"minutes", "epochs"} or options.training.minutes is not None:
        return chosen
    budget = Choice("training.minutes", MINUTES, "the most that a network is trained")
    return _with_choices(options, [budget]), (*choices, budget)


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


def _contradicts(options: Options, needed: Needed) -> bool:
    """Whether an option is set to what a recipe does not go with."""
    for name, values in needed.items():
        section, _, key = name.partition(".")
        part = getattr(options, section)
        if key in part.model_fields_set and getattr(part, key) not in values:
            return True
    return False


def _asks_for_rows(problem: Problem, options: Options) -> bool:
    """Whether this is a graph of true facts, and no option says how facts are asked or answered.

    It is large, or its queries are true and its rules can be counted.
    """
    knowledge = problem.knowledge
    if _contradicts(options, BY_ROWS):
        return False
    are_true = all(queries.truth.all() for queries in problem.queries.values())
    if not problem.queries or not (are_true or problem.train.truth.all()):
        return False
    if not input_layers[options.model.input].scores_rows:
        return False
    if any(rule.is_implicit for rule in knowledge.theory.rules):
        return False
    is_large = count_negatives(knowledge.base, knowledge.evidence, options.training) > MANY_NEGATIVES
    are_counted = all(map(is_counted, knowledge.theory.rules))
    return is_large or (are_true and are_counted and int(knowledge.evidence.truth.sum()) >= FEWEST_FACTS)


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
        if is_wide:  # near zero, a product of three vectors or more never begins to learn
            yield Choice("model.init_scale", 0.5, "a product of many vectors")
        else:
            yield Choice("model.init_scale", 0.001, "for Adagrad")
    if constants > MANY_CONSTANTS:
        yield Choice("training.loss", "softmax", "queries are ranked")
        yield Choice("training.negatives", 1000, f"{constants:,} constants are too many to compare each fact with")
        yield Choice("training.batch_size", 1000, size)
        yield Choice("training.n3", 0.1, size)
    else:
        yield Choice("training.loss", "full-softmax", "queries are ranked, and all constants can be compared")
        yield Choice("training.batch_size", 250, size)
        yield Choice("training.n3", 0.2 if rules and facts < FEW_FACTS else 0.02, size)
    yield Choice("training.epochs", 30, "in batches")
    if "valid" in problem.queries:
        every = training.validate_every if "validate_every" in training.model_fields_set else 5
        every = min(every, training.patience or every)
        yield Choice("training.validate_every", every, "there are validation queries")
        yield Choice("training.patience", 2 * every, "there are validation queries")


def _for_blend(problem: Problem, options: Options) -> Iterator[Choice]:
    """Next to an input layer, queries are answered along paths; nothing if set options or the queries forbid it."""
    grounding, model = options.grounding, options.model
    others = {"strategy": grounding.strategy != "paths", "reasoner": model.reasoner != "paths"}
    others |= {"reciprocal": not grounding.reciprocal, "input_score": not model.input_score}
    settled = grounding.model_fields_set | model.model_fields_set
    are_pairs = all(predicate.arity == 2 for predicate in problem.asked_predicates)
    if not are_pairs or any(others[name] for name in settled & others.keys()):
        return
    yield from _steps_along_paths(problem, options)
    yield Choice("model.input_score", True, "answers along paths are blended with those of the input layer")
    yield Choice("model.rule_dim", 32, "along paths")
    if not options.training.model_fields_set & {"minutes", "epochs", "path_epochs"}:
        epochs, *budget = _epochs_along_paths(problem, options)
        yield Choice("training.path_epochs", epochs.value, epochs.reason)
        yield from budget


def _epochs_along_paths(problem: Problem, options: Options) -> tuple[Choice, Choice]:
    """As many epochs as ask each fact about `TIMES_ASKED` times, and the most minutes, which few graphs need."""
    facts = int(problem.knowledge.evidence.truth.sum())
    asked = min(QUERIES_AN_EPOCH, 2 * options.training.asked_share * facts)
    epochs = round(min(MOST_EPOCHS, max(FEWEST_EPOCHS, 2 * TIMES_ASKED * facts / max(1.0, asked))))
    minutes = round(min(MOST_MINUTES, max(FEWEST_MINUTES, facts / FACTS_A_MINUTE)), 1)
    size = counted(facts, "fact")
    return (
        Choice("training.epochs", epochs, f"{size}, some asked along paths in each epoch; more are better"),
        Choice("training.minutes", minutes, f"{size}: the most, if the epochs take longer"),
    )


def _for_paths(problem: Problem, options: Options) -> Iterator[Choice]:
    """Queries are answered along paths of facts alone."""
    reason = "queries are answered along paths"
    yield Choice("grounding.reciprocal", True, "both positions of a pair are asked for")
    yield Choice("training.corrupted_positions", (-1,), "the first one is asked of the reciprocal")
    yield from _steps_along_paths(problem, options)
    yield Choice("training.loss", "full-softmax", "queries are ranked")
    yield Choice("training.batch_size", 64, "queries a step")
    yield Choice("training.hiding", 0.0, "what is asked is not in the graph of its query")
    yield Choice("training.learning_rate", 0.005, reason)
    yield Choice("training.schedule", "linear", reason)
    yield Choice("training.clip", 1.0, reason)
    if "epochs" not in options.training.model_fields_set:
        epochs, budget = _epochs_along_paths(problem, options)
        if "minutes" in options.training.model_fields_set:
            epochs = Choice("training.epochs", 100_000, "the minutes say when to stop")
        yield from (epochs, budget)


def _steps_along_paths(problem: Problem, options: Options) -> Iterator[Choice]:
    """Grounding outwards from a query's constant, and a reasoning layer for each step."""
    knowledge, grounding, model = problem.knowledge, options.grounding, options.model
    constants, facts = len(knowledge.language.constants), int(knowledge.evidence.truth.sum())
    size, reason = f"{facts:,} facts of {constants:,} constants", "queries are answered along paths"
    yield Choice("grounding.strategy", "paths", reason)
    yield Choice("model.reasoner", "paths", reason)
    is_dense = facts > MANY_FACTS_A_CONSTANT * constants
    is_wide = is_dense and facts > MANY_FACTS
    depth = model.layers if "layers" in model.model_fields_set else 3 if is_dense else 5
    depth = grounding.depth if "depth" in grounding.model_fields_set else depth
    yield Choice("grounding.depth", depth, size)
    yield Choice("model.layers", depth, "a layer for each step")
    yield Choice("grounding.width", 100 if is_wide else 0, f"{size}: {'so many' if is_wide else 'all atoms'} go on")
    pairs = list[set[tuple[int, int]]]()
    for atoms in (problem.train.facts, problem.valid.facts):
        arguments = knowledge.base.decode(atoms)[1]
        binary = arguments[(arguments >= 0).sum(axis=1) == 2][:, :2]
        pairs.append(set(map(tuple, np.sort(binary, axis=1).tolist())))
    if pairs[1] and not pairs[0] & pairs[1]:
        yield Choice("training.leave_out", "pair", "no fact of the training joins the constants of a validation query")


def _for_labels(problem: Problem, options: Options, *, has_encoders: bool) -> Iterator[Choice]:
    """What is asked as false: labelled facts, and where facts exclude others, which is read off the facts."""
    is_read_off = not has_encoders and _reads_off_attributes(problem, options)
    attributes = list(_for_attributes(problem, options)) if is_read_off else []
    yield from attributes
    labels_only, training = options.training.labels_only, options.training
    settled = training.model_fields_set & {"corrupted_positions", "negatives", "labels_only"}
    if not training.compares_facts and not settled:
        labels = labelled_predicates(problem.knowledge)
        labels_only = tuple(labels)
        counts = ", ".join(
            f"{name} has {true:,} true and {false:,} false ones" for name, (true, false) in labels.items()
        )
        yield Choice("training.labels_only", labels_only, f"labelled false facts are the negatives: {counts}")
    arity = {predicate.name: predicate.arity for predicate in problem.knowledge.language.predicates}
    asked = {tuple(i - arity[name] for i in positions) for name, positions in problem.ask.items()}
    if len(asked) == 1:
        yield Choice("training.corrupted_positions", asked.pop(), "queries.ask")
    elif positions := corrupted_positions(problem.knowledge, labels_only):
        yield Choice("training.corrupted_positions", positions, "the other positions of a fact take several constants")
    reads_rules = options.model.has_layers and options.model.rules == "layers" and problem.knowledge.theory.rules
    is_without = ("model.reasoner", "none") in [(choice.key, choice.value) for choice in attributes]
    if reads_rules and not is_without and not options.grounding.model_fields_set & {"strategy", "kept"}:
        knowledge = as_trained(problem.knowledge, options.grounding)
        sampling = training.model_copy(update={"labels_only": labels_only})
        parts = (problem.train.atoms, problem.valid.atoms)
        train, valid = (atoms[~closed_atoms(knowledge.base, atoms)] for atoms in parts)
        asked = valid if len(problem.valid) else train
        atoms = len(train) + count_negatives(knowledge.base, knowledge.evidence, sampling)
        store = Store(knowledge, asks_closed=training.reads_closed)
        believes = is_read_off and bool(problem.knowledge.features)
        yield Choice("grounding.strategy", *chosen_strategy(store, asked, options.grounding, atoms, believes=believes))


PRIOR = 0.5  # the share of true atoms of a predicate without false ones
PRECISION = 2.0  # of the belief, in labels, that a rule has no weight
MOST_VALUES = 50  # constants that a functional predicate gives to others


def _reads_off_attributes(problem: Problem, options: Options, *, of_pairs: bool = True) -> bool:
    """Whether all that is asked are attributes: of one constant, one of few values, or (`of_pairs`) of a pair: with
    features, or with labelled negatives and rules that decide it.

    A vector that is learned for a constant has then nothing to learn from but the label that it is asked for.
    """
    knowledge, base = problem.knowledge, problem.knowledge.base
    if _contradicts(options, BY_ATTRIBUTES) or any(rule.is_implicit for rule in knowledge.theory.rules):
        return False
    asked = base.predicates(problem.atoms[~closed_atoms(base, problem.atoms)])
    described = {name for name, features in knowledge.features.items() if len(features)}
    decided = decided_predicates(problem)
    for predicate in asked:
        is_value = predicate.functional and len(base.language.members(predicate.domains[-1])) <= MOST_VALUES
        are_described = all(domain.name in described for domain in predicate.domains)
        is_read = of_pairs and (predicate.name in decided or (predicate.arity == 2 and are_described))
        if not (predicate.arity == 1 or is_value or is_read):
            return False
    return bool(asked)


def decided_predicates(problem: Problem) -> set[str]:
    """Predicates of several constants, with labels of both kinds, that the rules' clauses decide."""
    language, theory = problem.knowledge.language, problem.knowledge.theory
    labelled = (language.predicate(name) for name in labelled_predicates(problem.knowledge))
    return {p.name for p in labelled if p.arity > 1 and not p.functional and deciding_rules(theory, p.name)}


def _for_attributes(problem: Problem, options: Options) -> Iterator[Choice]:
    """A regression on features, and reasoning layers that read what is known instead of learned vectors."""
    why = "attributes are asked for: constants are read by their features and by what is known of them"
    yield Choice("model.input", "regression", why)
    base, evidence, reason = problem.knowledge.base, problem.knowledge.evidence, None
    asked = base.predicates(problem.atoms[~closed_atoms(base, problem.atoms)])
    is_settled = bool(options.model.model_fields_set & {"reasoner", "layers"})
    if not problem.knowledge.theory.rules:
        reason = "there is no rule"
    elif is_settled and not options.model.has_layers:
        reason = "there is no reasoning layer"
    elif not is_settled and {predicate.name for predicate in asked} <= decided_predicates(problem):
        reason = "the regression counts how many ground clauses decide each atom"
    if reason is not None:
        yield Choice("model.reasoner", "none", reason)
        yield Choice("training.epochs", 1, "the regression is fitted before the training")
        return
    yield Choice("model.reasoner", "mean-field", "each rule has weights, learned from labels that are hidden")
    yield Choice("model.layers", 4, "what is known is passed on so many times")
    yield Choice("model.evidence_input", "add", why)
    yield Choice("model.input_score", True, "rules add to what the features say")
    yield Choice("training.hiding", 0.3, "a label is asked only where it is not read")
    yield Choice("training.semantic_weight", 0.0, "labels alone are learned")
    yield Choice("training.learning_rate", 0.05, "few weights are learned")
    yield Choice("training.epochs", 100, "few weights are learned, and need nothing that stops them")
    if (labelled_shares(base, evidence, PRIOR) < 1).any():
        why = "nothing is labelled false: unlabelled items are no negatives, and how many are true is not known"
        yield Choice("training.prior", PRIOR, why)
    sampling = options.training.model_copy(update={"labels_only": tuple(labelled_predicates(problem.knowledge))})
    labels = int((~closed_atoms(base, evidence.atoms)).sum()) + count_negatives(base, evidence, sampling)
    yield Choice("training.weight_decay", round(PRECISION / max(1, labels), 5), f"{counted(labels, 'label')}")


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
    facts = evidence.facts
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
