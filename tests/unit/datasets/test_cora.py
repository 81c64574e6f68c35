"""Cora in small, from files of a few lines: who is told what, and what stands apart."""

from functools import cache
from pathlib import Path

import pytest

from r2n.data.problem import Problem
from r2n.datasets.benchmarks import FOLDS, cuts_of_test, load
from r2n.errors import DataError

FOLD = {
    "facts": "Author(B1,Author_a_)\nAuthor(B2,Author_a_b_{i}_)\nTitle(B1,Title_t_)\nTitle(B2,Title_t_{i}_)\n"
    "Venue(B1,Venue_v_)\nVenue(B2,Venue_v_{i}_)\nSameBib(B1,B2)\n!SameBib(B2,B1)\nHasWordAuthor(Author_a_,Word_a)\n",
    "queries": "SameAuthor(Author_a_,Author_a_)\nSameAuthor(Author_a_,Author_a_b_{i}_)\n"
    "SameTitle(Title_t_,Title_t_{i}_)\n!SameTitle(Title_t_{i}_,Title_t_)\nSameVenue(Venue_v_{i}_,Venue_v_)\n"
    "!SameAuthor(Author_a_b_{i}_,Author_a_)\n!SameVenue(Venue_v_,Venue_v_{i}_)\n",
}

known = cache(load)  # problems are frozen: tests that spoil no file share them


@pytest.fixture(autouse=True)
def folds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five folds that share the first atom."""
    for i in FOLDS:
        folder = tmp_path / "cora" / f"S{i}"
        folder.mkdir(parents=True)
        for name, text in FOLD.items():
            (folder / name).write_text(text.replace("{i}", str(i)))
    monkeypatch.setenv("R2N_DATA", str(tmp_path))
    return tmp_path / "cora"


def labels(problem: Problem, split: str) -> set[str]:
    part = problem.train if split == "train" else problem.queries[split]
    names = problem.knowledge.base.names(part.atoms)
    return {("" if true else "!") + name for name, true in zip(names, part.truth.tolist(), strict=True)}


def test_test_is_the_fold_valid_the_next_and_train_the_rest_without_their_atoms() -> None:
    problem = known("cora-s4-joined")
    assert labels(problem, "test") == {
        "SameAuthor(Author_a_, Author_a_)",
        "SameAuthor(Author_a_, Author_a_b_4_)",
        "!SameAuthor(Author_a_b_4_, Author_a_)",
        "SameTitle(Title_t_, Title_t_4_)",
        "!SameTitle(Title_t_4_, Title_t_)",
        "SameVenue(Venue_v_4_, Venue_v_)",
        "!SameVenue(Venue_v_, Venue_v_4_)",
    }
    assert "SameAuthor(Author_a_, Author_a_b_5_)" in labels(problem, "valid")
    assert "SameAuthor(Author_a_, Author_a_)" not in labels(problem, "valid") | labels(problem, "train")
    train = {name for name in labels(problem, "train") if "SamePaper" not in name}
    assert len(train) == 18
    assert not any(i in name for name in train for i in ("4", "5"))
    assert "SameAuthor(Author_a_, Author_a_b_1_)" in labels(known("cora-s5-joined"), "valid"), (
        "after the last the first"
    )


def test_same_paper_follows_from_the_facts_of_each_fold_or_of_all() -> None:
    joined, own = (labels(known(f"cora-s1{kind}"), "train") for kind in ("-joined", ""))
    papers = {name for name in joined if "SamePaper" in name}
    assert papers == {
        f"SamePaper({kind}_, {kind}_{i}_)".replace("Author_a_, Author_a_", "Author_a_, Author_a_b_")
        for kind in ("Author_a", "Title_t", "Venue_v")
        for i in FOLDS
    }
    assert {name for name in own if "SamePaper" in name} == {
        name.replace("(", f"(S{i}:").replace(", ", f", S{i}:") for name in papers for i in FOLDS if f"_{i}_" in name
    }


def test_texts_are_names_and_rules_are_the_papers() -> None:
    knowledge = known("cora-s1").knowledge
    authors = knowledge.features["author"]
    texts = dict(zip((knowledge.language.constants[i] for i in authors.constants), authors.texts or (), strict=True))
    assert texts["S1:Author_a_b_1_"] == "a_b_1_"
    assert len(knowledge.theory.rules) == 12
    assert set(knowledge.candidates) == {"SameAuthor", "SameTitle", "SameVenue"}


@pytest.mark.parametrize("kind", ["", "-joined"])
def test_cuts_leave_out_what_is_easy(kind: str) -> None:
    problem = known(f"cora-s1{kind}")
    names = problem.knowledge.base.names(problem.test.atoms)
    found = cuts_of_test(problem)
    reflexive = [name for name, kept in zip(names, found["not_reflexive"], strict=True) if not kept]
    assert [name.replace("S1:", "") for name in reflexive] == ["SameAuthor(Author_a_, Author_a_)"]
    assert found["new"].tolist() == found["not_reflexive"].tolist(), "the only shared atom is reflexive"
    assert cuts_of_test(known("nations")) == {}


@pytest.mark.parametrize("line", ["SameTitle(", "SameAuthor(Author_a_)"])
def test_wrong_lines_raise(line: str, folds: Path) -> None:
    with (folds / "S1/queries").open("a") as lines:
        lines.write(f"{line}\n")
    with pytest.raises(DataError, match="S1/queries:"):
        load("cora-s1")
