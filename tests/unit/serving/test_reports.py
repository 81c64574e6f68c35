"""What the run is, what its rules do, and how good it is."""

import json

from r2n.serving.reports import describe_run, report_rules, report_run
from r2n.serving.session import Session
from tests.command_line import document


def test_the_run_is_described(session: Session) -> None:
    found = json.loads(describe_run(session, {}).body)
    assert (found["problem"], found["layers"], found["networks"], found["evidence_input"]) == ("towns", 1, 1, "add")
    assert found["domains"][1] == {"name": "valley", "constants": 2, "parts": []}
    assert found["predicates"][1] == {"name": "near", "domains": ["town", "town"], "closed": True}
    assert found["rules"][0]["name"] == "neighbours"
    assert found["limits"] == session.limits.to_dict()


def test_the_rules_are_those_of_the_command_line(session: Session) -> None:
    assert json.loads(report_rules(session, {}).body) == document("rules", session.folder)


def test_the_report_has_curves_and_metrics(session: Session) -> None:
    found = json.loads(report_run(session, {}).body)
    assert [part["report"]["split"] for part in found["results"]] == ["valid", "test"]
    reports = document("report", session.folder)["reports"]
    assert [part["report"]["metrics"] for part in found["results"]] == [part["metrics"] for part in reports]
    curve = found["networks"][0][0]
    assert (curve["name"], len(curve["epochs"])) == ("loss", len(curve["values"]))
    charts = found["charts"]
    assert [card["heading"] for card in charts["training"]] == ["Loss"]
    assert all(chart.startswith("<svg") for cards in charts.values() for card in cards for chart in card["charts"])
