"""What is known: a table of any size -> its facts, so many rows at a time, with memory for one such part.

TSV, CSV and Parquet files are read part by part; other formats whole, and then handed out in parts.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from r2n.data.reading.records import (
    BLOCK,
    BYTE_ORDER_MARK,
    NEWLINE,
    QUOTE,
    Records,
    check_unpacked,
    read_text,
    unreadable,
)
from r2n.data.reading.stored_tables import as_text, check_rows
from r2n.data.reading.tables import (
    CSV,
    NO_THEORY,
    PARQUET,
    SEPARATORS,
    Facts,
    Format,
    Table,
    checked_format,
    from_records,
    gathered,
    read_facts,
    text_widths,
    with_header,
)
from r2n.data.reading.text_tables import cut_table, without_header
from r2n.errors import DataError
from r2n.logic.theory import Theory


def read_fact_chunks(table: Table, size: int, *, theory: Theory = NO_THEORY) -> Iterator[tuple[Facts, ...]]:
    """The facts of a table in its order, those of `size` rows (lines of a text) at a time, by predicate.

    A wrong row raises as in `read_facts`, which says too what the theory is for.
    """
    found = checked_format(table, table.source) if isinstance(table.source, Path) else None
    if found is PARQUET:
        yield from _of_parquet(table, size)
    elif found in SEPARATORS:
        yield from _of_text(with_header(table, found, theory)[0], found, size)
    else:
        yield from _of_whole(read_facts(table).facts, size)


def _of_parquet(table: Table, size: int) -> Iterator[tuple[Facts, ...]]:
    path, before = cast(Path, table.source), 0
    try:
        with pq.ParquetFile(path) as file:
            check_rows(path, file.metadata)
            for batch in file.iter_batches(batch_size=size):
                records = as_text(pa.Table.from_batches([batch]), str(path))
                yield gathered(table, from_records(table, replace(records, rows=records.rows + before))).facts
                before += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, "Parquet", error) from None


def _of_text(table: Table, found: Format, size: int) -> Iterator[tuple[Facts, ...]]:
    """Each part is read as if it were the file; where something is wrong with one, reading all tells it best."""
    path, first = cast(Path, table.source), None
    for before, text in _pieces(path, size, quotes=found is CSV):
        records = _cut(table, text, SEPARATORS[found], first)
        is_alike = first is None or records is None or len(records.columns) == len(first.columns)
        if records is None or records.faults or not is_alike:
            read_facts(table)
            raise unreadable(path, "a table", "it changes while it is read")
        first = records if first is None else first
        yield gathered(table, from_records(table, replace(records, rows=records.rows + before))).facts


def _cut(table: Table, text: bytes, separator: int, first: Records | None) -> Records | None:
    """The rows of a part of a text; None where it cannot be read alone."""
    path, widths = cast(Path, table.source), text_widths(table)
    try:
        text.decode("utf-8")
        if first is None:
            return cut_table(path, text, separator, bool(table.header), widths)
        return without_header(replace(cut_table(path, text, separator, False, widths), names=first.names))
    except (UnicodeDecodeError, DataError):
        return None


def _pieces(path: Path, size: int, *, quotes: bool) -> Iterator[tuple[int, bytes]]:
    """Parts of `size` lines, each with the number of lines before it; where `quotes` count, cut outside them alone."""
    kept, before = b"", 0
    for block in _blocks(path):
        kept += block
        while (end := _end(kept, size, quotes=quotes)) is not None:
            piece, kept = kept[:end], kept[end:]
            if piece.strip(b"\r\n"):
                yield before, piece
            before += piece.count(b"\n")
    if kept.strip(b"\r\n"):
        yield before, kept if kept.endswith(b"\n") else kept + b"\n"


def _end(text: bytes, size: int, *, quotes: bool) -> int | None:
    """Where the first `size` lines of a text end, if it has so many."""
    raw = np.frombuffer(text, np.uint8)
    is_end = raw == NEWLINE
    if quotes and b'"' in text:
        is_end &= ~np.logical_xor.accumulate(raw == QUOTE)
    ends = np.flatnonzero(is_end)
    return int(ends[size - 1]) + 1 if len(ends) >= size else None


def _blocks(path: Path) -> Iterator[bytes]:
    """The unpacked text of a file, without a byte order mark; a file without any is refused by who reads all of it."""
    is_written, size = False, 0
    try:
        with cast(BinaryIO, pa.input_stream(str(path), compression="detect")) as stream:
            while block := stream.read(BLOCK):
                yield block if size else block.removeprefix(BYTE_ORDER_MARK)
                is_written, size = is_written or bool(block.strip(b"\r\n")), size + len(block)
                check_unpacked(path, size)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, "a file", error) from None
    if not is_written:
        read_text(path)


def _of_whole(facts: tuple[Facts, ...], size: int) -> Iterator[tuple[Facts, ...]]:
    """Facts that were read whole: those of the first `size` rows, of the next, and so on."""
    if not facts:
        return
    last = max(int(part.rows[-1]) for part in facts if len(part))
    for start in range(0, last + 1, size):
        parts = (_between(part, start, start + size) for part in facts)
        yield tuple(part for part in parts if len(part))


def _between(facts: Facts, start: int, end: int) -> Facts:
    which = np.flatnonzero((facts.rows >= start) & (facts.rows < end))
    return chosen_facts(facts, which)


def chosen_facts(facts: Facts, which: np.ndarray) -> Facts:
    """Some of the facts, by their places."""
    arguments = tuple(pc.take(column, pa.array(which)) for column in facts.arguments)
    return replace(facts, arguments=arguments, truth=facts.truth[which], rows=facts.rows[which])
