"""A run, served: a worker, a process that takes one job after the other and may be killed at any of them."""

import os
import resource
import socket
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from r2n.errors import R2NError, is_out_of_memory
from r2n.serving.about import about_constant
from r2n.serving.constants import check_query, search_constants
from r2n.serving.explaining import explain_atom
from r2n.serving.queries import answer_queries
from r2n.serving.replies import FAILED, REFUSED, Reply, error_document, refusal
from r2n.serving.reports import describe_run, report_rules, report_run
from r2n.serving.session import Session
from r2n.serving.what_if import what_if
from r2n.serving.wire import read_job, replies_frame

MOST_JOBS = 2_000  # then another takes its place, so that nothing that a library keeps grows without end
STATM = Path("/proc/self/statm")

JOBS: dict[str, Callable[[Session, Mapping[str, Any]], Reply]] = {
    "about": about_constant,
    "check": check_query,
    "constants": search_constants,
    "explain": explain_atom,
    "report": report_run,
    "rules": report_rules,
    "run": describe_run,
    "what-if": what_if,
}


def work(connection: socket.socket, session: Session) -> None:
    """Answer jobs until the other side goes, or until it is better to begin anew."""
    limit_memory(session.limits.memory)
    for number in range(1, MOST_JOBS + 1):
        job = read_job(connection)
        if job is None:
            return
        replies, is_last = run_job(session, *job)
        is_last = is_last or number == MOST_JOBS
        connection.sendall(replies_frame(replies, is_last=is_last))
        if is_last:
            return


def limit_memory(more: int) -> None:
    """From now on this process may take so many bytes more of address space, where the system tells how many it has."""
    if STATM.exists():
        pages = int(STATM.read_text().split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + more
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def run_job(session: Session, job: str, asked: Any) -> tuple[list[Reply], bool]:
    """The replies to a job, and whether this process should end: after a failure nobody knows what is left of it."""
    try:
        if job == "query":
            return _queries(session, asked), False
        return [JOBS[job](session, asked)], False
    except R2NError as error:
        return [refusal(error)], False
    except Exception as error:
        number = len(asked) if job == "query" else 1
        return [_failed(error)] * number, True


def _queries(session: Session, requests: Sequence[Mapping[str, Any]]) -> list[Reply]:
    """Together; where that fails, one by one, so that each has its own error."""
    try:
        return answer_queries(session, requests)
    except R2NError as error:
        if len(requests) == 1:
            return [refusal(error)]
        return [reply for request in requests for reply in _queries(session, [request])]


def _failed(error: Exception) -> Reply:
    if is_out_of_memory(error):
        what = "what is asked needs more memory than a request may take"
        return Reply.of(
            error_document(what, hint="ask for less: fewer queries, or a constant in place of a ?"), REFUSED
        )
    sys.stderr.write("".join(traceback.format_exception(error)))
    return Reply.of(error_document("the server failed to answer this; its log says more"), FAILED)
