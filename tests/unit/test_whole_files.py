"""Files and folders that are whole or not there, whoever is killed, and who else writes the same."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from r2n import files
from r2n.files import new_file, new_folder, scratch_folder, take_away, write_atomically


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def killed(work: Callable[[], None]) -> None:
    """Let a process work that kills itself."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def half_a_file(path: Path) -> None:
    with new_file(path) as file:
        file.write(b"half")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)


def half_a_folder(path: Path) -> None:
    with new_folder(path) as work:
        (work / "part").write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_file_takes_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with new_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]
    mask = os.umask(0o022)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask, "as other programs write it"


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("r2n.files.os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_takes_the_place_of_another_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    for content in ("old", "new"):
        with new_folder(path) as work:
            (work / "file").write_text(content)
    assert (path / "file").read_text() == "new"
    with pytest.raises(ZeroDivisionError), new_folder(path) as work:
        (work / "file").write_text(str(1 // 0))
    assert (path / "file").read_text() == "new"
    assert names(tmp_path) == ["folder"]


@pytest.mark.parametrize("half", [half_a_file, half_a_folder])
def test_what_a_killed_process_left_is_gone_with_the_next(half: Callable[[Path], None], tmp_path: Path) -> None:
    killed(lambda: half(tmp_path / "a [1].b"))
    killed(lambda: half(tmp_path / "other"))
    assert len(names(tmp_path)) == 2
    write_atomically(tmp_path / "a [1].b", b"whole")
    assert "a [1].b" in names(tmp_path)
    assert [name for name in names(tmp_path) if "a [1].b." in name] == []
    assert len(names(tmp_path)) == 2, "of another file it may be looked for"
    take_away(tmp_path)
    assert names(tmp_path) == ["a [1].b"]


def test_what_a_living_one_writes_stays(tmp_path: Path) -> None:
    with new_file(tmp_path / "file") as first, scratch_folder(tmp_path / "folder") as scratch:
        first.write(b"first")
        write_atomically(tmp_path / "file", b"second")
        take_away(tmp_path)
        assert scratch.is_dir()
        assert (tmp_path / "file").read_bytes() == b"second"
    assert (tmp_path / "file").read_bytes() == b"first", "who is done last"
    assert names(tmp_path) == ["file"]


def test_only_temporary_names_are_taken_away(tmp_path: Path) -> None:
    kept = [".file.backup.tmp", ".file", "file.12.tmp", ".12.tmp", ".file.12.tmp.gz"]
    for name in kept:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".link.12.tmp").symlink_to(tmp_path)
    take_away(tmp_path)
    take_away(tmp_path / "nowhere")
    assert names(tmp_path) == sorted([*kept, ".link.12.tmp"])


def test_where_the_system_has_no_locks_all_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "fcntl", None)
    (tmp_path / ".file.12.tmp").write_text("half")
    write_atomically(tmp_path / "file", b"whole")
    with new_folder(tmp_path / "folder") as work:
        (work / "file").write_text("whole")
    assert names(tmp_path) == [".file.12.tmp", "file", "folder"]


def test_a_name_that_another_takes_for_a_left_over_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = iter(["0a", "0a", "0b", "0c", "0d"])
    monkeypatch.setattr("r2n.files.secrets.token_hex", lambda _: next(tokens))
    (tmp_path / ".file.0a.tmp").touch()
    monkeypatch.setattr("r2n.files.take_away", lambda *_: None)
    is_still = files.is_same_file
    monkeypatch.setattr(
        "r2n.files.is_same_file",
        lambda descriptor, path: (".0b." not in path.name or path.unlink()) and is_still(descriptor, path),
    )
    write_atomically(tmp_path / "file", b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert next(tokens) == "0d"
