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


def say(text: str) -> None:
    """A line on standard error; work goes on where nobody can read it any more."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:  # pythonw has none
            sys.stderr.write(f"{visible(text)}\n")
            sys.stderr.flush()


class PhaseProgress:
    """A `Progress` on standard error: a bar on a console, which is gone at the end, or else plain lines.

    There is one line at the beginning of a phase, one every few seconds, and one at the end of a long phase. The bar
    is shown after `SECONDS_WITHOUT_BAR`.
    """

    def __init__(
        self, title: str = "", console: "Console | None" = None, clock: Callable[[], float] = monotonic
    ) -> None:
        """`clock` gives seconds."""
        self.title, self.clock, self.bar = title, clock, None
        self.began = self.phase_began = clock()
        self.last_line = 0.0  # seconds after the beginning
        self.phase: Phase | None = None
        self.lock = RLock()  # `look` is called by a thread of its own
        if console is not None:
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            name, text = (TextColumn(part, markup=False) for part in ("{task.description}", "{task.fields[text]}"))
            # standard output is left alone: it may be a file
            self.bar = Bar(name, BarColumn(), text, console=console, transient=True, redirect_stdout=False)
            self.bar.add_task(title, total=None, visible=False, text="")
            self.bar.start()

    def __call__(self, phase: str, done: int, total: int) -> None:
        """`done` steps of a phase are done; another name than the last one begins a phase."""
        with self.lock:
            if self.phase is None or self.phase.name != phase:
                self.end()
                self.phase_began = self.clock()
                self.phase = Phase(phase, done, total, done_before=done)  # resumed: not from 0
                if self.bar is None:
                    self.last_line = self.phase_began - self.began
                    say(f"{phase} ...")
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
            if self.phase is None:
                return
            now = self.clock()
            self.phase, running = replace(self.phase, seconds=now - self.phase_began), now - self.began
            if self.bar is not None:
                rate = f"{self.phase.rate:,.3g}/s, " if self.phase.rate > 0 and self.phase.total else ""
                self.bar.update(
                    self.bar.task_ids[0],
                    description=f"{self.title}: {self.phase.name}",
                    completed=self.phase.done if self.phase.total else 0,
                    total=self.phase.total or None,
                    visible=running > SECONDS_WITHOUT_BAR,
                    text=f"{rate}{self.phase}",
                )
            elif running - self.last_line >= SECONDS_BETWEEN_LINES:
                self.last_line = running
                say(f"{self.phase.name} {self.phase}")

    def end(self) -> None:
        """The present phase is over."""
        with self.lock:
            if self.phase is not None:
                seconds = self.clock() - self.phase_began
                if self.bar is None and seconds > SECONDS_WORTH_A_LAST_LINE:
                    say(f"{self.phase.name}: done after {shown_duration(seconds)}")
                self.phase = None


@contextmanager
def progress(title: str) -> Iterator[PhaseProgress]:
    """Progress on standard error: a bar from the third second on, or plain lines if that is no terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    shown = PhaseProgress(title, console if console.is_interactive else None)
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
        if shown.bar is not None:
            shown.bar.stop()
