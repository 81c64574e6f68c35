"""Every option of a problem file: its type, default, bounds and description."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from r2n.components import aggregations, input_layers, losses, optimisers, strategies, t_norms
from r2n.errors import ConfigError, Location, nearest

MOST_WHOLE = 2**63 - 1  # what an array of integers holds
MOST_NUMBER = 1e30  # what a network computes with, and has room for what an optimiser makes of it
MOST_LAYERS = 1_000
MOST_STEPS = 1_000_000
MOST_THREADS = 1_024

Whole = Annotated[int, Field(le=MOST_WHOLE)]
Number = Annotated[float, Field(le=MOST_NUMBER)]


def as_tuple(value: Any) -> Any:
    """A list as TOML has it, as a tuple."""
    return tuple(value) if isinstance(value, list) else value


class Section(BaseModel):
    """A section of a problem file: frozen, without unknown keys, strictly typed, without infinite numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class GroundingOptions(Section):
    """[grounding]: the strategy and its options.

    `reciprocal` gives every binary predicate P a reciprocal P^-1 before anything is grounded. `kept` is a folder of
    `r2n ground --engine spark --out`: its grounding is taken where it is that of the same facts, rules and strategy.
    Along `paths`, `depth` is the number of steps, and only the `width` most promising atoms of a query go on to the
    next (0: all).
    """

    strategy: Annotated[str, BeforeValidator(strategies.named())] = "full"
    width: Whole = Field(default=1, ge=0)
    depth: int = Field(default=2, ge=1, le=MOST_STEPS)
    max_groundings: Whole = Field(default=20_000_000, ge=0)
    reciprocal: bool = False
    kept: str | None = None


class ModelOptions(Section):
    """[model]: the network; each choice that the paper leaves open is an option.

    With `rules = "counted"`, rules that conclude one atom are no reasoning layers: their ground rules are counted, and
    mixed with the network. With `rule_network = "shared"`, rules with equally many atoms share the networks of a
    reasoning layer, and differ by a learned embedding. `init_scale` is the deviation of learned vectors at the start.
    The reasoner `paths` reads ground rules along paths of facts, one step a layer, in `rule_dim` dimensions; with
    `input_score`, an input layer is trained too, and both are blended.
    """

    input: Annotated[str, BeforeValidator(input_layers.named())] = "complex"
    dim: Whole = Field(default=32, ge=1)
    rule_dim: Whole | None = Field(default=None, ge=1)
    layers: int = Field(default=3, ge=0, le=MOST_LAYERS)
    reasoner: Literal["r2n", "fgnn", "mean-field", "paths", "none"] = "r2n"
    aggregation: Annotated[str, BeforeValidator(aggregations.named())] = "mean"
    residual: bool = False
    isolated: Literal["keep", "zero"] = "keep"
    rule_network: Literal["own", "shared"] = "own"
    evidence_input: Literal["off", "add", "only"] = "off"
    rules: Literal["layers", "counted"] = "layers"
    mlp: Literal["deep", "shallow"] = "deep"
    output: Literal["mlp", "linear"] = "mlp"
    input_score: bool = False
    init_scale: Number = Field(default=0.3, gt=0)
    constant_dropout: Number = Field(default=0.0, ge=0, lt=1)
    atom_dropout: Number = Field(default=0.0, ge=0, lt=1)
    rule_dropout: Number = Field(default=0.0, ge=0, lt=1)
    encoder_dim: Whole | None = Field(default=None, ge=1)
    encoder_dropout: Number = Field(default=0.0, ge=0, lt=1)
    word_weights: Literal["binary", "count", "tfidf"] = "binary"
    word_min_texts: Whole = Field(default=1, ge=1)
    word_dropout: Number = Field(default=0.0, ge=0, lt=1)

    @property
    def has_layers(self) -> bool:
        """Whether there is a layer on factor graphs: else out(a) is the input layer's score, or read along paths."""
        return self.reasoner not in ("none", "paths") and self.layers > 0

    @property
    def blends(self) -> bool:
        """Whether what is read along paths is blended with the scores of an input layer."""
        return self.reasoner == "paths" and self.input_score


