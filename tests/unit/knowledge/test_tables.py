"""Tables of facts: every format gives what a plain second reading gives, and bad input says what, where, what to do."""

import csv
import gzip
import io
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from r2n.errors import ConfigError, DataError
from r2n.knowledge.tables import FORMATS, Table, format_of, read_facts
from tests.oracles.fact_tables import (
    listed,
    plain_atoms,
    plain_csv,
    plain_json,
    plain_sqlite,
    plain_triples,
    plain_tsv,
)

TRIPLES = [
    ("italy", "locatedIn", "europe"),
    ("italy", "neighborOf", "france"),
    ("rome", "locatedIn", "italy"),
]
DATA = os.environ.get("R2N_DATA")

Rows = Sequence[tuple[str, ...]]


def write_tsv(path: Path, rows: Rows) -> None:
    path.write_bytes("".join("\t".join(row) + "\n" for row in rows).encode())


def write_csv(path: Path, rows: Rows) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    path.write_bytes(text.getvalue().encode())


def as_columns(rows: Rows) -> dict[str, list[str]]:
    names = ("head", "relation", "tail", "label")
    width = len(rows[0]) if rows else 3
    return {name: [row[i] for row in rows] for i, name in enumerate(names[:width])}


def write_parquet(path: Path, rows: Rows) -> None:
    pq.write_table(pa.table(as_columns(rows)), path)


def as_objects(rows: Rows) -> list[dict[str, str]]:
    return [dict(zip(("head", "relation", "tail", "label"), row, strict=False)) for row in rows]


def write_json(path: Path, rows: Rows) -> None:
    path.write_text(json.dumps(as_objects(rows), indent=1), encoding="utf-8")


def write_json_lines(path: Path, rows: Rows) -> None:
    path.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in as_objects(rows)), "utf-8", newline="\n"
    )


def write_sqlite(path: Path, rows: Rows) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        names = list(as_columns(rows))
        connection.execute(f"CREATE TABLE facts ({', '.join(f'{name} TEXT' for name in names)})")
        connection.executemany(f"INSERT INTO facts VALUES ({', '.join('?' * len(names))})", rows)


def write_prolog(path: Path, rows: Rows) -> None:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"

    lines = [f"{quoted(relation)}({quoted(head)}, {quoted(tail)})." for head, relation, tail in rows]
    path.write_bytes("".join(line + "\n" for line in lines).encode())


def write_ntriples(path: Path, rows: Rows) -> None:
    path.write_text("".join(f"<u:{h}> <u:{r}> <u:{t}> .\n" for h, r, t in rows), encoding="utf-8")


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    ".tsv": write_tsv,
    ".txt": write_tsv,
    ".tab": write_tsv,
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".json": write_json,
    ".jsonl": write_json_lines,
    ".ndjson": write_json_lines,
    ".sqlite": write_sqlite,
    ".sqlite3": write_sqlite,
    ".db": write_sqlite,
    ".pl": write_prolog,
    ".nl": write_prolog,
    ".nlt": write_prolog,
    ".facts": write_prolog,
    "": write_prolog,
}


def test_every_format_has_a_test() -> None:
    assert set(FORMATS) == set(WRITERS) | {".nt", ".ttl", ".rdf", ".owl"}


@pytest.mark.parametrize("suffix", list(WRITERS))
def test_triples_of_every_format(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts{suffix.upper() if suffix == '.tsv' else suffix}"
    WRITERS[suffix](path, TRIPLES)
    read = read_facts(Table(path))
    assert listed(read) == plain_triples(TRIPLES)
    assert [facts.predicate for facts in read.facts] == ["locatedIn", "neighborOf"]
    assert read.rejected == ()
    assert all(column.type == pa.string() for facts in read.facts for column in facts.arguments)
    assert all(facts.truth.dtype == bool and facts.rows.dtype == np.int64 for facts in read.facts)


def text(excluded: str) -> st.SearchStrategy[str]:
    return st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters=excluded), min_size=1, max_size=6
    )


