"""Questions, and answers as a table."""

import re
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.atom_text import written_atom
from r2n.data.herbrand import HerbrandBase
from r2n.data.problem import Problem
from r2n.data.tables import Table
from r2n.errors import ConfigError, DataError, R2NError
from r2n.evaluation.calibrate import Calibrated
from r2n.logic.language import Domain, Language, Predicate
from r2n.model.answers import MOST_ROWS, Answers, Question, argument_names
from r2n.model.model import Model
from r2n.model.questions import ENDINGS, AnswerOptions, answer_table, complete, questions_table, write_answers
from r2n.model.run import Run
from tests.explanations import NASTY
from tests.html_pages import read_page


def names(problem: Problem, question: str) -> list[str]:
    base = problem.knowledge.base
    return base.names(Question.parse(base, question).codes())


def test_a_question_asks_for_an_atom_or_for_all_constants(toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(toy, ' "liesIn" ( "n1" , \'north\' ) . ') == names(toy, "liesIn(n1, north)") == ["liesIn(n1, north)"]
    assert names(toy, "liesIn(n1, ?)") == ["liesIn(n1, north)", "liesIn(n1, south)"]
    assert (len(names(toy, "liesIn(?, ?)")), len(names(toy, "near(?, ?)"))) == (32, 256)
    base = toy.knowledge.base
    for text in ("liesIn(n1, north)", "liesIn(n1, ?)", "liesIn(?, ?)", "near(?, n1)"):
        asked, everything = Question.parse(base, text), np.arange(base.size)
        assert everything[asked.asks_for(everything)].tolist() == asked.codes().tolist()
        assert len(asked) == len(asked.codes())
    monkeypatch.setattr("r2n.model.answers.MOST_ASKED", 10)
    with pytest.raises(DataError, match="asks for 32 atoms"):
        Question.parse(base, "liesIn(?, ?)").codes()


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("liesIn", r'is no question\n.*with \? for what is asked: "liesIn\(n0, \?\)"'),
        ("lieIn(n1, ?)", "unknown predicate 'lieIn'(?s:.*)\n  did you mean 'liesIn'"),
        ("liesIn(n1)", "takes 2 constants, the question has 1"),
        ("liesIn(n1, ?, ?)", "takes 2 constants, the question has 3"),
        ("liesIn(n99, ?)", "unknown constant 'n99'"),
        ("liesIn(north, ?)", "'north' is outside domain 'town'"),
        ("liesIn(n1, )", "a constant or \\? was expected"),
        ("liesIn(, n1)", "a constant or \\? was expected"),
        ("liesIn()", "a constant or \\? was expected"),
    ],
)
def test_a_bad_question_is_refused(question: str, message: str, toy: Problem) -> None:
    with pytest.raises(DataError, match=message):
        Question.parse(toy.knowledge.base, question).codes()


@pytest.fixture(scope="module")
def model(toy_run: Run) -> Model:
    return Model.from_run(toy_run)


def test_answers_come_with_the_most_probable_first(model: Model) -> None:
    answers = model.predict("liesIn(n5, ?)")
    assert answers[0].atom == "liesIn(n5, north)"
    assert answers[0].probability > answers[1].probability
    assert answers[0].known is None
    assert answers[0].reached
    assert (len(answers), list(answers), answers[1:]) == (2, [answers[0], answers[1]], (answers[1],))
    assert (answers.asked, answers.refused) == (2, 0)
    assert model.predict("liesIn(n1, north)")[0].known is True
    assert not model.predict("near(n1, s1)")[0].reached


@pytest.mark.parametrize("variable", ["X", "x", "Town", "_", "?who"])
def test_a_variable_is_answered_with_how_to_ask(variable: str, toy: Problem) -> None:
    with pytest.raises(DataError, match=f"unknown constant '{re.escape(variable)}'") as caught:
        Question.parse(toy.knowledge.base, f"liesIn(n5, {variable})")
    assert "write ? for what is asked: liesIn(..., ?)" in str(caught.value)
    with pytest.raises(DataError, match=r"did you mean 'north'\?") as caught:
        Question.parse(toy.knowledge.base, "liesIn(n5, nort)")
    assert "write ?" not in str(caught.value)


