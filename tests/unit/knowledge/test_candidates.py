"""Candidate atoms: labelled and asked for, given in tables, or by shared words; from a problem file and from Python."""

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import r2n
from r2n.grounding.full import FullGrounder
from r2n.knowledge.candidates import Candidates, widened
from r2n.knowledge.problem import Problem, load_problem
from r2n.knowledge.tables import Table
from r2n.logic.parser import parse_theory
from tests.strategies import codes_of

THEORY = """
domain venue
predicate same(venue, venue)
predicate known(venue)
rule transitive: same(x, y) & same(y, z) -> same(x, z)
"""
NAMES = ("aaai_88", "AAAI 1988", "proc. aaai", "icml", "proc. icml 88")


def pairs(*rows: tuple[str, str]) -> Table:
    return Table(pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]}, schema=PAIRS), "same")


PAIRS = pa.schema([("a", pa.string()), ("b", pa.string())])


def problem(candidates: Candidates | None, texts: dict[str, str] | None = None, **more: object) -> Problem:
    return Problem.build(
        "venues",
        parse_theory(THEORY),
        [pairs(("icml", "icml"))],
        {"test": [pairs(("aaai_88", "AAAI 1988"))]},
        domains={"venue": NAMES},
        features={"venue": texts} if texts else None,
        candidates={"same": candidates} if candidates is not None else None,
        **more,  # pyright: ignore[reportArgumentType]
    )


def atoms(found: Problem) -> list[str]:
    return found.knowledge.base.names(found.knowledge.candidates["same"])


def test_labelled_and_asked_atoms_are_always_candidates() -> None:
    found = problem(Candidates())
    assert atoms(found) == ["same(aaai_88, AAAI 1988)", "same(icml, icml)"]
    (part,) = FullGrounder().ground(found.knowledge).ground_rules
    assert found.knowledge.base.names(part.atoms[0]) == ["same(icml, icml)"] * 3
    assert len(part) == 1
    assert len(FullGrounder().ground(problem(None).knowledge)) == len(NAMES) ** 3


def test_tables_add_more_and_their_truth_is_not_read() -> None:
    denied = Table(pa.table({"a": ["icml"], "b": ["aaai_88"], "label": [0]}), "same")
    assert atoms(problem(Candidates(tables=(denied,)))) == [
        "same(aaai_88, AAAI 1988)",
        "same(icml, aaai_88)",
        "same(icml, icml)",
    ]


def words(text: str) -> set[str]:
    return set(text.lower().replace("_", " ").replace(".", " ").split())


@pytest.mark.parametrize("count", [1, 2])
def test_shared_words_are_those_of_names_whatever_their_case(count: int) -> None:
    expected = {(a, b) for a, b in product(NAMES, NAMES) if len(words(a) & words(b)) >= count}
    expected |= {("icml", "icml"), ("aaai_88", "AAAI 1988")}
    assert set(atoms(problem(Candidates(shared_words=count)))) == {f"same({a}, {b})" for a, b in expected}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("pqrst"), max_size=4), min_size=5, max_size=5),
    st.integers(1, 3),
    st.sampled_from((0.3, 0.6, 1.0)),
)
def test_shared_words_are_what_loops_find(texts: list[list[str]], count: int, rarer_than: float) -> None:
    given = {name: " ".join(text) or "-" for name, text in zip(NAMES, texts, strict=True)}
    bags = {name: set(text) for name, text in zip(NAMES, texts, strict=True)}
    common = {word for word in "pqrst" if sum(word in bag for bag in bags.values()) / len(NAMES) > rarer_than}
    expected = {(a, b) for a, b in product(NAMES, NAMES) if len((bags[a] & bags[b]) - common) >= count}
    expected |= {("icml", "icml"), ("aaai_88", "AAAI 1988")}
    found = atoms(problem(Candidates(shared_words=count, rarer_than=rarer_than), given))
    assert set(found) == {f"same({a}, {b})" for a, b in expected}


def test_nobody_to_pair_is_legal() -> None:
    theory = parse_theory("domain d\npredicate p(d, d)")
    empty = Problem.build("x", theory, candidates={"p": Candidates(shared_words=1)})
    assert empty.knowledge.candidates["p"].tolist() == []


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(
        r2n.DataError, match=r"candidates are given for predicate 'sam', which does not exist\n.*'same'"
    ):
        Problem.build("x", parse_theory(THEORY), candidates={"sam": Candidates()})
    with pytest.raises(r2n.ConfigError, match="by shared words are pairs, but known takes 1"):
        Problem.build("x", parse_theory(THEORY), candidates={"known": Candidates(shared_words=1)})
    with pytest.raises(r2n.DataError, match="a candidate of known among those of same"):
        problem(Candidates(tables=(Table(pa.table({"a": ["icml"]}), "known"),)))
    with pytest.raises(r2n.DataError, match="constant 'nips' is outside domain 'venue'"):
        problem(Candidates(tables=(pairs(("icml", "nips")),)))
    with pytest.raises(r2n.ConfigError, match="shared_words is 1 or more, not 0"):
        Candidates(shared_words=0)
    with pytest.raises(r2n.ConfigError, match="rarer_than is a share above 0 and up to 1, not 0"):
        Candidates(rarer_than=0.0)


def test_too_many_pairs_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2n.knowledge.candidates.MOST_PAIRS", 3)
    with pytest.raises(r2n.ConfigError, match="pairs of same share words, more than 3\n  lower rarer_than"):
        problem(Candidates(shared_words=1))


def test_in_a_problem_file(tmp_path: Path) -> None:
    (tmp_path / "theory.r2n").write_text(THEORY)
    (tmp_path / "train.tsv").write_text("icml\tsame\ticml\naaai_88\tsame\taaai 88\t\n".replace("\t\n", "\n"))
    (tmp_path / "more.tsv").write_text("icml\taaai_88\n")
    text = """
theory = "theory.r2n"
[facts]
train = "train.tsv"
[candidates.same]
tables = { file = "more.tsv", predicate = "same" }
shared_words = 2
"""
    (tmp_path / "problem.toml").write_text(text)
    found = atoms(load_problem(tmp_path))
    assert "same(icml, aaai_88)" in found
    assert "same(aaai 88, aaai_88)" in found
    assert "same(aaai_88, icml)" not in found
    (tmp_path / "problem.toml").write_text(text.replace("shared_words", "shared_word"))
    with pytest.raises(
        r2n.ConfigError, match=r"unknown key 'shared_word' in .candidates.same.*\n.*\n.*\n.*shared_words"
    ):
        load_problem(tmp_path)


def test_candidates_are_in_the_fingerprint() -> None:
    from r2n.grounding.cache import fingerprint

    keys = {fingerprint(problem(given).knowledge) for given in (None, Candidates(), Candidates(shared_words=1))}
    assert len(keys) == 3


def test_codes_ascend() -> None:
    codes = problem(Candidates(shared_words=1)).knowledge.candidates["same"]
    assert codes.dtype == np.int64
    assert (np.diff(codes) > 0).all()


def test_atoms_that_are_asked_later_are_candidates_too() -> None:
    found = problem(Candidates())
    base, before = found.knowledge.base, found.knowledge.candidates
    asked = np.sort(codes_of(base, base.language, [("same", "icml", "aaai_88"), ("known", "icml")]))
    after = widened(base, before, asked)
    assert base.names(np.setdiff1d(after["same"], before["same"])) == ["same(icml, aaai_88)"]
    assert set(after) == {"same"}
