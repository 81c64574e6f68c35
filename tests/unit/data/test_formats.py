"""Formats of tables as components: another package brings one by a class and an entry point."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pyarrow as pa
import pytest

from r2n.data import records
from r2n.data.features import FeatureTable
from r2n.data.problem import Problem, load_problem
from r2n.data.records import ReadOptions, Records, TableFormat, as_text, table_formats
from r2n.data.tables import Table, read_fact_chunks, read_facts
from r2n.errors import ConfigError, DataError


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
