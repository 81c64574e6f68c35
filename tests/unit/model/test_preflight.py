"""What cannot work, told before a training."""

import pyarrow as pa
import pytest

from r2n.data.candidates import Candidates
from r2n.data.problem import Problem
from r2n.data.tables import Table
from r2n.datasets.benchmarks import load
from r2n.logic.parser import parse_theory
from r2n.model.choices import choose_options
from r2n.model.preflight import preflight_warnings
from r2n.options import Options
from tests.candidate_problem import things_problem

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
    return "\n".join(preflight_warnings(found, Options().changed(changes)))


def test_a_rule_with_the_asked_predicate_in_its_body_under_known_body() -> None:
    asked = problem(
        [("ada", "kin", "cleo")], ("ada", "kin", "ben"), ("ben", "kin", "cleo"), ("ada", "grandparent", "cleo")
    )
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
    kin = [("ada", "kin", "ben"), ("ben", "kin", "cleo"), ("ada", "kin", "cleo")]
    two = [("cleo", "grandparent", "ada"), ("ada", "grandparent", "cleo")]
    some = problem(two, ("ben", "grandparent", "ada"), *kin)
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
    known = [("ada", "grandparent", "cleo"), ("cleo", "kin", "ben")]
    asked = problem([("cleo", "grandparent", "ada")], *known)
    assert "rule 'chain' has no ground rule" in told(asked, "grounding.strategy=known-body")
    monkeypatch.setattr("r2n.model.preflight.MOST_WORK", 1)
    monkeypatch.setattr("r2n.grounding.strategies.MOST_WORK", 1)
    assert told(asked, "grounding.strategy=known-body") == ""


def test_nothing_is_said_of_an_empty_problem() -> None:
    assert preflight_warnings(Problem.build("empty", parse_theory("")), Options()) == []


def test_a_closed_body_predicate_without_a_fact() -> None:
    theory = THEORY.replace("kin(person, person)", "kin(person, person) closed")
    asked = problem([("ada", "grandparent", "cleo")], ("ben", "grandparent", "ada"), theory=theory)
    for change in ("grounding.strategy=full", "grounding.strategy=backward", "model.rules=counted"):
        text = told(asked, change)
        assert "rule 'chain' has no ground rule: kin is closed, and no fact of it is known" in text, change
        assert "add facts of kin to [facts] train, or take 'closed' from its declaration" in text
        assert "two_steps" not in text
    assert told(asked, "model.layers=0") == ""


def test_a_closed_negative_literal_needs_no_fact() -> None:
    theory = f"{THEORY}predicate dead(person) closed\nrule alive: grandparent(x, y) & !dead(y) -> kin(x, y)\n"
    asked = problem([("ada", "kin", "cleo")], ("ada", "kin", "ben"), ("ada", "grandparent", "ben"), theory=theory)
    assert told(asked) == ""


def test_a_rule_that_backward_grounding_meets_nowhere() -> None:
    asked = problem([("ada", "kin", "cleo")], ("ada", "kin", "ben"), ("ben", "kin", "cleo"))
    text = told(asked, "grounding.strategy=backward")
    assert "rule 'two_steps' has no ground rule under backward grounding" in text
    assert "add facts or queries of grandparent" in text
    assert "chain" not in text


def test_a_rule_without_ground_rule_under_the_strategy() -> None:
    asked = problem([("ada", "grandparent", "cleo")], ("ben", "grandparent", "ada"))
    text = told(asked, "grounding.strategy=known-body")
    assert "rule 'chain' has no ground rule under known-body grounding: no fact of kin is known" in text
    assert "add facts of kin to [facts] train, or take grounding.strategy 'full'" in text
    assert "rule 'chain' has no ground rule where rules are counted: no fact of kin is known" in told(
        asked, "model.rules=counted"
    )
    assert told(asked) == ""


@pytest.mark.parametrize("strategy", ["full", "known-body", "backward"])
def test_a_rule_whose_body_no_facts_meet(strategy: str) -> None:
    """The facts of both predicates are there, and none of them follow one another."""
    theory = f"{THEORY}predicate boss(person, person) closed\nrule r: boss(x, y) & parent(y, z) -> kin(x, z)\n"
    known = [("dan", "boss", "cleo"), ("ada", "kin", "ben"), ("ben", "kin", "cleo"), ("ada", "grandparent", "cleo")]
    asked = problem([("ada", "kin", "cleo")], *known, theory=theory)
    text = told(asked, f"grounding.strategy={strategy}", "training.batch_size=1")
    assert "rule 'r' has no ground rule: no facts meet its body" in text
    assert "chain" not in text
    assert "two_steps" not in text


