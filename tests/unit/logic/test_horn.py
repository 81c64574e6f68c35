"""Rules of other systems: Horn rules and clauses."""

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given

from r2n.errors import TheoryError
from r2n.logic.formula import Atom, Constant, Variable
from r2n.logic.parser import parse_horn_rules, parse_theory
from r2n.logic.theory import Rule
from tests.examples import at_most, fixture
from tests.theory_strategies import dice

X, Y, Z = Variable("X"), Variable("Y"), Variable("Z")
RULES = fixture("horn_rules.toml")
BLANKS = 1_000_000 * " "


def only(text: str) -> Rule:
    (rule,) = parse_horn_rules(text, "rules.mln").rules
    return rule


def test_names_and_comments() -> None:
    text = "// first\np(x,y) -> q(y,x)\n\n# comment\na:0.5:p(x,y), q(y,z) -> p(x,z)\n!a(x) v b(x) // causes cancer\n"
    assert [(rule.name, rule.weight) for rule in parse_horn_rules(text).rules] == [
        ("r0", None),
        ("a", 0.5),
        ("r2", None),
    ]
    assert parse_horn_rules("\n# only a comment\n").rules == ()


def test_odd_predicate_names_print_and_parse_again() -> None:
    theory = parse_horn_rules("r0:1.0:/film/genre(x,y), _also_see(y,z) -> /film/genre(x,z)\n")
    assert parse_theory(str(theory)) == theory


@pytest.mark.parametrize(
    "line",
    [
        "p(x), -> q(x)",
        "q(X) :- p(X), .",
        "q(X) <= p(X),",
        "p" + BLANKS + "-> h(x)",
        "p(x), q" + BLANKS + "-> h(x)",
        ":" + BLANKS + "-> h(x)",
        1_000_000 * "1" + "!",
        "1.5 !" + BLANKS + "x",
        "1.5 !p" + BLANKS + "x",
    ],
    ids=range(9),
)
def test_a_missing_atom(line: str) -> None:
    """A long line is read once: to read it again from each of its characters takes hours."""
    with pytest.raises(TheoryError, match="an atom was expected"):
        parse_horn_rules(line)


@pytest.mark.parametrize(("line", "formula", "weight"), RULES["read"])
def test_a_line(line: str, formula: str, weight: str) -> None:
    rule = only(line)
    assert (str(rule.formula), rule.weight) == (formula, float(weight) if weight else None)


def test_lower_case_is_a_variable_as_in_markov_logic() -> None:
    rule = only('!smokes(x) v friends(x, Anna) v knows(x, "new york", 7)')
    assert [atom.terms[1:] for atom in rule.atoms[1:]] == [(Constant("Anna"),), (Constant("new york"), Constant("7"))]
    assert rule.atoms[0] == Atom("smokes", (Variable("x"),))


@pytest.mark.parametrize(("line", "message"), RULES["wrong"])
def test_what_cannot_be_read_says_why(line: str, message: str) -> None:
    with pytest.raises(TheoryError, match=message) as caught:
        parse_horn_rules(f"a:1:p(x) -> q(x)\n{line}\n", "rules.mln")
    assert str(caught.value).startswith("rules.mln:2:")


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
