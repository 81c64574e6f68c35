"""What rules do, as one document."""

import json

from r2n.explanation.rules import Context, LearnedClause, Occurrence, RuleAccount, RuleEffect, RuleReport
from r2n.logic.parser import parse_theory
from r2n.logic.theory import Rule

RULE = parse_theory("domain d\npredicate p(d)\npredicate q(d)\nrule one [0.5]: p(x) -> q(x)").rules[0]
KEYS = ("name", "text", "ground_rules", "satisfied", "out", "effect", "metric", "without", "alone")


def account(rule: Rule = RULE) -> RuleAccount:
    return RuleAccount(
        rule,
        "explicit",
        Occurrence(7, 3, 1.0, 0.9),
        RuleEffect(0.5, 0.1, 4, 0.9, 0.8, float("nan")),
        (Context("constant", "u", helps=True, helped=5, hurt=0, helped_elsewhere=1, hurt_elsewhere=9, p=0.001),),
        (LearnedClause(rule, 4, 1.0, 0, None, 0.2),),
    )


def test_the_document_has_the_keys_that_others_rely_on() -> None:
    report = RuleReport("toy", "valid", 10, "ap", 0.9, 0.3, (account(),), left_out=2, notes=("look",))
    document = json.loads(json.dumps(report.to_dict()))
    assert document["metric"] == "ap"
    assert document["split"] == "valid"
    assert document["left_out"] == 2
    told = document["rules"][0]
    assert {key: told[key] for key in KEYS} == {
        "name": "one",
        "text": "rule one [0.5]: p(x) -> q(x)",
        "ground_rules": 7,
        "satisfied": 1.0,
        "out": 0.9,
        "effect": 0.5,
        "metric": 0.9,
        "without": 0.8,
        "alone": None,  # NaN is no JSON
    }
    assert told["contexts"][0]["what"] == "u"
    assert told["clauses"][0]["clause"] == "p(x) -> q(x)"


def test_what_is_not_told_is_none() -> None:
    told = RuleAccount(RULE, "explicit").to_dict()
    assert all(told[key] is None for key in KEYS[2:])
    assert told["contexts"] == told["clauses"] == []


def test_a_clause_says_what_was_counted() -> None:
    assert LearnedClause(RULE, 4, 1.0, 0, None, 0.2).counts == "support 4, confidence nothing known, fidelity 1.000"
    assert "confidence 0.750 of 4 known" in LearnedClause(RULE, 1200, 1.0, 4, 0.75, 0.2).counts
