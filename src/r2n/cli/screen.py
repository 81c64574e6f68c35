"""The command line: what its commands share, from options to tables, progress bars and clear errors."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from typer.core import TyperGroup

from r2n.errors import R2NError

SILENT_SECONDS = 2.0

Told = Callable[[int, int], None]
"""Told as (steps done, steps in all)."""

ProblemArgument = Annotated[str, typer.Argument(metavar="P", help="A problem file, its folder, or a known name.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
OnErrorOption = Annotated[
    Literal["raise", "skip"] | None, typer.Option(help="Stop at a wrong row, or skip and report it.")
]


class ClearErrors(TyperGroup):
    """Shows what r2n refuses as a message with exit code 2, never as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except R2NError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from None


def screen() -> Console:
    """Standard output, with room for tables where it is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=160)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def shortened(text: str, width: int = 200) -> str:
    """The text, cut where it is longer than `width`."""
    return text if len(text) <= width else f"{text[: width - 4]} ..."


@contextmanager
def progress_bar(title: str) -> Iterator[Told]:
    """A bar on standard error, from the third second on, where that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    start = monotonic()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None, visible=False)

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=monotonic() - start > SILENT_SECONDS)

        yield told
