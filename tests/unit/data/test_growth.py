"""Languages that grow, and the codes of atoms in them."""

import numpy as np
import pytest
from hypothesis import given

from r2n.data.atom_text import facts_from_texts
from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import (
    check_declared,
    constant_ids,
    grown,
    members_by_atoms,
    members_by_facts,
    members_of,
    recoded,
)
from r2n.errors import DataError
from r2n.logic.language import Domain, Language, Predicate
from tests.examples import at_most
from tests.theory_strategies import languages

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


def test_without_more_it_is_the_same_language() -> None:
    assert grown(LANGUAGE) is LANGUAGE
    assert grown(LANGUAGE, {"town": set()}) is LANGUAGE


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
