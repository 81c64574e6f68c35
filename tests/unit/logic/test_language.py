"""Domains, predicates, and the language they form."""

import pytest

from r2n.errors import DataError
from r2n.logic.language import Domain, Language, Predicate

COUNTRY, REGION = Domain("country"), Domain("region")
PLACE = Domain("place", parts=(COUNTRY, REGION))


def test_a_domain_is_within_itself_and_the_unions_it_is_part_of() -> None:
    world = Domain("world", parts=(PLACE, Domain("sea")))
    assert COUNTRY.is_within(COUNTRY)
    assert COUNTRY.is_within(PLACE)
    assert COUNTRY.is_within(world)
    assert PLACE.is_within(world)
    assert not PLACE.is_within(COUNTRY)
    assert not COUNTRY.is_within(REGION)


def test_a_union_is_within_a_union_of_more() -> None:
    more = Domain("more", parts=(REGION, COUNTRY, Domain("sea")))
    assert PLACE.is_within(more)
    assert not more.is_within(PLACE)


def test_constants_are_sorted_and_shared_between_domains() -> None:
    colour = Domain("colour", listed=("red", "blue"))
    language = Language.build(
        [COUNTRY, REGION, PLACE, colour], [], {"country": ["micronesia", "italy"], "region": ["micronesia"]}
    )
    assert language.constants == ("blue", "italy", "micronesia", "red")
    assert [language.constants[i] for i in language.members(COUNTRY)] == ["italy", "micronesia"]
    assert language.members(PLACE).tolist() == [1, 2]
    assert language.members(colour).tolist() == [0, 3]
    assert language.constant_id("red") == 3


def test_domains_nobody_fills_are_empty() -> None:
    language = Language.build([COUNTRY, PLACE], [Predicate("p", (COUNTRY,))])
    assert language.constants == ()
    assert language.members(PLACE).shape == (0,)


def test_names_that_are_not_there_are_answered_with_the_nearest() -> None:
    language = Language.build([COUNTRY], [Predicate("locatedIn", (COUNTRY, COUNTRY))], {"country": ["italy"]})
    assert language.predicate("locatedIn").arity == 2
    with pytest.raises(DataError, match=r"unknown predicate 'locatedln'\n  did you mean 'locatedIn'\?"):
        language.predicate("locatedln")
    with pytest.raises(DataError, match=r"unknown constant 'itally'\n  did you mean 'italy'\?"):
        language.constant_id("itally")


def test_values_are_hashable_and_compare_by_value() -> None:
    assert hash(Predicate("p", (PLACE,))) == hash(Predicate("p", (Domain("place", parts=(COUNTRY, REGION)),)))
    assert Predicate("p", (PLACE,)) != Predicate("p", (PLACE,), closed=True)