class SamplingOptions(Section):
    """Which negative samples are drawn: corruptions of facts.

    `corrupted_positions` count from 0, negative ones from the end; none means all. `negatives` is the number of
    corruptions drawn for each fact and position, instead of all. Facts of the predicates in `labels_only` are not
    corrupted: only labelled atoms count. `ask_closed` trains on closed atoms too.
    """

    corrupted_positions: Annotated[tuple[Whole, ...], BeforeValidator(as_tuple)] | None = None
    ask_closed: bool = False
    negatives: Whole | None = Field(default=None, ge=1)
    labels_only: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = ()


class ObjectiveOptions(Section):
    """The loss: L_sup + semantic_weight L_sem + regularisation_weight L_t-norm + n3 N3.

    `full-softmax` compares each fact with all candidates, and by `relation_weight` with the other predicates; so does
    `softmax` in batches of `negatives` without reasoning layers.
    `regularisation` names the t-norm of explicit rules on the outputs. With `prior`, atoms that `bce` asks as false for
    want of labelled ones, of predicates of one position, are unlabelled: this share of all atoms is assumed to be true.
    """

    loss: Annotated[str, BeforeValidator(losses.named())] = "bce"
    relation_weight: Number = Field(default=0.0, ge=0)
    semantic_weight: Number = Field(default=0.1, ge=0)
    regularisation: Annotated[str, BeforeValidator(t_norms.named("off"))] = "off"
    regularisation_weight: Number = Field(default=1.0, ge=0)
    n3: Number = Field(default=0.0, ge=0)
    prior: Number | None = Field(default=None, gt=0, le=1)

    @property
    def compares_facts(self) -> bool:
        """Whether the loss compares each fact with others, so that a logit has no meaning by itself."""
        return losses[self.loss].compares_facts

    @property
    def asks_base(self) -> bool:
        """Whether the loss reads the logits of the full Herbrand base."""
        return losses[self.loss].asks_base


class OptimisationOptions(Section):
    """How the loss is minimised; the first `rule_epochs` of the `epochs` train counted rules too.

    `rule_learning_rate` and `weight_decay` are for the reasoning layers and the outputs, `input_weight_decay` for the
    input layer, `counted_learning_rate` for counted rules, which do not decay. An epoch is one step over the full
    graph, at most `batches` steps over connected components of it, or steps of `batch_size` known atoms each, with new
    negatives and the graph around them. `threads` by default is one for small graphs, else all cores. The schedule
    `linear` warms up in the first epoch; if there are `minutes`, the first two epochs tell how many fit, at most
    `epochs`.
    """

    epochs: Whole = Field(default=300, ge=0)
    optimiser: Annotated[str, BeforeValidator(optimisers.named())] = "adam"
    rule_epochs: Whole = Field(default=10, ge=0)
    learning_rate: Number = Field(default=0.01, gt=0)
    rule_learning_rate: Number | None = Field(default=None, gt=0)
    counted_learning_rate: Number | None = Field(default=None, gt=0)
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    weight_decay: Number = Field(default=0.0, ge=0)
    input_weight_decay: Number = Field(default=0.0, ge=0)
    clip: Number | None = Field(default=None, gt=0)
    batches: Whole | None = Field(default=None, ge=1)
    batch_size: Whole | None = Field(default=None, ge=1)
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    threads: int | None = Field(default=None, ge=1, le=MOST_THREADS)


