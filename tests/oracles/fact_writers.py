"""Facts written to files of each format with plain Python: what the readers of tables must read back."""

import csv
import io
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TRIPLES = [("italy", "locatedIn", "europe"), ("italy", "neighborOf", "france"), ("rome", "locatedIn", "italy")]

Rows = Sequence[tuple[str, ...]]


def write_tsv(path: Path, rows: Rows) -> None:
    path.write_bytes("".join("\t".join(row) + "\n" for row in rows).encode())


def write_csv(path: Path, rows: Rows) -> None:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
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
