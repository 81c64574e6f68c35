"""The command line: r2n ask."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2n.cli.asking_session import Known, Session, as_written
from r2n.cli.prediction import (
    AllOption,
    ConstantOption,
    TopOption,
    UnknownOption,
    Wanted,
    WithOption,
    WithoutOption,
    changed,
    most_answers,
    tell_calibration,
    tell_of_changes,
)
from r2n.cli.screen import INTERRUPTED, DeviceOption, RunArgument, failure, forget_interrupts, progress
from r2n.errors import R2NError, counted
from r2n.files import json_text
from r2n.progress import Progress, no_progress
from r2n.visible import visible

if TYPE_CHECKING:  # torch takes seconds to import
    from r2n.model.predictor import Predictor

JsonLinesOption = Annotated[bool, typer.Option("--json", help="One JSON document for each line.")]


def ask(
    run: RunArgument,
    more: WithOption = None,
    fewer: WithoutOption = None,
    constants: ConstantOption = None,
    top: TopOption = None,
    unknown: UnknownOption = False,
    show_all: AllOption = False,
    device: DeviceOption = "auto",
    as_json: JsonLinesOption = False,
) -> None:
    """Ask a trained network many questions, one after the other; :help tells what else can be typed.

    Without a terminal, lines are read from standard input.
    """
    from r2n.model.predictor import Predictor

    work = Work(str(run))
    with work.shown():
        loaded = Predictor.load(run, device=device, progress=work)
        predictor = changed(loaded, more or [], fewer or [], constants or [])
    tell_of_changes(predictor, facts_changed=bool(more or fewer))
    wanted = Wanted(everything=show_all, top=most_answers(top, show_all=show_all), unknown=unknown)
    start = Known(predictor, tuple(map(as_written, more or ())), tuple(map(as_written, fewer or ())))
    session = Session(start, wanted)
    if not as_json:
        tell_calibration(predictor.calibration)
    if _is_terminal():
        _greet(predictor)
        _talk(session, work, as_json)
    else:
        _read(session, work, as_json)


class Work:
    """The progress of whatever is computed: the predictor keeps this one, and each line shows it anew."""

    def __init__(self, title: str) -> None:
        """`title` stands before the phases."""
        self.title, self.told = title, no_progress

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Hand on."""
        self.told(phase, done, total)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show progress while this lasts."""
        with progress(self.title) as shown:
            self.told: Progress = shown
            try:
                yield
            finally:
                self.told = no_progress


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _greet(predictor: "Predictor") -> None:
    known = counted(len(predictor.changed.problem.train), "known atom")
    typer.echo(f"{known}; ask with ? for what is asked, Tab completes, :help tells more, Ctrl-D ends", err=True)


def _talk(session: Session, work: Work, as_json: bool) -> None:
    """Lines from a terminal: Ctrl-C cancels the line, or what it computes; Ctrl-D ends."""
    from r2n.cli.asking_prompt import prompt_of

    prompt = prompt_of(lambda: session.title, lambda: session.known.predictor.base.language)
    while True:
        try:
            lines = prompt().split("\n")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        for line in lines:
            if _answered(session, work, line, as_json, may_cancel=True) is None:
                return


def _read(session: Session, work: Work, as_json: bool) -> None:
    """Lines from standard input, to its end; the exit code is that of the first that was refused."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # what is no text is no name either
    worst = 0
    for line in sys.stdin:
        code = _answered(session, work, line, as_json, may_cancel=False)
        if code is None:
            break
        worst = worst or code
    if worst:
        raise typer.Exit(worst)


def _answered(session: Session, work: Work, line: str, as_json: bool, *, may_cancel: bool) -> int | None:
    """Answer a line, or say why not, and go on: an exit code, or None at the end."""
    if not line.strip():
        return 0
    try:
        with work.shown():
            told = session.tell(line)
        if told is None:
            return None
        if as_json:
            _print_line(told.document)
        else:
            told.show()
    except BaseException as error:
        found = failure(error)
        if found is None or (found[1] == INTERRUPTED and not may_cancel):
            raise
        forget_interrupts()
        _tell_error(line, error, found[0], as_json)
        return found[1]
    return 0


def _tell_error(line: str, error: BaseException, message: str, as_json: bool) -> None:
    if not as_json:
        typer.echo(visible(message), err=True)
        return
    what, where, hint = message, None, None
    if isinstance(error, R2NError):
        what, where, hint = error.what, error.where and str(error.where), error.hint
    _print_line({"line": line.strip(), "error": {"what": what, "where": where, "hint": hint}})


def _print_line(document: dict[str, Any]) -> None:
    """A JSON document on a line of its own."""
    typer.echo(json_text(document))
