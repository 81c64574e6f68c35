"""The exact softmax over a whole base, against loops."""

from itertools import product
from math import exp, log

import numpy as np
import pytest
import torch

import r2n
from r2n.data.knowledge_base import with_reciprocals
from r2n.errors import ConfigError
from r2n.options import TrainingOptions
from r2n.training.objective import BaseSoftmax
from tests.unit.grounding.small_knowledge import knowledge

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


def test_nothing_to_learn_from_is_refused() -> None:
    kb = knowledge("", "", theory=THEORY)
    with pytest.raises(ConfigError, match="no fact to learn from"):
        BaseSoftmax(kb.base, kb.evidence, TrainingOptions())
