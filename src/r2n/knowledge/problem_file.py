"""What is known: the text of a problem.toml -> checked options; an unknown key is refused with the nearest one."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from r2n.errors import ConfigError, Location, nearest


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TableOptions(_Section):
    """Where facts stand: a file, and how to read it."""

    file: str
    predicate: str | None = None
    columns: tuple[str, ...] = ()
    label: str | None = None
    header: bool | None = None
    table: str | None = None


def _as_tables(value: Any) -> Any:
    """A file name, a table of options, or a list of either, as a list of options."""
    values = value if isinstance(value, list | tuple) else [value]
    return tuple({"file": item} if isinstance(item, str) else item for item in values)


Tables = Annotated[tuple[TableOptions, ...], BeforeValidator(_as_tables)]


class FactsOptions(_Section):
    """[facts]: the training evidence, and the background, which only [derived] reads."""

    train: Tables = ()
    background: Tables = ()


class QueriesOptions(_Section):
    """[queries]: what is asked; the labels are for evaluation only."""

    valid: Tables = ()
    test: Tables = ()

    def splits(self) -> dict[str, tuple[TableOptions, ...]]:
        """The splits that are there, by name."""
        return {name: tables for name, tables in (("valid", self.valid), ("test", self.test)) if tables}


def _as_names(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class FeatureOptions(_Section):
    """[features.DOMAIN]: texts or vectors of a domain's constants; `FeatureTable` says what each key means."""

    table: str | None = None
    key: str | None = None
    text: str | None = None
    vector: Annotated[tuple[str, ...], BeforeValidator(_as_names)] = ()
    names: bool = False
    missing: Literal["error", "learn"] = "error"
    database_table: str | None = None


class CandidateOptions(_Section):
    """[candidates.PREDICATE]: which of its atoms ground rules may hold, besides those labelled true or false."""

    tables: Tables = ()
    shared_words: int | None = Field(default=None, ge=1)
    rarer_than: float = Field(default=1.0, gt=0, le=1)


class GroundingOptions(_Section):
    """[grounding]: the strategy and its options."""

    strategy: Literal["full", "known-body", "backward"] = "full"
    width: int = Field(default=1, ge=0)
    depth: int = Field(default=2, ge=1)
    last_width: int = Field(default=0, ge=0)
    prune: bool = True
    max_groundings: int = Field(default=20_000_000, ge=0)


class ModelOptions(_Section):
    """[model]: the network; each choice that the paper leaves open is an option."""

    input: Literal["distmult", "complex", "transe", "rotate", "mlp", "pair"] = "complex"
    dim: int = Field(default=32, ge=1)
    rule_dim: int | None = Field(default=None, ge=1)
    layers: int = Field(default=3, ge=0)
    reasoner: Literal["r2n", "fgnn", "none"] = "r2n"
    aggregation: Literal["sum", "mean", "max", "mean-then-sum"] = "mean"
    residual: bool = False
    exclude_self: bool = False
    isolated: Literal["keep", "zero"] = "keep"
    shared_layers: bool = False
    evidence_input: Literal["off", "add", "only"] = "off"
    reciprocal: bool = False
    mlp: Literal["deep", "shallow"] = "deep"
    output: Literal["mlp", "linear"] = "mlp"
    input_score: bool = False
    constant_dropout: float = Field(default=0.0, ge=0, lt=1)
    atom_dropout: float = Field(default=0.0, ge=0, lt=1)
    rule_dropout: float = Field(default=0.0, ge=0, lt=1)
    pair: Literal["concatenate", "difference", "product", "symmetric", "all"] = "symmetric"
    shared_encoder: Literal["none", "first", "all"] = "first"
    encoder_dim: int | None = Field(default=None, ge=1)
    encoder_dropout: float = Field(default=0.0, ge=0, lt=1)
    word_weights: Literal["binary", "count", "tfidf"] = "binary"
    word_min_texts: int = Field(default=1, ge=1)
    word_dropout: float = Field(default=0.0, ge=0, lt=1)
    semantic_weight: float = Field(default=0.1, ge=0)


class TrainingOptions(_Section):
    """[training]: the loop; `corrupted_positions` count from 0, negative ones from the end, none means all.

    `ask_closed` asks for closed atoms too, so that the input layer learns them; `negatives` draws so many corruptions
    of each fact instead of taking all. `full-softmax` asks each fact against its whole row of the Herbrand base, and by
    `relation_weight` against the other predicates. `regularisation` names the t-norm by which explicit rules act on the
    outputs. `rule_learning_rate` is for the reasoning layers and the outputs, as is `weight_decay`;
    `input_weight_decay` is for the input layer, `n3` for its vectors of constants. `batches` makes an epoch of at most
    so many steps, each over connected components of the graph; by default it is one step over the whole graph.
    `with_valid` trains on the validation queries too, once the settings are chosen.
    `threads` by default is one for small graphs, where more only wait for each other, else all cores.
    """

    epochs: int = Field(default=300, ge=0)
    learning_rate: float = Field(default=0.01, gt=0)
    rule_learning_rate: float | None = Field(default=None, gt=0)
    schedule: Literal["constant", "cosine"] = "constant"
    loss: Literal["bce", "softmax", "full-softmax"] = "bce"
    relation_weight: float = Field(default=0.0, ge=0)
    regularisation: Literal["off", "product", "goedel", "lukasiewicz"] = "off"
    regularisation_weight: float = Field(default=1.0, ge=0)
    corrupted_positions: tuple[int, ...] | None = None
    ask_closed: bool = False
    negatives: int | None = Field(default=None, ge=1)
    hiding: float = Field(default=0.3, ge=0, lt=1)
    hide_by: Literal["atom", "constant"] = "atom"
    weight_decay: float = Field(default=0.0, ge=0)
    input_weight_decay: float = Field(default=0.0, ge=0)
    n3: float = Field(default=0.0, ge=0)
    clip: float | None = Field(default=None, gt=0)
    validate_every: int = Field(default=10, ge=1)
    patience: int | None = Field(default=None, ge=1)
    batches: int | None = Field(default=None, ge=1)
    with_valid: bool = False
    threads: int | None = Field(default=None, ge=1)


