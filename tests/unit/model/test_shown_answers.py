"""Answers as the tables of notebooks and of other libraries."""

import sys
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

from r2n.data.herbrand import HerbrandBase
from r2n.errors import ConfigError
from r2n.evaluation.calibrate import Calibrated
from r2n.logic.language import Domain, Language, Predicate
from r2n.model.answers import BAR, MOST_ROWS, Answers, argument_names
from r2n.model.model import Model
from r2n.model.questions import questions_table
from r2n.model.run import Run
from tests.explanations import NASTY
from tests.page_reader import read_page

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


@pytest.fixture(scope="module")
def answers(toy_run: Run) -> Answers:
    return Model.from_run(toy_run).predict("liesIn(?, ?)")


def test_arrow_has_the_columns_of_a_table_of_answers(answers: Answers, toy_run: Run) -> None:
    table = answers.to_arrow()
    expected = questions_table(Model.from_run(toy_run), [answers], ["liesIn"]).drop_columns("row")
    assert table.to_pydict() == expected.to_pydict()
    assert table.schema == expected.schema


def test_pandas_and_polars_have_the_same_rows(answers: Answers) -> None:
    rows = answers.to_arrow().to_pylist()
    assert answers.to_polars().to_dicts() == rows
    frame = answers.to_pandas()
    assert frame["known"].dtype == pandas.BooleanDtype()
    assert [None if known is pandas.NA else known for known in frame["known"]] == [row["known"] for row in rows]
    assert frame["valley"].tolist() == [row["valley"] for row in rows]
    assert frame["logit"].tolist() == [row["logit"] for row in rows]


def test_whatever_reads_arrow_takes_them(answers: Answers) -> None:
    assert pa.table(answers).equals(answers.to_arrow())
    assert polars.DataFrame(answers).height == len(answers)
    assert duckdb.sql("select count(*) from answers").fetchall() == [(len(answers),)]


def test_no_answers_keep_the_columns_and_types_of_some(toy_run: Run) -> None:
    predictor = Model.from_run(toy_run)
    none, full = predictor.predict("near(n1, ?)", unknown=True), predictor.predict("near(n1, ?)")
    assert len(none) == 0 < len(full)  # near is closed: nothing of it is unknown
    assert none.to_arrow().schema == full.to_arrow().schema
    assert list(none.to_pandas().columns) == none.to_polars().columns == list(full.to_pandas().columns)
    assert list(none.to_pandas()["town_2"]) == []
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


def test_no_answers_are_a_table_too() -> None:
    empty = answers_of()
    assert empty.to_arrow().num_rows == empty.to_polars().height == len(empty.to_pandas()) == 0
    assert "0 answers to 0 atoms asked" in read_page(empty._repr_html_()).text


def test_an_ensemble_has_its_spread() -> None:
    of_ensemble = answers_of(UNKNOWN, UNKNOWN, spread=[0.5, 0.25])
    assert of_ensemble.to_arrow()["spread"].to_pylist() == [0.5, 0.25]
    assert "spread" not in answers_of(UNKNOWN).to_arrow().column_names
    assert "-1.10 ± 0.50" in of_ensemble._repr_html_()


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_what_is_not_installed_is_said(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=f"need {name}, which is not installed\n  pip install {name}"):
        getattr(answers_of(UNKNOWN), f"to_{name}")()


def test_the_table_of_a_notebook() -> None:
    calibrated = Calibrated(1.0, 0.0, "12 facts")
    html = answers_of(TRUE, UNKNOWN, asked=9, refused=1, left_out=3, hidden=2, calibration=calibrated)._repr_html_()
    page = read_page(html)
    for text in (
        "p(a, b)",
        "true",
        "1.00",
        "0.25",
        "2 answers to 9 atoms asked",
        "3 atoms left out",
        "2 atoms not shown",
    ):
        assert text in page.text
    assert "1 atom of new constants cannot be answered" in page.text
    assert "as trained, which 12 facts do not contradict" in page.text
    assert f'<rect width="{BAR * 0.25:.1f}"' in html
    assert "currentColor" in html
    assert "#" not in html  # no colour of its own


@pytest.mark.parametrize("name", NASTY)
def test_names_are_text(name: str) -> None:
    html = answers_of(UNKNOWN, name=name)._repr_html_()
    html.encode()  # no halves of surrogate pairs
    read_page(html)
    assert "<img" not in html
    assert len(html) < 3_000


def test_no_more_rows_than_one_can_look_at() -> None:
    many = answers_of(*[UNKNOWN] * (MOST_ROWS + 5))
    html = many._repr_html_()
    assert html.count("<tr>") == MOST_ROWS + 1
    assert f"the first {MOST_ROWS} are shown" in html
