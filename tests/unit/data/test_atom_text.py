"""Atoms as a person writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.atom_text import facts_from_texts, looks_like_atom, parse_atom, written_atom, written_name
from r2n.errors import DataError


@pytest.mark.parametrize(
    ("text", "predicate", "terms", "truth"),
    [
        ("p(a, b)", "p", ("a", "b"), True),
        ("  p ( a ) . ", "p", ("a",), True),
        ("!p(a)", "p", ("a",), False),
        ("! p(a, ?)", "p", ("a", None), False),
        ("""'p q'("a, b", 'c(')""", "p q", ("a, b", "c("), True),
        (r'p("a \" b", "?")', "p", ('a " b', "?"), True),
    ],
)
def test_atoms(text: str, predicate: str, terms: tuple[str | None, ...], truth: bool) -> None:
    atom = parse_atom(text)
    assert atom is not None
    assert (atom.predicate, atom.terms, atom.truth) == (predicate, terms, truth)
    assert looks_like_atom(text)


@pytest.mark.parametrize("text", ["", "p", "facts.tsv", "p(a", "a(b).tsv", "p a)"])
def test_what_is_no_atom(text: str) -> None:
    assert parse_atom(text) is None
    assert not looks_like_atom(text)


def test_a_missing_term_is_shown() -> None:
    with pytest.raises(DataError, match="line 1, column 5: a constant or \\? was expected"):
        parse_atom("p(a, , b)")


def test_facts_of_one_predicate_and_arity_stand_together() -> None:
    groups = facts_from_texts(["p(a, b)", "q(c)", "!p(d, e)", "p(f)"])
    assert [(group.predicate, len(group.arguments), group.truth.tolist()) for group in groups] == [
        ("p", 2, [True, False]),
        ("q", 1, [True]),
        ("p", 1, [True]),
    ]
    assert [column.to_pylist() for column in groups[0].arguments] == [["a", "d"], ["b", "e"]]
    assert str(groups[0].location(1)) == '"!p(d, e)"'
    assert facts_from_texts([]) == ()


@pytest.mark.parametrize(("text", "message"), [("p(a, ?)", r"\? has no place"), ("p(a", "'p\\(a' is no fact")])
def test_what_is_no_fact(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        facts_from_texts(["p(a, b)", text])


@given(st.text(max_size=6), st.lists(st.text(max_size=6), min_size=1, max_size=3))
def test_any_names_can_be_written_and_read_again(predicate: str, constants: list[str]) -> None:
    atom = parse_atom(written_atom(predicate, constants))
    assert atom is not None
    assert (atom.predicate, atom.terms, atom.truth) == (predicate, tuple(constants), True)


@pytest.mark.parametrize("name", ["italy", "00260881", "/m/027rn", "Zoë", "a-b", "rule"])
def test_plain_names_have_no_quotes(name: str) -> None:
    assert written_name(name) == name


@pytest.mark.parametrize(("text", "name"), [('"a\\nb"', "a\nb"), ('"a\\\\nb"', "a\\nb"), ('"\\t\\r\\x"', "\t\rx")])
def test_escapes_are_those_of_theory_files(text: str, name: str) -> None:
    atom = parse_atom(f"p({text})")
    assert atom is not None
    assert atom.terms == (name,)


SPACE = " " * 100_000  # read in every way that there is, it would take minutes


@pytest.mark.parametrize(
    "text", [f"p(){SPACE}x", f"{SPACE}x", f"p(a{SPACE}b", f"p{SPACE}", f"p(a){SPACE}.{SPACE}x"], ids=range(5)
)
def test_a_long_run_of_space_is_read_once(text: str) -> None:
    assert parse_atom(text) is None
    with pytest.raises(DataError, match="a constant or \\? was expected"):
        parse_atom(f'p(a{SPACE}"b)')
