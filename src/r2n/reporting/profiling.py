"""The time and memory that each phase of a command takes, measured from its progress calls."""

from dataclasses import dataclass, field
from time import perf_counter, process_time

from r2n.model.memory import peak_gigabytes
from r2n.progress import Progress, no_progress


@dataclass(frozen=True, slots=True)
class PhaseCost:
    """The cost of a phase: seconds of the clock and of all cores, and the process's peak memory since its start."""

    name: str
    seconds: float
    cpu_seconds: float
    peak_gigabytes: float


@dataclass
class Profiler:
    """An `r2n.progress.Progress` that passes its calls on and measures each phase; repeated phases are added up."""

    progress: Progress = no_progress
    found: dict[str, PhaseCost] = field(default_factory=dict)
    current: str | None = None
    began: tuple[float, float] = (0.0, 0.0)

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Record a call; a name other than that of the last call begins a new phase."""
        if phase != self.current:
            self.end()
            self.current, self.began = phase, (perf_counter(), process_time())
        self.progress(phase, done, total)

    def end(self) -> None:
        """End the current phase."""
        if self.current is not None:
            before = self.found.get(self.current, PhaseCost(self.current, 0.0, 0.0, 0.0))
            seconds = before.seconds + perf_counter() - self.began[0]
            cpu_seconds = before.cpu_seconds + process_time() - self.began[1]
            self.found[self.current] = PhaseCost(self.current, seconds, cpu_seconds, peak_gigabytes())
            self.current = None

    @property
    def costs(self) -> tuple[PhaseCost, ...]:
        """The costs of the ended phases in the order of their beginning, to the millisecond and the megabyte."""
        found = ((c.name, c.seconds, c.cpu_seconds, c.peak_gigabytes) for c in self.found.values())
        return tuple(PhaseCost(name, *(round(value, 3) for value in values)) for name, *values in found)
