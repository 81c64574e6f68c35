"""r2n check: what the tables say (its options are tested end to end)."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from tests.command_line import invoke

runner = CliRunner()


def test_check_announces_that_it_reads() -> None:
    result = runner.invoke(app, ["check", "countries-s3", "--json"])
    assert json.loads(result.stdout)["name"] == "countries-s3"
    assert result.stderr == "read ...\n"


WIDE = {
    "theory.r2n": "domain person, thing\npredicate gives(person, thing, person)\n",
    "facts.tsv": "ann\that\tbob\n",
    "problem.toml": 'theory = "theory.r2n"\n[facts]\ntrain = { file = "facts.tsv", predicate = "gives" }\n',
}


def write_files(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_check_tells_what_train_would_refuse(tmp_path: Path) -> None:
    problem = write_files(tmp_path / "gifts", WIDE)
    change = ["--set", "model.input=complex"]
    result = runner.invoke(app, ["check", str(problem), *change])
    assert result.exit_code == 0
    assert "warning: r2n train refuses this: input 'complex' takes predicates of one or two positions" in result.stderr
    assert "choose input = 'distmult' or 'mlp'" in result.stderr
    assert runner.invoke(app, ["train", str(problem), "--out", str(tmp_path / "run"), *change]).exit_code == 2
    document = json.loads(invoke("check", str(problem), "--json", *change))
    assert [text.splitlines()[0] for text in document["refusals"]] == [
        "input 'complex' takes predicates of one or two positions, but gives has 3"
    ]
    mended = runner.invoke(app, ["check", str(problem)])
    assert "refuses" not in mended.stderr
    assert "chosen: model.input = distmult (gives has 3 positions)" in mended.stdout


def test_check_warns_of_what_cannot_work(toy_folder: Path) -> None:
    result = runner.invoke(app, ["check", str(toy_folder), "--set", "grounding.strategy=known-body"])
    assert "warning: 1 of 1 rule has a predicate that is asked in its body (neighbours: liesIn)" in result.stderr


def test_train_warns_as_check_does_before_the_work(toy_folder: Path, tmp_path: Path) -> None:
    change = ["--set", "grounding.strategy=known-body", "--set", "training.epochs=1"]
    checked = runner.invoke(app, ["check", str(toy_folder), *change]).stderr
    trained = runner.invoke(app, ["train", str(toy_folder), "--out", str(tmp_path / "run"), *change]).stderr
    warnings = [line for line in checked.splitlines() if line.startswith("warning: ")]
    assert warnings
    assert [line for line in trained.splitlines() if line.startswith("warning: ")] == warnings
    assert trained.index("warning: ") < trained.index("train ...")
    resumed = runner.invoke(app, ["train", str(toy_folder), "--out", str(tmp_path / "run"), "--resume"]).stderr
    assert "warning: " not in resumed


def test_check_tells_of_empty_cells(tmp_path: Path) -> None:
    files = {
        "people.csv": "id,city\nann,rome\nbob,\n",
        "problem.toml": "[facts]\n"
        'train = { file = "people.csv", predicate = "livesIn", header = true, empty = "skip" }\n',
    }
    problem = str(write_files(tmp_path / "people", files))
    assert "train: 1 row with an empty cell (skipped)" in invoke("check", problem)
    assert json.loads(invoke("check", problem, "--json"))["empty"] == {"train": 1}


FAMILY = {
    "theory.r2n": "domain d\npredicate p(d, d)\npredicate q(d, d)\nimplicit all: *(x, y)\n",
    "train.tsv": "a\tp\tb\nb\tq\tc\n",
    "test.tsv": "a\tp\tc\n",
}


@pytest.mark.parametrize("strategy", ["full", "backward"])
def test_ground_knows_reciprocals(strategy: str, tmp_path: Path) -> None:
    text = 'theory = "theory.r2n"\n[facts]\ntrain = "train.tsv"\n[queries]\ntest = "test.tsv"\n[grounding]\n'
    files = {**FAMILY, "problem.toml": f'{text}strategy = "{strategy}"\nreciprocal = true\n'}
    problem = write_files(tmp_path / "family", files)
    document = json.loads(invoke("ground", str(problem), "--json"))
    assert '"p^-1"(x, y)' in document["rules"][0]["rule"]
    assert document["queries"] == {"reached": 1, "unreached": 0}
    plain = write_files(tmp_path / "plain", {**FAMILY, "problem.toml": f'{text}strategy = "{strategy}"\n'})
    without = json.loads(invoke("ground", str(plain), "--json"))
    assert document["atoms"] > without["atoms"]