def test_many_rules_without_ground_rule_are_one_sentence() -> None:
    rules = "".join(f"rule more{i}: dead(x) -> kin(x, x)\n" for i in range(5))
    asked = problem(
        [("ada", "kin", "cleo")], ("ada", "kin", "ben"), theory=f"{THEORY}predicate dead(person) closed\n{rules}"
    )
    text = told(asked)
    assert "5 rules (more0, more1, more2, ...) have no ground rule: dead is closed" in text
    assert len(text.splitlines()) == 1


def test_a_predicate_of_which_no_negative_can_be_drawn() -> None:
    theory = """\
domain person
domain club
predicate member(person, club)
"""
    rows = facts(("ada", "member", "chess"), ("ben", "member", "chess"))
    found = Problem.build("clubs", parse_theory(theory), [rows], {"test": [facts(("cleo", "member", "chess"))]})
    text = told(found, "training.corrupted_positions=[-1]")
    assert "no negative of member can be drawn" in text
    assert "training would see only true atoms of it and learn that it is always true" in text
    assert "position -1 has one constant (club)" in text
    assert "training.corrupted_positions" in text
    assert told(found) == ""
    assert told(found, "training.corrupted_positions=[-1]", "grounding.reciprocal=true") == ""
    assert "no negative of member can be drawn" in told(found, "training.corrupted_positions=[]")


def test_labelled_false_facts_are_negatives() -> None:
    rows = Table(pa.table({"a": ["ada", "ben"], "b": ["chess", "chess"], "label": [1, 0]}), "member")
    theory = parse_theory("domain person\ndomain club\npredicate member(person, club)\n")
    found = Problem.build("clubs", theory, [rows])
    assert told(found, "training.corrupted_positions=[]") == ""


def test_an_empty_split() -> None:
    nothing = Table(pa.table({"head": pa.array([], pa.string()), "tail": pa.array([], pa.string())}), "kin")
    theory, known = parse_theory(THEORY), facts(("ada", "kin", "ben"), ("ben", "parent", "cleo"))
    found = Problem.build("family", theory, [known], {"valid": [nothing], "test": [facts(("ada", "kin", "cleo"))]})
    assert "the split 'valid' holds no query: add rows to its table, or leave it out of [queries]" in told(found)
    bare = Problem.build("family", theory, [], {"test": [facts(("ada", "kin", "cleo"))]})
    assert "kin is asked, and no open atom of it is known" in told(bare)


@pytest.mark.parametrize("name", ["countries-s1", "countries-s2", "countries-s3", "nations", "kinship", "umls"])
def test_nothing_is_said_of_the_packaged_problems(name: str) -> None:
    found = load(name)
    assert preflight_warnings(found, choose_options(found, found.options)[0]) == []


def test_a_rule_that_candidates_leave_without_a_ground_rule() -> None:
    labels = {("red_car", "blue_car"): True, ("red_bus", "old_tram"): False}
    found = things_problem(labels, {("blue_bus", "tram"): True, ("tram", "red_car"): False}, Candidates())
    said = " ".join(preflight_warnings(found, found.options))
    assert "rule 'transitive' has no ground rule: no atoms that are candidates of same meet in it" in said
    assert "right order" not in said


def test_validation_queries_that_are_trained_on() -> None:
    rows = [("a", "p", "b"), ("b", "p", "c"), ("c", "p", "a")]
    queries = {"valid": [facts(("a", "p", "c"))], "test": [facts(("b", "p", "a"))]}
    theory, options = parse_theory(""), Options().changed(["training.with_valid=true"])
    both, one = (
        Problem.build("p", theory, [facts(*rows)], {n: queries[n] for n in names}) for names in (queries, ["test"])
    )
    assert "1 query of 'valid' used for training" in " ".join(preflight_warnings(both, options))
    assert "training.with_valid changes nothing" in " ".join(preflight_warnings(one, options))
    assert "with_valid" not in " ".join(preflight_warnings(both, Options()))
