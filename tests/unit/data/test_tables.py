"""Tables of facts: every format, layout and part gives what a plain second reading gives, and errors say where."""

import gzip
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from r2n.data import text_tables
from r2n.data.records import format_of, table_formats
from r2n.data.tables import Facts, Table, is_header, read_fact_chunks, read_facts
from r2n.errors import ConfigError, DataError
from r2n.logic.theory import Theory
from r2n.options import as_tuple
from tests.examples import fixture
from tests.oracles.fact_tables import listed, plain_atoms, plain_triples, plain_tsv
from tests.oracles.fact_writers import TRIPLES, WRITERS, as_columns, write_prolog, write_tsv

DATA = os.environ.get("R2N_DATA")
EMPTY = (
    "\n  every constant, relation and label needs a value: fill it in, or take the row out; where an empty cell"
    ' says that there is no such fact, as in a table of many columns, set empty = "skip" next to file = ...'
)


def put(path: Path, content: str | bytes) -> Path:
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def message(table: Table, kind: type[Exception] = DataError) -> str:
    with pytest.raises(kind) as caught:
        read_facts(table)
    return str(caught.value)


def test_every_format_has_a_test() -> None:
    suffixes = {suffix for kind in table_formats().values() for suffix in kind.suffixes}
    assert suffixes == set(WRITERS) | {".nt", ".ttl", ".rdf", ".owl"}


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


FRAMES: list[Callable[[dict[str, list[object]]], object]] = [pd.DataFrame, pl.DataFrame, pa.table]


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "pyarrow"])
class TestArrowObjects:
    def test_numbers_and_booleans(self, frame: Callable[..., object]) -> None:
        source = frame({"bib": [7, 8], "year": [1999.5, 2000.0], "truth": [True, False]})
        assert listed(read_facts(Table(source, "year"))) == [
            ("year", ("7", "1999.5"), True),
            ("year", ("8", "2000"), False),
        ]

    def test_nothing(self, frame: Callable[..., object]) -> None:
        assert read_facts(Table(frame({}))).facts == ()
        assert read_facts(Table(frame({"head": [], "relation": [], "tail": []}))).facts == ()

    def test_null(self, frame: Callable[..., object]) -> None:
        source = frame({"head": ["a", None], "relation": ["p", "p"], "tail": ["b", "c"]})
        assert message(Table(source)) == f"{Table(source).name}, row 2: column 1 (head) is empty{EMPTY}"
        read = read_facts(Table(source), on_error="skip")
        assert listed(read) == [("p", ("a", "b"), True)]
        assert len(read.rejected) == 1
        where = read.facts[0].location(0)
        assert (where.source, where.excerpt) == (f"{Table(source).name}, row 1", "p(a, b)")


def test_categories_of_pandas_and_a_filtered_frame() -> None:
    frame = pd.DataFrame(as_columns(TRIPLES)).astype("category")
    assert listed(read_facts(Table(frame))) == plain_triples(TRIPLES)
    assert listed(read_facts(Table(frame.iloc[1:].copy()))) == plain_triples(TRIPLES[1:])


def test_crlf_bom_and_blank_lines_leave_no_trace(tmp_path: Path) -> None:
    path = put(tmp_path / "facts.tsv", b"\xef\xbb\xbf\r\na\tp\tb\r\n\n\r\nc\tp\td\ne\tp\tf")
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
    lines = {".csv": 2, ".jsonl": 2, ".pl": 2, ".parquet": None, ".json": None, ".db": None}
    for suffix, line in lines.items():
        path = tmp_path / f"facts{suffix}"
        WRITERS[suffix](path, TRIPLES)
        where = read_facts(Table(path)).facts[1].location(0)
        assert where.line == line
        assert where.source == (str(path) if line else f"{path}, row 2")
        assert where.excerpt is not None
        assert all(word in where.excerpt for word in TRIPLES[1])


@pytest.mark.skipif(DATA is None, reason="R2N_DATA names no folder with the benchmarks")
@pytest.mark.parametrize(
    "name", ["wn18rr/train.tsv.gz", "countries_s1/test_queries.tsv", "cora/S1/facts", "cora/S1/queries"]
)
def test_benchmarks_equal_a_plain_reading(name: str) -> None:
    path = Path(DATA or "") / name
    assert listed(read_facts(Table(path))) == (plain_triples(plain_tsv(path)) if path.suffix else plain_atoms(path))


ATOMS = "// people\n\naunt(1369,1287).\naunt(1369, 1312).\n"


