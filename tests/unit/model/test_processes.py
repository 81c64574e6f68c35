"""Several processes and devices."""

import signal
import socket
import sys
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Pipe
from pathlib import Path

import pytest
import torch

from r2n.data.problem import load_problem
from r2n.errors import ConfigError, DataError, Location, ProcessError
from r2n.evaluation.ranking import ALONE, Shard
from r2n.model import processes
from r2n.model.processes import (
    MOST_PROCESSES,
    TorchGroup,
    begin,
    begun_elsewhere,
    ended_process,
    follows_elsewhere,
    gathered,
    listener,
    shared,
    together,
)
from r2n.model.training import TrainingSpec, _follow, follow_elsewhere, train_in
from r2n.options import TrainingOptions
from r2n.training.batches import SINGLE as ONE
from r2n.training.batches import ProcessGroup as Group
from tests import thread_group
from tests.ended_process import EndedProcess
from tests.thread_group import ThreadGroup


@pytest.fixture
def pipe() -> Iterator[tuple]:
    here, there = Pipe(duplex=False)
    yield here, there
    here.close()
    there.close()


def leading(code: int, *messages: object) -> Shard:
    """Process 0 of two; the other has sent its messages and is gone."""
    here, there = Pipe(duplex=False)
    for message in messages:
        there.send(message)
    there.close()
    return Shard(0, 2, partial(gathered, [(EndedProcess(code), here)]))


def test_every_part_is_taken_once_and_what_all_found_comes_together_in_order() -> None:
    for part in range(9):
        assert sum(Shard(number, 3).takes(part) for number in range(3)) == 1
    lead = leading(0, [(1, "b"), (3, "d")], [(1, "y")])
    assert lead.together([(0, "a"), (2, "c")]) == ["a", "b", "c", "d"]
    assert lead.together([(0, "x")]) == ["x", "y"]


@pytest.mark.parametrize(("code", "how"), [(-signal.SIGKILL, "was killed by signal 9"), (3, "ended with code 3")])
def test_a_process_that_is_gone(code: int, how: str) -> None:
    with pytest.raises(ProcessError, match=f"process 2 of 2 {how}\n.*fewer --jobs"):
        leading(code).together([])


@pytest.fixture
def no_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child process is this one."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)


def fails(group: Shard | Group, kind: str) -> None:
    if kind == "none":
        assert isinstance(group, Shard)
        assert group.together([(4, "d"), (1, "a")]) == ["a", "d"]
    elif kind == "told":
        raise DataError("a wrong row", where=Location("a.tsv", 3), hint="mend it")
    else:
        raise RuntimeError("the machine is tired")


def test_a_helper_hands_over_what_it_found(pipe: tuple, no_signals: None, threads: None) -> None:
    here, there = pipe
    processes._help(1, there, 2, fails, ("none",))
    assert here.recv() == [(4, "d"), (1, "a")]


@pytest.mark.parametrize(
    ("kind", "message"), [("told", "a.tsv:3: a wrong row\n  mend it"), ("other", "{}: the machine is tired")]
)
def test_what_a_child_process_fails_with_is_raised_by_its_parent(
    kind: str, message: str, pipe: tuple, no_signals: None, threads: None
) -> None:
    here, there = pipe
    processes._help(1, there, 2, fails, (kind,))
    with pytest.raises((DataError, ProcessError)) as caught:
        gathered([(get_context("spawn").Process(), here)], [])
    assert str(caught.value) == message.format("process 2 of 2")
    processes._follow(1, there, 2, 0, "cpu", fails, (kind,))
    assert str(here.recv()) == message.format("rank 1")


def test_without_jobs_nothing_changes_and_one_job_has_one_thread(threads: None) -> None:
    torch.set_num_threads(2)
    with shared(None, fails) as shard:
        assert shard is ALONE
        assert torch.get_num_threads() == 2
    with shared(1, fails) as shard:
        assert shard.count == torch.get_num_threads() == 1


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_process_hears_no_interrupt_from_its_first_moment_on() -> None:
    process = get_context("spawn").Process(target=time.sleep, args=(60,), daemon=True)
    begin(process)
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
        blocked = next(line for line in status.splitlines() if line.startswith("SigBlk:"))
        assert int(blocked.split()[1], 16) >> (signal.SIGINT - 1) & 1
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ()), "it is heard here"
    finally:
        process.kill()
        process.join()


@pytest.mark.parametrize("jobs", [0, MOST_PROCESSES + 1, 10**30])
def test_more_processes_than_a_machine_holds_are_refused_before_the_first_begins(
    jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "begin", lambda _: pytest.fail("a process was begun"))
    for begun in (shared(jobs, print), together(jobs, BATCHES, print)):
        with pytest.raises(ConfigError, match=f"{jobs:,} processes cannot be begun"), begun:
            pass