def test_an_answer_can_be_asked_again(model: Model) -> None:
    predictor = model.with_facts(['near(n5, "a, b")'])
    found = next(item for item in predictor.predict("near(n5, ?)") if item.constants[1] == "a, b")
    assert (found.atom, found.predicate, found.question) == ('near(n5, "a, b")', "near", 'near(n5, "a, b")')
    assert predictor.predict(found.question)[0] == found


@pytest.mark.parametrize(
    ("question", "below"),
    [
        ("lieIn(n1, ?)", "lieIn"),
        (' "lies\\tIn" ( n1 , ?)', '"lies'),
        ("liesIn( n99, ?)", "n99"),
        ('liesIn(?, "up (far)")', '"up'),
        ("liesIn(n1, n2)", "n2"),
        ("liesIn( n1)", "n1"),
    ],
)
def test_what_is_wrong_with_a_question_is_pointed_at(question: str, below: str, toy: Problem) -> None:
    with pytest.raises(DataError) as caught:
        Question.parse(toy.knowledge.base, question)
    assert caught.value.where is not None
    assert caught.value.where.drawn() == [f"  | {question}", "  | " + " " * question.index(below) + "^"]


COLUMNS = ["row", "rank", "predicate", "argument_1", "argument_2"]
SAID = ["probability", "known", "closed", "network", "logit", "reached"]


