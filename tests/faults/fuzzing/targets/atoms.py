"""Atoms as people type them: questions, facts, and names that are not finished yet."""

from functools import cache

from r2n.data.atom_text import facts_from_texts, looks_like_atom, parse_atom, written_atom
from r2n.data.herbrand import HerbrandBase
from r2n.data.problem import load_problem
from r2n.model.answers import Question
from r2n.model.questions import complete
from tests.faults.fuzzing.target import Target, as_text, scratch
from tests.toy_problem import write_toy_problem

TOKENS = (
    *(b"liesIn(", b"near(", b"n1", b"north", b"?", b"!", b", ", b")", b").", b'"n1"', b"'n1'", b'"\\"', b"'"),
    *(b'"', b"\\"),
    *(b"\n", b"n 1", b"liesIn(n1, ?)", b"near(?, ?)", b"unknown", b"  "),
)
HARD = (
    *(b"p(" + piece * 60_000 + b")" for piece in (b"x", b"x,", b"?,", b" ", b"(", b")", b'"', b"'", b'\\"', b"a b ")),
    *(piece * 60_000 for piece in (b" ", b"!", b"(", b'"', b'"\\', b"'", b"a ", b"p(")),
    b"near(" + b"n1" * 30_000 + b", ?)",
    b"n" * 60_000 + b"(n1)",
    b"p(" + b") " * 60_000 + b"x",
)


@cache
def base() -> HerbrandBase:
    return load_problem(write_toy_problem(scratch() / "asked")).knowledge.base


def read(content: bytes) -> None:
    """Whatever is said of an atom; one that can be read is written as it can be read again."""
    text = as_text(content)
    complete(base().language, text)
    complete(base().language, text[: len(text) // 2])
    if looks_like_atom(text):
        atom = parse_atom(text)
        assert atom is not None
        if None not in atom.terms:
            facts_from_texts([text])
            names = [term for term in atom.terms if term is not None]
            again = parse_atom(written_atom(atom.predicate, names))
            assert again is not None
            assert (again.predicate, again.terms) == (atom.predicate, atom.terms)
    Question.parse(base(), text)


TARGETS = (Target("atoms", read, TOKENS, HARD, inputs=350_000, examples=1_500, longest=300),)
