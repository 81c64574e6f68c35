"""The command line: facts and constants that a command is told, which its run did not have."""

from collections.abc import Collection
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
    return told_otherwise(predictor, more, fewer, by_domain(constants), named)


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
