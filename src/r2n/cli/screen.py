"""What a command prints: tables, progress, errors and JSON; options that commands share."""

import errno
import os
import re
import signal
import sys
from _thread import interrupt_main
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text
from typer.core import TyperGroup

from r2n.errors import DataError, ProcessError, R2NError, counted, is_out_of_memory
from r2n.files import json_text
from r2n.progress import PhaseProgress as PhaseProgress
from r2n.progress import progress as progress
from r2n.progress import say
from r2n.reproduction.paper import PAPER_COUNTRIES
from r2n.visible import visible

REFUSED, FAILED, INTERRUPTED = 2, 1, 130
NO_MEMORY = "the machine gives no more memory"
_SOON = 0.01  # seconds
_PATIENCE = 2  # interrupts before the process ends at once

_interrupts = 0
_is_told = False


def failure(error: BaseException) -> tuple[str, int] | None:
    """What to say of an error, and the exit code; None where it is none of these."""
    global _is_told
    if _interrupts or isinstance(error, KeyboardInterrupt):  # libraries make other errors of it
        _is_told = True
        return "interrupted", INTERRUPTED
    if isinstance(error, R2NError):
        return f"error: {error}", FAILED if isinstance(error, ProcessError) else REFUSED
    if is_out_of_memory(error):
        notes = getattr(error, "__notes__", [])
        hint = "ask for less, or see what needs how much: r2n train --memory SIZE refuses it before it is taken"
        return f"error: {'; '.join([NO_MEMORY, *notes])}\n  {hint}", FAILED
    if isinstance(error, OSError) and error.errno != errno.EPIPE:
        return f"error: {_about(error)}", FAILED
    return None


def _about(error: OSError) -> str:
    what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"{what}\n  make room, and go on with --resume where a run was trained: its last checkpoint is whole"
    return what


def tell_interrupt(code: object) -> None:
    """Say what ended the program where nobody has: before a command begins, and after its end."""
    if code == INTERRUPTED and not _is_told:
        sys.stderr.write("interrupted\n")


def watch_interrupts() -> None:
    """From now on Ctrl-C is remembered, whatever a library makes of it; the third ends the process at once."""
    forget_interrupts()
    signal.signal(signal.SIGINT, _interrupt)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _interrupt)
    sys.unraisablehook = _unraisable


def forget_interrupts() -> None:
    """What was interrupted is over, and the command goes on: the next Ctrl-C is the first again."""
    global _interrupts, _is_told
    _interrupts, _is_told = 0, False


_is_told = False


def _interrupt(_: int, __: FrameType | None) -> None:
    global _interrupts
    _interrupts += 1
    if _interrupts == 1:
        raise KeyboardInterrupt
    if _interrupts > _PATIENCE:
        os._exit(INTERRUPTED)


def _unraisable(unraisable: Any) -> None:
    """An interrupt in a place that cannot raise, as the end of an object, comes again when that is left."""
    global _interrupts
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        _interrupts = 0
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, _SOON)  # here, too, it would be lost
        else:
            interrupt_main()
    elif not _interrupts:
        sys.__unraisablehook__(unraisable)


ProblemArgument = Annotated[str, typer.Argument(metavar="P", help="A problem file, its folder, or a known name.")]
SetOption = Annotated[list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change an option.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
JobsOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Share the work among N processes, one thread each.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
MemoryOption = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Refuse what needs more: 8GB, or 0.5 of what is free (default: 0.8).")
]
EngineOption = Annotated[
    str | None, typer.Option(help="Where large joins run: duckdb, spark, local[N], spark://HOST:PORT, sc://HOST:PORT.")
]
OnErrorOption = Annotated[
    Literal["raise", "skip"] | None, typer.Option(help="Stop at a wrong row, or skip and report it.")
]


def new_path(text: str) -> Path:
    """A place to write to (`typer.Option(parser=new_path)`); an empty one would be the folder that one is in."""
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
            told = failure(error)
            if told is None:
                raise
            say(told[0])
            raise typer.Exit(told[1]) from None


