"""The cost of phases, by clocks that the test sets."""

import pytest

from r2n.reporting import run_report
from r2n.reporting.run_report import PhaseCost, Profiler


def test_a_phase_lasts_from_its_first_call_to_the_next_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int, int]] = []
    now = {"perf_counter": 0.0, "process_time": 0.0, "peak_gigabytes": 0.0}
    for name in now:
        monkeypatch.setattr(run_report, name, lambda name=name: now[name])
    profiler = Profiler(lambda *given: calls.append(given))
    assert profiler.costs == ()
    for phase, seconds in (("read", 1.0), ("train", 2.0), ("train", 4.0), ("evaluate", 8.0), ("read", 16.0)):
        profiler(phase, 1, 2)
        now["perf_counter"] += seconds
        now["process_time"] += seconds / 2
        now["peak_gigabytes"] += 1
    profiler.end()
    profiler.end()
    assert profiler.costs == (
        PhaseCost("read", 17.0, 8.5, 5.0),
        PhaseCost("train", 6.0, 3.0, 3.0),
        PhaseCost("evaluate", 8.0, 4.0, 4.0),
    )
    assert calls == [(phase, 1, 2) for phase in ("read", "train", "train", "evaluate", "read")]
