"""Files are written whole, or refused with a reason."""

import os
from pathlib import Path

import pytest

from r2n.errors import ConfigError
from r2n.reporting.files import check_writable, write_file


def test_a_file_is_written_over_another(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    path.write_bytes(b"old")
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert [file.name for file in tmp_path.iterdir()] == ["x.html"]


def test_what_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="it is a folder"):
        check_writable(tmp_path)
    with pytest.raises(ConfigError, match=r"there is no folder .*nowhere"):
        write_file(tmp_path / "nowhere" / "x.html", b"")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match="there is no folder"):
        check_writable(tmp_path / "file" / "x.html")

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("r2n.reporting.files.write_atomically", full)
    with pytest.raises(ConfigError, match="No space left"):
        write_file(tmp_path / "x.html", b"")
    with pytest.raises(ConfigError, match="cannot be written: File name too long"):
        check_writable(tmp_path / ("x" * 300) / "y.html")
    check_writable(tmp_path / "x.html")


@pytest.mark.parametrize("path", ["missing/report.html", "."])
def test_a_file_that_cannot_be_written_is_refused_before_any_work(path: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"folder|cannot be written"):
        check_writable(tmp_path / path, "--html")
    with pytest.raises(ConfigError):
        write_file(tmp_path / path, "text", "--html")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_no_system_takes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        write_file(tmp_path / "\x00", "text", "--html")


def test_a_page_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    write_file(path, "old \ud800", "--out")
    assert path.read_text("utf-8") == "old ?"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left on device") as caught:
        write_file(path, "new", "--out")
    assert "give another --out" in str(caught.value)
    assert path.read_text("utf-8") == "old ?"
    assert [other.name for other in tmp_path.iterdir()] == ["report.html"]
