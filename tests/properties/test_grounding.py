"""Each strategy gives exactly what plain loops give, and known-body and its fixpoint exactly what clingo gives."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import event, given
from hypothesis import strategies as st

from r2n.data.herbrand import closed_atoms
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.grounding import store
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Grounder, Grounding, Neighbourhoods
from r2n.grounding.store import Store
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.r2n import R2N
from r2n.options import ModelOptions
from r2n.scoring import AtomLogits
from tests.examples import at_most
from tests.oracles import clingo_judge
from tests.oracles import grounding as oracle
from tests.oracles.grounding import GroundAtom, World
from tests.strategies import (
    Asked,
    asked_worlds,
    candidate_worlds,
    chained_worlds,
    codes_of,
    horn_worlds,
    knowledge_of,
    named_atoms,
    worlds,
)

CANDIDATE_WORLDS = candidate_worlds().map(lambda asks: asks[0])
ASKED_WORLDS = st.one_of(asked_worlds(), asked_worlds(), chained_worlds(), candidate_worlds())
GROUNDERS = st.builds(BackwardGrounder, st.integers(0, 2), st.integers(1, 3))
QUARTER = at_most(50, "each grounds a world by loops, and by clingo")
NamedGrounding = list[list[tuple[GroundAtom, ...]]]


def named(knowledge: KnowledgeBase, grounding: Grounding) -> NamedGrounding:
    """Per rule and ground rule, in the library's order, the names of the atoms by position."""
    result = []
    for part in grounding.ground_rules:
        positions = [named_atoms(knowledge, part.atoms[:, i]) for i in range(part.atoms.shape[1])]
        result.append(list(zip(*positions, strict=True)))
    return result


def run(
    grounder: Grounder, world: World, asked: list[GroundAtom] | None = None, *, asks_closed: bool = True
) -> NamedGrounding:
    knowledge = knowledge_of(world)
    codes = None if asked is None else np.unique(codes_of(knowledge.base, knowledge.language, asked))
    grounding = grounder.ground(Store(knowledge, asks_closed=asks_closed), codes)
    assert [part.rule for part in grounding.ground_rules] == list(world.theory.rules)
    assert len(grounding) == sum(map(len, grounding.ground_rules))
    codes_held = {code for part in grounding.ground_rules for code in part.atoms.ravel().tolist()}
    assert grounding.atoms.tolist() == sorted(codes_held)
    return named(knowledge, grounding)


def note(found: NamedGrounding) -> None:
    event("some ground rules" if any(found) else "no ground rule")


@at_most(250, "each grounds a world by loops, and by clingo")
@given(st.one_of(worlds(), worlds(), CANDIDATE_WORLDS))
def test_full_and_known_body_are_what_loops_and_clingo_find(world: World) -> None:
    judges = {
        FullGrounder(): [oracle.full(world)],
        KnownBodyGrounder(): [
            oracle.known_body(world),
            *([] if world.candidates else [clingo_judge.known_body(world)]),
        ],
    }
    for grounder, expected in judges.items():
        found = run(grounder, world)
        note(found)
        for substitutions in expected:
            assert found == oracle.rows(world, substitutions)
        assert run(grounder, world, asks_closed=False) == oracle.rows(
            world, oracle.without_closed_rules(world, expected[0])
        )
        with patch.object(store, "MOST_ROWS", -1):
            assert run(grounder, world) == found, "by a database"


@at_most(300, "each grounds a world by loops")
@given(ASKED_WORLDS, GROUNDERS)
def test_backward_is_what_loops_find(asks: Asked, grounder: BackwardGrounder) -> None:
    world, asked = asks
    found = run(grounder, world, asked)
    note(found)
    expected = oracle.backward(world, asked, grounder.width, grounder.depth)
    assert found == oracle.rows(world, expected)
    assert run(grounder, world, asked, asks_closed=False) == oracle.rows(
        world, oracle.without_closed_rules(world, expected)
    )
    with patch.object(store, "MOST_ROWS", -1):
        assert run(grounder, world, asked) == found, "by a database"


def with_facts(knowledge: KnowledgeBase, codes: np.ndarray) -> KnowledgeBase:
    """The same knowledge base with these codes as true facts beside the others."""
    atoms = np.union1d(knowledge.evidence.atoms, codes)
    return replace(knowledge, evidence=Evidence(atoms, np.ones(len(atoms), dtype=bool)))


