"""Worker processes: time and memory limits, jobs that wait, crashes, abandoned requests."""

import asyncio
import json
import os
import select
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2n.errors import DataError
from r2n.serving import workers
from r2n.serving.app import create_app, listening, make_server
from r2n.serving.guards import Access, Metrics
from r2n.serving.queries import Request, check_query
from r2n.serving.session import CHANGES, Limits, Reply, Session
from r2n.serving.workers import Workers, run_job

QUERY = {"queries": ["liesIn(n2, ?)"], "top": 2}
ENDLESS, BUG, HUGE, PID, OTHER = ({"query": text} for text in ("endless", "bug", "huge", "pid", "liesIn(n0, ?)"))


@pytest.fixture(autouse=True)
def special_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are forks, so that what is patched here is patched there."""

    def special(session: Session, request: Mapping[str, Any]) -> object:
        if request == ENDLESS:
            while True:
                time.sleep(60)
        if request == BUG:
            raise KeyError("bug")
        if request == HUGE:
            return np.zeros(2**32, np.int8)  # more than the limit; without one it would be had
        return os.getpid() if request == PID else check_query(session, request)

    answer = workers.answer_queries

    def some_never_end(session: Session, requests: list[Request]) -> list[Reply]:
        for request in requests:
            if request["queries"] == ["endless"]:
                special(session, ENDLESS)
        return answer(session, requests)

    monkeypatch.setitem(workers.JOBS, "check", special)
    monkeypatch.setattr(workers, "answer_queries", some_never_end)


def with_workers(session: Session, do: Callable[[Workers], Awaitable[Any]], size: int = 1, **limits: Any) -> Any:
    async def run() -> Any:
        running = Workers(session, size, Metrics(), Limits(**{"seconds": 60.0, **limits}))
        await running.start()
        try:
            return await do(running)
        finally:
            await running.stop()

    return asyncio.run(run())


def what(reply: Reply) -> tuple[int, str]:
    return reply.status, json.loads(reply.body)["what"]


def process_of(reply: Reply) -> int:
    return json.loads(reply.body)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_so():
            await asyncio.sleep(0.01)


def test_a_request_over_its_time_is_stopped_and_the_next_is_answered(session: Session) -> None:
    async def do(running: Workers) -> tuple[Reply, Reply, Metrics]:
        return await running.ask("check", ENDLESS), await running.ask("check", OTHER), running.metrics

    stopped, after, metrics = with_workers(session, do, seconds=0.5)
    assert what(stopped) == (503, "the request was stopped: it took more than 0.5 seconds")
    assert after.status == 200
    assert (metrics.workers_killed, metrics.workers_started) == (1, 2)


@pytest.mark.parametrize(
    ("request_", "status", "message"),
    [
        (BUG, 500, "the server failed to answer this; its log says more"),
        (HUGE, 422, "what is asked needs more memory than a request may take"),
    ],
)
def test_after_an_unexpected_error_another_worker_takes_over(
    session: Session, capfd: pytest.CaptureFixture[str], request_: dict[str, str], status: int, message: str
) -> None:
    async def do(running: Workers) -> list[Reply]:
        return [await running.ask("check", one) for one in (PID, request_, PID)]

    before, failed, after = with_workers(session, do)
    assert what(failed) == (status, message)
    assert process_of(before) != process_of(after)
    assert ("KeyError: 'bug'" in capfd.readouterr().err) == (status == 500)


def test_requests_that_wait_are_answered_in_one_pass_unless_they_change_what_is_known(session: Session) -> None:
    async def do(running: Workers) -> tuple[list[Reply], Metrics]:
        first = asyncio.create_task(running.ask("run", {}))  # while it is computed, the others wait
        await asyncio.sleep(0)
        requests = [{**QUERY, "top": 1 + i % 2} for i in range(10)] + [{**QUERY, "without": ["liesIn(n1, north)"]}]
        replies = await asyncio.gather(*(running.ask("query", request) for request in requests))
        await first
        return list(replies), running.metrics

    replies, metrics = with_workers(session, do)
    assert [len(json.loads(reply.body)["results"][0]["answers"]) for reply in replies] == [1, 2] * 5 + [2]
    assert (metrics.passes, metrics.answered_in_passes) == (3, 12)
    assert replies[10].body != replies[1].body


@pytest.mark.parametrize("change", [*CHANGES, "everything"])
def test_a_request_about_other_facts_or_rules_is_answered_alone(change: str) -> None:
    assert workers.is_small({**QUERY, change: []})
    assert not workers.is_small({**QUERY, change: ["near(n2, s1)"]})


def test_a_request_that_is_stopped_does_not_stop_those_in_the_same_pass(session: Session) -> None:
    async def do(running: Workers) -> list[Reply]:
        first = asyncio.create_task(running.ask("run", {}))
        await asyncio.sleep(0)
        requests = [QUERY, {**QUERY, "queries": ["endless"]}, QUERY]
        found = await asyncio.gather(*(running.ask("query", one) for one in requests))
        await first
        return found

    first, second, third = with_workers(session, do, seconds=1.0)
    assert second.status == 503
    assert (first.status, first) == (200, third)


@pytest.mark.parametrize("busy", [True, False])
def test_a_worker_that_is_killed_is_replaced(session: Session, busy: bool) -> None:
    async def do(running: Workers) -> tuple[Reply | None, int, int]:
        pid = process_of(await running.ask("check", PID))
        task = asyncio.create_task(running.ask("check", ENDLESS)) if busy else None
        await asyncio.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        stopped = None if task is None else await task
        await asyncio.sleep(0.3)  # until its end is noticed
        return stopped, pid, process_of(await running.ask("check", PID))

    stopped, before, after = with_workers(session, do)
    assert after != before
    if stopped is not None:
        assert what(stopped) == (503, "the request was stopped: its worker ended, most likely for want of memory")


def test_a_worker_is_replaced_after_some_jobs(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MOST_JOBS", 2)

    async def do(running: Workers) -> list[int]:
        return [process_of(await running.ask("check", PID)) for _ in range(4)]

    first, second, third, fourth = with_workers(session, do)
    assert first == second != third == fourth


def test_as_many_requests_are_computed_at_once_as_there_are_workers(session: Session) -> None:
    async def do(running: Workers) -> Reply:
        endless = [asyncio.create_task(running.ask("check", ENDLESS)) for _ in range(2)]
        await until(lambda: running.metrics.passes == 2)
        reply = await running.ask("check", PID)
        assert not any(task.done() for task in endless)
        for task in endless:
            task.cancel()
        return reply

    assert with_workers(session, do, size=3).status == 200


def test_too_many_that_wait_and_those_that_wait_too_long_are_given_up(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(workers, "monotonic", lambda: clock[0])

    async def do(running: Workers) -> list[Reply]:
        first = asyncio.create_task(running.ask("check", ENDLESS))
        await until(lambda: running.metrics.passes == 1)
        waiting = [asyncio.create_task(running.ask("check", OTHER)) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await running.ask("check", OTHER)
        clock[0] = 61.0
        first.cancel()
        return [refused, *await asyncio.gather(*waiting)]

    refused, *late = with_workers(session, do, waiting=2)
    assert what(refused) == (503, "2 requests wait already")
    assert {what(reply) for reply in late} == {(503, "no worker was free for 60 seconds")}


def test_a_report_is_computed_once_unless_it_failed(session: Session, tmp_path: Path) -> None:
    computed = tmp_path / "computed"

    def run(*_: object) -> dict[str, int]:
        with computed.open("a") as file:
            file.write("x")
        if computed.stat().st_size == 1:
            raise DataError("not yet")
        return {"size": computed.stat().st_size}

    workers.JOBS["report"], kept = run, workers.JOBS["report"]

    async def do(running: Workers) -> list[Reply]:
        failed = await running.ask_once("report")
        return [failed, *await asyncio.gather(*(running.ask_once("report") for _ in range(3)))]

    try:
        failed, *replies = with_workers(session, do)
    finally:
        workers.JOBS["report"] = kept
    assert failed.status == 422
    assert [reply.body for reply in replies] == [b'{"size": 2}'] * 3


def test_if_no_worker_can_be_started_nothing_waits(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise BlockingIOError(11, "no process left")

    async def do(running: Workers) -> tuple[Reply, str | None, Reply, str | None]:
        running._end(0)
        with monkeypatch.context() as patch:
            patch.setattr("multiprocessing.popen_fork.Popen._launch", refused)
            reply, broken = await running.ask("check", OTHER), running.broken
        return reply, broken, await running.ask("check", OTHER), running.broken

    reply, broken, again, mended = with_workers(session, do)
    assert what(reply) == (503, "no worker can be started: [Errno 11] no process left")
    assert broken is not None
    assert (again.status, mended) == (200, None)


def test_workers_end_with_the_server_even_if_it_is_killed(session: Session) -> None:
    """A child of this test serves; it writes the process of its worker, and is killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:

        async def do(running: Workers) -> None:
            worker = process_of(await running.ask("check", PID))
            endless = asyncio.create_task(running.ask("check", ENDLESS))
            await asyncio.sleep(0.5)  # until the worker has it
            os.write(writer, str(worker).encode())
            await endless

        try:
            with_workers(session, do)
        finally:
            os._exit(1)
    worker = int(os.read(reader, 20))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(writer)
    is_closed = bool(select.select([reader], [], [], 10.0)[0])  # when the worker, which had the other end too, goes
    os.close(reader)
    assert is_closed, os.kill(worker, signal.SIGKILL)