NO_LINE_ENDS = text("\t\n\r")
ANY_TEXT = text("\x00")
ALPHABET = {
    ".tsv": NO_LINE_ENDS,
    ".csv": st.one_of(ANY_TEXT, st.text('",\r\n\t a', min_size=1, max_size=5)),
    ".pl": st.one_of(text("\n\r\x00"), st.text("'\"\\(),.%!# a", min_size=1, max_size=5)),
    ".parquet": ANY_TEXT,
    ".json": ANY_TEXT,
    ".jsonl": ANY_TEXT,
    ".db": ANY_TEXT,
}


@pytest.mark.parametrize("suffix", list(ALPHABET))
@settings(max_examples=60)
@given(data=st.data())
def test_any_text_comes_back_as_it_was(suffix: str, data: st.DataObject) -> None:
    constant = ALPHABET[suffix]
    rows = data.draw(
        st.lists(st.tuples(constant, st.one_of(st.just("p"), constant), constant), min_size=1, max_size=6)
    )
    assume(not rows[0][0].startswith("\ufeff"))  # at the start of a file it is a byte order mark
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"facts{suffix}"
        WRITERS[suffix](path, rows)
        read = listed(read_facts(Table(path, header=False)))
        assert read == plain_triples(rows)
        again = {
            ".tsv": lambda: plain_tsv(path),
            ".csv": lambda: plain_csv(path),
            ".json": lambda: [list(row.values()) for row in plain_json(path)],
            ".jsonl": lambda: [list(row.values()) for row in plain_json(path)],
            ".db": lambda: plain_sqlite(path, "facts"),
        }.get(suffix)
        assert again is None or read == plain_triples(again())


