"""Dense grids: what a graph without holes computes over its box of substitutions."""

import numpy as np
import pytest
import torch

import r2n
from r2n.network.factor_graph import FactorGraph
from r2n.network.grid import DenseGrid, GridAtoms, row_dropout
from r2n.network.reasoning import make_layer, reason, takes
from r2n.network.scatter import Incidence
from r2n.options import ModelOptions
from tests.model_strategies import shaken, vectors

THEORY = """\
domain d = {a, b, c}
domain e = {k, l}
predicate p(d, d)
predicate t(d, e)
predicate q(d, d)
predicate alone(d, d)
implicit r: [p(x, y), q(x, y), q(y, x), t(x, m)]
implicit s: [p(x, y), p(y, z)]
"""
KNOWLEDGE = r2n.KnowledgeBase.build(r2n.parse_theory(THEORY))
GRAPH = FactorGraph.from_grounding(r2n.FullGrounder().ground(r2n.Store(KNOWLEDGE)), np.arange(KNOWLEDGE.base.size))
SHALLOW = ModelOptions(dim=3, rule_dim=2, mlp="shallow")


@pytest.mark.parametrize("aggregation", ["sum", "mean", "mean-then-sum"])
@pytest.mark.parametrize("rest", [{"isolated": "keep"}, {"isolated": "zero"}, {"residual": True}])
def test_one_layer_is_that_of_the_index(aggregation: str, rest: dict[str, object]) -> None:
    options = SHALLOW.model_copy(update={"aggregation": aggregation, **rest})
    layer, whole = shaken(make_layer(GRAPH.rules, options), seed=0), DenseGrid.of(GRAPH, KNOWLEDGE.base)
    assert whole is not None
    atoms = []
    for i, grid in enumerate(whole.grids):
        points, predicates = int(np.prod(grid.shape)), len(grid.predicates)
        maps = vectors(predicates * 4, 3, seed=i + 10).view(predicates, 4, 3)
        atoms.append(GridAtoms(vectors(points, 4, seed=i), maps, vectors(predicates, 3, seed=i + 20)))

    def written_out(grids: list[GridAtoms]) -> torch.Tensor:
        parts = [part.features @ part.maps + part.offsets.unsqueeze(1) for part in grids]
        return torch.stack([whole.in_order([part[..., d] for part in parts]) for d in range(3)], dim=1)

    found, rules = reason(whole, layer, atoms)
    expected, expected_rules = layer(written_out(atoms), Incidence.of(GRAPH, dense=False))
    torch.testing.assert_close(written_out(found), expected)
    for ours, theirs in zip(rules, expected_rules, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    "change", [{"mlp": "deep"}, {"aggregation": "max"}, {"exclude_self": True}, {"rule_network": "shared"}]
)
def test_what_leaves_the_form_is_not_taken(change: dict[str, object]) -> None:
    assert takes(make_layer(GRAPH.rules, SHALLOW))
    assert not takes(make_layer(GRAPH.rules, SHALLOW.model_copy(update=change)))


def test_rows_are_dropped_together() -> None:
    torch.manual_seed(0)
    dropped = row_dropout(torch.ones(50, 4, 6), 0.5)
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert bool((dropped == dropped[:, :1]).all()), "one mask for all points of a row"
    assert not bool((dropped == dropped[:1]).all()), "another one for the next row"
    assert 0.4 < float((dropped == 0).float().mean()) < 0.6
    points = torch.randn(2, 3, 4)
    assert row_dropout(points, 0.0) is points


def test_a_graph_in_another_order_has_no_grids() -> None:
    codes = torch.arange(KNOWLEDGE.base.size)
    assert DenseGrid.of(FactorGraph(codes, (), (), ()), KNOWLEDGE.base) is not None
    assert DenseGrid.of(FactorGraph(codes.flip(0), (), (), ()), KNOWLEDGE.base) is None
