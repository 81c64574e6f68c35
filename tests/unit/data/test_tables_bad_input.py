"""Bad tables: every message says what is wrong, where, and what to do."""

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from r2n.data.records import format_of
from r2n.data.tables import Table, read_facts
from r2n.errors import ConfigError, DataError
from tests.oracles.fact_tables import listed, plain_triples
from tests.oracles.fact_writers import TRIPLES, WRITERS, write_prolog, write_tsv


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
    assert message(Table(tmp_path / "no" / "x.tsv")).endswith(f"\n  there is no folder {tmp_path / 'no'} either")


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
        "  write one fact a line, as in `CONSTANT<TAB>PREDICATE<TAB>CONSTANT`, or leave the file out"
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
        "  every constant, relation and label needs a value: fill it in, or take the row out; where an empty cell says"
        ' that there is no such fact, as in a table of many columns, set empty = "skip" beside file = ...'
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


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".pl", ".jsonl"])
def test_nothing_but_a_line_of_ten_megabytes(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts{suffix}"
    path.write_bytes(b"x" * 10_000_000)
    assert message(Table(path)).startswith(f"{path}:1: the line is longer than 2,000,000 bytes\n")
    read = read_facts(Table(path), on_error="skip")
    assert read.facts == ()
    assert len(read.rejected) == 1


def test_a_long_first_line_does_not_decide(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_bytes(b"x" * 10_000_000 + b"\na\tb\n")
    assert listed(read_facts(Table(path, "p"), on_error="skip")) == [("p", ("a", "b"), True)]


def test_empty_cell_far_right(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a" * 100 + "\tp\t\n", encoding="utf-8")
    assert message(Table(path)).startswith(f"{path}:1: column 3 is empty\n  | {'a' * 79}…\n")


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
        "  known: .csv, .db, .facts, .json, .jsonl, .ndjson, .nl, .nlt, .nt, .owl, .parquet, .pl, .rdf, .sqlite,"
        " .sqlite3, .tab, .tsv, .ttl, .txt; text also with .gz or .zst behind; no ending means `p(a, b).` facts;"
        ' or say what it is: format = "prolog", in the problem file beside file = ...'
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
    path = tmp_path / "facts.pl"
    write_prolog(path, TRIPLES)
    assert "these facts name their predicates themselves" in message(Table(path, "p"), ConfigError)
    assert "only SQLite files have a `table` to pick" in message(Table(path, table="t"), ConfigError)
    with pytest.raises(Exception, match="on_error"):  # a ConfigError, or the type hook's own
        read_facts(Table(path), on_error="ignore")  # pyright: ignore[reportArgumentType]
