"""Processes of a training played by threads: the same exchange, without a network between them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from r2n.training.batches import ProcessGroup

Result = TypeVar("Result")


class _Table:
    """Where all threads put their tensors."""

    def __init__(self, count: int) -> None:
        self.given, self.barrier = [torch.zeros(0)] * count, threading.Barrier(count, timeout=60)


@dataclass(eq=False)
class ThreadGroup(ProcessGroup):
    table: _Table

    def summed(self, values: Tensor) -> Tensor:
        self.table.given[self.rank] = values
        self.table.barrier.wait()
        total = torch.stack(self.table.given).sum(0)
        self.table.barrier.wait()
        return total


def together(count: int, work: Callable[[ThreadGroup], Result]) -> list[Result]:
    table, found, failed = _Table(count), {}, []

    def begin(rank: int) -> None:
        try:
            found[rank] = work(ThreadGroup(rank, count, table))
        except BaseException as error:
            failed.append(error)
            table.barrier.abort()

    threads = [threading.Thread(target=begin, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in failed:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    return [found[rank] for rank in range(count)]
