"""Tables of features: every format gives the same rows, and a wrong cell is named with its place."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r2n.data.features import FeatureRows, feature_rows, read_feature_records
from r2n.data.records import settle
from r2n.errors import DataError

COLUMNS = {"id": ["a", "b"], "title": ["cats, dogs", "x y"], "u": [1.5, -2.0], "v": [0.0, 1e-3]}
LISTS = {**COLUMNS, "list": [[1.0, 2.0, 0.1], [4.0, 5.0, 6.0]]}


def write(folder: Path, ending: str) -> Path:
    path = folder / f"table{ending}"
    rows = [dict(zip(LISTS, values, strict=True)) for values in zip(*LISTS.values(), strict=True)]
    if ending == ".parquet":
        pq.write_table(pa.table(LISTS), path)
    elif ending == ".json":
        path.write_text(json.dumps(rows))
    elif ending == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif ending == ".db":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE t (id, title, u, v, list)")
            values = [(*list(row.values())[:4], json.dumps(row["list"])) for row in rows]
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", values)
    else:
        comma, quote = (",", '"') if ending == ".csv" else ("\t", "")
        lines = [comma.join(LISTS)]
        lines += [comma.join(f"{quote}{value}{quote}" for value in row.values()) for row in rows]
        path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".json", ".jsonl", ".db"])
@pytest.mark.parametrize("vector", [("u", "v"), ("list",)])
def test_all_formats_give_the_same_rows(tmp_path: Path, ending: str, vector: tuple[str, ...]) -> None:
    rows = feature_rows(read_feature_records(write(tmp_path, ending)), "id", "title", vector)
    assert rows.constants.to_pylist() == ["a", "b"]
    assert rows.texts is not None
    assert rows.texts.to_pylist() == COLUMNS["title"]
    expected = LISTS["list"] if vector == ("list",) else [[1.5, 0.0], [-2.0, 1e-3]]
    np.testing.assert_array_equal(rows.vectors, np.array(expected, np.float32))
    assert not rows.blank.any()
    assert rows.faults == ()


def read(content: str, tmp_path: Path, **options: object) -> FeatureRows:
    path = tmp_path / "t.csv"
    path.write_text(content)
    chosen: dict[str, object] = {"key": None, "text": None, "vector": (), **options}
    rows = feature_rows(read_feature_records(path), **chosen)  # pyright: ignore
    settle(rows.faults, "raise")
    return rows


@pytest.mark.parametrize(
    ("text", "options", "line", "said"),
    [
        ("id,t\na,x\nb,1,2\n", {"text": "t"}, 3, "too many columns"),
        ("id,t\na,x\n,y\n", {"text": "t"}, 3, "features of no constant"),
        ("id,t\na,x\nb,y\na,z\n", {"text": "t"}, 4, "'a' has features already"),
        ("id,y\na,\nb,1999\nc,2000\n", {"text": "y"}, 3, "the column 'y' is taken for text, but holds numbers: '1999'"),
        ("id,u,v\na,1,2\nb,3,x\n", {"vector": ("u", "v")}, 3, "'x' in column 'v' is no number"),
        ("id,u,v\na,1,2\nb,3,\n", {"vector": ("u", "v")}, 3, "'' in column 'v' is no number"),
        ("id,u\na,1\nb,nan\n", {"vector": ("u",)}, 3, "the vector of 'b' has nan as component 1"),
        ("id,u,v\na,1,2\nb,1,-inf\n", {"vector": ("u", "v")}, 3, "the vector of 'b' has -inf as component 2"),
        ('id,l\na,"[1, 2]"\nb,"[1]"\n', {"vector": ("l",)}, 3, "a vector of 1 numbers, where that at"),
        ('id,l\na,"[1, 2]"\nb,"[1, x]"\n', {"vector": ("l",)}, 3, "column 'l' has no list of finite numbers here"),
        ('id,l\na,"[1, 2]"\nb,"[1, nan]"\n', {"vector": ("l",)}, 3, "the vector of 'b' has nan as component 2"),
        ('id,l\na,"[1, 2]"\nb,3\n', {"vector": ("l",)}, 3, "column 'l' has no list"),
        ('id,l\na,"[1, 2]"\nb,"[1, NULL]"\n', {"vector": ("l",)}, 3, "column 'l' has no list"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, text: str, options: dict[str, object], line: int, said: str) -> None:
    with pytest.raises(DataError) as caught:
        read(text, tmp_path, **options)
    assert said in str(caught.value)
    assert caught.value.where is not None
    assert caught.value.where.line == line
    assert caught.value.where.excerpt == text.split("\n")[line - 1]


def test_the_first_of_two_rows_is_told_with_the_second(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"t.csv:2; keep one of the two rows"):
        read("id,t\na,x\nb,y\na,z\n", tmp_path, text="t")


def test_some_numbers_among_texts_are_texts(tmp_path: Path) -> None:
    rows = read("id,t\na,1984\nb,Emma\n", tmp_path, text="t")
    assert rows.texts is not None
    assert rows.texts.to_pylist() == ["1984", "Emma"]


def test_rows_without_any_feature_are_blank(tmp_path: Path) -> None:
    assert read("id,u,v\na,1,2\nb,,\n", tmp_path, vector=("u", "v")).blank.tolist() == [False, True]
    assert read("id,t\na,x\nb, \n", tmp_path, text="t").blank.tolist() == [False, True]
    assert read('id,l\na,\nb,"[1, 2]"\n', tmp_path, vector=("l",)).blank.tolist() == [True, False]


def test_unknown_columns_and_unsuited_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no column 'titel'\n  did you mean 'title'\? the columns are: id, title"):
        read("id,title\na,x\n", tmp_path, text="titel")
    (tmp_path / "facts.pl").write_text("p(a, b).\n")
    with pytest.raises(DataError, match="tables with named columns"):
        read_feature_records(tmp_path / "facts.pl")
    with pytest.raises(DataError, match="there is no such file"):
        read_feature_records(tmp_path / "nothing.csv")
