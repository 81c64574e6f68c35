"""What a command prints: tables, progress, errors and JSON; options that commands share."""

import errno
import os
import re
import signal
import sys
from _thread import interrupt_main
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text
from typer import Argument, Option
from typer.core import TyperGroup

from r2n.errors import DataError, ProcessError, R2NError, counted, is_out_of_memory
from r2n.files import json_text
from r2n.progress import PhaseProgress as PhaseProgress
from r2n.progress import progress as progress
from r2n.progress import say
from r2n.reproduction import PAPER_COUNTRIES
from r2n.visible import shortened as shortened
from r2n.visible import visible

if TYPE_CHECKING:
    from r2n.evaluation.report import Report

REFUSED, FAILED, INTERRUPTED = 2, 1, 130
NO_MEMORY = "the machine gives no more memory"
_SOON = 0.01  # seconds
_PATIENCE = 2  # interrupts before the process ends at once

_interrupts = 0
_is_reported = False


def failure(error: BaseException) -> tuple[str, int] | None:
    """The message for an error, and the exit code; None for an error that is a bug."""
    global _is_reported
    if _interrupts or isinstance(error, KeyboardInterrupt):  # libraries make other errors of it
        _is_reported = True
        return "interrupted", INTERRUPTED
    if isinstance(error, R2NError):
        return f"error: {error}", FAILED if isinstance(error, ProcessError) else REFUSED
    if is_out_of_memory(error):
        notes = getattr(error, "__notes__", [])
        hint = "ask for less, or see what needs how much: r2n train --memory SIZE refuses it before it is taken"
        return f"error: {'; '.join([NO_MEMORY, *notes])}\n  {hint}", FAILED
    if isinstance(error, OSError) and error.errno != errno.EPIPE:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "make room, and go on with --resume where a run was trained: its last checkpoint is complete"
        return f"error: {what}\n  {hint}" if is_full else f"error: {what}", FAILED
    return None


def print_interrupt(code: object) -> None:
    """Print that an interrupt ended the program, unless a command has: before it begins, and after its end."""
    if code == INTERRUPTED and not _is_reported:
        sys.stderr.write("interrupted\n")


def watch_interrupts() -> None:
    """Remember Ctrl-C, whatever a library makes of it; the third one ends the process at once."""
    forget_interrupts()
    signal.signal(signal.SIGINT, _interrupt)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _interrupt)
    sys.unraisablehook = _unraisable


def forget_interrupts() -> None:
    """Count interrupts from 0 again."""
    global _interrupts, _is_reported
    _interrupts, _is_reported = 0, False


def _interrupt(_: int, __: FrameType | None) -> None:
    global _interrupts
    _interrupts += 1
    if _interrupts == 1:
        raise KeyboardInterrupt
    if _interrupts > _PATIENCE:
        os._exit(INTERRUPTED)


def _unraisable(unraisable: Any) -> None:
    """Repeat an interrupt that came where nothing can be raised, as in the finalizer of an object."""
    global _interrupts
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        _interrupts = 0
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, _SOON)  # here, too, it would be lost
        else:
            interrupt_main()
    elif not _interrupts:
        sys.__unraisablehook__(unraisable)


Texts = list[str] | None
ProblemArgument = Annotated[str, Argument(metavar="P", help="A problem file, its folder, or a known name.")]
SetOption = Annotated[Texts, Option("--set", metavar="SECTION.KEY=VALUE", help="Change an option.")]
RunArgument = Annotated[Path, Argument(metavar="RUN", help="The folder of a run.")]
DeviceOption = Annotated[str, Option(help="auto, cpu, cuda or mps.")]
JobsOption = Annotated[int | None, Option(min=1, metavar="N", help="Share the work among N processes of one thread.")]
OnOption = Annotated[
    str | None, Option(metavar="PROBLEM", help="Ask of another problem that has the same predicates (along paths).")
]
JsonOption = Annotated[bool, Option("--json", help="One JSON document on standard output.")]
MemoryOption = Annotated[str | None, Option(metavar="SIZE", help="Refuse what needs more: 8GB, or 0.5 of the free.")]
EngineOption = Annotated[str | None, Option(help="Where joins run: duckdb, spark, local[N], spark://... or sc://....")]
SampleOption = Annotated[int | None, Option(min=1, metavar="N", help="Rank so many of the queries, drawn at random.")]
SampleSeedOption = Annotated[int, Option(min=0, help="Which sample.")]
OnErrorOption = Annotated[Literal["raise", "skip"] | None, Option(help="Stop at a wrong row, or skip and report it.")]


