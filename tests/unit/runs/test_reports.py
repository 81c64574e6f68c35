"""What a finished run leaves."""

import json
from pathlib import Path

import numpy as np
import pytest

from r2n.evaluation.evaluate import Report
from r2n.evaluation.metrics import calibration
from r2n.runs.reports import training_curves, write_reports

RECORDS = [
    {"number": 1, "loss": 3.0, "supervised": 2.0, "semantic": 1.0, "regularisation": 0.0, "valid": None},
    {"number": 2, "loss": 2.0, "supervised": 1.5, "semantic": 0.5, "regularisation": 0.0, "valid": 0.75},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return tmp_path


def test_the_document_holds_all_reports_and_is_returned_as_written(folder: Path) -> None:
    seen = calibration(np.array([0.2, 0.9]), np.array([False, True]))
    reports = [
        Report("valid", {"ap": float("nan")}, {}, {"task": "classification"}, calibration=seen),
        Report("test", {"mrr": 0.5}, {}, {"task": "ranking"}),
    ]
    document = write_reports(folder, "[/] towns", reports, 2)
    assert document == json.loads((folder / "report.json").read_text())
    assert (document["run"], document["epochs"]) == (str(folder), 2)
    assert [part["split"] for part in document["reports"]] == ["valid", "test"]
    assert document["reports"][0]["metrics"] == {"ap": None}
    names = {path.name for path in folder.iterdir()}
    assert names == {"trace.jsonl", "report.json", "training.png", "reliability-valid.png"}


def test_a_run_without_queries_has_no_reports(folder: Path) -> None:
    assert write_reports(folder, "towns", [], 2)["reports"] == []


def test_curves_are_those_of_the_trace(folder: Path) -> None:
    curves = {
        curve.name: (curve.epochs, curve.values, curve.panel) for curve in training_curves(folder / "trace.jsonl")
    }
    assert curves == {
        "loss": ((1, 2), (3.0, 2.0), "loss"),
        "supervised": ((1, 2), (2.0, 1.5), "loss"),
        "semantic": ((1, 2), (1.0, 0.5), "loss"),
        "valid": ((2,), (0.75,), "validation"),
    }


def test_regularisation_is_drawn_where_there_is_some(folder: Path) -> None:
    (folder / "trace.jsonl").write_text(json.dumps(RECORDS[0] | {"regularisation": 0.25}) + "\n")
    curves = training_curves(folder / "trace.jsonl")
    assert [curve.name for curve in curves] == ["loss", "supervised", "semantic", "regularisation"]
    (folder / "trace.jsonl").write_text("")
    assert all(curve.epochs == () for curve in training_curves(folder / "trace.jsonl"))
