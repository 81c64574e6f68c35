"""What is known: evidence, reciprocal predicates, languages that grow."""

import numpy as np
import pytest
from hypothesis import given

import r2n
from r2n.data.atom_text import facts_from_texts
from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import (
    Evidence,
    KnowledgeBase,
    check_declared,
    constant_ids,
    counterparts,
    grown,
    members_by_atoms,
    members_by_facts,
    members_of,
    reciprocal_codes,
    recoded,
    with_reciprocals,
)
from r2n.errors import DataError
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.logic.language import Domain, Language, Predicate
from tests.examples import at_most
from tests.featured_problem import featured_problem
from tests.theory_strategies import languages
from tests.unit.grounding.small_knowledge import knowledge


def test_evidence_checks_itself_and_is_read_only() -> None:
    for atoms in ([2, 1], [1, 1]):
        with pytest.raises(DataError, match="ascending order"):
            Evidence(np.array(atoms, np.int64), np.ones(2, bool))
    evidence = Evidence(np.array([1, 2], np.int64), np.array([True, False]))
    with pytest.raises(ValueError, match="read-only"):
        evidence.atoms[0] = 5
    assert (len(evidence), len(Evidence.empty())) == (2, 0)


def test_nothing_at_all_is_legal() -> None:
    kb = KnowledgeBase.build(r2n.Theory())
    assert kb.base.size == 0
    assert len(kb.evidence) == 0
    assert len(FullGrounder().ground(Store(kb))) == 0


def test_training_constants_are_those_that_open_labels_speak_of() -> None:
    known = featured_problem().knowledge  # p4 is in a closed fact and in a query, i0 to i2 in labels of alike
    names = [known.language.constants[i] for i in known.training_constants]
    assert names == ["ann", "bob", "i0", "i1", "i2", "p1", "p2", "p3"]
    assert len(knowledge("", "").training_constants) == 0


TOWN, SIDE = Domain("town"), Domain("side", listed=("left", "right"))
PLACE = Domain("place", parts=(TOWN, SIDE))
PREDICATES = (Predicate("near", (TOWN, TOWN)), Predicate("on", (TOWN, SIDE)), Predicate("in", (PLACE, PLACE)))
LANGUAGE = Language.build((TOWN, SIDE, PLACE), PREDICATES, {"town": ["a", "m"]})


