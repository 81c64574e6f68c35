"""r2n rules."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from r2n.cli.prediction import print_rules
from r2n.explanation.rules import LearnedClause, Occurrence, RuleAccount, RuleEffect, RuleReport
from r2n.logic.parser import parse_theory
from tests.command_line import invoke
from tests.false_rule_problem import write_false_rule_problem
from tests.toy_problem import write_toy_problem

runner = CliRunner()


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    write_false_rule_problem(folder / "towns", towns=48, epochs=20)
    invoke("train", str(folder / "towns"), "--out", str(folder / "run"), "--no-report", "--no-baseline")
    return folder / "run"


def test_one_json_document(run_folder: Path) -> None:
    document = json.loads(invoke("rules", str(run_folder), "--json", "--split", "test"))
    assert document["split"] == "test"
    rules = {rule["name"]: rule for rule in document["rules"]}
    assert set(rules) == {"neighbours", "pen pals"}
    rule = rules["neighbours"]
    assert rule["metric"] == document["value"]
    assert rule["alone"] == rules["pen pals"]["without"]
    assert rule["ground_rules"] > 0


def test_the_rules_that_help_are_exported_as_a_theory_that_is_accepted(run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "helpful.r2n"
    invoke("rules", str(run_folder), "--export", str(out))
    problem = write_false_rule_problem(tmp_path / "again", towns=48)
    (problem / "theory.r2n").write_text(out.read_text())
    assert "rule neighbours" in invoke("check", str(problem))


def test_bad_input_has_a_clear_answer(run_folder: Path, tmp_path: Path) -> None:
    assert "no queries 'dev'" in invoke("rules", str(run_folder), "--split", "dev", code=2)
    assert "does not end in .r2n" in invoke("rules", str(run_folder), "--export", "theory.txt", code=2)
    assert "error:" in invoke("rules", str(tmp_path / "nowhere"), code=2)
    assert "--most" in invoke("rules", str(run_folder), "--most", "0", code=2)


def test_a_run_that_reads_no_rules(tmp_path: Path) -> None:
    write_toy_problem(tmp_path / "towns", epochs=1)
    options = ["--no-report", "--no-baseline", "--set", "model.reasoner=none"]
    invoke("train", str(tmp_path / "towns"), "--out", str(tmp_path / "run"), *options)
    result = runner.invoke(app, ["rules", str(tmp_path / "run")])
    assert result.exit_code == 0
    assert "the network reads no rules" in result.output
    document = json.loads(invoke("rules", str(tmp_path / "run"), "--json"))
    assert document["rules"][0]["effect"] is None
    assert "nothing to export" in invoke("rules", str(tmp_path / "run"), "--export", str(tmp_path / "t.r2n"), code=2)


def test_clauses_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    rule = parse_theory('domain d\npredicate p(d)\npredicate "q[red]"(d)\nrule one: p(x) -> "q[red]"(x)').rules[0]
    effect, clause = RuleEffect(1.0, 0.1, 3, 0.9, 0.8, 0.2), LearnedClause(rule, 9, 0.9, 0, None, 0.1)
    accounts = (
        RuleAccount(rule, "implicit", Occurrence(3), effect, (clause,)),
        RuleAccount(rule, "implicit", Occurrence(3), effect),
        RuleAccount(rule, "explicit", Occurrence(3), effect),
    )
    print_rules(RuleReport("towns", None, 0, None, None, None, accounts))
    out = capsys.readouterr().out
    assert out.count('"q[red]"(x)') == 4, "three rules and a clause"
    assert out.count("no clause was learned") == 1
