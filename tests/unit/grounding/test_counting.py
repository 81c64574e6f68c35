"""Ground rules counted by what they conclude, without the fact that is asked; chains and paths, by plain counting."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, vstack

from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.errors import GroundingError, MemoryLimitError
from r2n.grounding import counting
from r2n.grounding.counting import (
    MOST_ENTRIES,
    Chain,
    ChainStep,
    RowCounts,
    RuleCounts,
    StepMatrices,
    as_chain,
    is_counted,
    path_counts_in_parts,
    reached_from,
    row_parts,
)
from r2n.grounding.full import KnownBodyGrounder
from r2n.grounding.store import MemoryBudget, Store
from r2n.logic.parser import parse_theory
from tests.examples import at_most
from tests.oracles import paths as oracle
from tests.unit.grounding.small_knowledge import knowledge as small_knowledge

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
        counts = RuleCounts.from_store(Store(knowledge), THEORY.rules)
    found = {
        (j, c): n for j, c, n in zip(counts.rule.tolist(), counts.codes.tolist(), counts.counts.tolist(), strict=True)
    }
    assert found == counted_one_by_one(knowledge)
    assert (np.diff(counts.codes) >= 0).all()


@at_most(10, because="each example grounds 24 rules, and once more for each pattern")
@given(random_knowledge(), st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 9]), st.booleans())
def test_rows_counted_alone_have_the_counts_of_all(knowledge: KnowledgeBase, seed: int, most: int, fewer: bool) -> None:
    base, dice = knowledge.base, np.random.default_rng(seed)
    alone, full = RowCounts(Store(knowledge), THEORY.rules), RuleCounts.from_store(Store(knowledge), THEORY.rules)
    if fewer:
        alone, full = alone.without_rules(frozenset(["r1", "r20"])), full.without_rules(["r1", "r20"])
    for predicate, shape in enumerate(base.shapes):
        for position in range(len(shape)):
            expected = full.by_pattern(predicate, position)
            codes = np.arange(*expected.pattern.bounds)
            every = np.unique(expected.pattern.located(codes)[0])
            for _ in range(5):
                rows = dice.choice(every, min(most, len(every)), replace=False)
                found = alone.at(predicate, position, rows)
                for row in np.unique(rows):
                    (_, own), (_, other) = found.index.entries(row[None]), expected.index.entries(row[None])
                    for name in ("candidates", "rules", "counts", "is_fact"):
                        assert np.array_equal(getattr(found, name)[own], getattr(expected, name)[other])
            assert np.array_equal(alone.conclude(codes, position), np.isin(codes, full.codes))


@at_most(2, because="each example grounds 24 rules, once more for every fact that is left out")
@given(random_knowledge(), st.sampled_from([3, MOST_ENTRIES]))
def test_what_is_left_out_is_what_grounding_without_the_fact_lacks(knowledge: KnowledgeBase, most: int) -> None:
    with patch.object(counting, "MOST_ENTRIES", most):
        counts, base = RuleCounts.from_store(Store(knowledge), THEORY.rules), knowledge.base
        _ = counts._matrices
    for predicate, (declared, shape) in enumerate(zip(base.language.predicates, base.shapes, strict=True)):
        facts = knowledge.known_codes(declared, True)
        patterns = [(counts.by_pattern(predicate, i), counts.left_out(predicate, i)) for i in range(len(shape))]
        for number, fact in enumerate(facts.tolist()):
            truly = counted_one_by_one(without(knowledge, fact))
            for of_pattern, left_out in patterns:
                row = of_pattern.pattern.located(np.array([fact]))[0]
                owner, entries = of_pattern.index.entries(row)
                assert not owner.any()
                less = np.zeros(len(of_pattern.candidates), np.int64)
                part = slice(left_out.starts[number], left_out.starts[number + 1])
                np.add.at(less, left_out.entries[part], left_out.counts[part])
                left = of_pattern.counts[entries] - less[entries]
                codes = row[0] + of_pattern.candidates[entries] * of_pattern.pattern.stride
                found = {
                    (int(j), int(c)): int(n) for j, c, n in zip(of_pattern.rules[entries], codes, left, strict=True)
                }
                rivals = set((row[0] + np.arange(of_pattern.pattern.candidates) * of_pattern.pattern.stride).tolist())
                assert {key: n for key, n in found.items() if n} == {k: n for k, n in truly.items() if k[1] in rivals}


def all_known() -> KnowledgeBase:
    """Every atom of seven constants is true."""
    knowledge = KnowledgeBase.build(THEORY, domains={"d": list("abcdefg")})
    return replace(knowledge, evidence=Evidence(np.arange(knowledge.base.size), np.ones(knowledge.base.size, bool)))


def test_a_rule_with_too_many_ground_rules_is_refused() -> None:
    with pytest.raises(GroundingError, match="more than max_groundings = 100"):
        RuleCounts.from_store(Store(all_known()), THEORY.rules, max_groundings=100)


def test_counts_that_do_not_fit_are_refused() -> None:
    store = Store(all_known(), ceiling=MemoryBudget(30_000))
    message = r"atoms that \d+ of 24 counted rules conclude needs about .*\n  take fewer rules"
    with pytest.raises(MemoryLimitError, match=message):
        RuleCounts.from_store(store, THEORY.rules)


TYPED = """domain e = {b, c}
domain g = {a, f}
domain d = e | g
predicate p(d, d)
predicate q(d, d)
predicate s(e, e)
predicate u(d)
"""
AS_CHAINS = {
    "p(y, x) -> p(x, y)": [("p", False)],
    "q(x, y) -> p(x, y)": [("q", True)],
    "p(x, z) & p(z, y) -> p(x, y)": [("p", True), ("p", True)],
    "q(z, y) & p(x, z) -> p(x, y)": [("p", True), ("q", True)],
    "p(z, x) & p(z, w) & p(y, w) -> p(x, y)": [("p", False), ("p", True), ("p", False)],
    "q(z, x) & p(z, w) & p(w, y) -> p(x, y)": [("q", False), ("p", True), ("p", True)],
    "s(x, z) & s(z, y) -> s(x, y)": [("s", True), ("s", True)],
}
NO_CHAINS = (
    "u(x) & p(x, y) -> p(x, y)",
    "p(x, x) -> p(x, y)",
    "p(x, y) & q(x, y) -> p(x, y)",
    "p(x, z) & p(w, y) -> p(x, y)",
    "p(x, z) & p(z, y) & q(z, w) -> p(x, y)",
    "p(x, z) & p(z, x) & p(x, y) -> p(x, y)",
    "p(x, z) -> p(x, y)",
    "!q(x, z) & p(z, y) -> p(x, y)",
    'p(x, "a") & p("a", y) -> p(x, y)',
    "p(x, y) -> u(x)",
    "p(x, z) & p(z, y) -> p(x, y), x != y",
    "p(x: e, y) -> q(x, y)",
    "p(x, z) & p(z, w) & p(w, v) & p(v, y) -> p(x, y)"
    + "".join(f", {one} != {other}" for one, other in combinations("xyzwv", 2)),
)
FACTS = "p(a,b) p(b,a) p(b,c) p(c,c) p(c,f) p(f,a) q(a,c) q(c,b) q(f,f) q(b,f) s(b,c) s(c,b) s(c,c)"


def guarded(text: str) -> str:
    variables = [name for name in "xyzw" if f"{name}," in text or f"{name})" in text]
    return text + "".join(f", {one} != {other}" for one, other in combinations(variables, 2))


def the_rule(text: str, facts: str = FACTS) -> tuple[KnowledgeBase, Chain | None]:
    known = small_knowledge(f"rule r: {text}\n", facts, theory=TYPED)
    return known, as_chain(known, known.theory.rules[0])


@pytest.mark.parametrize("text", AS_CHAINS)
def test_chains_are_read_from_the_first_variable_of_the_head_to_the_second(text: str) -> None:
    steps = tuple(ChainStep(*step) for step in AS_CHAINS[text])
    head = text.split("-> ")[1][0]
    assert the_rule(text)[1] == Chain(head, steps, distinct=False)
    assert the_rule(guarded(text))[1] == Chain(head, steps, distinct=True)


def test_other_rules_are_none() -> None:
    assert [text for text in NO_CHAINS if the_rule(text)[1] is not None] == []
    for text in ("implicit r: [p(x, y), q(y, z)]", "rule r: p(x, y) | q(x, y)", "rule r: p(x, y) <-> q(x, y)"):
        known = KnowledgeBase.build(parse_theory(TYPED + text + "\n"))
        assert as_chain(known, known.theory.rules[0]) is None


def walks(known: KnowledgeBase, chain: Chain) -> list[tuple[list[int], list[tuple[str, int, int]]]]:
    """All ways of constants along a chain whose steps are known, with the facts that they take."""
    facts = {
        (predicate.name, *fact) for predicate in known.language.predicates for fact in known.facts(predicate).tolist()
    }
    found = []
    for way in product(range(len(known.language.constants)), repeat=len(chain.steps) + 1):
        pairs = zip(chain.steps, way, way[1:], strict=False)
        taken = [(step.predicate, *((x, y) if step.forward else (y, x))) for step, x, y in pairs]
        if facts.issuperset(taken) and (not chain.distinct or len(set(way)) == len(way)):
            found.append((list(way), taken))
    return found


@pytest.mark.parametrize("text", [*AS_CHAINS, *map(guarded, AS_CHAINS)])
@pytest.mark.parametrize("turn", [False, True])
def test_numbers_of_ways_and_of_those_through_a_fact(text: str, turn: bool) -> None:
    known, chain = the_rule(text)
    assert chain is not None
    chain = chain.backwards() if turn else chain
    matrices, every = StepMatrices(known), walks(known, chain)
    counts = Counter((way[0], way[-1]) for way, _ in every)
    size = len(known.language.constants)
    expected = np.array([[counts[x, y] for y in range(size)] for x in range(size)])
    assert np.array_equal(np.concatenate([part.toarray() for _, part in matrices.counts(chain)]), expected)
    parts = [part for _, part in matrices.through(chain)]
    assert all((part.data > 0).all() for part in parts)
    through = np.concatenate([part.toarray() for part in parts])
    for fact, row in zip(known.facts(known.language.predicate(chain.head)).tolist(), through, strict=True):
        start = fact[1] if turn else fact[0]
        own = Counter(way[-1] for way, taken in every if way[0] == start and (chain.head, *fact) in taken)
        assert row.tolist() == [own[y] for y in range(size)]


@st.composite
def step_matrices(draw: st.DrawFn) -> list[np.ndarray]:
    """One to three steps over up to five constants, loops and multiplicities among them, some steps the same."""
    constants, length = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    seed, density = draw(st.integers(0, 2**20)), draw(st.sampled_from([0.0, 0.3, 0.6, 1.0]))
    rng = np.random.default_rng(seed)
    pool = [
        (rng.random((constants, constants)) < density) * rng.integers(1, 3, (constants, constants)) for _ in range(2)
    ]
    pool.append(pool[0].T.copy())  # a predicate read in both directions
    return [pool[rng.integers(3)] for _ in range(length)]


@at_most(60, because="the oracle tries constants to the power of four")
@given(step_matrices(), st.booleans(), st.integers(1, 12) | st.just(MOST_ENTRIES))
def test_counts_are_those_of_plain_loops(steps: list[np.ndarray], distinct: bool, most: int) -> None:
    parts = list(path_counts_in_parts([csr_array(step) for step in steps], distinct, most))
    assert [first for first, _ in parts] == np.cumsum([0, *(len(part.indptr) - 1 for _, part in parts)]).tolist()[:-1]
    found = csr_array(vstack([part for _, part in parts], format="csr"))
    assert found.toarray().tolist() == oracle.path_counts(steps, distinct).tolist()
    assert found.dtype == np.int64
    assert found.has_sorted_indices
    assert (found.data > 0).all(), "no stored zeros"


@at_most(30, because="the oracle multiplies matrices")
@given(step_matrices())
def test_no_product_has_more_entries_in_a_row_than_are_expected(steps: list[np.ndarray]) -> None:
    made, product = np.zeros(len(steps[0]), int), np.eye(len(steps[0]), dtype=int)
    for step in steps:
        product = product @ step
        made += (product > 0).sum(axis=1)
    assert (reached_from([csr_array(step) for step in steps]) >= made).all()


def test_parts_hold_about_as_many_entries_as_they_may() -> None:
    assert row_parts(np.array([1, 1, 1, 1]), 2) == [(0, 1), (1, 3), (3, 4)]
    assert row_parts(np.array([0, 9, 0, 9]), 4) == [(0, 1), (1, 3), (3, 4)]
    assert row_parts(np.array([3, 3]), 100) == [(0, 2)]
