"""Features of constants: rows of tables, arrays, bags of words."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import r2n
from r2n.data.features import (
    FeatureRows,
    Features,
    FeatureTable,
    Token,
    WordWeights,
    bags_of_words,
    choose_analyzer,
    constant_labels,
    feature_rows,
    pair_counts,
    read_feature_records,
    word_matches,
)
from r2n.data.knowledge_base import grown_features
from r2n.data.problem import Problem
from r2n.data.records import settle
from r2n.errors import ConfigError, DataError
from r2n.logic.language import Language
from r2n.store.folder import problem_fingerprints
from tests.examples import fixture
from tests.oracles.feature_rerun import common_prefix, grams_of, words_of

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
    assert of_papers(FeatureTable(names=True)).texts == ("p1", "p2", "p3")


def test_arrays_of_any_shape_and_single_numbers() -> None:
    images = {name: np.full((1, 8, 8), i) for i, name in enumerate(TITLES)}
    found = of_papers(images).vectors
    assert found is not None
    assert (found.shape, found.dtype) == ((3, 1, 8, 8), np.float32)
    assert found[:, 0, 3, 3].tolist() == [0, 1, 2]
    years = of_papers({"p1": 1, "p2": 2.5, "p3": 3}).vectors
    assert years is not None
    assert years.tolist() == [[1], [2.5], [3]]


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


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(DataError, match="did you mean 'p3 '"):
        problem({"paper": {"p1": "x", "p2": "y", "p3 ": "z"}})
    with pytest.raises(DataError, match=r"features are given for domain 'papr'.*\n  did you mean 'paper'\?"):
        problem({"papr": TITLES})


def test_missing_features_may_be_learned() -> None:
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


def test_one_constant_in_two_domains_has_features_of_one_only() -> None:
    theory = r2n.parse_theory("domain a, b\ndomain c = a | b\npredicate p(a, b)\n")
    facts = [r2n.Table(pa.table({"x": ["u"], "y": ["v"]}), predicate="p")]
    with pytest.raises(DataError, match="'u' has features of domain 'a' and of 'c'"):
        r2n.Problem.build("x", theory, facts, features={"a": {"u": "x"}, "c": FeatureTable(names=True)})
    found = r2n.Problem.build("x", theory, facts, features={"c": FeatureTable(names=True)})
    assert found.knowledge.features["c"].texts == ("u", "v")


@pytest.mark.parametrize(
    ("given", "said", "hint"),
    [
        ({}, "features need a table", "give table"),
        ({"source": "x.csv"}, "which columns are the features", "text = "),
        ({"source": "x.csv", "text": "t", "missing": "drop"}, "missing is 'error' or 'learn'", ""),
        ({"names": True, "text": "t"}, "leave out table, text, vector and label", ""),
        ({"source": {"a": "b"}, "label": "t"}, "a mapping has no columns", ""),
        ({"source": np.ones((2, 2)), "vector": ["t"]}, "not from a ndarray", "dict(zip(constants, array))"),
        (np.ones((3, 2)), "not from a ndarray", "dict(zip(constants, array))"),
        (Path("papers.csv"), "which columns are the features?", "text = "),
        (None, "features need a table", "give table"),
    ],
)
def test_what_is_no_table_says_what_to_write(given: object, said: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FeatureTable(**given) if isinstance(given, dict) else problem({"paper": given})  # pyright: ignore
    assert said in caught.value.what
    assert hint in str(caught.value.hint)
    assert isinstance(given, dict) or caught.value.what.startswith("features of domain 'paper': ")


def test_skipped_rows_are_reported_and_then_missing() -> None:
    source = pa.table({"id": ["p1", "p2", "p3", "p3"], "x": ["1", "b", "3", "4"]})
    read = problem({"paper": FeatureTable(source, vector=("x",), missing="learn")}, on_error="skip")
    said = [error.what for error in read.report.rejected]
    assert said == ["'b' in column 'x' is no number", "'p3' has features already"]
    assert len(read.knowledge.features["paper"]) == 2
    with pytest.raises(DataError, match="'p2' has no features"):
        problem({"paper": FeatureTable(source, vector=("x",))}, on_error="skip")


def test_the_fingerprint_knows_every_feature() -> None:
    vectors = {name: [1.0, i] for i, name in enumerate(TITLES)}
    settings: list[dict[str, object]] = [
        {"paper": TITLES},
        {"paper": {**TITLES, "p3": "2001"}},
        {"paper": vectors},
        {"paper": {**vectors, "p3": [1.0, 2.5]}},
        {"paper": FeatureTable({"p1": "On cats"}, missing="learn")},
        {"person": {"ann": "x"}},
    ]
    digests = [problem_fingerprints(problem(features))["features"] for features in ({}, *settings)]
    assert len(set(digests)) == len(digests)
    assert problem_fingerprints(problem({"paper": TITLES}))["features"] == digests[1]


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


def test_labels_stay_with_their_constants_as_others_join() -> None:
    known = problem({"paper": TITLES}).knowledge
    papers = replace(known.features["paper"], labels=("Cats", "Dogs", "Year"))
    added = r2n.Table(pa.table({"a": ["a9"], "b": ["p2"]}), predicate="cites")
    grown = r2n.Problem.build("more", THEORY, [*FACTS, added]).knowledge.language
    found = grown_features({"paper": papers}, known.language, grown, {"paper": {"a9": "On ants"}})
    assert found["paper"].texts == ("On ants", *TITLES.values())
    assert constant_labels(found, grown, ["a9", *TITLES]) == {"p1": "Cats", "p2": "Dogs", "p3": "Year"}


def test_an_empty_label_takes_no_other_ones_place() -> None:
    known = problem({"paper": TITLES}).knowledge
    papers = known.features["paper"]
    first, second = (replace(papers, labels=labels) for labels in (("Cats", "Dogs", ""), (" ", "Hounds", "")))
    labels = constant_labels({"paper": first, "person": second}, known.language, TITLES)
    assert labels == {"p1": "Cats", "p2": "Hounds"}


COLUMNS = {"id": ["a", "b"], "title": ["cats, dogs", "x y"], "u": [1.5, -2.0], "v": [0.0, 1e-3]}
LISTS = {**COLUMNS, "list": [[1.0, 2.0, 0.1], [4.0, 5.0, 6.0]]}


def write(folder: Path, ending: str) -> Path:
    path = folder / f"table{ending}"
    rows = [dict(zip(LISTS, values, strict=True)) for values in zip(*LISTS.values(), strict=True)]
    if ending == ".parquet":
        pq.write_table(pa.table(LISTS), path)
    elif ending == ".json":
        path.write_text(json.dumps(rows))
    else:
        lines = [",".join(LISTS), *(",".join(f'"{value}"' for value in row.values()) for row in rows)]
        path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".json"])
@pytest.mark.parametrize("vector", [("u", "v"), ("list",)])
def test_all_formats_give_the_same_rows(tmp_path: Path, ending: str, vector: tuple[str, ...]) -> None:
    rows = feature_rows(read_feature_records(write(tmp_path, ending)), "id", "title", vector)
    assert rows.constants.to_pylist() == ["a", "b"]
    assert rows.texts is not None
    assert rows.texts.to_pylist() == COLUMNS["title"]
    expected = LISTS["list"] if vector == ("list",) else [[1.5, 0.0], [-2.0, 1e-3]]
    np.testing.assert_array_equal(rows.vectors, np.array(expected, np.float32))
    assert not rows.empty.any()
    assert rows.faults == ()


def read(content: str, tmp_path: Path, **options: object) -> FeatureRows:
    path = tmp_path / "t.csv"
    path.write_text(content)
    chosen: dict[str, object] = {"key": None, "text": None, "vector": (), **options}
    rows = feature_rows(read_feature_records(path), **chosen)  # pyright: ignore
    settle(rows.faults, "raise")
    return rows


@pytest.mark.parametrize("case", fixture("wrong_tables.toml")["features"], ids=lambda case: case["said"])
def test_bad_rows_are_named(case: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(case["table"], tmp_path, text=case.get("column"), vector=tuple(case.get("vector", ())))
    assert case["said"] in str(caught.value)
    assert caught.value.where is not None
    assert caught.value.where.line == case["line"]
    assert caught.value.where.excerpt == case["table"].split("\n")[case["line"] - 1]


def test_booleans_and_dates_are_numbers(tmp_path: Path) -> None:
    """They were text beside numbers, so that a table with one of each was refused."""
    days, path = pa.array([18262, 18263, 18264], pa.date32()), tmp_path / "papers.csv"
    frame = pa.table({"n": list(TITLES), "pages": [30, 40, 50], "open": [True, False, False], "out": days})
    rows = ("p1,30,True,2020-01-01", "p2,40,FALSE,2020-01-02T00:00:00", "p3,50,false,2020-01-03")
    path.write_text("\n".join(["n,pages,open,out", *rows]))
    for table in (frame, FeatureTable(path, vector=["pages", "open", "out"])):
        found = problem({"paper": table})
        vectors = found.knowledge.features["paper"].vectors
        assert vectors is not None
        assert vectors.tolist() == [[30.0, 1.0, 18262.0], [40.0, 0.0, 18263.0], [50.0, 0.0, 18264.0]]
        assert found.report.notes[-2:] == (
            "features.paper: 'open' is read as 1 for true and 0 for false",
            "features.paper: 'out' is read as days since 1970-01-01",
        )
    path.write_text(path.read_text().replace("2020-01-03", "soon"))
    with pytest.raises(DataError, match="'2020-01-01' in column 'out' is no number"):
        of_papers(FeatureTable(path, vector=["pages", "out"]))


def test_a_table_without_rows_has_no_vectors(tmp_path: Path) -> None:
    vectors = read("name,x,y\n", tmp_path, vector=("x", "y")).vectors
    assert vectors is not None
    assert not len(vectors)


def test_some_numbers_among_texts_are_texts_and_rows_without_features_are_blank(tmp_path: Path) -> None:
    rows = read("id,t\na,1984\nb,Emma\n", tmp_path, text="t")
    assert rows.texts is not None
    assert rows.texts.to_pylist() == ["1984", "Emma"]
    assert read("id,u,v\na,1,2\nb,,\n", tmp_path, vector=("u", "v")).empty.tolist() == [False, True]
    assert read("id,t\na,x\nb, \n", tmp_path, text="t").empty.tolist() == [False, True]
    assert read('id,l\na,\nb,"[1, 2]"\n', tmp_path, vector=("l",)).empty.tolist() == [True, False]


def test_unknown_columns_and_unsuited_files(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"no column is called 'titel'\n  did you mean 'title'\? the columns are: id, title"
    ):
        read("id,title\na,x\n", tmp_path, text="titel")
    (tmp_path / "facts.pl").write_text("p(a, b).\n")
    with pytest.raises(DataError, match="tables with named columns"):
        read_feature_records(tmp_path / "facts.pl")
    with pytest.raises(DataError, match="there is no such file"):
        read_feature_records(tmp_path / "nothing.csv")


TEXTS = ("The cat sat, the cat ran", "a_dog ran", "", "zebra sat")
IN_TRAINING = np.array([True, True, True, False])


def as_dicts(matrix, names) -> list[dict[str, float]]:
    rows = matrix.toarray().tolist()
    return [{name: value for name, value in zip(names, row, strict=True) if value} for row in rows]


def test_the_vocabulary_has_no_word_that_only_other_texts_have_or_too_few() -> None:
    bags = bags_of_words(TEXTS, IN_TRAINING)
    assert bags.vocabulary == ("a", "cat", "dog", "ran", "sat", "the")
    known = as_dicts(bags.known, bags.vocabulary)
    assert known[:2] == [{"cat": 1, "ran": 1, "sat": 1, "the": 1}, {"a": 1, "dog": 1, "ran": 1}]
    assert known[2:] == [{}, {"sat": 1}]
    bags = bags_of_words(TEXTS, IN_TRAINING, weights="count", min_texts=2)
    assert as_dicts(bags.known, bags.vocabulary) == [{"ran": 1}, {"ran": 1}, {}, {}]


def test_tfidf_is_of_the_training_texts_and_gives_length_one() -> None:
    bags = bags_of_words(TEXTS, IN_TRAINING, weights="tfidf")
    dog = as_dicts(bags.known, bags.vocabulary)[1]
    rare, common = (math.log((1 + 3) / (1 + seen)) + 1 for seen in (1, 2))
    length = math.sqrt(2 * rare**2 + common**2)
    assert dog == pytest.approx({"a": rare / length, "dog": rare / length, "ran": common / length}, rel=1e-6)
    assert as_dicts(bags.known, bags.vocabulary)[3] == pytest.approx({"sat": 1.0})


@pytest.mark.parametrize("weights", ["binary", "count", "tfidf"])
@pytest.mark.parametrize("texts", [(), ("", "-"), ("only in test", "-")])
def test_an_empty_vocabulary_is_legal(weights, texts) -> None:
    bags = bags_of_words(texts, np.zeros(len(texts), bool), weights=weights)
    assert bags.vocabulary == ()
    assert bags.known.shape == (len(texts), 0)


@given(st.lists(st.tuples(st.lists(st.sampled_from("abcdef"), max_size=5), st.booleans()), max_size=6))
def test_bags_are_those_of_plain_loops(rows: list[tuple[list[str], bool]]) -> None:
    texts = [" ".join(words) for words, _ in rows]
    in_training = np.array([flag for _, flag in rows], bool)
    bags = bags_of_words(texts, in_training, weights="count")
    assert set(bags.vocabulary) == {word for words, flag in rows if flag for word in words}
    for row, (words, _) in enumerate(rows):
        for column, word in enumerate(bags.vocabulary):
            assert bags.known.toarray()[row, column] == words.count(word)


@pytest.mark.parametrize("token", ["word", "char"])
@pytest.mark.parametrize("weights", ["binary", "count", "tfidf"])
def test_bags_taken_without_a_word_are_those_of_a_text_without_it(weights: WordWeights, token: Token) -> None:
    """All occurrences go; the vocabulary, and how rare words are, stay."""
    bags = bags_of_words(TEXTS, IN_TRAINING, weights=weights, token=token)
    taken = bags.taken(np.array([0, 3, 0, 2, 3]), ["the", "zebra", None, "the", None])
    more = np.append(IN_TRAINING, [False, False])
    shorter = bags_of_words((*TEXTS, "cat sat cat ran", "sat"), more, weights=weights, token=token)
    assert taken.vocabulary == bags.vocabulary == shorter.vocabulary
    expected = [as_dicts(shorter.known, shorter.vocabulary)[row] for row in (4, 5, 0, 2, 3)]
    for found, wanted in zip(as_dicts(taken.known, taken.vocabulary), expected, strict=True):
        assert found == pytest.approx(wanted)
    assert as_dicts(taken.every, taken.tokens) == [
        as_dicts(shorter.every, shorter.tokens)[row] for row in (4, 5, 0, 2, 3)
    ]


@pytest.mark.parametrize("weights", ["binary", "tfidf"])
def test_a_bag_may_be_empty_and_so_may_the_vocabulary(weights: WordWeights) -> None:
    bags = bags_of_words(("cat", ""), np.array([True, True]), weights=weights)
    taken = bags.taken(np.array([0, 1]), ["cat", "cat"])
    assert taken.known.toarray().tolist() == taken.every.toarray().tolist() == [[0], [0]]
    nothing = bags_of_words(("cat", "dog"), np.zeros(2, bool), weights=weights).taken(np.array([1]), ["dog"])
    assert nothing.known.shape == (1, 0)
    assert nothing.every.toarray().tolist() == [[0, 0]]
    none = bags.taken(np.zeros(0, np.int64), [])
    assert none.known.shape == (0, 1)


NAMES = ("John Smith", "jon smith", "J. Smith-Jones", "", "Ødegård_4", "smith, john", "x" * 70, "x" * 65 + "yyyyy")


def test_characters_are_compared_as_plain_loops_say() -> None:
    bags = bags_of_words(NAMES, np.array([True, False] * 4), token="char")
    assert set(bags.vocabulary) == set().union(*map(grams_of, NAMES[::2]))
    for row, text in enumerate(NAMES):
        assert as_dicts(bags.every, bags.tokens)[row].keys() == set(grams_of(text))
    left, right = (part.ravel() for part in np.meshgrid(*[np.arange(len(NAMES))] * 2))
    for i, j, found in zip(left, right, pair_counts(bags, left, right).tolist(), strict=True):
        one, other = ({gram for gram in grams_of(NAMES[k]) if len(gram) == 3} for k in (i, j))
        plain = [" ".join(words_of(NAMES[k])) for k in (i, j)]
        shared, longest = len(one & other), max(map(len, plain)) or 1
        jaccard, dice = shared / (len(one | other) or 1), 2 * shared / (len(one) + len(other) or 1)
        assert found == pytest.approx([jaccard, dice, common_prefix(*plain) / longest])


def test_words_of_names_match_whatever_their_order_and_abbreviations() -> None:
    texts = ("John Smith Rome", "smith j", "Jon Smith", "")
    left, right = np.array([0, 0, 0, 3]), np.array([1, 2, 0, 3])
    found = word_matches(texts, left, right)
    expected = [(1, 1, 1), (1, 0, 3), (3, 0, 0), (0, 0, 0)]
    np.testing.assert_allclose(found[:, :3], np.log1p(expected), rtol=1e-6)
    assert found[2:, 3].tolist() == [1, 0]
    one, other = ({f"  {text} "[i : i + 3] for i in range(len(text) + 1)} for text in ("john smith rome", "smith j"))
    assert found[0, 3] == pytest.approx(len(one & other) / len(one | other))


def test_names_and_short_texts_are_read_by_their_characters_too() -> None:
    assert choose_analyzer(("John Smith", "Jon Smith"))[0] == "char"
    sentences = tuple(f"the cat sat on a mat and saw {animal} in front of the old house" for animal in "abcd")
    assert choose_analyzer(sentences)[0] == "word"
    assert choose_analyzer(tuple("".join(f"{i}{j} " for j in range(20)) for i in "abcdefgh"))[0] == "both"
    assert choose_analyzer(("", ""))[0] == "word"
    facts, features = {"p": [("a", "b")]}, {"d": {"a": "Ann", "b": "Bob"}}
    theory = "domain d\npredicate p(d, d)"
    chosen = Problem.from_facts(facts, theory, features=features)
    assert chosen.knowledge.features["d"].analyzer == "char"
    why = "texts of 3 characters on average, and 0% of the words occur in several of them"
    assert chosen.report.notes == (f'features.d.analyzer = "char" is chosen: {why}',)
    given = Problem.from_facts(facts, theory, features={"d": FeatureTable(features["d"], analyzer="word")})
    assert given.knowledge.features["d"].analyzer == "word"
    assert given.report.notes == ()
    with pytest.raises(ConfigError, match="analyzer is 'word', 'char' or 'both', not 'words'"):
        FeatureTable(features["d"], analyzer="words")
