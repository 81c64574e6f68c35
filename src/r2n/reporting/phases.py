"""Runs -> pages: what each phase of a command took of time and memory, by listening to its progress."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from time import perf_counter, process_time
from typing import Any

from r2n.model.memory import peak_gigabytes
from r2n.progress import Progress, no_progress


@dataclass(frozen=True, slots=True)
class PhaseCost:
    """What a phase took: seconds of the clock, seconds of all cores, and the most memory held until its end.

    The memory is that of the process since it began: where a phase shows more than the one before, it took more.
    """

    name: str
    seconds: float
    cpu_seconds: float
    peak_gigabytes: float


class PhaseMeter:
    """An `r2n.progress.Progress` that hands on what it is told, and measures the phases as they come and go.

    A phase that comes several times counts once, with its times added.
    """

    def __init__(
        self,
        progress: Progress = no_progress,
        *,
        clock: Callable[[], float] = perf_counter,
        cpu_clock: Callable[[], float] = process_time,
        peak: Callable[[], float] = peak_gigabytes,
    ) -> None:
        """The clocks give seconds, `peak` gigabytes."""
        self.progress, self.clock, self.cpu_clock, self.peak = progress, clock, cpu_clock, peak
        self.found: dict[str, PhaseCost] = {}
        self.present: str | None = None
        self.began = (0.0, 0.0)

    def __call__(self, phase: str, done: int, total: int) -> None:
        """So many steps of a phase are done; a phase of another name than the last one begins."""
        if phase != self.present:
            self.end()
            self.present, self.began = phase, (self.clock(), self.cpu_clock())
        self.progress(phase, done, total)

    def end(self) -> None:
        """The present phase is over."""
        if self.present is None:
            return
        before = self.found.get(self.present, PhaseCost(self.present, 0.0, 0.0, 0.0))
        seconds, cpu_seconds = self.clock() - self.began[0], self.cpu_clock() - self.began[1]
        self.found[self.present] = PhaseCost(
            self.present, before.seconds + seconds, before.cpu_seconds + cpu_seconds, self.peak()
        )
        self.present = None

    @property
    def costs(self) -> tuple[PhaseCost, ...]:
        """Of the phases that are over, in the order in which they began, to the millisecond and the megabyte."""
        return tuple(
            PhaseCost(cost.name, round(cost.seconds, 3), round(cost.cpu_seconds, 3), round(cost.peak_gigabytes, 3))
            for cost in self.found.values()
        )


def to_records(costs: Iterable[PhaseCost]) -> list[dict[str, Any]]:
    """As JSON has them."""
    return [asdict(cost) for cost in costs]


def from_records(records: Iterable[Mapping[str, Any]]) -> tuple[PhaseCost, ...]:
    """What `to_records` wrote."""
    return tuple(PhaseCost(**record) for record in records)
