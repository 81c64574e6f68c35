"""What a finished run leaves; what cannot be written is told, and the run stays."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from r2n.evaluation.report import Report
from r2n.model.model import Model
from r2n.reporting import write as write_module
from r2n.reporting.gather import Training, gather
from r2n.reporting.phases import PhaseCost
from r2n.reporting.write import Written, training_of, write_page, write_pictures, write_results, write_run_page
from tests.html_pages import Page, faults
from tests.unit.reporting.conftest import Kept

TRAINING = Training(30, (PhaseCost("train", 1.0, 1.5, 0.5),), {"training.epochs": "a reason"})


@pytest.fixture
def folder(classified: Kept, tmp_path: Path) -> Path:
    return Path(shutil.copytree(classified.folder, tmp_path / "[red] run"))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith("checkpoint")}


def write_reports(folder: Path, trained: Model, reports: Sequence[Report], training: Training) -> Written:
    written = write_results(folder, reports, training)
    assert "report.html" not in names(folder)
    write_page(folder, trained, reports, training, written)
    return written


def test_the_document_holds_all_reports_and_is_returned_as_written(classified: Kept, folder: Path) -> None:
    written = write_reports(folder, classified.trained, classified.reports, TRAINING)
    assert written.failures == []
    document = written.document
    assert document == json.loads((folder / "report.json").read_text())
    assert (document["run"], document["epochs"]) == (str(folder), 30)
    assert [part["split"] for part in document["reports"]] == ["valid", "test"]
    assert document["phases"] == [{"name": "train", "seconds": 1.0, "cpu_seconds": 1.5, "peak_gigabytes": 0.5}]
    assert document["chosen"] == {"training.epochs": "a reason"}
    pictures = {f"{kind}-{split}.png" for kind in ("reliability", "precision-recall") for split in ("valid", "test")}
    expected = {"config.json", "problem.safetensors", "trace.jsonl", "report.json", "report.html", "training.png"}
    expected |= {"calibration.json"}
    assert names(folder) == expected | pictures
    assert faults((folder / "report.html").read_text("utf-8")) == []
    assert training_of(folder) == TRAINING


def test_a_ranking_has_its_own_pictures(ranked: Kept, tmp_path: Path) -> None:
    report = gather(ranked.folder, ranked.trained, ranked.reports, Training())
    write_pictures(tmp_path, report)
    assert names(tmp_path) == {"training.png", "ranks-valid.png", "ranks-test.png"}


def test_a_page_elsewhere_has_no_pictures_beside_it(classified: Kept, tmp_path: Path) -> None:
    report = gather(classified.folder, classified.trained, classified.reports, Training())
    path = write_run_page(classified.folder, report, tmp_path / "elsewhere.html")
    assert path == tmp_path / "elsewhere.html"
    assert names(tmp_path) == {"elsewhere.html"}
    assert "towns" in Page(path.read_text("utf-8")).text


def test_a_run_without_queries_has_no_reports(classified: Kept, folder: Path) -> None:
    written = write_reports(folder, classified.trained, [], Training(2))
    assert written.document["reports"] == []
    assert written.failures == []


@pytest.mark.parametrize(
    ("name", "error", "what"),
    [
        ("run_page", KeyError("x"), "report.html could not be written: KeyError: 'x'"),
        ("gather", MemoryError("much"), "report.html could not be written: MemoryError: much"),
        ("write_pictures", OSError(28, "No space left on device"), "a picture could not be written: No space left"),
        ("write_atomically", OSError(30, "Read-only file system"), "report.json could not be written: Read-only"),
    ],
)
def test_what_fails_is_told_and_nothing_else_is_lost(
    name: str, error: Exception, what: str, classified: Kept, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(write_module, name, fails)
    written = write_reports(folder, classified.trained, classified.reports, TRAINING)
    (failure,) = written.failures
    assert what in failure
    assert "the run is whole, and r2n report writes it again" in failure
    assert len(written.document["reports"]) == 2
    assert ("report.html" in names(folder)) == (not what.startswith("report.html"))
    assert not [path for path in folder.iterdir() if path.suffix in (".tmp", ".part")]


@pytest.mark.parametrize("content", [None, "no json", "[]", '{"epochs": 3, "phases": [{"name": 1}]}', '{"phases": []}'])
def test_a_report_that_cannot_be_read_keeps_nothing_of_a_training(content: str | None, folder: Path) -> None:
    if content is not None:
        (folder / "report.json").write_text(content)
    assert training_of(folder) == Training(30)
    (folder / "trace.jsonl").unlink()
    assert training_of(folder) == Training()
