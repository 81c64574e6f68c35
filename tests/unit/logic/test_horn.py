"""Horn rules of other systems."""

import re

import pytest

from r2n.errors import TheoryError
from r2n.logic.formula import And, Atom, Constant, Implies, Variable
from r2n.logic.horn import parse_horn_rules
from r2n.logic.parser import parse_theory
from r2n.logic.theory import Rule

X, Y, Z = Variable("X"), Variable("Y"), Variable("Z")
BLANKS = 1_000_000 * " "


def only(text: str) -> Rule:
    (rule,) = parse_horn_rules(text).rules
    return rule


def test_id_weight_body_head() -> None:
    rule = only("r0:0.8:locatedIn(c,r), locatedIn(r,k) -> locatedIn(c,k)")
    assert (rule.name, rule.weight) == ("r0", 0.8)
    assert str(rule.formula) == "locatedIn(c, r) & locatedIn(r, k) -> locatedIn(c, k)"


def test_id_and_weight_may_be_missing() -> None:
    first, second = parse_horn_rules("p(x,y) -> q(y,x)\n\n# comment\np(x,y), q(y,z) -> p(x,z)\n").rules
    assert [(rule.name, rule.weight) for rule in (first, second)] == [("r0", None), ("r1", None)]


def test_prolog_clauses() -> None:
    rule = only("grand(X, Z) :- parent(X, Y), parent(Y, Z).")
    body = And((Atom("parent", (X, Y)), Atom("parent", (Y, Z))))
    assert rule.formula == Implies(body, Atom("grand", (X, Z)))
    assert only("likes(X, wine) :- adult(X).").formula == Implies(
        Atom("adult", (X,)), Atom("likes", (X, Constant("wine")))
    )


def test_anyburl() -> None:
    rule = only("120\t83\t0.69\th(X,Y) <= p(X,A), q(A,Y)")
    assert rule.weight == pytest.approx(0.69)
    assert str(rule.formula) == "p(X, A) & q(A, Y) -> h(X, Y)"
    assert only("9\t8\t0.9\th(X,italy) <= p(X,A)").atoms[-1].terms[1] == Constant("italy")


def test_amie() -> None:
    assert str(only("?a  hasChild  ?b   ?c  marriedTo  ?a   => ?c  hasChild  ?b").formula) == (
        "hasChild(a, b) & marriedTo(c, a) -> hasChild(c, b)"
    )


def test_odd_predicate_names_print_and_parse_again() -> None:
    theory = parse_horn_rules("r0:1.0:/film/genre(x,y), _also_see(y,z) -> /film/genre(x,z)\n")
    assert parse_theory(str(theory)) == theory


def test_nothing_is_no_rule() -> None:
    assert parse_horn_rules("\n# only a comment\n").rules == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [("p(x,y) -> q(y,x)\nhello", 2), ("p(x -> q(x)", 1), ("p(x) -> ", 1), ("p() -> q(x)", 1)],
)
def test_what_is_no_rule_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(TheoryError) as caught:
        parse_horn_rules(text, "rules.txt")
    assert str(caught.value).startswith(f"rules.txt:{line}:")


@pytest.mark.parametrize("line", ["p(x), -> q(x)", "q(X) :- p(X), .", "q(X) <= p(X),"])
def test_a_comma_with_nothing_behind_it(line: str) -> None:
    with pytest.raises(TheoryError, match="an atom was expected"):
        parse_horn_rules(line)


def test_the_second_of_two_rules_with_one_id_is_pointed_at() -> None:
    with pytest.raises(TheoryError, match="rule 'a' is declared twice") as refused:
        parse_horn_rules("a:1.0:p(x) -> q(x)\na:1.0:q(x) -> p(x)\n", "rules.txt")
    assert refused.value.where is not None
    assert refused.value.where.line == 2


@pytest.mark.parametrize("weight", ["eee", "1e+-2", "1.2.3"])
def test_a_weight_that_is_no_number(weight: str) -> None:
    with pytest.raises(TheoryError, match=f"the weight '{re.escape(weight)}' is no number") as caught:
        parse_horn_rules(f"r0:{weight}:p(x) -> q(x)")
    assert caught.value.where is not None
    assert caught.value.where.line == 1


@pytest.mark.parametrize("line", ["p" + BLANKS + "-> h(x)", "p(x), q" + BLANKS + "-> h(x)", ":" + BLANKS + "-> h(x)"])
def test_a_long_line_is_read_once(line: str) -> None:
    """To read it again from each of its characters takes hours."""
    with pytest.raises(TheoryError, match="an atom was expected"):
        parse_horn_rules(line)


@pytest.mark.parametrize("line", ["3\th(X) <= p(X)\t0.5\tq", "3\th(X) <= p(X)", "h(X) <=\tp(X)"])
def test_a_rule_of_anyburl_in_another_column(line: str) -> None:
    with pytest.raises(TheoryError, match="the rule does not stand in the fourth column"):
        parse_horn_rules(line)
