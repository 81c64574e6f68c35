"""Checks of options and theories that contradict each other or the data."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from r2n.components import input_layers
from r2n.data.knowledge_base import Evidence
from r2n.data.problem import Problem
from r2n.errors import ConfigError, counted, nearest
from r2n.logic.language import Predicate
from r2n.logic.theory import Rule
from r2n.options import ModelOptions, Options, TrainingOptions


def contradictions(problem: Problem, options: Options) -> list[ConfigError]:
    """All that a training with these options would refuse of the problem."""
    model, training, rules = options.model, options.training, problem.knowledge.theory.rules
    checks = [
        partial(check_no_copying, model.evidence_input if model.has_layers else "off", training),
        partial(_check_training, problem, training),
        partial(check_valid_is_free, training),
        partial(check_arity, model.input, problem.knowledge.language.predicates),
        partial(check_evidence_is_read, model),
        partial(check_mean_field, model, rules),
        partial(_check_rows, problem, options),
        *_path_checks(options),
    ]
    if training.regularisation != "off":
        checks.insert(2, partial(check_has_explicit_rules, rules))
    found: list[ConfigError] = []
    for check in checks:
        try:
            check()
        except ConfigError as error:
            found.append(error)
    return found


def _refuse(is_wrong: bool, what: str, hint: str | None) -> None:
    if is_wrong:
        raise ConfigError(what, hint=hint)


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
    is_unread = options.evidence_input != "off" and not options.has_layers
    _refuse(is_unread, "evidence as input needs reasoning layers", "set layers to 1 or more")


def check_mean_field(options: ModelOptions, rules: Sequence[Rule]) -> None:
    """Mean-field inference needs the truth of every rule, and reads what is known."""
    if options.has_layers and options.reasoner == "mean-field":
        for rule in rules:
            what = f"mean-field inference needs formulas, and rule '{rule.name}' is implicit"
            _refuse(rule.is_implicit, what, "take reasoner = 'r2n', or write the rule as a formula")
        what = "mean-field inference starts from what is known"
        _refuse(options.evidence_input == "off", what, "set model.evidence_input to add")


def check_no_copying(evidence_input: str, options: TrainingOptions) -> None:
    """Refuse what could only be learned by reading the answer."""
    reads = evidence_input != "off"
    leaves_out = options.batch_size is not None and options.leave_one_out is not False
    hint = "set training.hiding above 0, or training.batch_size, which leaves out what it asks"
    what = "a network that reads evidence and hides none of it learns to copy it"
    _refuse(reads and not options.hiding and not leaves_out, what, hint)
    what = f"{options.loss} asks every fact, so that a network that reads evidence learns to copy it"
    _refuse(reads and options.asks_base, what, "take loss = 'softmax' or 'bce', which ask hidden facts alone")


def check_component_batches(options: TrainingOptions) -> None:
    """A loss over rows of atoms cannot be had from components of the graph."""
    what = f"loss = '{options.loss}' compares atoms of the full graph, so that it cannot be trained in batches"
    is_cut = options.batches is not None and options.compares_facts
    _refuse(is_cut, what, "take loss = 'bce', or leave training.batches out")


def check_batches(options: TrainingOptions) -> None:
    """Refuse what cannot be cut in batches, or left out of none."""
    what = "leave-one-out hides what a step asks, and a step over the full graph asks everything"
    _refuse(options.batch_size is None and bool(options.leave_one_out), what, "set training.batch_size")
    what = "training.batches cuts the graph, training.batch_size the facts: one of the two"
    both = options.batch_size is not None and options.batches is not None
    _refuse(both, what, "leave training.batches out")


def check_candidate_batches(answers_alone: bool, options: TrainingOptions) -> None:
    """All candidates of a row are compared in batches only by what scores a row as a product."""
    is_alone = answers_alone and options.regularisation == "off"
    _refuse(
        options.batch_size is not None and options.asks_base and not is_alone,
        f"loss = '{options.loss}' in batches asks all candidates of a row; only an input layer that answers alone"
        " can be asked so, without a t-norm",
        "take loss = 'softmax' with training.negatives, or reasoner = 'none' with input = 'complex' or another"
        " formula, and regularisation = 'off'",
    )


def _path_checks(options: Options) -> Iterator[Callable[[], None]]:
    """Grounding along paths, the layers that read it, and the queries that they learn from are chosen together."""
    grounding, model, training = options.grounding, options.model, options.training
    are_paths = grounding.strategy == "paths", model.reasoner == "paths"
    if not any(are_paths):
        return
    what = f"strategy = '{grounding.strategy}' and reasoner = '{model.reasoner}': one is along paths, and one is not"
    yield partial(_refuse, not all(are_paths), what, 'set both to "paths"')
    what = f"along paths, every layer is a step: layers = {model.layers}, depth = {grounding.depth}"
    yield partial(_refuse, model.layers != grounding.depth, what, "set both to the same number")
    what = "both positions of a pair are asked along paths, the first one of the reciprocal"
    yield partial(_refuse, not grounding.reciprocal, what, "set grounding.reciprocal to true")
    what = "along paths, an answer is compared with all candidates of its query, and some queries are asked a step"
    fitting = ["full-softmax", "softmax"] if model.blends else ["full-softmax"]
    is_other = training.batch_size is None or training.loss not in fitting
    yield partial(_refuse, is_other, what, "set training.loss to full-softmax, and training.batch_size")


def check_has_facts(evidence: Evidence) -> None:
    """A softmax over rows needs a fact in some row."""
    _refuse(not evidence.truth.any(), "there is no fact to learn from", "add facts to [facts] train")


def check_has_explicit_rules(rules: Sequence[Rule]) -> None:
    """An implicit rule has no truth."""
    what = "regularisation needs explicit rules, and the theory has none"
    hint = "write rule NAME: FORMULA, or set training.regularisation to off"
    _refuse(all(rule.is_implicit for rule in rules), what, hint)


def check_valid_is_free(options: TrainingOptions) -> None:
    """Queries that are trained on cannot serve for early stopping."""
    what = "the validation queries cannot both be trained on and tell when to stop"
    hint = "leave out training.patience, or training.with_valid"
    _refuse(options.with_valid and options.patience is not None, what, hint)


def _check_training(problem: Problem, options: TrainingOptions) -> None:
    """Patience lasts until there is a validation; `labels_only` names predicates, and its loss has no corruptions."""
    if options.patience is not None:
        is_needed = not options.with_valid and "valid" not in problem.queries
        what = "training.patience needs queries to validate on"
        _refuse(is_needed, what, "add [queries] valid, or drop patience")
        _refuse(
            options.patience < options.validate_every,
            f"training.patience = {counted(options.patience, 'epoch')} is over before the next validation:"
            f" training.validate_every is {counted(options.validate_every, 'epoch')}",
            f"patience counts epochs, not validations: set it to {options.validate_every} or more,"
            f" or validate_every to {options.patience} or less",
        )
    names = [predicate.name for predicate in problem.knowledge.language.predicates]
    for name in options.labels_only:
        what = f"training.labels_only: unknown predicate '{name}'"
        _refuse(name not in names, what, nearest(name, names) or None)
    what = f"loss = '{options.loss}' compares facts with their corruptions, and training.labels_only asks for none"
    is_compared = bool(options.labels_only) and options.compares_facts
    _refuse(is_compared, what, "take loss = 'bce', or leave training.labels_only out")


def _check_rows(problem: Problem, options: Options) -> None:
    check_component_batches(options.training)
    check_batches(options.training)
    model, rules = options.model, problem.knowledge.theory.rules
    are_counted = model.rules == "counted" and all(rule.concludes_one_atom for rule in rules)
    answers_alone = input_layers[model.input].scores_rows and (are_counted or not model.has_layers)
    check_candidate_batches(answers_alone, options.training)
    if options.training.asks_base:
        check_has_facts(problem.train)
