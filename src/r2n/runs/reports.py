"""Predictions -> a run: what a finished run leaves beside its trace: its reports in one document, and pictures."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from r2n.evaluation.evaluate import Report
from r2n.evaluation.plots import Curve, plot_reliability, plot_training
from r2n.runs.checkpoint import write_atomically
from r2n.runs.folder import RunFolder

LOSSES = ("loss", "supervised", "semantic")
LOSSES_WHERE_USED = ("regularisation",)


def write_reports(folder: Path, name: str, reports: Sequence[Report], epochs: int) -> dict[str, Any]:
    """Write `report.json`, the training curves and each split's calibration into a run's folder.

    `name` is the problem's, `epochs` are those that were trained. Returns the document that was written.
    """
    document = {"run": str(folder), "epochs": epochs, "reports": [report.to_dict() for report in reports]}
    write_atomically(RunFolder(folder).report, json.dumps(document, indent=1).encode())
    plot_training(training_curves(RunFolder(folder).trace), folder / "training.png")
    for report in reports:
        if report.calibration is not None:
            picture = folder / f"reliability-{report.split}.png"
            plot_reliability(report.calibration, picture, title=f"{name}, {report.split}")
    return document


def training_curves(trace: Path) -> list[Curve]:
    """The losses over the epochs of a trace, and the validation metric where it was measured."""
    records = [json.loads(line) for line in trace.read_text("utf-8").splitlines()]
    names = [*LOSSES, *(name for name in LOSSES_WHERE_USED if any(record[name] for record in records))]
    epochs = tuple(record["number"] for record in records)
    curves = [Curve(name, epochs, tuple(record[name] for record in records)) for name in names]
    validated = [(record["number"], record["valid"]) for record in records if record["valid"] is not None]
    if validated:
        numbers, values = zip(*validated, strict=True)
        curves.append(Curve("valid", numbers, values, panel="validation"))
    return curves
