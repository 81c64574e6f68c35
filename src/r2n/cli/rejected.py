"""The command line: rows that were skipped (`on_error = "skip"`), by kind; the first few of each, or all."""

import re
from collections.abc import Sequence

import typer

from r2n.errors import DataError, counted
from r2n.visible import visible

MOST_SHOWN = 3
_NAME = re.compile(r"'(?:[^']|'(?=\w))*'")
_NUMBER = re.compile(r"\d+")


def by_kind(rejected: Sequence[DataError]) -> dict[str, list[DataError]]:
    """Errors that differ in names and numbers alone, together, in the order of the first of each kind."""
    found: dict[str, list[DataError]] = {}
    for error in rejected:
        found.setdefault(_NUMBER.sub("N", _NAME.sub("'...'", error.what)), []).append(error)
    return found


def print_rejected(rejected: Sequence[DataError], *, everything: bool = False, more: str = "--all") -> None:
    """On standard error: how many rows of each kind were skipped, and the first few; `more` says how to see all."""
    for kind, errors in by_kind(rejected).items():
        typer.echo(f"skipped {counted(len(errors), 'row')}: {kind}", err=True)
        for error in errors if everything else errors[:MOST_SHOWN]:
            shown = str(error) if everything else f"{error.where}: {error.what}" if error.where else error.what
            typer.echo(visible("\n".join(f"  {line}" for line in shown.splitlines())), err=True)
        if not everything and len(errors) > MOST_SHOWN:
            typer.echo(f"  ... and {len(errors) - MOST_SHOWN:,} more: {more} shows them", err=True)
