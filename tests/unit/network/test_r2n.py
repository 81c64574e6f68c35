"""The network: its parts put together, what it reads, and what it refuses."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import ConfigError
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN, FactorGraph
from r2n.network.r2n import R2N, Predictions
from r2n.options import ModelOptions

KNOWLEDGE = KnowledgeBase.build(
    parse_theory(
        """
domain d = {a, b, c}
predicate p(d, d)
predicate q(d)
predicate alone(d)
rule spread: p(x, y) & q(x) -> q(y)
implicit loop: [p(x, x), q(x)]
"""
    )
)
GRAPH = FactorGraph.from_grounding(FullGrounder().ground(Store(KNOWLEDGE)), atoms=np.arange(KNOWLEDGE.base.size))


def network(seed: int = 0, **options: Any) -> R2N:
    torch.manual_seed(seed)
    return R2N.build(KNOWLEDGE, ModelOptions(dim=4, layers=2), **options)


def said(model: R2N, graph: FactorGraph = GRAPH, **given: Any) -> Predictions:
    return model(model.collate(graph), **given)


def states(*known: int) -> Tensor:
    """What is known of the first atoms; nothing of the others."""
    return torch.tensor([*known, *[UNKNOWN] * (len(GRAPH.atoms) - len(known))])


@pytest.mark.parametrize("options", [{"evidence_input": "add"}, {"input": "distmult", "input_score": True}])
def test_embeddings_that_were_made_elsewhere_stand_in_for_those_of_the_input_layer(options: dict[str, Any]) -> None:
    model = network(**options).eval()
    batch = model.collate(GRAPH)
    embedded = model.embed(batch)
    assert torch.allclose(model(batch, embedded=embedded).atoms, model(batch).atoms, atol=1e-6)
    assert not torch.allclose(model(batch, embedded=2 * embedded).atoms, model(batch).atoms, atol=1e-6)


def test_a_kind_that_cannot_be_is_refused() -> None:
    for model in (network(), network(mlp="shallow", rule_network="shared")):
        with pytest.raises(ConfigError, match="cannot be computed over grids\n  take kind='auto'"):
            model.collate(GRAPH, "grid")


@pytest.mark.parametrize("reads", ["add", "only"])
def test_a_hidden_atom_never_tells_its_label(reads: str) -> None:
    model = network(evidence_input=reads)
    hidden = torch.zeros(len(GRAPH.atoms), dtype=torch.bool)
    hidden[0] = True
    answers = [said(model, hidden=hidden, known=states(known)).atoms for known in (UNKNOWN, FALSE, TRUE)]
    assert torch.equal(answers[0], answers[1])
    assert torch.equal(answers[0], answers[2])
    shown = [said(model, known=states(known)).atoms for known in (FALSE, TRUE)]
    assert not torch.equal(*shown)


def test_options_are_given_as_one_object_by_name_or_both() -> None:
    options = ModelOptions(dim=5, layers=1, input="distmult")
    torch.manual_seed(0)
    one = R2N.build(KNOWLEDGE, options)
    torch.manual_seed(0)
    other = R2N.build(KNOWLEDGE, dim=5, layers=1, input="distmult")
    assert torch.equal(said(one).atoms, said(other).atoms)
    assert len(R2N.build(KNOWLEDGE, options, layers=3).layers) == 3
    with pytest.raises(ConfigError, match=r"unknown key 'dimm' in \[model\]\n  did you mean 'dim'\?"):
        network(dimm=3)


def test_evidence_as_input_needs_layers() -> None:
    with pytest.raises(ConfigError) as caught:
        network(evidence_input="add", layers=0)
    assert str(caught.value) == "evidence as input needs reasoning layers\n  set layers to 1 or more"


def test_nothing_is_legal() -> None:
    """No theory, no constants, no atoms."""
    theory = parse_theory("domain d\npredicate p(d, d)")
    knowledge = KnowledgeBase.build(theory)
    empty = FactorGraph.from_grounding(FullGrounder().ground(Store(knowledge)))
    several: list[dict[str, Any]] = [{}, {"layers": 0}, {"reasoner": "fgnn"}, {"evidence_input": "add"}]
    for options in several:
        found = said(R2N.build(knowledge, dim=3, **options), empty)
        assert found.atoms.shape == (0,)
        assert found.rules == ()


def test_an_empty_theory_classifies_from_the_input_layer() -> None:
    """The paper's classification and link prediction: no rule, so out(a) = MLP^A(Emb^0(a))."""
    knowledge = KnowledgeBase.build(parse_theory("domain d = {a, b}\npredicate p(d, d)"))
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(knowledge)), atoms=np.arange(4))
    model = R2N.build(knowledge, dim=3)
    assert model.atom_output is not None
    torch.testing.assert_close(said(model, graph).atoms, model.atom_output(model.embed(model.collate(graph))))
