"""A graph laid out for a network: its atoms by arity, what has no vector, and parts that are made when first needed."""

from typing import Any

import numpy as np
import torch

import r2n
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.network.collate import GraphBatch
from r2n.network.factor_graph import FactorGraph
from r2n.network.input_layers import AtomBatch
from r2n.network.r2n import R2N

THEORY = "domain d = {a, b}\npredicate p(d, d)\npredicate u(d)\nimplicit r: [p(x, y), u(x)]\n"


def network_and_graph(**options: Any) -> tuple[R2N, FactorGraph]:
    knowledge = r2n.KnowledgeBase.build(r2n.parse_theory(THEORY))
    grounding = FullGrounder().ground(Store(knowledge))
    graph = FactorGraph.from_grounding(grounding, np.arange(knowledge.base.size))
    return R2N.build(knowledge, dim=3, layers=1, **options), graph


def arguments(layout: GraphBatch) -> list[list[list[int]]]:
    """The constants of the atoms, arity by arity."""
    found = [part.constants.places for _, part in layout.by_arity if isinstance(part, AtomBatch)]
    return [places.tolist() for places in found if places is not None]


def test_a_pass_over_grids_makes_no_other_part_but_one_that_hides_atoms_does() -> None:
    model, graph = network_and_graph(mlp="shallow")
    layout = model.collate(graph)
    model(layout)
    assert "incidence" not in vars(layout)
    model(layout, hidden=torch.zeros(len(graph.atoms), dtype=torch.bool))
    assert "incidence" in vars(layout)


def test_in_a_language_that_has_grown_constants_have_the_ids_of_the_training() -> None:
    model, graph = network_and_graph(mlp="shallow")
    assert model.collate(graph).blank is None
    layout = model.on_base(model.base, torch.tensor([-1, 7])).collate(graph)  # a is new, b was the eighth
    assert arguments(layout) == [[[0], [7]], [[0, 0], [0, 7], [7, 0], [7, 7]]]
    assert layout.blank is not None
    assert layout.blank.tolist() == [True, True, True, False, True, False]
    assert layout.kind == "dense", "grids would read vectors by the new ids"
    assert model.collate(graph).kind == "grid", "the network itself is as it was"


def test_a_layout_moves_and_its_graph_stays() -> None:
    model, graph = network_and_graph(mlp="shallow")
    layout = model.collate(graph)
    assert layout.to("cpu") is layout
    moved = layout.to("meta")
    assert moved.graph is graph
    assert moved.whole is not None
    parts = [moved.predicates, moved.incidence.rows, moved.whole.grids[0].index, moved.whole.received[0]]
    assert {part.device.type for part in parts} == {"meta"}
    assert model.to("meta").collate(graph).device.type == "meta"
