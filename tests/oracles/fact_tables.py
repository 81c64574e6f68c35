"""The oracle of the readers of tables: each format read a second time with plain Python loops."""

import csv
import gzip
import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from r2n.data.records import ReadOptions, Records, format_of
from r2n.data.tables import FactRows

Fact = tuple[str, tuple[str, ...], bool]


def plain_triples(rows: Iterable[Sequence[str]]) -> list[Fact]:
    """Rows `head relation tail [label]` as facts."""
    return [(row[1], (row[0], row[2]), len(row) == 3 or row[3].lower() in ("1", "true")) for row in rows]


def plain_tsv(path: Path) -> list[list[str]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = data.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    return [line.split("\t") for line in lines if line]


def plain_csv(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [row for row in csv.reader(file, strict=True) if row]


def plain_json(path: Path) -> list[dict[str, str]]:
    """What Python's json module reads: one array, or one object a line."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.split("\n") if line]


def plain_sqlite(path: Path, table: str) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()


def plain_atoms(path: Path) -> list[Fact]:
    """Lines `p(a, b).` without quotes or comments; a leading `!` means false."""
    facts: list[Fact] = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        match = re.fullmatch(r"(!?)([^()]+)\(([^()]+)\)\.?", line)
        if match:
            terms = tuple(term.strip() for term in match.group(3).split(","))
            facts.append((match.group(2), terms, not match.group(1)))
    return facts


def listed(read: FactRows) -> list[Fact]:
    """What the library read, one fact after the other in the order of the source."""
    found = []
    for facts in read.facts:
        constants = [column.to_pylist() for column in facts.arguments]
        for i in range(len(facts)):
            terms = tuple(column[i] for column in constants)
            found.append((int(facts.rows[i]), (facts.predicate, terms, bool(facts.truth[i]))))
    return [fact for _, fact in sorted(found, key=lambda pair: pair[0])]


def read_records(path: Path, table: str | None = None, *, header: bool = False) -> Records:
    (records,) = format_of(path).records(path, ReadOptions(header=header, table=table))
    return records
