"""Logits of atoms and of the candidates of queries."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from r2n import scoring
from r2n.data.herbrand import QueryPattern
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.data.problem import Problem
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.logic.parser import parse_theory
from r2n.network.graph_sources import GroundedOnDemand, Ungrounded
from r2n.network.r2n import R2N
from r2n.scoring import AtomLogits, IsolatedRows
from tests.model_strategies import shaken

GROUNDERS = [FullGrounder(), KnownBodyGrounder(), BackwardGrounder(1, 2), BackwardGrounder(0, 1)]


def network(problem: Problem, reads: str) -> R2N:
    torch.manual_seed(0)
    return R2N.build(problem.knowledge, dim=6, layers=2, evidence_input=reads)


def test_the_pass_over_the_ground_rules_is_made_once(toy: Problem) -> None:
    model, passes = network(toy, "off"), []
    model.register_forward_pre_hook(lambda _, given: passes.append(given))
    logits = AtomLogits(model, GroundedOnDemand.from_knowledge(toy.knowledge, FullGrounder()), toy.train)
    inside = logits.source.full_graph
    assert inside is not None
    first = logits(inside.atoms.numpy())
    logits(inside.atoms.numpy()[:3])
    assert len(passes) == 1
    with torch.no_grad():
        next(model.parameters()).add_(0.5)
    assert np.array_equal(logits(inside.atoms.numpy()), first), "kept"
    assert not np.array_equal(logits.again()(inside.atoms.numpy()), first), "asked again"


def test_asking_does_not_end_a_training(toy: Problem) -> None:
    model = network(toy, "off").train()
    AtomLogits(model, GroundedOnDemand.from_knowledge(toy.knowledge, FullGrounder()), toy.train)(toy.test.atoms)
    assert model.training


def test_equal_atoms_have_equal_logits_however_many_there_are(toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pass over a single atom at the end: it would be summed in another order, and a tie would be none."""
    model = network(toy, "off")
    with torch.no_grad():
        model.constants.vectors.copy_(model.constants.vectors[:1].expand_as(model.constants.vectors))
    near = np.arange(*toy.knowledge.base.offsets[1:3])
    monkeypatch.setattr(scoring, "ATOMS_IN_NO_RULE", len(near) - 1)
    found = AtomLogits(model, Ungrounded(), toy.train)(near)
    assert len(set(found.tolist())) == 1


def test_no_rows_are_no_logits(toy: Problem) -> None:
    for grounder in GROUNDERS:
        logits = AtomLogits(network(toy, "off"), GroundedOnDemand.from_knowledge(toy.knowledge, grounder), toy.train)
        assert logits.rows(0, 1, np.zeros((0, 2), np.int64)).shape == (0, toy.knowledge.base.shapes[0][1])


def networks(problem: Problem, **changes: object) -> list[R2N]:
    made = []
    for seed in range(3):
        torch.manual_seed(seed)
        made.append(R2N.build(problem.knowledge, **{"dim": 6, "layers": 2, **changes}).eval())
    return made


@pytest.mark.parametrize(("grounder", "reads"), [(GROUNDERS[0], "off"), (GROUNDERS[2], "only")], ids=str)
def test_the_logits_of_an_ensemble_are_the_means_of_its_networks(
    grounder: Grounder, reads: str, toy: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "ATOMS_WITH_THEIR_OWN_RULES", 50)
    models, source = networks(toy, evidence_input=reads), GroundedOnDemand.from_knowledge(toy.knowledge, grounder)
    logits = AtomLogits(models[0], source, toy.train, others=tuple(models[1:]))
    alone = [AtomLogits(model, source, toy.train) for model in models]
    assert [member.model for member in logits.members] == models
    codes = np.random.default_rng(0).permutation(toy.knowledge.base.size)[:40]
    each = np.stack([member(codes) for member in alone])
    close: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(logits.each(codes), each, **close)
    np.testing.assert_allclose(np.stack([member(codes) for member in logits.members]), each, **close)
    np.testing.assert_allclose(logits(codes), each.mean(0), **close)
    np.testing.assert_allclose(logits.again()(codes), each.mean(0), **close)
    for position in (0, 1):
        expected = np.mean([member.at_position(position)(codes) for member in alone], axis=0)
        np.testing.assert_allclose(logits.at_position(position)(codes), expected, **close)
        pattern = QueryPattern.from_base(toy.knowledge.base, 0, position)
        given = pattern.given(np.unique(pattern.located(np.arange(*pattern.bounds)[:30])[0]))
        rows = np.mean([member.rows(0, position, given) for member in alone], axis=0)
        np.testing.assert_allclose(logits.rows(0, position, given), rows, **close)


@pytest.mark.parametrize("grounder", [FullGrounder(), BackwardGrounder(1, 2)], ids=str)
def test_an_ensemble_grounds_as_often_as_one_network(
    grounder: Grounder, toy: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    plain = GroundedOnDemand.around

    def around(self: GroundedOnDemand, atoms: np.ndarray, **options: object) -> object:
        made.append(len(atoms))
        return plain(self, atoms, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(GroundedOnDemand, "around", around)
    models = networks(toy)
    pattern = QueryPattern.from_base(toy.knowledge.base, 0, 1)
    given = pattern.given(np.unique(pattern.located(np.arange(*pattern.bounds))[0]))
    for others in ((), tuple(models[1:])):
        source = GroundedOnDemand.from_knowledge(toy.knowledge, grounder)
        logits = AtomLogits(models[0], source, toy.train, others=others)
        logits(toy.test.atoms)
        logits.rows(0, 1, given)
        _ = logits.each(toy.valid.atoms)
        made.append(-1)
    ends = [i for i, count in enumerate(made) if count < 0]
    assert made[: ends[0]] == made[ends[0] + 1 : ends[1]]


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


def network_of_pairs(**options: Any) -> R2N:
    return shaken(R2N.build(KNOWLEDGE, dim=4, **options), seed=0)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("kind", ["distmult", "complex", "transe", "rotate"])
def test_rows_equal_atoms_one_by_one(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "FEATURES_AT_ONCE", 30)  # a few rows at once
    model, language = network_of_pairs(input=kind, **NETWORKS[name]), KNOWLEDGE.language
    isolated, by_atom = IsolatedRows.from_model(model), AtomLogits(model, Ungrounded(), Evidence.empty())
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
    assert IsolatedRows.from_model(network_of_pairs(**options)) is None


def test_a_language_that_has_grown_has_none() -> None:
    model = network_of_pairs(reasoner="none")
    assert IsolatedRows.from_model(model.on_base(KNOWLEDGE.base, torch.tensor([0, 1, -1, 2]))) is None


def test_three_positions_beside_layers_are_asked_atom_by_atom() -> None:
    knowledge = KnowledgeBase.build(
        parse_theory("domain d = {a, b}\npredicate t(d, d, d)\nrule r: t(x, y, z) -> t(z, y, x)")
    )
    kept, alone = (
        IsolatedRows.from_model(R2N.build(knowledge, dim=4, input="distmult", reasoner=reasoner))
        for reasoner in ("r2n", "none")
    )
    assert kept is not None
    assert alone is not None
    assert not kept.answers(0)
    assert alone.answers(0)


def test_the_vectors_are_those_of_no_training_and_the_training_goes_on() -> None:
    model = network_of_pairs(reasoner="none", constant_dropout=0.9).train()
    isolated = IsolatedRows.from_model(model)
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
