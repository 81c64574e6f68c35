"""Text files, their formats (TSV, CSV, JSON, logic programs, RDF), and formats that another package brings."""

import csv
import gzip
import io
import json
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data import records, text_tables
from r2n.data.features import FeatureTable
from r2n.data.problem import Problem, load_problem
from r2n.data.records import ReadOptions, Records, TableFormat, as_text, check_file, table_formats
from r2n.data.tables import Table, read_fact_chunks, read_facts
from r2n.data.text_tables import COMMA, CSV, LINE_LIMIT, TAB, TSV, line_location, read_lines, read_text
from r2n.errors import ConfigError, DataError
from tests.examples import at_most, fixture
from tests.oracles.fact_tables import listed, read_records


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def message(path: Path, predicate: str | None = None) -> str:
    with pytest.raises(DataError) as caught:
        read_facts(Table(path, predicate))
    return str(caught.value)


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".txt.zst"])
def test_text_is_unpacked_and_ends_with_a_newline(suffix: str, tmp_path: Path) -> None:
    path, text = tmp_path / f"text{suffix}", "one\r\ntwö".encode()
    if suffix == ".txt.gz":
        path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text[:4]) + gzip.compress(text[4:]))  # two members
    elif suffix == ".txt.zst":
        with pa.output_stream(str(path), compression="zstd") as stream:
            stream.write(b"\xef\xbb\xbf" + text)
    else:
        path.write_bytes(b"\xef\xbb\xbf" + text)
    check_file(path)
    assert read_text(path) == text + b"\n"


def test_names_that_no_file_has(tmp_path: Path) -> None:
    for name in ("x" * 5000, "a\0b"):
        with pytest.raises(DataError, match="this cannot be read as a file"):
            check_file(Path(name))
    with pytest.raises(DataError, match="there is no such file"):
        check_file(write(tmp_path / "file", "x") / "train.tsv")


def test_lines_without_blank_ones(tmp_path: Path) -> None:
    path = write(tmp_path / "text.txt", b"\none\n\r\n two \r\n\n\nth\rree\r")
    lines = read_lines(path)
    assert lines.columns[0].to_pylist() == ["one", " two ", "th\rree"]
    assert lines.rows.tolist() == [1, 3, 6]
    assert [line_location(path, row).excerpt for row in lines.rows.tolist()] == lines.columns[0].to_pylist()


def test_the_limit_is_the_longest_line_that_is_read(tmp_path: Path) -> None:
    text = b"a" * LINE_LIMIT + b"\n"
    assert len(read_lines(write(tmp_path / "t.txt", text)).rows) == 1
    with pytest.raises(DataError, match=r"t\.txt:2: the line is longer"):
        read_lines(write(tmp_path / "t.txt", text + b"b" + text))


def test_an_excerpt_is_of_the_file_as_it_is_and_reaches_beyond_a_far_column(tmp_path: Path) -> None:
    path = write(tmp_path / "text.txt", "one\n")
    assert line_location(path, 0, 2).excerpt == "one"
    write(path, "x" * 500 + "!" + "y" * 500)
    excerpt = line_location(path, 0, 501).excerpt or ""
    assert excerpt[500] == "!"
    assert len(excerpt) < 600


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_file_that_unpacks_to_far_more_than_it_holds_is_refused(suffix: str, tmp_path: Path) -> None:
    zeros = bytes(2**24)
    packed = gzip.compress(zeros) if suffix == ".gz" else pa.Codec("zstd").compress(zeros, asbytes=True)
    with pytest.raises(DataError, match=f"a {suffix} file .*more than 100 times its size"):
        read_text(write(tmp_path / f"facts.tsv{suffix}", packed * 5))


def read(path: Path, separator: int, *, header: bool = False) -> Records:
    return (TSV() if separator == TAB else CSV()).records(path, ReadOptions(header))[0]


def cells(records: Records) -> list[tuple[str, ...]]:
    return list(zip(*(column.to_pylist() for column in records.columns), strict=True))


