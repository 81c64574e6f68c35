"""Runs -> pages: what a finished run leaves beside its weights: report.json, pictures and report.html.

A training that is over has succeeded: what cannot be written is told, and never undoes it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from r2n.errors import R2NError
from r2n.evaluation.plots import plot_precision_recall, plot_ranks, plot_reliability, plot_training
from r2n.evaluation.report import Report
from r2n.files import json_text, read_file, write_atomically
from r2n.model.model import Model
from r2n.reporting.curves import told_apart
from r2n.reporting.files import write_file
from r2n.reporting.gather import Training, gather
from r2n.reporting.phases import from_records, to_records
from r2n.reporting.records import RunReport
from r2n.reporting.run_page import run_page
from r2n.store.folder import RunFolder

PAGE = "report.html"


@dataclass(frozen=True)
class Written:
    """The document of `report.json`, and what could not be written, in words."""

    document: dict[str, Any]
    failures: list[str] = field(default_factory=list)


def write_results(folder: Path, reports: Sequence[Report], training: Training) -> Written:
    """Write `report.json` into a run's folder, which takes no time."""
    document = {
        "run": str(folder),
        "epochs": training.epochs,
        "reports": [report.to_dict() for report in reports],
        "phases": to_records(training.phases),
        "chosen": dict(training.chosen or {}),
    }
    written = Written(document)
    _try(written, "report.json", lambda: write_atomically(RunFolder(folder).report, _json(document)))
    return written


def write_page(folder: Path, trained: Model, reports: Sequence[Report], training: Training, written: Written) -> None:
    """Write `report.html` and the pictures, which may take long; what cannot be written is added to `written`."""
    report = _try(written, PAGE, lambda: gather(folder, trained, reports, training))
    if report is not None:
        _try(written, PAGE, lambda: write_file(folder / PAGE, run_page(report), "--out"))
        _try(written, "a picture", lambda: write_pictures(folder, report))


def write_run_page(folder: Path, report: RunReport, out: Path | None = None) -> Path:
    """Write the page of a run, and where it stands in the run's folder (not at `out`), the pictures beside it."""
    path = folder / PAGE if out is None else out
    write_file(path, run_page(report), "--out")
    if out is None:
        write_pictures(folder, report)
    return path


def write_pictures(folder: Path, report: RunReport) -> None:
    """Draw the training curves, and each split's reliability, precision and recall, or ranks, as PNG."""
    plot_training(told_apart(report.networks), folder / "training.png")
    for result in report.results:
        split = result.report.split
        title = f"{report.trained_on.problem}, {split}"
        if result.report.calibration is not None:
            plot_reliability(result.report.calibration, folder / f"reliability-{split}.png", title=title)
        if result.precision_recall:
            plot_precision_recall(result.precision_recall, folder / f"precision-recall-{split}.png", title=title)
        if result.ranks:
            plot_ranks(result.ranks, folder / f"ranks-{split}.png", title=title)


def _json(document: Mapping[str, Any]) -> bytes:
    return json_text(document, indent=1, ascii_alone=True).encode()


Made = TypeVar("Made")


def _try(written: Written, what: str, make: Callable[[], Made]) -> Made | None:
    """Write, or say what could not be written: the weights are there, whatever happens here."""
    try:
        return make()
    except Exception as error:
        why = error.what if isinstance(error, R2NError) else getattr(error, "strerror", None) or _named(error)
        written.failures.append(f"{what} could not be written: {why}; the run is whole, and r2n report writes it again")
        return None


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def training_of(folder: Path) -> Training:
    """What `report.json` keeps of a training besides its reports; nothing where there is none that can be read."""
    try:
        document = json.loads(read_file(RunFolder(folder).report))
        chosen = {str(key): str(reason) for key, reason in document.get("chosen", {}).items()}
        return Training(document["epochs"], from_records(document.get("phases", ())), chosen)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Training(_epochs(RunFolder(folder)))


def _epochs(folder: RunFolder) -> int | None:
    try:
        return len(read_file(folder.trace).splitlines()) or None
    except OSError:
        return None
