"""Printing a theory and parsing it again gives the same theory, and the parts of a rule are what loops find."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from r2n.errors import TheoryError
from r2n.logic.formula import And, Atom, Constant, Implies, Variable
from r2n.logic.language import Domain, Predicate
from r2n.logic.parser import parse_theory
from r2n.logic.theory import MOST_WEIGHT, Rule, Theory
from tests.examples import at_most
from tests.oracles import grounding as oracle
from tests.oracles.formula import literals
from tests.theory_strategies import theories

QUARTER = at_most(50, "each prints and parses a theory")
ODD_NAMES = st.one_of(
    st.sampled_from(
        ["rule", "closed", "functional", "xor", "x", "light blue", 'say "hi"', "back\\slash", "tab\there", "#no", "ö"]
    ),
    st.sampled_from(["/film/film/genre", "1", "", "a,b", "p(x)", "x != y", "two\nlines", "x: d", "(", "->"]),
    st.text(max_size=4).filter(lambda text: text.isprintable()),
)


@given(theories(), st.floats(-MOST_WEIGHT, MOST_WEIGHT))
def test_a_printed_theory_parses_to_itself_with_weights_comments_and_empty_lines(theory: Theory, weight: float) -> None:
    text = str(theory)
    assert parse_theory(text) == theory
    assert str(parse_theory(text)) == text
    assert parse_theory("# a comment\n\n" + text.replace("\n", "   # and another\r\n\r\n")) == theory
    weighted = replace(theory, rules=tuple(replace(rule, weight=weight) for rule in theory.rules))
    assert parse_theory(str(weighted)) == weighted


@st.composite
def theories_with_odd_names(draw: DrawFn) -> Theory:
    name = ODD_NAMES.filter(bool).filter(lambda text: text != "*")
    domain = Domain(draw(name), listed=tuple(draw(st.lists(ODD_NAMES, max_size=3, unique=True))))
    predicate = Predicate(draw(name), (domain, domain), closed=draw(st.booleans()), functional=draw(st.booleans()))
    x, y = Variable("x"), Variable("d")
    body = And((Atom(predicate.name, (x, Constant(draw(ODD_NAMES)))), Atom(predicate.name, (x, y))))
    rule = Rule.explicit(draw(name), Implies(body, Atom(predicate.name, (y, x))), types=(("x", domain.name),))
    return Theory((domain,), (predicate,), (rule,))


@QUARTER
@given(theories_with_odd_names())
def test_any_name_survives_printing(theory: Theory) -> None:
    assert parse_theory(str(theory)) == theory


@given(theories())
def test_body_head_variables_and_domains_are_what_loops_find(theory: Theory) -> None:
    for rule in theory.rules:
        body = [(rule.atoms[literal.position], literal.positive) for literal in rule.body]
        assert body == literals(rule.formula)
        assert [rule.atoms[i] for i in rule.head_positions] == oracle.heads_of(rule)
        assert list(rule.variables) == oracle.variables_of(rule)
        assert rule.is_implicit == (rule.formula is None)
        expected = [oracle.domain_of(theory, rule, name) for name in rule.variables]
        assert list(theory.variable_domains(rule)) == expected


KEYWORDS = ("domain ", "predicate ", "rule ", "implicit ", "closed", " xor ", " -> ", " <-> ", " != ")
PIECES = (*KEYWORDS, *"pdx(),:[]!={}*&|\n", '"a"')
TEXTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=25).map("".join))


@given(TEXTS)
def test_any_text_is_a_theory_or_an_error_with_its_line(text: str) -> None:
    try:
        found = parse_theory(text, "theory.r2n")
    except TheoryError as error:
        found = error
    if isinstance(found, Theory):
        assert parse_theory(str(found)) == found
    else:
        assert str(found).startswith("theory.r2n:")
        assert found.where is not None
        assert found.where.line is not None
        assert 1 <= found.where.line <= text.count("\n") + 1
