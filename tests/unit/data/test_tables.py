"""Tables of facts: every format gives what a plain second reading gives."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from r2n.data.records import table_formats
from r2n.data.tables import Table, read_facts
from r2n.errors import ConfigError, DataError
from tests.oracles.fact_tables import listed, plain_atoms, plain_triples, plain_tsv
from tests.oracles.fact_writers import TRIPLES, WRITERS, as_columns, write_tsv

DATA = os.environ.get("R2N_DATA")


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
    def test_triples_with_label(self, frame: Callable[..., object]) -> None:
        source = frame({**as_columns(TRIPLES), "label": [1, 0, 1]})
        truths = zip(TRIPLES, (True, False, True), strict=True)
        assert listed(read_facts(Table(source))) == [(r, (h, t), truth) for (h, r, t), truth in truths]

    def test_numbers_and_booleans(self, frame: Callable[..., object]) -> None:
        source = frame({"bib": [7, 8], "year": [1999.5, 2000.0], "truth": [True, False]})
        assert listed(read_facts(Table(source, "year"))) == [
            ("year", ("7", "1999.5"), True),
            ("year", ("8", "2000"), False),
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
            "  every constant, relation and label needs a value: fill it in, or take the row out; where an empty cell"
            ' says that there is no such fact, as in a table of many columns, set empty = "skip" beside file = ...'
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


@pytest.mark.skipif(DATA is None, reason="R2N_DATA names no folder with the benchmarks")
@pytest.mark.parametrize("name", ["wn18rr/train.tsv.gz", "fb15k237/train.tsv.gz", "countries_s1/test_queries.tsv"])
def test_benchmarks_equal_a_plain_reading(name: str) -> None:
    path = Path(DATA or "") / name
    assert listed(read_facts(Table(path))) == plain_triples(plain_tsv(path))


@pytest.mark.skipif(DATA is None, reason="R2N_DATA names no folder with the benchmarks")
@pytest.mark.parametrize("name", ["facts", "queries"])
@pytest.mark.parametrize("split", ["S1", "S2", "S3", "S4", "S5"])
def test_cora_equals_a_plain_reading(split: str, name: str) -> None:
    path = Path(DATA or "") / "cora" / split / name
    assert listed(read_facts(Table(path))) == plain_atoms(path)


ATOMS = "// people\n\naunt(1369,1287).\naunt(1369, 1312).\n"


@pytest.mark.parametrize("name", ["facts.txt", "facts.tsv", "facts.csv", "facts.db", "facts.txt.gz"])
def test_atoms_in_a_file_of_another_ending_are_seen_and_can_be_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(ATOMS.encode()) if name.endswith(".gz") else ATOMS.encode())
    with pytest.raises(DataError) as caught:
        read_facts(Table(path))
    text = str(caught.value)
    assert f"{path}:3: this looks like facts written as p(a, b), but the ending" in text
    assert "| aunt(1369,1287)." in text
    assert f'{{ file = "{name}", format = "prolog" }}' in text
    read = read_facts(Table(path, format="prolog"))
    assert sorted(listed(read)) == [("aunt", ("1369", "1287"), True), ("aunt", ("1369", "1312"), True)]
    assert read.facts[0].location(1).line == 4


def test_a_ternary_fact_in_csv_is_no_triple(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("gives(ann,hat,bob).\n")
    with pytest.raises(DataError, match="this looks like facts"):
        read_facts(Table(path))
    assert listed(read_facts(Table(path, format="csv"))) == [("hat", ("gives(ann", "bob)."), True)]


def test_a_predicate_given_beside_atoms(tmp_path: Path) -> None:
    path = tmp_path / "aunt.txt"
    path.write_text("aunt(1369,1287).\n")
    with pytest.raises(DataError, match="this looks like facts"):
        read_facts(Table(path, "aunt"))
    path.write_text("acetone (liquid)\n")  # a constant
    assert listed(read_facts(Table(path, "known"))) == [("known", ("acetone (liquid)",), True)]


def test_a_format_goes_before_the_ending_and_must_be_known(tmp_path: Path) -> None:
    path = tmp_path / "facts.dat"
    path.write_text("a\tp\tb\n")
    assert listed(read_facts(Table(path, format="tsv"))) == [("p", ("a", "b"), True)]
    with pytest.raises(ConfigError, match="there is no format 'tvs'") as caught:
        Table(path, format="tvs")
    assert "did you mean 'tsv'?" in str(caught.value)
    with pytest.raises(DataError, match=r"no reader for '\.dat' files") as refused:
        read_facts(Table(path))
    assert 'format = "prolog"' in str(refused.value)


WIDE = "id,city,employer,label\nann,rome,acme,1\nbob,,acme,1\ncid,oslo,,0\n"


def test_empty_cells_of_a_wide_table_state_nothing_where_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(WIDE)
    with pytest.raises(DataError, match=r"people\.csv:3:5: column 2 \(city\) is empty"):
        read_facts(Table(path, "livesIn", ("id", "city")))
    read = read_facts(Table(path, "livesIn", ("id", "city"), empty="skip"))
    assert listed(read) == [("livesIn", ("ann", "rome"), True), ("livesIn", ("cid", "oslo"), False)]
    assert (read.empty, read.rejected) == (1, ())
    assert read_facts(Table(path, "worksAt", ("id", "employer"), empty="skip")).empty == 1
    whole = read_facts(Table(path, "person", ("id",)))
    assert (len(listed(whole)), whole.empty) == (3, 0)


def test_an_empty_label_is_no_empty_cell(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id,city,label\nann,rome,1\nbob,oslo,\n")
    with pytest.raises(DataError, match=r"column 3 \(label\) is empty"):
        read_facts(Table(path, "livesIn", ("id", "city"), empty="skip"))
    with pytest.raises(ConfigError, match="empty is 'error' or 'skip', not 'keep'"):
        Table(path, empty="keep")
