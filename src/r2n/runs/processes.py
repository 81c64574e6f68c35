"""Predictions -> a run: other processes of this machine that do a share of the work, and what becomes of them.

All do the same in the same order, each its own parts (`evaluation/shares.py`): process 0 is the one that asked, the
others are begun anew and load what they need themselves. They end with it, however it ends.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import torch

from r2n.errors import ConfigError, ProcessError, R2NError
from r2n.evaluation.shares import ALONE, Share, in_order

Part = TypeVar("Part")
Work = Callable[..., None]
"""Called with the share of a process, and what else the work needs; found again by its name in another process."""

SECONDS_TO_END = 5.0
MOST_PROCESSES = 64  # of one machine: each takes memory of its own, and more than cores are no faster


@dataclass(frozen=True, slots=True)
class _Failure:
    """What ended a process: an error to be raised again, or told in words."""

    error: R2NError


@dataclass(frozen=True, slots=True)
class HelperShare:
    """The share of process `number`, which hands over what it finds."""

    number: int
    count: int
    connection: Connection

    def takes(self, number: int) -> bool:
        """Every so many."""
        return number % self.count == self.number

    def together(self, own: Sequence[tuple[int, Part]]) -> list[Part]:
        """Hand over the parts done here."""
        self.connection.send(list(own))
        return in_order(own)


@dataclass(frozen=True, slots=True)
class LeadingShare:
    """The share of process 0, which gathers what all have found."""

    helpers: Sequence[tuple[BaseProcess, Connection]] = field(default=())

    @property
    def count(self) -> int:
        """It, and its helpers."""
        return len(self.helpers) + 1

    def takes(self, number: int) -> bool:
        """Every so many, from the first on."""
        return number % self.count == 0

    def together(self, own: Sequence[tuple[int, Part]]) -> list[Part]:
        """The parts of all, by their numbers."""
        found = list(own)
        for i, (process, connection) in enumerate(self.helpers, start=1):
            found += _received(i, self.count, process, connection)
        return in_order(found)


def _received(number: int, count: int, process: BaseProcess, connection: Connection) -> Any:
    """What a helper hands over; its own error where it has failed, and one that says so where it is gone."""
    try:
        message = connection.recv()
    except (EOFError, OSError):
        process.join(SECONDS_TO_END)
        code = process.exitcode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
        raise ProcessError(
            f"process {number + 1} of {count} {how}",
            hint="where memory ran out, ask for fewer --jobs: each holds the network and its ground rules",
        ) from None
    if isinstance(message, _Failure):
        raise message.error
    return message


@contextmanager
def shared(jobs: int | None, work: Work, *arguments: object) -> Iterator[Share]:
    """The share of this process, while `jobs` - 1 others do theirs: `work(share, *arguments)`.

    None: all of the work, with as many threads as torch takes. Else every process has one thread, so that the numbers
    are the same for any number of them.
    """
    if jobs is None:
        yield ALONE
        return
    check_processes(jobs, "--jobs")
    torch.set_num_threads(1)
    context = get_context("spawn")  # threads of torch and DuckDB do not survive a fork
    helpers: list[tuple[BaseProcess, Connection]] = []
    try:
        for number in range(1, jobs):
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=_help, args=(number, jobs, there, work, arguments), daemon=True)
            begin(process)
            there.close()
            helpers.append((process, here))
        yield LeadingShare(helpers)
    finally:
        for process, connection in helpers:
            connection.close()
            process.terminate()
        for process, _ in helpers:
            process.join()


def check_processes(count: int, option: str) -> None:
    """Refuse a number of processes that would take a machine's memory, before the first begins."""
    if not 1 <= count <= MOST_PROCESSES:
        hint = f"{option} is 1 to {MOST_PROCESSES}; more than this machine has cores are no faster"
        raise ConfigError(f"{count:,} processes cannot be begun", hint=hint)


def begin(process: BaseProcess) -> None:
    """Start a process that does not hear Ctrl-C, not even while it loads: who is asked to stop is who began it."""
    if not hasattr(signal, "pthread_sigmask"):
        process.start()
        return
    resource_tracker.ensure_running()  # its own start would let the signal through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _help(number: int, count: int, connection: Connection, work: Work, arguments: tuple[Any, ...]) -> None:
    """What a helper does, from its first to its last moment."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who was asked to stop is process 0
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    try:
        work(HelperShare(number, count, connection), *arguments)
    except BrokenPipeError:
        return
    except R2NError as error:
        connection.send(_Failure(error))
    except (OSError, MemoryError, RuntimeError) as error:
        connection.send(_Failure(ProcessError(f"process {number + 1} of {count}: {str(error) or repr(error)}")))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
