"""r2n rules as a person uses it: what an implicit rule has learned becomes a theory; a false rule is seen through."""

from pathlib import Path

import pytest

from r2n.data.problem import load_problem
from r2n.logic.parser import parse_theory
from r2n.model.model import Model
from r2n.model.rule_report import rule_report
from r2n.model.run import prepare_run
from tests.clause_problem import CLAUSES, with_theory, write_clause_problem
from tests.command_line import document, run
from tests.false_rule_problem import write_false_rule_problem

CLOSE = 0.02


def test_from_a_run_to_a_theory_that_trains(tmp_path: Path) -> None:
    """The same commands as below on little data; there is a clause to export all the same."""
    problem = write_clause_problem(tmp_path / "problem", 0, items=100, epochs=40)
    run("train", problem, "--out", tmp_path / "implicit", "--no-baseline", "--no-report")
    run("rules", tmp_path / "implicit", "--export", problem / "learned.r2n")
    with_theory(problem, "learned.r2n")
    rules = parse_theory((problem / "learned.r2n").read_text()).rules
    assert rules
    assert not any(rule.is_implicit for rule in rules)
    assert all(rule.name in run("check", problem) for rule in rules)
    run("train", problem, "--out", tmp_path / "explicit", "--no-baseline", "--no-report", "--set", "training.epochs=1")
    told = document("rules", tmp_path / "explicit")["rules"]
    assert {rule["name"] for rule in told} == {rule.name for rule in rules}


@pytest.mark.slow
def test_from_an_implicit_rule_to_explicit_ones(tmp_path: Path) -> None:
    """Train on the hint alone, read off the clauses, export them, check, and train on the clauses."""
    problem = write_clause_problem(tmp_path / "problem", 0)
    first = document("train", problem, "--out", tmp_path / "implicit", "--no-baseline", "--no-report")
    told = document("rules", tmp_path / "implicit", "--export", problem / "learned.r2n")
    found = [clause["clause"] for clause in told["rules"][0]["clauses"]]
    assert set(found[:2]) == set(CLAUSES)
    for clause in told["rules"][0]["clauses"][:2]:
        assert clause["confidence"] > 0.95
        assert clause["fidelity"] > 0.95
    with_theory(problem, "learned.r2n")
    assert CLAUSES[0] in run("check", problem)
    second = document("train", problem, "--out", tmp_path / "explicit", "--no-baseline", "--no-report")
    for before, after in zip(first["reports"], second["reports"], strict=True):
        assert after["metrics"]["ap"] == pytest.approx(before["metrics"]["ap"], abs=CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_the_clauses_that_made_the_data_are_the_first_that_are_learned(seed: int, tmp_path: Path) -> None:
    problem = load_problem(write_clause_problem(tmp_path, seed))
    trained = prepare_run(problem, seed=seed)
    for _ in trained.trainer:
        pass
    clauses = rule_report(Model.from_run(trained)).rules[0].clauses
    assert {str(clause) for clause in clauses[:2]} == set(CLAUSES)


def test_a_false_rule_shows_no_positive_effect_and_a_true_one_a_large_one(tmp_path: Path) -> None:
    problem = load_problem(write_false_rule_problem(tmp_path, 0))
    trained = prepare_run(problem, seed=0)
    for _ in trained.trainer:
        pass
    accounts = {account.name: account for account in rule_report(Model.from_run(trained)).rules}
    true, false = accounts["neighbours"], accounts["pen pals"]
    assert true.effect is not None
    assert false.effect is not None
    assert true.occurrence is not None
    assert false.occurrence is not None
    assert true.effect.metric is not None
    assert true.effect.without is not None
    assert false.effect.without is not None
    assert true.effect.without < true.effect.metric - 0.2
    assert false.effect.without > true.effect.metric - CLOSE
    assert true.effect.gain > 5 * abs(false.effect.gain)
    assert true.occurrence.satisfied == 1.0
    assert false.occurrence.satisfied is not None
    assert false.occurrence.satisfied < 0.4  # one valley in four
