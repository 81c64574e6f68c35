"""Counted rules asked row by row, against loops over the ground rules there are without the fact that is asked."""

import tracemalloc
from collections import Counter
from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
import torch

from r2n.data.herbrand import QueryPattern
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.errors import MemoryLimitError
from r2n.grounding.counting import RuleCounts
from r2n.grounding.full import KnownBodyGrounder
from r2n.grounding.store import MemoryBudget, Store
from r2n.logic.parser import parse_theory
from r2n.network.r2n import R2N
from r2n.options import TrainingOptions
from r2n.training import rows
from r2n.training.rows import RuleBatches, RuleStep, start_at_confidence

THEORY = parse_theory("""
domain d
predicate p(d, d)
predicate q(d, d)
predicate u(d)
predicate n(d, d) closed
rule inverse: p(y, x) -> p(x, y)
rule transitive: p(x, z) & p(z, y) -> p(x, y)
rule apart: p(x, z) & q(z, y) -> p(x, y), x != y, x != z, y != z
rule over: p(x, y) -> q(x, y)
rule first: u(x) & q(x, y) -> u(y)
rule near: p(x, y) -> n(x, y)
""")
OPTIONS = TrainingOptions()


def random_knowledge(seed: int, share: float = 0.25) -> KnowledgeBase:
    known = KnowledgeBase.build(THEORY, domains={"d": list("abcde")})
    generator = np.random.default_rng(seed)
    codes = np.flatnonzero(generator.random(known.base.size) < share)
    return replace(known, evidence=Evidence(codes, generator.random(len(codes)) < 0.85))


def network(known: KnowledgeBase) -> R2N:
    torch.manual_seed(0)
    model = R2N.build(known, dim=2, rules="counted")
    assert model.counted is not None
    with torch.no_grad():
        for parameter in model.counted.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return model


def without(known: KnowledgeBase, code: int) -> KnowledgeBase:
    kept = known.evidence.atoms != code
    return replace(known, evidence=Evidence(known.evidence.atoms[kept], known.evidence.truth[kept]))


def counted(known: KnowledgeBase) -> Counter[tuple[int, int]]:
    """(concluded atom, rule) -> ground rules with a known body, one by one."""
    parts = KnownBodyGrounder().ground(Store(known)).ground_rules
    return Counter((int(atoms[part.rule.head_positions[0]]), j) for j, part in enumerate(parts) for atoms in part.atoms)


def plain_loss(known: KnowledgeBase, model: R2N, fact: int, predicate: int, position: int) -> float:
    """Minus the log of the share of a fact, or of the rest's, with the fact not known and its row's others left out."""
    assert model.counted is not None
    pattern, numbers = QueryPattern.from_base(known.base, predicate, position), counted(without(known, fact))
    true = set(known.evidence.atoms[known.evidence.truth].tolist())
    (row,) = pattern.located(np.array([fact]))[0].tolist()
    bias = exp(model.counted.rest[predicate, position].item())
    total, own = bias, 0.0
    for index in range(pattern.candidates):
        code = row + index * pattern.stride
        if code in true and code != fact:
            continue
        for j in range(len(THEORY.rules)):
            if numbers[code, j]:
                weight, power = model.counted.weights[j, position].item(), model.counted.powers[j, position].item()
                mass = exp(weight) * numbers[code, j] ** power
                total += mass
                own += mass * (code == fact)
    return log(total) - log(own or bias)


def steps_of(known: KnowledgeBase, seed: int = 0, options: TrainingOptions = OPTIONS) -> list[RuleStep]:
    batches = RuleBatches(RuleCounts.from_store(Store(known), THEORY.rules), options)
    return list(batches.epoch(torch.Generator().manual_seed(seed)))


def total_of(steps: list[RuleStep], model: R2N) -> float:
    return sum(step.losses(model, OPTIONS).total.item() for step in steps) / len(steps)


