"""Shares of processes: who takes which part, what is handed over, and what is said of a process that is gone."""

import signal
import sys
import time
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import NoReturn

import pytest
import torch

from r2n.errors import ConfigError, DataError, Location, ProcessError
from r2n.evaluation.ranking import ALONE, Share
from r2n.model import processes
from r2n.model.processes import MOST_PROCESSES, HelperShare, LeadingShare, begin, shared
from tests.ended_process import EndedProcess


@pytest.fixture
def threads() -> Iterator[None]:
    kept = torch.get_num_threads()
    yield
    torch.set_num_threads(kept)


def leading(code: int, *messages: object) -> LeadingShare:
    """Process 0 of two; the other has sent its messages and is gone."""
    here, there = Pipe(duplex=False)
    for message in messages:
        there.send(message)
    there.close()
    return LeadingShare([(EndedProcess(code), here)])


def test_every_part_is_taken_once() -> None:
    here, there = Pipe(duplex=False)
    shares = [HelperShare(number, 3, there) for number in (1, 2)]
    lead = LeadingShare([(get_context("spawn").Process(), here)] * 2)
    assert lead.count == 3
    for number in range(9):
        assert sum(share.takes(number) for share in (lead, *shares)) == 1
    assert shares[0].together([(4, "d"), (1, "a")]) == ["a", "d"]
    assert here.recv() == [(4, "d"), (1, "a")]


def test_what_all_found_comes_together_question_by_question() -> None:
    lead = leading(0, [(1, "b"), (3, "d")], [(1, "y")])
    assert lead.together([(0, "a"), (2, "c")]) == ["a", "b", "c", "d"]
    assert lead.together([(0, "x")]) == ["x", "y"]


@pytest.mark.parametrize(("code", "how"), [(-signal.SIGKILL, "was killed by signal 9"), (3, "ended with code 3")])
def test_a_process_that_is_gone(code: int, how: str) -> None:
    with pytest.raises(ProcessError, match=f"process 2 of 2 {how}\n.*fewer --jobs"):
        leading(code).together([])


def fails(_: Share, kind: str) -> NoReturn:
    if kind == "told":
        raise DataError("a wrong row", where=Location("a.tsv", 3), hint="mend it")
    raise RuntimeError("the machine is tired")


@pytest.mark.parametrize(
    ("kind", "message"),
    [("told", "a.tsv:3: a wrong row\n  mend it"), ("other", "process 2 of 2: the machine is tired")],
)
def test_what_a_helper_fails_with_is_raised_by_who_asked(
    kind: str, message: str, monkeypatch: pytest.MonkeyPatch, threads: None
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # the helper is this process
    monkeypatch.setattr(processes, "_end_with_parent", lambda: None)
    here, there = Pipe(duplex=False)
    processes._help(1, 2, there, fails, (kind,))
    with pytest.raises((DataError, ProcessError)) as caught:
        LeadingShare([(get_context("spawn").Process(), here)]).together([])
    assert str(caught.value) == message


def test_without_jobs_nothing_changes_and_one_job_has_one_thread(threads: None) -> None:
    torch.set_num_threads(2)
    with shared(None, fails) as share:
        assert share is ALONE
        assert torch.get_num_threads() == 2
    with shared(1, fails) as share:
        assert share.count == torch.get_num_threads() == 1


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
    with pytest.raises(ConfigError, match=f"{jobs:,} processes cannot be begun"), shared(jobs, print):
        pass
