"""Rules that help and learned clauses as a theory file."""

from pathlib import Path

import pytest

import r2n
from r2n.errors import ConfigError
from r2n.explanation.rules import LearnedClause, RuleAccount, RuleEffect, RuleReport
from r2n.logic.parser import parse_theory
from r2n.model.rule_report import export_theory, helps, report_theory

THEORY = parse_theory(
    "domain d\ndomain e = {a, b}\npredicate p(d)\npredicate q(d, e) closed\n"
    "rule r [2.0]: p(x) -> q(x, y)\nrule s: q(x, y) -> p(x)\nimplicit i: [p(x), q(x, y)]"
)
CLAUSE = parse_theory("domain d\ndomain e\npredicate p(d)\npredicate q(d, e)\nrule i: !p(x) -> q(x, y)").rules[0]


def effect(metric: float | None, without: float | None, gain: float = 0.0) -> RuleEffect:
    return RuleEffect(1.0, gain, 3, metric, without, 0.2)


def report(*accounts: RuleAccount) -> RuleReport:
    return RuleReport("toy", "valid", 9, "ap", 0.9, 0.1, accounts)


def test_a_rule_helps_where_the_metric_falls_without_it_else_where_truth_is_more_probable() -> None:
    rule = THEORY.rules[0]
    assert helps(RuleAccount(rule, "explicit", effect=effect(0.9, 0.8, -1.0)))
    assert not helps(RuleAccount(rule, "explicit", effect=effect(0.8, 0.9, 1.0)))
    assert helps(RuleAccount(rule, "explicit", effect=effect(0.9, 0.9, 0.1)))
    assert not helps(RuleAccount(rule, "explicit", effect=effect(0.9, 0.9)))
    assert helps(RuleAccount(rule, "explicit", effect=effect(None, None, 0.1)))
    assert not helps(RuleAccount(rule, "explicit"))


def test_the_text_is_the_theory_with_other_rules() -> None:
    r, s, i = THEORY.rules
    clauses = (LearnedClause(CLAUSE, 9, 0.95, 5, 0.8, 0.1), LearnedClause(CLAUSE, 9, 0.91234, 0, None, 0.1))
    told = report(
        RuleAccount(r, "explicit", effect=effect(0.9, 0.5)),
        RuleAccount(s, "counted", effect=effect(0.9, 0.95)),
        RuleAccount(i, "implicit", effect=effect(0.9, 0.5), clauses=clauses),
    )
    whole, text = report_theory(told, THEORY)
    assert parse_theory(text) == whole
    assert (whole.domains, whole.predicates) == (THEORY.domains, THEORY.predicates)
    assert [(rule.name, rule.weight) for rule in whole.rules] == [("r", 2.0), ("i_1", 0.8), ("i_2", 0.9123)]
    assert "# ap 0.9000, without it 0.5000\nrule r [2.0]" in text
    assert "# learned by 'i': support 9, confidence 0.800 of 5 known, fidelity 0.950" in text


def test_names_that_are_taken_are_not_taken_twice() -> None:
    theory = parse_theory(
        "domain d, e\npredicate p(d)\npredicate q(d, e)\nrule i_1: p(x) -> q(x, y)\nimplicit i: [p(x), q(x, y)]"
    )
    told = report(RuleAccount(theory.rules[1], "implicit", clauses=(LearnedClause(CLAUSE, 9, 1.0, 0, None, 0.1),)))
    assert [rule.name for rule in report_theory(told, theory)[0].rules] == ["i_1_"]


def test_nothing_to_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to export"):
        report_theory(report(RuleAccount(THEORY.rules[0], "explicit", effect=effect(0.8, 0.9))), THEORY)
    helped = report(RuleAccount(THEORY.rules[0], "explicit", effect=effect(0.9, 0.8)))
    assert export_theory(helped, THEORY, tmp_path / "out.r2n").startswith("1 rule in")
    assert r2n.parse_theory((tmp_path / "out.r2n").read_text()).rules[0].name == "r"
    with pytest.raises(ConfigError, match="cannot be written"):
        export_theory(helped, THEORY, tmp_path / "nowhere" / "out.r2n")
