"""Facts asked row by row, against loops over facts and candidates, each scored as an atom of its own."""

from dataclasses import replace
from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import r2n
from r2n.data.knowledge_base import with_reciprocals
from r2n.errors import ConfigError
from r2n.network.graph_sources import Ungrounded
from r2n.network.r2n import R2N
from r2n.options import TrainingOptions
from r2n.training import rows
from r2n.training.batches import Losses, QueryBatches
from r2n.training.fit import Trainer, batches_of
from r2n.training.objective import BaseSoftmax
from r2n.training.rows import RowBatches, RowStep, asks_rows
from tests.labelled_problems import topics
from tests.unit.grounding.small_knowledge import knowledge

THEORY = """
domain d = {a, b, c, f, g}
domain e = {k, l, m}
predicate p(d, d)
predicate t(d, e)
predicate q(d, d)
predicate u(e)
predicate n(d, d) closed
"""
FACTS = "p(a,b) p(a,c) p(b,c) p(f,a) q(b,c) q(g,g) t(c,l) t(c,m) t(a,k) u(l) n(a,b)"
KNOWN = knowledge("", FACTS, "p(b,b)", theory=THEORY)
INPUTS = ("complex", "distmult", "transe", "rotate")


def network(known: r2n.KnowledgeBase = KNOWN, **options: Any) -> R2N:
    torch.manual_seed(0)
    return R2N.build(known, **{"dim": 6, "reasoner": "none", **options})


def wanted(**changes: Any) -> TrainingOptions:
    return TrainingOptions(**{"loss": "full-softmax", "batch_size": 3, "hiding": 0.0, **changes})


def steps_of(model: R2N, options: TrainingOptions, known: r2n.KnowledgeBase = KNOWN, seed: int = 0) -> list[RowStep]:
    batches = RowBatches(model, known.evidence, options)
    return asked_in(batches, torch.Generator().manual_seed(seed))


def asked_in(batches: RowBatches, generator: torch.Generator) -> list[RowStep]:
    """The steps of an epoch by one process, each of which asks something."""
    steps = list(batches.epoch(generator))
    asked = [step for step in steps if isinstance(step, RowStep)]
    assert len(asked) == len(steps)
    return asked


def facts_of(step: RowStep) -> list[tuple[int, list[int], int]]:
    """The facts of a step: predicate, constants (ids), row."""
    found = []
    for row, answer in zip(step.row.tolist(), step.answers.tolist(), strict=True):
        constants = step.given[row].tolist()
        constants[step.position] = answer if step.shift else int(step.candidates[answer])
        found.append((int(step.predicates[row]), constants, row))
    return found


def score(model: R2N, predicate: int, constants: list[int]) -> Tensor:
    """The score of one atom."""
    layer = model.atom_embedding
    laid = layer.collate(torch.tensor([predicate]), torch.tensor([constants]), model.constants)
    return layer.score(layer(laid, model.constants), torch.tensor([predicate]))[0]


def plain_loss(model: R2N, step: RowStep, relation_weight: float = 0.0) -> float:
    """Each fact of the step against each candidate, and against the predicates with its domains, one by one."""
    losses, declared = [], model.base.language.predicates
    for predicate, constants, _ in facts_of(step):
        true = score(model, predicate, constants).item()
        total = exp(true)
        for candidate in step.candidates.tolist():
            if candidate != constants[step.position]:
                other = [candidate if i == step.position else c for i, c in enumerate(constants)]
                total += exp(score(model, predicate, other).item() + step.shift)
        losses.append(log(total) - true)
        own = declared[predicate]
        same = [i for i, p in enumerate(declared) if p.domains == own.domains and p.arity == own.arity]
        kin = [i for i in same if (declared[i].reciprocal_of is None) == (own.reciprocal_of is None)]
        others = [score(model, other, constants).item() for other in kin]
        losses[-1] += relation_weight * (log(sum(map(exp, others))) - true)
    return sum(losses) / len(losses)


