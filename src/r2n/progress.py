"""How far a piece of work is: the one form in which all work reports it, and its display on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from threading import Event, RLock, Thread
from time import monotonic
from typing import TYPE_CHECKING

from r2n.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

SECONDS_WITHOUT_BAR = 2.0
SECONDS_BETWEEN_LINES = 5.0
SECONDS_WORTH_A_LAST_LINE = 2.0
SECONDS_BETWEEN_LOOKS = 0.5

Progress = Callable[[str, int, int], None]
"""Called with (phase, steps done, steps in all); 0 in all if that is not known. A phase begins with its first call."""


def no_progress(phase: str, done: int, total: int) -> None:
    """Show nothing."""


def shown_duration(seconds: float) -> str:
    """`12 s`, `3 min 5 s`, `2 h 5 min`."""
    number = round(seconds)
    if number < 60:
        return f"{number} s"
    return f"{number // 60} min {number % 60} s" if number < 3600 else f"{number // 3600} h {number % 3600 // 60} min"


@dataclass(frozen=True, slots=True)
class Phase:
    """How far a phase of a command is."""

    name: str
    done: int = 0
    total: int = 0  # 0: not known
    done_before: int = 0  # steps that were done before it began
    details: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0  # of the phase so far
    running: float = 0.0  # of the command so far

    @property
    def rate(self) -> float:
        """Steps a second."""
        return (self.done - self.done_before) / self.seconds if self.seconds > 0 else 0.0

    def __str__(self) -> str:
        """`120/300, loss 0.4134, 12 s, about 18 s left`, as far as it is known."""
        parts = [f"{self.done:,}/{self.total:,}"] if self.total else [f"{self.done:,}"] * (self.done > 0)
        parts += [f"{name} {value}" for name, value in self.details]
        parts += [shown_duration(self.seconds)]
        if self.total > self.done and self.rate > 0:
            parts += [f"about {shown_duration((self.total - self.done) / self.rate)} left"]
        return ", ".join(parts)


class LineView:
    """Phases as plain lines: one at the beginning, one every few seconds, one at the end of a long phase."""

    last = 0.0  # when a line was written

    def begin(self, phase: Phase) -> None:
        """`ground ...`."""
        self.last = phase.running
        say(f"{phase.name} ...")

    def show(self, phase: Phase) -> None:
        """`train 120/300, loss 0.4134, 12 s, about 18 s left`, where the last line is some seconds old."""
        if phase.running - self.last >= SECONDS_BETWEEN_LINES:
            self.last = phase.running
            say(f"{phase.name} {phase}")

    def end(self, phase: Phase) -> None:
        """`ground: done after 12 s`."""
        if phase.seconds > SECONDS_WORTH_A_LAST_LINE:
            say(f"{phase.name}: done after {shown_duration(phase.seconds)}")

    def close(self) -> None:
        """Lines stay."""


def say(text: str) -> None:
    """A line on standard error; work goes on where nobody can read it any more."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:  # pythonw has none
            sys.stderr.write(f"{visible(text)}\n")
            sys.stderr.flush()


class BarView:
    """Phases as one bar of a terminal, which is gone at the end."""

    def __init__(self, console: "Console", title: str) -> None:
        """Nothing is shown before `SECONDS_WITHOUT_BAR`."""
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        name, text = (TextColumn(part, markup=False) for part in ("{task.description}", "{task.fields[text]}"))
        # standard output is left alone: it may be a file
        self.bar = Bar(name, BarColumn(), text, console=console, transient=True, redirect_stdout=False)
        self.title, self.task = title, self.bar.add_task(title, total=None, visible=False, text="")
        self.bar.start()

    def show(self, phase: Phase) -> None:
        """The bar with `train 120/300, 10.0/s, 12 s, about 18 s left`."""
        rate = f"{phase.rate:,.3g}/s, " if phase.rate > 0 and phase.total else ""
        self.bar.update(
            self.task,
            description=f"{self.title}: {phase.name}",
            completed=phase.done if phase.total else 0,
            total=phase.total or None,
            visible=phase.running > SECONDS_WITHOUT_BAR,
            text=f"{rate}{phase}",
        )

    begin = show

    def end(self, phase: Phase) -> None:
        """The next phase, or the end, follows at once."""

    def close(self) -> None:
        """Take the bar away."""
        self.bar.stop()


class PhaseProgress:
    """An `r2n.progress.Progress` that shows each phase it is called with; `detail` adds what a phase has to say."""

    def __init__(self, view: "LineView | BarView", clock: Callable[[], float] = monotonic) -> None:
        """`clock` gives seconds."""
        self.view, self.clock = view, clock
        self.began = self.phase_began = clock()
        self.phase: Phase | None = None
        self.lock = RLock()  # `look` is called by a thread of its own

    def __call__(self, phase: str, done: int, total: int) -> None:
        """`done` steps of a phase are done; another name than the last one begins a phase."""
        with self.lock:
            if self.phase is None or self.phase.name != phase:
                self.end()
                self.phase_began = self.clock()
                running = self.phase_began - self.began
                self.phase = Phase(phase, done, total, done_before=done, running=running)  # resumed: not from 0
                self.view.begin(self.phase)
            self.phase = replace(self.phase, done=done, total=total)
            self.look()

    def detail(self, **values: str) -> None:
        """Details of the present phase: the last value of each name."""
        with self.lock:
            if self.phase is not None:
                self.phase = replace(self.phase, details=tuple((dict(self.phase.details) | values).items()))

    def look(self) -> None:
        """Show the present phase as it is now."""
        with self.lock:
            if self.phase is not None:
                now = self.clock()
                self.phase = replace(self.phase, seconds=now - self.phase_began, running=now - self.began)
                self.view.show(self.phase)

    def end(self) -> None:
        """The present phase is over."""
        with self.lock:
            if self.phase is not None:
                self.view.end(replace(self.phase, seconds=self.clock() - self.phase_began))
                self.phase = None


@contextmanager
def progress(title: str) -> Iterator[PhaseProgress]:
    """Progress on standard error: a bar from the third second on, or plain lines if that is no terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    shown = PhaseProgress(BarView(console, title) if console.is_interactive else LineView())
    is_over = Event()

    def look() -> None:  # phases that count nothing are shown too
        while not is_over.wait(SECONDS_BETWEEN_LOOKS):
            shown.look()

    watcher = Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield shown
        shown.end()
    except Exception as error:
        if shown.phase is not None:
            error.add_note(f"in the phase '{shown.phase.name}' of {title}")
        raise
    finally:
        is_over.set()
        watcher.join()
        shown.view.close()
