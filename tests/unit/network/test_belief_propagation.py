"""Belief propagation and most probable worlds."""

from itertools import product
from math import ceil, log2

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import r2n
from r2n.data.knowledge_base import KnowledgeBase
from r2n.data.tables import read_facts
from r2n.errors import ConfigError
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.grounding.store import Store
from r2n.logic.formula import And, Atom, Implies, Variable
from r2n.logic.theory import Rule
from r2n.network import belief_propagation
from r2n.network.belief_propagation import (
    find_clash,
    infer,
    log_beliefs,
    maximum_maps,
    normalised,
    satisfying,
)
from r2n.network.factor_graph import FactorGraph, known_truths
from tests.examples import at_most

A, B = (Atom(name, (Variable("x"),)) for name in "ab")


@pytest.mark.parametrize("inputs", [1, 2, 3, 5, 8, 13, 31, 64])
def test_the_maximum_by_relu_layers(inputs: int) -> None:
    """Proposition 1: exact, with at most 2 log2 n layers and never more than 2n units in one of them."""
    values = torch.randn(100, inputs, dtype=torch.float64, generator=torch.Generator().manual_seed(inputs)) * 10
    (weight, bias), *rest = maps = maximum_maps([range(inputs)], inputs, inputs)
    found = values @ weight + bias
    for weight, bias in rest:
        found = found.relu() @ weight + bias
    torch.testing.assert_close(found.squeeze(1), values.amax(1), rtol=0, atol=1e-12)
    assert len(maps) == (ceil(log2(inputs)) if inputs > 1 else 0) + 1
    assert len(maps) <= max(1, 2 * ceil(log2(inputs)))
    assert all(len(bias) <= 2 * inputs for _, bias in maps)


def test_implicit_rules_allow_everything() -> None:
    assert len(satisfying(Rule("r", None, (A, B)))) == 4


def implication(weight: float | None) -> FactorGraph:
    """a -> b over atoms 0 and 1; atom 2 stands alone."""
    rule = Rule.explicit("r", Implies(A, B), weight=weight)
    ground = GroundRules(rule, np.array([[0, 1]]), 0.0)
    return FactorGraph.from_grounding(Grounding((ground,)), atoms=np.arange(3))


def probabilities(graph: FactorGraph, prior: list[float], method: str, iterations: int = 5) -> list[float]:
    found = infer(graph, log_beliefs(torch.tensor(prior)), method=method, iterations=iterations)  # pyright: ignore
    return found[:, 1].exp().tolist()


@pytest.mark.parametrize("method", ["paper", "sum-product", "max-product"])
@pytest.mark.parametrize("weight", [None, 1.0])
def test_a_rule_of_many_atoms_is_refused_before_its_worlds_are_listed(method: str, weight: float | None) -> None:
    atoms = [Atom(f"p{i}", (Variable("x"),)) for i in range(60)]
    rule = Rule.explicit("long", Implies(And(tuple(atoms[:-1])), atoms[-1]), weight=weight)
    ground = GroundRules(rule, np.arange(60)[None], 0.0)
    graph = FactorGraph.from_grounding(Grounding((ground,)), atoms=np.arange(60))
    with pytest.raises(ConfigError, match="rule 'long' has 60 atoms, belief propagation takes at most 12"):
        probabilities(graph, [0.5] * 60, method)
    if weight is None:
        with pytest.raises(ConfigError, match="rule 'long' has 60 atoms"):
            find_clash(graph, np.full(60, -1))


def test_a_strict_rule_and_a_known_body_give_the_head() -> None:
    assert probabilities(implication(None), [1.0, 0.5, 0.3], "sum-product") == pytest.approx([1.0, 1.0, 0.3])
    assert probabilities(implication(None), [0.5, 0.0, 0.3], "sum-product") == pytest.approx([0.0, 0.0, 0.3])


def test_the_papers_recursion_forgets_what_it_started_from() -> None:
    """One iteration from a true body makes the head certain; the next one hears only of the head."""
    first = probabilities(implication(None), [1.0, 0.5, 0.3], "paper", iterations=1)
    assert first[1] == pytest.approx(1.0)
    assert first[2] == pytest.approx(0.5), "the empty sum: no belief either way"
    assert probabilities(implication(None), [1.0, 0.5, 0.3], "paper", iterations=0) == pytest.approx([1.0, 0.5, 0.3])


