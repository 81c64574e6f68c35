"""Theories as records: what no theory file could hold comes back too."""

import json
from dataclasses import replace

import pytest

from r2n.logic.horn import parse_horn_rules
from r2n.logic.language import Domain, Predicate
from r2n.logic.parser import parse_theory
from r2n.logic.theory import Theory
from r2n.store.stored_problem import signature_of, signature_record, theory_of, theory_record
from tests.same_records import assert_same

RICH = """
domain town, "rule"
domain colour = {red, "light blue", "say \\"hi\\"", "two\\nlines"}
domain nothing = {}
domain place = town | "rule"
domain all = place | colour
predicate near(place, place) closed
predicate liesIn(all, place) closed(town, "rule") closed(colour, town)
predicate "->"(all)
predicate between(town, town, town)
rule weighted [0.1]: near(x: town, y) & !liesIn(x, "light blue") -> liesIn(y, x) | "->"(y), x != y, x != "Zoë"
rule any [-2e-7]: (near(x, y) <-> !(near(y, x) xor "->"(x))) & ("->"(y) | near(x, x))
rule alone: "->"("x")
implicit related: [between(x, y, z), between(x, x, y)], x != y
implicit star [3]: *(x: town, y)
"""


def stored(theory: Theory) -> Theory:
    return theory_of(json.loads(json.dumps(theory_record(theory))), theory.source)


@pytest.mark.parametrize("text", ["", "domain d", RICH])
def test_a_theory_comes_back(text: str) -> None:
    theory = parse_theory(text, "somewhere.r2n")
    found = stored(theory)
    assert found == theory
    assert str(found) == str(theory)
    assert_same(found, theory)


def test_a_theory_with_its_stars_replaced_comes_back() -> None:
    theory = parse_theory(RICH)
    assert_same(stored(theory.completed(theory.domains, theory.predicates)), theory.completed(*signature(theory)))


def signature(theory: Theory) -> tuple[tuple[Domain, ...], tuple[Predicate, ...]]:
    return theory.domains, theory.predicates


def test_what_a_theory_file_cannot_say_comes_back() -> None:
    horn = parse_horn_rules("p(x-1,y), q(y,new york) -> h(x-1,new york)")
    horn = replace(horn, rules=(replace(horn.rules[0], weight=-1e4),))
    assert_same(stored(horn), horn)
    long = Domain("long", tuple(f"{i:060}" for i in range(20_000)))
    part = Domain("declared nowhere", ("a",))
    union = Domain("union", parts=(long, part))
    nullary = Predicate("it_rains", ())
    both = Predicate("both", (long, union), True, ((long, part),), reciprocal_of="it_rains")
    theory = Theory((union, long), (nullary, both))
    assert_same(stored(theory), theory)


def test_each_domain_is_written_once_and_is_one_object_again() -> None:
    theory = parse_theory(RICH)
    record = signature_record(theory.domains, theory.predicates)
    assert len(record["written"]) == len(theory.domains)
    domains, predicates = signature_of(json.loads(json.dumps(record)))
    objects = {id(domain) for domain in domains}
    assert {id(domain) for predicate in predicates for domain in predicate.domains} <= objects


def test_any_change_changes_the_record() -> None:
    theory = parse_theory(RICH)
    rule = theory.rules[0]
    changed = (replace(rule, weight=0.2), replace(rule, guards=rule.guards[:1]), replace(rule, name="other"))
    records = [json.dumps(theory_record(replace(theory, rules=(r, *theory.rules[1:])))) for r in (rule, *changed)]
    assert len(set(records)) == len(records)
