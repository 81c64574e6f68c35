"""The paper's own examples: a language of 12 ground atoms, and a rule with 9 ground rules."""

import numpy as np

from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.network.factor_graph import FactorGraph

SMOKERS = """
domain person = {a, b, c}
predicate S(person)
predicate F(person, person)
rule r1: S(x) & F(x, y) -> S(y)
"""


def knowledge() -> KnowledgeBase:
    return KnowledgeBase.build(parse_theory(SMOKERS), [])


def test_example_1_the_herbrand_base_has_12_ground_atoms() -> None:
    base = knowledge().base
    people = ["a", "b", "c"]
    expected = [f"S({x})" for x in people] + [f"F({x}, {y})" for x in people for y in people]
    assert base.size == 12
    assert base.names(np.arange(12)) == expected


def test_example_2_the_rule_has_9_ground_rules() -> None:
    known = knowledge()
    (part,) = FullGrounder().ground(Store(known)).ground_rules
    people = ["a", "b", "c"]
    expected = [[f"S({x})", f"F({x}, {y})", f"S({y})"] for x in people for y in people]
    assert len(part) == 9
    assert [known.base.names(row) for row in part.atoms] == expected


def test_the_factor_graph_of_example_2_has_every_atom_and_every_ground_rule() -> None:
    """Sec. II-C: V = HB, F = R; S(a) & F(a, a) -> S(a) holds one atom in two positions."""
    grounding = FullGrounder().ground(Store(knowledge()))
    graph = FactorGraph.from_grounding(grounding)
    assert graph.atoms.tolist() == list(range(12))
    (neighbours,) = graph.neighbours
    assert neighbours.shape == (9, 3)
    assert neighbours[0].tolist() == [0, 3, 0]
