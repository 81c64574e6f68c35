"""One process at a time trains in a folder."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from r2n.errors import ConfigError
from r2n.store import trace
from r2n.store.trace import LOCK, locked

HOLD = """
import sys, time
from pathlib import Path
from r2n.store.trace import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_one_is_refused_while_the_first_trains(tmp_path: Path) -> None:
    with locked(tmp_path):
        with pytest.raises(ConfigError, match=rf"another process \({os.getpid()}\) is at work in .*\n  wait") as caught:
            locked(tmp_path).__enter__()
        assert str(tmp_path) in str(caught.value)
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_killed_process_blocks_nobody(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(ConfigError, match=rf"another process \({process.pid}\)"), locked(tmp_path):
            pass
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_taken_away_between_opening_and_locking_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, calls = trace._is_locked, []

    def slow(descriptor: int, path: Path) -> bool:
        if not calls:
            path.unlink()
        calls.append(descriptor)
        return take(descriptor, path)

    monkeypatch.setattr(trace, "_is_locked", slow)
    with locked(tmp_path), pytest.raises(ConfigError), locked(tmp_path):
        pass
    assert len(calls) == 3


def test_a_lock_on_a_file_that_another_has_replaced_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take, calls = trace._is_locked, []

    def slow(descriptor: int, path: Path) -> bool:
        if not calls:
            path.unlink()  # who held it is done,
            path.touch()  # and the next one has made a file of its own
        calls.append(descriptor)
        return take(descriptor, path)

    monkeypatch.setattr(trace, "_is_locked", slow)
    with locked(tmp_path), pytest.raises(ConfigError), locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def refuse(number: int) -> Callable[..., None]:
    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return flock


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_where_there_are_no_locks_training_goes_on(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fcntl.flock", refuse(number))
    with locked(tmp_path), locked(tmp_path):
        pass
    monkeypatch.setattr(trace, "fcntl", None)
    with locked(tmp_path), locked(tmp_path):
        pass


def test_a_folder_that_cannot_be_written_has_no_lock(tmp_path: Path) -> None:
    with locked(tmp_path / "gone"):
        pass