def plain_n3(model: R2N, step: RowStep) -> float:
    """The cubes of the moduli of complex vectors of predicate and constants, a mean over the facts."""
    total, facts = 0.0, facts_of(step)
    for predicate, constants, _ in facts:
        vectors = [model.constants.vectors[c].tolist() for c in constants]
        vectors.append(model.atom_embedding.get_parameter("vectors")[predicate].tolist())  # pyright: ignore
        for vector in vectors:
            half = len(vector) // 2
            total += sum(abs(complex(vector[i], vector[half + i])) ** 3 for i in range(half))
    return total / len(facts)


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("relation_weight", [0.0, 2.5])
@pytest.mark.parametrize("changes", [{}, {"loss": "softmax", "negatives": 2}, {"loss": "softmax", "negatives": 9}])
def test_losses_are_those_of_atoms_scored_one_by_one(
    kind: str, changes: dict[str, Any], relation_weight: float
) -> None:
    known = with_reciprocals(KNOWN)
    model, options = network(known, input=kind), wanted(**changes, relation_weight=relation_weight)
    steps = steps_of(model, options, known)
    facts = sum(len(step.row) for step in steps)
    for step in steps:
        losses = step.losses(model, options)
        weight = len(step.row) * len(steps) / facts
        once = facts / int(known.evidence.truth.sum() - 2) / step.given.shape[1]  # two facts are closed
        assert losses.total.item() == pytest.approx(weight * plain_loss(model, step, once * relation_weight), rel=1e-5)
        assert losses.supervised.item() == losses.total.item()
        size = len(known.language.members(known.language.predicates[int(step.predicates[0])].domains[step.position]))
        is_drawn = changes.get("negatives", 9) < size
        assert step.shift == (pytest.approx(log(size / 2)) if is_drawn else 0.0)
        assert len(step.candidates) == (2 if is_drawn else size)


