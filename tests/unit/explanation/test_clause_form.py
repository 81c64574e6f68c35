"""Clauses as rules: a theory with them means the same, and is parsed again."""

import r2n
from r2n.explanation.rules import canonical, clause_rule
from r2n.logic.parser import parse_theory

THEORY = parse_theory(
    """
    domain country, region
    domain place = country | region
    predicate in(place, place)
    predicate near(country, country)
    predicate big(place)
    implicit one: [in(x: country, y), near(x, z), in(z, y: region), big(y)], x != z
    """
)
RULE = THEORY.rules[0]


def text(body: list[tuple[int, bool]], head: tuple[int, bool]) -> str:
    return str(clause_rule(RULE, body, head, THEORY)).partition(": ")[2]


def test_guards_stay_where_their_variables_do() -> None:
    assert text([(0, True), (1, True)], (2, True)) == ("in(x, y: region) & near(x, z) -> in(z, y), x != z")
    assert "!=" not in text([(0, True)], (3, True))


def test_variables_keep_the_domains_that_the_whole_rule_gave_them() -> None:
    """`x` alone would be any place."""
    assert text([(0, True)], (3, False)) == "in(x: country, y: region) -> !big(y)"
    rule = clause_rule(RULE, [(0, True)], (3, True), THEORY, name="n")
    whole = r2n.Theory(THEORY.domains, THEORY.predicates, (rule,))
    assert parse_theory(str(whole)) == whole
    assert [domain.name for domain in whole.variable_domains(rule)] == ["country", "region"]


def test_clauses_are_equal_up_to_the_names_of_variables() -> None:
    theory = parse_theory(
        "domain d\npredicate p(d, d)\npredicate q(d, d)\nimplicit i: [p(x, y), q(x, y), p(y, x), q(y, x)]"
    )
    rule = theory.rules[0]
    assert canonical(rule, [(0, False), (1, True)], theory) == canonical(rule, [(3, True), (2, False)], theory)
    assert canonical(rule, [(0, False), (1, True)], theory) != canonical(rule, [(0, False), (3, True)], theory)
    assert canonical(rule, [(0, False), (1, True)], theory) != canonical(rule, [(0, True), (1, False)], theory)


def test_variables_of_other_domains_are_not_exchanged() -> None:
    theory = parse_theory("domain d, e\ndomain f = d | e\npredicate p(f)\nimplicit i: [p(x: d), p(y: e)]")
    rule = theory.rules[0]
    assert canonical(rule, [(0, True)], theory) != canonical(rule, [(1, True)], theory)
