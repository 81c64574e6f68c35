"""Losses."""

from itertools import product
from math import exp, log
from random import Random

import numpy as np
import pytest
import torch

import r2n
from r2n.data.knowledge_base import with_reciprocals
from r2n.options import TrainingOptions
from r2n.training.objective import BaseSoftmax, binary_cross_entropy, labelled_logits, n3_penalty, softmax_loss
from tests.oracles import losses as oracle
from tests.unit.grounding.small_knowledge import knowledge

DICE = Random(0)


def numbers(count: int) -> list[float]:
    return [DICE.gauss(0, 3) for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 5, 40])
def test_cross_entropy_is_a_mean(count: int) -> None:
    logits, truth = numbers(count), [DICE.random() < 0.3 for _ in range(count)]
    found = binary_cross_entropy(torch.tensor(logits, dtype=torch.float64), torch.tensor(truth, dtype=torch.bool))
    assert float(found) == pytest.approx(oracle.cross_entropy(logits, truth))


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_softmax_over_a_fact_and_its_corruptions(rows: int) -> None:
    true = numbers(rows)
    corrupted = [[x if DICE.random() < 0.7 else None for x in numbers(4)] for _ in range(rows)]
    found = softmax_loss(
        torch.tensor(true, dtype=torch.float64),
        torch.tensor([[x or 0.0 for x in row] for row in corrupted], dtype=torch.float64).reshape(rows, 4),
        torch.tensor([[x is not None for x in row] for row in corrupted], dtype=torch.bool).reshape(rows, 4),
    )
    assert float(found) == pytest.approx(oracle.negative_softmax(true, corrupted))


def test_a_fact_without_corruptions_costs_nothing_and_has_a_slope() -> None:
    true, corrupted = torch.tensor([2.0], requires_grad=True), torch.tensor([[5.0]], requires_grad=True)
    loss = softmax_loss(true, corrupted, torch.tensor([[False]]))
    assert float(loss.detach()) == 0.0
    loss.backward()
    assert true.grad is not None
    assert corrupted.grad is not None
    assert true.grad.tolist() == [0.0]
    assert corrupted.grad.tolist() == [[0.0]]


def test_softmax_of_large_logits_stays_finite() -> None:
    loss = softmax_loss(torch.tensor([-1e4]), torch.tensor([[1e4]]), torch.tensor([[True]]))
    assert float(loss) == pytest.approx(2e4)


def test_nothing_asked_costs_nothing_and_can_be_derived() -> None:
    for loss in (
        binary_cross_entropy(torch.zeros(0, requires_grad=True), torch.zeros(0, dtype=torch.bool)),
        softmax_loss(torch.zeros(0, requires_grad=True), torch.zeros(0, 2), torch.zeros(0, 2, dtype=torch.bool)),
    ):
        assert float(loss.detach()) == 0.0
        loss.backward()


def test_n3() -> None:
    vectors = [numbers(3), numbers(3)]
    assert float(n3_penalty(torch.tensor(vectors, dtype=torch.float64))) == pytest.approx(oracle.n3(vectors))
    assert float(n3_penalty(torch.tensor([[1.0, -2.0], [0.0, 3.0]]))) == (1 + 8 + 27) / 2
    assert float(n3_penalty(torch.zeros(0, 3))) == 0.0  # all constants have features


THEORY = (
    "domain d = {a, b, c}\ndomain e = {k, l}\npredicate p(d, d)\npredicate t(d, e)\npredicate q(d, d)\npredicate u(d)\n"
)
FACTS = "p(a,b) p(a,c) q(b,c) t(c,l) u(b)"


def logits(kb: r2n.KnowledgeBase) -> dict[str, float]:
    """A number for each atom by name."""
    values = np.random.default_rng(0).normal(size=kb.base.size)
    return dict(zip(kb.base.names(np.arange(kb.base.size)), values.tolist(), strict=True))


def share(true: float, row: list[float]) -> float:
    return -log(exp(true) / sum(map(exp, row)))


def plain(kb: r2n.KnowledgeBase, positions: dict[int, list[int]], relation_weight: float) -> float:
    """Each fact against its row at each position, and against the predicates with its domains."""
    out = logits(kb)
    rows, relations = [], []
    for fact in kb.base.names(kb.evidence.atoms[kb.evidence.truth]):
        name, arguments = fact.rstrip(")").split("(")
        terms = arguments.split(", ")
        domains = kb.language.predicate(name).domains
        members = [[kb.language.constants[c] for c in kb.language.members(domain)] for domain in domains]
        for position in positions[len(terms)]:
            others = [[term] if i != position else members[i] for i, term in enumerate(terms)]
            rows.append(share(out[fact], [out[f"{name}({', '.join(row)})"] for row in product(*others)]))
        same = [p.name for p in kb.language.predicates if p.domains == domains]
        relations.append(share(out[fact], [out[f"{other}({arguments})"] for other in same]))
    return sum(rows) / len(rows) + relation_weight * sum(relations) / len(relations)


@pytest.mark.parametrize(
    ("positions", "by_arity"), [(None, {1: [0], 2: [0, 1]}), ((-1,), {1: [0], 2: [1]}), ((0,), {1: [0], 2: [0]})]
)
@pytest.mark.parametrize("relation_weight", [0.0, 0.7])
def test_rows_and_relations(
    positions: tuple[int, ...] | None, by_arity: dict[int, list[int]], relation_weight: float
) -> None:
    kb = knowledge("", FACTS, "p(b,b)", theory=THEORY)
    options = TrainingOptions(corrupted_positions=positions, relation_weight=relation_weight)
    rows = BaseSoftmax(kb.base, kb.evidence, options)
    out = torch.tensor(list(logits(kb).values()), dtype=torch.float64)
    assert float(rows(out)) == pytest.approx(plain(kb, by_arity, relation_weight))


def test_reciprocals_do_not_compete_with_the_predicates_they_mirror() -> None:
    kb = with_reciprocals(knowledge("", "p(a,b)", theory="domain d = {a, b}\npredicate p(d, d)\n"))
    rows = BaseSoftmax(kb.base, kb.evidence, TrainingOptions(corrupted_positions=(-1,), relation_weight=1.0))
    out = torch.randn(kb.base.size, dtype=torch.float64)
    without = BaseSoftmax(kb.base, kb.evidence, TrainingOptions(corrupted_positions=(-1,)))
    assert float(rows(out)) == pytest.approx(float(without(out))), "p is alone, and so is p^-1"


def test_of_positives_alone_the_loss_is_that_of_being_labelled() -> None:
    logits, shares = torch.tensor([-3.0, 0.0, 2.0, 40.0]), torch.tensor([0.3, 0.3, 1.0, 0.5])
    expected = shares * torch.sigmoid(logits)
    torch.testing.assert_close(torch.sigmoid(labelled_logits(logits, shares)), expected)
    assert labelled_logits(logits, shares)[2] == 2.0, "as it is where all are labelled"
