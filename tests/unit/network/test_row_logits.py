"""Rows of atoms in no ground rule: the same logits as atom by atom, for every network that can."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from r2n import scoring
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.logic.parser import parse_theory
from r2n.network.graph_sources import Ungrounded
from r2n.network.r2n import R2N
from r2n.scoring import AtomLogits, IsolatedRows
from tests.model_strategies import shaken

KNOWLEDGE = KnowledgeBase.build(
    parse_theory(
        "domain d = {a, b, c}\ndomain e = {b, x}\npredicate p(d, e)\npredicate u(d)\npredicate q(e, e)\n"
        "rule r: p(x, y) & u(x) -> q(y, y)"
    )
)
NETWORKS: dict[str, dict[str, Any]] = {
    "no layers": {"reasoner": "none"},
    "kept": {"layers": 2},
    "kept, linear": {"layers": 1, "output": "linear"},
    "kept by a residual": {"layers": 2, "residual": True, "isolated": "zero"},
    "kept, with the score": {"layers": 1, "input_score": True},
    "kept, linear, with the score": {"layers": 1, "output": "linear", "input_score": True},
    "empty sum": {"layers": 2, "isolated": "zero"},
    "empty sum of evidence": {"layers": 2, "isolated": "zero", "evidence_input": "add"},
    "empty sum of beliefs": {"layers": 2, "isolated": "zero", "reasoner": "fgnn", "input_score": True},
    "empty sum, with the score": {"layers": 2, "isolated": "zero", "input_score": True},
}


def network(**options: Any) -> R2N:
    return shaken(R2N.build(KNOWLEDGE, dim=4, **options), seed=0)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("kind", ["distmult", "complex", "transe", "rotate"])
def test_rows_equal_atoms_one_by_one(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "FEATURES_AT_ONCE", 30)  # a few rows at once
    model, language = network(input=kind, **NETWORKS[name]), KNOWLEDGE.language
    isolated, by_atom = IsolatedRows.of(model), AtomLogits(model, Ungrounded(), Evidence.empty())
    assert isolated is not None
    for index, predicate in enumerate(language.predicates):
        assert isolated.answers(index)
        every = np.array(list(product(*(language.members(domain) for domain in predicate.domains))), np.int64)
        for position, domain in enumerate(predicate.domains):
            found = isolated(index, position, torch.from_numpy(every))
            for row, constants in zip(found, every, strict=True):
                atoms = np.repeat(constants[None], len(row), axis=0)
                atoms[:, position] = language.members(domain)
                expected = by_atom(KNOWLEDGE.base.encode(predicate, atoms))
                np.testing.assert_allclose(row.numpy(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"input": "mlp", "reasoner": "none"},
        {"layers": 1, "evidence_input": "add"},
        {"layers": 1, "evidence_input": "only"},
        {"layers": 1, "reasoner": "fgnn"},
    ],
)
def test_networks_that_read_more_than_vectors_have_none(options: dict[str, Any]) -> None:
    assert IsolatedRows.of(network(**options)) is None


def test_a_language_that_has_grown_has_none() -> None:
    model = network(reasoner="none")
    assert IsolatedRows.of(model.on_base(KNOWLEDGE.base, torch.tensor([0, 1, -1, 2]))) is None


def test_three_positions_beside_layers_are_asked_atom_by_atom() -> None:
    knowledge = KnowledgeBase.build(
        parse_theory("domain d = {a, b}\npredicate t(d, d, d)\nrule r: t(x, y, z) -> t(z, y, x)")
    )
    kept, alone = (
        IsolatedRows.of(R2N.build(knowledge, dim=4, input="distmult", reasoner=reasoner))
        for reasoner in ("r2n", "none")
    )
    assert kept is not None
    assert alone is not None
    assert not kept.answers(0)
    assert alone.answers(0)


def test_the_vectors_are_those_of_no_training_and_the_training_goes_on() -> None:
    model = network(reasoner="none", constant_dropout=0.9).train()
    isolated = IsolatedRows.of(model)
    assert isolated is not None
    assert torch.equal(isolated.vectors, model.constants.vectors)
    assert model.training


def test_equal_candidates_have_equal_logits() -> None:
    """Whole numbers are summed exactly in any order."""
    model = R2N.build(KNOWLEDGE, dim=4, reasoner="none", input="complex")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.ones_like(parameter) * 3)
    found = AtomLogits(model, Ungrounded(), Evidence.empty()).rows(0, 0, np.zeros((1, 2), np.int64))
    assert found.dtype == np.float32
    assert len(set(found.ravel().tolist())) == 1
