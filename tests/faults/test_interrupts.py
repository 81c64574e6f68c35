"""Ctrl-C at any moment, from the first import to the last report: exit code 130, one line, and nothing is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.examples import first_of
from tests.faults.all_commands import READING, WRITING, filled, with_run
from tests.faults.killed_works import Given, check_whole
from tests.faults.warm_process import TOO_EARLY, Conditions, WarmProcess
from tests.toy_problem import write_toy_problem

PROGRAM = [sys.executable, "-c", "from r2n.__main__ import main; main()"]
EPOCHS = 150


def interrupted(*arguments: object, after: float) -> tuple[int, str]:
    """The exit code and standard error of a command that is interrupted after so many seconds."""
    command = [*PROGRAM, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ) as process:
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)
    return process.returncode, said.decode()


def tell_tale(code: int, said: str) -> None:
    assert code in (0, 130), said
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert code == 0 or said.splitlines()[-1] == "interrupted"
    assert said.count("interrupted") == (code == 130)


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(20))
def test_a_training_interrupted_at_any_moment_goes_on_as_if_it_had_not_been(attempt: int, tmp_path: Path) -> None:
    toy, run = write_toy_problem(tmp_path / "toy", epochs=EPOCHS), tmp_path / "run"
    seconds = random.Random(attempt).uniform(0.2, 9.0)
    tell_tale(*interrupted("train", toy, "--out", run, "--checkpoint-seconds", 0, after=seconds))
    command = [*PROGRAM, "train", str(toy), "--out", str(run), "--resume"]
    done = subprocess.run(command, capture_output=True, env=os.environ, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    numbers = [json.loads(line)["number"] for line in (run / "trace.jsonl").read_text().splitlines()]
    assert numbers == list(range(1, EPOCHS + 1))
    assert [path.name for path in run.iterdir() if path.name.startswith(".")] == []


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.3, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("command", ["check", "ground", "mine", "infer"])
def test_other_commands(command: str, seconds: float, tmp_path: Path) -> None:
    tell_tale(*interrupted(command, write_toy_problem(tmp_path / "toy"), after=seconds))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1.5, 2.5, 4.0])
def test_sql_that_takes_long(seconds: float, tmp_path: Path) -> None:
    toy = write_toy_problem(tmp_path / "toy")
    sql = "select a.range::varchar from range(300000000) a where hash(a.range) % 99999999 = 7"
    (toy / "problem.toml").write_text((toy / "problem.toml").read_text() + f'[derived]\nslow = "{sql}"\n')
    tell_tale(*interrupted("check", toy, after=seconds))


COMMANDS = {
    **{name: arguments for name, arguments in READING.items() if name != "ask"},  # below: it waits for questions
    **WRITING,
    "evaluate --jobs": ["evaluate", "run", "--jobs", "2"],
    "predict --jobs": ["predict", "run", "--queries", "{queries}", "--out", "made.csv", "--jobs", "2"],
}
MOMENTS = 3


@pytest.mark.parametrize("command", first_of(COMMANDS, 2))
def test_every_command_at_random_moments(command: str, warm: WarmProcess, given: Given, tmp_path: Path) -> None:
    dice, ctrl_c = random.Random(command), Conditions(signal=signal.SIGINT)
    (tmp_path / "whole").mkdir()
    arguments = filled(COMMANDS[command], given)
    whole = warm.run("r2n", *arguments, folder=with_run(given, tmp_path / "whole"))
    assert whole.code == 0, whole.said
    for attempt in range(MOMENTS):
        (tmp_path / str(attempt)).mkdir()
        folder, after = with_run(given, tmp_path / str(attempt)), dice.uniform(0.01, whole.seconds)
        ended = warm.run("r2n", *arguments, folder=folder, after=after, under=ctrl_c)
        if ended.code == TOO_EARLY:
            continue
        assert ended.code is not None
        tell_tale(ended.code, ended.said)
        check_whole(folder)
        assert not [path for path in folder.rglob(".*") if path.suffix != ".parts"], "answers go on from their parts"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ask", "serve"])
@pytest.mark.parametrize("when", ["at once", "when it waits"])
def test_commands_that_wait(command: str, when: str, given: Given) -> None:
    arguments = ["serve", given.run, "--port", "0"] if command == "serve" else ["ask", given.run]
    with subprocess.Popen(
        [*PROGRAM, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        if when == "at once":
            time.sleep(1)
        elif command == "serve":
            while b"is served at" not in process.stderr.readline():
                assert process.poll() is None
        else:
            process.stdin.write(b"liesIn(n5, north)\n")
            process.stdin.flush()
            assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().decode()  # the input stays open
        code = process.wait(timeout=120)
    assert code == 130, said
    assert "Traceback" not in said
    assert said.splitlines()[-1] == "interrupted"