@pytest.mark.parametrize("changes", [{}, {"loss": "softmax", "negatives": 2}])
def test_rows_that_fill_a_step_up_change_nothing(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model, options = network(), wanted(**changes, batch_size=100, relation_weight=0.5, n3=0.1)
    plain = steps_of(model, options)
    monkeypatch.setattr(rows, "MULTIPLE", 2)
    filled = steps_of(model, options)
    assert [len(step.given) for step in plain] != [len(step.given) for step in filled]
    for step, full in zip(plain, filled, strict=True):
        assert full.losses(model, options).total.item() == pytest.approx(step.losses(model, options).total.item())
        expected = gradients(model, step, options)
        for name, found in gradients(model, full, options).items():
            torch.testing.assert_close(found, expected[name])


@pytest.mark.parametrize("changes", [{}, {"loss": "softmax", "negatives": 2}])
def test_constants_with_features_are_encoded(changes: dict[str, Any]) -> None:
    """Texts are encoded, their kinds have learned vectors."""
    known = topics(0, count=12, kinds=3).knowledge
    model, options = network(known), wanted(**changes)
    assert asks_rows(model, options)
    steps = steps_of(model, options, known)
    assert {step.position for step in steps} == {0, 1}
    facts = sum(len(step.row) for step in steps)
    for step in steps:
        weight = len(step.row) * len(steps) / facts
        assert step.losses(model, options).total.item() == pytest.approx(weight * plain_loss(model, step), rel=1e-5)
        assert any(name.startswith("constants.encoders") for name in gradients(model, step, options))


def test_n3_of_what_stands_in_the_facts() -> None:
    model = network()
    for changes in ({}, {"loss": "softmax", "negatives": 2}):
        bare, options = wanted(**changes), wanted(**changes, n3=0.5)
        steps = steps_of(model, options)
        facts = sum(len(step.row) for step in steps)
        for step in steps:
            losses, without = step.losses(model, options), step.losses(model, bare)
            weight = len(step.row) * len(steps) / facts
            more = losses.total.item() - without.total.item()
            assert more == pytest.approx(0.5 * weight * plain_n3(model, step), rel=1e-4)
            assert losses.supervised.item() == without.total.item(), "L_sup is told without N3"


def gradients(model: R2N, step: RowStep, options: TrainingOptions) -> dict[str, Tensor]:
    model.zero_grad()
    step.losses(model, options).total.backward()
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {name: grad.to_dense() for name, grad in found.items()}


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("positions", [None, (-1,), (0,)])
@pytest.mark.parametrize("relation_weight", [0.0, 0.5])
def test_one_batch_of_all_candidates_is_the_exact_softmax_over_the_base(
    kind: str, positions: tuple[int, ...] | None, relation_weight: float
) -> None:
    """Of one arity, position and domain there is one step; the steps' mean is the loss over the whole base."""
    model = network(input=kind)
    options = wanted(batch_size=100, corrupted_positions=positions, ask_closed=True, relation_weight=relation_weight)
    steps = steps_of(model, options)
    total = torch.stack([step.losses(model, options).total for step in steps]).mean()
    model.zero_grad()
    total.backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    graph = Ungrounded().around(np.arange(KNOWN.base.size))
    out = model(model.collate(graph)).atoms
    expected = BaseSoftmax(KNOWN.base, KNOWN.evidence, options)(out)
    expected.backward()
    assert total.item() == pytest.approx(expected.item(), abs=1e-6)
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(found[name], parameter.grad, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(("positions", "by_arity"), [(None, {1: [0], 2: [0, 1]}), ((-1,), {1: [0], 2: [1]})])
def test_every_fact_is_asked_once_an_epoch_and_rows_are_whole(
    size: int, positions: tuple[int, ...] | None, by_arity: dict[int, list[int]]
) -> None:
    known = with_reciprocals(KNOWN)
    steps = steps_of(network(known), wanted(batch_size=size, corrupted_positions=positions), known)
    language, asked, rows = known.language, [], []
    for step in steps:
        sizes = np.bincount(step.row.numpy())
        assert sizes.sum() - sizes[-1] < size, "no row more than are needed"
        for predicate, constants, _ in facts_of(step):
            code = known.base.encode(language.predicates[predicate], np.array([constants]))
            asked.append((*known.base.names(code), step.position))
        for predicate, given in zip(step.predicates.tolist(), step.given.tolist(), strict=True):
            rows.append((predicate, step.position, tuple(c for i, c in enumerate(given) if i != step.position)))
            domain = language.predicates[predicate].domains[step.position]
            assert step.candidates.tolist() == language.members(domain).tolist()
    names = known.base.names(known.evidence.atoms[known.evidence.truth])
    open_facts = [name for name in names if name.strip('"')[0] != "n"]
    assert sorted(asked) == sorted((name, i) for name in open_facts for i in by_arity[1 + name.count(",")])
    assert len(set(rows)) == len(rows), "no row is torn"


def test_closed_facts_are_asked_only_where_that_is_wanted() -> None:
    batches = RowBatches(network(), KNOWN.evidence, wanted())
    true, false = batches.asked(torch.Generator())
    assert not any(name.startswith("n") for name in KNOWN.base.names(true))
    assert len(false) == 0
    assert len(RowBatches(network(), KNOWN.evidence, wanted(ask_closed=True)).facts) == len(true) + 1
    with pytest.raises(ConfigError, match="no fact to learn from"):
        RowBatches(network(), knowledge("", "n(a,b)", theory=THEORY).evidence, wanted())


def test_who_is_asked_row_by_row() -> None:
    drawn = wanted(loss="softmax", negatives=2)
    assert asks_rows(network(), wanted())
    assert asks_rows(network(), drawn)
    assert not asks_rows(network(), wanted(batch_size=None))
    assert not asks_rows(network(), wanted(loss="softmax"))
    assert not asks_rows(network(), wanted(loss="bce", negatives=2))
    assert not asks_rows(network(input="mlp"), drawn)
    assert not asks_rows(network(), drawn.model_copy(update={"regularisation": "product"}))
    source = Ungrounded()
    assert isinstance(batches_of(network(), source, KNOWN.evidence, wanted()), RowBatches)
    assert isinstance(batches_of(network(input="mlp"), source, KNOWN.evidence, drawn), QueryBatches)


def test_layers_cannot_be_asked_for_all_candidates_in_batches() -> None:
    known = knowledge("rule one: p(x, y) -> q(y, x)\n", FACTS, theory=THEORY)
    layered = network(known, reasoner="r2n", layers=1)
    assert not asks_rows(layered, wanted(loss="softmax", negatives=2))
    with pytest.raises(ConfigError, match="only an input layer that answers alone"):
        asks_rows(layered, wanted())
    with pytest.raises(ConfigError, match="only an input layer that answers alone"):
        asks_rows(network(input="mlp"), wanted())
    with pytest.raises(ConfigError, match="without a t-norm"):
        asks_rows(network(), wanted(regularisation="product"))


@pytest.mark.parametrize("clip", [None, 0.01])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_training_with_sparse_gradients_is_training_with_dense_ones(
    clip: float | None, decay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zero gradients move nothing under Adagrad, so that it makes no difference; with a decay none is sparse."""

    options = wanted(
        loss="softmax", negatives=2, optimiser="adagrad", clip=clip, epochs=3, input_weight_decay=decay, n3=0.1
    )
    assert any(step.sparse for step in steps_of(network(), options)) == (not decay)

    def trained() -> R2N:
        model = network()
        list(Trainer.from_source(model, Ungrounded(), KNOWN.evidence, options))
        return model

    sparse = trained()
    made = RowStep.losses
    monkeypatch.setattr(RowStep, "losses", lambda step, *given: made(replace(step, sparse=False), *given))
    torch.testing.assert_close(sparse.state_dict(), trained().state_dict())


def test_products_are_quick_while_rows_are_trained_and_exact_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, made = [], RowStep.losses

    def losses(step: RowStep, model: R2N, options: TrainingOptions) -> Losses:
        seen.append(torch.get_float32_matmul_precision())
        return made(step, model, options)

    monkeypatch.setattr(RowStep, "losses", losses)
    list(Trainer.from_source(network(), Ungrounded(), KNOWN.evidence, wanted(epochs=1)))
    assert (set(seen), torch.get_float32_matmul_precision()) == ({"medium"}, "highest")
