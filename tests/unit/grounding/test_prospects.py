"""What cannot work, told before a training."""

import pyarrow as pa
import pytest

from r2n.grounding.prospects import doubts
from r2n.knowledge.options import Options
from r2n.knowledge.problem import Problem
from r2n.knowledge.reading.tables import Table
from r2n.logic.parser import parse_theory

THEORY = """\
domain person
predicate parent(person, person) closed
predicate grandparent(person, person)
predicate kin(person, person)
rule two_steps: parent(x, y) & parent(y, z) -> grandparent(x, z)
rule chain: kin(x, y) & kin(y, z) -> kin(x, z)
"""


def facts(*rows: tuple[str, str, str]) -> Table:
    head, predicate, tail = zip(*rows, strict=True)
    return Table(pa.table({"head": head, "predicate": predicate, "tail": tail}))


def problem(test: list[tuple[str, str, str]], *more: tuple[str, str, str], theory: str = THEORY) -> Problem:
    known = [("ada", "parent", "ben"), ("ben", "parent", "cleo"), *more]
    return Problem.build("family", parse_theory(theory), [facts(*known)], {"test": [facts(*test)]})


def told(found: Problem, *changes: str) -> str:
    return "\n".join(doubts(found, Options().changed(changes)))


def test_a_rule_with_the_asked_predicate_in_its_body_under_known_body() -> None:
    asked = problem([("ada", "kin", "cleo")], ("ada", "kin", "ben"), ("ben", "kin", "cleo"))
    text = told(asked, "grounding.strategy=known-body")
    assert "1 of 2 rules has a predicate that is asked in its body (chain: kin)" in text
    assert "training.batch_size" in text
    assert told(asked, "grounding.strategy=known-body", "training.batch_size=1") == ""
    assert told(asked, "grounding.strategy=known-body", "model.rules=counted") == ""
    assert told(asked) == ""
    assert told(asked, "grounding.strategy=known-body", "model.layers=0") == ""
    assert told(asked, "grounding.strategy=backward") == ""


@pytest.mark.parametrize("strategy", ["known-body", "backward"])
def test_no_query_is_reached(strategy: str) -> None:
    asked = problem([("cleo", "grandparent", "ada")], ("ada", "grandparent", "cleo"))
    assert f"no ground rule reaches any of the 1 query 'test' ({strategy})" in told(
        asked, f"grounding.strategy={strategy}"
    )
    some = problem([("cleo", "grandparent", "ada"), ("ada", "grandparent", "cleo")], ("ben", "grandparent", "ada"))
    assert told(some, f"grounding.strategy={strategy}") == ""


def test_no_query_is_reached_where_no_rule_holds_its_predicate() -> None:
    asked = problem(
        [("ada", "likes", "ben")], ("ben", "likes", "ada"), theory=f"{THEORY}predicate likes(person, person)"
    )
    assert "no ground rule reaches any of the 1 query 'test' (full)" in told(asked)


def test_an_asked_predicate_of_which_nothing_open_is_known() -> None:
    assert "grandparent is asked, and no open atom of it is known" in told(problem([("ada", "grandparent", "cleo")]))
    asked = problem([("cleo", "parent", "ada")], ("ada", "kin", "ben"))
    assert "1 of 1 query 'test' is closed: what is no fact of parent is false" in told(asked)
    assert "parent is asked" not in told(asked)


def test_a_problem_in_which_there_is_nothing_to_learn() -> None:
    """As a first problem may be: parents are known, they are closed, and the rule is about grandparents."""
    bare = Problem.build("family", parse_theory(THEORY), [facts(("ada", "parent", "ben"), ("ben", "parent", "cleo"))])
    assert "a training has nothing to learn from" in told(bare)
    assert told(bare, "training.ask_closed=true") == ""


def test_a_closed_part_that_holds_all_facts() -> None:
    theory = """\
domain town, region
domain place = town | region
predicate in(place, place) closed(region, region)
"""
    rows = facts(("alps", "in", "europe"), ("andes", "in", "america"))
    asked = facts(("chur", "in", "alps"))
    domains = {"town": ["chur"], "region": ["alps", "andes", "europe", "america"]}
    found = Problem.build("places", parse_theory(theory), [rows], {"test": [asked]}, domains=domains)
    assert "in is asked, and no open atom of it is known" in told(found, "model.layers=0")


def test_a_rule_over_the_budget_is_told_from_its_estimate() -> None:
    asked = problem([("ada", "kin", "cleo")], ("ada", "kin", "ben"))
    text = told(asked, "grounding.max_groundings=5")
    assert "rule 'chain' has 27 groundings, more than max_groundings = 5" in text
    assert told(asked) == ""


def test_what_would_take_long_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem([("cleo", "grandparent", "ada")], ("ada", "grandparent", "cleo"))
    monkeypatch.setattr("r2n.grounding.prospects.MOST_WORK", 1)
    assert told(asked, "grounding.strategy=known-body") == ""


def test_nothing_is_said_of_an_empty_problem() -> None:
    assert doubts(Problem.build("empty", parse_theory("")), Options()) == []
