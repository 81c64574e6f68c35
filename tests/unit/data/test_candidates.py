"""Candidate atoms: labelled true or false, given in tables, or by shared words; from a problem file and from Python."""

from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.candidates import Candidates
from r2n.data.problem import Problem, load_problem
from r2n.data.tables import Table
from r2n.errors import ConfigError, DataError
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from tests.examples import at_most

THEORY = """
domain venue
predicate same(venue, venue)
predicate known(venue)
rule transitive: same(x, y) & same(y, z) -> same(x, z)
"""
NAMES = ("aaai_88", "AAAI 1988", "proc. aaai", "icml", "proc. icml 88")


LABELS = {"train": {("icml", "icml"): 1, ("icml", "proc. aaai"): 0}}
LABELS["test"] = {("aaai_88", "AAAI 1988"): 1, ("proc. aaai", "icml"): 0}
LABELLED = {pair for part in LABELS.values() for pair in part}


def pairs(rows: dict[tuple[str, str], int]) -> Table:
    columns = {"a": [a for a, _ in rows], "b": [b for _, b in rows], "label": list(rows.values())}
    return Table(pa.table(columns), "same")


def named(rows: set[tuple[str, str]]) -> list[str]:
    return sorted(f"same({a}, {b})" for a, b in rows)


def problem(candidates: Candidates | None, texts: dict[str, str] | None = None, **more: object) -> Problem:
    return Problem.build(
        "venues",
        parse_theory(THEORY),
        [pairs(LABELS["train"])],
        {"test": [pairs(LABELS["test"])]},
        domains={"venue": NAMES},
        features={"venue": texts} if texts else None,
        candidates={"same": candidates} if candidates is not None else None,
        **more,  # pyright: ignore[reportArgumentType]
    )


def atoms(found: Problem) -> list[str]:
    return sorted(found.knowledge.base.names(found.knowledge.candidates["same"]))


def test_atoms_labelled_or_asked_for_are_candidates_where_true_and_false_ones_are() -> None:
    found = problem(Candidates())
    assert atoms(found) == named(LABELLED)
    (part,) = FullGrounder().ground(Store(found.knowledge)).ground_rules
    held = found.knowledge.base.names(part.atoms.ravel())
    assert [tuple(held[i : i + 3]) for i in range(0, len(held), 3)] == [
        ("same(icml, icml)",) * 3,
        ("same(icml, icml)", "same(icml, proc. aaai)", "same(icml, proc. aaai)"),
        ("same(icml, proc. aaai)", "same(proc. aaai, icml)", "same(icml, icml)"),
        ("same(proc. aaai, icml)", "same(icml, icml)", "same(proc. aaai, icml)"),
    ]
    assert len(FullGrounder().ground(Store(problem(None).knowledge))) == len(NAMES) ** 3


def one_sided(split: str, candidates: Candidates) -> Problem:
    """Where all labels of a split are true."""
    tables = {name: [pairs(dict.fromkeys(part, 1) if name == split else part)] for name, part in LABELS.items()}
    domains = {"venue": NAMES}
    theory = parse_theory(THEORY)
    return Problem.build("x", theory, tables.pop("train"), tables, domains=domains, candidates={"same": candidates})


@pytest.mark.parametrize(("split", "what"), [("train", "the facts"), ("test", "the queries 'test'")])
def test_where_to_be_a_candidate_is_to_be_true_labels_and_queries_make_none(split: str, what: str) -> None:
    with pytest.raises(ConfigError, match=rf"\[candidates.same\].* but {what} of same are all true: .*\n.*tables"):
        one_sided(split, Candidates())
    given = {("icml", "aaai_88"), ("icml", "icml")}
    table = pairs(dict.fromkeys(given, 1))
    assert atoms(one_sided(split, Candidates(tables=(table,)))) == named(given)
    blocked = {(a, b) for a, b in product(NAMES, NAMES) if words(a) & words(b)}
    assert atoms(one_sided(split, Candidates(shared_words=1))) == named(blocked)


