"""Facts written as in Prolog."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.tables import Table, read_facts
from r2n.errors import DataError
from tests.examples import at_most
from tests.oracles.fact_tables import Fact, listed

GOOD: list[tuple[str, list[Fact]]] = [
    ("p(a, b).", [("p", ("a", "b"), True)]),
    ("p(a,b)", [("p", ("a", "b"), True)]),
    ("  p ( a , b ) .  ", [("p", ("a", "b"), True)]),
    ("!p(a)", [("p", ("a",), False)]),
    ("! p(a).", [("p", ("a",), False)]),
    (r"\+p(a).", [("p", ("a",), False)]),
    (r"\+ p(a).", [("p", ("a",), False)]),
    ("not p(a).", [("p", ("a",), False)]),
    ("not(a).", [("not", ("a",), True)]),
    ("nothing(a).", [("nothing", ("a",), True)]),
    ("p('a b', \"c, (d)\").", [("p", ("a b", "c, (d)"), True)]),
    (r'''p('it''s', 'it\'s', "say ""x""", "say \"x\"", 'a\\b', 'a\nb').''',
     [("p", ("it's", "it's", 'say "x"', 'say "x"', "a\\b", "a\\nb"), True)]),
    ("""p("'", '"', ' a ')""", [("p", ("'", '"', " a "), True)]),
    ("p(O'Neil, 5\", new york).", [("p", ("O'Neil", '5"', "new york"), True)]),
    ("p(a). q(b, c). !r(d)", [("p", ("a",), True), ("q", ("b", "c"), True), ("r", ("d",), False)]),
    ("p(a). % q(b).", [("p", ("a",), True)]),
    ("p(a) # q(b).", [("p", ("a",), True)]),
    ("p(a). // q(b).", [("p", ("a",), True)]),
    ("p('a % b', 'c # d', 'e // f').", [("p", ("a % b", "c # d", "e // f"), True)]),
    ("'my p'(a).", [("my p", ("a",), True)]),
    ("/people/person./born(/m/01, /m/02)", [("/people/person./born", ("/m/01", "/m/02"), True)]),
    ("größe(Ärmel, 日本).", [("größe", ("Ärmel", "日本"), True)]),
    ("p(1.5, -2).", [("p", ("1.5", "-2"), True)]),
]  # fmt: skip


@pytest.mark.parametrize(("line", "facts"), GOOD, ids=[line for line, _ in GOOD])
def test_a_line(line: str, facts: list[Fact], tmp_path: Path) -> None:
    path = tmp_path / "t.pl"
    path.write_bytes(f"% first\r\n\r\n{line}\r\n#last\r\n//\r\n".encode())
    read = read_facts(Table(path))
    assert sorted(listed(read)) == sorted(facts)
    assert {facts.location(0).line for facts in read.facts} == {3}


@pytest.mark.parametrize(
    "line",
    ["p", "p()", "p(a", "p a", "p(a,)", "p(,a)", "p(a))", "p(f(a))", "p(a)q(b)", "p(a)..", "-p(a)", "~p(a)", "(a)",
     "p('a)", "p('a'b)", "p('')", 'p("", a)', "p(a) :", "a\tp\tb", "not p", "!!p(a)"],
)  # fmt: skip
def test_a_line_that_is_no_fact(line: str, tmp_path: Path) -> None:
    path = tmp_path / "facts"
    path.write_text(f"p(a).\n{line}\nq(b)\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_facts(Table(path))
    shown = line.replace("\t", " ")
    assert str(caught.value) == (
        f"{path}:2: this is not a fact\n  | {shown}\n"
        "  write `p(a, b).`, and constants with blanks, commas or parentheses in quotes: `p('a, b', c).`"
    )
    read = read_facts(Table(path), on_error="skip")
    assert listed(read) == [("p", ("a",), True), ("q", ("b",), True)]
    assert len(read.rejected) == 1


@pytest.mark.parametrize("line", ["p(X) :- q(X).", "q(x) -> p(x)"])
def test_a_rule_is_no_fact(line: str, tmp_path: Path) -> None:
    path = tmp_path / "facts.pl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(DataError, match=r"this is a rule, not a fact\n.*\n  rules belong into the theory"):
        read_facts(Table(path))


def test_arities_of_one_predicate_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "facts.pl"
    path.write_text("p(a, b). p(a).\nq(c).\np(d, e).\n", encoding="utf-8")
    found = [(facts.predicate, len(facts.arguments), facts.rows.tolist()) for facts in read_facts(Table(path)).facts]
    assert found == [("p", 1, [0]), ("q", 1, [1]), ("p", 2, [0, 2])]


def test_comments_alone_are_no_fact(tmp_path: Path) -> None:
    path = tmp_path / "facts.pl"
    path.write_text("% nothing known\n", encoding="utf-8")
    assert read_facts(Table(path)).facts == ()


@at_most(60, "each writes and reads files")
@given(st.text("p('\"\\),. !%a\n", min_size=1, max_size=14).filter(lambda text: text.strip("\n")))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.pl"
    path.write_text(text, encoding="utf-8", newline="")
    read = read_facts(Table(path), on_error="skip")
    lines = [line for line in text.split("\n") if line and not line.lstrip().startswith("%") and line.strip()]
    found = {error.where.line for error in read.rejected if error.where} | {
        int(row) + 1 for facts in read.facts for row in facts.rows
    }
    assert len(found) == len(lines)
