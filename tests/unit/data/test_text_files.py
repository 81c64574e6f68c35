"""Text files: unpacked, checked, split into lines, and found again."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.records import (
    LINE_LIMIT,
    check_file,
    line_location,
    place,
    read_lines,
    read_text,
    spans,
    unreadable,
)
from r2n.errors import DataError


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


def test_a_name_that_no_file_can_have() -> None:
    with pytest.raises(DataError, match="this cannot be read as a file"):
        check_file(Path("x" * 5000))
    with pytest.raises(DataError, match="this cannot be read as a file"):
        check_file(Path("a\0b"))


def test_a_file_taken_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="there is no such file"):
        check_file(tmp_path / "file" / "train.tsv")


def test_an_error_without_words() -> None:
    assert "this cannot be read as RDF (KeyError)" in str(unreadable(Path("x"), "RDF", KeyError()))


def test_lines_without_blank_ones(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"\none\n\r\n two \r\n\n\nth\rree\r")
    lines = read_lines(path)
    assert lines.columns[0].to_pylist() == ["one", " two ", "th\rree"]
    assert lines.rows.tolist() == [1, 3, 6]
    assert [line_location(path, row).excerpt for row in lines.rows.tolist()] == lines.columns[0].to_pylist()


def test_the_limit_is_the_longest_line_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"a" * LINE_LIMIT + b"\n" + b"b" * (LINE_LIMIT + 1) + b"\nc")
    lines = read_lines(path)
    assert lines.rows.tolist() == [0, 2]
    assert [fault.rows.tolist() for fault in lines.faults] == [[1]]


def test_location_sees_that_the_file_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("one\n")
    assert line_location(path, 0, 2).excerpt == "one"
    path.write_text("three\n")
    assert line_location(path, 0, 2).excerpt == "three"


def test_excerpt_reaches_beyond_a_far_column(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("x" * 500 + "!" + "y" * 500)
    excerpt = line_location(path, 0, 501).excerpt
    assert excerpt is not None
    assert excerpt[500] == "!"
    assert len(excerpt) < 600


def test_place() -> None:
    assert [place(b"ab\nc\n", position) for position in (0, 2, 3, 4)] == [(1, 0), (1, 0), (2, 3), (2, 3)]


@given(st.lists(st.text(max_size=4), max_size=6))
def test_spans_are_the_pieces(pieces: list[str]) -> None:
    parts = [piece.encode() for piece in pieces]
    ends = np.cumsum([len(part) + 1 for part in parts], dtype=np.int64) - 1
    starts = ends - np.array([len(part) for part in parts], np.int64)
    array = spans(b"|".join(parts) + b"|", starts, ends)
    assert array.to_pylist()[::2] == pieces


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_file_that_unpacks_to_far_more_than_it_holds_is_refused(suffix: str, tmp_path: Path) -> None:
    zeros = bytes(2**24)
    packed = gzip.compress(zeros) if suffix == ".gz" else pa.Codec("zstd").compress(zeros, asbytes=True)
    path = tmp_path / f"facts.tsv{suffix}"
    path.write_bytes(packed * 5)
    with pytest.raises(DataError, match=f"a {suffix} file .*more than 100 times its size"):
        read_text(path)


def test_a_file_that_is_packed_well_is_read(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv.gz"
    text = b"a\tp\tb\n" * 100_000
    path.write_bytes(gzip.compress(text))
    assert read_text(path) == text
