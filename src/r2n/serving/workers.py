"""Worker processes: forks of the server that share the loaded run, compute one job at a time, and can be killed."""

import asyncio
import ctypes
import multiprocessing
import os
import resource
import signal
import stat
import sys
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from r2n.errors import DataError, R2NError, is_out_of_memory
from r2n.serving.guards import Metrics
from r2n.serving.queries import JOBS, answer_queries
from r2n.serving.session import BUSY, CHANGES, FAILED, Failure, Limits, RefusedError, Reply, Session

MOST_JOBS = 2_000  # of a worker, so that nothing that a library keeps grows without end
MOST_TOGETHER = 64  # requests in one pass
MOST_QUERIES_TOGETHER = 16  # of a request that is answered with others
MOST_ANSWERS_TOGETHER = 1_000
SECONDS_BETWEEN_LOOKS = 5.0  # of a worker, whether the server is there
BUG, OUT_OF_MEMORY = 70, 71  # exit codes of a worker
PR_SET_PDEATHSIG = 1
STATM = Path("/proc/self/statm")

# in a worker


def _work(session: Session, requests: Connection, replies: Connection) -> None:
    """Answer jobs until the server closes the pipe, or is gone.

    A worker keeps the session of the server, but neither its connections nor its signal handlers. An unexpected error
    ends it, since nobody knows what state that left behind.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a handler in Python would wait for the end of a call of C
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server is asked to stop, and stops its workers
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # when the server goes, all go
    nothing = os.open(os.devnull, os.O_RDWR)
    for path in Path("/dev/fd").iterdir():
        descriptor = int(path.name)
        with suppress(OSError):  # the one of the listing is closed
            if descriptor > 2 and stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.dup2(nothing, descriptor)  # a connection ends when the server closes it
    torch.set_num_threads(1)  # a pool of threads does not survive a fork
    if STATM.exists():  # the system states the size of this process
        most = int(STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") + session.limits.memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    server = os.getppid()
    with suppress(EOFError, BrokenPipeError):
        while os.getppid() == server:
            if not requests.poll(SECONDS_BETWEEN_LOOKS):
                continue
            job = requests.recv()
            try:
                found = run_job(session, *job)
            except Exception as error:
                if is_out_of_memory(error):
                    os._exit(OUT_OF_MEMORY)
                traceback.print_exception(error)
                sys.stderr.flush()
                os._exit(BUG)
            replies.send(found)


def run_job(session: Session, job: str, request: Any) -> list[Reply]:
    """The reply to a request; queries come as a list of requests, and if they fail together, each is tried alone."""
    try:
        if job == "query":
            return answer_queries(session, request)
        return [Reply.from_document(JOBS[job](session, request))]
    except RefusedError as error:
        return [error.reply]
    except R2NError as error:
        if job == "query" and len(request) > 1:
            return [reply for one in request for reply in run_job(session, job, [one])]
        return [Reply.from_error(error)]


# in the server


def busy(what: str) -> Reply:
    """The reply to a request that is given up."""
    return Reply.from_document(Failure(what, hint="ask for less, or ask again later"), BUSY)


@dataclass(eq=False)
class _Waiting:
    """A job that waits, and whether it may be answered in one pass with others."""

    job: str
    request: Mapping[str, Any]
    together: bool
    since: float = field(default_factory=lambda: monotonic())
    reply: "asyncio.Future[Reply]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(eq=False)
class _Worker:
    """A fork of the server, and the pipes to and from it (which are no sockets)."""

    process: BaseProcess
    requests: Connection
    replies: Connection
    jobs: int = 0

    @classmethod
    def fork(cls, session: Session) -> "_Worker":
        context = multiprocessing.get_context("fork")
        (there, requests), (replies, back) = context.Pipe(duplex=False), context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(session, there, back), daemon=True)
        process.start()
        there.close()
        back.close()
        return cls(process, requests, replies)


class Workers:
    """`size` processes; each takes the job that has waited longest. One more computes reports, which are kept."""

    def __init__(self, session: Session, size: int, metrics: Metrics, limits: Limits | None = None) -> None:
        """Serve a loaded run; `limits` may be narrower than its own."""
        self.session, self.size, self.metrics = session, size, metrics
        self.limits: Limits = limits or session.limits
        self.broken: str | None = None
        self._workers: dict[int, _Worker] = {}
        self._waiting: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._kept: dict[str, asyncio.Task[Reply]] = {}
        self._one_by_one = asyncio.Lock()

    async def start(self) -> None:
        """Fork the workers, and begin to give them jobs."""
        for number in range(self.size):
            self._worker(number)
        self._tasks = {asyncio.create_task(self._serve(number)) for number in range(self.size)}

    async def stop(self) -> None:
        """End all workers."""
        tasks = [*self._tasks, *self._kept.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for number in list(self._workers):
            self._end(number)

    async def ask(self, job: str, request: Mapping[str, Any]) -> Reply:
        """The reply to a job; a job whose caller is cancelled is not computed any further."""
        if len(self._waiting) >= self.limits.waiting:
            return busy(f"{self.limits.waiting:,} requests wait already")
        item = _Waiting(job, request, together=job == "query" and is_small(request))
        self._waiting.append(item)
        self._arrived.set()
        self.metrics.waiting = len(self._waiting)
        try:
            return await item.reply
        finally:
            with suppress(ValueError):  # if a worker has taken it
                self._waiting.remove(item)
                self.metrics.waiting = len(self._waiting)

    async def ask_once(self, job: str) -> Reply:
        """The reply to a job that takes long: computed at the first request, and kept unless it failed."""
        if job not in self._kept:
            self._kept[job] = asyncio.create_task(self._compute_report(job))
        return await asyncio.shield(self._kept[job])

    async def _compute_report(self, job: str) -> Reply:
        async with self._one_by_one:
            [reply] = await self._compute(self.size, self.limits.report_seconds, job, {})
        if reply.status != 200:
            del self._kept[job]
        return reply

    async def _serve(self, number: int) -> None:
        """Give jobs to a worker, one after the other."""
        while True:
            items = await self._next()
            request = [item.request for item in items] if items[0].job == "query" else items[0].request
            replies = await self._compute(number, self.limits.seconds, items[0].job, request, items)
            if len(replies) < len(items):  # several were stopped together: each is tried again alone
                for item in reversed(items):
                    item.together, item.since = False, inf  # it has waited for its turn already
                    self._waiting.appendleft(item)
                self._arrived.set()
                continue
            for item, reply in zip(items, replies, strict=True):
                if not item.reply.done():
                    item.reply.set_result(reply)

    async def _next(self) -> list[_Waiting]:
        """The job that has waited longest, and others that can be answered in one pass with it."""
        while True:
            while not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
            items = [self._waiting.popleft()]
            if items[0].together:
                items += [item for item in self._waiting if item.together][: MOST_TOGETHER - 1]
                taken = set(map(id, items))
                self._waiting = deque(item for item in self._waiting if id(item) not in taken)
            self.metrics.waiting = len(self._waiting)
            for item in items:
                if not item.reply.done() and monotonic() - item.since > self.limits.seconds:
                    item.reply.set_result(busy(f"no worker was free for {self.limits.seconds:g} seconds"))
            if items := [item for item in items if not item.reply.done()]:
                self.metrics.passes += 1
                self.metrics.answered_in_passes += len(items)
                return items

    async def _compute(
        self, number: int, seconds: float, job: str, request: Any, items: Sequence[_Waiting] = ()
    ) -> list[Reply]:
        """The replies of a worker, or one that says why there are none; none, if nobody waits for `items` any more."""
        try:
            worker = self._worker(number)
            worker.requests.send((job, request))
            worker.jobs += 1
        except OSError as error:
            self._end(number)
            self.broken = f"no worker can be started: {error}"
            return [busy(self.broken)]
        self.broken, loop = None, asyncio.get_running_loop()
        answered: asyncio.Future[None] = loop.create_future()

        def look(_: object = None) -> None:
            if items and all(item.reply.done() for item in items):
                answered.cancel()  # nobody waits any more

        for item in items:
            item.reply.add_done_callback(look)
        loop.add_reader(worker.replies.fileno(), lambda: answered.done() or answered.set_result(None))
        try:
            await asyncio.wait([answered], timeout=seconds)
            loop.remove_reader(worker.replies.fileno())
            if answered.done() and not answered.cancelled():
                return await asyncio.to_thread(worker.replies.recv)
            failure = [] if answered.cancelled() else [_failure(None, seconds)]
        except (EOFError, OSError):  # it has ended
            worker.process.join(SECONDS_BETWEEN_LOOKS)
            failure = [_failure(worker.process.exitcode, seconds)]
        except asyncio.CancelledError:
            loop.remove_reader(worker.replies.fileno())
            self._end(number)
            raise
        self._end(number)
        self.metrics.workers_killed += 1
        return failure

    def _worker(self, number: int) -> _Worker:
        """The worker of a number; the last one computes reports. A dead or an old one is replaced."""
        worker = self._workers.get(number)
        if worker is not None and (not worker.process.is_alive() or worker.jobs >= MOST_JOBS):
            self._end(number)
        if number not in self._workers:
            self._workers[number] = _Worker.fork(self.session)
            self.metrics.workers_started += 1
        return self._workers[number]

    def _end(self, number: int) -> None:
        """Kill a worker, whatever it does."""
        worker = self._workers.pop(number, None)
        if worker is not None:
            worker.process.kill()
            worker.process.join()
            worker.requests.close()
            worker.replies.close()


def _failure(code: int | None, seconds: float) -> Reply:
    """The reply to a job whose worker was stopped (None), or has ended with an exit code."""
    if code == BUG:
        return Reply.from_document(Failure("the server failed to answer this; its log says more"), FAILED)
    if code == OUT_OF_MEMORY:
        hint = "ask for less: fewer queries, or replace a ? by a constant"
        return Reply.from_error(DataError("what is asked needs more memory than a request may take", hint=hint))
    if code is None:
        return busy(f"the request was stopped: it took more than {seconds:g} seconds")
    return busy("the request was stopped: its worker ended, most likely for want of memory")


def is_small(request: Mapping[str, Any]) -> bool:
    """Whether queries can be answered in one pass with those of others: few, and about what is known to all."""
    is_plain = not any(request.get(name) for name in (*CHANGES, "everything"))
    return is_plain and len(request["queries"]) <= MOST_QUERIES_TOGETHER and request["top"] <= MOST_ANSWERS_TOGETHER
