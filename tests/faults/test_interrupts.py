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
from tests.faults.all_commands import READING, WRITING, filled, with_run
from tests.faults.killed_works import TRAIN, Given, check_whole, of_training
from tests.faults.warm_process import TOO_EARLY, Conditions, WarmProcess, done
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


def tell_tale(code: int | None, said: str) -> None:
    assert code in (0, 130), said
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert code == 0 or said.splitlines()[-1] == "interrupted"
    assert said.count("interrupted") == (code == 130)


def test_a_library_that_makes_another_error_of_it_while_it_is_loaded() -> None:
    ended = subprocess.run([sys.executable, "-c", LIBRARY, "--version"], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_after_the_work_the_exit_code_stands() -> None:
    ended = subprocess.run([sys.executable, "-c", AT_THE_END, "--version"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("r2n ")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "ground", "mine", "infer", "train"])
def test_from_the_first_import_on(command: str, tmp_path: Path) -> None:
    dice, arguments = random.Random(command), [command, write_toy_problem(tmp_path / "toy", epochs=2)]
    arguments += ["--out", tmp_path / "run", "--resume"] if command == "train" else []
    start = time.monotonic()
    with begun(*arguments) as process:
        _, said = process.communicate(timeout=LONGEST)
    assert process.returncode == 0, said.decode()
    seconds = time.monotonic() - start
    for _ in range(MOMENTS):
        with begun(*arguments) as process:
            time.sleep(dice.uniform(0, seconds))
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=LONGEST)
        tell_tale(process.returncode, said.decode())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_a_training_interrupted_at_any_moment_goes_on_as_if_it_had_not_been(
    part: int, warm: WarmProcess, tmp_path: Path
) -> None:
    toy, dice = write_toy_problem(tmp_path / "toy", epochs=40), random.Random(part)
    arguments = ["train", toy, "--out", "run", *TRAIN]
    (tmp_path / "whole").mkdir()
    whole = done(warm, tmp_path / "whole", "r2n", *arguments)
    for attempt in range(MOMENTS):
        folder, after = tmp_path / str(attempt), dice.uniform(0.01, whole.seconds)
        folder.mkdir()
        ended = warm.run("r2n", *arguments, folder=folder, after=after, under=CTRL_C)
        if ended.code != TOO_EARLY:
            tell_tale(ended.code, ended.said)
        check_whole(folder)
        done(warm, folder, "r2n", *arguments, "--resume")
        assert of_training(folder) == of_training(tmp_path / "whole")
        assert not list(folder.rglob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.5, 1.0, 2.0])
def test_sql_that_takes_long(seconds: float, warm: WarmProcess, tmp_path: Path) -> None:
    toy = write_toy_problem(tmp_path / "toy")
    sql = "select a.range::varchar from range(300000000000) a where hash(a.range) % 99999999 = 7"  # takes hours
    (toy / "problem.toml").write_text((toy / "problem.toml").read_text() + f'[derived]\nslow = "{sql}"\n')
    ended = warm.run("r2n", "check", toy, folder=tmp_path, after=seconds, under=CTRL_C)
    if ended.code != TOO_EARLY:
        assert ended.code == 130
        tell_tale(ended.code, ended.said)


COMMANDS = {
    **READING,
    **WRITING,
    "evaluate --jobs": ["evaluate", "run", "--jobs", "2"],
    "predict --jobs": ["predict", "run", "--queries", "{queries}", "--out", "made.csv", "--jobs", "2"],
}


@pytest.mark.parametrize("command", first_of(COMMANDS, 2))
def test_every_command_at_random_moments(command: str, warm: WarmProcess, given: Given, tmp_path: Path) -> None:
    dice = random.Random(command)
    (tmp_path / "whole").mkdir()
    arguments = filled(COMMANDS[command], given)
    whole = warm.run("r2n", *arguments, folder=with_run(given, tmp_path / "whole"))
    assert whole.code == 0, whole.said
    for attempt in range(MOMENTS):
        (tmp_path / str(attempt)).mkdir()
        folder, after = with_run(given, tmp_path / str(attempt)), dice.uniform(0.01, whole.seconds)
        ended = warm.run("r2n", *arguments, folder=folder, after=after, under=CTRL_C)
        if ended.code == TOO_EARLY:
            continue
        tell_tale(ended.code, ended.said)
        check_whole(folder)
        assert not [path for path in folder.rglob(".*") if path.suffix != ".parts"], "answers go on from their parts"


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
