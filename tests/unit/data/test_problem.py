"""Problems: their files, tables, paths and errors."""

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import r2n
from r2n.data.problem import (
    FOLDERS_VARIABLE,
    Problem,
    ProblemFile,
    TableOptions,
    checked_path,
    described_table,
    load_problem,
    read_problem_file,
)
from r2n.data.records import PostgresTable
from r2n.data.tables import Table
from r2n.errors import ConfigError, DataError
from tests.examples import fixture
from tests.toy_problem import write_toy_problem


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_toy_problem(tmp_path / "towns")


URL = "postgresql://db.example.org/kg"


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def test_a_folder_and_its_file_are_the_same_problem(folder: Path) -> None:
    by_folder, by_file = load_problem(folder), load_problem(folder / "problem.toml")
    assert by_folder.name == by_file.name == "towns"
    assert by_folder.train.atoms.tolist() == by_file.train.atoms.tolist()
    assert (len(by_folder.train), len(by_folder.valid), len(by_folder.test)) == (44, 4, 4)
    assert len(by_folder.atoms) == 52
    assert by_folder.options.model.dim == 8


def test_duplicates_are_counted_once(folder: Path) -> None:
    append(folder / "train.tsv", "n0\tliesIn\tnorth\n" * 2)
    problem = load_problem(folder)
    assert dict(problem.report.duplicates) == {"train": 2, "valid": 0, "test": 0}
    assert len(problem.train) == 44


def test_a_fact_both_true_and_false_names_both_lines(folder: Path) -> None:
    (folder / "more.tsv").write_text("n1\tliesIn\tsouth\t0\nn0\tliesIn\tnorth\t0\n")
    text = (folder / "problem.toml").read_text()
    (folder / "problem.toml").write_text(text.replace('"train.tsv"', '["train.tsv", "more.tsv"]'))
    with pytest.raises(DataError, match="liesIn\\(n0, north\\) is stated both true and false") as caught:
        load_problem(folder)
    assert "more.tsv:2" in str(caught.value)
    assert "train.tsv:1" in str(caught.value)


def test_overlap_between_splits_is_an_error(folder: Path) -> None:
    append(folder / "test.tsv", "n0\tliesIn\tnorth\t1\nn2\tliesIn\tnorth\t1\n")
    with pytest.raises(DataError, match="1 atom of split 'test' stands in split 'train' too") as caught:
        load_problem(folder)
    assert "test.tsv:5" in str(caught.value)


def test_wrong_rows_are_collected_when_asked(folder: Path) -> None:
    append(folder / "train.tsv", "n0\tliesOn\tnorth\nn0\tliesIn\n")
    with pytest.raises(DataError):
        load_problem(folder)
    problem = load_problem(folder, on_error="skip")
    assert len(problem.report.rejected) == 2
    assert len(problem.train) == 44


