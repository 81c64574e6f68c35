"""Cora: sizes of groundings and baselines without learning, by plain loops over the files; and that no label leaks."""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection
from functools import cache
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

from r2n.data.problem import Problem
from r2n.datasets.benchmarks import load
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.model.run import prepare_run
from r2n.network.pair_embedding import PairEmbedding
from r2n.reproduction.reproduce import measure, table_rows

FOLDS = (1, 2, 3, 4, 5)
FOLDER = Path(os.environ.get("R2N_DATA") or "nowhere") / "cora"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="R2N_DATA holds no folder cora: its numbers are not compared"
)
SLOW = [pytest.param(fold, "", marks=pytest.mark.slow) for fold in (2, 3, 4)]
KINDS = ("Author", "Title", "Venue")
Pair = tuple[str, str]
Atom = tuple[str, str, str]


problem_of = cache(load)  # problems are frozen: tests may share them


@cache
def facts(fold: int, file: str) -> list[tuple[str, str, str, bool]]:
    found = []
    for line in (FOLDER / f"S{fold}" / file).read_text().splitlines():
        match = re.fullmatch(r"(!?)(\w+)\((\w+), ?(\w+)\)", line.strip())
        if match:
            found.append((match[2], match[3], match[4], not match[1]))
    return found


@cache
def flipped_of(name: str, folder: Path) -> Problem:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("R2N_DATA", str(folder))
        return load(name)


@cache
def labels(fold: int) -> dict[Atom, bool]:
    return {(predicate, a, b): truth for predicate, a, b, truth in facts(fold, "queries")}


@cache
def same_paper(folds: tuple[int, ...]) -> set[Pair]:
    """What stands in citations that are stated to be the same, in all these folds together."""
    known = [fact for fold in folds for fact in facts(fold, "facts")]
    holds = defaultdict(list)
    for predicate, bib, thing, _ in known:
        if predicate in KINDS:
            holds[predicate, bib].append(thing)
    return {
        (x, y)
        for predicate, p, q, truth in known
        if predicate == "SameBib" and truth
        for kind in KINDS
        for x in holds[kind, p]
        for y in holds[kind, q]
    }


def counted(labelled: set[Atom], papers: set[Pair]) -> Counter[str]:
    """The ground rules of each kind whose Same atoms are all labelled and whose SamePaper atoms are all facts."""
    found: Counter[str] = Counter()
    following, after = defaultdict(set), defaultdict(set)
    for x, y in papers:
        following[x].add(y)
    for predicate, x, y in labelled:
        after[predicate, x].add(y)
    for predicate, x, y in labelled:
        found["paper"] += (x, y) in papers
        found["symmetric"] += (predicate, y, x) in labelled
        found["chain"] += sum((z, y) in papers for z in following[x])
        found["transitive"] += sum(z in after[predicate, x] for z in after[predicate, y])
    return found


def kind(rule: str) -> str:
    return next(word for word in rule.split("_") if word in ("paper", "symmetric", "chain", "transitive"))


def test_the_grounding_has_the_size_that_loops_count() -> None:
    """All five folds joined: 68,286 ground rules of SamePaper, symmetry and chain, and 181,828 of transitivity."""
    labelled = {atom for fold in FOLDS for atom in labels(fold)}
    expected = counted(labelled, same_paper(FOLDS))
    assert expected == {"paper": 5012, "symmetric": 9792, "chain": 53_482, "transitive": 181_828}
    grounding = FullGrounder().ground(Store(problem_of("cora-s1-joined").knowledge))
    found: Counter[str] = Counter()
    for part in grounding.ground_rules:
        found[kind(part.rule.name)] += len(part)
    assert found == expected


def words(name: str) -> set[str]:
    return set(name.lower().split("_")[1:]) - {""}


def jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(1, len(one | other))


@cache
def has_words(fold: int) -> dict[str, set[str]]:
    found = defaultdict(set)
    for predicate, thing, word, _ in facts(fold, "facts"):
        if predicate.startswith("HasWord"):
            found[thing].add(word)
    return found


def by_loops(kind: str, fold: int, left_out: Collection[Atom] = ()) -> float:
    """The average precision of a score without learning on the labels of a fold that are not left out."""
    papers, own = same_paper((fold,)), has_words(fold)
    scores, truths = [], []
    for (predicate, x, y), truth in labels(fold).items():
        if (predicate, x, y) in left_out:
            continue
        extra = {"alone": 0.0, "names": jaccard(words(x), words(y)), "HasWord": jaccard(own[x], own[y])}[kind]
        scores.append(((x, y) in papers) + extra)
        truths.append(truth)
    return float(average_precision_score(truths, scores))


def test_the_baselines_without_learning_have_the_golden_figures() -> None:
    """SamePaper alone 0.794; with the words of HasWord facts 0.902, with those of the names themselves 0.911."""
    means = {kind: np.mean([by_loops(kind, fold) for fold in FOLDS]) for kind in ("alone", "HasWord", "names")}
    assert means == pytest.approx({"alone": 0.794, "HasWord": 0.902, "names": 0.911}, abs=5e-4)


