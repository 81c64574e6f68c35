"""TSV and CSV: cells exactly as a plain second reading has them."""

import csv
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.records import ReadOptions, Records
from r2n.data.text_tables import COMMA, CSV, TAB, TSV
from r2n.errors import DataError
from tests.examples import at_most


def read(path: Path, separator: int, *, header: bool = False) -> Records:
    return (TSV() if separator == TAB else CSV()).records(path, ReadOptions(header))[0]


def cells(records: Records) -> list[tuple[str, ...]]:
    return list(zip(*(column.to_pylist() for column in records.columns), strict=True))


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_quotes_are_ordinary_in_tsv(tmp_path: Path) -> None:
    path = write(tmp_path / "t.tsv", '"a\t b\'"\t"\n""\t \tx\n')
    assert cells(read(path, TAB)) == [('"a', " b'\"", '"'), ('""', " ", "x")]


def test_quotes_in_csv(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", 'a, "" ,"x"\n'.replace(' "" ', "y") + '"a,""b""\n\r\nc","""",\n\n"","d\r\n",e\r\n')
    records = read(path, COMMA)
    assert cells(records) == [("a", "y", "x"), ('a,"b"\n\r\nc', '"', ""), ("", "d\r\n", "e")]
    assert records.rows.tolist() == [0, 1, 5]


@at_most(100, "each writes and reads files")
@given(
    width=st.integers(1, 4),
    ends=st.sampled_from(["\n", "\r\n"]),
    quote_all=st.booleans(),
    data=st.data(),
)
def test_csv_equals_the_csv_module(width: int, ends: str, quote_all: bool, data: st.DataObject) -> None:
    cell = st.text('",\n a\u00e9', max_size=4)
    rows = data.draw(st.lists(st.lists(cell, min_size=width, max_size=width), min_size=1, max_size=6))
    text = io.StringIO()
    csv.writer(text, lineterminator=ends, quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL).writerows(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "t.csv", text.getvalue())
        assert cells(read(path, COMMA)) == [tuple(row) for row in csv.reader(io.StringIO(text.getvalue(), newline=""))]


@at_most(100, "each writes and reads files")
@given(text=st.text('",\r\na', min_size=1, max_size=12))
def test_broken_quotes_are_refused_where_the_csv_module_refuses_or_guesses(text: str) -> None:
    """Any text is read as the strict csv module reads it, or refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "t.csv", text)
        try:
            records = read(path, COMMA)
        except DataError:
            return
        lone_returns = text.replace("\r\n", "").count("\r")
        if not lone_returns and not records.faults:  # the csv module ends a line at a lone return
            plain = [tuple(row) for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
            assert cells(records) == plain


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ('a,b\nc,d"e\nf,g\n', "2:4", "a quote stands in the middle of a cell"),
        ('a,b\nc,"d"e\n', "2:5", "a quote stands in the middle of a cell"),
        ('a,b\né, "d"\n', "2:4", "a quote stands in the middle of a cell"),
        ('a,b\nc,"d\ne,f\n', "2:3", "this quote is never closed"),
        ('"a,b\nc,d\n', "1:1", "this quote is never closed"),
        ('a,"b"""\nc,"d""\n', "2:3", "this quote is never closed"),
    ],
)
def test_broken_quotes(text: str, place: str, what: str, tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", text)
    with pytest.raises(DataError) as caught:
        read(path, COMMA)
    line, column = place.split(":")
    excerpt = text.split("\n")[int(line) - 1]
    assert str(caught.value).startswith(f"{path}:{place}: {what}\n  | {excerpt}\n  | {' ' * (int(column) - 1)}^\n")


def test_header_gives_the_names_and_the_number_of_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", ' a ,"b"\n1,2\n3\n')
    records = read(path, COMMA, header=True)
    assert records.names == ("a", "b")
    assert cells(records) == [("1", "2")]
    assert [fault.rows.tolist() for fault in records.faults] == [[2]]
    assert read(write(path, "a,b\n"), COMMA, header=True).columns[1].to_pylist() == []


def test_place_of_a_column(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", 'aé,b,c\n"d",e,f\n')
    locate = read(path, COMMA).locate
    assert [locate(0, column).column for column in (None, 0, 1, 2)] == [None, 1, 4, 6]
    assert locate(1, 1).column is None  # quotes: no telling by eye
    assert locate(1, 1).line == 2


@pytest.mark.parametrize("separator", [TAB, COMMA])
def test_a_table_of_more_columns_than_anybody_has_is_refused(separator: int, tmp_path: Path) -> None:
    path = write(tmp_path / "t", "a" + 10_000 * f"{chr(separator)}a")
    with pytest.raises(DataError, match=r"t:1: 10,001 columns, more than 10,000"):
        read(path, separator)
    path = write(tmp_path / "t", "a" + 9_999 * f"{chr(separator)}a")
    assert len(read(path, separator).columns) == 10_000
