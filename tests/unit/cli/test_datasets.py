"""r2n datasets."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from r2n.cli import datasets as module
from r2n.datasets.benchmarks import DATASETS, load
from r2n.progress import Progress

runner = CliRunner()


def test_list_and_show() -> None:
    rows = json.loads(runner.invoke(app, ["datasets", "list", "--json"]).stdout)
    assert [row["name"] for row in rows] == list(DATASETS)
    assert "countries-s3" in runner.invoke(app, ["datasets", "list"]).stdout
    shown = json.loads(runner.invoke(app, ["datasets", "show", "nations", "--json"]).stdout)
    assert shown["splits"] == {"train": 1592, "valid": 199, "test": 201}


def test_download_of_what_is_here_and_of_what_is_unknown() -> None:
    result = runner.invoke(app, ["datasets", "download", "nations"])
    assert result.exit_code == 0
    assert "in the package" in result.stdout
    result = runner.invoke(app, ["datasets", "download", "nation"])
    assert result.exit_code == 2
    assert "did you mean 'nations'" in result.output


def test_a_download_shows_its_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(folder: str, *, progress: Progress) -> Path:
        progress("download", 5, 10)
        return tmp_path / folder

    monkeypatch.setattr(module, "download", download)
    result = runner.invoke(app, ["datasets", "download", "wn18rr"])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"wn18rr is in {tmp_path / 'wn18rr'}\n"
    assert result.stderr == "download ...\n"


def test_generate_makes_a_problem_folder_once(tmp_path: Path) -> None:
    arguments = ["datasets", "generate", str(tmp_path / "made"), "--facts", "200", "--constants", "40", "--rules", "5"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("200 facts (train 180, valid 10, test 10), 5 rules, in ")
    made = load(str(tmp_path / "made"))
    assert [len(made.train), *map(len, made.queries.values()), len(made.knowledge.theory.rules)] == [180, 10, 10, 5]
    again = runner.invoke(app, arguments)
    assert again.exit_code == 2
    assert "name one that is not there" in again.output
    assert runner.invoke(app, [*arguments[:2], str(tmp_path / "other"), "--noise", "2"]).exit_code == 2