def test_beliefs_of_certain_atoms_are_finite() -> None:
    beliefs = log_beliefs(torch.tensor([0.0, 1.0, 0.25]))
    assert bool(torch.isfinite(beliefs).all())
    assert normalised(beliefs).exp().sum(1).tolist() == pytest.approx([1.0] * 3)


@pytest.mark.parametrize("method", ["max-product", "sum-product"])
def test_where_nothing_changes_any_more_it_ends(method: str) -> None:
    few, many = (probabilities(implication(0.7), [1.0, 0.5, 0.3], method, iterations=n) for n in (50, 10**12))
    assert few == many


DECLARED = "domain d = {a, b}\npredicate p(d)\npredicate q(d)\npredicate e(d, d)\n"
FORMULAS = (
    "p(x) -> q(x)",
    "q(x) -> !p(x)",
    "p(x) | q(x)",
    "p(x) xor q(x)",
    "!p(x) | !q(y)",
    "e(x, y) -> p(x)",
    "e(x, y) <-> !e(y, x)",
    "e(x, y) | e(y, x)",
    "p(x) & e(x, y) -> q(y)",
    "!e(x, x)",
    'p("a")',
    '!q("b")',
)


def graph_of(formulas: list[str], facts: dict[str, bool]) -> tuple[FactorGraph, np.ndarray]:
    rules = "".join(f"rule r{i}: {formula}\n" for i, formula in enumerate(formulas))
    names, truths = list(facts), list(facts.values())
    tables = [
        r2n.Table(
            pa.table({f"c{k}": [name[2 + 3 * k]] for k in range(2 if name[0] == "e" else 1)} | {"label": [int(truth)]}),
            name[0],
        )
        for name, truth in zip(names, truths, strict=True)
    ]
    read = [group for table in tables for group in read_facts(table).facts]
    knowledge = KnowledgeBase.build(r2n.parse_theory(DECLARED + rules), read)
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(knowledge)), np.arange(knowledge.base.size))
    return graph, known_truths(knowledge.base, graph.atoms.numpy(), knowledge.evidence)


def has_world(graph: FactorGraph, rules: tuple[Rule, ...], truths: np.ndarray) -> bool:
    """Every world, one by one."""
    free = np.flatnonzero(truths < 0)
    for values in product((0, 1), repeat=len(free)):
        world = truths.copy()
        world[free] = values
        parts = [(r, rows) for r, rows in zip(graph.rules, graph.neighbours, strict=True) if r in rules]
        if all(
            rule.formula is None or bool(rule.formula.evaluate(world[np.array(row)] == 1))
            for rule, rows in parts
            for row in rows.tolist()
        ):
            return True
    return False


@at_most(60, because="every world is looked at")
@given(
    st.lists(st.sampled_from(FORMULAS), min_size=1, max_size=4, unique=True),
    st.dictionaries(st.sampled_from(["p(a)", "p(b)", "q(a)", "q(b)", "e(a, b)"]), st.booleans(), max_size=4),
)
def test_as_all_worlds_say_and_no_rule_too_many(formulas: list[str], facts: dict[str, bool]) -> None:
    graph, truths = graph_of(formulas, facts)
    found = find_clash(graph, truths)
    assert (found is None) == has_world(graph, tuple(graph.rules), truths)
    if found is not None:
        assert found.is_minimal
        assert not has_world(graph, found.rules, truths)
        for rule in found.rules:
            assert has_world(graph, tuple(other for other in found.rules if other is not rule), truths)


def test_rules_with_a_weight_never_clash() -> None:
    theory = r2n.parse_theory(DECLARED + "rule one [3.0]: p(x)\nrule two [3.0]: !p(x)\n")
    knowledge = KnowledgeBase.build(theory)
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(knowledge)), np.arange(knowledge.base.size))
    assert find_clash(graph, np.full(len(graph.atoms), -1)) is None


def test_what_cannot_be_told_within_the_bounds_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, truths = graph_of(["e(x, y) <-> !e(y, x)", "p(x) xor q(y)", "p(x) xor q(x)", "p(x) <-> q(x)"], {})
    assert find_clash(graph, truths) is not None
    monkeypatch.setattr(belief_propagation, "MOST_TRIES", 0)
    clash = find_clash(graph, truths)
    assert clash is not None
    assert not clash.is_minimal
    monkeypatch.setattr(belief_propagation, "MOST_CLAUSES", 1)
    assert find_clash(graph_of(["p(x) xor q(x)", "p(x) <-> q(x)"], {})[0], np.full(8, -1)) is None
