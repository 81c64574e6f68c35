"""The process that loads the run once, and forks the workers."""

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from threading import Thread

import pytest

from r2n.errors import R2NError
from r2n.serving.keeper import Keeper, keep
from r2n.serving.limits import Limits
from r2n.serving.wire import job_frame, read_frame


def replied(connection: socket.socket) -> int:
    """The status of the first reply to a job."""
    connection.sendall(job_frame("check", {"query": "liesIn(n0, ?)"}))
    head = read_frame(connection)
    assert head is not None
    read_frame(connection)
    return json.loads(head)["replies"][0]["status"]


def test_workers_are_forked_and_ended(keeper: Keeper) -> None:
    first, connection = keeper.fork()
    second, other = keeper.fork()
    with connection, other:
        assert replied(connection) == replied(other) == 200
        keeper.end(first)
        assert connection.recv(1) == b""
        assert replied(other) == 200
        keeper.end(second)
    keeper.end(second)  # it has ended already
    for worker in (first, second):
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


def test_a_worker_shares_what_was_loaded(keeper: Keeper) -> None:
    """What a worker has for itself is little beside what it has in all."""
    worker, connection = keeper.fork()
    with connection:
        replied(connection)
        lines = Path(f"/proc/{worker}/smaps_rollup").read_text().splitlines()
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
        own = sizes["Private_Dirty"] + sizes["Private_Clean"]
        assert own < sizes["Rss"] / 2
        keeper.end(worker)


def test_a_run_that_is_none_is_refused_as_it_is_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(R2NError) as caught:
        Keeper.start(tmp_path, Limits())
    assert str(tmp_path) in str(caught.value)


def wait_for_the_end(connection: socket.socket) -> None:
    connection.sendall(b"!")
    signal.pause()


def test_with_the_server_all_go() -> None:
    """The other end, in a process of this test that does nothing but wait."""
    own, other = socket.socketpair()
    child = os.fork()
    if child == 0:
        own.close()
        try:
            keep(other, wait_for_the_end)
        finally:
            os._exit(0)
    other.close()
    keeper = Keeper(subprocess.Popen(["true"]), own, Limits())
    worker, connection = keeper.fork()
    with connection:
        assert connection.recv(1) == b"!"
        keeper.close()
        assert connection.recv(1) == b""  # the worker was ended
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_where_the_process_has_gone_that_is_said() -> None:
    own, other = socket.socketpair()
    keeper = Keeper(subprocess.Popen(["true"]), own, Limits())
    Thread(target=lambda: (other.recv(100), other.close())).start()
    with pytest.raises(R2NError, match="has ended"):
        keeper.end(1)
    keeper.close()
