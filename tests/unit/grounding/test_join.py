"""Known bodies by joins of arrays, by hand."""

import numpy as np
import pytest

import r2n
from r2n.grounding import join
from r2n.grounding.join import Relation, Relations, TooManyRowsError, known_bodies
from tests.unit.grounding.small_knowledge import knowledge

GRAPH = "domain d = {a, b, c}\npredicate p(d, d)\npredicate q(d, d)\npredicate t(d, d, d)\n"


def substitutions(kb: r2n.KnowledgeBase) -> list[str]:
    """The substitutions of the first rule, each as the names of its constants, sorted."""
    found = known_bodies(Relations(kb), kb.theory.rules[0])
    names = kb.language.constants
    return sorted(" ".join(names[constant] for constant in row) for row in found.tolist())


def graph(rule: str, facts: str, false: str = "") -> r2n.KnowledgeBase:
    return knowledge(f"rule r: {rule}\n", facts, false, theory=GRAPH)


def test_an_index_orders_rows_by_constant() -> None:
    relation = Relation(np.arange(3), np.array([[0, 2], [1, 0], [1, 2]]), constants=4)
    for position, order, starts in ((0, [0, 1, 2], [0, 1, 3, 3, 3]), (1, [1, 0, 2], [0, 1, 1, 3, 3])):
        found = relation.index(position)
        assert [part.tolist() for part in found] == [order, starts]
        assert relation.index(position) is found, "made once"


def test_a_join_multiplies_the_matches() -> None:
    kb = graph("p(x, y) & q(y, z) -> p(x, z)", "p(a,b) p(c,b) p(a,c) q(b,a) q(b,c)")
    assert substitutions(kb) == ["a b a", "a b c", "c b a", "c b c"]


def test_two_atoms_on_the_same_variables() -> None:
    assert substitutions(graph("p(x, y) & q(y, x) -> p(x, x)", "p(a,b) p(b,c) q(b,a) q(b,c)")) == ["a b"]


def test_a_repeated_variable_and_a_constant() -> None:
    facts = "p(a,a) p(a,b) p(b,b) q(a,c) q(b,a)"
    assert substitutions(graph("p(x, x) & q(x, y) -> p(x, y)", facts)) == ["a c", "b a"]
    assert substitutions(graph('p("a", x) & q(x, y) -> p(x, y)', facts)) == ["a c", "b a"]
    assert substitutions(graph('p("c", x) -> p(x, x)', facts)) == []
    assert substitutions(graph('p("a", "b") & q(x, y) -> p(x, y)', facts)) == ["a c", "b a"]
    assert substitutions(graph('p("b", "a") & q(x, y) -> p(x, y)', facts)) == []


def test_two_bound_positions_of_three() -> None:
    kb = graph("p(x, y) & t(x, y, z) -> p(x, z)", "p(a,b) p(b,b) t(a,b,c) t(a,c,c) t(b,b,a) t(c,b,a)")
    assert substitutions(kb) == ["a b c", "b b a"]


def test_atoms_that_share_nothing_are_crossed() -> None:
    assert substitutions(graph("p(x, y) & q(z, w) -> p(x, w)", "p(a,b) q(b,c) q(c,c)")) == ["a b b c", "a b c c"]


def test_denied_atoms_guards_and_free_variables() -> None:
    assert substitutions(graph("p(x, y) & !q(x, y) -> p(y, x)", "p(a,b) p(b,c)", "q(b,c) q(c,c)")) == ["b c"]
    assert substitutions(graph("p(x, y) -> q(x, z), x != y", "p(a,a) p(a,b)")) == ["a b a", "a b b", "a b c"]


def test_a_rule_without_variables_has_one_substitution_or_none() -> None:
    for facts, count in (("p(a,b)", 1), ("p(b,a)", 0)):
        kb = graph('p("a", "b") -> q("a", "a")', facts)
        assert known_bodies(Relations(kb), kb.theory.rules[0]).shape == (count, 0)


@pytest.mark.parametrize("rule", ["p(x, y) & q(y, z) -> p(x, z)", "p(x, y) & q(z, w) -> p(x, w)", "p(x, y) -> p(x, z)"])
def test_a_join_that_memory_may_not_hold_is_left_to_others(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kb = graph(rule, "p(a,b) p(c,b) q(b,a) q(b,c)")
    count = len(known_bodies(Relations(kb), kb.theory.rules[0]))
    monkeypatch.setattr(join, "MOST_ROWS", count)
    assert len(known_bodies(Relations(kb), kb.theory.rules[0])) == count
    monkeypatch.setattr(join, "MOST_ROWS", count - 1)
    with pytest.raises(TooManyRowsError):
        known_bodies(Relations(kb), kb.theory.rules[0])
