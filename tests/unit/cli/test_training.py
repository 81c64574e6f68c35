"""r2n train, evaluate, predict."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from tests.toy_problem import write_toy_problem

runner = CliRunner()


def invoke(*arguments: str, code: int = 0) -> str:
    result = runner.invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.output if code else result.stdout


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    write_toy_problem(folder / "towns")
    out = invoke("train", str(folder / "towns"), "--out", str(folder / "run"))
    assert "towns, test" in out
    assert "some test queries" in out
    return folder / "run"


def test_train_leaves_a_report_and_plots(run_folder: Path) -> None:
    report = json.loads((run_folder / "report.json").read_text())
    assert [part["split"] for part in report["reports"]] == ["valid", "test"]
    names = {path.name for path in run_folder.iterdir()}
    assert {"training.png", "reliability-valid.png", "reliability-test.png", "config.json", "trace.jsonl"} <= names


def test_train_as_json_with_changes(tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns")
    arguments = ["--out", str(tmp_path / "run"), "--set", "training.epochs=3", "--set", "model.input=mlp", "--json"]
    document = json.loads(invoke("train", str(folder), *arguments))
    assert document["epochs"] == 3
    assert json.loads((tmp_path / "run" / "config.json").read_text())["options"]["model"]["input"] == "mlp"


def test_the_default_folder_is_named_after_problem_and_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_toy_problem(tmp_path / "towns")
    monkeypatch.chdir(tmp_path)
    invoke("train", str(folder), "--set", "training.epochs=1", "--seed", "5")
    assert (tmp_path / "runs" / "towns-5" / "report.json").exists()


def test_evaluate(run_folder: Path) -> None:
    document = json.loads(invoke("evaluate", str(run_folder), "--json"))
    assert document["split"] == "test"
    assert {"ap", "roc_auc_macro"} <= set(document["metrics"])
    assert "towns, valid" in invoke("evaluate", str(run_folder), "--split", "valid")
    assert "no queries 'dev'" in invoke("evaluate", str(run_folder), "--split", "dev", code=2)


def test_predict(run_folder: Path) -> None:
    document = json.loads(invoke("predict", str(run_folder), "liesIn(n5, ?)", "--json"))
    assert [answer["atom"] for answer in document["answers"]] == ["liesIn(n5, north)", "liesIn(n5, south)"]
    assert "liesIn(n5, north)" in invoke("predict", str(run_folder), "liesIn(n5, ?)", "--top", "1")
    assert "unknown constant" in invoke("predict", str(run_folder), "liesIn(nowhere, ?)", code=2)


def test_predict_leaves_out_what_no_rule_reaches(run_folder: Path) -> None:
    few = json.loads(invoke("predict", str(run_folder), "near(n1, ?)", "--json"))
    all_of_them = json.loads(invoke("predict", str(run_folder), "near(n1, ?)", "--all", "--top", "99", "--json"))
    assert few["left_out"] > 0
    assert len(all_of_them["answers"]) == 16
    assert "no ground rule" in invoke("predict", str(run_folder), "near(n1, s1)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.epoch=3", "unknown key 'epoch'"),
        ("epochs=3", "is no assignment"),
        ("model.dim=none", "model.dim"),
        ("training.hiding=1.5", "less than 1"),
        ("nothing.at=1", "is no assignment"),
    ],
)
def test_a_wrong_change_is_refused(change: str, message: str, tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns")
    assert message in invoke("train", str(folder), "--out", str(tmp_path / "run"), "--set", change, code=2)
    assert not (tmp_path / "run").exists()


def test_a_run_is_not_overwritten_and_a_missing_one_is_named(run_folder: Path, tmp_path: Path) -> None:
    problem = run_folder.parent / "towns"
    assert "already holds a run" in invoke("train", str(problem), "--out", str(run_folder), code=2)
    assert "holds no run" in invoke("predict", str(tmp_path), "liesIn(n1, ?)", code=2)
