"""A run, served: the workers, and the jobs that wait for one of them."""

import asyncio
import socket
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any

from r2n.errors import R2NError
from r2n.serving.keeper import Keeper
from r2n.serving.limits import Limits
from r2n.serving.metrics import Metrics
from r2n.serving.replies import Reply
from r2n.serving.requests import CHANGES
from r2n.serving.wire import job_frame, read_replies

MOST_TOGETHER = 64  # requests in one pass
MOST_QUERIES_TOGETHER = 16  # of a request that is answered with others
MOST_ANSWERS_TOGETHER = 1_000
FRAME = 2**20


class BusyError(Exception):
    """A request is given up: it took too long, or too many others wait."""


@dataclass(eq=False)
class _Waiting:
    """A job that waits, and whether it may be answered together with others."""

    job: str
    asked: Mapping[str, Any]
    together: bool
    since: float = field(default_factory=lambda: monotonic())
    reply: "asyncio.Future[Reply]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(eq=False)
class _Worker:
    """A worker's process id, and the two ends of its socket."""

    pid: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def forked(cls, keeper: Keeper) -> "_Worker":
        """A new one. A fork is not stopped by the end of who asked for it: the worker is ended once it is there."""
        forking = asyncio.create_task(cls._forked(keeper))
        try:
            return await asyncio.shield(forking)
        except asyncio.CancelledError:
            with suppress(R2NError, OSError):
                await (await forking).ended(keeper)
            raise

    @classmethod
    async def _forked(cls, keeper: Keeper) -> "_Worker":
        pid, connection = await asyncio.to_thread(keeper.fork)
        return await cls.connected(pid, connection)

    @classmethod
    async def connected(cls, pid: int, connection: socket.socket) -> "_Worker":
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=FRAME)
        return cls(pid, reader, writer)

    async def ended(self, keeper: Keeper) -> None:
        """Kill it."""
        self.writer.close()
        with suppress(R2NError, OSError):
            await asyncio.to_thread(keeper.end, self.pid)


