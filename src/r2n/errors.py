"""All errors that r2n raises on purpose: each says what is wrong, where, and what to do next."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

EXCERPT_WIDTH = 100
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "bad_alloc")  # torch, DuckDB, C++
NO_OBJECT = "pyobject pointer is null"  # safetensors, in Rust: Python could not make an object
MANY = 10  # names that differ in their digits alone


@dataclass(frozen=True, slots=True)
class Location:
    """A position in a file: source, line and column (both counted from 1), and the line itself."""

    source: str | None = None
    line: int | None = None
    column: int | None = None
    excerpt: str | None = None

    def __str__(self) -> str:
        """`theory.r2n:3:14`, as far as it is known."""
        numbers = [str(number) for number in (self.line, self.column) if number is not None]
        if self.source is None:
            words = ("line", "column")
            return ", ".join(f"{word} {number}" for word, number in zip(words, numbers, strict=False))
        return ":".join([self.source, *numbers])

    def drawn(self) -> list[str]:
        """The excerpt with a caret below the column; long lines are cut around the caret."""
        if self.excerpt is None:
            return []
        column = self.column or 1
        start = max(0, column - EXCERPT_WIDTH // 2) if len(self.excerpt) > EXCERPT_WIDTH else 0
        shown = self.excerpt[start : start + EXCERPT_WIDTH].replace("\t", " ")
        lines = [f"  | {shown}"]
        if self.column is not None:
            lines.append("  | " + " " * (column - 1 - start) + "^")
        return lines


class R2NError(Exception):
    """The base of all errors that r2n raises on purpose."""

    def __init__(self, what: str, *, where: Location | None = None, hint: str | None = None) -> None:
        """`what` went wrong, `where`, and a `hint` at what to do."""
        self.what, self.where, self.hint = what, where, hint
        position = str(where) if where is not None else ""
        lines = [f"{position}: {what}" if position else what]
        lines += where.drawn() if where is not None else []
        lines += [f"  {hint}"] if hint else []
        super().__init__("\n".join(lines))


class TheoryError(R2NError):
    """A theory file or a rule is wrong."""


class DataError(R2NError):
    """A table of facts, a domain or a query is wrong."""


class GroundingError(R2NError):
    """A rule cannot be grounded within the budget."""


class ConfigError(R2NError):
    """A problem file or an option is wrong."""


class CheckpointError(R2NError):
    """Something that r2n wrote is damaged or does not fit."""


class MemoryLimitError(R2NError):
    """What is asked needs more memory than it may take."""


class ProcessError(R2NError):
    """A process that did a part of the work is gone."""


@contextmanager
def refusing(what: str, hint: str | None = None) -> Iterator[None]:
    """What the system refuses is a ConfigError: `the folder 'runs' cannot be made: Permission denied`."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise ConfigError(f"{what}: {getattr(error, 'strerror', None) or error}", hint=hint) from error


def nearest(name: str, known: Iterable[str]) -> str:
    """`did you mean 'locatedIn'?`, or nothing where no known name is near."""
    names, letters = list(known), _letters(name)
    near = get_close_matches(name, names, n=5, cutoff=0.6)
    if len(letters) < 3 or sum(_letters(other) == letters for other in names) >= MANY:
        near = [other for other in near if _letters(other) != letters]  # another number is no misspelling
    return f"did you mean '{near[0]}'?" if near else ""


def _letters(name: str) -> str:
    """A name without its digits."""
    return "".join("" if character.isdigit() else character for character in name)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 ground rule`, `2,048 ground rules`; `plural` where an s behind the noun is not enough."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def first_names(names: Iterable[str], most: int = 3, separator: str = ", ") -> str:
    """The first of some names, with dots if there are more."""
    names = list(names)
    return separator.join([*names[:most], *["..."] * (len(names) > most)])


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that there is no memory left."""
    said, home = str(error).lower(), type(error).__module__.split(".")[0]
    if isinstance(error, MemoryError) or (home == "pyo3_runtime" and NO_OBJECT in said):
        return True
    return (
        isinstance(error, Exception)
        and home in ("builtins", "torch", "duckdb", "_duckdb")
        and any(text in said for text in OUT_OF_MEMORY)
    )


def optional_library(name: str) -> Any:
    """A library that r2n does not install, if it is there."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        hint = f"pip install {name}; to_arrow() of answers and .metrics of a report need nothing else"
        raise ConfigError(f"a table of {name} needs {name}, which is not installed", hint=hint) from None
