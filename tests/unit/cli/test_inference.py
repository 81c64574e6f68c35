"""r2n infer."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from tests.toy_problem import write_toy_problem

runner = CliRunner()


@pytest.fixture(scope="module")
def toy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_problem(tmp_path_factory.mktemp("infer") / "towns")


def test_the_test_queries_by_default(toy_folder: Path) -> None:
    result = runner.invoke(app, ["infer", str(toy_folder), "--json", "--iterations", "20", "--top", "4"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["method"], document["iterations"]) == ("sum-product", 20)
    assert [sorted(item) for item in document["answers"]] == [["atom", "probability", "reached"]] * 4
    assert all(0 <= item["probability"] <= 1 for item in document["answers"])


def test_a_question_as_a_table(toy_folder: Path) -> None:
    result = runner.invoke(app, ["infer", str(toy_folder), "liesIn(n5, ?)", "--method", "paper", "--iterations", "2"])
    assert result.exit_code == 0, result.output
    assert "liesIn(n5, north)" in result.stdout
    assert "towns: paper" in result.stdout


def test_a_problem_without_queries_wants_a_question(tmp_path: Path) -> None:
    (tmp_path / "theory.r2n").write_text("domain d = {a}\npredicate p(d)\nrule r: p(x)\n")
    (tmp_path / "problem.toml").write_text('theory = "theory.r2n"\n')
    result = runner.invoke(app, ["infer", str(tmp_path)])
    assert result.exit_code == 2
    assert "no queries 'test'" in result.stderr
    assert "Traceback" not in result.stderr
    asked = runner.invoke(app, ["infer", str(tmp_path), "p(?)", "--json"])
    assert json.loads(asked.stdout)["answers"] == [{"atom": "p(a)", "probability": 1.0, "reached": True}]