def new_path(text: str) -> Path:
    """A path to write to (`Option(parser=new_path)`); an empty one would be the current folder."""
    if not text.strip():
        raise typer.BadParameter("it is empty: give the name of a file or folder")
    return Path(text)


class ClearErrors(TyperGroup):
    """Shows what ends a command early as a message with an exit code, never as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BaseException as error:
            found = failure(error)
            if found is None:
                raise
            say(found[0])
            raise typer.Exit(found[1]) from None


def screen() -> Console:
    """Standard output, with room for tables where it is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=160)


def print_table(
    left: Sequence[str], right: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None, **options: Any
) -> None:
    """A table on standard output, its texts as they are: columns of texts, then of numbers; `options` are rich's."""
    heads = [Column(Text(visible(header)), overflow="fold") for header in left]
    heads += [Column(Text(visible(header)), justify="right") for header in right]
    shown = None if title is None else Text(visible(title), style="table.title")
    table = Table(*heads, title=shown, title_justify="left", **options)
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    screen().print(table)


def print_text(*texts: str) -> None:
    """Lines on standard output, as they are."""
    for text in texts:
        screen().print(Text(visible(text)))


def note(*texts: str, prefix: str = "") -> None:
    """Lines on standard error."""
    for text in texts:
        typer.echo(visible(f"{prefix}{text}"), err=True)


def number_text(value: float | None) -> str:
    """`0.9871`; empty for None."""
    return "" if value is None else f"{value:.4f}"


def cell_text(value: float | int | str | None) -> str:
    """A value of a table: `0.9871`, `true`, `italy`."""
    if isinstance(value, bool):
        return str(value).lower()
    return number_text(value) if value is None or isinstance(value, float) else str(value)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json_text(document, indent=2))


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
        note(f"skipped {counted(len(errors), 'row')}: {kind}")
        for error in errors if everything else errors[:MOST_SHOWN]:
            shown = str(error) if everything else f"{error.where}: {error.what}" if error.where else error.what
            note("\n".join(f"  {line}" for line in shown.splitlines()))
        if not everything and len(errors) > MOST_SHOWN:
            note(f"  ... and {len(errors) - MOST_SHOWN:,} more: {more} shows them")


COMPARED_OTHERWISE = ("single network, mean", "deviation", "without reasoning")  # no parts of it, or tested
MUCH_BETTER = 0.02  # in the main metric: then a part of the network alone is worth a note
REMARKS = {"nothing_to_rank": "no metrics: ", "not_held_out": "{split} is not held out: ", "ensemble": ""}
REMARKS |= {
    "in_training": "{split} in training: ",
    "asked": "",
    "suggested": "",
    "combination": "combination: ",
    "constraints": "constraints: ",
    "not_compared": "not compared ",
}


def print_report(report: "Report", name: str) -> None:
    """The metrics of one split and of its baselines, and remarks on how they were measured."""
    protocol = report.protocol
    title = f"{name}, {report.split}" + (f": a sample, {protocol['sample']}" if protocol.get("sample") else "")
    title += ", with constraints" if protocol.get("constraints") else ""
    print_text(title, *str(replace(report, per_predicate={})).splitlines()[1:])
    if report.split == "test" and name in PAPER_COUNTRIES:
        print_text(f"the paper's R2NS: {PAPER_COUNTRIES[name]:.3f} (called AUC-PR; its code computes roc_auc_macro)")
    remarks = {key: text.format(split=report.split) for key, text in REMARKS.items() if key in protocol}
    print_text(*(f"{text}{protocol[key]}" for key, text in remarks.items()))


def baseline_notes(report: "Report") -> list[str]:
    """Which baselines are better than the model, by much."""
    (name, own), harm = report.main, report.protocol.get("reasoning_harms")
    found = [str(harm)] if harm else []
    for part, metrics in report.baselines.items():
        alone = metrics.get(name, own)
        if part not in COMPARED_OTHERWISE and alone > own + MUCH_BETTER:
            which = "the rules alone, counted, reach" if part == "rules alone" else f"the {part} reaches"
            costly = "network does not earn its cost" if part == "rules alone" else "rules do not earn their cost"
            found.append(f"{report.split}: {which} {name} {alone:.3f}, and all together {own:.3f}: the {costly}")
    return found
