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

    monkeypatch.setattr("r2n.runs.checkpoint.write_atomically", full)
    with pytest.raises(ConfigError, match="No space left"):
        write_file(tmp_path / "x.html", b"")
    with pytest.raises(ConfigError, match="cannot be written: File name too long"):
        check_writable(tmp_path / ("x" * 300) / "y.html")
    check_writable(tmp_path / "x.html")
