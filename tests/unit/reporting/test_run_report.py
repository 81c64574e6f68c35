"""The report of a run: complete for both tasks; a part that fails is left out with a note; the cost of phases."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from r2n.errors import DataError
from r2n.evaluation.report import Report
from r2n.explanation.rules import RuleReport
from r2n.options import Options
from r2n.reporting import run_report
from r2n.reporting.pages import run_page
from r2n.reporting.run_report import (
    AnswerGroup,
    PhaseCost,
    Profiler,
    Training,
    build_report,
    figures,
    option_text,
    option_values,
    predicate_rows,
    shown_curves,
    training_curves,
)
from tests.html_pages import faults
from tests.unit.reporting.conftest import Kept

TRAINING = Training(30, (PhaseCost("train", 1.0, 1.0, 0.5),), {"training.epochs": "a reason"})
RECORDS = [
    {"number": 1, "loss": 3.0, "supervised": 2.0, "semantic": 1.0, "regularisation": 0.0, "valid": None},
    {"number": 2, "loss": 2.0, "supervised": 1.5, "semantic": 0.5, "regularisation": 0.0, "valid": 0.75},
]


@pytest.mark.parametrize("kind", ["classified", "ranked"])
def test_a_report_is_complete(kind: str, request: pytest.FixtureRequest) -> None:
    run: Kept = request.getfixturevalue(kind)
    found = build_report(run.folder, run.trained, run.reports, TRAINING)
    assert [result.report.split for result in found.results] == ["valid", "test"]
    assert all(bool(result.precision_recall) == (kind == "classified") for result in found.results)
    assert all(bool(result.ranks) == (kind == "ranked") for result in found.results)
    assert (found.notes, found.phases) == ((), TRAINING.phases)
    assert found.answers
    assert found.rules is not None
    assert [line["reason"] for line in found.options if line["origin"] == "chosen"] == ["a reason"]
    assert len(found.curves[0].x) == run.trained.options.training.epochs
    assert faults(run_page(found)) == []
    fast = build_report(run.folder, run.trained, run.reports, TRAINING, seconds=0.0)
    assert fast.figures == found.figures
    assert (fast.rules, fast.answers) == (None, ())


def test_answers_are_of_the_test_queries_or_of_the_last_split(classified: Kept) -> None:
    folder, trained, reports = classified.folder, classified.trained, classified.reports
    none = build_report(folder, trained, [], Training())
    assert (none.results, none.answers, none.figures) == ((), (), ())
    without = [replace(report, by_query=None) for report in reports]
    assert build_report(folder, trained, without, Training()).answers == ()
    found = build_report(folder, trained, [report for report in reports if report.split == "valid"], Training())
    atoms = {answer.atom for part in found.answers for answer in part.answers}
    assert atoms <= {f"liesIn({town}, {valley})" for town in ("n2", "s2") for valley in ("north", "south")}


def test_a_part_that_fails_is_left_out_and_noted(classified: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> RuleReport:
        raise ZeroDivisionError("by zero")

    def refuses(*_: object) -> tuple[AnswerGroup, ...]:
        raise DataError("it has no answer", hint="ask another")

    monkeypatch.setattr(run_report, "rule_report", fails)
    monkeypatch.setattr(run_report, "example_answers", refuses)
    found = build_report(classified.folder, classified.trained, classified.reports, Training())
    assert (found.rules, found.answers) == (None, ())
    assert found.notes == (
        "the answers are not shown: it has no answer",
        "the rules are not shown: ZeroDivisionError: by zero",
    )


def test_what_would_take_longer_than_the_report_may_is_left_to_the_command(classified: Kept) -> None:
    found = build_report(classified.folder, classified.trained, classified.reports, TRAINING, 1e-9)
    answers = [answer for part in found.answers for answer in part.answers]
    assert answers
    assert all(answer.explanation is None for answer in answers)
    assert found.rules is not None
    assert found.rules.rules == ()
    notes = (*found.notes, *found.rules.notes)
    assert sum("r2n report RUN has no limit" in note for note in notes) == 2


# training data, options, figures


def test_many_rules_and_predicates_are_cut(ranked: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_report, "MOST_LISTED", 5)
    counts = [row["true"] + row["false"] + row["queries"] for row in predicate_rows(ranked.trained)]
    assert len(counts) == 5
    assert counts == sorted(counts, reverse=True)
    monkeypatch.setattr(run_report, "MOST_LISTED", 0)
    found = build_report(ranked.folder, ranked.trained, [], Training(), seconds=0.0)
    assert (found.theory, found.more_rules) == ((), 1)


def test_options_say_where_they_come_from_and_figures_are_main_metrics_and_cost() -> None:
    options = Options().changed(["model.dim=8", "training.corrupted_positions=[-1]"])
    found = {line["key"]: line for line in option_values(options, {"training.corrupted_positions": "a reason"})}
    assert tuple(found["model.dim"].values()) == ("model.dim", "8", "32", "set", "")
    assert found["model.layers"]["origin"] == "default"
    chosen = found["training.corrupted_positions"]
    assert tuple(chosen.values())[1:] == ("[-1]", "none", "chosen", "a reason")
    assert len(found) == sum(len(section) for section in Options().model_dump().values())
    assert [option_text(value) for value in (None, True, "full", 0.1)] == ["none", "true", "full", "0.1"]
    report = Report("test", {"ap": 0.98765}, {}, {"task": "classification"})
    nothing = replace(report, split="valid", metrics={"ap": float("nan")})
    phases = (PhaseCost("read", 1.0, 2.0, 0.5), PhaseCost("train", 1.0, 1000.0, 1.5))
    assert figures([nothing, report], phases) == (
        ("valid ap", "none"),
        ("test ap", "0.988"),
        ("CPU-seconds", "1,002.0"),
        ("peak memory", "1.50 GB"),
    )


# curves


def test_curves_are_those_of_the_trace(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    assert all(curve.x == () for curve in training_curves(trace))
    trace.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    curves = training_curves(trace)
    assert {curve.name: (curve.x, curve.y, curve.panel) for curve in curves} == {
        "loss": ((1, 2), (3.0, 2.0), "loss"),
        "supervised": ((1, 2), (2.0, 1.5), "loss"),
        "semantic": ((1, 2), (1.0, 0.5), "loss"),
        "valid": ((2,), (0.75,), "validation"),
    }
    assert shown_curves([curves]) == tuple(curves)
    assert [curve.name for curve in shown_curves([curves] * 2)] == ["loss 1", "valid 1", "loss 2", "valid 2"]
    trace.write_text(json.dumps(RECORDS[0] | {"regularisation": 0.25, "rules": 0.5}) + "\n")
    expected = ["loss", "supervised", "semantic", "regularisation", "rules"]
    assert [curve.name for curve in training_curves(trace)] == expected


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