class Pool:
    """As many workers as there are `size`; each takes the job that has waited longest."""

    def __init__(self, keeper: Keeper, size: int, metrics: Metrics, limits: Limits | None = None) -> None:
        """Of the workers that a keeper forks; `limits` may be narrower than those that it was started with."""
        self.keeper, self.size, self.metrics = keeper, size, metrics
        self.limits: Limits = limits or keeper.limits
        self.broken: str | None = None
        self._waiting: deque[_Waiting] = deque()
        self._there = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._kept: dict[str, asyncio.Task[Reply]] = {}
        self._one_by_one = asyncio.Lock()

    async def start(self) -> None:
        """Begin to work."""
        self._tasks = [asyncio.create_task(self._serve()) for _ in range(self.size)]

    async def stop(self) -> None:
        """End all workers."""
        tasks = [*self._tasks, *self._kept.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def ask(self, job: str, asked: Mapping[str, Any]) -> Reply:
        """The reply to a job, as soon as a worker has it; a job whose caller is cancelled is not computed."""
        if self.broken is not None:
            raise BusyError(self.broken)
        if len(self._waiting) >= self.limits.waiting:
            raise BusyError(f"{self.limits.waiting:,} requests wait already")
        item = _Waiting(job, asked, together=job == "query" and _is_small(asked))
        self._waiting.append(item)
        self._there.set()
        self.metrics.waiting = len(self._waiting)
        try:
            return await item.reply
        finally:
            with suppress(ValueError):  # where a worker has taken it
                self._waiting.remove(item)
                self.metrics.waiting = len(self._waiting)

    async def ask_once(self, job: str) -> Reply:
        """The reply to a job that takes its time, computed at first use by a worker of its own, and kept."""
        task = self._kept.get(job)
        if task is None:
            task = self._kept[job] = asyncio.create_task(self._computed(job))
            task.add_done_callback(lambda done: self._keep(job, done))
        return await asyncio.shield(task)

    def _keep(self, job: str, done: "asyncio.Task[Reply]") -> None:
        """What failed is computed again when it is asked for again."""
        if done.cancelled() or done.exception() is not None or done.result().status != 200:
            self._kept.pop(job, None)

    async def _computed(self, job: str) -> Reply:
        async with self._one_by_one:
            worker = await self._forked()
            try:
                async with asyncio.timeout(self.limits.report_seconds):
                    return (await _asked(worker, job, {}))[0][0]
            except (TimeoutError, asyncio.IncompleteReadError, OSError) as error:
                raise BusyError(_given_up(error, self.limits.report_seconds)) from None
            finally:
                await worker.ended(self.keeper)

    async def _forked(self) -> _Worker:
        """A new worker; where there is none to be had any more, nothing is answered from now on."""
        try:
            worker = await _Worker.forked(self.keeper)
        except (R2NError, OSError) as error:
            self.broken = f"no worker can be started: {error}"
            while self._waiting:
                self._give_up([self._waiting.popleft()], self.broken)
            raise BusyError(self.broken) from None
        self.metrics.workers_started += 1
        return worker

    async def _serve(self) -> None:
        """One worker after the other, each with one job after the other."""
        while self.broken is None:
            with suppress(BusyError):
                worker = await self._forked()
                try:
                    while await self._serve_one(worker):
                        pass
                finally:
                    await asyncio.shield(worker.ended(self.keeper))

    async def _serve_one(self, worker: _Worker) -> bool:
        """Answer the next job; False where the worker takes no other, or where nobody waits for the answer any more."""
        items = await self._next()
        asked = [item.asked for item in items] if items[0].job == "query" else items[0].asked
        computed = asyncio.create_task(_asked(worker, items[0].job, asked))
        abandoned = asyncio.create_task(asyncio.wait([item.reply for item in items]))
        try:
            async with asyncio.timeout(self.limits.seconds):
                await asyncio.wait((computed, abandoned), return_when=asyncio.FIRST_COMPLETED)
            if not computed.done():
                self.metrics.workers_killed += 1
                return False
            replies, is_last = computed.result()
        except (TimeoutError, asyncio.IncompleteReadError, OSError) as error:
            self.metrics.workers_killed += 1
            self._give_up(items, _given_up(error, self.limits.seconds))
            return False
        except asyncio.CancelledError:
            self._give_up(items[:1], "the server ends")
            raise
        finally:
            computed.cancel()
            abandoned.cancel()
        for item, reply in zip(items, replies, strict=True):
            if not item.reply.done():
                item.reply.set_result(reply)
        return not is_last

    async def _next(self) -> list[_Waiting]:
        """The job that has waited longest, and others that can be answered in one pass with it."""
        while True:
            while not self._waiting:
                self._there.clear()
                await self._there.wait()
            first = self._waiting.popleft()
            items = [first]
            if first.together:
                others = [item for item in self._waiting if item.together][: MOST_TOGETHER - 1]
                taken = set(map(id, others))
                self._waiting = deque(item for item in self._waiting if id(item) not in taken)
                items += others
            self.metrics.waiting = len(self._waiting)
            items = [item for item in items if self._still_wanted(item)]
            if items:
                self.metrics.count_pass(len(items))
                return items

    def _still_wanted(self, item: _Waiting) -> bool:
        if item.reply.done():
            return False
        if monotonic() - item.since > self.limits.seconds:
            item.reply.set_exception(BusyError(f"no worker was free for {self.limits.seconds:g} seconds"))
            return False
        return True

    def _give_up(self, items: list[_Waiting], why: str) -> None:
        """A job alone is answered so; of several that were answered together each is tried again by itself."""
        if len(items) == 1:
            if not items[0].reply.done():
                items[0].reply.set_exception(BusyError(why))
            return
        for item in reversed(items):
            item.together, item.since = False, inf  # it has waited for its turn already
            self._waiting.appendleft(item)
        self._there.set()


async def _asked(worker: _Worker, job: str, asked: Any) -> tuple[list[Reply], bool]:
    worker.writer.write(job_frame(job, asked))
    await worker.writer.drain()
    return await read_replies(worker.reader)


def _given_up(error: BaseException, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"the request was stopped: it took more than {seconds:g} seconds"
    return "the request was stopped: its worker ended, most likely for want of memory"


def _is_small(asked: Mapping[str, Any]) -> bool:
    """Whether queries can be answered together with those of others: few, and about what is known to all."""
    is_plain = not any(asked.get(name) for name in (*CHANGES, "everything"))
    return is_plain and len(asked["queries"]) <= MOST_QUERIES_TOGETHER and asked["top"] <= MOST_ANSWERS_TOGETHER
