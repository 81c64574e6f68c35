"""Ground rules counted by what they conclude, against grounding them one by one; and without the fact that is asked."""

from collections import Counter
from dataclasses import replace
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.errors import GroundingError, MemoryLimitError
from r2n.grounding import counting
from r2n.grounding.counting import MOST_ENTRIES, RuleCounts, is_counted
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.store import Ceiling, Store
from r2n.logic.parser import parse_theory
from tests.examples import at_most

DECLARED = """domain d
predicate p(d, d)
predicate q(d, d)
predicate u(d)
predicate t(d, d, d)
"""
CHAINS = {
    "inverse": ("p(y, x) -> p(x, y)", "xy"),
    "transitive": ("p(x, z) & p(z, y) -> p(x, y)", "xyz"),
    "through q": ("p(x, z) & q(z, y) -> p(x, y)", "xyz"),
    "first step": ("p(x, z) & q(w, z) & q(w, y) -> p(x, y)", "xyzw"),
    "last steps": ("q(z, x) & p(z, w) & p(w, y) -> p(x, y)", "xyzw"),
    "there and back": ("p(x, z) & p(w, z) & p(w, y) -> p(x, y)", "xyzw"),
    "back first": ("p(z, x) & p(z, w) & p(y, w) -> p(x, y)", "xyzw"),
}
OTHERS = (
    "u(x) & p(x, y) -> q(x, y)",
    "q(x, y) & p(x, z) & p(z, z) -> q(x, y)",
    "p(x, y) & p(x, z) & u(z) -> p(x, z)",
    "u(y) & p(x, x) -> p(x, y)",
    "p(x, z) & p(z, w) & p(w, v) & p(v, y) -> p(x, y), x != y",
    "p(x, z) & p(x, y) -> u(x)",
    "u(x) & p(x, y) -> u(y)",
    "t(x, y, z) & p(z, w) -> t(x, y, w)",
    "p(x, y) & q(y, z) -> t(x, z, y)",
    '!u(x) & p(x, "a") & p(x, y) -> p(x, y)',
)


def distinct(rule: str, variables: str) -> str:
    return ", ".join([rule, *(f"{some} != {other}" for some, other in combinations(variables, 2))])


RULES = (*(text for text, _ in CHAINS.values()), *(distinct(*chain) for chain in CHAINS.values()), *OTHERS)
THEORY = parse_theory(DECLARED + "".join(f"rule r{i}: {text}\n" for i, text in enumerate(RULES)))


@st.composite
def random_knowledge(draw: st.DrawFn) -> KnowledgeBase:
    """Some facts over four constants, loops among them."""
    knowledge = KnowledgeBase.build(THEORY, domains={"d": ["a", "b", "c"]})
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = draw(st.sampled_from([0.15, 0.3, 0.5]))
    codes = np.flatnonzero(generator.random(knowledge.base.size) < share)
    return replace(knowledge, evidence=Evidence(codes, generator.random(len(codes)) < 0.9))


def counted_one_by_one(knowledge: KnowledgeBase) -> Counter[tuple[int, int]]:
    """(rule, concluded atom) -> ground rules."""
    grounding = KnownBodyGrounder().ground(Store(knowledge))
    return Counter(
        (j, int(atoms[part.rule.head_positions[0]]))
        for j, part in enumerate(grounding.ground_rules)
        for atoms in part.atoms
    )


def without(knowledge: KnowledgeBase, code: int) -> KnowledgeBase:
    kept = knowledge.evidence.atoms != code
    return replace(knowledge, evidence=Evidence(knowledge.evidence.atoms[kept], knowledge.evidence.truth[kept]))


def test_rules_that_conclude_one_atom_are_counted() -> None:
    assert all(map(is_counted, THEORY.rules))
    others = "implicit both: [p(x, y), q(x, y)]\nrule either: p(x, y) | q(x, y)\nrule two: u(x) -> p(x, x) & q(x, x)\n"
    assert not any(map(is_counted, parse_theory(DECLARED + others).rules))