class MaskingOptions(Section):
    """`hiding`: the share of open atoms whose input is masked in a step while their labels count.

    They are drawn atom by atom, or (`hide_by = "constant"`) all atoms with the same first constant together. With
    `leave_one_out`, the queries of a step of `batch_size` atoms are unknown in it; by default, if something would give
    the answer away. Along paths, each epoch asks some of `asked_share` of the facts on the graph of the others: without
    the asked `fact`, or (`leave_out`) without any fact of the same `pair` of constants. `path_epochs` are those of a
    training along paths that follows that of an input layer; by default, as many as the minutes hold.
    """

    hiding: Number = Field(default=0.3, ge=0, lt=1)
    hide_by: Literal["atom", "constant"] = "atom"
    leave_one_out: bool | None = None
    asked_share: Number = Field(default=0.25, gt=0, lt=1)
    path_epochs: Whole | None = Field(default=None, ge=1)
    leave_out: Literal["fact", "pair"] = "fact"


class TrainingOptions(MaskingOptions, OptimisationOptions, ObjectiveOptions, SamplingOptions):
    """[training]: negatives, loss, optimiser, masking, and when to stop, with which weights.

    With `patience`, training stops when the validation metric, measured every `validate_every` epochs, has not risen
    for so many epochs, and the best weights are restored. After `minutes` of its own, a network is trained no further,
    even within an epoch of several steps: the best weights by then, or the last, are kept. `with_valid` trains on the
    validation queries too.
    """

    validate_every: Whole = Field(default=10, ge=1)
    patience: Whole | None = Field(default=None, ge=1)
    minutes: Number | None = Field(default=None, gt=0)
    with_valid: bool = False

    @property
    def reads_closed(self) -> bool:
        """Whether ground rules of closed atoms alone count: these are asked, or a t-norm reads all rules."""
        return self.ask_closed or self.regularisation != "off"


class Options(Section):
    """How a problem is worked on: grounding, model and training."""

    grounding: GroundingOptions = GroundingOptions()
    model: ModelOptions = ModelOptions()
    training: TrainingOptions = TrainingOptions()

    def changed(self, assignments: Iterable[str]) -> "Options":
        """With `section.key=value` assignments made, each value as TOML writes it (or a bare word)."""
        sections = {name: {} for name in type(self).model_fields} | self.model_dump(exclude_unset=True)
        for assignment in assignments:
            name, equals, text = assignment.partition("=")
            section, dot, key = name.strip().partition(".")
            if not equals or not dot or section not in sections:
                hint = f"write SECTION.KEY=VALUE with SECTION one of {', '.join(sections)}"
                raise ConfigError(f"'{assignment}' is no assignment", hint=hint)
            try:
                value = tomllib.loads(f"value = {text.strip()}")["value"]
            except (ValueError, RecursionError):  # no TOML, or thousands of digits or brackets
                value = text.strip()
            sections[section][key] = value
        return chosen(Options, None, sections)

    def with_values(self, values: Mapping[str, Any]) -> "Options":
        """With options set by their names alone: `{"layers": 2, "epochs": 100}`."""
        sections = {name: {} for name in type(self).model_fields} | self.model_dump(exclude_unset=True)
        homes = {key: name for name, part in OPTION_SECTIONS.items() for key in part.model_fields}
        for key, value in values.items():
            if key not in homes:
                raise ConfigError(f"there is no option '{key}'", hint=nearest(key, homes) or "see docs/training.md")
            sections[homes[key]][key] = as_tuple(value)
        return chosen(Options, None, sections)


def option_text(value: object) -> str:
    """The value as a problem file has it."""
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)


OPTION_SECTIONS = {"grounding": GroundingOptions, "model": ModelOptions, "training": TrainingOptions}

