"""A knowledge base with the reciprocals of its binary predicates."""

import numpy as np

import r2n
from r2n.data.knowledge_base import counterparts, reciprocal_codes, with_reciprocals
from tests.unit.grounding.small_knowledge import knowledge

THEORY = "domain d = {a, b}\ndomain e = {k}\npredicate p(d, d)\npredicate t(d, e) closed\npredicate u(d)\n"


def mirrored(rules: str = "", facts: str = "p(a,b) t(b,k) u(a)", false: str = "p(b,b)") -> r2n.KnowledgeBase:
    return with_reciprocals(knowledge(rules, facts, false, theory=THEORY))


def names(kb: r2n.KnowledgeBase, *, truth: bool) -> list[str]:
    return kb.base.names(kb.evidence.atoms[kb.evidence.truth == truth])


def test_each_binary_predicate_has_one_with_its_domains_turned() -> None:
    kb = mirrored()
    found = [(p.name, [d.name for d in p.domains], p.closed, p.reciprocal_of) for p in kb.language.predicates]
    assert found[:3] == [("p", ["d", "d"], False, None), ("t", ["d", "e"], True, None), ("u", ["d"], False, None)]
    assert found[3:] == [("p^-1", ["d", "d"], False, "p"), ("t^-1", ["e", "d"], True, "t")]


def test_facts_are_mirrored_and_codes_stay() -> None:
    kb, before = mirrored(), knowledge("", "p(a,b) t(b,k) u(a)", "p(b,b)", theory=THEORY)
    assert [name.replace('"', "") for name in names(kb, truth=True)] == [
        "p(a, b)",
        "t(b, k)",
        "u(a)",
        "p^-1(b, a)",
        "t^-1(k, b)",
    ]
    assert len(names(kb, truth=False)) == 2
    everything = np.arange(before.base.size)
    assert kb.base.names(everything) == before.base.names(everything)


def test_implicit_rules_relate_the_reciprocals_too_and_explicit_ones_stay() -> None:
    kb = mirrored("implicit i: [p(x, y), t(x, z), u(x)]\nrule r: p(x, y) -> p(y, x)\n")
    implicit, explicit = kb.theory.rules
    atoms = [(atom.predicate, [term.name for term in atom.terms]) for atom in implicit.atoms]
    assert atoms[3:] == [("p^-1", ["x", "y"]), ("t^-1", ["z", "x"])]
    assert [atom.predicate for atom in explicit.atoms] == ["p", "p"]


def test_codes_of_reciprocals() -> None:
    kb = mirrored()
    everything = np.arange(kb.base.size)
    turned = reciprocal_codes(kb.base, everything)
    text = [name.replace('"', "") for name in kb.base.names(everything)]
    for code, other in zip(everything.tolist(), turned.tolist(), strict=True):
        name, inside = text[code].rstrip(")").split("(")
        if name in ("u", "p^-1", "t^-1"):
            assert other == -1
        else:
            first, second = inside.split(", ")
            assert text[other] == f"{name}^-1({second}, {first})"


def test_without_reciprocals_there_are_none() -> None:
    kb = knowledge("", "p(a,b)", theory=THEORY)
    assert (reciprocal_codes(kb.base, np.arange(kb.base.size)) == -1).all()


def test_what_says_the_same_in_the_other_direction() -> None:
    kb = mirrored()
    everything = np.arange(kb.base.size)
    found = counterparts(kb.base, everything)
    assert (found[reciprocal_codes(kb.base, everything)[:4]] == everything[:4]).all()
    has_one = found >= 0
    assert (found[found[has_one]] == everything[has_one]).all()
    assert [name for name in kb.base.names(everything[~has_one]) if not name.startswith("u(")] == []


def test_predicates_of_the_data_that_are_named_like_reciprocals_stay_what_they_are() -> None:
    """Whatever the data calls its predicates, each binary one has a reciprocal of a name that no other has."""
    own = ["p", "p^-1", "p^-1^-1", "p^-1 (reciprocal)"]
    theory = "domain d = {a, b}\n" + "".join(f'predicate "{name}"(d, d)\n' for name in own)
    before = knowledge("", "p(a,b)", "", theory=theory)
    kb = with_reciprocals(before)
    predicates = kb.language.predicates
    assert [p.name for p in predicates[:4]] == own
    assert [p.reciprocal_of for p in predicates[4:]] == own
    assert len({p.name for p in predicates}) == 8
    assert [p.name for p in predicates[4:6]] == ["p^-1 (reciprocal) (reciprocal)", "p^-1^-1 (reciprocal)"]
    everything = np.arange(before.base.size)
    assert kb.base.names(everything) == before.base.names(everything)
    true = kb.evidence.atoms[kb.evidence.truth]
    assert kb.base.decode(true)[0].tolist() == [0, 4], "p(a, b), and its reciprocal alone"
    assert np.array_equal(counterparts(kb.base, true), true[::-1])
    assert str(r2n.parse_theory(str(kb.theory))) == str(kb.theory)