@pytest.mark.parametrize(("row", "kind"), [("SamePaper alone", "alone"), ("SamePaper + Jaccard", "names")])
def test_the_table_has_the_baselines_that_loops_find(row: str, kind: str) -> None:
    (chosen,) = (found for found in table_rows("cora") if found.row == row)
    metrics = measure(chosen, "cora-s2", 0).metrics
    reflexive = {atom for atom in labels(2) if atom[1] == atom[2]}
    seen = {atom for fold in FOLDS if fold != 2 for atom in labels(fold)} & set(labels(2))
    assert 0 < len(reflexive) < len(reflexive | seen) < len(labels(2))
    expected = [by_loops(kind, 2, left_out) for left_out in (set(), reflexive, reflexive | seen)]
    assert [metrics[name] for name in ("ap", "ap_not_reflexive", "ap_new")] == pytest.approx(expected, abs=1e-9)


def bare(name: str) -> str:
    return re.sub(r"\bS\d:", "", name)


@pytest.mark.parametrize(("fold", "joined"), [(1, ""), (5, ""), (1, "-joined"), *SLOW])
def test_no_label_of_the_test_fold_is_in_training_or_validation(fold: int, joined: str) -> None:
    problem = problem_of(f"cora-s{fold}{joined}")
    names = problem.knowledge.base.names
    asked = {bare(name) for name in names(problem.test.atoms)}
    assert asked == {f"{predicate}({a}, {b})" for predicate, a, b in labels(fold)}
    for found in (problem, problem.with_valid_as_evidence()):
        for part in (found.train, found.valid):
            assert not asked & {bare(name) for name in names(part.atoms)}


@pytest.fixture(scope="module")
def flipped_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as R2N_DATA is, where every label of the fold S1 says the contrary."""
    folder = tmp_path_factory.mktemp("flipped")
    copytree(FOLDER, folder / "cora")
    queries = folder / "cora" / "S1" / "queries"
    lines = queries.read_text().splitlines()
    queries.write_text("\n".join(line[1:] if line.startswith("!") else f"!{line}" for line in lines if line.strip()))
    return folder


@pytest.mark.parametrize("name", ["cora-s1", pytest.param("cora-s1-joined", marks=pytest.mark.slow)])
def test_the_labels_of_the_test_fold_change_nothing_that_is_known(name: str, flipped_data: Path) -> None:
    problem, flipped = problem_of(name), flipped_of(name, flipped_data)
    np.testing.assert_array_equal(flipped.test.atoms, problem.test.atoms)
    np.testing.assert_array_equal(flipped.test.truth, ~problem.test.truth)  # else the test would see nothing
    for one, other in ((problem, flipped), (problem.with_valid_as_evidence(), flipped.with_valid_as_evidence())):
        for part in ("train", "valid"):
            np.testing.assert_array_equal(getattr(one, part).atoms, getattr(other, part).atoms)
            np.testing.assert_array_equal(getattr(one, part).truth, getattr(other, part).truth)
        known, too = one.knowledge, other.knowledge
        np.testing.assert_array_equal(known.evidence.atoms, too.evidence.atoms)
        np.testing.assert_array_equal(known.evidence.truth, too.evidence.truth)
        assert set(known.features) == set(too.features)
        assert all(features.digest() == too.features[name].digest() for name, features in known.features.items())
        assert set(known.candidates) == set(too.candidates)
        for predicate, codes in known.candidates.items():
            np.testing.assert_array_equal(codes, too.candidates[predicate])


def test_the_vocabulary_is_that_of_training_constants_and_test_labels_train_nothing(
    flipped_data: Path,
) -> None:
    """One epoch of the row R2NS, which is told the validation labels, with the labels of the test fold and against."""
    (row,) = (found for found in table_rows("cora") if found.row == "R2NS")
    problem = problem_of("cora-s1")
    options = row.options(problem.options).changed(["training.epochs=1"])
    assert options.training.with_valid
    runs = []
    for given in (problem, flipped_of("cora-s1", flipped_data)):
        runs.append(prepare_run(given, options, 0))  # sets the seed, so it is trained at once
        assert [epoch.number for epoch in runs[-1].trainer] == [1]
    embedding = runs[0].model.atom_embedding
    assert isinstance(embedding, PairEmbedding)
    vocabulary = {word for channel in embedding.channels for word in channel.bags.vocabulary}  # pyright: ignore
    trained = {thing for fold in (2, 3, 4, 5) for _, *pair in set(labels(fold)) - set(labels(1)) for thing in pair}
    assert vocabulary == set().union(*map(words, trained))
    assert vocabulary < set().union(*(words(name) for fold in FOLDS for _, *pair in labels(fold) for name in pair))
    states = [run.model.state_dict() for run in runs]
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
