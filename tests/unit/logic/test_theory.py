"""Languages, formulas and theories by hand."""

import pytest

from r2n.errors import DataError, TheoryError
from r2n.logic.formula import And, Atom, Constant, Implies, Unequal, Variable
from r2n.logic.language import Domain, Language, Predicate
from r2n.logic.parser import parse_theory
from r2n.logic.theory import MOST_WEIGHT, Rule, Theory

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

    more = Domain("more", parts=(REGION, COUNTRY, Domain("sea")))
    assert PLACE.is_within(more)
    assert not more.is_within(PLACE)


def test_domains_nobody_fills_are_empty() -> None:
    language = Language.build([COUNTRY, PLACE], [Predicate("p", (COUNTRY,))], {})
    assert language.constants == ()
    assert language.members(PLACE).shape == (0,)


def test_names_that_are_not_there_are_answered_with_the_nearest() -> None:
    language = Language.build([COUNTRY], [Predicate("locatedIn", (COUNTRY, COUNTRY))], {"country": ["italy"]})
    assert language.predicate("locatedIn").arity == 2
    with pytest.raises(DataError, match=r"unknown predicate 'locatedln'\n  did you mean 'locatedIn'\?"):
        language.predicate("locatedln")
    with pytest.raises(DataError, match=r"unknown constant 'itally'\n  did you mean 'italy'\?"):
        language.constant_id("itally")


X = Variable("x")
P = Atom("p", (X,))


def test_the_same_name_as_constant_and_as_variable_makes_two_atoms() -> None:
    assert And((P, Atom("p", (Constant("x"),)))).atoms() == (P, Atom("p", (Constant("x"),)))
    assert rule('p("x", y) -> q(y)').variables == ("y",)


Y = Variable("y")


def rule(text: str) -> Rule:
    (only,) = parse_theory(f"rule r: {text}").rules
    return only


def test_a_rule_without_atoms_or_with_a_loose_guard_is_refused() -> None:
    with pytest.raises(TheoryError, match="rule 'r' is empty"):
        Rule("r", None, ())
    with pytest.raises(TheoryError, match="rule 'r' is unsafe: y stands in a guard but in no atom"):
        Rule("r", None, (Atom("p", (X,)),), guards=(Unequal(X, Y),))


def test_the_narrowest_domain_is_inferred_and_annotations_win() -> None:
    theory = parse_theory(
        "domain country, region\n"
        "domain place = country | region\n"
        "predicate locatedIn(place, place)\n"
        "predicate neighborOf(country, country)\n"
        "rule r: neighborOf(x, y) & locatedIn(x, z: region) -> locatedIn(y, z)\n"
        'rule s: locatedIn("a", x) -> locatedIn(x, y)\n'
    )
    first, second = ([domain.name for domain in theory.variable_domains(rule)] for rule in theory.rules)
    assert first == ["country", "country", "region"]
    assert second == ["place", "place"]


def test_a_domain_that_cannot_be_inferred_is_an_error_that_says_what_to_write() -> None:
    d, e = Domain("d"), Domain("e")
    both = Rule("r", None, (Atom("p", (X,)), Atom("q", (X,))))
    with pytest.raises(
        TheoryError, match=r"domain of x cannot be inferred: it stands in d and e positions\n  write x: DOMAIN"
    ):
        Theory((d, e), (Predicate("p", (d,)), Predicate("q", (e,))), (both,))


def test_rules_without_declarations_are_checked_when_the_predicates_come() -> None:
    theory = Theory(rules=(Rule.explicit("r", Implies(Atom("p", (X,)), Atom("q", (X, Constant("a"))))),))
    things = Domain("constant")
    full = theory.completed((things,), (Predicate("p", (things,)), Predicate("q", (things, things))))
    assert full.variable_domains(full.rules[0]) == (things,)
    with pytest.raises(TheoryError, match="q takes 1"):
        theory.completed((things,), (Predicate("p", (things,)), Predicate("q", (things,))))


def test_a_star_stands_for_every_predicate_of_the_signature() -> None:
    theory = parse_theory("domain d\npredicate p(d, d)\npredicate q(d)\npredicate r(d, d)\nimplicit all: *(x, y)")
    (expanded,) = theory.completed(theory.domains, theory.predicates).rules
    assert expanded.atoms == (Atom("p", (X, Y)), Atom("r", (X, Y)))
    assert str(theory.rules[0]) == "implicit all: *(x, y)"


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -float("inf"), 1.1 * MOST_WEIGHT, -1e300])
def test_a_weight_that_is_no_number_or_outweighs_everything_is_refused(weight: float) -> None:
    atom = Atom("p", (Variable("x"),))
    with pytest.raises(TheoryError, match=r"rule 'r' has the weight .*\n  a weight is a number .* holds strictly"):
        Rule.explicit("r", atom, weight=weight)
    for text in (f"rule r [{weight}]: p(x) -> q(x)", f"implicit r [{weight}]: [p(x), q(x)]"):
        with pytest.raises(TheoryError):
            parse_theory(text)
    assert Rule.explicit("r", atom, weight=-MOST_WEIGHT).weight == -MOST_WEIGHT
