"""Bytes of a run folder changed at random: refused with a message, or of no consequence; never a traceback."""

import os
import random
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from r2n.data.problem import load_problem
from r2n.errors import R2NError
from r2n.model.model import Model
from r2n.model.run import prepare_run
from r2n.model.training import train_in
from r2n.reporting.run_report import read_training, training_curves
from tests.examples import first_of
from tests.toy_problem import write_toy_problem

TRIES = 40
FILES = ("config.json", "checkpoint.json", "trace.jsonl", "problem.safetensors", "checkpoint-*")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy, and a run on it."""
    folder = tmp_path_factory.mktemp("damaged")
    problem = load_problem(write_toy_problem(folder / "toy", epochs=3))
    for _ in train_in(folder / "run", prepare_run(problem, problem.options, 0)):
        pass
    for _ in train_in(folder / "ensemble", prepare_run(problem, problem.options, 0, size=2)):
        pass
    return folder


def damage(path: Path, dice: random.Random) -> None:
    """Flip a bit, cut the end, insert a byte or repeat some; a folder is removed."""
    if path.is_dir():
        shutil.rmtree(path)
        return
    content = bytearray(path.read_bytes())
    start = dice.randrange(len(content))
    match dice.choice(("flip", "cut", "insert", "repeat")):
        case "flip":
            content[start] ^= 1 << dice.randrange(8)
        case "cut":
            del content[start:]
        case "insert":
            content[start:start] = bytes([dice.choice(b'0123456789"{}[],\x00\xff-')])
        case _:
            content[start:start] = content[start : start + dice.randrange(1, 40)]
    path.write_bytes(bytes(content))


OF_AN_ENSEMBLE = ("seed-1/checkpoint.json", "seed-0/checkpoint-*", "seed-1/trace.jsonl", "calibration.json", "seed-1")


@pytest.mark.parametrize(
    "path", first_of([*(f"run/{n}" for n in FILES), *(f"ensemble/{n}" for n in OF_AN_ENSEMBLE)], 1)
)
def test_damage_is_refused_or_makes_no_difference(path: str, folder: Path, tmp_path: Path) -> None:
    kind, _, name = path.partition("/")
    dice, problem, networks = random.Random(name), load_problem(folder / "toy"), 1 if kind == "run" else 2
    before = Model.load(folder / kind).logits(problem.atoms)

    def traces(run: Path) -> list[bytes]:
        return [path.read_bytes() for path in sorted(run.rglob("trace.jsonl"))]

    tries, refused = TRIES // networks**2, 0
    for attempt in range(tries):
        run = tmp_path / str(attempt)
        shutil.copytree(folder / kind, run)
        damaged = next(run.glob(name))
        is_folder = damaged.is_dir()
        damage(damaged, dice)
        try:
            np.testing.assert_array_equal(Model.load(run).logits(problem.atoms), before)
        except R2NError:
            refused += 1
        try:
            for _ in train_in(run, prepare_run(problem, problem.options, 0, size=networks), resume=True):
                pass
            np.testing.assert_array_equal(Model.load(run).logits(problem.atoms), before)
            for trace in run.rglob("trace.jsonl"):
                training_curves(trace)
            assert is_folder or traces(run) == traces(folder / kind)
        except R2NError:
            refused += 1
    assert refused >= tries // 2 or name == "calibration.json"


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/null")


def listening_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


@pytest.fixture
def alarm() -> Iterator[None]:
    """What would be read for ever ends as an error."""

    def ring(*_: object) -> None:
        raise AssertionError("it is read, and never ends")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("name", [*FILES, "calibration.json", "report.json"])
@pytest.mark.parametrize("put", [fifo, device, listening_socket, Path.mkdir])
def test_what_is_no_regular_file_is_refused_and_never_read(
    name: str, put: Callable[[Path], None], folder: Path, tmp_path: Path
) -> None:
    run, problem = tmp_path / "run", load_problem(folder / "toy")
    shutil.copytree(folder / "run", run)
    path = next(run.glob(name), run / name)
    path.unlink(missing_ok=True)
    put(path)
    is_read = {
        "predict": (lambda: Model.load(run), name not in ("trace.jsonl", "report.json")),
        "resume": (lambda: list(train_in(run, prepare_run(problem, problem.options, 0), resume=True)), name in FILES),
        "curves": (lambda: training_curves(run / "trace.jsonl"), name == "trace.jsonl"),
    }
    for read, is_refused in is_read.values():
        if is_refused:
            with pytest.raises(R2NError, match=r"not a regular file|Is a directory"):
                read()
    read_training(run)  # where report.json cannot be read, the trace tells


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("name", ["problem.toml", "theory.r2n", "train.tsv"])
@pytest.mark.parametrize("put", [fifo, device, listening_socket])
def test_a_problem_is_read_from_regular_files(name: str, put: Callable[[Path], None], tmp_path: Path) -> None:
    path = write_toy_problem(tmp_path / "toy") / name
    path.unlink()
    put(path)
    with pytest.raises(R2NError, match=r"not a regular file|lies outside"):
        load_problem(tmp_path / "toy")