@pytest.mark.parametrize("name", ["facts.txt", "facts.tsv", "facts.csv", "facts.db", "facts.txt.gz"])
def test_atoms_in_a_file_of_another_ending_are_seen_and_can_be_read(name: str, tmp_path: Path) -> None:
    path = put(tmp_path / name, ATOMS)
    text = message(Table(path))
    assert f"{path}:3: this looks like facts written as p(a, b), but the ending" in text
    assert "| aunt(1369,1287)." in text
    assert f'{{ file = "{name}", format = "prolog" }}' in text
    read = read_facts(Table(path, format="prolog"))
    assert sorted(listed(read)) == [("aunt", ("1369", "1287"), True), ("aunt", ("1369", "1312"), True)]
    assert read.facts[0].location(1).line == 4


def test_what_looks_like_atoms_and_is_none(tmp_path: Path) -> None:
    path = put(tmp_path / "facts.csv", "gives(ann,hat,bob).\n")
    assert "this looks like facts" in message(Table(path))  # not a triple
    assert listed(read_facts(Table(path, format="csv"))) == [("hat", ("gives(ann", "bob)."), True)]
    path = put(tmp_path / "aunt.txt", "aunt(1369,1287).\n")
    assert "this looks like facts" in message(Table(path, "aunt"))
    put(path, "acetone (liquid)\n")  # a constant
    assert listed(read_facts(Table(path, "known"))) == [("known", ("acetone (liquid)",), True)]


def test_a_format_goes_before_the_ending_and_must_be_known(tmp_path: Path) -> None:
    path = put(tmp_path / "facts.dat", "a\tp\tb\n")
    assert listed(read_facts(Table(path, format="tsv"))) == [("p", ("a", "b"), True)]
    with pytest.raises(ConfigError, match=r"there is no format 'tvs'\n  did you mean 'tsv'\?"):
        Table(path, format="tvs")


WIDE = "id,city,employer,label\nann,rome,acme,1\nbob,,acme,1\ncid,oslo,,0\n"


def test_empty_cells_of_a_wide_table_state_nothing_where_that_is_said(tmp_path: Path) -> None:
    path = put(tmp_path / "people.csv", WIDE)
    assert message(Table(path, "livesIn", ("id", "city"))).startswith(f"{path}:3:5: column 2 (city) is empty\n")
    read = read_facts(Table(path, "livesIn", ("id", "city"), empty="skip"))
    assert listed(read) == [("livesIn", ("ann", "rome"), True), ("livesIn", ("cid", "oslo"), False)]
    assert (read.empty, read.rejected) == (1, ())
    assert read_facts(Table(path, "worksAt", ("id", "employer"), empty="skip")).empty == 1
    full = read_facts(Table(path, "person", ("id",)))
    assert (len(listed(full)), full.empty) == (3, 0)
    put(path, "id,city,label\nann,rome,1\nbob,oslo,\n")
    assert "column 3 (label) is empty" in message(Table(path, "livesIn", ("id", "city"), empty="skip"))
    with pytest.raises(ConfigError, match="empty is 'error' or 'skip', not 'keep'"):
        Table(path, empty="keep")


@pytest.mark.parametrize("expected", [True, False])
def test_usual_headers(expected: bool) -> None:
    for cells, predicate in fixture("headers.toml")["names" if expected else "no_names"]:
        assert is_header([pa.array([cell]) for cell in cells.split()], predicate or None, Theory()) is expected, cells


def table(names: str, *rows: str, **options: object) -> Table:
    cells = [row.split() for row in rows]
    columns = {name: [row[i] for row in cells] for i, name in enumerate(names.split())}
    return Table(pa.table(columns), **options)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("order", list(itertools.permutations(["head", "relation", "tail", "label"])))
def test_usual_names_tell_in_any_order(order: tuple[str, ...]) -> None:
    fact = {"head": "a", "relation": "p", "tail": "b", "label": "0"}
    assert listed(read_facts(table(" ".join(order), " ".join(fact[name] for name in order)))) == [
        ("p", ("a", "b"), False)
    ]


def test_unusual_names_go_by_order_and_picked_ones_as_picked(tmp_path: Path) -> None:
    assert listed(read_facts(table("x y z", "a p b"))) == [("p", ("a", "b"), True)]
    assert listed(read_facts(table("x y z w", "a p b 0"))) == [("p", ("a", "b"), False)]
    assert listed(read_facts(table("truth x y z", "0 a p b"))) == [("p", ("a", "b"), False)]
    path = put(tmp_path / "facts.csv", "id,to,by,from,ok\n1,b,p,a,0\n")
    (facts,) = read_facts(Table(path, columns=("from", "by", "to"), label="ok")).facts
    assert (facts.predicate, [column.to_pylist() for column in facts.arguments]) == ("p", [["a"], ["b"]])
    assert (facts.truth.tolist(), facts.location(0).line) == ([False], 2)
    read = read_facts(table("x y label", "a b false", predicate="p", columns=("y", "x")))
    assert listed(read) == [("p", ("b", "a"), False)]  # a column called label is one even if others are picked


