"""The traces of a training -> its curves."""

import json
from pathlib import Path

import pytest

from r2n.reporting.curves import curves_of_networks, told_apart, training_curves
from r2n.store.folder import RunFolder

RECORDS = [
    {"number": 1, "loss": 3.0, "supervised": 2.0, "semantic": 1.0, "regularisation": 0.0, "valid": None},
    {"number": 2, "loss": 2.0, "supervised": 1.5, "semantic": 0.5, "regularisation": 0.0, "valid": 0.75},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return tmp_path


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


@pytest.mark.parametrize("name", ["regularisation", "rules"])
def test_a_loss_that_few_use_is_drawn_where_there_is_some(name: str, folder: Path) -> None:
    (folder / "trace.jsonl").write_text(json.dumps(RECORDS[0] | {name: 0.25}) + "\n")
    curves = training_curves(folder / "trace.jsonl")
    assert [curve.name for curve in curves] == ["loss", "supervised", "semantic", name]


def test_no_trace_and_an_empty_one_have_curves_without_epochs(folder: Path) -> None:
    (folder / "trace.jsonl").write_text("")
    assert all(curve.epochs == () for curve in training_curves(folder / "trace.jsonl"))
    assert all(curve.epochs == () for curve in training_curves(folder / "nothing.jsonl"))


def test_the_networks_of_an_ensemble_are_told_apart(folder: Path) -> None:
    alone = curves_of_networks(RunFolder(folder))
    assert len(alone) == 1
    assert told_apart(alone) == list(alone[0])
    assert [curve.name for curve in told_apart(alone * 2)] == ["loss 1", "valid 1", "loss 2", "valid 2"]