def test_constants_join_the_domains_of_their_positions_where_the_data_says_what_is_in_them() -> None:
    facts = facts_from_texts(["near(a, k)", "on(z, middle)", "in(new, a)", "unknown(q)", "near(q)"])
    found = members_by_facts(LANGUAGE, facts)
    assert found == {"town": {"k", "z"}}
    larger = grown(LANGUAGE, found, {"town": {"b"}})
    assert larger.constants == ("a", "b", "k", "left", "m", "right", "z")
    assert [larger.constants[i] for i in larger.members(PLACE)] == list(larger.constants)
    base = HerbrandBase(larger)
    atoms = np.array(sorted(i for i, name in enumerate(base.names(np.arange(base.size))) if name == "near(a, k)"))
    assert members_by_atoms(LANGUAGE, base, atoms) == {"town": {"k"}}
    assert members_of(larger, np.arange(-1, 4)) == {"town": {"a", "b", "k"}}
    assert grown(LANGUAGE) is grown(LANGUAGE, {"town": set()}) is LANGUAGE


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"towns": ["b"]}, "domain 'towns', which does not exist\n  did you mean 'town'"),
        ({"place": ["b"]}, "already says what is in it\n  declare them in one of its parts"),
        ({"side": ["b"]}, "already says what is in it"),
        ({"town": "b"}, "a list of constants was expected"),
        ({"town": ["b", "a"]}, "'a' is declared to be in 'town', but it is no new constant"),
    ],
)
def test_wrong_declarations_are_refused(declared: dict[str, list[str]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_declared(LANGUAGE, declared)


@at_most(60, "each builds two languages")
@given(languages())
def test_codes_follow_their_atoms_into_a_larger_language_and_back(language: Language) -> None:
    first = language.domains[0].name
    larger = grown(language, {first: {"0 before all", "nn", "~ behind all"}})
    old, new = HerbrandBase(language), HerbrandBase(larger)
    codes = np.arange(old.size)[:500]
    there = recoded(codes, old, new)
    assert new.names(there) == old.names(codes)
    assert recoded(there, new, old).tolist() == codes.tolist()
    everywhere = np.arange(new.size)[:2000]
    back, names = recoded(everywhere, new, old), new.names(everywhere)
    inside = set(old.names(np.arange(old.size)))
    assert [name in inside for name in names] == (back >= 0).tolist()
    ids = constant_ids(larger, language)
    assert [larger.constants[i] for i in np.flatnonzero(ids >= 0)] == list(language.constants)


@at_most(60, "each builds two languages")
@given(languages())
def test_codes_follow_their_atoms_between_languages_of_as_many_constants(language: Language) -> None:
    first = language.domains[0].name
    one, other = (HerbrandBase(grown(language, {first: {name}})) for name in ("0 before all", "~ behind all"))
    codes = np.arange(one.size)[:2000]
    code_of = {name: code for code, name in enumerate(other.names(np.arange(other.size)))}
    assert recoded(codes, one, other).tolist() == [code_of.get(name, -1) for name in one.names(codes)]


THEORY = "domain d = {a, b}\ndomain e = {k}\npredicate p(d, d)\npredicate t(d, e) closed\npredicate u(d)\n"


def with_both(rules: str = "") -> r2n.KnowledgeBase:
    return with_reciprocals(knowledge(rules, "p(a,b) t(b,k) u(a)", "p(b,b)", theory=THEORY))


def test_each_binary_predicate_has_one_with_its_domains_turned() -> None:
    kb = with_both()
    found = [(p.name, [d.name for d in p.domains], p.closed, p.reciprocal_of) for p in kb.language.predicates]
    assert found[:3] == [("p", ["d", "d"], False, None), ("t", ["d", "e"], True, None), ("u", ["d"], False, None)]
    assert found[3:] == [("p^-1", ["d", "d"], False, "p"), ("t^-1", ["e", "d"], True, "t")]


def test_facts_have_reciprocals_and_codes_stay() -> None:
    kb, before = with_both(), knowledge("", "p(a,b) t(b,k) u(a)", "p(b,b)", theory=THEORY)
    names = [name.replace('"', "") for name in kb.base.names(kb.evidence.atoms[kb.evidence.truth])]
    assert names == ["p(a, b)", "t(b, k)", "u(a)", "p^-1(b, a)", "t^-1(k, b)"]
    assert (~kb.evidence.truth).sum() == 2
    everything = np.arange(before.base.size)
    assert kb.base.names(everything) == before.base.names(everything)


def test_implicit_rules_relate_the_reciprocals_too_and_explicit_ones_stay() -> None:
    kb = with_both("implicit i: [p(x, y), t(x, z), u(x)]\nrule r: p(x, y) -> p(y, x)\n")
    implicit, explicit = kb.theory.rules
    atoms = [(atom.predicate, [term.name for term in atom.terms]) for atom in implicit.atoms]
    assert atoms[3:] == [("p^-1", ["x", "y"]), ("t^-1", ["z", "x"])]
    assert [atom.predicate for atom in explicit.atoms] == ["p", "p"]


def test_codes_of_reciprocals() -> None:
    kb = with_both()
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
    kb = knowledge("", "p(a,b)", theory=THEORY)  # without reciprocals there are none
    assert (reciprocal_codes(kb.base, np.arange(kb.base.size)) == -1).all()


def test_what_says_the_same_in_the_other_direction() -> None:
    kb = with_both()
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


def topics(papers: int, values: int) -> list[tuple[str, str, str]]:
    return [("topic", f"paper{i}", f"label{i % values}") for i in range(papers)]


@pytest.mark.parametrize(
    ("papers", "values", "expected"), [(20, 4, True), (19, 2, False), (40, 10, False), (30, 1, False)]
)
def test_a_predicate_with_one_fact_a_row_and_few_values_is_functional(
    papers: int, values: int, *, expected: bool
) -> None:
    problem = r2n.Problem.from_facts(
        [*topics(papers, values), ("cites", "paper0", "paper1"), ("cites", "paper0", "paper2")]
    )
    assert problem.knowledge.language.predicate("topic").functional == expected
    assert problem.knowledge.theory.predicates == problem.knowledge.language.predicates
    assert not problem.knowledge.language.predicate("cites").functional
    note = f"topic is functional: {papers} facts give each first constant one of {values} values"
    assert problem.report.notes == ((note,) if expected else ())
    several = r2n.Problem.from_facts([*topics(40, 4), ("topic", "paper0", "label1")])
    assert not several.knowledge.language.predicate("topic").functional
    false = [("topic", f"paper{i}", f"label{(i + 1) % 4}", False) for i in range(40)]
    labelled = r2n.Problem.from_facts([*topics(40, 4), *false])
    assert labelled.knowledge.language.predicate("topic").functional


def test_several_values_of_a_declared_functional_predicate_are_warned_of() -> None:
    declared = "domain paper, label\npredicate topic(paper, label) functional"
    assert r2n.Problem.from_facts(topics(3, 3), declared).report.warnings == ()
    found = r2n.Problem.from_facts([*topics(3, 3), ("topic", "paper0", "label1")], declared)
    assert found.report.warnings == ("topic is declared functional, but paper0 has several values",)
    assert found.knowledge.language.predicate("topic").functional
