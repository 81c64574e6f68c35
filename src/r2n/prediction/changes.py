"""A trained network, asked: a predictor that is told otherwise, with errors that name what was given."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from r2n.errors import DataError

if TYPE_CHECKING:
    from r2n.prediction.predictor import Predictor


@dataclass(frozen=True, slots=True)
class Named:
    """How those who give changes call them: as options of a command, or as fields of a request."""

    more: str = "with"
    fewer: str = "without"
    constants: str = "constants"


def told_otherwise(
    predictor: "Predictor",
    more: Sequence[str],
    fewer: Sequence[str],
    constants: Mapping[str, Sequence[str]],
    named: Named,
) -> "Predictor":
    """Knowing less, and then more; `constants` are new ones, by domain."""
    if fewer:
        with _naming(named.fewer):
            predictor = predictor.without_facts(list(fewer))
    if more or constants:
        with _naming(named.more if more else named.constants):
            predictor = predictor.with_facts(list(more), domains=constants)
    return predictor


@contextmanager
def _naming(given: str) -> Iterator[None]:
    """Errors of what was given say which part of it that was."""
    try:
        yield
    except DataError as error:
        where, what = error.where, error.what
        if where is not None and where.source is not None:
            where = replace(where, source=f"{given} {where.source}")
        else:
            where, what = where and replace(where, line=None), f"{given}: {what}"
        raise DataError(what, where=where, hint=error.hint) from None
