"""How commands start and fail: without what they do not need, and with one message."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from r2n.cli import app, main, screen
from r2n.cli.screen import failure, forget_interrupts, is_out_of_memory, watch_interrupts
from r2n.errors import ConfigError
from tests.toy_problem import write_toy_problem


@pytest.fixture
def watched() -> Iterator[None]:
    """Interrupts are watched, and all is as before afterwards."""
    before, hook = (
        [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGALRM)],
        sys.unraisablehook,
    )
    watch_interrupts()
    yield
    for number, handler in before:
        signal.signal(number, handler)
    sys.unraisablehook, screen._interrupts = hook, 0


def test_what_is_told_of_an_error() -> None:
    assert failure(ConfigError("no", hint="do")) == ("error: no\n  do", 2)
    assert failure(KeyboardInterrupt()) == ("interrupted", 130)
    assert failure(ValueError("a bug")) is None
    assert failure(BrokenPipeError(errno.EPIPE, "closed")) is None
    assert failure(PermissionError(errno.EACCES, "Permission denied", "/x")) == ("error: /x: Permission denied", 1)
    found = failure(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/x"))
    assert found is not None
    assert found[1] == 1
    assert "No space left" in found[0]
    assert "--resume" in found[0]


def test_memory_that_is_refused_is_told_with_the_phase() -> None:
    with pytest.raises(MemoryError) as numpys:
        np.empty(2**55, np.int8)
    with pytest.raises(RuntimeError) as torchs:
        torch.empty(2**50)
    for caught in (numpys.value, torchs.value, duckdb.OutOfMemoryException("Out of Memory Error: failed to pin")):
        assert is_out_of_memory(caught)
        caught.add_note("in the phase 'ground' of towns")
        found = failure(caught)
        assert found is not None
        assert found[0].startswith("error: the machine gives no more memory; in the phase 'ground' of towns\n  ask for")
        assert found[1] == 1
    assert not is_out_of_memory(RuntimeError("shapes differ"))


REFUSED_TENSORS = """
import resource
from pathlib import Path
import numpy as np
from safetensors.numpy import load, save
from r2n.cli.screen import failure
data = save({"a": np.zeros(2**22)})
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + 2**20, held + 2**20))
try:
    load(data)
except BaseException as error:
    print(type(error).__name__, failure(error))
"""


def test_memory_that_is_refused_to_the_reader_of_tensors_is_told() -> None:
    ended = subprocess.run([sys.executable, "-c", REFUSED_TENSORS], capture_output=True, text=True)
    assert ended.stdout.startswith("PanicException ('error: the machine gives no more memory"), ended.stderr


def test_whatever_a_library_makes_of_an_interrupt_it_is_one(watched: None) -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert failure(ConfigError("the database refuses it: Interrupted")) == ("interrupted", 130)
    signal.raise_signal(signal.SIGINT)  # the second is not heard: the first is being told


def test_an_interrupt_where_none_can_be_raised_comes_again(watched: None) -> None:
    sys.unraisablehook(SimpleNamespace(exc_value=KeyboardInterrupt()))  # pyright: ignore[reportArgumentType]
    with pytest.raises(KeyboardInterrupt):  # and not in the hook itself, where it would be lost again
        time.sleep(60)
    assert screen._interrupts == 1


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (OSError(errno.ENOSPC, "No space left on device", "/x/y"), 1, "error: /x/y: No space left on device\n"),
        (MemoryError(), 1, "error: the machine gives no more memory; in the phase 'read' of "),
    ],
)
def test_a_command_says_it_in_one_message(
    error: BaseException, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("r2n.cli.problems.load", fail)
    result = CliRunner().invoke(app, ["check", str(tmp_path)])
    assert result.exit_code == code
    assert said in result.stderr
    assert "Traceback" not in result.output


def test_a_command_that_goes_on_forgets_what_was_interrupted(watched: None) -> None:
    for _ in range(5):  # more than end the process
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert failure(ValueError("made of it")) == ("interrupted", 130)
        forget_interrupts()
        assert failure(ValueError("a bug")) is None


@pytest.mark.parametrize("place", ["", " "])
def test_an_empty_place_to_write_to_is_refused(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    toy = write_toy_problem(tmp_path / "toy", epochs=1)
    commands = (("train", toy, "--out"), ("ground", toy, "--out"), ("mine", toy, "--out"), ("datasets", "generate"))
    for command in (*commands, ("predict", toy, "p(?)", "--out")):
        result = CliRunner().invoke(app, [*map(str, command), place])
        assert result.exit_code == 2, command
        assert "empty" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]


def test_an_interrupt_outside_of_a_command_is_told_once(
    watched: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:  # as typer makes of an interrupt while it reads the arguments
        raise SystemExit(130)

    monkeypatch.setattr("r2n.cli.app", interrupted)
    for is_told in (False, True):
        found = partial(failure, KeyboardInterrupt()) if is_told else lambda: None
        monkeypatch.setattr("r2n.cli.watch_interrupts", found)
        with pytest.raises(SystemExit, match="130"):
            main()
        assert capsys.readouterr().err == ("" if is_told else "interrupted\n")


HEAVY = ("torch", "sklearn", "matplotlib", "pyarrow.dataset")
LOADED = f"[name for name in {HEAVY} if name in sys.modules]"
WARNING = """
import sys, warnings
import r2n.cli
@r2n.cli.app.command("warn")
def warn():
    warnings.filterwarnings("always", category=RuntimeWarning)
    warnings.warn("overflow encountered", RuntimeWarning)
    print("worked")
sys.argv = ["r2n", "warn"]
r2n.cli.main()
"""


def printed(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    return subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, env=environment)


def test_the_import_and_commands_without_a_network_load_nothing_heavy() -> None:
    code = f"""
import sys, r2n
print({LOADED})
from typer.testing import CliRunner
from r2n.cli import app
for command in (["check", "countries-s3"], ["ground", "countries-s3"], ["datasets", "list"]):
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
"""
    done = printed(f"{code}print({LOADED})")
    assert done.stdout == "[]\n[]\n", done.stderr


def test_no_warning_of_a_library_reaches_the_user() -> None:
    done = printed(WARNING)
    assert (done.stdout, done.stderr) == ("worked\n", "")


def test_who_asks_for_warnings_gets_them() -> None:
    done = printed(WARNING, "-W", "default")
    assert done.stdout == "worked\n"
    assert "RuntimeWarning: overflow encountered" in done.stderr
