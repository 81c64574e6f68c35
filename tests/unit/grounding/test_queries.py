"""Queries for substitutions: relations, joins of arrays, SQL and estimates; codes, links and their order."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import r2n
from r2n.errors import GroundingError, MemoryLimitError
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Adjacency, Grounder, distinct_codes
from r2n.grounding.joins import (
    Kind,
    Relation,
    RuleQuery,
    Substitutions,
    TooManyRowsError,
    check_budget,
    joined,
    rows_among,
    sorted_substitutions,
)
from r2n.grounding.store import MOST_ROWS, MemoryBudget, Store
from r2n.logic.language import Domain
from tests.theory_strategies import dice
from tests.unit.grounding.small_knowledge import knowledge

GRAPH = "domain d = {a, b, c}\npredicate p(d, d)\npredicate q(d, d)\npredicate t(d, d, d)\n"


def known_bodies(kb: r2n.KnowledgeBase, most_rows: int = MOST_ROWS) -> Substitutions:
    return joined(KnownBodyGrounder().query(Store(kb), kb.theory.rules[0]), kb.language, most_rows)


def graph(rule: str, facts: str, false: str = "") -> r2n.KnowledgeBase:
    return knowledge(f"rule r: {rule}\n", facts, false, theory=GRAPH)


def test_a_rule_without_variables_has_one_substitution_or_none() -> None:
    for facts, count in (("p(a,b)", 1), ("p(b,a)", 0)):
        kb = graph('p("a", "b") -> q("a", "a")', facts)
        assert known_bodies(kb).shape == (count, 0)


@pytest.mark.parametrize("rule", ["p(x, y) & q(y, z) -> p(x, z)", "p(x, y) & q(z, w) -> p(x, w)", "p(x, y) -> p(x, z)"])
def test_a_join_that_memory_may_not_hold_is_left_to_others(rule: str) -> None:
    kb = graph(rule, "p(a,b) p(c,b) q(b,a) q(b,c)")
    count = len(known_bodies(kb))
    assert len(known_bodies(kb, most_rows=count)) == count
    with pytest.raises(TooManyRowsError):
        known_bodies(kb, most_rows=count - 1)


D = Domain("d")
RELATION = Relation(
    "r", (D, D), 4, np.array([2, 4, 6]), np.array([[0, 2], [1, 0], [1, 2]]), lambda columns: columns[0] * 4 + columns[1]
)


def test_without_some_atoms_it_is_as_if_made_of_the_others() -> None:
    kept = RELATION.without(np.array([3, 4]))
    made = Relation("r", (D, D), 4, np.array([2, 6]), np.array([[0, 2], [1, 2]]), RELATION.encode)
    assert (kept.codes.tolist(), kept.rows.tolist()) == (made.codes.tolist(), made.rows.tolist())
    for position in (0, 1):
        assert [part.tolist() for part in kept.index(position)] == [part.tolist() for part in made.index(position)]
        assert kept.distinct(position) == made.distinct(position)
    again = kept.without(np.array([2]))
    assert [part.tolist() for part in again.index(1)] == [[0], [0, 0, 0, 1, 1]]
    assert len(again.without(np.array([6]))) == 0
    assert RELATION.without(np.array([3, 5])) is RELATION, "it holds none of them"


KB = knowledge("rule r: smokes(x) & knows(x, y) -> smokes(y)\n", "smokes(ann) smokes(bob) knows(ann,bob) knows(ann,cy)")
TYPED = "domain town = {a, b}\ndomain land = {l}\ndomain place = town | land\npredicate p(place)\npredicate q(town)\n"


def query(kb: r2n.KnowledgeBase) -> RuleQuery:
    return KnownBodyGrounder().query(Store(kb), kb.theory.rules[0])


def test_a_query_knows_what_it_seeks_and_estimates_how_many_there_are() -> None:
    assert query(KB).estimate() == 4, "2 smokers times 2 pairs, over 1 distinct first constant"
    ranging = {"p(x) -> p(y)": ["y"], "p(x: town) -> p(x)": ["x"], "p(x) & q(x) -> p(x)": []}  # p holds it to places
    for rule, expected in ranging.items():
        found = query(knowledge(f"rule r: {rule}", theory=TYPED)).ranging
        assert [str(atom.terms[0]) for _, atom in found] == expected
    store, (rule,) = Store(KB), KB.theory.rules
    fact = store.relation(Kind.FACT, rule.atoms[0].predicate), rule.atoms[0]
    assert RuleQuery(rule, (), ()).is_free
    assert not RuleQuery(rule, ("x",), store.domains(rule)[:1]).is_free
    assert not RuleQuery(rule, (), (), absent=(fact,)).is_free


@pytest.mark.parametrize("constants", [4, 2**40])
@pytest.mark.parametrize("distinct", [False, True])
@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 2), max_size=12))
def test_substitutions_are_sorted(rows: list[tuple[int, int]], distinct: bool, constants: int) -> None:
    found = sorted_substitutions(np.array(rows, np.int64).reshape(-1, 2), constants, distinct=distinct)
    assert [tuple(row) for row in found.tolist()] == sorted(set(rows) if distinct else rows)


def test_substitutions_of_no_variable_keep_their_number() -> None:
    nothing = np.zeros((3, 0), np.int64)
    assert sorted_substitutions(nothing, 5).shape == (3, 0)
    assert sorted_substitutions(nothing, 5, distinct=True).shape == (1, 0)


@pytest.mark.parametrize("constants", [4, 2**40])
@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=1, max_size=12), data=st.data())
def test_places_are_those_in_a_sorted_list(rows: list[tuple[int, int]], constants: int, data: st.DataObject) -> None:
    among = sorted(set(rows))
    some = data.draw(st.lists(st.sampled_from(among), max_size=8))
    found = rows_among(np.array(some, np.int64).reshape(-1, 2), np.array(among, np.int64), constants)
    assert found.tolist() == [among.index(row) for row in some]


def test_the_budget_is_what_may_be_reached() -> None:
    (rule,) = knowledge("rule r: smokes(x) -> smokes(y)\n").theory.rules
    check_budget(rule, 9, 9, exact=True)
    what = "rule 'r' has about 1,000 groundings, more than max_groundings = 999"
    with pytest.raises(GroundingError, match=rf"{what}\n  narrow the domains.*close a predicate.*another strategy"):
        check_budget(rule, 1000, 999, exact=False)


@given(dice())
def test_links_are_followed_as_a_dictionary_would(dice: Random) -> None:
    count = dice.randrange(1, 6)
    pairs = [(dice.randrange(count), dice.randrange(9)) for _ in range(dice.randrange(12))]
    by_source = {i: [target for source, target in pairs if source == i] for i in range(count)}
    sources, targets = np.array(pairs, np.int64).reshape(-1, 2).T
    asked = np.array([dice.randrange(count) for _ in range(dice.randrange(5))], np.int64)
    places, found = Adjacency.build(sources, targets, count).follow(asked)
    expected = [(place, target) for place, source in enumerate(asked.tolist()) for target in by_source[source]]
    assert list(zip(places.tolist(), found.tolist(), strict=True)) == expected


@given(st.lists(st.lists(st.integers(0, 50) | st.integers(0, 2**62), max_size=8), max_size=3))
def test_distinct_codes_are_sorted_and_distinct(parts: list[list[int]]) -> None:
    found = distinct_codes([np.array(part, np.int64) for part in parts])
    assert found.tolist() == sorted({code for part in parts for code in part})


@pytest.mark.parametrize("grounder", [FullGrounder(), KnownBodyGrounder()])
def test_ground_rules_of_all_rules_are_held_under_the_ceiling(grounder: Grounder) -> None:
    """Each rule fits, but not all of them."""
    rules = "".join(f"rule r{j}: smokes(x) -> smokes(x)\n" for j in range(50))
    known = knowledge(rules, "smokes(ann) smokes(bob)")
    grounder.ground(Store(known, ceiling=MemoryBudget(50 * 2 * 2 * 8 * 3)))
    message = r"ground rules of \d+ rules needs about .*\n  ground less"
    with pytest.raises(MemoryLimitError, match=message):
        grounder.ground(Store(known, ceiling=MemoryBudget(400)))
