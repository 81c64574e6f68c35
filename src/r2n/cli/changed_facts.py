"""The command line: facts and constants that a command is told, which its run did not have."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2n.errors import ConfigError, nearest
from r2n.visible import visible

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
    from r2n.prediction.changes import Named, told_otherwise

    named = Named("--with", "--without", "--constant")
    found = told_otherwise(predictor, more, fewer, by_domain(constants), named)
    tell_headers(predictor, [*fewer, *more])
    return found


def tell_headers(predictor: "Predictor", given: Iterable[str | Path]) -> None:
    """Which first rows of files on the command line are taken for headers, on standard error; other texts are facts."""
    from r2n.knowledge.atom_text import looks_like_atom
    from r2n.knowledge.reading.tables import Table, checked_format, with_header

    for path in (Path(item) for item in given if isinstance(item, Path) or not looks_like_atom(item)):
        table, theory = Table(path), predictor.changed.problem.knowledge.theory
        first = with_header(table, checked_format(table, path), theory)[1]
        if first is not None and first.is_header:
            overruled = (
                "if it is a fact or a query, write it below another row, or use Table(file, header=False) in Python"
            )
            said = first.taken(overruled)
            typer.echo(visible(f"note: {said}"), err=True)


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
    for line in changes_told(predictor, facts_changed=facts_changed):
        typer.echo(visible(line), err=True)


def changes_told(predictor: "Predictor", *, facts_changed: bool, but_not: Collection[str] = ()) -> list[str]:
    """The same as lines; new constants in `but_not` were told before."""
    lines = []
    for name in predictor.changed.new_constants:
        if name not in but_not:
            near = nearest(name, predictor.changed.trained.constants)
            lines.append(f"new constant: {name}" + (f" ({near})" if near else ""))
    if facts_changed and predictor.model.evidence_input == "off":
        lines.append(
            "this network does not read facts (model.evidence_input = off): they act through the grounding alone"
        )
    return lines
