"""The files of a finished run: report.json and report.html.

A finished training has succeeded: a report that cannot be written is reported as a failure and never undoes it.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from r2n.errors import ConfigError, R2NError, refusing
from r2n.evaluation.report import Report
from r2n.files import json_text, write_atomically
from r2n.model.model import Model
from r2n.reporting.pages import run_page
from r2n.reporting.run_report import Training, build_report
from r2n.store.folder import RunFolder

PAGE = "report.html"


def check_writable(path: Path, option: str = "file") -> None:
    """Reject a file that cannot be written, before any work is done; `option` is where the user named it."""
    with refusing(f"{str(path)!r} cannot be written", f"give another {option}"):
        is_folder, has_folder = path.is_dir(), path.absolute().parent.is_dir()
    if path.suffix.lower() == ".png":
        raise ConfigError(f"'{path}' cannot be written: PNG is not supported", hint="name a .svg or .html file")
    if is_folder:
        raise ConfigError(f"'{path}' cannot be written: it is a folder", hint="name a file in it")
    if not has_folder:
        raise ConfigError(f"'{path}' cannot be written: there is no folder {path.parent}", hint="make it first")


def write_file(path: Path, content: bytes | str, option: str = "file") -> None:
    """Write a file completely or not at all; text as UTF-8, with `?` for what that cannot encode."""
    check_writable(path, option)
    with refusing(f"{str(path)!r} cannot be written", f"give another {option}"):
        write_atomically(path, content.encode("utf-8", "replace") if isinstance(content, str) else content)


def write_results(folder: Path, reports: Sequence[Report], training: Training) -> tuple[dict[str, Any], list[str]]:
    """Write `report.json` into a run's folder, which takes no time; its document, and why it could not be written."""
    document = {
        "run": str(folder),
        "epochs": training.epochs,
        "reports": [report.to_dict() for report in reports],
        "phases": [asdict(phase) for phase in training.phases],
        "chosen": dict(training.chosen or {}),
    }
    text = json_text(document, indent=1, ascii_alone=True)
    return document, _failures("report.json", lambda: write_atomically(RunFolder(folder).report, text.encode()))


def write_page(folder: Path, trained: Model, reports: Sequence[Report], training: Training) -> list[str]:
    """Write `report.html`, which may take long; a message if it could not be written."""
    return _failures(
        PAGE, lambda: write_file(folder / PAGE, run_page(build_report(folder, trained, reports, training)), "--out")
    )


def _failures(what: str, write: Callable[[], None]) -> list[str]:
    """A message if a file cannot be written, whatever the error."""
    try:
        write()
    except Exception as error:
        other = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        why = error.what if isinstance(error, R2NError) else other
        return [f"{what} could not be written: {why}; the run is complete, and r2n report writes it again"]
    return []