def test_skip_keeps_the_good_rows_and_reports_the_bad_ones_in_order(tmp_path: Path) -> None:
    lines = ["a\tp\tb\t1", "a\tp\tc", "\tp\td\t1", "e\tp\tf\tmaybe", "", "g\tp\th\t0", "i\tp\tj\t1\t1"]
    path = put(tmp_path / "facts.tsv", "\n".join(lines))
    read = read_facts(Table(path), on_error="skip")
    assert listed(read) == [("p", ("a", "b"), True), ("p", ("g", "h"), False)]
    assert [(error.where and error.where.line, error.what) for error in read.rejected] == [
        (2, "too few columns: 3, where line 1 has 4"),
        (3, "column 1 is empty"),
        (4, "the label 'maybe' is neither 1 (true) nor 0 (false)"),
        (7, "too many columns: 5, where line 1 has 4"),
    ]
    assert message(Table(path)).startswith(f"{path}:2: too few columns")


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    write_tsv(tmp_path / "train.tsv", TRIPLES)
    path = tmp_path / "trian.tsv"
    assert message(Table(path)) == f"{path}: there is no such file\n  did you mean 'train.tsv'?"
    assert message(Table(str(path))) == message(Table(path))
    assert message(Table(tmp_path / "zzzz")).endswith(f"\n  look into {tmp_path}")
    assert message(Table(tmp_path / "no" / "x.tsv")).endswith(f"\n  there is no folder {tmp_path / 'no'} either")
    folder = f"{tmp_path}: this is a folder, not a file\n  name one of its files; it holds train.tsv"
    assert message(Table(tmp_path)) == folder


@pytest.mark.parametrize("suffix", [*WRITERS, ".nt", ".tsv.gz"])
def test_empty_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts{suffix}"
    for content in (b"", b"\xef\xbb\xbf\r\n\n") if suffix in (".tsv", ".csv", ".pl", ".jsonl", ".json") else (b"",):
        path.write_bytes(content)
        with pytest.raises(DataError) as caught:
            read_facts(Table(path), on_error="skip")
        assert str(caught.value) == message(Table(path))
        assert str(caught.value) == (
            f"{path}: the file is empty\n"
            "  write one fact a line, as in `CONSTANT<TAB>PREDICATE<TAB>CONSTANT`, or leave the file out"
        )


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".pl", ".jsonl", ".json", ".nt"])
def test_not_utf8(suffix: str, tmp_path: Path) -> None:
    path = put(tmp_path / f"facts{suffix}", "a\tp\tb\né\tcaf".encode() + b"\xe9\tb\n")
    assert message(Table(path)) == (
        f"{path}:2:6: byte 0xE9 is not UTF-8 text\n"
        "  | é caf\ufffd b\n"
        "  |      ^\n"
        "  save the file as UTF-8; it looks like Latin-1 or another old encoding"
    )
    put(path, "a\tp\tb".encode("utf-16"))
    assert "it looks like UTF-16" in message(Table(path))


@pytest.mark.parametrize("case", fixture("wrong_tables.toml")["facts"], ids=lambda case: case["said"].split("\n")[0])
def test_what_is_wrong_is_shown_and_may_be_left_out(case: dict[str, Any], tmp_path: Path) -> None:
    path, options = put(tmp_path / case["file"], case["text"]), {"predicate", "columns", "label", "header"}
    table = Table(path, **{name: as_tuple(case[name]) for name in options & case.keys()})
    assert message(table).startswith(f"{path}{case['said']}")
    if "skipped" in case:
        rejected = read_facts(table, on_error="skip").rejected
        assert [(error.where and error.where.line) or 0 for error in rejected] == case["skipped"]
    else:
        with pytest.raises(DataError):
            read_facts(table, on_error="skip")


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".pl", ".jsonl"])
def test_a_line_that_is_too_long(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tables, "LINE_LIMIT", 2_000)
    path = tmp_path / f"facts{suffix}"
    rows = [("a", "p", "b"), ("x" * 10_000, "p", "b"), ("c", "p", "d")]
    WRITERS[suffix](path, rows)
    text = message(Table(path))
    assert text.startswith(f"{path}:2: the line is longer than 2,000 bytes\n  | ")
    assert text.endswith("\n  write one fact a line; a missing line end or quote makes one line of many")
    assert len(text) < 500


