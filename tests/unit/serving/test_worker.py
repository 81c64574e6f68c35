"""A worker: one job after the other, within its memory."""

import asyncio
import json
import os
import socket
from threading import Thread
from typing import Any

import numpy as np
import pytest

from r2n.errors import DataError
from r2n.serving import worker
from r2n.serving.replies import Reply
from r2n.serving.session import Session
from r2n.serving.wire import job_frame, read_replies
from r2n.serving.worker import limit_memory, run_job, work

QUERY = {"queries": ["liesIn(n2, ?)"], "top": 2}


def test_every_job_is_answered(session: Session) -> None:
    replies, is_last = run_job(session, "query", [QUERY, {**QUERY, "queries": ["liesIn"]}])
    assert ([reply.status for reply in replies], is_last) == ([200, 422], False)
    replies, is_last = run_job(session, "run", {})
    assert (replies[0].status, is_last) == (200, False)


def test_an_error_of_the_whole_request_is_told(session: Session) -> None:
    replies, is_last = run_job(session, "query", [{**QUERY, "with": ["!liesIn(n0, north)"]}])
    assert (replies[0].status, is_last) == (422, False)
    assert "is known to be true, and now told to be false" in json.loads(replies[0].body)["what"]
    replies, _ = run_job(session, "explain", {"atom": "liesIn(n2, ?)", "against": None, "depth": 1, "top": 1})
    assert "one is explained at a time" in json.loads(replies[0].body)["what"]


def test_several_that_fail_together_are_answered_one_by_one(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(session: Session, requests: list[dict[str, Any]]) -> list[Reply]:
        if len(requests) > 1 or requests[0]["top"] == 1:
            raise DataError("too much")
        return [Reply.of("fine")]

    monkeypatch.setattr(worker, "answer_queries", fails)
    replies, is_last = run_job(session, "query", [QUERY, {**QUERY, "top": 1}])
    assert ([reply.status for reply in replies], is_last) == ([200, 422], False)


@pytest.mark.parametrize(("error", "status"), [(MemoryError(), 422), (KeyError("bug"), 500)])
def test_after_a_failure_the_worker_ends(
    session: Session, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], error: Exception, status: int
) -> None:
    def fails(*_: object) -> Reply:
        raise error

    monkeypatch.setitem(worker.JOBS, "run", fails)
    replies, is_last = run_job(session, "run", {})
    assert (replies[0].status, is_last) == (status, True)
    assert ("Traceback" in capfd.readouterr().err) == (status == 500)
    assert b"bug" not in replies[0].body


def test_it_works_until_the_other_side_goes(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "limit_memory", lambda more: None)  # it is the test's own process
    monkeypatch.setattr(worker, "MOST_JOBS", 2)
    own, other = socket.socketpair()
    thread = Thread(target=work, args=(other, session))
    thread.start()

    async def asked() -> list[tuple[int, bool]]:
        reader, writer = await asyncio.open_unix_connection(sock=own)
        found = []
        for _ in range(2):
            writer.write(job_frame("query", [QUERY]))
            replies, is_last = await read_replies(reader)
            found.append((replies[0].status, is_last))
        writer.close()
        return found

    assert asyncio.run(asked()) == [(200, False), (200, True)]  # after so many jobs another takes its place
    thread.join(10)
    assert not thread.is_alive()
    other.close()


def test_a_process_gets_no_more_memory_than_it_may_take() -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            limit_memory(64 * 2**20)
            np.ones(2**20)
            try:
                np.ones(2**26)
            except MemoryError:
                code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
