"""Bytes of a run folder changed at random: refused with a message, or of no consequence; never a traceback."""

import os
import random
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import chdir
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

TRIES = 24
FILES = ("config.json", "checkpoint.json", "trace.jsonl", "problem.safetensors", "checkpoint-*")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged")
    problem = load_problem(write_toy_problem(folder / "toy", epochs=3))
    for name, networks in (("run", 1), ("ensemble", 2)):
        list(train_in(folder / name, prepare_run(problem, problem.options, 0, size=networks)))
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
            list(train_in(run, prepare_run(problem, problem.options, 0, size=networks), resume=True))
            np.testing.assert_array_equal(Model.load(run).logits(problem.atoms), before)
            for trace in run.rglob("trace.jsonl"):
                training_curves(trace)
            assert is_folder or traces(run) == traces(folder / kind)
        except R2NError:
            refused += 1
    assert refused >= tries // 2 or name == "calibration.json"


def listening_socket(path: Path) -> None:
    with chdir(path.parent), socket.socket(socket.AF_UNIX) as made:  # the path of a socket is short
        made.bind(path.name)


PUT: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/null"),
    "socket": listening_socket,
    "folder": Path.mkdir,
}


@pytest.fixture
def alarm() -> Iterator[None]:
    """What would be read for ever ends as an error."""

    def ring(*_: object) -> None:
        raise AssertionError("it is read, and never ends")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(240)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("put", PUT)
def test_what_is_no_regular_file_is_refused_and_never_read(put: str, folder: Path, tmp_path: Path) -> None:
    problem = load_problem(folder / "toy")
    prepared = prepare_run(problem, problem.options, 0)
    for name in (*FILES, "calibration.json", "report.json"):
        run = Path(shutil.copytree(folder / "run", tmp_path / name))
        path = next(run.glob(name), run / name)
        path.unlink(missing_ok=True)
        PUT[put](path)
        is_read: list[tuple[Callable[[], object], bool]] = [
            (lambda run=run: Model.load(run), name not in ("trace.jsonl", "report.json")),
            (lambda run=run: list(train_in(run, prepared, resume=True)), name in FILES),
            (lambda run=run: training_curves(run / "trace.jsonl"), name == "trace.jsonl"),
        ]
        for read in [read for read, is_refused in is_read if is_refused]:
            with pytest.raises(R2NError, match=r"not a regular file|Is a directory"):
                read()
        read_training(run)  # if report.json cannot be read, it takes the trace
    for name in ("problem.toml", "theory.r2n", "train.tsv") * (put != "folder"):
        path = write_toy_problem(tmp_path / f"with-{name}") / name
        path.unlink()
        PUT[put](path)
        with pytest.raises(R2NError, match=r"not a regular file|lies outside"):
            load_problem(path.parent)
