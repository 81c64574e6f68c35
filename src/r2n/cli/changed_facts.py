"""The command line: facts and constants that a command is told, which its run did not have."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from r2n.errors import ConfigError, DataError, nearest

if TYPE_CHECKING:  # torch takes seconds to import
    from r2n.prediction.predictor import Predictor

WithOption = Annotated[
    list[str] | None, typer.Option("--with", metavar="FACT|FILE", help='Known too: "near(a, b)", or a table.')
]
WithoutOption = Annotated[
    list[str] | None, typer.Option("--without", metavar="FACT|FILE", help="No longer known; goes before --with.")
]
ConstantOption = Annotated[
    list[str] | None, typer.Option("--constant", metavar="DOMAIN=NAME", help="A new constant and its domain.")
]


def changed(predictor: "Predictor", more: list[str], fewer: list[str], constants: list[str]) -> "Predictor":
    """Knowing less, and then more; `constants` are written DOMAIN=NAME."""
    domains = by_domain(constants)
    if fewer:
        with _naming("--without"):
            predictor = predictor.without_facts(fewer)
    if more or domains:
        with _naming("--with" if more else "--constant"):
            predictor = predictor.with_facts(more, domains=domains)
    return predictor


@contextmanager
def _naming(option: str) -> Iterator[None]:
    """Errors of what an option gave say which option it was."""
    try:
        yield
    except DataError as error:
        where, what = error.where, error.what
        if where is not None and where.source is not None:
            where = replace(where, source=f"{option} {where.source}")
        else:
            where, what = where and replace(where, line=None), f"{option}: {what}"
        raise DataError(what, where=where, hint=error.hint) from None


def by_domain(constants: list[str]) -> dict[str, list[str]]:
    """`country=atlantis` as {"country": ["atlantis"]}."""
    found: dict[str, list[str]] = {}
    for text in constants:
        domain, equals, name = text.partition("=")
        if not equals or not domain.strip() or not name.strip():
            raise ConfigError(f"'{text}' names no domain and constant", hint="write --constant DOMAIN=NAME")
        found.setdefault(domain.strip(), []).append(name.strip())
    return found


def tell_of_changes(predictor: "Predictor", *, facts_changed: bool) -> None:
    """What a person who changes facts should know, on standard error."""
    for name in predictor.changed.new_constants:
        near = nearest(name, predictor.changed.trained.constants)
        typer.echo(f"new constant: {name}" + (f" ({near})" if near else ""), err=True)
    if facts_changed and predictor.model.evidence_input == "off":
        typer.echo(
            "this network does not read facts (model.evidence_input = off): they act through the grounding alone",
            err=True,
        )
