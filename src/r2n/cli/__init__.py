"""The command line: one JSON document or a table on standard output, everything else on standard error."""

import os
import sys
import warnings
from typing import Annotated

import typer

from r2n import __version__
from r2n.cli.prediction import explain, infer, predict, rules
from r2n.cli.problems import check, datasets_app, ground, mine
from r2n.cli.runs import compare, evaluate, report, reproduce, serve, train
from r2n.cli.screen import ClearErrors, print_interrupt, watch_interrupts

app = typer.Typer(cls=ClearErrors, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
for command in check, ground, mine, train, evaluate, predict, explain, rules, serve, infer, report, compare, reproduce:
    app.command()(command)
app.add_typer(datasets_app, name="datasets")


def main() -> None:
    """Run the command line; warnings of libraries are for who asked Python for them (`-W`, PYTHONWARNINGS)."""
    if not sys.warnoptions:
        warnings.showwarning = lambda *_, **__: None  # a filter would be undone by libraries that set their own
        os.environ["PYTHONWARNINGS"] = "ignore"  # for processes that a command starts
    watch_interrupts()
    try:
        app()
    except SystemExit as end:
        print_interrupt(end.code)
        raise


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Show it.")] = False) -> None:
    """Relational Reasoning Networks: facts, rules and features in, predictions with their reasons out."""
    if version:
        typer.echo(f"r2n {__version__}")
        raise typer.Exit
