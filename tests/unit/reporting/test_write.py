"""The files of a finished run: written completely or not at all; failures are reported, and the run stays."""

import json
import os
import shutil
from pathlib import Path

import pytest

from r2n.errors import ConfigError
from r2n.reporting import pages
from r2n.reporting.pages import check_writable, write_file, write_page, write_results
from r2n.reporting.run_report import PhaseCost, Training, read_training
from tests.html_pages import faults
from tests.unit.reporting.conftest import Kept

TRAINING = Training(30, (PhaseCost("train", 1.0, 1.5, 0.5),), {"training.epochs": "a reason"})


@pytest.fixture
def folder(classified: Kept, tmp_path: Path) -> Path:
    return Path(shutil.copytree(classified.folder, tmp_path / "[red] run"))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith("checkpoint")}


def test_the_document_holds_all_reports_and_is_returned_as_written(classified: Kept, folder: Path) -> None:
    document, failures = write_results(folder, classified.reports, TRAINING)
    assert "report.html" not in names(folder)
    assert failures == write_page(folder, classified.trained, classified.reports, TRAINING) == []
    assert document == json.loads((folder / "report.json").read_text())
    assert (document["run"], document["epochs"]) == (str(folder), 30)
    assert [part["split"] for part in document["reports"]] == ["valid", "test"]
    assert document["phases"] == [{"name": "train", "seconds": 1.0, "cpu_seconds": 1.5, "peak_gigabytes": 0.5}]
    assert document["chosen"] == {"training.epochs": "a reason"}
    kept = {"config.json", "problem.safetensors", "trace.jsonl", "calibration.json"}
    assert names(folder) == kept | {"report.json", "report.html"}
    assert faults((folder / "report.html").read_text("utf-8")) == []
    assert read_training(folder) == TRAINING


@pytest.mark.parametrize(
    ("name", "error", "what"),
    [
        ("run_page", KeyError("x"), "report.html could not be written: KeyError: 'x'"),
        ("build_report", MemoryError("much"), "report.html could not be written: MemoryError: much"),
        ("write_file", ConfigError("it is full", hint="free it"), "report.html could not be written: it is full"),
        ("write_atomically", OSError(30, "Read-only file system"), "report.json could not be written: Read-only"),
    ],
)
def test_a_failure_is_reported_and_nothing_else_is_lost(
    name: str, error: Exception, what: str, classified: Kept, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(pages, name, fails)
    document, failures = write_results(folder, classified.reports, TRAINING)
    if name != "write_atomically":
        assert failures == []
        failures = write_page(folder, classified.trained, [], TRAINING)
    (failure,) = failures
    assert what in failure
    assert "the run is complete, and r2n report writes it again" in failure
    assert len(document["reports"]) == 2
    assert "report.html" not in names(folder)
    assert not [path for path in folder.iterdir() if path.suffix in (".tmp", ".part")]


@pytest.mark.parametrize("content", [None, "no json", "[]", '{"epochs": 3, "phases": [{"name": 1}]}', '{"phases": []}'])
def test_without_a_readable_report_the_trace_has_the_epochs(content: str | None, folder: Path) -> None:
    if content is not None:
        (folder / "report.json").write_text(content)
    assert read_training(folder) == Training(30)
    (folder / "trace.jsonl").unlink()
    assert read_training(folder) == Training()


def test_a_file_that_cannot_be_written_is_rejected_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path, why in (
        (tmp_path, "it is a folder"),
        (tmp_path / "nowhere" / "x.html", "there is no folder .*nowhere"),
        (tmp_path / "file" / "x.html", "there is no folder"),
        (tmp_path / ("x" * 300) / "y.html", "File name too long"),
        (tmp_path / "why.PNG", "PNG is not supported"),
    ):
        with pytest.raises(ConfigError, match=why):
            check_writable(path, "--html")
        with pytest.raises(ConfigError):
            write_file(path, "text", "--html")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_file(tmp_path / "\x00", "text", "--html")
    assert names(tmp_path) == {"file"}
    check_writable(tmp_path / "x.html")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    write_file(path, b"older")
    write_file(path, "old \ud800", "--out")
    assert path.read_text("utf-8") == "old ?"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left on device") as caught:
        write_file(path, "new", "--out")
    assert "give another --out" in str(caught.value)
    assert path.read_text("utf-8") == "old ?"
    assert names(tmp_path) == {"report.html"}
