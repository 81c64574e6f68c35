"""Forbidden candidates: those that break a constraint, by plain loops."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.knowledge_base import KnowledgeBase
from r2n.mining.constraints import KINDS, Constraint, mine_constraints
from r2n.mining.forbidden import Forbidden, forbidden
from tests.examples import at_most
from tests.mining_problems import random_knowledge
from tests.oracles import mining as oracle
from tests.unit.mining.test_constraints import ENOUGH


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
    found = forbidden(chosen, knowledge.base, knowledge.evidence, predicate, position, rows)
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
            found = forbidden((constraint,), knowledge.base, knowledge.evidence, predicate, position, rows)
            assert found.tolist() == expected(knowledge, (constraint,), name, position, rows.tolist()), constraint


def test_facts_are_read_once_and_nothing_is_forbidden_by_nothing() -> None:
    knowledge = random_knowledge(0, 0.5)
    p = knowledge.language.predicate("p")
    constraint = Constraint("functional", ("p",), 1, 0)
    asked = Forbidden((constraint,), knowledge.base, knowledge.evidence)
    rows = np.array([0, 0, 3])
    first = asked.candidates(p, 1, rows)
    assert (first == asked.candidates(p, 1, rows)).all()
    assert (first[0] == first[1]).all()
    assert first.shape == (3, 5)
    assert not forbidden((), knowledge.base, knowledge.evidence, p, 0, rows).any()
