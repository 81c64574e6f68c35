"""The input layer of a name, with and without features."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.network.factor_graph import FactorGraph
from r2n.network.r2n import R2N
from r2n.options import ModelOptions
from tests.featured_problem import featured_problem

PROBLEM = featured_problem()
KNOWN = PROBLEM.knowledge
GRAPH = FactorGraph.from_grounding(FullGrounder().ground(Store(KNOWN)), atoms=np.arange(KNOWN.base.size))


def network(**options: Any) -> R2N:
    torch.manual_seed(0)
    encoders = {"image": nn.Sequential(nn.Flatten(), nn.Linear(16, 2))}
    return R2N.build(KNOWN, ModelOptions(dim=4, layers=1), encoders=encoders, **options)


def said(model: R2N, graph: FactorGraph = GRAPH) -> Tensor:
    return model(model.collate(graph)).atoms


@pytest.mark.parametrize("name", ["distmult", "mlp", "pair"])
@pytest.mark.parametrize("reasoner", ["r2n", "fgnn", "none"])
def test_gradients_reach_the_encoders_through_every_network(name: str, reasoner: Any) -> None:
    model = network(input=name, reasoner=reasoner)
    said(model).square().sum().backward()
    below = [item for item in model.named_parameters() if item[0].startswith(("constants", "atom_embedding"))]
    reached = [n for n, p in below if p.grad is not None and bool(p.grad.abs().sum() > 0)]
    assert any("module" in name for name in reached), "the caller's module"
    assert any("first" in name for name in reached), "the own encoders"
    assert "constants.vectors" in reached, "constants without features"


def test_the_score_of_the_classifier_is_the_output_without_reasoning_and_is_added_with_input_score() -> None:
    model = network(input="pair", reasoner="none").eval()
    index = torch.from_numpy(KNOWN.base.decode(GRAPH.atoms.numpy())[0])
    expected = model.atom_embedding.score(model.embed(model.collate(GRAPH)), index)
    torch.testing.assert_close(said(model), expected)
    model = network(input="pair", input_score=True).eval()
    both = said(model)
    score = model.atom_embedding.score(model.embed(model.collate(GRAPH)), index)
    model.input_score = False
    torch.testing.assert_close(both - said(model), score, rtol=1e-4, atol=1e-5)
