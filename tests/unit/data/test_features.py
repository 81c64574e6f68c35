"""Features of a domain: which constants have some, where they come from, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import r2n
from r2n.data.features import Features, FeatureTable, constant_labels
from r2n.data.knowledge_base import with_reciprocals
from r2n.errors import ConfigError, DataError
from r2n.grounding.cache import fingerprint
from r2n.logic.language import Language

THEORY = r2n.parse_theory("domain paper, person\npredicate cites(paper, paper)\npredicate wrote(person, paper)\n")
FACTS = [
    r2n.Table(pa.table({"a": ["p1", "p3"], "b": ["p2", "p1"]}), predicate="cites"),
    r2n.Table(pa.table({"a": ["ann"], "b": ["p1"]}), predicate="wrote"),
]
TITLES = {"p1": "On cats", "p2": "On dogs", "p3": "1984"}


def problem(features: dict[str, object], **options: object) -> r2n.Problem:
    return r2n.Problem.build("papers", THEORY, FACTS, features=features, **options)  # pyright: ignore


def of_papers(given: object, **options: object) -> Features:
    return problem({"paper": given}, **options).knowledge.features["paper"]


def named(found: Features, language: Language) -> list[str]:
    return [language.constants[i] for i in found.constants]


def test_texts_in_the_order_of_the_constants() -> None:
    known = problem({"paper": dict(reversed(TITLES.items()))}).knowledge
    found = known.features["paper"]
    assert named(found, known.language) == ["p1", "p2", "p3"]
    assert found.texts == tuple(TITLES.values())
    assert (found.vectors, found.ignored, len(found)) == (None, 0, 3)


def test_arrays_of_any_shape_and_single_numbers() -> None:
    images = {name: np.full((1, 8, 8), i) for i, name in enumerate(TITLES)}
    found = of_papers(images).vectors
    assert found is not None
    assert (found.shape, found.dtype) == ((3, 1, 8, 8), np.float32)
    assert found[:, 0, 3, 3].tolist() == [0, 1, 2]
    years = of_papers({"p1": 1, "p2": 2.5, "p3": 3}).vectors
    assert years is not None
    assert years.tolist() == [[1], [2.5], [3]]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_of_other_libraries(frame) -> None:
    source = frame({"x": [1.0, 2, 3], "id": ["p3", "p2", "p1"], "title": ["c", "b", "a"]})
    found = of_papers(FeatureTable(source, key="id", text="title", vector=("x",)))
    assert found.texts == ("a", "b", "c")
    assert found.vectors is not None
    assert found.vectors.tolist() == [[3], [2], [1]]


def test_the_constants_own_names() -> None:
    assert of_papers(FeatureTable(names=True)).texts == ("p1", "p2", "p3")


def test_rows_of_constants_that_do_not_occur_are_counted_and_left_out() -> None:
    read = problem({"paper": {**TITLES, "p9": "x", "ann": "y"}})
    assert read.report.unused_features == (("paper", 2),)
    assert read.knowledge.features["paper"].texts == tuple(TITLES.values())


def test_a_constant_without_features_is_an_error_that_says_where_it_stands() -> None:
    with pytest.raises(DataError) as caught:
        problem({"paper": {"p1": "x", "p2": "y"}})
    assert "'p3' has no features" in caught.value.what
    assert 'missing = "learn"' in str(caught.value)
    assert caught.value.where is not None
    assert caught.value.where.excerpt == "cites(p3, p1)"


def test_the_nearest_name_is_told() -> None:
    with pytest.raises(DataError, match="did you mean 'p3 '"):
        problem({"paper": {"p1": "x", "p2": "y", "p3 ": "z"}})


def test_or_it_is_learned() -> None:
    known = problem({"paper": FeatureTable({"p1": "x", "p3": " "}, missing="learn")}).knowledge
    assert named(known.features["paper"], known.language) == ["p1"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({**TITLES, "p2": 3.0}, "features, row 2: 'p2' has numbers, unlike 'p1'"),
        ({"p1": [1, 2], "p2": [1, 2, 3], "p3": [1, 2]}, "features, row 2: the vector of 'p2' has shape 3, where"),
        ({"p1": [1, 2], "p2": [1, 2], "p3": [1, np.nan]}, "features, row 3: the vector of 'p3' has nan as component 2"),
        ({"p1": [1, 1e300], "p2": [1, 2], "p3": [1, 2]}, "features, row 1: the vector of 'p1' has inf as component 2"),
        ({"p1": [1], "p2": object(), "p3": [1]}, "features, row 2: the features of 'p2' are no array of numbers"),
        ({"p1": [1], "p2": [1], "p3": [[1], [1, 2]]}, "features, row 3: the features of 'p3' are no array"),
        ({"p1": "a", "p2": " ", "p3": "c"}, "features, row 2: 'p2' has no features"),
        ({"p1": [], "p2": [], "p3": []}, "features, row 1: the vector of 'p1' is empty"),
        ({"p1": [1], "p2": np.ones((2, 0)), "p3": [1]}, "features, row 2: the vector of 'p2' is empty"),
    ],
)
def test_bad_values_in_python_name_the_row(given: dict[str, object], said: str) -> None:
    with pytest.raises(DataError) as caught:
        problem({"paper": given})
    assert str(caught.value).startswith(said)


def test_unknown_domains() -> None:
    with pytest.raises(DataError, match="features are given for domain 'papr'") as caught:
        problem({"papr": TITLES})
    assert caught.value.hint == "did you mean 'paper'?"


def test_one_constant_in_two_domains_has_features_of_one_only() -> None:
    theory = r2n.parse_theory("domain a, b\ndomain c = a | b\npredicate p(a, b)\n")
    facts = [r2n.Table(pa.table({"x": ["u"], "y": ["v"]}), predicate="p")]
    with pytest.raises(DataError, match="'u' has features of domain 'a' and of 'c'"):
        r2n.Problem.build("x", theory, facts, features={"a": {"u": "x"}, "c": FeatureTable(names=True)})
    found = r2n.Problem.build("x", theory, facts, features={"c": FeatureTable(names=True)})
    assert found.knowledge.features["c"].texts == ("u", "v")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "features need a table"),
        ({"source": "x.csv"}, "which columns are the features"),
        ({"source": "x.csv", "text": "t", "missing": "drop"}, "missing is 'error' or 'learn'"),
        ({"names": True, "text": "t"}, "leave out table, text, vector and label"),
        ({"source": {"a": "b"}, "label": "t"}, "a mapping has no columns"),
        ({"source": {"a": "b"}, "text": "t"}, "a mapping has no columns"),
        ({"source": np.ones((2, 2)), "vector": ["t"]}, "not from a ndarray"),
    ],
)
def test_tables_that_say_too_little_or_too_much(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        FeatureTable(**options)  # pyright: ignore


@pytest.mark.parametrize(
    ("given", "said", "hint"),
    [
        (np.ones((3, 2)), "not from a ndarray", "dict(zip(constants, array))"),
        ("papers.csv", "which columns are the features?", "text = "),
        (Path("papers.csv"), "which columns are the features?", "text = "),
        ([1.0, 2.0], "not from a list", "dict(zip(constants, array))"),
        (None, "features need a table", "give table"),
    ],
)
def test_what_is_no_table_says_what_to_write(given: object, said: str, hint: str) -> None:
    with pytest.raises(ConfigError, match="features of domain 'paper': ") as caught:
        problem({"paper": given})
    assert said in caught.value.what
    assert hint in str(caught.value.hint)


def test_skipped_rows_are_reported_and_then_missing() -> None:
    source = pa.table({"id": ["p1", "p2", "p3", "p3"], "x": ["1", "b", "3", "4"]})
    read = problem({"paper": FeatureTable(source, vector=("x",), missing="learn")}, on_error="skip")
    assert [error.what for error in read.report.rejected] == [
        "'b' in column 'x' is no number",
        "'p3' has features already",
    ]
    assert len(read.knowledge.features["paper"]) == 2
    with pytest.raises(DataError, match="'p2' has no features"):
        problem({"paper": FeatureTable(source, vector=("x",))}, on_error="skip")


def test_the_fingerprint_knows_every_feature() -> None:
    plain = problem({}).knowledge
    vectors = {name: [1.0, i] for i, name in enumerate(TITLES)}
    settings: list[dict[str, object]] = [
        {"paper": TITLES},
        {"paper": {**TITLES, "p3": "2001"}},
        {"paper": vectors},
        {"paper": {**vectors, "p3": [1.0, 2.5]}},
        {"paper": FeatureTable({"p1": "On cats"}, missing="learn")},
        {"person": {"ann": "x"}},
    ]
    digests = [fingerprint(plain), *(fingerprint(problem(features).knowledge) for features in settings)]
    assert len(set(digests)) == len(digests)
    assert fingerprint(problem({"paper": TITLES}).knowledge) == digests[1]


def test_reciprocals_keep_the_features() -> None:
    known = problem({"paper": TITLES}).knowledge
    assert with_reciprocals(known).features == known.features


def test_problem_files(tmp_path: Path) -> None:
    (tmp_path / "theory.r2n").write_text(str(THEORY))
    (tmp_path / "facts.tsv").write_text("p1\tcites\tp2\nann\twrote\tp1\n")
    (tmp_path / "papers.csv").write_text('id,title,vector\np1,"On cats, again","[1, 2]"\np2,On dogs,"[3, 4]"\n')
    head = 'theory = "theory.r2n"\n[facts]\ntrain = "facts.tsv"\n'
    (tmp_path / "problem.toml").write_text(
        head
        + '[features.paper]\ntable = "papers.csv"\ntext = "title"\nvector = "vector"\n[features.person]\nnames = true'
    )
    known = r2n.load(tmp_path).knowledge
    assert known.features["paper"].texts == ("On cats, again", "On dogs")
    assert known.features["person"].texts == ("ann",)
    built = r2n.KnowledgeBase.build(THEORY, features={"paper": {}})
    assert len(built.features["paper"]) == 0
    for text, said in (
        ('[features.paper]\ntable = "papers.csv"\ntxt = "title"', "did you mean 'text'"),
        ('[features.paper]\ntable = "papers.csv"', r"\[features.paper\]: which columns"),
        ('[features.paper]\ntable = "papers.csv"\ntext = "titel"', "did you mean 'title'"),
    ):
        (tmp_path / "problem.toml").write_text(head + text)
        with pytest.raises(r2n.R2NError, match=said):
            r2n.load(tmp_path)


def test_a_language_with_more_constants_has_other_ids() -> None:
    known = problem({"paper": TITLES}).knowledge
    more = r2n.Table(pa.table({"a": ["a9", "p25"], "b": ["p2", "p9"]}), predicate="cites")
    grown = r2n.Problem.build("more", THEORY, [*FACTS, more]).knowledge.language
    found = known.features["paper"].in_language(known.language, grown)
    assert named(found, grown) == ["p1", "p2", "p3"]
    assert found.texts == tuple(TITLES.values())
    assert found.constants.tolist() != known.features["paper"].constants.tolist()


def test_an_empty_label_takes_no_other_ones_place() -> None:
    known = problem({"paper": TITLES}).knowledge
    papers = known.features["paper"]
    first, second = (replace(papers, labels=labels) for labels in (("Cats", "Dogs", ""), (" ", "Hounds", "")))
    labels = constant_labels({"paper": first, "person": second}, known.language, TITLES)
    assert labels == {"p1": "Cats", "p2": "Hounds"}
