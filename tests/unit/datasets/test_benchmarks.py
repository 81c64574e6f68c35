"""Known names become problems with the numbers that the table states."""

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2n.data.problem import Problem
from r2n.datasets.benchmarks import DATASETS, EMBEDDED, Dataset, folder_of, load
from r2n.errors import ConfigError, DataError

KNOWN = [dataset for dataset in DATASETS.values() if dataset.is_embedded]
FETCHED = [dataset for dataset in DATASETS.values() if not dataset.is_embedded]

known = cache(load)  # problems are frozen: tests may share them


def counts(problem: Problem) -> tuple[int, ...]:
    language = problem.knowledge.language
    splits = (problem.train, problem.valid, problem.test)
    return len(language.constants), len(language.predicates), *map(len, splits)


def stated(dataset: Dataset) -> tuple[int, ...]:
    sizes = dataset.sizes
    return sizes.constants, sizes.predicates, sizes.train, sizes.valid, sizes.test


def name_of(dataset: Dataset) -> str:
    return dataset.name


@pytest.mark.parametrize("dataset", KNOWN, ids=name_of)
def test_embedded_problems_have_the_stated_numbers(dataset: Dataset) -> None:
    problem = known(dataset.name)
    assert (problem.name, counts(problem)) == (dataset.name, stated(dataset))
    assert problem.report.rejected == ()
    assert {number for _, number in problem.report.duplicates} == {0}


def cheap_first(datasets: list[Dataset]) -> list[Any]:
    """One fold of Cora of each kind, and all others as slow."""
    slow = [d for d in datasets if d.name.startswith("cora") and "s1" not in d.name]
    return [pytest.param(d, marks=pytest.mark.slow) if d in slow else d for d in datasets]


@pytest.mark.parametrize("dataset", cheap_first(FETCHED), ids=name_of)
def test_fetched_problems_have_the_stated_numbers(dataset: Dataset, data_folder: Path) -> None:
    problem = known(dataset.name)
    assert (problem.name, counts(problem)) == (dataset.name, stated(dataset))


def test_the_table_covers_the_embedded_folders() -> None:
    assert {path.parent.name for path in EMBEDDED.glob("*/problem.toml")} == {dataset.name for dataset in KNOWN}


def test_countries_are_typed_and_neighbours_closed() -> None:
    knowledge = known("countries-s3").knowledge
    sizes = {domain.name: len(knowledge.language.members(domain)) for domain in knowledge.language.domains}
    assert sizes == {"country": 244, "region": 5, "subregion": 23, "place": 271}
    assert [p.name for p in knowledge.language.predicates if p.closed] == ["neighborOf"]
    assert [rule.name for rule in knowledge.theory.rules] == ["hierarchy", "manifold"]
    domains = [[d.name for d in knowledge.theory.variable_domains(rule)] for rule in knowledge.theory.rules]
    assert domains == [["country", "subregion", "region"], ["country", "country", "region"]]


@pytest.mark.parametrize("name", ["nations", "kinship", "umls"])
def test_knowledge_graphs_correlate_all_predicates_of_a_pair(name: str) -> None:
    problem = known(name)
    (rule,) = problem.knowledge.theory.rules
    assert rule.is_implicit
    assert len(rule.atoms) == DATASETS[name].sizes.predicates
    assert problem.train.truth.all()
    assert problem.test.truth.all()


def test_mined_rules_keep_their_weights_and_a_slip_in_those_of_freebase_is_mended(data_folder: Path) -> None:
    rules = known("wn18rr").knowledge.theory.rules
    assert len(rules) == 42
    assert (rules[0].name, rules[0].weight) == ("r0", 23498.557678762823)
    rules = known("fb15k237").knowledge.theory.rules
    assert len(rules) == 399
    assert rules[117].atoms[-1].predicate == "/award/award_winner/awards_won./award/award_honor/award_winner"


def test_a_problem_file_or_its_folder_loads_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EMBEDDED / "nations", tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    expected = known("nations")
    for path in (tmp_path / "mine", "mine", tmp_path / "mine" / "problem.toml"):
        np.testing.assert_array_equal(load(path).atoms, expected.atoms)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        load("countries-s4")
    assert str(caught.value).startswith(
        "'countries-s4' is no known dataset, and there is no such problem file or folder\n"
        "  did you mean 'countries-s3'? known: countries-s1, countries-s2, countries-s3, nations,"
    )
    with pytest.raises(ConfigError, match=r"there is no problem file .*nowhere\.toml"):
        load("somewhere/nowhere.toml")


def test_what_is_not_fetched_says_how_to_fetch_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2N_DATA", str(tmp_path))
    monkeypatch.setattr("r2n.datasets.benchmarks.cache_folder", lambda: tmp_path / "cache")
    with pytest.raises(DataError, match="`r2n datasets download wn18rr`"):
        load("wn18rr")
    assert folder_of(DATASETS["nations"]) == EMBEDDED / "nations"