def test_quotes_in_csv(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", 'a, "" ,"x"\n'.replace(' "" ', "y") + '"a,""b""\n\r\nc","""",\n\n"","d\r\n",e\r\n')
    records = read(path, COMMA)
    assert cells(records) == [("a", "y", "x"), ('a,"b"\n\r\nc', '"', ""), ("", "d\r\n", "e")]
    assert records.rows.tolist() == [0, 1, 5]


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
def test_a_table_of_more_columns_than_anybody_has_is_refused(
    separator: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_tables, "MOST_COLUMNS", 1_000)
    path = write(tmp_path / "t", "a" + 1_000 * f"{chr(separator)}a")
    with pytest.raises(DataError, match=r"t:1: 1,001 columns, more than 1,000"):
        read(path, separator)
    path = write(tmp_path / "t", "a" + 999 * f"{chr(separator)}a")
    assert len(read(path, separator).columns) == 1_000


@at_most(20, "each writes and reads files")
@given(
    st.lists(st.text(max_size=4), min_size=1, max_size=4, unique=True).flatmap(
        lambda names: st.lists(st.fixed_dictionaries(dict.fromkeys(names, st.text(max_size=4))), min_size=1, max_size=4)
    )
)
def test_any_names_and_any_text(objects: list[dict[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        array = read_records(write(Path(folder) / "t.json", json.dumps(objects)))
        lines = read_records(write(Path(folder) / "t.jsonl", "\n\n".join(map(json.dumps, objects))))
    for read in (array, lines):
        assert read.names == tuple(objects[0])
        columns = [column.to_pylist() for column in read.columns]
        assert columns == [[item[name] for item in objects] for name in objects[0]]
    assert array.rows.tolist() == list(range(len(objects)))
    assert lines.rows.tolist() == list(range(0, 2 * len(objects), 2))


def test_objects_a_line_and_their_fields(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", '{"c": "1"}\n{"b": "2", "c": "3"}\n{"a": "4"}\n')
    assert read_records(path).names == ("c", "b", "a")
    assert read_records(path).columns[0].to_pylist() == ["1", "3", None]
    assert read_records(path).locate(1).line == 2
    path = write(tmp_path / "t.jsonl", '{"a": "x", "b": "y"}\n{"b": "z"}\n')
    assert message(path, "p").startswith(f'{path}:2: column 1 (a) is empty\n  | {{"b": "z"}}\n')
    assert len(read_facts(Table(path, "p"), on_error="skip").rejected) == 1


def test_names_that_look_like_paths_and_values_that_are_not_text(tmp_path: Path) -> None:
    item = {"a": {"b": "wrong"}, "a/b": "1", "~1": "2", "/": "3", "$.a": "4", "0": "5", "": "6", 'q"': "7", "*": "8"}
    item |= {
        "c": 1,
        "d": 2.50,
        "e": 3.0,
        "f": True,
        "g": "2020-1-1T00:00",
        "h": None,
        "i": "1.0",
        "j": 12345678901234567,
    }
    records = read_records(write(tmp_path / "t.json", json.dumps([item])))
    assert records.names == tuple(item)
    cells = [*"12345678", "1", "2.5", "3", "true", "2020-1-1T00:00", None, "1.0", "12345678901234567"]
    assert [column.to_pylist() for column in records.columns[1:]] == [[cell] for cell in cells]


def test_objects_of_hundreds_of_fields(tmp_path: Path) -> None:
    items = [{f"k{i}": i + row for i in range(250)} for row in range(2)]
    records = read_records(write(tmp_path / "t.json", json.dumps(items)))
    assert records.names == tuple(items[0])
    assert [column.to_pylist() for column in records.columns] == [[str(i), str(i + 1)] for i in range(250)]
    assert len(records.kinds) == 250


@pytest.mark.parametrize(
    "text", [r'[{"a": "\ud800"}]', "[" * 100_000, '[{"a": ' + "9" * 5_000 + "}, x]", "[NaN]"], ids=range(4)
)
def test_what_no_reader_of_json_takes(text: str, tmp_path: Path) -> None:
    assert message(write(tmp_path / "t.json", text), "p").startswith(
        f"{tmp_path / 't.json'}: this cannot be read as JSON ("
    )


@pytest.mark.parametrize(("name", "text"), [("t.json", "[]"), ("t.pl", "% nothing known\n"), ("t.nt", "# nothing\n")])
def test_nothing(name: str, text: str, tmp_path: Path) -> None:
    assert read_facts(Table(write(tmp_path / name, text))).facts == ()


def test_objects_that_share_no_field_are_refused_where_they_are_many(tmp_path: Path) -> None:
    few = write(tmp_path / "few.jsonl", "\n".join(f'{{"k{i}": 1}}' for i in range(20)))
    assert len(read_records(few).columns) == 20
    many = write(tmp_path / "many.jsonl", "\n".join(f'{{"k{i}": 1}}' for i in range(1_100)))
    with pytest.raises(DataError, match="1,208,900 cells would be empty"):
        read_records(many)


@pytest.mark.parametrize("layout", ["[{}, {}]", "{}\n{}"])
@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ('{"a": "x", "b": "y", "a": "z"}', "the key 'a' is given twice"),
        ('{"a": "x", "b": "y", "\\u0062": "z"}', "the key 'b' is given twice"),
        ('{"a": ["x"], "b": "y"}', 'column 1 \\(a\\) holds a list, no constant: \\["x"\\]'),
        ('{"a": "x", "b": {"c": 1}}', "column 2 \\(b\\) holds an object, no constant"),
        ('{"a": 123456789012345678901.5, "b": "x"}', "last digits"),
    ],
)
def test_what_is_no_constant_is_refused_with_its_row(layout: str, wrong: str, what: str, tmp_path: Path) -> None:
    text = layout.replace("{}", '{"a": "x", "b": "y"}', 1).replace("{}", wrong)
    place = "row 2" if layout.startswith("[") else "t.json:2"
    with pytest.raises(DataError, match=f"{place}: .*{what}|{place}: {what}"):
        read_facts(Table(write(tmp_path / "t.json", text), "p"))


@pytest.mark.parametrize(("line", "facts"), fixture("fact_lines.toml")["facts"])
def test_a_line(line: str, facts: list[list[Any]], tmp_path: Path) -> None:
    read = read_facts(Table(write(tmp_path / "t.pl", f"% first\r\n\r\n{line}\r\n#last\r\n//\r\n")))
    assert sorted(listed(read)) == sorted((predicate, tuple(constants), truth) for predicate, constants, truth in facts)
    assert {facts.location(0).line for facts in read.facts} == {3}


def test_arities_of_one_predicate_stay_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "facts.pl", "p(a, b). p(a).\nq(c).\np(d, e).\n")
    found = [(facts.predicate, len(facts.arguments), facts.rows.tolist()) for facts in read_facts(Table(path)).facts]
    assert found == [("p", 1, [0]), ("q", 1, [1]), ("p", 2, [0, 2])]


@at_most(40, "each writes and reads files")
@given(st.text("p('\"\\),. !%a\n", min_size=1, max_size=14).filter(lambda text: text.strip("\n")))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = write(tmp_path_factory.getbasetemp() / "any.pl", text)
    read = read_facts(Table(path), on_error="skip")
    lines = [line for line in text.split("\n") if line and not line.lstrip().startswith("%") and line.strip()]
    found = {error.where.line for error in read.rejected if error.where} | {
        int(row) + 1 for facts in read.facts for row in facts.rows
    }
    assert len(found) == len(lines)


N_TRIPLES = """<http://x.org/italy> <http://x.org/locatedIn> <http://x.org/europe> .
<http://x.org/italy> <http://x.org/name> "Italia è bella"@it .
"""
TURTLE = """@prefix x: <http://x.org/> .
x:italy x:locatedIn x:europe ; x:name "Italia è bella"@it .
"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x.org/">
  <rdf:Description rdf:about="http://x.org/italy">
    <x:locatedIn rdf:resource="http://x.org/europe"/>
    <x:name xml:lang="it">Italia è bella</x:name>
  </rdf:Description>
</rdf:RDF>
"""
FACTS = {
    ("http://x.org/locatedIn", ("http://x.org/italy", "http://x.org/europe"), True),
    ("http://x.org/name", ("http://x.org/italy", "Italia è bella"), True),
}


@pytest.mark.parametrize(("suffix", "text"), [(".nt", N_TRIPLES), (".ttl", TURTLE), (".rdf", XML), (".owl", XML)])
def test_every_language(suffix: str, text: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"facts{suffix}", text)
    read = read_facts(Table(path))
    assert set(listed(read)) == FACTS
    assert len(listed(read)) == 2
    where = next(facts for facts in read.facts if facts.predicate.endswith("locatedIn")).location(0)
    assert where.source == str(path)
    assert where.excerpt == "http://x.org/italy http://x.org/locatedIn http://x.org/europe"
    with pytest.raises(ConfigError, match="these facts name their predicates themselves"):
        read_facts(Table(path, "p"))


def test_the_same_order_each_time_and_blank_nodes_of_their_own(tmp_path: Path) -> None:
    text = "".join(f"<u:a{i}> <u:p> _:n{i % 3} .\n" for i in range(30))
    first, second = (write(tmp_path / name, text) for name in ("a.nt", "b.nt"))
    assert listed(read_facts(Table(first))) == [("u:p", (f"u:a{i}", f"_:a.nt:{i % 3}"), True) for i in range(30)]
    constants = {fact[1][1] for fact in listed(read_facts(Table(first)))}
    assert constants == {"_:a.nt:0", "_:a.nt:1", "_:a.nt:2"}
    assert not constants & {fact[1][1] for fact in listed(read_facts(Table(second)))}


def test_without_rdflib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "facts.nt", N_TRIPLES)
    monkeypatch.setitem(sys.modules, "rdflib", None)
    with pytest.raises(ConfigError) as caught:
        read_facts(Table(path))
    assert str(caught.value) == f"{path}: reading ntriples needs rdflib\n  pip install r2n[rdf]"


class Sheets(TableFormat):
    """Cells apart by bars, a name of the sheet above: as a spreadsheet with one sheet or more."""

    name, suffixes, has_tables = "sheets", (".sheet",), True

    def records(self, path: Path, options: ReadOptions) -> Sequence[Records]:
        """The rows of the sheet that is picked, or of the first."""
        sheets = [sheet.strip().split("\n") for sheet in path.read_text().split("#")[1:]]
        names, *rows = next(s[1:] for s in sheets if options.table in (None, s[0]))
        columns = zip(*(row.split("|") for row in rows), strict=True)
        return [as_text(pa.table(dict(zip(names.split("|"), map(list, columns), strict=True))), str(path))]


@pytest.fixture
def sheets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file of the format, which another package brings."""
    point = EntryPoint("sheets", f"{__name__}:Sheets", "r2n.readers")
    monkeypatch.setattr(EntryPoint, "load", lambda self: Sheets)
    monkeypatch.setattr(records, "_entry_points", lambda: [point])
    monkeypatch.setattr(records, "_FORMATS", dict(records._FORMATS))
    path = tmp_path / "towns.sheet"
    path.write_text("#near\nhead|relation|tail\nrome|near|ostia\n|near|rome\n#size\ntown|people\nrome|3.5\nostia|0.1\n")
    return path


def test_facts_and_features_are_read_by_a_format_of_another_package(sheets: Path) -> None:
    with pytest.raises(DataError, match=r"towns.sheet, row 2: column 1 \(head\) is empty"):
        read_facts(Table(sheets))
    facts = [*read_facts(Table(sheets, empty="skip")).facts, *next(read_fact_chunks(Table(sheets, empty="skip"), 5))]
    assert [(group.predicate, group.arguments[1].to_pylist()) for group in facts] == [("near", ["ostia"])] * 2
    features = {"constant": FeatureTable(sheets, vector="people", table="size")}
    problem = Problem.from_facts([("near", "rome", "ostia")], features=features)
    assert problem.knowledge.features["constant"].vectors is not None


def test_a_problem_file_names_it(sheets: Path) -> None:
    sheets.rename(sheets.parent / "towns.txt")
    text = 'facts.train = {file = "towns.txt", format = "sheets", table = "near", empty = "skip"}'
    (sheets.parent / "problem.toml").write_text(text)
    assert len(load_problem(sheets.parent).train) == 1
    (sheets.parent / "problem.toml").write_text(text.replace('"sheets"', '"sheet"'))
    with pytest.raises(ConfigError, match="did you mean 'sheets'"):
        load_problem(sheets.parent)


def test_every_format_describes_itself() -> None:
    suffixes = [suffix for kind in table_formats().values() for suffix in kind.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert all(kind.name == name and type(kind).__doc__ for name, kind in table_formats().items())
    assert [name for name, kind in table_formats().items() if kind.has_tables] == ["sqlite"]
