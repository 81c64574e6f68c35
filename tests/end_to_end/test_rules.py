"""r2n rules as a person uses it: what an implicit rule has learned becomes a theory; a false rule is seen through."""

from pathlib import Path
from typing import Any

import pytest

from r2n.data.problem import load_problem
from r2n.model.model import Model
from r2n.model.rule_report import rule_report
from r2n.model.run import prepare_run
from tests.clause_problem import CLAUSES, write_clause_problem
from tests.false_rule_problem import write_false_rule_problem

CLOSE = 0.02


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
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
    accounts: dict[str, Any] = {account.name: account for account in rule_report(Model.from_run(trained)).rules}
    true, false = accounts["neighbours"], accounts["pen pals"]
    assert None not in (true.effect, false.effect, true.occurrence, false.occurrence)
    metric = true.effect.metric
    assert true.effect.without < metric - 0.2
    assert false.effect.without > metric - CLOSE
    assert true.effect.gain > 5 * abs(false.effect.gain)
    assert true.occurrence.satisfied == 1.0
    assert false.occurrence.satisfied < 0.4  # one valley in four