def test_what_a_closed_world_states_is_no_label() -> None:
    theory = parse_theory(THEORY.replace("known(venue)", "known(venue) closed"))
    known = Table(pa.table({"a": ["icml", "aaai_88"]}), "known")
    found = Problem.build("x", theory, [known], candidates={"known": Candidates()}).knowledge
    assert found.base.names(found.candidates["known"]) == ["known(aaai_88)", "known(icml)"]


def test_tables_add_more_and_their_truth_is_not_read() -> None:
    denied = pairs({("icml", "aaai_88"): 0})
    assert atoms(problem(Candidates(tables=(denied,)))) == named(LABELLED | {("icml", "aaai_88")})


def test_what_was_taken_for_a_header_of_their_table_is_said(tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("venue1,venue2\nicml,aaai_88\nicml,icml\n")
    found = problem(Candidates(tables=(Table(tmp_path / "more.csv", "same"),)))
    assert atoms(found) == named(LABELLED | {("icml", "aaai_88"), ("icml", "icml")})
    (said,) = found.report.notes
    assert "more.csv:1: 'venue1, venue2' was read as the names of the columns; if it is a fact, write header" in said


def words(text: str) -> set[str]:
    return set(text.lower().replace("_", " ").replace(".", " ").split())


@pytest.mark.parametrize("count", [1, 2])
def test_shared_words_are_those_of_names_whatever_their_case(count: int) -> None:
    expected = {(a, b) for a, b in product(NAMES, NAMES) if len(words(a) & words(b)) >= count}
    expected |= LABELLED
    assert set(atoms(problem(Candidates(shared_words=count)))) == {f"same({a}, {b})" for a, b in expected}


@at_most(25, "each builds a problem")
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
    expected |= LABELLED
    found = atoms(problem(Candidates(shared_words=count, rarer_than=rarer_than), given))
    assert set(found) == {f"same({a}, {b})" for a, b in expected}


def test_nobody_to_pair_is_legal() -> None:
    theory = parse_theory("domain d\npredicate p(d, d)")
    empty = Problem.build("x", theory, candidates={"p": Candidates(shared_words=1)})
    assert empty.knowledge.candidates["p"].tolist() == []


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(DataError, match=r"candidates are given for predicate 'sam', which does not exist\n.*'same'"):
        Problem.build("x", parse_theory(THEORY), candidates={"sam": Candidates()})
    with pytest.raises(ConfigError, match="by shared words are pairs, but known takes 1"):
        Problem.build("x", parse_theory(THEORY), candidates={"known": Candidates(shared_words=1)})
    with pytest.raises(DataError, match="a candidate of known among those of same"):
        problem(Candidates(tables=(Table(pa.table({"a": ["icml"]}), "known"),)))
    with pytest.raises(DataError, match="constant 'nips' is outside domain 'venue'"):
        problem(Candidates(tables=(pairs({("icml", "nips"): 1}),)))
    with pytest.raises(ConfigError, match="shared_words is 1 or more, not 0"):
        Candidates(shared_words=0)
    with pytest.raises(ConfigError, match="rarer_than is a share above 0 and up to 1, not 0"):
        Candidates(rarer_than=0.0)


def test_too_many_pairs_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2n.data.candidates.MOST_PAIRS", 3)
    with pytest.raises(ConfigError, match="pairs of same share words, more than 3\n  lower rarer_than"):
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
    with pytest.raises(ConfigError, match=r"unknown key 'shared_word' in .candidates.same.*\n.*\n.*\n.*shared_words"):
        load_problem(tmp_path)


def test_candidates_are_in_the_fingerprint() -> None:
    from r2n.grounding.cache import fingerprint
    from r2n.grounding.full import FullGrounder

    keys = {
        fingerprint(problem(given).knowledge, FullGrounder())
        for given in (None, Candidates(), Candidates(shared_words=1))
    }
    assert len(keys) == 3