@pytest.mark.parametrize("at_once", [10**6, 7])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_mean_over_the_facts_is_that_of_grounding_without_each(
    seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts in whose row no rule concludes anything are not asked: they would have the rest for themselves."""
    monkeypatch.setattr(rows, "ENTRIES_AT_ONCE", at_once)
    known = random_knowledge(seed)
    model, everything = network(known), counted(known)
    expected: dict[tuple[int, int], list[float]] = {}
    for predicate, name in enumerate(("p", "q", "u")):
        for fact in known.known_codes(known.language.predicate(name), True).tolist():
            for position in range(len(known.base.shapes[predicate])):
                pattern = QueryPattern.from_base(known.base, predicate, position)
                row = pattern.located(np.array([fact]))[0][0]
                rivals = set((row + np.arange(pattern.candidates) * pattern.stride).tolist())
                if any(code in rivals for code, _ in everything):
                    loss = plain_loss(known, model, fact, predicate, position)
                    expected.setdefault((predicate, position), []).append(loss)
    steps = steps_of(known)
    every = [loss for losses in expected.values() for loss in losses]
    assert sum(step.facts for step in steps) == len(every)
    assert len(steps) > len(expected) if at_once == 7 else len(steps) == len(expected)
    assert total_of(steps, model) == pytest.approx(sum(every) / len(every), rel=1e-5)
    for key, losses in expected.items():
        own = [step for step in steps if (step.predicate, step.position) == key]
        found = sum(step.losses(model, OPTIONS).total.item() / step.weight * step.facts for step in own)
        assert found == pytest.approx(sum(losses), rel=1e-5)


def test_closed_predicates_are_asked_only_where_that_is_wanted() -> None:
    known = random_knowledge(1, share=0.4)
    assert {step.predicate for step in steps_of(known)} == {0, 1, 2}
    assert {step.predicate for step in steps_of(known, options=TrainingOptions(ask_closed=True))} == {0, 1, 2, 3}


def test_of_a_predicate_that_is_closed_in_part_the_open_facts_are_asked() -> None:
    theory = parse_theory("""
domain man = {a, b}
domain dog = {x, y}
domain being = man | dog
predicate p(being, being) closed (man, man)
rule inverse: p(y, x) -> p(x, y)
""")
    known = KnowledgeBase.build(theory)
    names = known.base.names(np.arange(known.base.size))
    codes = np.array(sorted(names.index(name) for name in ("p(a, b)", "p(b, x)", "p(x, b)", "p(y, x)")))
    known = replace(known, evidence=Evidence(codes, np.ones(len(codes), bool)))
    batches = RuleBatches(RuleCounts.from_store(Store(known), theory.rules), OPTIONS)
    true, false = batches.asked(torch.Generator())
    assert known.base.names(true) == ["p(b, x)", "p(x, b)", "p(y, x)"]
    assert len(false) == 0
    steps = list(batches.epoch(torch.Generator()))
    assert sum(step.facts for step in steps) == 2 + 3, "of p(y, ?) no rule concludes anything"


def test_of_very_many_entries_a_share_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    known = random_knowledge(2)
    batches = RuleBatches(RuleCounts.from_store(Store(known), THEORY.rules), OPTIONS)
    every = sum(step.facts for step in batches.epoch(torch.Generator()))
    monkeypatch.setattr(rows, "ENTRIES_AN_EPOCH", batches.entries / 2)
    some = sum(step.facts for step in batches.epoch(torch.Generator()))
    assert every / 2 <= some <= every / 2 + len(batches.patterns)


def test_weights_begin_at_the_share_of_what_is_true_among_what_is_concluded() -> None:
    known = random_knowledge(3)
    model, numbers = network(known), counted(known)
    assert model.counted is not None
    before = model.counted.powers.detach().clone(), model.counted.rest.detach().clone()
    start_at_confidence(model.counted, RuleCounts.from_store(Store(known), THEORY.rules))
    true = set(known.evidence.atoms[known.evidence.truth].tolist())
    for j in range(len(THEORY.rules)):
        concluded = {code for code, rule in numbers if rule == j}
        expected = log((len(concluded & true) + 0.1) / (len(concluded) + 5))
        assert model.counted.weights[j].tolist() == pytest.approx([expected] * 2)
    assert torch.equal(model.counted.powers, before[0])
    assert torch.equal(model.counted.rest, before[1])


LIKES = """domain user
domain item
predicate likes(user, item)
predicate near(item, item)
rule near: likes(x, z) & near(z, y) -> likes(x, y)
rule others: likes(x, z) & likes(w, z) & likes(w, y) -> likes(x, y)
"""


def many_likes(users: int, items: int, each: int) -> KnowledgeBase:
    """Every row has many facts, and each of them many ground rules through it."""
    names = {"user": [f"u{i}" for i in range(users)], "item": [f"i{i}" for i in range(items)]}
    known, dice = KnowledgeBase.build(parse_theory(LIKES), domains=names), np.random.default_rng(0)
    language = known.language
    people, things = (language.members(domain) for domain in language.domains)
    likes = [np.repeat(people, each), dice.choice(things, users * each)]
    near = [dice.choice(things, 10 * items), dice.choice(things, 10 * items)]
    pairs = zip(language.predicates, (likes, near), strict=True)
    codes = np.unique(np.concatenate([known.base.encode_columns(*pair) for pair in pairs]))
    return replace(known, evidence=Evidence(codes, np.ones(len(codes), bool)))


def test_counting_keeps_to_the_memory_that_is_allowed_and_counts_the_same() -> None:
    known, options, most = many_likes(90, 450, 40), TrainingOptions(), 50_000_000
    full = RuleBatches(RuleCounts.from_store(Store(known), known.theory.rules), options)
    assert sum(len(pattern.left_out.entries) for pattern in full.patterns) > 10**6
    tracemalloc.start()
    try:
        counts = RuleCounts.from_store(Store(known, ceiling=MemoryBudget(most)), known.theory.rules)
        parts = RuleBatches(counts, options)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    for one, other in zip(full.patterns, parts.patterns, strict=True):
        for pair in ((one.counts.counts, other.counts.counts), (one.sizes, other.sizes)):
            np.testing.assert_array_equal(*pair)
        for name in ("starts", "entries", "counts"):
            np.testing.assert_array_equal(getattr(one.left_out, name), getattr(other.left_out, name))


def test_what_does_not_fit_is_refused_before_it_is_taken() -> None:
    known = many_likes(90, 450, 40)
    counts = RuleCounts.from_store(Store(known, ceiling=MemoryBudget(20_000_000)), known.theory.rules)
    with pytest.raises(MemoryLimitError, match=r"what is left out of .* while a fact is asked.*\n  take fewer rules"):
        RuleBatches(counts, TrainingOptions())
