"""The report on a run's rules: for every kind of network, and where there is little to tell."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from r2n.data.problem import load_problem
from r2n.errors import ConfigError
from r2n.model.model import Model
from r2n.model.rule_report import held_back, rule_report
from r2n.model.run import prepare_run
from tests.clause_problem import write_clause_problem
from tests.false_rule_problem import write_false_rule_problem


def trained_on(folder: Path, *changes: str, without: tuple[str, ...] = ()) -> Model:
    problem = load_problem(write_false_rule_problem(folder, towns=24, epochs=2))
    problem = replace(problem, queries={name: part for name, part in problem.queries.items() if name not in without})
    run = prepare_run(problem, problem.options.changed(changes), seed=1)
    for _ in run.trainer:
        pass
    return Model.from_run(run)


@pytest.mark.parametrize("strategy", ["full", "known-body", "backward"])
def test_every_strategy(strategy: str, tmp_path: Path) -> None:
    trained = trained_on(tmp_path / "p", f"grounding.strategy={strategy}")
    report = rule_report(trained)
    assert (report.split, report.metric, report.left_out) == ("valid", "ap", 0)
    assert report.value == pytest.approx(trained.evaluate("valid").metrics["ap"])
    by_name = {account.name: account for account in report.rules}
    assert set(by_name) == {"neighbours", "pen pals"}
    for account in report.rules:
        occurrence = account.occurrence
        assert occurrence is not None
        assert occurrence.ground_rules > 0
        assert occurrence.out is not None
        assert 0 < occurrence.out < 1
        assert account.effect is not None
        assert account.effect.effect > 0
    true, false = (by_name[name].occurrence for name in ("neighbours", "pen pals"))
    assert true is not None
    assert false is not None
    assert true.satisfied == 1.0
    assert false.satisfied is not None
    assert false.satisfied < 0.9
    assert any("known atoms" in note for note in report.notes) == (strategy == "backward")
    json.dumps(report.to_dict(), allow_nan=False)


def test_out_is_told_only_where_training_made_it_mean_something(tmp_path: Path) -> None:
    report = rule_report(trained_on(tmp_path / "p", "training.semantic_weight=0"))
    assert all(account.occurrence is not None and account.occurrence.out is None for account in report.rules)


def test_counted_rules(tmp_path: Path) -> None:
    report = rule_report(trained_on(tmp_path / "p", "model.rules=counted"))
    assert {account.kind for account in report.rules} == {"counted"}
    assert all(account.effect is not None and account.effect.without is not None for account in report.rules)


def test_a_split_may_be_chosen_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    trained = trained_on(tmp_path / "p")
    assert rule_report(trained, split="test").contexts_on == "test"
    with pytest.raises(ConfigError, match="no queries 'dev'") as error:
        rule_report(trained, split="dev")
    assert "valid, test" in str(error.value)


def test_without_validation_queries_contexts_are_sought_in_what_is_known(tmp_path: Path) -> None:
    report = rule_report(trained_on(tmp_path / "p", without=("valid",)))
    assert report.split == "test"
    assert report.contexts_on is not None
    assert "asked as if they were not known" in report.contexts_on


def test_without_any_queries_what_is_known_is_asked(tmp_path: Path) -> None:
    report = rule_report(trained_on(tmp_path / "p", without=("valid", "test")))
    assert report.metric == "ap"  # the facts of this problem are labelled
    assert any("there are no queries" in note for note in report.notes)
    assert all(account.effect is not None for account in report.rules)


def test_what_is_held_back_is_not_known_to_the_network(tmp_path: Path) -> None:
    trained = trained_on(tmp_path / "p")
    found = held_back(trained)
    assert found is not None
    rest = found.trained.knowledge.evidence.atoms
    assert len(np.intersect1d(rest, found.queries.atoms)) == 0
    assert len(rest) + len(found.queries) == len(trained.knowledge.evidence)


@pytest.mark.parametrize("changes", [("model.reasoner=none",), ("model.layers=0",)])
def test_a_network_that_reads_no_rules_says_so(changes: tuple[str, ...], tmp_path: Path) -> None:
    report = rule_report(trained_on(tmp_path / "p", *changes, "training.hiding=0.0"))
    assert "the network reads no rules" in report.notes[0]
    assert [account.effect for account in report.rules] == [None, None]


def test_a_theory_without_rules_says_so(tmp_path: Path) -> None:
    folder = write_false_rule_problem(tmp_path / "p", towns=24, epochs=1)
    theory = (folder / "theory.r2n").read_text().splitlines()
    (folder / "theory.r2n").write_text("".join(f"{line}\n" for line in theory if not line.startswith("rule")))
    report = rule_report(Model.from_run(prepare_run(load_problem(folder), seed=0)))
    assert report.rules == ()
    assert report.notes == ("the theory has no rules",)


def test_a_theory_of_200_rules_is_bounded_and_says_so(tmp_path: Path) -> None:
    folder = write_false_rule_problem(tmp_path / "p", towns=12, epochs=0)
    more = "".join(f"rule more{i}: near(x, y) & liesIn(y, z) -> liesIn(x, z)\n" for i in range(198))
    (folder / "theory.r2n").write_text((folder / "theory.r2n").read_text() + more)
    problem = load_problem(folder)
    run = prepare_run(problem, problem.options.changed(["model.rule_network=shared", "model.dim=2"]), seed=0)
    phases: dict[str, int] = {}
    report = rule_report(Model.from_run(run), most=3, progress=lambda phase, done, total: phases.update({phase: total}))
    assert len(report.rules) == 3
    assert report.left_out == 197
    assert "of 200 rules, the 30 with the most ground rules were tried" in report.notes
    assert phases["which rules matter"] == 30
    assert phases["without a rule, and with it alone"] == 3
    effects = [account.effect.effect for account in report.rules if account.effect is not None]
    assert effects == sorted(effects, reverse=True)


def test_queries_that_are_all_true_are_ranked_and_that_is_said(tmp_path: Path) -> None:
    folder = write_false_rule_problem(tmp_path / "p", towns=24, epochs=1)
    rows = (folder / "valid.tsv").read_text().splitlines()
    (folder / "valid.tsv").write_text("".join(f"{row[:-2]}\n" for row in rows if row.endswith("\t1")))
    report = rule_report(Model.from_run(prepare_run(load_problem(folder), seed=0)))
    assert report.metric == "mrr"
    assert "have no label" in report.notes[0]


def test_an_implicit_rule_has_clauses_and_no_share_that_is_satisfied(tmp_path: Path) -> None:
    problem = load_problem(write_clause_problem(tmp_path / "p", 0, items=60, epochs=3))
    trained = Model.from_run(prepare_run(problem, seed=0))
    account = rule_report(trained).rules[0]
    assert account.kind == "implicit"
    assert account.occurrence is not None
    assert account.occurrence.satisfied is None
    assert account.occurrence.known > 0
    assert rule_report(trained, clauses=False, contexts=False).rules[0].clauses == ()
