"""Layouts of a graph, made when first needed."""

from weakref import ref

import numpy as np
import pytest
import torch

import r2n
from r2n.graph.factor_graph import FactorGraph
from r2n.grounding.ground_rules import Grounding
from r2n.model.input_layer import make_input
from r2n.model.layout import Prepared
from r2n.model.pair_embedding import PairEmbedding
from tests.featured_problem import featured_problem

THEORY = "domain d = {a, b}\npredicate p(d, d)\npredicate u(d)\nimplicit r: [p(x, y), u(x)]\n"


def graph_and_base() -> tuple[FactorGraph, r2n.HerbrandBase]:
    knowledge = r2n.KnowledgeBase.build(r2n.parse_theory(THEORY))
    grounding = r2n.FullGrounder().ground(knowledge)
    return FactorGraph.from_grounding(grounding, np.arange(knowledge.base.size)), knowledge.base


def test_atoms_by_arity() -> None:
    graph, base = graph_and_base()
    unary, binary = Prepared(ref(graph), base, dense=True).by_arity
    assert [part.tolist() for part in unary] == [[4, 5], [1, 1], [[0], [1]]]
    assert [part.tolist() for part in binary] == [[0, 1, 2, 3], [0] * 4, [[0, 0], [0, 1], [1, 0], [1, 1]]]


def test_layouts_are_made_once_and_grids_only_where_dense_is_wanted() -> None:
    graph, base = graph_and_base()
    prepared = Prepared(ref(graph), base, dense=True)
    assert prepared.incidence is prepared.incidence
    assert prepared.whole is not None
    assert Prepared(ref(graph), base, dense=False).whole is None


def test_in_a_language_that_has_grown_constants_have_the_ids_of_the_training() -> None:
    graph, base = graph_and_base()
    assert Prepared(ref(graph), base, dense=True).blank is None
    grown = Prepared(ref(graph), base, dense=True, trained_ids=torch.tensor([-1, 7]))  # a is new, b was the eighth
    unary, binary = grown.by_arity
    assert unary[2].tolist() == [[0], [7]]
    assert binary[2].tolist() == [[0, 0], [0, 7], [7, 0], [7, 7]]
    assert grown.blank is not None
    assert grown.blank.tolist() == [True, True, True, False, True, False]
    assert grown.whole is None, "grids would read vectors by the new ids"


def test_the_graph_is_not_kept_alive() -> None:
    graph, base = graph_and_base()
    prepared = Prepared(ref(graph), base, dense=True)
    assert prepared.whole is not None
    assert prepared.incidence is not None
    del graph
    with pytest.raises(AssertionError, match="holds the graph"):
        _ = prepared.graph


def test_pair_layouts_hold_all_atoms_of_an_arity_and_are_made_once() -> None:
    known = featured_problem().knowledge
    graph = FactorGraph.from_grounding(Grounding(()), atoms=np.arange(known.base.size))
    constants, embedding = make_input(known, "pair", 3)
    assert isinstance(embedding, PairEmbedding)
    prepared = Prepared(ref(graph), known.base, True, embedding)
    assert [len(layout.predicates) for layout in prepared.pairs] == [len(rows) for rows, _, _ in prepared.by_arity]
    assert prepared.pairs is prepared.pairs
    expected = known.base.decode(graph.atoms.numpy())[0]
    assert prepared.predicates.tolist() == expected.tolist()
    assert embedding(prepared.pairs[0], constants).shape == (len(prepared.pairs[0].predicates), 3)
