"""What is known: the text of a problem.toml -> checked options; an unknown key is refused with the nearest one."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from r2n.errors import ConfigError, Location
from r2n.knowledge.options import (
    GroundingOptions,
    ModelOptions,
    Options,
    Section,
    TrainingOptions,
    Whole,
    as_tuple,
    option_error,
)
from r2n.knowledge.reading.postgres import is_postgres
from r2n.whole_files import read_file

Names = Annotated[tuple[str, ...], BeforeValidator(as_tuple)]
MOST_PARTS = 100
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:\.[ \t]*+{_PART}){{{MOST_PARTS}}}")
FormatName = Literal["tsv", "csv", "parquet", "json", "jsonl", "sqlite", "ntriples", "turtle", "rdf-xml", "prolog"]


class TableOptions(Section):
    """Where facts stand: a file, or a table or query of a database, and how to read it.

    `table` is the address of a database, `postgresql://HOST/DATABASE`, or, of an SQLite file, one of its tables.
    """

    file: str | None = None
    predicate: str | None = None
    columns: Names = ()
    label: str | None = None
    header: bool | None = None
    table: str | None = None
    db_schema: str | None = Field(default=None, alias="schema")  # pydantic has another use of the name
    name: str | None = None
    query: str | None = None
    format: FormatName | None = None
    empty: Literal["error", "skip"] = "error"


def _as_tables(value: Any) -> Any:
    """A file name, the address of a database, a table of options, or a list of either, as a list of options."""
    values = value if isinstance(value, list | tuple) else [value]
    return tuple({"table" if is_postgres(item) else "file": item} if isinstance(item, str) else item for item in values)


Tables = Annotated[tuple[TableOptions, ...], BeforeValidator(_as_tables)]


class FactsOptions(Section):
    """[facts]: the training evidence, and the background, which only [derived] reads."""

    train: Tables = ()
    background: Tables = ()


class QueriesOptions(Section):
    """[queries]: what is asked; the labels are for evaluation only."""

    valid: Tables = ()
    test: Tables = ()

    def splits(self) -> dict[str, tuple[TableOptions, ...]]:
        """The splits that are there, by name."""
        return {name: tables for name, tables in (("valid", self.valid), ("test", self.test)) if tables}


def _as_names(value: Any) -> Any:
    return (value,) if isinstance(value, str) else as_tuple(value)


class FeatureOptions(Section):
    """[features.DOMAIN]: texts or vectors of a domain's constants; `FeatureTable` says what each key means."""

    table: str | None = None
    key: str | None = None
    text: str | None = None
    vector: Annotated[tuple[str, ...], BeforeValidator(_as_names)] = ()
    label: str | None = None
    names: bool = False
    missing: Literal["error", "learn"] = "error"
    database_table: str | None = None


class CandidateOptions(Section):
    """[candidates.PREDICATE]: which of its atoms ground rules may hold, besides those labelled true or false."""

    tables: Tables = ()
    shared_words: Whole | None = Field(default=None, ge=1)
    rarer_than: float = Field(default=1.0, gt=0, le=1)


class ProblemFile(Section):
    """A problem file."""

    name: str | None = None
    theory: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    domains: dict[str, str | Names] = Field(default_factory=dict)
    facts: FactsOptions = FactsOptions()
    derived: dict[str, str | Names] = Field(default_factory=dict)
    queries: QueriesOptions = QueriesOptions()
    features: dict[str, FeatureOptions] = Field(default_factory=dict)
    candidates: dict[str, CandidateOptions] = Field(default_factory=dict)
    grounding: GroundingOptions = GroundingOptions()
    model: ModelOptions = ModelOptions()
    training: TrainingOptions = TrainingOptions()

    def options(self) -> "Options":
        """The sections that say how, not what."""
        return Options(grounding=self.grounding, model=self.model, training=self.training)


def read_problem_file(path: Path) -> ProblemFile:
    """The checked options of a problem file."""
    try:
        text = read_file(path).decode("utf-8-sig")
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
    _refuse_long_keys(text, path)
    try:
        document = tomllib.loads(text.replace("\r\n", "\n"))
        _refuse_nul(document, path)
        return ProblemFile.model_validate(document)
    except tomllib.TOMLDecodeError as error:
        raise _toml_error(error, text, path) from error
    except ValidationError as error:
        first = error.errors()[0]
        keys = [str(key) for key in first["loc"] if not isinstance(key, int)]
        raise option_error(first, ProblemFile, _find_key(keys, text, path)) from error
    except (ValueError, RecursionError) as error:  # what Python itself refuses: thousands of digits or brackets
        what = "it is nested too deep" if isinstance(error, RecursionError) else "a number has too many digits"
        raise ConfigError(f"the problem file cannot be read: {what}", where=Location(str(path))) from error


def _refuse_long_keys(text: str, path: Path) -> None:
    """TOML's reader takes the square of their length."""
    found = _LONG_KEY.search(text)
    if found is not None:
        where = Location(str(path), text.count("\n", 0, found.start()) + 1)
        raise ConfigError(f"a key has more than {MOST_PARTS} parts", where=where)


def _refuse_nul(value: Any, path: Path) -> None:
    """No path and no name has a NUL character, which TOML can write."""
    parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    for part in parts:
        _refuse_nul(part, path)
    if isinstance(value, str) and "\0" in value:
        raise ConfigError(
            f"a text holds the character NUL: {value[:40]!r}", where=Location(str(path)), hint="take it out"
        )


def _toml_error(error: tomllib.TOMLDecodeError, text: str, path: Path) -> ConfigError:
    match = re.search(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
    if match is None:
        return ConfigError(f"not valid TOML: {error}", where=Location(str(path)))
    line, column = int(match.group(2)), int(match.group(3))
    where = Location(str(path), line, column, text.split("\n")[line - 1].rstrip("\r"))
    return ConfigError(f"not valid TOML: {match.group(1)}", where=where)


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