def test_a_worker_shares_what_was_loaded(session: Session) -> None:
    """The memory of its own is little of what it has in all."""

    async def do(running: Workers) -> dict[str, int]:
        pid = process_of(await running.ask("check", PID))
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}

    sizes = with_workers(session, do)
    assert sizes["Private_Dirty"] + sizes["Private_Clean"] < sizes["Rss"] / 2


def test_requests_of_clients_that_went_are_neither_computed_nor_waited_for(session: Session) -> None:
    """Over real sockets: 20 clients ask what never ends and go; then a plain query is answered at once.

    Workers are forked while connections are open, and these are closed all the same.
    """
    limits = Limits(seconds=30.0, waiting=20)

    async def asked(port: int, path: str, document: object) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps(document).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return reader, writer

    async def do() -> tuple[bytes, Metrics]:
        own, app = listening("127.0.0.1", 0), create_app(session, Access(), workers=2, limits=limits)
        server, port = make_server(app, limits), own.getsockname()[1]
        serving = asyncio.create_task(server.serve(sockets=[own]))
        heavy = [await asked(port, "/api/check", ENDLESS) for _ in range(20)]
        await until(lambda: server.started and app.state.workers.metrics.waiting == 18)
        last = await asked(port, "/api/query", QUERY)
        for _, writer in heavy:
            writer.close()
        async with asyncio.timeout(20):
            answer = await last[0].read()  # to the end of the connection
        last[1].close()
        server.should_exit = True
        await serving
        return answer, app.state.workers.metrics

    answer, metrics = asyncio.run(do())
    assert answer.startswith(b"HTTP/1.1 200"), answer
    assert metrics.workers_killed == 2  # those that computed for the first two; the other 18 never reached one
    assert metrics.requests["/api/check", 499] == 20
    assert metrics.waiting == 0


def test_errors_of_a_job_are_replies(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    [reply] = run_job(session, "query", [{**QUERY, "with": ["!liesIn(n0, north)"]}])
    assert "is known to be true, and now given as false" in what(reply)[1]
    [reply] = run_job(session, "explain", {"atom": "liesIn(n2, ?)", "against": None, "depth": 1, "top": 1})
    assert "one is explained at a time" in what(reply)[1]

    def fails(_: Session, requests: list[Request]) -> list[Reply]:
        if len(requests) > 1 or requests[0]["top"] == 1:
            raise DataError("too much")
        return [Reply.from_document("fine")]

    monkeypatch.setattr(workers, "answer_queries", fails)
    replies = run_job(session, "query", [QUERY, {**QUERY, "top": 1}])  # together they fail, and so each is tried alone
    assert [reply.status for reply in replies] == [200, 422]
