"""Runs -> pages: what is told of rules, as JSON has it -> the lines of a table."""

from collections.abc import Iterator, Mapping
from typing import Any

from r2n.reporting.records import RuleLine, RuleTable

NUMBERS = ("ground_rules", "satisfied", "out", "effect", "without", "alone")


def rule_table_of(document: Mapping[str, Any]) -> RuleTable:
    """The table of the document that `r2n rules --json` prints; what is missing there is left empty."""
    metric = " ".join(str(document[key]) for key in ("split", "metric") if document.get(key) is not None)
    return RuleTable(
        tuple(rule_line(rule) for rule in document["rules"]),
        metric,
        document.get("value"),
        document.get("left_out") or 0,
        tuple(document.get("notes", ())),
    )


def rule_line(rule: Mapping[str, Any]) -> RuleLine:
    """The line of one rule."""
    numbers = {name: rule.get(name) for name in NUMBERS}
    text = rule["text"].removeprefix(f"rule {rule['name']}: ")
    return RuleLine(rule["name"], text, **numbers, details=(*_contexts(rule), *_clauses(rule)))


def _contexts(rule: Mapping[str, Any]) -> Iterator[str]:
    for context in rule.get("contexts") or ():
        does = "helps" if context["helps"] else "hurts"
        here = f"{context['helped']:,} helped, {context['hurt']:,} hurt"
        elsewhere = f"elsewhere {context['helped_elsewhere']:,} and {context['hurt_elsewhere']:,}"
        yield f"{does} with {context['kind']} {context['what']}: {here}; {elsewhere}"


def _clauses(rule: Mapping[str, Any]) -> Iterator[str]:
    for clause in rule.get("clauses") or ():
        sure = clause.get("confidence")
        confidence = "nothing known" if sure is None else f"confidence {sure:.3f} of {clause['known']:,} known"
        counts = f"support {clause['support']:,}, {confidence}, fidelity {clause['fidelity']:.3f}"
        yield f"learned {clause['clause']} ({counts})"
