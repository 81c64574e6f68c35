"""A pass by several networks: a row for each, over one layout."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from r2n.data.problem import Problem
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.network.factor_graph import FactorGraph
from r2n.network.r2n import R2N
from r2n.scoring import Pass

WAYS = [{}, {"input": "mlp"}, {"input": "transe"}, {"evidence_input": "only"}, {"rule_network": "shared"}]


@pytest.mark.parametrize("changes", WAYS, ids=str)
def test_each_network_says_what_it_says_alone(changes: dict[str, Any], toy: Problem) -> None:
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(toy.knowledge)))
    models = []
    for seed in range(3):
        torch.manual_seed(seed)
        models.append(R2N.build(toy.knowledge, dim=6, layers=2, **changes))
    together = Pass.over(graph, models, toy.train)
    alone = [Pass.over(graph, [model], toy.train) for model in models]
    np.testing.assert_array_equal(together.each, np.stack([part.logits for part in alone]))
    np.testing.assert_allclose(together.logits, np.mean([part.logits for part in alone], axis=0), rtol=1e-12)
    assert all(np.array_equal(together.known, part.known) for part in alone)
    assert len({row.tobytes() for row in together.each}) == 3
    codes = graph.atoms.numpy()[::3].copy()
    np.testing.assert_array_equal(graph.atoms.numpy()[together.rows(codes)], codes)


def test_it_is_laid_out_once_and_networks_stay_in_training(toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(toy.knowledge)))
    models = [R2N.build(toy.knowledge, dim=4, layers=1, rule_dropout=0.5).train() for _ in range(2)]
    collated: list[object] = []
    plain = R2N.collate
    monkeypatch.setattr(R2N, "collate", lambda *given: collated.append(given) or plain(*given))
    made = partial(Pass.over, graph, models, toy.train)
    first = made()
    np.testing.assert_array_equal(made(first.layout).each, first.each)
    assert len(collated) == 1
    assert all(model.training for model in models)