@given(
    rows=st.lists(
        st.tuples(
            NO_LINE_ENDS, st.sampled_from("pqr"), NO_LINE_ENDS, st.sampled_from(("1", "0", "True", "FALSE"))
        ),
        min_size=1,
    )
)
@settings(max_examples=60)
def test_labels_and_any_order_of_facts(rows: list[tuple[str, ...]]) -> None:
    assume(not rows[0][0].startswith("\ufeff"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "facts.tsv"
        write_tsv(path, rows)
        read = read_facts(Table(path, header=False))
        assert listed(read) == plain_triples(plain_tsv(path))
        assert [facts.predicate for facts in read.facts] == list(dict.fromkeys(row[1] for row in rows))


@settings(max_examples=30)
@given(
    rows=st.integers(1, 4).flatmap(lambda n: st.lists(st.tuples(*[NO_LINE_ENDS] * n), min_size=1, max_size=5))
)
def test_one_table_per_predicate_with_any_arity(rows: list[tuple[str, ...]]) -> None:
    assume(not rows[0][0].startswith("\ufeff"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "facts.tsv"
        write_tsv(path, rows)
        assert listed(read_facts(Table(path, "p", header=False))) == [("p", row, True) for row in rows]


FRAMES: list[Callable[[dict[str, list[object]]], object]] = [pd.DataFrame, pl.DataFrame, pa.table]


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "pyarrow"])
class TestArrowObjects:
    def test_triples_with_label(self, frame: Callable[..., object]) -> None:
        source = frame({**as_columns(TRIPLES), "label": [1, 0, 1]})
        truths = zip(TRIPLES, (True, False, True), strict=True)
        assert listed(read_facts(Table(source))) == [(r, (h, t), truth) for (h, r, t), truth in truths]

    def test_numbers_and_booleans(self, frame: Callable[..., object]) -> None:
        source = frame({"bib": [7, 8], "year": [1999.5, 2000.0], "truth": [True, False]})
        assert listed(read_facts(Table(source, "year"))) == [
            ("year", ("7", "1999.5"), True),
            ("year", ("8", "2000.0"), False),
        ]

    def test_picked_columns(self, frame: Callable[..., object]) -> None:
        source = frame({"id": [1, 2], "to": ["b", "c"], "from": ["a", "b"], "known": [0, 1]})
        table = Table(source, "edge", columns=("from", "to"), label="known")
        assert listed(read_facts(table)) == [("edge", ("a", "b"), False), ("edge", ("b", "c"), True)]

    def test_nothing(self, frame: Callable[..., object]) -> None:
        assert read_facts(Table(frame({}))).facts == ()
        assert read_facts(Table(frame({"head": [], "relation": [], "tail": []}))).facts == ()

    def test_null(self, frame: Callable[..., object]) -> None:
        source = frame({"head": ["a", None], "relation": ["p", "p"], "tail": ["b", "c"]})
        with pytest.raises(DataError) as caught:
            read_facts(Table(source))
        assert str(caught.value) == (
            f"{Table(source).name}, row 2: column 1 (head) is empty\n"
            "  every constant, relation and label needs a value: fill it in, or take the row out"
        )
        read = read_facts(Table(source), on_error="skip")
        assert listed(read) == [("p", ("a", "b"), True)]
        assert len(read.rejected) == 1
        where = read.facts[0].location(0)
        assert (where.source, where.excerpt) == (f"{Table(source).name}, row 1", "p(a, b)")


def test_names_of_objects() -> None:
    assert Table(pd.DataFrame()).name == "pandas.DataFrame"
    assert Table(pl.DataFrame()).name == "polars.DataFrame"


def test_categories_of_pandas_and_a_filtered_frame() -> None:
    frame = pd.DataFrame(as_columns(TRIPLES)).astype("category")
    assert listed(read_facts(Table(frame))) == plain_triples(TRIPLES)
    assert listed(read_facts(Table(frame.iloc[1:].copy()))) == plain_triples(TRIPLES[1:])


def test_crlf_bom_and_blank_lines_leave_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_bytes(b"\xef\xbb\xbf\r\na\tp\tb\r\n\n\r\nc\tp\td\ne\tp\tf")
    read = read_facts(Table(path))
    assert listed(read) == [("p", ("a", "b"), True), ("p", ("c", "d"), True), ("p", ("e", "f"), True)]
    (facts,) = read.facts
    assert [facts.location(i).line for i in range(3)] == [2, 5, 6]
    assert [facts.location(i).excerpt for i in range(3)] == ["a\tp\tb", "c\tp\td", "e\tp\tf"]


def test_location_shortens_the_line_and_survives_the_file(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    write_tsv(path, [("a" * 200, "p", "b")])
    (facts,) = read_facts(Table(path)).facts
    where = facts.location(0)
    assert where.source == str(path)
    assert where.excerpt == "a" * 79 + "…"
    path.unlink()
    assert facts.location(0).line == 1
    assert facts.location(0).excerpt is None


def test_location_in_each_kind_of_source(tmp_path: Path) -> None:
    for suffix, line in (
        (".csv", 2),
        (".jsonl", 2),
        (".pl", 2),
        (".parquet", None),
        (".json", None),
        (".db", None),
    ):
        path = tmp_path / f"facts{suffix}"
        WRITERS[suffix](path, TRIPLES)
        where = read_facts(Table(path)).facts[1].location(0)
        assert where.line == line
        assert where.source == (str(path) if line else f"{path}, row 2")
        assert where.excerpt is not None
        assert all(word in where.excerpt for word in TRIPLES[1])


def test_skip_keeps_the_good_rows_and_reports_the_bad_ones_in_order(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    lines = ["a\tp\tb\t1", "a\tp\tc", "\tp\td\t1", "e\tp\tf\tmaybe", "", "g\tp\th\t0", "i\tp\tj\t1\t1"]
    path.write_text("\n".join(lines), encoding="utf-8")
    read = read_facts(Table(path), on_error="skip")
    assert listed(read) == [("p", ("a", "b"), True), ("p", ("g", "h"), False)]
    assert [(error.where and error.where.line, error.what) for error in read.rejected] == [
        (2, "too few columns: 3, where line 1 has 4"),
        (3, "column 1 is empty"),
        (4, "the label 'maybe' is neither 1 (true) nor 0 (false)"),
        (7, "too many columns: 5, where line 1 has 4"),
    ]
    with pytest.raises(DataError, match=r"facts\.tsv:2: too few columns"):
        read_facts(Table(path))


def message(table: Table, kind: type[Exception] = DataError) -> str:
    with pytest.raises(kind) as caught:
        read_facts(table)
    return str(caught.value)


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    write_tsv(tmp_path / "train.tsv", TRIPLES)
    path = tmp_path / "trian.tsv"
    assert message(Table(path)) == f"{path}: there is no such file\n  did you mean 'train.tsv'?"
    assert message(Table(str(path))) == message(Table(path))
    assert message(Table(tmp_path / "zzzz")).endswith(f"\n  look into {tmp_path}")
    assert message(Table(tmp_path / "no" / "x.tsv")).endswith(
        f"\n  the folder {tmp_path / 'no'} does not exist"
    )


def test_folder(tmp_path: Path) -> None:
    assert message(Table(tmp_path)) == f"{tmp_path}: this is a folder, not a file\n  name one of its files"
    write_tsv(tmp_path / "train.tsv", TRIPLES)
    assert message(Table(tmp_path)).endswith("name one of its files; it holds train.tsv")


@pytest.mark.parametrize("suffix", [*WRITERS, ".nt", ".tsv.gz"])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_empty_file(suffix: str, on_error: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts{suffix}"
    path.write_bytes(b"")
    with pytest.raises(DataError) as caught:
        read_facts(Table(path), on_error="skip" if on_error == "skip" else "raise")
    assert str(caught.value) == (
        f"{path}: the file is empty\n"
        "  write one fact a line, as in `italy<TAB>locatedIn<TAB>europe`, or leave the file out"
    )


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".pl", ".jsonl", ".json"])
def test_file_of_blank_lines(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts{suffix}"
    path.write_bytes(b"\xef\xbb\xbf\r\n\n")
    assert "the file is empty" in message(Table(path))


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".pl", ".jsonl", ".json", ".nt"])
def test_not_utf8(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts{suffix}"
    path.write_bytes("a\tp\tb\né\tcaf".encode() + b"\xe9\tb\n")
    assert message(Table(path)) == (
        f"{path}:2:6: byte 0xE9, byte 7 of line 2, is not UTF-8 text\n"
        "  | é caf\ufffd b\n"
        "  |      ^\n"
        "  save the file as UTF-8; it looks like Latin-1 or another old encoding"
    )
    path.write_bytes("a\tp\tb".encode("utf-16"))
    assert "it looks like UTF-16" in message(Table(path))


def test_wrong_number_of_columns_for_triples(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("italy locatedIn europe\n", encoding="utf-8")
    assert message(Table(path)) == (
        f"{path}:1: 1 column, where triples have 3, or 4 with a label\n"
        "  | italy locatedIn europe\n"
        "  separate columns by tabs (TSV) or commas (CSV), pick 3 with `columns`, or name the `predicate`"
    )


def test_too_few_and_too_many_columns(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("\na,p,b\na,p\n", encoding="utf-8")
    assert message(Table(path)) == (
        f"{path}:3: too few columns: 2, where line 2 has 3\n"
        "  | a,p\n"
        '  columns are separated by a comma (a cell with a comma needs quotes: "a, b"); mend the line'
    )
    path = tmp_path / "facts.tsv"
    path.write_text("a\tp\tb\na\tp\tb\tc\t" + "d" * 100, encoding="utf-8")
    assert message(Table(path)) == (
        f"{path}:2: too many columns: 5, where line 1 has 3\n"
        f"  | a p b c {'d' * 71}…\n"
        "  columns are separated by a tab; mend the line"
    )


def test_a_bad_first_line_does_not_decide(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tp\nb\tp\tc\nd\tp\te\n", encoding="utf-8")
    assert "facts.tsv:1: too few columns: 2, where line 2 has 3" in message(Table(path))
    assert len(listed(read_facts(Table(path), on_error="skip"))) == 2


def test_empty_cell(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tp\tb\nlonger\t\tb\n", encoding="utf-8")
    assert message(Table(path)) == (
        f"{path}:2:8: column 2 is empty\n"
        "  | longer  b\n"
        "  |        ^\n"
        "  every constant, relation and label needs a value: fill it in, or take the row out"
    )


def test_bad_label(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("head,relation,tail,label\na,p,b,1\na,p,c,yes\n", encoding="utf-8")
    assert message(Table(path)) == (
        f"{path}:3:7: the label 'yes' is neither 1 (true) nor 0 (false)\n"
        "  | a,p,c,yes\n"
        "  |       ^\n"
        "  column 4 is read as the label: write 1 or 0, or pick other columns with `columns`"
    )


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".pl", ".jsonl"])
def test_line_of_ten_megabytes(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts{suffix}"
    rows = [("a", "p", "b"), ("x" * 10_000_000, "p", "b"), ("c", "p", "d")]
    WRITERS[suffix](path, rows)
    text = message(Table(path))
    assert text.startswith(f"{path}:2: the line is longer than 2,000,000 bytes\n  | ")
    assert text.endswith("\n  write one fact a line; a missing line end or quote makes one line of many")
    assert len(text) < 500
    read = read_facts(Table(path), on_error="skip")
    assert listed(read) == plain_triples([rows[0], rows[2]])
    assert len(read.rejected) == 1


@pytest.mark.parametrize("suffix", [".parquet", ".db", ".tsv.gz", ".tsv.zst", ".csv.gz"])
def test_damaged_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts{suffix}"
    path.write_bytes(b"this is something else altogether, " * 40)
    text = message(Table(path))
    assert text.startswith(f"{path}: this cannot be read as ")
    assert text.endswith("\n  the file is damaged, cut short, or misnamed: fetch or write it again")


@pytest.mark.parametrize("suffix", [".parquet", ".db", ".tsv.gz", ".tsv.zst"])
def test_file_cut_short(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts{suffix}"
    rows = [(f"c{i * i}", "p", f"d{i}") for i in range(5000)]
    if suffix == ".tsv.gz":
        path.write_bytes(gzip.compress("".join("\t".join(row) + "\n" for row in rows).encode()))
    elif suffix == ".tsv.zst":
        with pa.output_stream(str(path), compression="zstd") as stream:
            stream.write("".join("\t".join(row) + "\n" for row in rows).encode())
    else:
        WRITERS[suffix](path, rows)
    assert len(listed(read_facts(Table(path)))) == 5000
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "this cannot be read as" in message(Table(path))
    with pytest.raises(DataError):
        read_facts(Table(path), on_error="skip")


def test_unknown_suffix(tmp_path: Path) -> None:
    path = tmp_path / "facts.xlsx"
    path.write_bytes(b"x")
    assert message(Table(path)) == (
        f"{path}: no reader for '.xlsx' files\n"
        "  known: .tsv, .txt, .tab, .csv, .parquet, .json, .jsonl, .ndjson, .sqlite, .sqlite3, .db, .nt, .ttl, .rdf,"
        " .owl, .pl, .nl, .nlt, .facts; text also with .gz or .zst behind; no ending means `p(a, b).` facts"
    )
    with pytest.raises(DataError, match=r"no reader for '\.parquet\.gz' files"):
        format_of(Path("x.parquet.gz"))


def test_options_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="facts come from a file or from a pandas, polars or pyarrow table, not from a list"
    ):
        Table([("a", "p", "b")])
    with pytest.raises(ConfigError, match="columns are picked by name, but header is false"):
        Table(Path("x.tsv"), columns=("a",), header=False)
    with pytest.raises(ConfigError, match="column 'a' is picked both as label and as argument"):
        Table(Path("x.tsv"), columns=("a", "b"), label="a")
    with pytest.raises(ConfigError, match="columns is a list of names, not one text: 'head'"):
        Table(Path("x.tsv"), columns="head")  # pyright: ignore[reportArgumentType]
    path = tmp_path / "facts.pl"
    write_prolog(path, TRIPLES)
    assert "these facts name their predicates themselves" in message(Table(path, "p"), ConfigError)
    with pytest.raises(Exception, match="on_error"):  # a ConfigError, or the type hook's own
        read_facts(Table(path), on_error="ignore")  # pyright: ignore[reportArgumentType]


@pytest.mark.skipif(DATA is None, reason="R2N_DATA names no folder with the benchmarks")
@pytest.mark.parametrize(
    "name", ["wn18rr/train.tsv.gz", "fb15k237/train.tsv.gz", "countries_s1/test_queries.tsv"]
)
def test_benchmarks_equal_a_plain_reading_and_take_under_a_second(name: str) -> None:
    path = Path(DATA or "") / name
    start = time.perf_counter()
    read = read_facts(Table(path))
    seconds = time.perf_counter() - start
    assert listed(read) == plain_triples(plain_tsv(path))
    assert seconds < 1


@pytest.mark.skipif(DATA is None, reason="R2N_DATA names no folder with the benchmarks")
@pytest.mark.parametrize("name", ["facts", "queries"])
@pytest.mark.parametrize("split", ["S1", "S2", "S3", "S4", "S5"])
def test_cora_equals_a_plain_reading(split: str, name: str) -> None:
    path = Path(DATA or "") / "cora" / split / name
    assert listed(read_facts(Table(path))) == plain_atoms(path)