@at_most(10, because="each example grounds 24 rules, once more for every fact that is left out")
@given(random_knowledge(), st.sampled_from([1, 3, MOST_ENTRIES]))
def test_counts_are_those_of_the_ground_rules(knowledge: KnowledgeBase, most: int) -> None:
    with patch.object(counting, "MOST_ENTRIES", most):
        counts = RuleCounts.of(Store(knowledge), THEORY.rules)
    found = {
        (j, c): n for j, c, n in zip(counts.rule.tolist(), counts.codes.tolist(), counts.counts.tolist(), strict=True)
    }
    assert found == counted_one_by_one(knowledge)
    assert (np.diff(counts.codes) >= 0).all()


@at_most(2, because="each example grounds 24 rules, once more for every fact that is left out")
@given(random_knowledge(), st.sampled_from([3, MOST_ENTRIES]))
def test_what_is_left_out_is_what_grounding_without_the_fact_lacks(knowledge: KnowledgeBase, most: int) -> None:
    with patch.object(counting, "MOST_ENTRIES", most):
        counts, base = RuleCounts.of(Store(knowledge), THEORY.rules), knowledge.base
        _ = counts._matrices
    for predicate, (declared, shape) in enumerate(zip(base.language.predicates, base.shapes, strict=True)):
        facts = knowledge.known_codes(declared, True)
        sides = [(counts.side(predicate, i), counts.left_out(predicate, i)) for i in range(len(shape))]
        for number, fact in enumerate(facts.tolist()):
            truly = counted_one_by_one(without(knowledge, fact))
            for side, left_out in sides:
                row = side.side.located(np.array([fact]))[0]
                owner, entries = side.index.entries(row)
                assert not owner.any()
                less = np.zeros(len(side.places), np.int64)
                part = slice(left_out.starts[number], left_out.starts[number + 1])
                np.add.at(less, left_out.entries[part], left_out.counts[part])
                left = side.counts[entries] - less[entries]
                codes = row[0] + side.places[entries] * side.side.stride
                found = {(int(j), int(c)): int(n) for j, c, n in zip(side.rules[entries], codes, left, strict=True)}
                rivals = set((row[0] + np.arange(side.side.candidates) * side.side.stride).tolist())
                assert {key: n for key, n in found.items() if n} == {k: n for k, n in truly.items() if k[1] in rivals}


def all_known() -> KnowledgeBase:
    """Every atom of seven constants is true."""
    knowledge = KnowledgeBase.build(THEORY, domains={"d": list("abcdefg")})
    return replace(knowledge, evidence=Evidence(np.arange(knowledge.base.size), np.ones(knowledge.base.size, bool)))


def test_a_rule_is_grounded_once_whoever_asks_for_it() -> None:
    knowledge = all_known()
    with patch.object(
        KnownBodyGrounder, "ground_rule", autospec=True, side_effect=KnownBodyGrounder.ground_rule
    ) as ground:
        counts = RuleCounts.of(Store(knowledge), THEORY.rules)
        for predicate, shape in enumerate(knowledge.base.shapes):
            for position in range(len(shape)):
                counts.left_out(predicate, position)
    assert ground.call_count == len(OTHERS)


def test_a_rule_with_too_many_ground_rules_is_refused() -> None:
    with pytest.raises(GroundingError, match="more than max_groundings = 100"):
        RuleCounts.of(Store(all_known()), THEORY.rules, max_groundings=100)


def test_counts_that_do_not_fit_are_refused() -> None:
    store = Store(all_known(), ceiling=Ceiling(30_000))
    message = r"atoms that \d+ of 24 counted rules conclude needs about .*\n  take fewer rules"
    with pytest.raises(MemoryLimitError, match=message):
        RuleCounts.of(store, THEORY.rules)


def test_entries_of_rows_that_no_rule_concludes() -> None:
    knowledge = KnowledgeBase.build(THEORY, domains={"d": ["a", "b", "c"]})
    side = RuleCounts.of(Store(knowledge), THEORY.rules).side(0, 1)
    owner, entries = side.index.entries(np.array([0, 3]))
    assert len(owner) == len(entries) == 0
