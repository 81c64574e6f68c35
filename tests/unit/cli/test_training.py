"""r2n train, evaluate, predict."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from r2n.errors import DataError
from r2n.prediction.answers import Answer, Answers
from r2n.prediction.predictor import Predictor
from r2n.runs import run as run_module
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


def test_predict_answers_what_rules_reach_unless_all_is_asked_for(run_folder: Path) -> None:
    few = json.loads(invoke("predict", str(run_folder), "near(n1, ?)", "--top", "99", "--json"))
    all_of_them = json.loads(invoke("predict", str(run_folder), "near(n1, ?)", "--all", "--top", "99", "--json"))
    assert 0 < len(few["answers"]) < len(all_of_them["answers"]) == 16
    assert all(item["reached"] for item in few["answers"])


def test_predict_says_what_is_known_and_what_the_network_says(run_folder: Path) -> None:
    table = invoke("predict", str(run_folder), "near(n1, ?)", "--all", "--top", "99")
    assert [word.strip() for word in table.splitlines()[1].strip("┃").split("┃")] == [
        "atom",
        "probability",
        "known",
        "network alone",
    ]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in table.splitlines() if "near(" in line]
    rows = {cell[0]: cell[1:] for cell in cells}
    assert rows["near(n1, n0)"][:2] == ["1.0000", "true"]
    assert rows["near(n1, s1)"][:2] == ["0.0000", "closed"]


ITEM = Answer("p([red]x[/red])", 0.25, known=None, closed=False, network=0.25, logit=-1.1, reached=True)


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        (ITEM, ""),
        (replace(ITEM, reached=False), "(no ground rule)"),
        (replace(ITEM, known=True, probability=1.0), "true"),
        (replace(ITEM, known=True, closed=True, reached=False), "true"),
        (replace(ITEM, known=False), "false"),
        (replace(ITEM, closed=True), "closed"),
        (replace(ITEM, known=False, closed=True, reached=False), "closed"),
    ],
)
def test_what_is_said_of_an_answer(item: Answer, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool]] = []

    class Fixed:
        model = changed = SimpleNamespace(evidence_input="add", new_constants=())

        def predict(self, question: str, *, everything: bool, top: int) -> Answers:
            asked.append((question, everything))
            return Answers((item,), 1, 0) if everything else Answers((), 0, 0, left_out=1)

    monkeypatch.setattr(Predictor, "load", lambda folder, **_: Fixed())
    table = invoke("predict", "run", "p(?)", "--all")
    assert ["p([red]x[/red])", f"{item.probability:.4f}", shown, "0.2500"] in [
        [cell.strip() for cell in line.strip("│").split("│")] for line in table.splitlines()
    ]
    nothing = runner.invoke(app, ["predict", "run", "p(?)"])
    assert "--all asks the network alone" in nothing.stderr
    assert asked == [("p(?)", True), ("p(?)", False)]


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
    assert "new constant" not in quiet.stderr
    assert "does not read facts" not in quiet.stderr


def test_train_tells_its_phases_on_standard_error(tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns", epochs=2)
    result = runner.invoke(app, ["train", str(folder), "--out", str(tmp_path / "run"), "--json"])
    assert json.loads(result.stdout)["epochs"] == 2
    phases = [line.removesuffix(" ...") for line in result.stderr.splitlines() if line.endswith(" ...")]
    assert [phase for phase in phases if phase != "lay out"] == ["read", "ground", "train", "evaluate"]


def test_memory_is_handed_on_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []

    def prepare_run(*_: object, **options: object) -> None:
        given.append(options.get("memory"))
        raise DataError("enough")

    monkeypatch.setattr(run_module, "prepare_run", prepare_run)
    folder = write_toy_problem(tmp_path / "towns")
    for arguments in (["--memory", "2 GB"], ["--memory", "500MiB"], []):
        assert "error: enough" in invoke("train", str(folder), *arguments, code=2)
    assert given == [2 * 10**9, 500 * 2**20, None]
    assert "'much' is no size of memory" in invoke("train", str(folder), "--memory", "much", code=2)


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
