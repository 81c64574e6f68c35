"""What phases take, by clocks that the test sets."""

import json

from r2n.reporting.phases import PhaseCost, PhaseMeter, from_records, to_records


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_phases_are_measured_from_their_first_call_to_the_next_phase() -> None:
    told: list[tuple[str, int, int]] = []
    clock, cpu, peak = Clock(), Clock(), Clock()
    meter = PhaseMeter(lambda *given: told.append(given), clock=clock, cpu_clock=cpu, peak=peak)
    assert meter.costs == ()
    for phase, seconds in (("read", 1.0), ("train", 2.0), ("train", 4.0), ("evaluate", 8.0), ("read", 16.0)):
        meter(phase, 1, 2)
        clock.now += seconds
        cpu.now += seconds / 2
        peak.now += 1
    meter.end()
    meter.end()
    assert meter.costs == (
        PhaseCost("read", 17.0, 8.5, 5.0),
        PhaseCost("train", 6.0, 3.0, 3.0),
        PhaseCost("evaluate", 8.0, 4.0, 4.0),
    )
    assert told == [(phase, 1, 2) for phase in ("read", "train", "train", "evaluate", "read")]


def test_by_default_the_process_is_measured() -> None:
    meter = PhaseMeter()
    meter("train", 0, 0)
    meter.end()
    (cost,) = meter.costs
    assert cost.seconds >= 0
    assert cost.cpu_seconds >= 0
    assert cost.peak_gigabytes > 0.01


def test_records_go_through_json() -> None:
    costs = (PhaseCost("read", 0.123, 2.0, 0.5), PhaseCost("train", 1.0, 1.0, 1.0))
    records = json.loads(json.dumps(to_records(costs)))
    assert records[0] == {"name": "read", "seconds": 0.123, "cpu_seconds": 2.0, "peak_gigabytes": 0.5}
    assert from_records(records) == costs
