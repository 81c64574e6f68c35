"""A run, served: what was asked and how long it took, in the text format of Prometheus."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(eq=False)
class Metrics:
    """Counted since the start; labels are routes and statuses, never anything that a client sent."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    times: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0] * (len(BOUNDS) + 1)))
    seconds: Counter[str] = field(default_factory=Counter)
    passes: int = 0
    answered_in_passes: int = 0
    workers_started: int = 0
    workers_killed: int = 0
    waiting: int = 0

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """A request that was answered."""
        self.requests[route, status] += 1
        self.seconds[route] += seconds  # pyright: ignore[reportArgumentType]
        place = next((i for i, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))
        self.times[route][place] += 1

    def count_pass(self, jobs: int) -> None:
        """A pass that answers so many requests."""
        self.passes += 1
        self.answered_in_passes += jobs

    def text(self) -> str:
        """All of it."""
        lines = ["# HELP r2n_requests_total Requests answered.", "# TYPE r2n_requests_total counter"]
        for (route, status), number in sorted(self.requests.items()):
            lines.append(f'r2n_requests_total{{route="{route}",status="{status}"}} {number}')
        lines += self._histogram()
        counters = {
            "r2n_passes_total": ("Jobs that workers were given.", self.passes),
            "r2n_passed_requests_total": (
                "Requests in these jobs, often several.",
                self.answered_in_passes,
            ),
            "r2n_workers_started_total": ("Workers started.", self.workers_started),
            "r2n_workers_killed_total": ("Workers ended over a request.", self.workers_killed),
        }
        for name, (help_text, value) in counters.items():
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} counter", f"{name} {value}"]
        lines += ["# HELP r2n_waiting Requests that wait for a worker.", "# TYPE r2n_waiting gauge"]
        return "\n".join([*lines, f"r2n_waiting {self.waiting}", ""])

    def _histogram(self) -> list[str]:
        name = "r2n_request_seconds"
        lines = [f"# HELP {name} Seconds to answer a request.", f"# TYPE {name} histogram"]
        for route, counts in sorted(self.times.items()):
            so_far = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
                so_far += count
                lines.append(f'{name}_bucket{{route="{route}",le="{bound}"}} {so_far}')
            lines.append(f'{name}_sum{{route="{route}"}} {self.seconds[route]:.6f}')
            lines.append(f'{name}_count{{route="{route}"}} {so_far}')
        return lines