class Options(_Section):
    """How a problem is worked on: grounding, model and training."""

    grounding: GroundingOptions = GroundingOptions()
    model: ModelOptions = ModelOptions()
    training: TrainingOptions = TrainingOptions()

    def changed(self, assignments: Iterable[str]) -> "Options":
        """With `section.key=value` assignments made, each value as TOML writes it (or a bare word)."""
        sections = self.model_dump()
        for assignment in assignments:
            name, equals, text = assignment.partition("=")
            section, dot, key = name.strip().partition(".")
            if not equals or not dot or section not in sections:
                hint = f"write SECTION.KEY=VALUE with SECTION one of {', '.join(sections)}"
                raise ConfigError(f"'{assignment}' is no assignment", hint=hint)
            sections[section][key] = _toml_value(text.strip())
        try:
            return Options.model_validate(sections)
        except ValidationError as error:
            raise _option_error(error.errors()[0], "", None) from error


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


class ProblemFile(_Section):
    """A problem file."""

    name: str | None = None
    theory: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    domains: dict[str, str | tuple[str, ...]] = {}
    facts: FactsOptions = FactsOptions()
    derived: dict[str, str | tuple[str, ...]] = {}
    queries: QueriesOptions = QueriesOptions()
    features: dict[str, FeatureOptions] = {}
    candidates: dict[str, CandidateOptions] = {}
    grounding: GroundingOptions = GroundingOptions()
    model: ModelOptions = ModelOptions()
    training: TrainingOptions = TrainingOptions()

    def options(self) -> "Options":
        """The sections that say how, not what."""
        return Options(grounding=self.grounding, model=self.model, training=self.training)


def read_problem_file(path: Path) -> ProblemFile:
    """The checked options of a problem file."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise ConfigError(f"there is no problem file {path}", hint="a problem is a .toml file or its folder") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(
            "the file is not UTF-8 text", where=Location(str(path), line), hint="save it as UTF-8"
        ) from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    if not text.strip():
        raise ConfigError(
            "the problem file is empty",
            where=Location(str(path)),
            hint='it needs at least [facts] train = "FILE"',
        )
    try:
        return ProblemFile.model_validate(tomllib.loads(text.replace("\r\n", "\n")))
    except tomllib.TOMLDecodeError as error:
        raise _toml_error(error, text, path) from error
    except ValidationError as error:
        raise _option_error(error.errors()[0], text, path) from error


def _toml_error(error: tomllib.TOMLDecodeError, text: str, path: Path) -> ConfigError:
    match = re.search(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
    if match is None:
        return ConfigError(f"not valid TOML: {error}", where=Location(str(path)))
    line, column = int(match.group(2)), int(match.group(3))
    where = Location(str(path), line, column, text.split("\n")[line - 1].rstrip("\r"))
    return ConfigError(f"not valid TOML: {match.group(1)}", where=where)


def _option_error(error: ErrorDetails, text: str, path: Path | None) -> ConfigError:
    keys = [str(key) for key in error["loc"] if not isinstance(key, int)]
    where = _find_key(keys, text, path) if path is not None else None
    if error["type"] == "extra_forbidden":
        known = _known_keys(keys[:-1])
        near = nearest(keys[-1], known)
        return ConfigError(
            f"unknown key '{keys[-1]}'" + (f" in [{'.'.join(keys[:-1])}]" if keys[:-1] else ""),
            where=where,
            hint=f"{near} " * bool(near) + f"known here: {', '.join(known)}",
        )
    return ConfigError(f"{'.'.join(keys)}: {error['msg'][0].lower()}{error['msg'][1:]}", where=where)


def _known_keys(section: list[str]) -> list[str]:
    """The keys that a section may have."""
    if not section:
        return list(ProblemFile.model_fields)
    of_names = {"features": FeatureOptions, "candidates": CandidateOptions}
    if section[0] in of_names and len(section) == 2:
        return list(of_names[section[0]].model_fields)
    if len(section) == 1:
        model = ProblemFile.model_fields[section[0]].annotation
        return list(getattr(model, "model_fields", {}))
    return list(TableOptions.model_fields)


def _find_key(keys: list[str], text: str, path: Path) -> Location:
    """The line where the last of the nested keys stands, as well as it can be told from the text."""
    section = ""
    for number, line in enumerate(text.split("\n"), start=1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
        if header is not None:
            section = header.group(1)
            if section.split(".") == keys:
                return Location(str(path), number, line.index(section) + 1, line)
            continue
        found = re.search(rf"(?<![\w.-])[\"']?{re.escape(keys[-1])}[\"']?\s*=", line)
        if found and section == ".".join(keys[:-1])[: len(section)]:
            return Location(str(path), number, found.start() + 1, line)
    return Location(str(path))
