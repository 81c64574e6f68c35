"""Rules whose body is a chain, and their numbers by sparse matrices, against trying all constants in all places."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest

from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.counting import Chain, ChainStep, StepMatrices, as_chain
from r2n.logic.parser import parse_theory
from tests.unit.grounding.small_knowledge import knowledge

DECLARED = """domain e = {b, c}
domain g = {a, f}
domain d = e | g
predicate p(d, d)
predicate q(d, d)
predicate s(e, e)
predicate u(d)
"""
CHAINS = {
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


def distinct(text: str) -> str:
    variables = [name for name in "xyzw" if f"{name}," in text or f"{name})" in text]
    return text + "".join(f", {one} != {other}" for one, other in combinations(variables, 2))


def the_rule(text: str, facts: str = FACTS) -> tuple[KnowledgeBase, Chain | None]:
    known = knowledge(f"rule r: {text}\n", facts, theory=DECLARED)
    return known, as_chain(known, known.theory.rules[0])


@pytest.mark.parametrize("text", CHAINS)
def test_chains_are_read_from_the_first_variable_of_the_head_to_the_second(text: str) -> None:
    steps = tuple(ChainStep(*step) for step in CHAINS[text])
    head = text.split("-> ")[1][0]
    assert the_rule(text)[1] == Chain(head, steps, distinct=False)
    assert the_rule(distinct(text))[1] == Chain(head, steps, distinct=True)


@pytest.mark.parametrize("text", NO_CHAINS)
def test_other_rules_are_none(text: str) -> None:
    assert the_rule(text)[1] is None


def test_no_formula_but_an_implication_of_one_atom_is_a_chain() -> None:
    for text in ("implicit r: [p(x, y), q(y, z)]", "rule r: p(x, y) | q(x, y)", "rule r: p(x, y) <-> q(x, y)"):
        known = KnowledgeBase.build(parse_theory(DECLARED + text + "\n"))
        assert as_chain(known, known.theory.rules[0]) is None


def test_turned_twice_a_chain_is_itself() -> None:
    chain = the_rule("q(z, x) & p(z, w) & p(w, y) -> p(x, y)")[1]
    assert chain is not None
    assert chain.turned() == Chain(
        "p", (ChainStep("p", False), ChainStep("p", False), ChainStep("q", True)), False, True
    )
    assert chain.turned().turned() == chain


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


@pytest.mark.parametrize("text", [*CHAINS, *map(distinct, CHAINS)])
@pytest.mark.parametrize("turn", [False, True])
def test_numbers_of_ways_and_of_those_through_a_fact(text: str, turn: bool) -> None:
    known, chain = the_rule(text)
    assert chain is not None
    chain = chain.turned() if turn else chain
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