def fixpoint(knowledge: KnowledgeBase) -> set[GroundAtom]:
    """Feed the heads of the known-body ground rules back as facts until nothing changes."""
    while True:
        grounding = KnownBodyGrounder().ground(Store(knowledge, asks_closed=True))
        heads = [part.atoms[:, part.rule.head_positions[0]] for part in grounding.ground_rules]
        more = with_facts(knowledge, np.concatenate([np.zeros(0, dtype=np.int64), *heads]))
        if len(more.evidence.atoms) == len(knowledge.evidence.atoms):
            return set(named_atoms(knowledge, knowledge.evidence.atoms))
        knowledge = more


@given(horn_worlds())
def test_the_fixpoint_of_known_body_is_clingos_least_model(world: World) -> None:
    found = fixpoint(knowledge_of(world))
    event("something follows" if found != world.facts else "nothing follows")
    assert found == clingo_judge.least_model(world)


@QUARTER
@given(asked_worlds())
def test_the_order_of_rules_and_of_queries_is_irrelevant(asks: Asked) -> None:
    world, asked = asks
    backwards = replace(world, theory=replace(world.theory, rules=world.theory.rules[::-1]))
    grounder = BackwardGrounder(width=1, depth=2)
    knowledge = knowledge_of(world)
    codes = codes_of(knowledge.base, knowledge.language, asked)
    store = Store(knowledge, asks_closed=True)
    as_given = named(knowledge, grounder.ground(store, codes))
    twice = named(knowledge, grounder.ground(store, np.concatenate([codes[::-1], codes])))
    assert run(grounder, backwards, asked)[::-1] == as_given == twice


def of_each(known: KnowledgeBase, found: Neighbourhoods, queries: int) -> list[NamedGrounding]:
    """Per query, rule and ground rule the names of the atoms, from the pairs, one by one."""
    union = named(known, found.grounding)
    return [
        [
            [rows[row] for query, row in pairs.tolist() if query == number]
            for rows, pairs in zip(union, found.members, strict=True)
        ]
        for number in range(queries)
    ]


@at_most(100, "each grounds every query alone")
@given(ASKED_WORLDS, GROUNDERS)
def test_each_query_has_the_neighbourhood_that_it_has_alone(asks: Asked, grounder: BackwardGrounder) -> None:
    """The neighbourhood of each query is its grounding alone, and the same with fewer others."""
    world, asked = asks
    known = knowledge_of(world)
    store = Store(known)
    queries = np.unique(codes_of(known.base, known.language, asked))
    queries = queries[:: 1 + len(queries) // 8]  # from everywhere, yet few: each is ground alone
    found = grounder.neighbourhoods(store, queries)
    alone = [named(known, grounder.ground(store, queries[i : i + 1])) for i in range(len(queries))]
    assert of_each(known, found, len(queries)) == alone
    for part, pairs in zip(found.grounding.ground_rules, found.members, strict=True):
        assert pairs.tolist() == sorted(map(list, set(map(tuple, pairs.tolist()))))
        assert set(pairs[:, 1].tolist()) == set(range(len(part))), "no ground rule without a query"
    together = [{row for each in alone for row in each[j]} for j in range(len(world.theory.rules))]
    full = named(known, grounder.ground(store, queries))
    event("more together" if any(len(a) < len(b) for a, b in zip(together, full, strict=True)) else "the union")
    some = grounder.neighbourhoods(store, queries[::2])
    assert of_each(known, some, len(queries[::2])) == alone[::2]


@at_most(60, "each builds a network, and passes it over two graphs")
@given(ASKED_WORLDS, st.sampled_from([FullGrounder(), KnownBodyGrounder(), BackwardGrounder(1, 2)]))
def test_ground_rules_of_closed_atoms_move_no_query(asks: Asked, grounder: Grounder) -> None:
    """Within one layer; further on, they would only change the vectors of atoms whose truth is known."""
    world, asked = asks
    knowledge = knowledge_of(world)
    queries = np.unique(codes_of(knowledge.base, knowledge.language, asked))
    queries = queries[~closed_atoms(knowledge.base, queries)]
    torch.manual_seed(0)
    model = R2N.build(knowledge, ModelOptions(input="mlp", dim=3, layers=1))
    logits = []
    for asks_closed in (True, False):
        source = GroundedOnDemand(Store(knowledge, asks_closed=asks_closed), grounder)
        logits.append(AtomLogits(model, source, knowledge.evidence)(queries))
    event("some queries" if len(queries) else "no query")
    assert logits[1] == pytest.approx(logits[0], abs=1e-5)
