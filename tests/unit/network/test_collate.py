"""A graph collated for a network: its atoms by arity, what has no vector, and parts that are made when first needed."""

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


def arguments(batch: GraphBatch) -> list[list[list[int]]]:
    """The constants of the atoms, arity by arity."""
    found = [part.constants.index for _, part in batch.by_arity if isinstance(part, AtomBatch)]
    return [index.tolist() for index in found if index is not None]


def test_a_pass_over_grids_makes_no_other_part_but_one_that_hides_atoms_does() -> None:
    model, graph = network_and_graph(mlp="shallow")
    batch = model.collate(graph)
    model(batch)
    assert "incidence" not in vars(batch)
    model(batch, hidden=torch.zeros(len(graph.atoms), dtype=torch.bool))
    assert "incidence" in vars(batch)


def test_in_a_language_that_has_grown_constants_have_the_ids_of_the_training() -> None:
    model, graph = network_and_graph(mlp="shallow")
    assert model.collate(graph).masked is None
    batch = model.on_base(model.base, torch.tensor([-1, 7])).collate(graph)  # a is new, b was the eighth
    assert arguments(batch) == [[[0], [7]], [[0, 0], [0, 7], [7, 0], [7, 7]]]
    assert batch.masked is not None
    assert batch.masked.tolist() == [True, True, True, False, True, False]
    assert batch.kind == "dense", "grids would read vectors by the new ids"
    assert model.collate(graph).kind == "grid", "the network itself is as it was"


def test_a_batch_moves_and_its_graph_stays() -> None:
    model, graph = network_and_graph(mlp="shallow")
    batch = model.collate(graph)
    assert batch.to("cpu") is batch
    moved = batch.to("meta")
    assert moved.graph is graph
    assert moved.dense_grid is not None
    parts = [moved.predicates, moved.incidence.rows, moved.dense_grid.grids[0].index, moved.dense_grid.received[0]]
    assert {part.device.type for part in parts} == {"meta"}
    assert model.to("meta").collate(graph).device.type == "meta"
