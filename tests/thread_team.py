"""Processes of a training played by threads: the same exchange, without a network between them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor

from r2n.training.batches import ProcessGroup

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class _Table:
    count: int
    given: list[Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "barrier", threading.Barrier(self.count, timeout=60))
        self.given.extend([torch.zeros(0)] * self.count)


@dataclass(eq=False)
class ThreadTeam(ProcessGroup):
    table: _Table

    def summed(self, values: Tensor) -> Tensor:
        barrier: threading.Barrier = self.table.barrier  # pyright: ignore[reportAttributeAccessIssue]
        self.table.given[self.rank] = values
        barrier.wait()
        total = torch.stack(self.table.given).sum(0)
        barrier.wait()
        return total


def together(count: int, work: Callable[[ThreadTeam], Result]) -> list[Result]:
    table, found, failed = _Table(count), {}, []

    def begin(rank: int) -> None:
        try:
            found[rank] = work(ThreadTeam(rank, count, table))
        except BaseException as error:
            failed.append(error)
            table.barrier.abort()  # pyright: ignore[reportAttributeAccessIssue]

    threads = [threading.Thread(target=begin, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in failed:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    return [found[rank] for rank in range(count)]
