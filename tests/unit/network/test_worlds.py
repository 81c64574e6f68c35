"""Whether a world satisfies strict rules: against all belief_propagation, one by one."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import r2n
from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.full import FullGrounder
from r2n.logic.theory import Rule
from r2n.network import belief_propagation
from r2n.network.belief_propagation import find_clash
from r2n.network.factor_graph import FactorGraph, known_truths
from tests.examples import at_most

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
    read = [group for table in tables for group in r2n.data.tables.read_facts(table).facts]
    knowledge = KnowledgeBase.build(r2n.parse_theory(DECLARED + rules), read)
    graph = FactorGraph.from_grounding(FullGrounder().ground(r2n.Store(knowledge)), np.arange(knowledge.base.size))
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
    graph = FactorGraph.from_grounding(FullGrounder().ground(r2n.Store(knowledge)), np.arange(knowledge.base.size))
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
