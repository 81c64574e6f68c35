"""Gradients are the slopes of what they are gradients of: finite differences in float64."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call

from r2n.components import input_layers
from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.network.constant_embedding import ConstantEmbedding
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN, FactorGraph
from r2n.network.mlp import Output
from r2n.network.r2n import R2N, EvidenceInput
from r2n.network.scatter import Incidence, by_segment
from r2n.network.tensors import sparse_product
from r2n.training.objective import binary_cross_entropy, n3_penalty, softmax_loss
from tests.model_strategies import AGGREGATIONS, layer_for, shaken, vectors
from tests.oracles.message_passing import Choices

THEORY = parse_theory(
    """
domain d = {a, b}
predicate p(d, d)
predicate q(d)
predicate alone(d)
rule loop: p(x, y) & q(x) -> q(y)
rule one: q("a") | p(x, x), x != "b"
implicit twice: [p(x, y), p(y, x)]
"""
)


def toy() -> tuple[KnowledgeBase, FactorGraph]:
    """All ground atoms; a box, scattered ground rules, an atom twice in one, and atoms in none."""
    knowledge = KnowledgeBase.build(THEORY)
    grounding = FullGrounder().ground(Store(knowledge))
    graph = FactorGraph.from_grounding(grounding, atoms=np.arange(knowledge.base.size))
    assert [shape is None for shape in graph.shapes] == [False, True, False]
    return knowledge, graph


def check_module(module: nn.Module, call: Callable[[dict[str, Tensor], Tensor], Tensor], x: Tensor) -> None:
    names = [name for name, _ in module.named_parameters()]
    values = [parameter.detach().clone().requires_grad_() for _, parameter in module.named_parameters()]

    def function(x: Tensor, *values: Tensor) -> Tensor:
        return call(dict(zip(names, values, strict=True)), x)

    assert gradcheck(function, (x.requires_grad_(), *values), fast_mode=True)


@pytest.mark.parametrize(("ordered", "dense"), [(True, True), (True, False), (False, False), (False, True)])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_reasoning_layer(aggregation: str, ordered: bool, dense: bool) -> None:
    _, graph = toy()
    chosen = Choices(aggregation, residual=not dense, isolated="keep", ordered=ordered)
    layer = layer_for(graph, chosen, seed=5, dim=2)
    incidence = Incidence.from_graph(graph, dense=dense)

    def call(parameters: dict[str, Tensor], atoms: Tensor) -> Tensor:
        updated, rules = functional_call(layer, parameters, (atoms, incidence))
        return torch.cat([updated, *rules])  # dim = rule_dim here

    check_module(layer, call, vectors(len(graph.atoms), 2, seed=6))


@pytest.mark.parametrize("name", [name for name in input_layers if not input_layers[name].reads_features])
@pytest.mark.parametrize("arity", [1, 2])
def test_atom_embeddings_and_their_scores(name: str, arity: int) -> None:
    same_arity = [predicate for predicate in THEORY.predicates if predicate.arity == arity]
    embedding = input_layers[name].load()(same_arity, 3)
    constants = ConstantEmbedding(3 * arity, embedding.constant_dim, dropout=0.0)
    predicates = torch.tensor([0, len(same_arity) - 1, 0])
    atoms = embedding.collate(predicates, torch.arange(3 * arity).view(3, arity), constants)

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.constants = embedding, constants

        def forward(self, factor: Tensor) -> Tensor:
            found = self.embedding(atoms, self.constants) * factor
            return torch.cat([found.flatten(), self.embedding.score(found, predicates)])

    both = shaken(Both(), seed=1)
    check_module(both, lambda parameters, x: functional_call(both, parameters, (x,)), vectors(3, 1, seed=2))


@pytest.mark.parametrize("linear", [False, True])
def test_outputs(linear: bool) -> None:
    module = shaken(Output(3, linear=linear), seed=3)
    check_module(module, lambda parameters, x: functional_call(module, parameters, (x,)), vectors(4, 3, seed=4))


SLOTS = torch.tensor([[0, 2], [1, 3], [0, 0], [4, 2]])  # one slot twice in a ground rule, slot 5 in none
BY_SLOT = by_segment(SLOTS.flatten(), 6)
SEGMENT = torch.tensor([3, 0, 3, 3, 1])  # segment 2 is empty
ALLOWED = torch.tensor([[True, True, False], [False, False, False], [True, False, True]])
FUNCTIONS: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "gather_sum": (
        lambda table: sparse_product(table, (SLOTS, None, None), (BY_SLOT[0] // 2, BY_SLOT[1], None)),
        (vectors(6, 2, seed=0),),
    ),
    "segment_sum": (
        lambda rows: sparse_product(rows, (*by_segment(SEGMENT, 4), None), (SEGMENT.unsqueeze(1), None, None)),
        (vectors(5, 2, seed=0),),
    ),
    "cross entropy": (
        lambda out: binary_cross_entropy(out, torch.tensor([True, False, True, False])),
        (vectors(1, 4, seed=0)[0],),
    ),
    "softmax_loss": (lambda t, c: softmax_loss(t, c, ALLOWED), (vectors(1, 3, seed=0)[0], vectors(3, 3, seed=1))),
    "n3_penalty": (n3_penalty, (vectors(3, 2, seed=0),)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function, given = FUNCTIONS[name]
    assert gradcheck(function, tuple(part.requires_grad_() for part in given))


@pytest.mark.parametrize("reads", ["off", "add", "only"])
def test_the_whole_network_under_both_losses(reads: EvidenceInput) -> None:
    """From the constants' vectors to L_sup + L_sem, with hidden atoms and evidence as input."""
    knowledge, graph = toy()
    network = shaken(R2N.build(knowledge, dim=2, layers=2, evidence_input=reads), seed=7)
    rows = torch.arange(len(graph.atoms))
    hidden, known = rows % 3 == 0, torch.tensor([UNKNOWN, FALSE, TRUE])[rows % 3]
    names, batch = [name for name, _ in network.named_parameters()], network.collate(graph)

    def total(*values: Tensor) -> Tensor:
        parameters = dict(zip(names, values, strict=True))
        found = functional_call(network, parameters, (batch,), {"hidden": hidden, "known": known})
        out = torch.cat(found.rules)
        semantic = binary_cross_entropy(out, torch.arange(len(out)) % 3 == 0)
        return binary_cross_entropy(found.atoms, rows % 2 == 0) + 0.3 * semantic

    values = [parameter.detach().clone().requires_grad_() for parameter in network.parameters()]
    assert gradcheck(total, values, fast_mode=True)