@pytest.mark.parametrize("suffix", [".parquet", ".db", ".tsv.gz", ".tsv.zst"])
def test_a_file_that_is_cut_short_or_something_else(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts{suffix}"
    rows = [(f"c{i * i}", "p", f"d{i}") for i in range(5000)]
    if suffix == ".tsv.gz":
        put(path, "".join("\t".join(row) + "\n" for row in rows))
    elif suffix == ".tsv.zst":
        with pa.output_stream(str(path), compression="zstd") as stream:
            stream.write("".join("\t".join(row) + "\n" for row in rows).encode())
    else:
        WRITERS[suffix](path, rows)
    assert len(listed(read_facts(Table(path)))) == 5000
    for damaged in (path.read_bytes()[: path.stat().st_size // 2], b"this is something else altogether, " * 40):
        path.write_bytes(damaged)
        text = message(Table(path))
        assert text.startswith(f"{path}: this cannot be read as ")
        assert text.endswith("\n  the file is damaged, cut short, or misnamed: fetch or write it again")
        with pytest.raises(DataError):
            read_facts(Table(path), on_error="skip")


def test_unknown_suffix(tmp_path: Path) -> None:
    path = tmp_path / "facts.xlsx"
    path.write_bytes(b"x")
    assert message(Table(path)) == (
        f"{path}: no reader for '.xlsx' files\n"
        "  known: .csv, .db, .facts, .json, .jsonl, .ndjson, .nl, .nlt, .nt, .owl, .parquet, .pl, .rdf, .sqlite,"
        " .sqlite3, .tab, .tsv, .ttl, .txt; text also with .gz or .zst behind; no ending means `p(a, b).` facts;"
        ' or say what it is: format = "prolog", in the problem file next to file = ...'
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
    with pytest.raises(Exception, match="columns"):  # a ConfigError, or the type hook's own
        Table(Path("x.tsv"), columns="head")  # pyright: ignore[reportArgumentType]
    path = put(tmp_path / "facts.tsv", "a\ta\n1\t2\n")
    assert "two columns are called 'a'" in message(Table(path, "p", columns=("a",)))
    path = tmp_path / "facts.pl"
    write_prolog(path, TRIPLES)
    assert "these facts name their predicates themselves" in message(Table(path, "p"), ConfigError)
    assert "only SQLite files have a `table` to pick" in message(Table(path, table="t"), ConfigError)
    with pytest.raises(Exception, match="on_error"):  # a ConfigError, or the type hook's own
        read_facts(Table(path), on_error="ignore")  # pyright: ignore[reportArgumentType]


LINES = [f"c{i}\t{'p' if i % 3 else 'q'}\tc{i + 1}" for i in range(11)]
TSV = "\n".join([*LINES[:4], "", *LINES[4:]])  # a blank line, and no end of the last
CSV = 'head,relation,tail\na,p,"b, c"\n"x ""y""\nz",q,c\n\nd,p,e\r\nf,q,g\n'
JSONL = '{"head": "a", "relation": "p", "tail": "b"}\n{"head": "a", "relation": "q", "tail": "c"}\n'


def stated(facts: list[Facts]) -> list[tuple[int, str, tuple[str, ...], bool]]:
    """Each fact with its row, in the order of the source."""
    found = [
        (int(part.rows[i]), part.predicate, tuple(column[i].as_py() for column in part.arguments), bool(part.truth[i]))
        for part in facts
        for i in range(len(part))
    ]
    return sorted(found)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(("name", "text"), [("a.tsv", TSV), ("b.csv", CSV), ("d.jsonl", JSONL)])
def test_the_parts_are_the_whole(name: str, text: str, size: int, tmp_path: Path) -> None:
    table = Table(put(tmp_path / name, text))
    parts = list(read_fact_chunks(table, size))
    assert stated([facts for part in parts for facts in part]) == stated(list(read_facts(table).facts))
    rows = [int(row) for part in parts for facts in part[:1] for row in facts.rows[:1]]
    assert rows == sorted(rows)
    assert len(parts) > 1 or size > 1
    assert len(parts) == 1 or size < 100


def test_tables_in_memory_are_handed_out_in_parts() -> None:
    table = Table(pa.table({"x": ["a", "b", "c"]}), "p")
    assert [[len(facts) for facts in part] for part in read_fact_chunks(table, 2)] == [[2], [1]]
    (facts,) = read_facts(table).facts
    assert facts.take(np.array([2, 0])).arguments[0].to_pylist() == ["c", "a"]
    assert list(read_fact_chunks(Table(pa.table({"x": pa.array([], pa.string())}), "p"), 2)) == []