def screen() -> Console:
    """Standard output, with room for tables where it is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=160)


class ScreenTable(Table):
    """A table whose title, headers and cells are shown as they are."""

    def __init__(self, *headers: str, title: str | None = None, **options: Any) -> None:
        """`options` are those of rich's tables."""
        shown = None if title is None else Text(visible(title), style="table.title")
        super().__init__(
            *(Column(Text(visible(header))) for header in headers), title=shown, title_justify="left", **options
        )

    def add_texts(self, cells: Sequence[str]) -> None:
        """One row."""
        self.add_row(*(Text(visible(cell)) for cell in cells))


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json_text(document, indent=2))


def shortened(text: str, width: int = 200) -> str:
    """The text, cut where it is longer than `width`."""
    return text if len(text) <= width else f"{text[: width - 4]} ..."


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


COMPARED_OTHERWISE = ("single network, mean", "deviation", "without reasoning")  # no parts of it, or tested
MUCH_BETTER = 0.02  # in the main metric: then a part of the network alone is worth a note


def print_report(report: dict[str, Any], name: str) -> None:
    """The metrics of one split; what nothing defines is left empty. Of a sample, how sure they are.

    What parts of the network reach alone stands beside it.
    """
    from r2n.evaluation.metrics import METRICS

    sample, intervals, beside = report["protocol"].get("sample"), report["intervals"], report["beside"]
    constraints = report["protocol"].get("constraints")
    title = f"{name}, {report['split']}" + (f": a sample, {sample}" if sample else "")
    table = ScreenTable("metric", title=title + (", with constraints" if constraints else ""))
    for column in ("value", *beside):
        table.add_column(column, justify="right")
    metrics = {metric: report["metrics"][metric] for metric in METRICS if metric in report["metrics"]}
    is_paper = report["split"] == "test" and name in PAPER_COUNTRIES and "ap" in metrics
    if is_paper:
        table.add_column("the paper's R2NS", justify="right")
    if sample:
        table.add_column("of all, at 95 %", justify="right")
    for metric, value in metrics.items():
        paper = [f"{PAPER_COUNTRIES[name]:.3f}" if metric in ("ap", "roc_auc_macro") else ""] if is_paper else []
        shown = [_number(numbers[metric]) for numbers in ({metric: value}, *beside.values())]
        table.add_texts([metric, *shown, *paper, *_interval(intervals.get(metric))])
    for metric in ("brier", "ece") if report.get("calibrated") else ():
        table.add_texts([f"{metric}, calibrated", _number(report["calibrated"][metric])])
    screen().print(table)
    shown = ("nothing_to_rank", "no metrics: "), ("not_held_out", f"{report['split']} is not held out: ")
    for key, words in (
        *shown,
        ("combination", "combination: "),
        ("constraints", "constraints: "),
        ("not_compared", "not compared "),
        ("ensemble", ""),
    ):
        if key in report["protocol"]:
            screen().print(Text(f"{words}{report['protocol'][key]}"))


def notes_beside(report: dict[str, Any]) -> list[str]:
    """Which part of the network is better alone than the whole, by much."""
    name = "mrr" if "mrr" in report["metrics"] else "ap"
    harm = report["protocol"].get("reasoning_harms")
    own, found = report["metrics"].get(name), [harm] if harm else []
    for part, metrics in report["beside"].items():
        alone = None if part in COMPARED_OTHERWISE else metrics.get(name)
        if own is not None and alone is not None and alone > own + MUCH_BETTER:
            which = "the rules alone, counted, reach" if part == "rules alone" else f"the {part} reaches"
            costly = "network does not earn its cost" if part == "rules alone" else "rules do not earn their cost"
            found.append(f"{report['split']}: {which} {name} {alone:.3f}, and all together {own:.3f}: the {costly}")
    return found


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _interval(bounds: list[float | None] | None) -> list[str]:
    """Between which numbers a metric of all queries lies: no column where all were asked."""
    if bounds is None:
        return []
    low, high = bounds
    return ["" if low is None or high is None else f"{low:.4f} to {high:.4f}"]
