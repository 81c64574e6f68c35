"""Queries answered by joins of arrays, by hand."""

import pytest

import r2n
from r2n.grounding.joins import Kind, RuleQuery
from r2n.grounding.known_body import known_body_query
from r2n.grounding.store import MOST_ROWS, TooManyRowsError, joined
from r2n.grounding.substitutions import Substitutions
from tests.unit.grounding.small_knowledge import knowledge

GRAPH = "domain d = {a, b, c}\npredicate p(d, d)\npredicate q(d, d)\npredicate t(d, d, d)\n"


def known_bodies(kb: r2n.KnowledgeBase, most_rows: int = MOST_ROWS) -> Substitutions:
    return joined(known_body_query(r2n.Store(kb), kb.theory.rules[0]), kb.language, most_rows)


def texts(kb: r2n.KnowledgeBase, found: Substitutions) -> list[str]:
    """Substitutions, each as the names of its constants, sorted."""
    return sorted(" ".join(kb.language.constants[constant] for constant in row) for row in found.tolist())


def substitutions(kb: r2n.KnowledgeBase) -> list[str]:
    """The substitutions of the first rule."""
    return texts(kb, known_bodies(kb))


def graph(rule: str, facts: str, false: str = "") -> r2n.KnowledgeBase:
    return knowledge(f"rule r: {rule}\n", facts, false, theory=GRAPH)


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
        assert known_bodies(kb).shape == (count, 0)


@pytest.mark.parametrize("rule", ["p(x, y) & q(y, z) -> p(x, z)", "p(x, y) & q(z, w) -> p(x, w)", "p(x, y) -> p(x, z)"])
def test_a_join_that_memory_may_not_hold_is_left_to_others(rule: str) -> None:
    kb = graph(rule, "p(a,b) p(c,b) q(b,a) q(b,c)")
    count = len(known_bodies(kb))
    assert len(known_bodies(kb, most_rows=count)) == count
    with pytest.raises(TooManyRowsError):
        known_bodies(kb, most_rows=count - 1)


def test_at_most_so_many_of_the_counted_atoms_are_missing() -> None:
    kb = graph("p(x, y) & q(y, z) & q(x, z) -> p(x, z)", "p(a,b) q(b,c) q(a,a) q(b,b) q(a,b)")
    store, (rule,) = r2n.Store(kb), kb.theory.rules
    first, *others = [store.match(Kind.FACT, atom) for atom in rule.atoms[:3]]
    for width, expected in ((0, ["a b b"]), (1, ["a b a", "a b b", "a b c"]), (2, ["a b a", "a b b", "a b c"])):
        query = RuleQuery(rule, rule.variables, store.domains(rule), (first,), (), tuple(others), width)
        assert texts(kb, joined(query, kb.language)) == expected
    assert texts(kb, joined(RuleQuery(rule, rule.variables, store.domains(rule), (first,)), kb.language)) == [
        "a b a",
        "a b b",
        "a b c",
    ]


def test_atoms_that_are_to_be_apart_are_not_the_same() -> None:
    kb = graph("p(x, y) & p(y, z) -> p(x, z)", "p(a,a) p(a,b) p(b,b)")
    store, (rule,) = r2n.Store(kb), kb.theory.rules
    matches = tuple(store.match(Kind.FACT, atom) for atom in rule.atoms[:2])
    apart = ((rule.atoms[0], rule.atoms[2]),)
    query = RuleQuery(rule, rule.variables, store.domains(rule), matches, apart=apart)
    assert texts(kb, joined(query, kb.language)) == ["a a b"]