def queries(tmp_path: Path, text: str, name: str = "queries.tsv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def atoms_of(table: pa.Table) -> list[str]:
    columns = [table[i].to_pylist() for i in (2, 3, 4)]
    return [f"{predicate}({first}, {second})" for predicate, first, second in zip(*columns, strict=True)]


def test_each_atom_has_a_row_in_the_order_of_the_file(model: Model, tmp_path: Path) -> None:
    text = "s5\tliesIn\tnorth\n\nn1\tnear\tn0\nn1\tnear\ts1\nn5\tliesIn\tnorth\n"
    table = answer_table(model, queries(tmp_path, text))
    assert table.column_names == [*COLUMNS, *SAID]
    assert atoms_of(table) == ["liesIn(s5, north)", "near(n1, n0)", "near(n1, s1)", "liesIn(n5, north)"]
    assert table["row"].to_pylist() == [1, 3, 4, 5]
    assert table["rank"].to_pylist() == [1, 1, 1, 1]
    for row, name in zip(table.to_pylist(), atoms_of(table), strict=True):
        (answer,) = model.predict(name)
        assert [row[column] for column in SAID] == [getattr(answer, column) for column in SAID]


def test_a_question_mark_has_its_answers(model: Model, tmp_path: Path) -> None:
    path = queries(tmp_path, "n5\tliesIn\t?\n?\tnear\tn1\nn5\tliesIn\tnorth\n")
    table = answer_table(model, path, AnswerOptions(top=3))
    first, second = ([answer.atom for answer in model.predict(q, top=3)] for q in ("liesIn(n5, ?)", "near(?, n1)"))
    assert atoms_of(table) == [*first, *second, "liesIn(n5, north)"]
    assert table["row"].to_pylist() == [1, 1, 2, 2, 3]
    assert table["rank"].to_pylist() == [1, 2, 1, 2, 1]
    alone = questions_table(model, [model.predict("near(?, n1)", top=1)], ["near"])
    assert atoms_of(alone) == second[:1]
    assert alone.column_names == [*table.column_names[:3], "town_1", "town_2", *table.column_names[5:]]


def test_what_is_known_can_be_hidden(model: Model, tmp_path: Path) -> None:
    path = queries(tmp_path, "n1\tnear\tn0\nn1\tnear\ts1\nn5\tliesIn\tnorth\nn1\tliesIn\t?\n")
    assert atoms_of(answer_table(model, path, AnswerOptions(unknown=True))) == [
        "liesIn(n5, north)",
        "liesIn(n1, south)",
    ]
    every = queries(tmp_path, "n1\tnear\t?\n")
    assert answer_table(model, every, AnswerOptions(everything=True, unknown=True)).num_rows == 0


def test_queries_come_in_any_format_and_false_ones_keep_their_labels(model: Model, tmp_path: Path) -> None:
    path = queries(tmp_path, "n5\tliesIn\tnorth\t1\nn5\tliesIn\tsouth\t0\n")
    assert answer_table(model, path)["label"].to_pylist() == [True, False]
    prolog = queries(tmp_path, "liesIn(n5, ?).\n", "queries.pl")
    assert atoms_of(answer_table(model, prolog, AnswerOptions(top=1))) == ["liesIn(n5, north)"]
    assert answer_table(model, Table(pd.DataFrame({"head": ["n5"], "tail": ["?"]}), "liesIn")).num_rows == 2
    nothing = answer_table(model, queries(tmp_path, "% nothing\n", "queries.pl"))
    assert (nothing.num_rows, "probability" in nothing.column_names) == (0, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n5\tliesIn\tmars\n", "constant 'mars' is outside domain 'valley'"),
        ("n5\tliesIn\tnorth\nmars\tliesIn\t?\n", ":2: unknown constant 'mars'"),
        ("n5\tlisIn\t?\n", ":1: unknown predicate 'lisIn'"),
    ],
)
def test_a_wrong_query_is_named_by_its_line(text: str, message: str, model: Model, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        answer_table(model, queries(tmp_path, text))
    assert message in str(caught.value)
    assert "queries.tsv:" in str(caught.value)


READERS = {
    ".csv": pd.read_csv,
    ".tsv": partial(pd.read_csv, sep="\t"),
    ".parquet": pd.read_parquet,
    ".json": pd.read_json,
    ".jsonl": partial(pd.read_json, lines=True),
}


def test_a_table_is_written_and_read_again(model: Model, tmp_path: Path) -> None:
    assert set(READERS) == set(ENDINGS)
    table = answer_table(model, queries(tmp_path, "n1\tnear\tn0\nn5\tliesIn\t?\n"))
    for ending, read in READERS.items():
        write_answers(table, path := tmp_path / f"answers{ending}")
        rows = read(path)
        assert rows["argument_1"].tolist() == table["argument_1"].to_pylist()
        assert rows["probability"].tolist() == pytest.approx(table["probability"].to_pylist())
    assert [other.name for other in tmp_path.iterdir() if other.name.startswith(".")] == []


def test_a_file_that_cannot_be_written_is_refused(model: Model, tmp_path: Path) -> None:
    table = model.predict("liesIn(n5, ?)").to_arrow()
    with pytest.raises(ConfigError, match=r"let it end in \.csv"):
        write_answers(table, tmp_path / "answers.xlsx")
    with pytest.raises(ConfigError, match="there is no folder"):
        write_answers(table, tmp_path / "nowhere" / "answers.csv")


UNKNOWN, TRUE = -1, 1


def answers_of(*truths: int, name: str = "a", spread: list[float] | None = None, **about: Any) -> Answers:
    """Answers for p(a, b), with these truths."""
    thing = Domain("thing")
    base = HerbrandBase(Language.build([thing], [Predicate("p", (thing, thing))], {"thing": [name, "b"]}))
    ids, count = [base.language.constant_id(each) for each in (name, "b")], len(truths)
    atoms = base.encode(base.language.predicate("p"), np.tile(np.array(ids), (count, 1)))
    known, yes = np.array(truths, np.int64), np.ones(count, bool)
    spreads = None if spread is None else np.array(spread)
    logits, network = np.full(count, -1.1), np.full(count, 0.25)
    return Answers(base, atoms, known, known >= 0, logits, yes, ~yes, network, spreads, **about)


def test_arrow_pandas_and_other_libraries_have_the_same_rows(model: Model) -> None:
    answers = model.predict("liesIn(?, ?)")
    assert answers.to_arrow().equals(questions_table(model, [answers], ["liesIn"]).drop_columns("row"))
    rows = answers.to_arrow().to_pylist()
    frame = answers.to_pandas()
    assert frame["known"].dtype == pd.BooleanDtype()
    assert [None if known is pd.NA else known for known in frame["known"]] == [row["known"] for row in rows]
    assert frame["valley"].tolist() == [row["valley"] for row in rows]
    assert frame["logit"].tolist() == [row["logit"] for row in rows]
    assert pa.table(answers).equals(answers.to_arrow())
    assert duckdb.sql("select count(*) from answers").fetchall() == [(len(answers),)]


def test_no_answers_keep_the_columns_and_types_of_some(model: Model) -> None:
    none, full = model.predict("near(n1, ?)", unknown=True), model.predict("near(n1, ?)")
    assert len(none) == 0 < len(full)  # near is closed: nothing of it is unknown
    assert none.to_arrow().schema == full.to_arrow().schema
    assert none.to_pandas().dtypes.equals(full.to_pandas().dtypes)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ((), ("town_1", "town_2")),
        (("user", "item"), ("user", "item")),
        (("user", "user"), ("user_1", "user_2")),
        (("Known", "probability"), ("Known_1", "probability_1")),
        (("row", "row_1"), ("argument_1", "argument_2")),
        (("", "item"), ("_1", "item")),
    ],
)
def test_arguments_are_named_as_their_table_or_their_domains_are(
    columns: tuple[str, ...], expected: tuple[str, ...], toy_run: Run
) -> None:
    language = toy_run.problem.knowledge.language
    given = {"near": columns} if columns else {}
    assert argument_names(language, given, ["near"]) == expected
    assert argument_names(language, given, ["liesIn"]) == ("town", "valley")
    assert argument_names(language, given, ["liesIn", "near"]) == ("argument_1", "argument_2")
    assert argument_names(language, {"near": ("town", "valley")}, ["liesIn", "near"]) == ("town", "valley")


