"""The workers, and the jobs that wait for one of them."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from r2n.serving import pool
from r2n.serving.app import create_app
from r2n.serving.guards import Access
from r2n.serving.keeper import Keeper
from r2n.serving.limits import Limits
from r2n.serving.metrics import Metrics
from r2n.serving.pool import BusyError, Pool
from r2n.serving.replies import Reply
from r2n.serving.requests import CHANGES
from r2n.serving.server import listening, make_server

QUERY = {"queries": ["liesIn(n2, ?)"], "top": 2}
ENDLESS = {"query": "liesIn(endless, ?)"}  # the worker that has it is stopped, and so never answers
OTHER = {"query": "liesIn(n0, ?)"}


@pytest.fixture(autouse=True)
def some_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_of = pool._asked

    async def stopped(worker: Any, job: str, asked: Any) -> tuple[list[Reply], bool]:
        if ENDLESS["query"] in json.dumps(asked):
            os.kill(worker.pid, signal.SIGSTOP)
        return await asked_of(worker, job, asked)

    monkeypatch.setattr(pool, "_asked", stopped)


def with_pool(keeper: Keeper, limits: Limits, do: Callable[[Pool], Awaitable[Any]], size: int = 1) -> Any:
    async def run() -> Any:
        pool = Pool(keeper, size, Metrics(), limits)
        await pool.start()
        try:
            return await do(pool)
        finally:
            await pool.stop()

    return asyncio.run(run())


def test_a_request_over_its_time_is_stopped_and_the_next_is_answered(keeper: Keeper) -> None:
    async def do(pool: Pool) -> tuple[Reply, Metrics]:
        with pytest.raises(BusyError, match=r"stopped: it took more than 1\.5 seconds"):
            await pool.ask("check", ENDLESS)
        return await pool.ask("check", OTHER), pool.metrics

    reply, metrics = with_pool(keeper, Limits(seconds=1.5), do)
    assert json.loads(reply.body)["ok"]
    assert (metrics.workers_killed, metrics.workers_started) == (1, 2)


def test_requests_that_wait_are_answered_in_one_pass(keeper: Keeper) -> None:
    async def do(pool: Pool) -> tuple[list[Reply], int, int]:
        first = asyncio.create_task(pool.ask("run", {}))  # while it is computed, the others wait
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(pool.ask("query", {**QUERY, "top": 1 + i % 2})) for i in range(10)]
        apart = asyncio.create_task(pool.ask("query", {**QUERY, "without": ["liesIn(n1, north)"]}))
        replies = await asyncio.gather(*waiting, apart)
        await first
        return list(replies), pool.metrics.passes, pool.metrics.answered_in_passes

    replies, passes, answered = with_pool(keeper, Limits(seconds=60.0), do)
    assert [reply.status for reply in replies] == [200] * 11
    assert [len(json.loads(reply.body)["results"][0]["answers"]) for reply in replies] == [1, 2] * 5 + [2]
    assert (passes, answered) == (3, 12)
    assert replies[10].body != replies[1].body


@pytest.mark.parametrize("change", [*CHANGES, "everything"])
def test_what_asks_of_other_facts_or_rules_is_answered_by_itself(change: str) -> None:
    assert pool._is_small({**QUERY, change: []})
    assert not pool._is_small({**QUERY, change: ["near(n2, s1)"]})


def test_one_that_is_stopped_takes_no_other_with_it(keeper: Keeper) -> None:
    async def do(pool: Pool) -> list[Reply | BaseException]:
        first = asyncio.create_task(pool.ask("run", {}))
        await asyncio.sleep(0)
        asked = [QUERY, {**QUERY, "queries": [ENDLESS["query"]]}, QUERY]
        found = await asyncio.gather(*(pool.ask("query", one) for one in asked), return_exceptions=True)
        await first
        return found

    first, second, third = with_pool(keeper, Limits(seconds=1.5), do)
    assert isinstance(second, BusyError)
    assert isinstance(first, Reply)
    assert first == third


def test_a_worker_that_ends_is_replaced(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[int] = []
    fork = Keeper.fork

    def noted(self: Keeper) -> tuple[int, socket.socket]:
        pid, connection = fork(self)
        pids.append(pid)
        return pid, connection

    monkeypatch.setattr(Keeper, "fork", noted)

    async def do(pool: Pool) -> Reply:
        task = asyncio.create_task(pool.ask("check", ENDLESS))
        while not pids:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        os.kill(pids[0], signal.SIGKILL)
        with pytest.raises(BusyError, match="its worker ended"):
            await task
        return await pool.ask("check", OTHER)

    assert with_pool(keeper, Limits(seconds=60.0), do).status == 200
    assert len(pids) == 2


def test_too_many_that_wait_are_refused_and_the_others_answered(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("r2n.serving.pool.monotonic", lambda: 0.0)  # nobody waits too long, however slow the machine

    async def do(pool: Pool) -> list[Reply | BaseException]:
        busy = asyncio.create_task(pool.ask("check", ENDLESS))
        await asyncio.sleep(0)
        while pool.metrics.waiting:
            await asyncio.sleep(0.01)
        waiting = [asyncio.create_task(pool.ask("check", OTHER)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="2 requests wait already"):
            await pool.ask("check", OTHER)
        return await asyncio.gather(busy, *waiting, return_exceptions=True)

    found = with_pool(keeper, Limits(seconds=1.0, waiting=2), do)
    assert isinstance(found[0], BusyError)
    assert all(isinstance(part, Reply) for part in found[1:])


def test_one_whose_turn_comes_too_late_is_given_up(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("r2n.serving.pool.monotonic", lambda: clock[0])

    async def do(pool: Pool) -> None:
        first = asyncio.create_task(pool.ask("run", {}))
        await asyncio.sleep(0)
        late = asyncio.create_task(pool.ask("check", OTHER))
        await asyncio.sleep(0)
        clock[0] = 61.0
        with pytest.raises(BusyError, match="no worker was free for 60 seconds"):
            await late
        await asyncio.gather(first, return_exceptions=True)

    with_pool(keeper, Limits(seconds=60.0), do)


def test_what_takes_its_time_is_computed_once(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    forks: list[int] = []
    fork = Keeper.fork
    monkeypatch.setattr(Keeper, "fork", lambda self: forks.append(1) or fork(self))

    async def do(pool: Pool) -> list[Reply]:
        replies = await asyncio.gather(*(pool.ask_once("run") for _ in range(3)))
        return [*replies, await pool.ask_once("run")]

    replies = with_pool(keeper, Limits(), do)
    assert all(reply == replies[0] for reply in replies)
    assert len(forks) == 2  # that of the pool, and the one that computed


def test_what_failed_is_tried_again(keeper: Keeper) -> None:
    async def do(pool: Pool) -> Reply:
        with pytest.raises(BusyError, match="more than 0 seconds"):
            await pool.ask_once("run")
        pool.limits = Limits()
        return await pool.ask_once("run")

    assert with_pool(keeper, Limits(report_seconds=0.0), do).status == 200


def test_where_no_worker_can_be_had_nothing_waits() -> None:
    own, other = socket.socketpair()
    keeper = Keeper(subprocess.Popen(["true"]), own, Limits())
    other.close()

    async def do(pool: Pool) -> str | None:
        with pytest.raises(BusyError, match="no worker can be started"):
            await pool.ask("check", OTHER)
        with pytest.raises(BusyError, match="no worker can be started"):
            await pool.ask("check", OTHER)
        return pool.broken

    assert with_pool(keeper, Limits(), do) is not None
    keeper.close()


def test_a_worker_that_is_there_only_after_the_end_is_ended(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    fork, begun = Keeper.fork, threading.Event()
    forked: list[tuple[int, socket.socket]] = []

    def slow(self: Keeper) -> tuple[int, socket.socket]:
        begun.set()
        time.sleep(0.2)  # the pool is stopped meanwhile
        forked.append(fork(self))
        return forked[-1]

    monkeypatch.setattr(Keeper, "fork", slow)
    with_pool(keeper, Limits(), lambda _: asyncio.to_thread(begun.wait, 10))
    [(pid, connection)] = forked
    assert connection.fileno() == -1
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_requests_of_clients_that_went_are_neither_computed_nor_waited_for(keeper: Keeper) -> None:
    """Over real sockets: 20 clients ask what never ends and go; a plain query is answered by the workers of before."""
    limits = Limits(seconds=10.0, waiting=20)

    async def asked(port: int, path: str, document: object) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps(document).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return reader, writer

    async def do() -> tuple[bytes, Metrics]:
        own, app = listening("127.0.0.1", 0), create_app(keeper, Access(), workers=2, limits=limits)
        server, port = make_server(app, limits), own.getsockname()[1]
        serving = asyncio.create_task(server.serve(sockets=[own]))
        heavy = [await asked(port, "/api/check", ENDLESS) for _ in range(20)]
        while not server.started or app.state.pool.metrics.waiting < 18:
            await asyncio.sleep(0.01)
        for _, writer in heavy:
            writer.close()
        reader, writer = await asked(port, "/api/query", QUERY)
        answer = await reader.read()
        writer.close()
        server.should_exit = True
        await serving
        return answer, app.state.pool.metrics

    answer, metrics = asyncio.run(do())
    assert answer.startswith(b"HTTP/1.1 200"), answer
    assert metrics.workers_killed == 2  # those that computed for the first two; the other 18 never reached one
    assert metrics.requests["/api/check", 499] == 20
    assert metrics.waiting == 0