@pytest.mark.parametrize(
    ("content", "message"), [(None, "there is no such file"), (b"\n\n", "empty"), (b"north\n\xff\xfe", "valleys.txt:2")]
)
def test_domain_files(content: bytes | None, message: str, folder: Path) -> None:
    append(folder / "problem.toml", '[domains]\nvalley = "valleys.txt"\ntown = ["n0"]\n')
    if content is not None:
        (folder / "valleys.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_problem(folder)


@pytest.mark.parametrize(("split", "instead"), [("train", "facts="), ("background", "background=")])
def test_queries_take_no_name_of_what_is_known(split: str, instead: str) -> None:
    frame = pd.DataFrame({"head": ["a"], "relation": ["p"], "tail": ["b"]})
    with pytest.raises(ConfigError, match=f"queries cannot be called '{split}'") as caught:
        Problem.build("x", r2n.Theory(), [Table(frame)], {split: [Table(frame)]})
    assert instead in str(caught.value.hint)


def test_empty_cells_are_counted_where_they_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,city\nann,rome\nbob,\ncid,\n")
    (tmp_path / "problem.toml").write_text(
        '[facts]\ntrain = { file = "people.csv", predicate = "livesIn", header = true, empty = "skip" }\n'
    )
    problem = load_problem(tmp_path)
    assert len(problem.train) == 1
    assert problem.report.empty == (("train", 2),)


def read(tmp_path: Path, text: str | bytes) -> ProblemFile:
    path = tmp_path / "problem.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_problem_file(path)


def test_a_table_may_be_a_name_options_or_a_list_and_say_its_format(tmp_path: Path) -> None:
    text = 'facts.train = ["a.tsv", {file = "b.csv", predicate = "p", columns = ["x"], format = "prolog"}]'
    first, second = read(tmp_path, text).facts.train
    assert (first.file, second.file, second.columns, second.format) == ("a.tsv", "b.csv", ("x",), "prolog")


def test_bom_and_crlf_are_accepted(tmp_path: Path) -> None:
    file = read(tmp_path, b'\xef\xbb\xbfname = "a"\r\n[grounding]\r\nwidth = 3\r\n')
    assert (file.name, file.grounding.width) == ("a", 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *fixture("problem_files.toml")["wrong"],
        (b"name = '\xff'\n", "not UTF-8"),
        ("x = " + "[" * 5_000, "nested too deep"),  # what Python itself refuses to read
        ("x = " + "{a = " * 5_000, "nested too deep"),
        ("[model]\ndim = " + "9" * 5_000, "a number has too many digits"),
        ("[model]\ndim = 0x" + "f" * 5_000, "model.dim: input should be"),
        ("[grounding]\nstrategy = 0x" + "f" * 5_000, "grounding.strategy: input should be"),
        ("\n[" + "a." * 5_000 + "a]", r"problem.toml:2: a key has more than 100 parts"),
        ("'a' . " * 20_000 + "a = 1", "a key has more than 100 parts"),
    ],
)
def test_wrong_files_are_refused(text: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no problem file"):
        read_problem_file(tmp_path / "problem.toml")


def described(**given: Any) -> Table:
    return described_table(TableOptions(**given), Path("folder"))


def test_a_file_stands_in_the_folder() -> None:
    made = described(
        file="a.db", table="t", predicate="p", columns=("a", "b"), label="c", format="sqlite", empty="skip"
    )
    assert made == Table(Path("folder/a.db"), "p", ("a", "b"), "c", None, "t", format="sqlite", empty="skip")


def test_a_database_has_a_schema_a_name_or_a_query() -> None:
    made = described(table=URL, schema="people", name="works_at", predicate="p", columns=("a", "b"))
    assert made == Table(PostgresTable(URL, "people", "works_at"), "p", ("a", "b"))
    asked = described(table=URL, query="SELECT 1", label="c", empty="skip")
    assert asked == Table(PostgresTable(URL, query="SELECT 1"), label="c", empty="skip")


def test_a_problem_file_names_a_database(tmp_path: Path) -> None:
    files = read(tmp_path, f'[facts]\ntrain = ["a.tsv", "{URL}", {{ table = "{URL}", schema = "s" }}]\n').facts.train
    found = [(spec.file, spec.table, spec.db_schema) for spec in files]
    assert found == [("a.tsv", None, None), (None, URL, None), (None, URL, "s")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "here is neither"),
        ({"table": "works_at"}, "here is neither"),
        ({"file": "a.tsv", "query": "SELECT 1"}, "only a database has"),
        ({"file": "a.tsv", "schema": "s"}, "only a database has"),
        ({"table": URL, "header": True}, "are for files"),
        ({"table": URL, "format": "csv"}, "are for files"),
        ({"table": "postgresql://me:secret@db/kg"}, "holds a password"),
    ],
)
def test_what_is_no_table(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        described(**given)


@pytest.mark.parametrize(
    "given", ["facts.tsv", "parts/facts.tsv", "parts/../facts.tsv", "./facts.tsv", "..facts", "\0", "x" * 5000]
)
def test_inside(given: str, tmp_path: Path) -> None:
    """What no file can be called is left to the reader."""
    assert checked_path(tmp_path, given) == tmp_path / given


@pytest.mark.parametrize("given", ["../facts.tsv", "/etc/passwd", "parts/../../facts.tsv", "..", "link/facts.tsv"])
def test_outside(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDERS_VARIABLE, raising=False)
    folder, elsewhere = tmp_path / "problem", tmp_path / "problem2"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "link").symlink_to(elsewhere)
    with pytest.raises(ConfigError, match=f"'{given}' lies outside .*\n.*{FOLDERS_VARIABLE}="):
        checked_path(folder, given)
    monkeypatch.setenv(FOLDERS_VARIABLE, os.pathsep.join([str(tmp_path), "", "/etc"]))
    assert checked_path(folder, given) == folder / given


@pytest.mark.parametrize(
    "line",
    [
        'theory = "{}"',
        '[facts]\ntrain = ["{}"]',
        '[facts]\nbackground = ["{}"]',
        '[queries]\ntest = ["{}"]',
        '[domains]\nplace = "{}"',
        '[features.place]\ntable = "{}"',
        '[candidates.liesIn]\ntables = ["{}"]',
        '[grounding]\nkept = "{}"',
    ],
)
def test_every_path_of_a_problem_file_is_checked(line: str, folder: Path) -> None:
    (folder.parent / "secret.tsv").write_text("liesIn\ta\tb\n")
    (folder / "problem.toml").write_text(line.format("../secret.tsv"))
    with pytest.raises(ConfigError, match=r"'\.\./secret\.tsv' lies outside"):
        load_problem(folder)
