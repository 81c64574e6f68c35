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
    assert few["refused"] == all_of_them["left_out"] == 0
    assert len(all_of_them["answers"]) == 16
    assert "no ground rule" in invoke("predict", str(run_folder), "near(n1, s1)")


def test_predict_with_other_facts(run_folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "more.tsv"
    table.write_text("new\tnear\tn1\nn1\tnear\tnew\n")
    told = ["--with", str(table), "--with", "near(n3, new)", "--without", "near(n1, n0)", "--without", "near(n0, n1)"]
    result = runner.invoke(app, ["predict", str(run_folder), "liesIn(new, ?)", *told, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["answers"][0]["atom"] == "liesIn(new, north)"
    assert "new constant: new" in result.stderr
    assert "this network does not read facts" in result.stderr
    quiet = runner.invoke(app, ["predict", str(run_folder), "liesIn(n5, ?)", "--json"])
    assert quiet.stderr == ""


def test_predict_tells_what_it_leaves_out_from_what_it_cannot_answer(run_folder: Path) -> None:
    asked = ["predict", str(run_folder), "near(?, n1)", "--with", "near(n98, n97)"]
    few, everything = (json.loads(runner.invoke(app, [*asked, "--json", *more]).stdout) for more in ([], ["--all"]))
    assert (few["refused"], everything["refused"], everything["left_out"]) == (2, 2, 0)
    assert few["left_out"] > 0
    lines = runner.invoke(app, asked).stderr
    assert f"{few['left_out']} atoms that no ground rule reaches are left out" in lines
    assert "2 atoms of new constants cannot be answered" in lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--constant", "town=n98"], "liesIn(n98, north) cannot be answered, nor can 1 other atoms"),
        (["--with", "near(n98, n97)"], "liesIn(n98, north) cannot be answered, nor can 1 other atoms"),
        (["--with", "!near(n1, n0)"], "near(n1, n0) is known to be true, and now told to be false"),
        (["--without", "near(n1, s1)"], "near(n1, s1) is not among the facts"),
        (["--with", "nothing.tsv"], "neither a fact nor a file"),
        (["--constant", "town"], "write --constant DOMAIN=NAME"),
        (["--constant", "city=n98"], "domain 'city', which does not exist"),
    ],
)
def test_wrong_facts_at_predict_are_refused(arguments: list[str], message: str, run_folder: Path) -> None:
    output = invoke("predict", str(run_folder), "liesIn(n98, ?)", *arguments, code=2)
    assert message in " ".join(output.split())


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
