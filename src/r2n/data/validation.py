"""Checks of options and theories that contradict each other or the data."""

from collections.abc import Callable, Sequence

from r2n.components import input_layers
from r2n.data.knowledge_base import Evidence
from r2n.data.problem import Problem
from r2n.errors import ConfigError, counted, nearest
from r2n.logic.language import Predicate
from r2n.logic.theory import Rule
from r2n.options import ModelOptions, Options, TrainingOptions


def contradictions(problem: Problem, options: Options) -> list[ConfigError]:
    """All that a training with these options would refuse of the problem."""
    found: list[ConfigError] = []
    for check in _CHECKS:
        try:
            check(problem, options)
        except ConfigError as error:
            found.append(error)
    return found


def check_arity(name: str, predicates: Sequence[Predicate]) -> None:
    """Refuse predicates of more positions than the input layer takes."""
    most = input_layers[name].max_arity
    for predicate in predicates:
        if most is not None and predicate.arity > most:
            takes = "one or two positions" if most == 2 else f"at most {counted(most, 'position')}"
            every = (input_layers[other] for other in input_layers)
            others = [f"'{part.name}'" for part in every if part.max_arity is None and not part.reads_features]
            what = f"input '{name}' takes predicates of {takes}, but {predicate.name} has {predicate.arity}"
            raise ConfigError(what, hint=f"choose input = {' or '.join(others)}")


def check_evidence_is_read(options: ModelOptions) -> None:
    """Without reasoning layers nothing reads what is known of an atom."""
    if options.evidence_input != "off" and not options.has_layers:
        raise ConfigError("evidence as input needs reasoning layers", hint="set layers to 1 or more")


def check_no_copying(evidence_input: str, options: TrainingOptions) -> None:
    """Refuse what could only be learned by reading the answer."""
    if evidence_input == "off":
        return
    leaves_out = options.batch_size is not None and options.leave_one_out is not False
    if not options.hiding and not leaves_out:
        hint = "set training.hiding above 0, or training.batch_size, which leaves out what it asks"
        raise ConfigError("a network that reads evidence and hides none of it learns to copy it", hint=hint)
    if options.asks_base:
        what = f"{options.loss} asks every fact, so that a network that reads evidence learns to copy it"
        raise ConfigError(what, hint="take loss = 'softmax' or 'bce', which ask hidden facts alone")


def check_component_batches(options: TrainingOptions) -> None:
    """A loss over rows of atoms cannot be had from components of the graph."""
    if options.batches is not None and options.compares_facts:
        what = f"loss = '{options.loss}' compares atoms of the whole graph, so that it cannot be trained in batches"
        raise ConfigError(what, hint="take loss = 'bce', or leave training.batches out")


def check_batches(options: TrainingOptions) -> None:
    """Refuse what cannot be cut in batches, or left out of none."""
    if options.batch_size is None:
        if options.leave_one_out:
            what = "leave-one-out hides what a step asks, and a step over the whole graph asks everything"
            raise ConfigError(what, hint="set training.batch_size")
        return
    if options.batches is not None:
        hint = "leave training.batches out"
        raise ConfigError("training.batches cuts the graph, training.batch_size the facts: one of the two", hint=hint)


def check_candidate_batches(answers_alone: bool, options: TrainingOptions) -> None:
    """All candidates of a row are compared in batches only by what scores a row as a product."""
    if options.batch_size is None or not options.asks_base:
        return
    if not answers_alone or options.regularisation != "off" or options.relation_weight:
        raise ConfigError(
            f"loss = '{options.loss}' in batches asks all candidates of a row; only an input layer that answers alone"
            " can be asked so, and neither a t-norm nor other predicates beside it",
            hint="take loss = 'softmax' with training.negatives, or reasoner = 'none' with input = 'complex' or another"
            " formula, regularisation = 'off' and relation_weight = 0",
        )


def check_has_facts(evidence: Evidence) -> None:
    """A softmax over rows needs a fact in some row."""
    if not evidence.truth.any():
        raise ConfigError("there is no fact to learn from", hint="add facts to [facts] train")


def check_has_explicit_rules(rules: Sequence[Rule]) -> None:
    """An implicit rule has no truth."""
    if all(rule.is_implicit for rule in rules):
        hint = "write rule NAME: FORMULA, or set training.regularisation to off"
        raise ConfigError("regularisation needs explicit rules, and the theory has none", hint=hint)


def check_valid_is_free(options: TrainingOptions) -> None:
    """Queries that are trained on cannot serve for early stopping."""
    if options.with_valid and options.patience is not None:
        hint = "leave out training.patience, or training.with_valid"
        raise ConfigError("the validation queries cannot both be trained on and tell when to stop", hint=hint)


def _check_patience(problem: Problem, options: TrainingOptions) -> None:
    if options.patience is not None and not options.with_valid and "valid" not in problem.queries:
        hint = "add [queries] valid, or drop patience"
        raise ConfigError("training.patience needs queries to validate on", hint=hint)
    if options.patience is not None and options.patience < options.validate_every:
        raise ConfigError(
            f"training.patience = {counted(options.patience, 'epoch')} is over before the next validation:"
            f" training.validate_every is {counted(options.validate_every, 'epoch')}",
            hint=f"patience counts epochs, not validations: set it to {options.validate_every} or more,"
            f" or validate_every to {options.patience} or less",
        )


def _check_labels_only(problem: Problem, options: TrainingOptions) -> None:
    """`labels_only` names known predicates, and needs a loss without corruptions."""
    names = [predicate.name for predicate in problem.knowledge.language.predicates]
    for name in options.labels_only:
        if name not in names:
            raise ConfigError(f"training.labels_only: unknown predicate '{name}'", hint=nearest(name, names) or None)
    if options.labels_only and options.compares_facts:
        what = f"loss = '{options.loss}' compares facts with their corruptions, and training.labels_only asks for none"
        raise ConfigError(what, hint="take loss = 'bce', or leave training.labels_only out")


def _check_rows(problem: Problem, options: Options) -> None:
    check_component_batches(options.training)
    check_batches(options.training)
    model, rules = options.model, problem.knowledge.theory.rules
    are_counted = model.rules == "counted" and all(rule.concludes_one_atom for rule in rules)
    answers_alone = input_layers[model.input].scores_rows and (are_counted or not model.has_layers)
    check_candidate_batches(answers_alone, options.training)
    if options.training.asks_base:
        check_has_facts(problem.train)


def _check_regularisation(problem: Problem, options: Options) -> None:
    if options.training.regularisation != "off":
        check_has_explicit_rules(problem.knowledge.theory.rules)


_CHECKS: tuple[Callable[[Problem, Options], None], ...] = (
    lambda _, options: check_no_copying(
        options.model.evidence_input if options.model.has_layers else "off", options.training
    ),
    lambda problem, options: _check_patience(problem, options.training),
    _check_regularisation,
    lambda problem, options: check_valid_is_free(options.training),
    lambda problem, options: _check_labels_only(problem, options.training),
    lambda problem, options: check_arity(options.model.input, problem.knowledge.language.predicates),
    lambda problem, options: check_evidence_is_read(options.model),
    _check_rows,
)
