"""Clauses and weighted formulas, as Markov logic programs write them."""

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given

from r2n.errors import TheoryError
from r2n.logic.formula import Atom, Constant, Variable
from r2n.logic.horn import parse_horn_rules
from r2n.logic.parser import parse_theory
from r2n.logic.theory import Rule
from tests.examples import at_most
from tests.theory_strategies import dice


def only(text: str) -> Rule:
    (rule,) = parse_horn_rules(text, "rules.mln").rules
    return rule


@pytest.mark.parametrize(
    ("line", "formula", "weight"),
    [
        ("!a(x) v b(x)", "a(x) -> b(x)", None),
        ("1.5 !a(x) v b(x)", "a(x) -> b(x)", 1.5),
        ("-0.7  b(x) v !a(x)", "a(x) -> b(x)", -0.7),
        ("2 !a(x) v !c(x,y) v b(y).", "a(x) & c(x, y) -> b(y)", 2.0),
        ("!a(x) v !b(x)", "a(x) -> !b(x)", None),
        ("!a(x) v b(x) v c(x, y)", "a(x) -> b(x) | c(x, y)", None),
        ("a(x) v b(x)", "a(x) | b(x)", None),
        ("1e-3 a(x)", "a(x)", 0.001),
        (".5 !a(x)", "!a(x)", 0.5),
        ("~a(x) | b(x)", "a(x) -> b(x)", None),
        ("1.5 a(x) ^ c(x,y) => a(y)", "a(x) & c(x, y) -> a(y)", 1.5),
        ("a(x) => b(x).", "a(x) -> b(x)", None),
        ("2.0 a(x) & !b(x) => c(x, x)", "a(x) & !b(x) -> c(x, x)", 2.0),
        ("1.5 a(x) -> b(x)", "a(x) -> b(x)", 1.5),
        ("!v(v) v b(v)", "v(v) -> b(v)", None),
        ("0.4 !SameBib(b1,b2) v !HasWord(b1, +w) v SameBib(b2,b1)", None, None),
    ],
)
def test_a_line(line: str, formula: str | None, weight: float | None) -> None:
    if formula is None:
        with pytest.raises(TheoryError, match=r"\+w"):
            only(line)
        return
    rule = only(line)
    assert (str(rule.formula), rule.weight) == (formula, weight)


def test_lower_case_is_a_variable_as_in_markov_logic() -> None:
    rule = only('!smokes(x) v friends(x, Anna) v knows(x, "new york", 7)')
    assert [atom.terms[1:] for atom in rule.atoms[1:]] == [
        (Constant("Anna"),),
        (Constant("new york"), Constant("7")),
    ]
    assert rule.atoms[0] == Atom("smokes", (Variable("x"),))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("!a(X) v b(X)", "there is no variable in it: 'X' is a constant here(.|\n)*write variables in lower case"),
        ("1.5 a(X) => b(X)", "'X' is a constant here"),
        ("!a(x) v", "an atom was expected at the end"),
        ("!a(x) b(x)", "'v' was expected before 'b"),
        ("1.5 a(x) <=> b(x)", "write two rules"),
        ("1.5 a(x) ^ b(x)", "'v' was expected before"),
        ("Friends(person, person)", "looks like the declaration of a predicate(.|\n)*come from the data"),
        ("person = {Anna, Bob}", "looks like the declaration of a domain"),
        ("1.5 EXIST x a(x) v b(x)", "an atom was expected at"),
        ("hello", "this is not a rule"),
    ],
)
def test_what_cannot_be_read_says_why(line: str, message: str) -> None:
    with pytest.raises(TheoryError, match=message) as caught:
        parse_horn_rules(f"// rules\n{line}\n", "rules.mln")
    assert str(caught.value).startswith("rules.mln:2:")


def test_comments_of_markov_logic_are_passed_over() -> None:
    assert len(parse_horn_rules("// smoking\n!a(x) v b(x) // causes cancer\n").rules) == 1


@at_most(100, "each is a line of text")
@given(dice())
def test_a_clause_is_true_where_any_literal_is(dice: Random) -> None:
    """The same truth as the clause, read literal by literal, for every truth of its atoms."""
    literals = [(dice.random() < 0.5, name) for name in dice.sample("abcde", dice.randint(1, 5))]
    text = " v ".join(f"{'' if positive else '!'}{name}(x)" for positive, name in literals)
    dot = "." if len(literals) == 1 else dice.choice(["", "."])  # without, a single atom may be a declaration
    formula = only(f"{dice.choice(['', '1.5 ', '-2 '])}{text}{dot}").formula
    assert formula is not None
    names = [atom.predicate for atom in formula.atoms()]
    assert sorted(names) == sorted(name for _, name in literals)
    for truths in product([False, True], repeat=len(names)):
        of = dict(zip(names, truths, strict=True))
        expected = any(of[name] == positive for positive, name in literals)
        assert bool(formula.evaluate(np.array([truths]))[0]) == expected


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("rule r: !p(x) v q(x)", "or is written |"),
        ("rule r: p(x) ^ q(x) -> q(x)", "and is written &"),
        ("rule r: p(x) => q(x)", "implies is written ->"),
        ("1.5 !p(x) v q(x)", "rule NAME [WEIGHT]: FORMULA"),
        ("rule r: ~p(x) | q(x)", "not is written !"),
    ],
)
def test_a_theory_file_says_how_it_writes_these(line: str, hint: str) -> None:
    with pytest.raises(TheoryError) as caught:
        parse_theory(f"domain d\npredicate p(d)\npredicate q(d)\n{line}\n")
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    "line", [1_000_000 * "1" + "!", "1.5 !" + 1_000_000 * " " + "x", "1.5 !p" + 1_000_000 * " " + "x"]
)
def test_a_long_line_is_read_once(line: str) -> None:
    """To read it again from each of its characters takes hours."""
    with pytest.raises(TheoryError, match="an atom was expected"):
        parse_horn_rules(line)
