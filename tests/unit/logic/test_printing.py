"""Declarations and annotations, printed as they are read."""

import pytest

from r2n.logic.language import Domain, Predicate
from r2n.logic.parser import parse_theory
from r2n.logic.theory import annotated, printed_domain, printed_predicate

TOWN, VALLEY = Domain("town", listed=("a b", "c")), Domain("valley")
PLACE = Domain("place", parts=(TOWN, VALLEY))


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (TOWN, 'domain town = {"a b", c}'),
        (VALLEY, "domain valley"),
        (PLACE, "domain place = town | valley"),
        (Domain("two words"), 'domain "two words"'),
    ],
)
def test_domains(domain: Domain, text: str) -> None:
    assert printed_domain(domain) == text


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (Predicate("liesIn", (PLACE, VALLEY)), "liesIn(place, valley)"),
        (Predicate("near", (TOWN, TOWN), True), "near(town, town) closed"),
        (Predicate("in", (PLACE, PLACE), False, ((TOWN, VALLEY),)), "in(place, place) closed(town, valley)"),
    ],
)
def test_predicates(predicate: Predicate, text: str) -> None:
    assert printed_predicate(predicate) == text
    declared = "".join(f"{printed_domain(domain)}\n" for domain in (TOWN, VALLEY, PLACE))
    assert parse_theory(f"{declared}predicate {text}\n").predicates == (predicate,)


def test_a_variable_is_annotated_where_it_stands_first_and_a_text_or_predicate_of_its_name_never() -> None:
    assert annotated('x(x, "x", y) & q(x)', {"x": "town", "y": "a valley"}) == 'x(x: town, "x", y: "a valley") & q(x)'
