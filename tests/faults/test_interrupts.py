"""Ctrl-C at any moment, from the first import to the last report: exit code 130, one line, and nothing is lost."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.examples import first_of
from tests.faults.killed_works import COMMANDS, TRAIN, Given, Trial, check_whole, of_training
from tests.faults.warm_process import TOO_EARLY, Conditions
from tests.toy_problem import write_toy_problem

BEGUN = b"begun\n"
# Before its first line of r2n a process belongs to Python; from then on moments count, however busy the machine is.
PROGRAM = f"""
import os, sys
from r2n.__main__ import main

class First:
    def find_spec(self, name, path, target=None):
        if name == "r2n.cli":
            os.write(1, {BEGUN!r})
            sys.meta_path.remove(self)

sys.meta_path.insert(0, First())
main()
"""
LIBRARY = """
import os, signal, sys
from r2n.__main__ import main

class Library:
    def find_spec(self, name, path, target=None):
        if name == "r2n.cli":
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("a library in C could not be loaded")

sys.meta_path.insert(0, Library())
main()
"""
AT_THE_END = """
import atexit, os, signal
from r2n.__main__ import main
atexit.register(os.kill, os.getpid(), signal.SIGINT)
main()
"""
CTRL_C = Conditions(signal=signal.SIGINT)
MOMENTS = 4
LONGEST = 600  # seconds that a process may take, on a busy machine


@contextmanager
def begun(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """A command in a process of its own, at its first import."""
    command, pipe = [sys.executable, "-c", PROGRAM, *map(str, arguments)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=os.environ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == BEGUN
        yield process


def check_end(code: int | None, said: str) -> None:
    assert code in (0, 130), said
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert code == 0 or said.splitlines()[-1] == "interrupted"
    assert said.count("interrupted") == (code == 130)


@pytest.mark.parametrize(
    ("program", "code", "stdout", "stderr"), [(LIBRARY, 130, "", "interrupted\n"), (AT_THE_END, 0, "r2n ", "")]
)
def test_while_a_library_is_loaded_and_after_the_work(program: str, code: int, stdout: str, stderr: str) -> None:
    """A library may make another error of it; after the work the exit code stands."""
    ended = subprocess.run([sys.executable, "-c", program, "--version"], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout[:4], ended.stderr) == (code, stdout, stderr)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "ground", "mine", "infer", "train"])
def test_from_the_first_import_on(command: str, tmp_path: Path) -> None:
    dice, arguments = random.Random(command), [command, write_toy_problem(tmp_path / "toy", epochs=2)]
    arguments += ["--out", tmp_path / "run", "--resume"] if command == "train" else []
    seconds = 0.0
    for attempt in range(1 + MOMENTS):
        start = time.monotonic()
        with begun(*arguments) as process:
            if attempt:
                time.sleep(dice.uniform(0, seconds))
                process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=LONGEST)
        check_end(process.returncode, said.decode())
        assert attempt or process.returncode == 0, said.decode()
        seconds = seconds or time.monotonic() - start


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_a_training_interrupted_at_any_moment_goes_on_as_if_it_had_not_been(part: int, trial: Trial) -> None:
    toy, dice = write_toy_problem(trial.folder / "toy", epochs=40), random.Random(part)
    arguments = ("r2n", "train", toy, "--out", "run", *TRAIN)
    complete = trial.done(*arguments, at="complete")
    for attempt in map(str, range(MOMENTS)):
        ended = trial.run(*arguments, at=attempt, after=dice.uniform(0.01, complete.seconds), under=CTRL_C)
        if ended.code != TOO_EARLY:
            check_end(ended.code, ended.said)
        check_whole(trial.folder / attempt)
        trial.done(*arguments, "--resume", at=attempt)
        assert of_training(trial.folder / attempt) == of_training(trial.folder / "complete")
        assert not list((trial.folder / attempt).rglob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.5, 1.0, 2.0])
def test_sql_that_takes_long(seconds: float, trial: Trial) -> None:
    toy = write_toy_problem(trial.folder / "toy")
    sql = "select a.range::varchar from range(300000000000) a where hash(a.range) % 99999999 = 7"  # takes hours
    (toy / "problem.toml").write_text((toy / "problem.toml").read_text() + f'[derived]\nslow = "{sql}"\n')
    ended = trial.run("r2n", "check", toy, after=seconds, under=CTRL_C)
    if ended.code != TOO_EARLY:
        assert ended.code == 130
        check_end(ended.code, ended.said)


@pytest.mark.parametrize("command", first_of(COMMANDS, 2))
def test_every_command_at_random_moments(command: str, trial: Trial) -> None:
    dice, complete = random.Random(command), trial.command(command, at="complete")
    assert complete.code == 0, complete.said
    for attempt in map(str, range(MOMENTS)):
        ended = trial.command(command, at=attempt, after=dice.uniform(0.01, complete.seconds), under=CTRL_C)
        if ended.code == TOO_EARLY:
            continue
        check_end(ended.code, ended.said)
        check_whole(trial.folder / attempt)
        left = [path for path in (trial.folder / attempt).rglob(".*") if path.suffix != ".parts"]
        assert not left, "answers go on from their parts"


@pytest.mark.slow
@pytest.mark.parametrize("when", ["at once", "when it waits"])
def test_a_server_that_waits(when: str, given: Given) -> None:
    with begun("serve", given.run, "--port", "0") as process:
        assert process.stderr is not None
        if when == "at once":
            time.sleep(0.5)
        while when != "at once" and b"is served at" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().decode()
        code = process.wait(timeout=LONGEST)
    assert code == 130, said
    assert "Traceback" not in said
    assert said.splitlines()[-1] == "interrupted"
