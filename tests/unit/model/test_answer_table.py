"""A file of queries -> a table of answers."""

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from r2n.data.reading.tables import Table
from r2n.errors import ConfigError, DataError
from r2n.model.model import Model
from r2n.model.questions import WRITERS, answer_table, questions_table, write_answers
from r2n.model.run import Run

COLUMNS = ["row", "rank", "predicate", "argument_1", "argument_2"]
SAID = ["probability", "known", "closed", "network", "logit", "reached"]


@pytest.fixture(scope="module")
def predictor(toy_run: Run) -> Model:
    return Model.from_run(toy_run)


def queries(tmp_path: Path, text: str, name: str = "queries.tsv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def atoms(table: pa.Table) -> list[str]:
    columns = [table[i].to_pylist() for i in (2, 3, 4)]
    return [f"{predicate}({first}, {second})" for predicate, first, second in zip(*columns, strict=True)]


def test_each_atom_has_a_row_in_the_order_of_the_file(predictor: Model, tmp_path: Path) -> None:
    text = "s5\tliesIn\tnorth\n\nn1\tnear\tn0\nn1\tnear\ts1\nn5\tliesIn\tnorth\n"
    table = answer_table(predictor, queries(tmp_path, text))
    assert table.column_names == [*COLUMNS, *SAID]
    assert atoms(table) == ["liesIn(s5, north)", "near(n1, n0)", "near(n1, s1)", "liesIn(n5, north)"]
    assert table["row"].to_pylist() == [1, 3, 4, 5]
    assert table["rank"].to_pylist() == [1, 1, 1, 1]
    for row, name in zip(table.to_pylist(), atoms(table), strict=True):
        (answer,) = predictor.predict(name)
        assert [row[column] for column in SAID] == [getattr(answer, column) for column in SAID]


def test_a_question_mark_has_its_answers(predictor: Model, tmp_path: Path) -> None:
    path = queries(tmp_path, "n5\tliesIn\t?\n?\tnear\tn1\nn5\tliesIn\tnorth\n")
    table = answer_table(predictor, path, top=3)
    by_row = {row: [atom for atom, r in zip(atoms(table), table["row"].to_pylist(), strict=True) if r == row]
              for row in (1, 2, 3)}  # fmt: skip
    assert by_row[1] == [answer.atom for answer in predictor.predict("liesIn(n5, ?)", top=3)]
    assert by_row[2] == [answer.atom for answer in predictor.predict("near(?, n1)", top=3)]
    assert by_row[3] == ["liesIn(n5, north)"]
    assert table["rank"].to_pylist() == [1, 2, 1, 2, 1]
    alone = questions_table(predictor, [predictor.predict("near(?, n1)", top=1)], ["near"])
    assert atoms(alone) == by_row[2][:1]
    assert alone.column_names == [*table.column_names[:3], "town_1", "town_2", *table.column_names[5:]]


def test_what_is_known_can_be_hidden(predictor: Model, tmp_path: Path) -> None:
    path = queries(tmp_path, "n1\tnear\tn0\nn1\tnear\ts1\nn5\tliesIn\tnorth\nn1\tliesIn\t?\n")
    assert atoms(answer_table(predictor, path, unknown=True)) == ["liesIn(n5, north)", "liesIn(n1, south)"]
    every = answer_table(predictor, queries(tmp_path, "n1\tnear\t?\n"), unknown=True, everything=True)
    assert every.num_rows == 0


def test_labels_are_kept_where_there_are_false_ones(predictor: Model, tmp_path: Path) -> None:
    path = queries(tmp_path, "n5\tliesIn\tnorth\t1\nn5\tliesIn\tsouth\t0\n")
    assert answer_table(predictor, path)["label"].to_pylist() == [True, False]


def test_queries_come_in_any_format(predictor: Model, tmp_path: Path) -> None:
    assert atoms(answer_table(predictor, queries(tmp_path, "liesIn(n5, ?).\n", "queries.pl"), top=1)) == [
        "liesIn(n5, north)"
    ]
    frame = pd.DataFrame({"head": ["n5"], "tail": ["?"]})
    assert answer_table(predictor, Table(frame, "liesIn")).num_rows == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n5\tliesIn\tmars\n", "constant 'mars' is outside domain 'valley'"),
        ("n5\tliesIn\tnorth\nmars\tliesIn\t?\n", ":2: unknown constant 'mars'"),
        ("n5\tlisIn\t?\n", ":1: unknown predicate 'lisIn'"),
    ],
)
def test_a_wrong_query_is_named_by_its_line(text: str, message: str, predictor: Model, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        answer_table(predictor, queries(tmp_path, text))
    assert message in str(caught.value)
    assert "queries.tsv:" in str(caught.value)


@pytest.mark.parametrize("ending", WRITERS)
def test_a_table_is_written_and_read_again(ending: str, predictor: Model, tmp_path: Path) -> None:
    table = answer_table(predictor, queries(tmp_path, "n1\tnear\tn0\nn5\tliesIn\t?\n"))
    path = tmp_path / f"answers{ending}"
    write_answers(table, path)
    assert [other.name for other in tmp_path.iterdir() if other.name.startswith(".")] == []
    rows = {
        ".csv": lambda: pd.read_csv(path).to_dict("records"),
        ".tsv": lambda: pd.read_csv(path, sep="\t").to_dict("records"),
        ".parquet": lambda: pd.read_parquet(path).to_dict("records"),
        ".json": lambda: json.loads(path.read_text()),
        ".jsonl": lambda: [json.loads(line) for line in path.read_text().splitlines()],
    }[ending]()
    assert [row["argument_1"] for row in rows] == table["argument_1"].to_pylist()
    assert [row["probability"] for row in rows] == pytest.approx(table["probability"].to_pylist())


def test_a_file_that_cannot_be_written_is_refused(predictor: Model, tmp_path: Path) -> None:
    table = predictor.predict("liesIn(n5, ?)").to_arrow()
    with pytest.raises(ConfigError, match=r"let it end in \.csv"):
        write_answers(table, tmp_path / "answers.xlsx")
    with pytest.raises(ConfigError, match="there is no folder"):
        write_answers(table, tmp_path / "nowhere" / "answers.csv")


def test_no_query_gives_no_row(predictor: Model, tmp_path: Path) -> None:
    table = answer_table(predictor, queries(tmp_path, "% nothing\n", "queries.pl"))
    assert table.num_rows == 0
    assert "probability" in table.column_names
