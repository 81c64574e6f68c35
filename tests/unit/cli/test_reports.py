"""r2n report, compare, serve."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from r2n.reporting import pages
from tests.html_pages import Page, faults
from tests.toy_problem import write_toy_problem

runner = CliRunner()
QUICK = ("--no-baseline", "--set", "training.epochs=2")


def invoke(*arguments: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs `one` and `two`, of a problem that is gone."""
    folder = tmp_path_factory.mktemp("runs")
    write_toy_problem(folder / "towns")
    for seed, name in enumerate(("one", "two")):
        invoke("train", folder / "towns", "--out", folder / name, "--seed", seed, *QUICK)
    shutil.rmtree(folder / "towns")
    return folder


def test_a_training_ends_with_its_report(runs: Path) -> None:
    html = (runs / "one" / "report.html").read_text("utf-8")
    assert faults(html) == []
    text = Page(html).text
    assert "towns" in text
    assert "training.corrupted_positions" in text
    phases = json.loads((runs / "one" / "report.json").read_text())["phases"]
    assert {"read", "ground", "train", "evaluate"} <= {phase["name"] for phase in phases}
    assert all(heading in text for heading in ("Loss", "Reliability", "Precision over recall"))


def test_why_options_were_chosen_is_kept(tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns", epochs=2)
    problem = folder / "problem.toml"
    problem.write_text(problem.read_text().replace("corrupted_positions = [-1]\n", ""))
    found = invoke("train", folder, "--no-baseline", "--out", tmp_path / "run")
    assert "chosen: training.corrupted_positions" in found
    kept = json.loads((tmp_path / "run" / "report.json").read_text())["chosen"]
    assert list(kept) == ["training.corrupted_positions"]
    reason = kept["training.corrupted_positions"]
    assert f"chosen: {reason}" in Page((tmp_path / "run" / "report.html").read_text("utf-8")).text
    invoke("train", folder, "--out", tmp_path / "run", "--resume")
    assert json.loads((tmp_path / "run" / "report.json").read_text())["chosen"] == kept


def test_a_report_that_cannot_be_written_fails_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pages, "run_page", fails)
    out = invoke("train", write_toy_problem(tmp_path / "towns"), "--out", tmp_path / "run", *QUICK)
    assert "note: report.html could not be written: No space left on device" in out
    assert "its report is in" not in out
    assert "the run is in" in out
    monkeypatch.undo()
    assert "the report is in" in invoke("report", tmp_path / "run")
    assert (tmp_path / "run" / "report.html").exists()


def test_a_report_is_written_again_for_a_moved_run(runs: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(runs / "one", tmp_path / "moved"))
    before = {path.name for path in moved.iterdir()}
    (moved / "report.html").unlink()
    document = json.loads(runner.invoke(app, ["report", str(moved), "--json"]).stdout)
    assert document["report"] == str(moved / "report.html")
    assert [part["split"] for part in document["reports"]] == ["valid", "test"]
    assert {path.name for path in moved.iterdir()} == before
    again = (moved / "report.html").read_text("utf-8")
    assert again == (runs / "one" / "report.html").read_text("utf-8")


def test_a_report_elsewhere(runs: Path, tmp_path: Path) -> None:
    invoke("report", runs / "one", "--out", tmp_path / "page.html")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert "make it first" in invoke("report", runs / "one", "--out", tmp_path / "none" / "page.html", code=2)
    assert "is a folder" in invoke("report", runs / "one", "--out", tmp_path, code=2)
    assert "holds no run" in invoke("report", tmp_path, code=2)


def test_compare_as_page_and_json(runs: Path, tmp_path: Path) -> None:
    html = tmp_path / "compared.html"
    arguments = ["compare", runs / "one", runs / "two", "--split", "test", "--html", html, "--json"]
    result = runner.invoke(app, [str(argument) for argument in arguments])
    document = json.loads(result.stdout)
    assert [run["run"] for run in document["runs"]] == ["one", "two"]
    assert [split["split"] for split in document["splits"]] == ["test"]
    assert faults(html.read_text("utf-8")) == []
    assert f"the comparison is in {html}" in result.stderr


def test_compare_refuses_before_any_work(runs: Path, tmp_path: Path) -> None:
    both, page = (runs / "one", runs / "two"), tmp_path / "none" / "x.html"
    assert "make it first" in invoke("compare", *both, "--html", page, code=2)
    damaged = Path(shutil.copytree(runs / "one", tmp_path / "damaged"))
    checkpoint = next(damaged.glob("checkpoint-*"))
    checkpoint.write_bytes(checkpoint.read_bytes()[:-4])
    assert "damaged" in invoke("compare", runs / "one", damaged, "--html", tmp_path / "x.html", code=2)
    assert not (tmp_path / "x.html").exists()


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["serve", *(str(argument) for argument in arguments)])
    assert result.exit_code == 2
    return result.output


def test_another_host_without_a_token_is_refused(tmp_path: Path) -> None:
    assert "there is no token" in refused(tmp_path, "--host", "0.0.0.0")


def test_what_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2n.cli.runs.find_spec", lambda name: None)
    assert "pip install 'r2n[serve]'" in refused(tmp_path)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    assert str(tmp_path) in refused(tmp_path, "--port", "0")