def test_an_ensemble_has_its_spread() -> None:
    of_ensemble = answers_of(UNKNOWN, UNKNOWN, spread=[0.5, 0.25])
    assert of_ensemble.to_arrow()["spread"].to_pylist() == [0.5, 0.25]
    assert "spread" not in answers_of(UNKNOWN).to_arrow().column_names
    assert "-1.10 ± 0.50" in of_ensemble._repr_html_()


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match="needs pandas, which is not installed\n  pip install pandas"):
        answers_of(UNKNOWN).to_pandas()


def test_the_table_of_a_notebook() -> None:
    calibrated = Calibrated(1.0, 0.0, "12 facts")
    html = answers_of(TRUE, UNKNOWN, asked=9, refused=1, left_out=3, hidden=2, calibration=calibrated)._repr_html_()
    page = read_page(html)
    counts = (
        "2 answers to 9 atoms asked",
        "3 atoms left out",
        "2 atoms not shown",
        "1 atom of new constants cannot be",
    )
    for text in ("p(a, b)", "true", "1.00", "0.25", *counts, "as trained, which 12 facts do not contradict"):
        assert text in page.text
    assert "#" not in html  # no colour of its own
    many = answers_of(*[UNKNOWN] * (MOST_ROWS + 5))._repr_html_()
    assert many.count("<tr>") == MOST_ROWS + 1
    assert f"the first {MOST_ROWS} are shown" in many
    empty = answers_of()
    assert empty.to_arrow().num_rows == len(empty.to_pandas()) == 0
    assert "0 answers to 0 atoms asked" in read_page(empty._repr_html_()).text


