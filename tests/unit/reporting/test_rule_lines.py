"""What `r2n rules --json` prints -> the lines of a table."""

from r2n.reporting.records import RuleLine
from r2n.reporting.rule_lines import rule_line, rule_table_of

CONTEXT = {
    "kind": "constant",
    "what": "france",
    "helps": True,
    "helped": 1200,
    "hurt": 1,
    "helped_elsewhere": 3,
    "hurt_elsewhere": 4,
    "p": 0.01,
}
CLAUSE = {"clause": "p(x) -> q(x)", "support": 1000, "confidence": 0.5, "known": 20, "fidelity": 0.75, "score": 0.1}
RULE = {
    "name": "r",
    "text": "rule r: p(x) -> q(x)",
    "kind": "explicit",
    "ground_rules": 12,
    "known": 4,
    "satisfied": 0.75,
    "out": None,
    "effect": 1.5,
    "gain": 0.1,
    "without": 0.25,
    "alone": 0.5,
    "contexts": [CONTEXT, CONTEXT | {"helps": False}],
    "clauses": [CLAUSE, CLAUSE | {"confidence": None}],
}


def test_a_rule_is_one_line_with_its_contexts_and_clauses() -> None:
    assert rule_line(RULE) == RuleLine(
        "r",
        "p(x) -> q(x)",
        12,
        0.75,
        None,
        1.5,
        0.25,
        0.5,
        (
            "helps with constant france: 1,200 helped, 1 hurt; elsewhere 3 and 4",
            "hurts with constant france: 1,200 helped, 1 hurt; elsewhere 3 and 4",
            "learned p(x) -> q(x) (support 1,000, confidence 0.500 of 20 known, fidelity 0.750)",
            "learned p(x) -> q(x) (support 1,000, nothing known, fidelity 0.750)",
        ),
    )


def test_what_is_missing_is_empty() -> None:
    assert rule_line({"name": "r", "text": "implicit r: [p(x)]"}) == RuleLine("r", "implicit r: [p(x)]")
    table = rule_table_of({"rules": []})
    assert (table.rules, table.metric, table.whole, table.left_out, table.notes) == ((), "", None, 0, ())


def test_the_table_says_which_metric_it_is() -> None:
    document = {"split": "valid", "metric": "ap", "value": 0.9, "left_out": 3, "notes": ["a note"], "rules": [RULE]}
    table = rule_table_of(document)
    assert (table.metric, table.whole, table.left_out, table.notes) == ("valid ap", 0.9, 3, ("a note",))
    assert [rule.name for rule in table.rules] == ["r"]
