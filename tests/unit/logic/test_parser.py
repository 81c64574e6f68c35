"""Text -> Theory: the fixtures, read one case a test, and files."""

from pathlib import Path

import pytest

from r2n.errors import TheoryError
from r2n.logic.formula import And, Atom, Constant, Iff, Implies, Not, Or, Unequal, Variable
from r2n.logic.language import Domain, Predicate
from r2n.logic.parser import parse_theory, read_theory
from r2n.logic.theory import Rule, Theory

FIXTURES = Path(__file__).parents[2] / "fixtures"
X, Y = Variable("x"), Variable("y")


def cases(name: str) -> list[tuple[str, str]]:
    """The cases of a fixture file: text and what follows the line of dashes (the text itself where there is none)."""
    text = (FIXTURES / name).read_text(encoding="utf-8")
    found = []
    for case in text.split("=====\n")[1:]:
        before, dashes, after = case.partition("-----\n")
        found.append((before, after if dashes else before))
    return found


@pytest.mark.parametrize(("text", "printed"), cases("theories.txt"))
def test_theories_print_as_the_fixture_says(text: str, printed: str) -> None:
    theory = parse_theory(text)
    assert str(theory) == printed
    assert parse_theory(printed) == theory


@pytest.mark.parametrize(("text", "error"), cases("invalid.txt"))
def test_wrong_theories_name_line_column_and_fault(text: str, error: str) -> None:
    place, piece = error.strip().split(" ", 1)
    with pytest.raises(TheoryError) as caught:
        parse_theory(text, "theory.r2n")
    message = str(caught.value)
    assert message.startswith(f"theory.r2n:{place}: ")
    assert piece in message
    line, column = map(int, place.split(":"))
    excerpt, caret = message.split("\n")[1:3]
    assert excerpt == "  | " + text.split("\n")[line - 1]
    assert caret == "  | " + " " * (column - 1) + "^"


def test_every_part_of_the_language_is_read() -> None:
    theory = parse_theory(
        "domain d, e\n"
        "domain u = d | e\n"
        "predicate p(d, u) closed\n"
        "predicate q(d)\n"
        'rule r: p(x, y: e) & x != "a" -> q(x) | !q("b")\n'
        "rule s: q(x) <-> q(y), x != y\n"
        "implicit t: [q(x), p(x, x)]\n"
    )
    d, e = Domain("d"), Domain("e")
    u = Domain("u", parts=(d, e))
    p, q = Predicate("p", (d, u), closed=True), Predicate("q", (d,))
    qx, qb = Atom("q", (X,)), Atom("q", (Constant("b"),))
    r = Implies(Atom("p", (X, Y)), Or((qx, Not(qb))))
    assert theory.domains == (d, e, u)
    assert theory.predicates == (p, q)
    assert theory.rules == (
        Rule.explicit("r", r, (Unequal(X, Constant("a")),), (("y", "e"),)),
        Rule.explicit("s", Iff(qx, Atom("q", (Y,))), (Unequal(X, Y),)),
        Rule("t", None, (qx, Atom("p", (X, X)))),
    )


def test_and_binds_closer_than_or_than_arrow_than_iff() -> None:
    text = "rule r: a(x) | b(x) & !c(x) -> a(x) <-> b(x)"
    a, b, c = (Atom(name, (X,)) for name in "abc")
    (rule,) = parse_theory(text).rules
    assert rule.formula == Iff(Implies(Or((a, And((b, Not(c))))), a), b)


def test_nothing_is_a_theory() -> None:
    assert parse_theory("") == parse_theory("  # nothing\n") == Theory()


def test_near_names_are_suggested() -> None:
    with pytest.raises(TheoryError, match=r"did you mean 'locatedIn'\?"):
        parse_theory("domain d\npredicate locatedIn(d)\nrule r: locatedln(x)")


@pytest.mark.parametrize(
    "deep", ["(" * 10_000 + "p(x)" + ")" * 10_000, "!" * 10_000 + "p(x)", "p(x)" + " -> p(x)" * 10_000]
)
def test_a_formula_nested_10_000_deep_is_read_or_refused_in_words(deep: str) -> None:
    refusal = None
    try:
        parse_theory(f"rule r: {deep}", "theory.r2n")
    except TheoryError as error:
        refusal = str(error)
    assert refusal is None or refusal.startswith("theory.r2n:1:")


def test_a_line_of_10_mb_is_refused_with_its_number() -> None:
    with pytest.raises(TheoryError, match=r"^theory.r2n:2: the line has 10,000,0\d\d characters"):
        parse_theory("domain d\n# " + "x" * 10_000_000, "theory.r2n")


def test_files_are_read_by_their_ending(tmp_path: Path) -> None:
    (tmp_path / "t.r2n").write_bytes(b"\xef\xbb\xbfdomain d\r\npredicate p(d)\r\nrule r: p(x)\r\n")
    assert str(read_theory(tmp_path / "t.r2n")) == "domain d\npredicate p(d)\nrule r: p(x)\n"
    (tmp_path / "rules.txt").write_text("r0:0.5:p(x,y) -> q(y,x)\n", encoding="utf-8")
    assert str(read_theory(tmp_path / "rules.txt")) == "rule r0 [0.5]: p(x, y) -> q(y, x)\n"


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "theory.r2n").write_bytes(b"domain d\n# caf\xe9\n")
    with pytest.raises(TheoryError, match=r"theory.r2n:2: the file is not UTF-8"):
        read_theory(tmp_path / "theory.r2n")
    with pytest.raises(TheoryError, match=r"did you mean 'theory.r2n'\?"):
        read_theory(tmp_path / "theori.r2n")


def test_a_quote_that_is_never_closed_is_read_once() -> None:
    """To read it again from each quote takes hours."""
    with pytest.raises(TheoryError, match="unexpected character '\"'"):
        parse_theory('"' + '\\"' * 400_000)


def test_brackets_behind_a_quote_that_is_not_closed_count() -> None:
    with pytest.raises(TheoryError, match="unexpected character '\"'"):
        parse_theory('domain d\npredicate p(d)\nrule r: p("a)')