@pytest.mark.parametrize("name", NASTY)
def test_names_are_text(name: str) -> None:
    html = answers_of(UNKNOWN, name=name)._repr_html_()
    html.encode()  # no halves of surrogate pairs
    read_page(html)
    assert "<img" not in html
    assert len(html) < 3_000


def test_each_is_answered_as_alone_whichever_others_have_no_answer(model: Model) -> None:
    texts = ["liesIn(n2, ?)", "liesIn(?, south)", "near(n0, ?)", "liesIn(n0, north)"]
    for unknown in (False, True):
        found = model.answer_all([replace(Question.parse(model.base, text), top=3, unknown=unknown) for text in texts])
        assert found == [model.predict(text, top=3, unknown=unknown) for text in texts]
    model = model.with_facts([], domains={"town": ["atlantis"]})
    questions = [Question.parse(model.base, text) for text in ("liesIn(atlantis, ?)", "liesIn(n2, ?)")]
    assert [type(part) for part in model.answer_all(questions)] == [DataError, Answers]
    assert [type(part) for part in model.answer_all(questions[:1])] == [DataError]
    assert model.answer_all([]) == []


COUNTRY, REGION = Domain("country"), Domain("region")
PLACE = Domain("place", parts=(COUNTRY, REGION))
LANGUAGE = Language.build(
    [COUNTRY, REGION, PLACE],
    [
        Predicate("locatedIn", (PLACE, REGION)),
        Predicate("neighborOf", (COUNTRY, COUNTRY)),
        Predicate("is big", (PLACE,)),
    ],
    {"country": ["italy", "ivory coast", "Iceland", 'the "other" one', "00260881"], "region": ["europe", "africa"]},
)


@pytest.mark.parametrize(
    ("text", "start", "texts"),
    [
        ("", 0, ('"is big"(', "locatedIn(", "neighborOf(")),
        ("  loc", 2, ("locatedIn(",)),
        ("IN", 0, ("locatedIn(",)),
        ("is b", 0, ('"is big"(',)),
        ('"is', 0, ('"is big"(',)),
        ("nothing", 0, ()),
        ("locatedIn(i", 10, ("italy, ", '"ivory coast", ', "Iceland, ", "africa, ")),
        ("locatedIn(italy,", 16, ("?)", "africa)", "europe)")),
        ("locatedIn('ivory coast', e", 25, ("europe)",)),
        ("neighborOf(ivory c", 11, ('"ivory coast", ',)),
        (r'neighborOf("the \"o', 11, (r'"the \"other\" one", ',)),
        ("neighborOf(002", 11, ("00260881, ",)),
        ('"is big"(eu', 9, ("europe)",)),
        ("neighborOf(italy, eu", 18, ()),
    ],
)
def test_predicates_and_constants_of_the_right_domain(text: str, start: int, texts: tuple[str, ...]) -> None:
    found = complete(LANGUAGE, text)
    assert (found[0], found[1][: len(texts)]) == (start, texts)
    assert texts or not found[1]


def test_completion_at_its_limits() -> None:
    nothing = (
        "unknown(",
        "locatedIn(italy, europe, ",
        'locatedIn("italy"',
        'locatedIn(it"a',
        "locatedIn(italy, europe)",
    )
    for text in (*nothing, "!loc", "!locatedIn(", '"abc\\'):
        assert complete(LANGUAGE, text)[1] == ()
    assert len(complete(LANGUAGE, "", most=2)[1]) == 2
    assert len(complete(LANGUAGE, "locatedIn(", most=3)[1]) == 3


NAMES = st.lists(
    st.one_of(
        st.text(alphabet="aA\"'\\,()?! .:n\n\té/-", max_size=5),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
        st.sampled_from(["light blue", "a, b", "p(a)", "?", "!", "", "rule", "2nd", "\\n", "x\u2028y"]),
    ),
    min_size=1,
    max_size=5,
    unique=True,
)


