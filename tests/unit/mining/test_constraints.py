"""Constraints: counts and forbidden candidates are those of plain loops, and rules say what they mean."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import r2n
from r2n.data.knowledge_base import KnowledgeBase
from r2n.mining.mine import KINDS, Constrained, Constraint, Kind, constraint_rules, mine_constraints
from tests.examples import at_most
from tests.mining_problems import knowledge_of, random_knowledge
from tests.oracles import mining as oracle

THEORY = """\
domain low = {a, b, c}
domain high = {d, e}
domain all = low | high
predicate p(all, all)
predicate q(all, all)
predicate r(high, low)
predicate s(low, all)
predicate u(low)
"""
ENOUGH = st.builds(random_knowledge, st.integers(0, 2**20), st.sampled_from([0.1, 0.4, 0.8]), st.just(THEORY))


@at_most(60, because="a knowledge base is built for each")
@given(ENOUGH)
def test_counts_are_those_of_plain_loops(knowledge: KnowledgeBase) -> None:
    found = mine_constraints(knowledge, max_exceptions=1.0, min_support=1)
    expected = {constraint for constraint in oracle.constraints(knowledge) if constraint[2] >= 1}
    assert {(c.kind, c.predicates, c.support, c.exceptions) for c in found} == expected
    assert len(found) == len(expected)


def test_exceptions_and_support_are_limited() -> None:
    knowledge = random_knowledge(3, 0.4, THEORY)
    everything = mine_constraints(knowledge, 1.0, 1)
    for share, least in ((0.0, 3), (0.5, 1)):
        expected = [c for c in everything if c.exceptions / c.support <= share and c.support >= least]
        assert list(mine_constraints(knowledge, share, least)) == expected
    assert mine_constraints(knowledge) == mine_constraints(knowledge, 0.0, 3)


@pytest.mark.parametrize(
    ("kind", "predicates", "rule"),
    [
        ("irreflexive", ("p",), "rule c0 [0.75]: !p(x, x)"),
        ("asymmetric", ("p",), "rule c0 [0.75]: p(x, y) -> !p(y, x), x != y"),
        ("functional", ("p",), "rule c0 [0.75]: p(x, y) -> !p(x, z), y != z"),
        ("inverse-functional", ("p",), "rule c0 [0.75]: p(x, y) -> !p(z, y), x != z"),
        ("disjoint", ("p", "q"), "rule c0 [0.75]: p(x, y) -> !q(x, y)"),
    ],
)
def test_rules_are_in_the_language(kind: Kind, predicates: tuple[str, ...], rule: str) -> None:
    ((written, _),) = constraint_rules((Constraint(kind, predicates, 4, 1),), frozenset())
    assert str(written) == rule
    assert r2n.parse_theory(str(written)).rules == (written,)


def test_names_are_not_taken_twice() -> None:
    ((rule, constraint),) = constraint_rules((Constraint("irreflexive", ("p",), 4, 0),), frozenset({"c0"}))
    assert (rule.name, str(constraint)) == ("c1", "irreflexive p: support 4, exceptions 0")


def test_predicates_that_chance_keeps_apart_are_not_called_disjoint() -> None:
    names = ", ".join(f"k{i}" for i in range(20))
    theory = f"domain d = {{{names}}}\npredicate p(d, d)\npredicate q(d, d)\n"
    pairs = np.stack(np.divmod(np.arange(400), 20), axis=1)
    few = knowledge_of(theory, {"p": pairs[:20], "q": pairs[20:60]})
    many = knowledge_of(theory, {"p": pairs[:40], "q": pairs[40:80]})
    kinds = [[c.kind for c in mine_constraints(knowledge)] for knowledge in (few, many)]
    assert ["disjoint" in part for part in kinds] == [False, True]


def expected(
    knowledge: KnowledgeBase, constraints: tuple[Constraint, ...], name: str, position: int, given_constants: list[int]
) -> list[list[bool]]:
    facts, language = oracle.facts_of(knowledge), knowledge.language
    names = language.constants
    asked = language.members(language.predicate(name).domains[position]).tolist()

    def is_broken(fixed: int, free: int) -> bool:
        x, y = (free, fixed) if position == 0 else (fixed, free)
        about = [c for c in constraints if name in c.predicates]
        return any(oracle.breaks(c.kind, facts, c.predicates, name, names[x], names[y]) for c in about)

    return [[is_broken(fixed, free) for free in asked] for fixed in given_constants]


@at_most(40, because="a knowledge base is built for each")
@given(ENOUGH, st.data())
def test_candidates_are_those_that_break_a_constraint(knowledge: KnowledgeBase, data: st.DataObject) -> None:
    mined = mine_constraints(knowledge, max_exceptions=1.0, min_support=1)
    mined += tuple(Constraint("disjoint", pair, 1, 0) for pair in combinations("pq", 2))
    chosen = tuple(data.draw(st.lists(st.sampled_from(mined), max_size=3, unique=True)))
    name, position = data.draw(st.sampled_from("pqrs")), data.draw(st.integers(0, 1))
    predicate = knowledge.language.predicate(name)
    rows = knowledge.language.members(predicate.domains[1 - position])
    number = knowledge.language.predicate_index(name)
    found = Constrained(knowledge, chosen)(number, position, np.stack([rows, rows], axis=1))
    assert found.tolist() == expected(knowledge, chosen, name, position, rows.tolist())


@pytest.mark.parametrize("position", [0, 1])
def test_each_constraint_by_itself_at_either_position(position: int) -> None:
    knowledge = random_knowledge(0, 0.5)
    mined = mine_constraints(knowledge, max_exceptions=1.0, min_support=1)
    mined += tuple(Constraint("disjoint", pair, 1, 0) for pair in combinations("pq", 2))
    assert {constraint.kind for constraint in mined} == set(KINDS)
    for constraint in mined:
        for name in constraint.predicates:
            predicate = knowledge.language.predicate(name)
            rows = knowledge.language.members(predicate.domains[1 - position])
            number = knowledge.language.predicate_index(name)
            found = Constrained(knowledge, (constraint,))(number, position, np.stack([rows, rows], axis=1))
            assert found.tolist() == expected(knowledge, (constraint,), name, position, rows.tolist()), constraint
