"""A report as a table."""

from typing import Any

import pytest

from r2n.cli.screen import notes_beside, print_report


def report_of(metrics: dict[str, Any], beside: dict[str, Any] | None = None, **protocol: str) -> dict[str, Any]:
    return {"split": "test", "metrics": metrics, "protocol": protocol, "intervals": {}, "beside": beside or {}}


def test_metrics_in_their_order_with_the_papers_beside(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(report_of({"hits@1": 0.5, "ap": None, "other": 1.0}), "towns")
    out = capsys.readouterr().out
    assert "towns, test" in out
    assert out.index("ap") < out.index("hits@1")
    assert "other" not in out
    assert "the paper" not in out
    print_report(report_of({"ap": 0.9}), "countries-s3")
    assert "the paper's R2NS" in capsys.readouterr().out


def test_what_parts_reach_alone_stands_beside(capsys: pytest.CaptureFixture[str]) -> None:
    beside = {"rules alone": {"mrr": 0.54, "hits@1": None}, "input layer alone": {"mrr": 0.2, "hits@1": 0.1}}
    print_report(report_of({"mrr": 0.352, "hits@1": 0.3}, beside, constraints="irreflexive 4"), "towns")
    out = " ".join(capsys.readouterr().out.split())
    assert "towns, test, with constraints" in out
    assert "constraints: irreflexive 4" in out
    assert "rules alone ┃ input layer alone" in out
    assert "mrr │ 0.3520 │ 0.5400 │ 0.2000" in out
    assert "hits@1 │ 0.3000 │ │ 0.1000" in out


def test_a_part_that_is_better_alone_by_much_is_worth_a_note() -> None:
    def notes(own: float | None, rules: float | None, layer: float = 0.0) -> list[str]:
        return notes_beside(
            report_of({"mrr": own}, {"rules alone": {"mrr": rules}, "input layer alone": {"mrr": layer}})
        )

    assert notes(0.352, 0.54) == [
        "test: the rules alone, counted, reach mrr 0.540, and all together 0.352: the network does not earn its cost"
    ]
    assert notes(0.352, 0.1, 0.4) == [
        "test: the input layer alone reaches mrr 0.400, and all together 0.352: the rules do not earn their cost"
    ]
    assert notes(0.5, 0.515) == notes(None, 0.5) == notes(0.5, None) == []
    assert len(notes_beside(report_of({"ap": 0.5}, {"rules alone": {"ap": 0.6}}))) == 1