BATCHES = TrainingOptions(batch_size=5, device="cpu")
OUTSIDE = ("TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "MASTER_PORT")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OUTSIDE:
        monkeypatch.delenv(name, raising=False)


def nothing(*_: object) -> None:
    raise AssertionError("no process is to be begun")


def test_one_process_needs_nobody_and_what_cannot_be_shared_is_refused() -> None:
    for count in (None, 1):
        with together(count, TrainingOptions(), nothing) as group:
            assert group is ONE
    with pytest.raises(ConfigError, match=r"set training\.batch_size"), together(2, TrainingOptions(), nothing):
        pass


@pytest.mark.parametrize(
    ("environment", "count", "follows"),
    [
        ({"TORCHELASTIC_RUN_ID": "x", "RANK": "0", "WORLD_SIZE": "4"}, 4, False),
        ({"TORCHELASTIC_RUN_ID": "x", "RANK": "3", "WORLD_SIZE": "4"}, 4, True),
        ({}, None, False),
    ],
)
def test_processes_that_others_began(
    environment: dict[str, str], count: int | None, follows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert begun_elsewhere(4) == count
    assert begun_elsewhere(None) == count
    assert follows_elsewhere(4) is follows
    if count is not None:
        with pytest.raises(ConfigError, match="began 4 processes, --devices says 2"):
            begun_elsewhere(2)
        with together(4, BATCHES, nothing) as group:
            assert (group.rank, group.count) == (int(environment["RANK"]), 4)


def test_a_port_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setenv("MASTER_PORT", str(port))
        message = rf"rank 0 cannot listen at 127\.0\.0\.1:{port}.*in use\n  set MASTER_PORT"
        with pytest.raises(ConfigError, match=message), together(2, BATCHES, nothing):
            pass
    monkeypatch.setenv("MASTER_PORT", "here")
    with pytest.raises(ConfigError, match="cannot listen at"):
        listener()


def broken() -> None:
    raise RuntimeError("[/a/b.cc:1] Connection closed by peer\nand more")


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("", "do not reach each other: Connection closed by peer\n"),
        ("rank 1 was killed by signal 9", "rank 1 was killed"),
    ],
)
def test_an_exchange_with_who_is_gone(gone: str, message: str) -> None:
    group = TorchGroup(0, 2, torch.device("cpu"), broken, lambda: gone)
    assert isinstance(group, Group)
    with pytest.raises(ProcessError, match=rf"{message}(.|\n)*go on with --resume"):
        group.summed(torch.zeros(1))


@pytest.mark.parametrize(
    ("code", "message"),
    [(-signal.SIGKILL, "rank 1 was killed by signal 9"), (0, "rank 1 ended with code 0: a wrong row")],
)
def test_who_is_gone_and_what_it_said_last(code: int, message: str, pipe: tuple) -> None:
    here, there = pipe
    process = EndedProcess(code)
    there.send(DataError("a wrong row"))
    assert ended_process([(process, here)]) == message


def test_one_that_fails_before_the_first_step(pipe: tuple) -> None:
    here, there = pipe
    process = EndedProcess(-signal.SIGKILL)
    there.send("ready")
    assert processes._received("rank 1", process, here, hint="") == "ready"
    there.close()
    with pytest.raises(ProcessError, match="rank 1 was killed by signal 9, before the first step"):
        processes._received("rank 1", process, here, hint="was there memory?", when=", before the first step")


def test_who_follows_trains_and_who_leads_writes(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    options = problem.options.changed(["training.batch_size=5", "training.epochs=4"])
    spec = TrainingSpec(tmp_path / "two", options)
    run = spec.prepared(problem)

    def work(group: ThreadGroup) -> list[float]:
        if group.rank:
            _follow(group, str(toy_folder), spec)
            return []
        return [epoch.loss for epoch in train_in(tmp_path / "two", run, group=group)]

    expected = [epoch.loss for epoch in train_in(tmp_path / "one", spec.prepared(problem))]
    assert thread_group.together(2, work)[0] == pytest.approx(expected, rel=1e-4)
    names = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("one", "two")]
    assert len(names[0]) == len(names[1]), names
    assert list(train_in(tmp_path / "two", spec.prepared(problem), resume=True)) == []  # over for one process, too
    assert torch.get_num_threads() == 1
    assert follow_elsewhere("no problem", None, [], 0, 1, resume=False, devices=2, memory=None) is False