# fmt: off
OptionKeywords = TypedDict("OptionKeywords", {  # noqa: UP013
    "strategy": str, "width": int, "depth": int, "max_groundings": int,
    "reciprocal": bool, "kept": str | None,
    "input": str, "dim": int, "rule_dim": int | None, "layers": int,
    "reasoner": Literal["r2n", "fgnn", "mean-field", "paths", "none"],
    "aggregation": str, "residual": bool, "isolated": Literal["keep", "zero"],
    "rule_network": Literal["own", "shared"], "evidence_input": Literal["off", "add", "only"],
    "rules": Literal["layers", "counted"], "mlp": Literal["deep", "shallow"], "output": Literal["mlp", "linear"],
    "input_score": bool, "init_scale": float, "constant_dropout": float, "atom_dropout": float, "rule_dropout": float,
    "encoder_dim": int | None, "encoder_dropout": float,
    "word_weights": Literal["binary", "count", "tfidf"], "word_min_texts": int, "word_dropout": float,
    "corrupted_positions": Sequence[int] | None, "ask_closed": bool, "negatives": int | None,
    "labels_only": Sequence[str],
    "loss": str, "relation_weight": float, "semantic_weight": float, "regularisation": str,
    "regularisation_weight": float, "n3": float, "prior": float | None,
    "epochs": int, "optimiser": str, "rule_epochs": int, "learning_rate": float, "rule_learning_rate": float | None,
    "counted_learning_rate": float | None,
    "schedule": Literal["constant", "cosine", "linear"], "weight_decay": float,
    "input_weight_decay": float, "clip": float | None, "batches": int | None, "batch_size": int | None,
    "device": Literal["auto", "cpu", "cuda", "mps"], "threads": int | None,
    "hiding": float, "hide_by": Literal["atom", "constant"], "leave_one_out": bool | None,
    "asked_share": float, "path_epochs": int | None, "leave_out": Literal["fact", "pair"],
    "validate_every": int, "patience": int | None, "minutes": float | None, "with_valid": bool,
}, total=False)
"""All options by their names alone, as `r2n.train` takes them; a test holds it equal to the sections."""
# fmt: on


Chosen = TypeVar("Chosen", bound=Section)


def chosen(section: type[Chosen], options: Chosen | None, changes: Mapping[str, object]) -> Chosen:
    """Options given as a section, or as keywords, or as a section with some keys changed."""
    try:
        return section.model_validate({**(options.model_dump() if options is not None else {}), **changes})
    except ValidationError as error:
        raise option_error(error.errors()[0], section) from error


def option_error(error: ErrorDetails, root: type[Section], where: Location | None = None) -> ConfigError:
    """A validation error as a ConfigError; for an unknown key with the nearest one, or the section that has it."""
    path = [str(key) for key in error["loc"] if not isinstance(key, int)]
    keys = [*(name for name, section in Options.model_fields.items() if section.annotation is root), *path]
    if error["type"] != "extra_forbidden":
        expected = re.findall("'([^']*)'", str(error.get("ctx", {}).get("expected", "")))
        given = error["input"]  # as text only where it is one: a number may have more digits than Python writes
        hint = (nearest(given, expected) if isinstance(given, str) else "") or None
        return ConfigError(f"{'.'.join(keys)}: {error['msg'][0].lower()}{error['msg'][1:]}", where=where, hint=hint)
    section: Any = root
    for key in path[:-1]:
        fields = _fields(section)
        section = next(iter(_sections_in(fields[key].annotation if key in fields else section)), section)
    known = list(_fields(section))
    near = nearest(keys[-1], known)
    elsewhere = [name for name, section in Options.model_fields.items() if keys[-1] in _fields(section.annotation)]
    hint = f"{near} " * bool(near) + f"known here: {', '.join(known)}"
    if elsewhere and elsewhere != keys[:-1]:
        hint = f"it belongs in [{elsewhere[0]}]"
    inside = f" in [{'.'.join(keys[:-1])}]" if keys[:-1] else ""
    return ConfigError(f"unknown key '{keys[-1]}'{inside}", where=where, hint=hint)


def _fields(section: Any) -> dict[str, Any]:
    """The keys of a section, as they are written."""
    return {field.alias or name: field for name, field in getattr(section, "model_fields", {}).items()}


def _sections_in(annotation: Any) -> list[type[Section]]:
    """The sections in an annotation such as dict[str, FeatureOptions]."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [part for argument in getattr(annotation, "__args__", ()) for part in _sections_in(argument)]
