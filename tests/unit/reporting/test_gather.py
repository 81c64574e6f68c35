"""A run and its reports -> all that its page tells; what cannot be told is left out, and the page says why."""

from dataclasses import replace

import pytest

from r2n.errors import DataError
from r2n.explanation.records import Explanation
from r2n.model.model import Model
from r2n.reporting import gather as gather_module
from r2n.reporting.gather import Training, explainer, gather
from r2n.reporting.phases import PhaseCost
from r2n.reporting.records import RuleTable
from r2n.reporting.run_page import run_page
from tests.html_pages import faults
from tests.report_samples import explanation
from tests.unit.reporting.conftest import Kept

TRAINING = Training(30, (PhaseCost("train", 1.0, 1.0, 0.5),), {"training.epochs": "a reason"})


@pytest.mark.parametrize("kind", ["classified", "ranked"])
def test_all_that_there_is_is_told(kind: str, request: pytest.FixtureRequest) -> None:
    run: Kept = request.getfixturevalue(kind)
    found = gather(run.folder, run.trained, run.reports, TRAINING)
    assert [result.report.split for result in found.results] == ["valid", "test"]
    assert all(bool(result.precision_recall) == (kind == "classified") for result in found.results)
    assert all(bool(result.ranks) == (kind == "ranked") for result in found.results)
    assert found.notes == ()
    assert found.answers
    assert found.phases == TRAINING.phases
    assert [line.reason for line in found.options if line.origin == "chosen"] == ["a reason"]
    assert len(found.networks[0][0].epochs) == run.trained.options.training.epochs
    assert faults(run_page(found)) == []


def test_without_reports_there_are_no_answers(classified: Kept) -> None:
    found = gather(classified.folder, classified.trained, [], Training())
    assert (found.results, found.answers, found.figures) == ((), (), ())
    without = [replace(report, by_query=None) for report in classified.reports]
    assert gather(classified.folder, classified.trained, without, Training()).answers == ()


def test_the_last_queries_are_told_where_there_is_no_test(classified: Kept) -> None:
    valid = [report for report in classified.reports if report.split == "valid"]
    found = gather(classified.folder, classified.trained, valid, Training())
    told = {answer.atom for part in found.answers for answer in part.answers}
    assert told <= {f"liesIn({town}, {valley})" for town in ("n2", "s2") for valley in ("north", "south")}


def test_a_section_that_fails_is_left_out_and_told(classified: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> RuleTable:
        raise ZeroDivisionError("by zero")

    def refuses(*_: object) -> Explanation:
        raise DataError("it has no answer", hint="ask another")

    monkeypatch.setattr(gather_module, "rule_table", fails)
    monkeypatch.setattr(gather_module, "told_answers", refuses)
    found = gather(classified.folder, classified.trained, classified.reports, Training())
    assert found.rules is None
    assert found.answers == ()
    assert found.notes == (
        "the rules are not told: ZeroDivisionError: by zero",
        "the answers are not told: it has no answer",
    )


def test_explanations_come_from_the_predictor(classified: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, str | None]] = []

    def explain(_: Model, atom: str, *, against: str | None = None) -> Explanation:
        given.append((atom, against))
        if against is not None:
            raise DataError("too many", hint="fewer")
        return explanation()

    monkeypatch.setattr(Model, "explain", explain, raising=False)
    notes: list[str] = []
    ask = explainer(Model.from_run(classified.trained), notes)
    assert ask("p(a)", None) == explanation()
    assert ask("p(a)", "p(b)") is None
    assert given == [("p(a)", None), ("p(a)", "p(b)")]
    assert notes == ["p(a) is not explained: too many"]


def test_of_many_rules_few_are_told_and_few_answers_explained(
    classified: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass over the ground rules of a thousand rules takes seconds, and the page may not take minutes."""
    monkeypatch.setattr(gather_module, "MANY_RULES", 0)
    asked: list[int | None] = []
    told = gather_module.rule_report
    monkeypatch.setattr(gather_module, "rule_report", lambda *a, most: asked.append(most) or told(*a, most=most))
    found = gather(classified.folder, classified.trained, classified.reports, TRAINING)
    assert asked == [gather_module.FEW_OF_MANY]
    explained = [answer for part in found.answers for answer in part.answers if answer.explanation is not None]
    assert len(explained) == 2
    assert found.notes == ("with more than 0 rules, 2 answers are explained; r2n explain tells more",)