@st.composite
def languages(draw: st.DrawFn) -> Language:
    domains = [Domain("d"), Domain("e")]
    predicates = [
        Predicate(name, tuple(draw(st.lists(st.sampled_from(domains), min_size=1, max_size=3)))) for name in draw(NAMES)
    ]
    return Language.build(domains, predicates, {"d": draw(NAMES), "e": draw(NAMES)})


def begins_a_question(base: HerbrandBase, text: str) -> bool:
    """Whether something makes a question of it; tried with `?` for all that is missing."""
    for end in ["", *(f"{first}{', ?' * more})" for first in ("", "?", "(?") for more in range(3))]:
        with suppress(DataError):
            if len(Question.parse(base, text + end)):
                return True
    return False


@st.composite
def typed_atoms(draw: st.DrawFn) -> tuple[Language, str, int]:
    """A language, an atom of it as text, and a place in that text."""
    language = draw(languages())
    predicate = draw(st.sampled_from(language.predicates))
    members = [[language.constants[i] for i in language.members(domain)] for domain in predicate.domains]
    text = draw(st.sampled_from(["", " "])) + written_atom(predicate.name, [draw(st.sampled_from(m)) for m in members])
    return language, text, draw(st.integers(0, len(text)))


@given(typed_atoms())
def test_every_completion_begins_a_question(typed: tuple[Language, str, int]) -> None:
    language, text, cursor = typed
    start, texts = complete(language, text[:cursor])
    assert start <= cursor
    for insertion in texts:
        assert begins_a_question(HerbrandBase(language), text[:start] + insertion), insertion


@given(typed_atoms())
def test_who_takes_the_completions_comes_to_the_atom(typed: tuple[Language, str, int]) -> None:
    language, text, cursor = typed
    start, texts = complete(language, text[:cursor], most=1_000)
    ways = [(text[:start] + insertion).replace(" ", "") for insertion in texts]
    if ways:
        assert any(text.replace(" ", "").startswith(way) for way in ways)
    else:
        assert text[cursor - 1] in '")\\'  # a name is whole, or the cursor is within an escape


@pytest.mark.parametrize("text", ["{}loc", "{}!{}'", 'locatedIn(italy{}"', "locatedIn(italy{}x"])
def test_a_long_run_of_space_is_read_once(text: str) -> None:
    """Read in every way that there is, 100,000 spaces would take minutes."""
    typed = text.replace("{}", " " * 100_000)
    assert complete(LANGUAGE, typed)[0] >= len("locatedIn(")


def test_a_trained_network_lies_where_its_neighbours_lie(model: Model) -> None:
    found = model.explain("liesIn(n5, north)")
    assert found.belief.probability > 0.5
    assert "near(" in found.reasons[0].ground_rule
    assert found.reasons[0].effect > 0
    assert found.to_dict()["atom"] == "liesIn(n5, north)"
    with pytest.raises(R2NError, match="cannot be answered"):
        model.with_facts([], domains={"town": ["n99"]}).explain("liesIn(n99, north)")


@pytest.mark.parametrize(
    ("atom", "options", "message"),
    [
        ("liesIn(n5, ?)", {}, "asks for 2 atoms, and one is explained at a time"),
        ("liesin(n5, north)", {}, "unknown predicate"),
        ("liesIn(n5, mars)", {}, "mars"),
        ("liesIn(north, n5)", {}, "outside domain"),
        ("liesIn(n5", {}, "is no question"),
        ("liesIn(n5, north)", {"depth": -1}, "depth is 0 or more"),
        ("liesIn(n5, north)", {"top": 0}, "top is 1 or more"),
        ("liesIn(n5, north)", {"against": "liesIn(n5, north)"}, "compared to itself"),
    ],
)
def test_what_cannot_be_explained_is_refused(model: Model, atom: str, options: dict, message: str) -> None:
    with pytest.raises(R2NError, match=message):
        model.explain(atom, **options)
