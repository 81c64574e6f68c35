"""r2n infer."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from tests.command_line import invoke
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
    assert [sorted(item) for item in document["answers"]] == [["atom", "known", "label", "probability", "reached"]] * 4
    assert document["metrics"]["ap"] == 1.0
    assert {item["label"] for item in document["answers"]} == {True, False}
    assert all(0 <= item["probability"] <= 1 for item in document["answers"])


def test_a_problem_without_queries_wants_a_question(tmp_path: Path) -> None:
    (tmp_path / "theory.r2n").write_text("domain d = {a}\npredicate p(d)\nrule r: p(x)\n")
    (tmp_path / "problem.toml").write_text('theory = "theory.r2n"\n')
    result = runner.invoke(app, ["infer", str(tmp_path)])
    assert result.exit_code == 2
    assert "no queries 'test'" in result.stderr
    assert "Traceback" not in result.stderr
    asked = runner.invoke(app, ["infer", str(tmp_path), "p(?)", "--json"])
    assert json.loads(asked.stdout)["answers"] == [{"atom": "p(a)", "probability": 1.0, "reached": True, "known": None}]


def test_queries_that_are_all_true_have_no_metrics(toy_folder: Path, tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns")
    (folder / "test.tsv").write_text("n5\tliesIn\tnorth\n")
    result = runner.invoke(app, ["infer", str(folder), "--json"])
    assert json.loads(result.stdout)["metrics"] is None
    assert "the queries 'test' are all true" in result.stderr


def test_rules_that_no_world_satisfies_are_named(tmp_path: Path) -> None:
    rules = "rule yes: p(x) -> q(x)\nrule no: p(x) -> !q(x)\nrule all: p(x)\nrule other: s(x) -> q(x)\n"
    declared = "domain d = {a}\npredicate p(d)\npredicate q(d)\npredicate s(d)\n"
    (tmp_path / "theory.r2n").write_text(declared + rules)
    (tmp_path / "problem.toml").write_text('theory = "theory.r2n"\n')
    result = runner.invoke(app, ["infer", str(tmp_path), "p(?)"])
    assert result.exit_code == 0
    said = result.stderr
    assert "warning: no world satisfies these rules, which hold strictly, and what is known:" in said
    assert [line for line in rules.splitlines() if line in said] == rules.splitlines()[:3]
    assert json.loads(invoke("infer", str(tmp_path), "p(?)", "--json"))["no_world"] == [
        "rule yes: p(x) -> q(x)",
        "rule no: p(x) -> !q(x)",
        "rule all: p(x)",
    ]
    (tmp_path / "theory.r2n").write_text(declared + rules.replace("rule no", "rule no [2.0]"))
    weighted = runner.invoke(app, ["infer", str(tmp_path), "p(?)", "--json"])
    assert json.loads(weighted.stdout)["no_world"] is None
    assert "no world" not in weighted.stderr


def test_more_iterations_than_anybody_waits_for(toy_folder: Path) -> None:
    asked = ["infer", str(toy_folder), "--json", "--iterations"]
    refused = runner.invoke(app, [*asked, str(10**30)])
    assert refused.exit_code == 2, refused.output
    assert runner.invoke(app, [*asked, "-1"]).exit_code == 2
