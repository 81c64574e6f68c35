"""Work shared by processes, on one machine or several."""

import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import torch
from torch import Tensor, distributed

from r2n.errors import ConfigError, ProcessError, R2NError
from r2n.evaluation.ranking import ALONE, Shard
from r2n.model.memory import make_device
from r2n.options import TrainingOptions
from r2n.training.batches import SINGLE, ProcessGroup
from r2n.training.fit import check_shared_options

Work = Callable[..., object]
"""Called with the shard or the process group of a process, and more arguments; another process imports it by name."""

Children = Sequence[tuple[BaseProcess, Connection]]

SECONDS_TO_END = 5.0
SECONDS_TO_MEET = 120
MOST_PROCESSES = 64  # of one machine: each takes memory of its own, and more than cores are no faster
HERE = "127.0.0.1"
FEWER_JOBS = "if memory ran out, ask for fewer --jobs: each holds the network and its ground rules"
GO_ON = "its last checkpoint is complete: go on with --resume, with any number of processes"


@contextmanager
def shared(jobs: int | None, work: Work, *arguments: object) -> Iterator[Shard]:
    """The shard of this process, while `jobs` - 1 others do theirs: `work(shard, *arguments)`.

    None: all of the work, with as many threads as torch takes. Else every process has one thread, so that the numbers
    are the same for any number of them.
    """
    if jobs is None:
        yield ALONE
        return
    check_processes(jobs, "--jobs")
    torch.set_num_threads(1)
    with _children(jobs, _help, jobs, work, arguments) as helpers:
        yield Shard(0, jobs, partial(gathered, helpers))


def gathered(helpers: Children, own: list[Any]) -> list[Any]:
    """The parts of this process, and those that the helpers send."""
    for number, helper in enumerate(helpers, start=2):
        own += _received(f"process {number} of {len(helpers) + 1}", *helper, hint=FEWER_JOBS)
    return own


def check_processes(count: int, option: str) -> None:
    """Refuse a number of processes that would take a machine's memory, before the first begins."""
    if not 1 <= count <= MOST_PROCESSES:
        hint = f"{option} is 1 to {MOST_PROCESSES}; more than this machine has cores are no faster"
        raise ConfigError(f"{count:,} processes cannot be begun", hint=hint)


@contextmanager
def _children(count: int, target: Work, *arguments: object) -> Iterator[Children]:
    """Processes 1 to `count` - 1, each with a pipe to this one: `target(number, connection, *arguments)`."""
    context = get_context("spawn")  # threads of torch and DuckDB do not survive a fork
    started: list[tuple[BaseProcess, Connection]] = []
    try:
        for number in range(1, count):
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=target, args=(number, there, *arguments), daemon=True)
            begin(process)
            there.close()
            started.append((process, here))
        yield started
    finally:
        for process, connection in started:
            connection.close()
            process.kill()
        for process, _ in started:
            process.join()


def begin(process: BaseProcess) -> None:
    """Start a process that ignores Ctrl-C, also while it loads: only the process that began it is interrupted."""
    if not hasattr(signal, "pthread_sigmask"):
        process.start()
        return
    resource_tracker.ensure_running()  # its own start would let the signal through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _help(number: int, connection: Connection, count: int, work: Work, arguments: Sequence[Any]) -> None:
    """What a helper process does."""

    def hand_over(own: list[Any]) -> list[Any]:
        connection.send(own)
        return own

    torch.set_num_threads(1)
    _work(connection, f"process {number + 1} of {count}", partial(work, Shard(number, count, hand_over), *arguments))


def _work(connection: Connection, name: str, work: Callable[[], object], last_words: str = "") -> None:
    """Do the work of a child process and send its error; if its parent ends, it writes `last_words` and ends too."""

    def end_with_parent() -> None:
        parent = parent_process()
        if parent is not None:
            wait([parent.sentinel])
            sys.stderr.write(last_words)
            sys.stderr.flush()
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent is interrupted
    watch = threading.Thread(target=end_with_parent, daemon=True)
    watch.start()
    try:
        work()
    except BrokenPipeError:
        return
    except (R2NError, OSError, MemoryError, RuntimeError) as error:
        is_own = isinstance(error, R2NError)
        try:
            connection.send(error if is_own else ProcessError(f"{name}: {str(error) or type(error).__name__}"))
        except BrokenPipeError:
            watch.join(SECONDS_TO_END)  # the parent has ended, and so will this process


def _received(name: str, process: BaseProcess, connection: Connection, *, hint: str, when: str = "") -> Any:
    """What a child process sends; if it sent an error, or ended, that is raised."""
    try:
        message = connection.recv()
    except (EOFError, OSError):
        raise ProcessError(f"{name} {_end_of(process)}{when}", hint=hint) from None
    if isinstance(message, R2NError):
        raise message
    return message


def _end_of(process: BaseProcess) -> str:
    process.join(SECONDS_TO_END)
    code = process.exitcode
    return f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"


@dataclass(eq=False)
class TorchGroup(ProcessGroup):
    """The processes of a training; `join` meets the others, `gone` says which one has ended."""

    device: torch.device
    join: Callable[[], None]
    gone: Callable[[], str] = lambda: ""

    def summed(self, values: Tensor) -> Tensor:
        """The sum over all; an error if one of them cannot be reached any more."""
        try:
            if not distributed.is_initialized():
                self.join()
            total = values.to(self.device, copy=True)
            distributed.all_reduce(total)
            return total
        except (RuntimeError, OSError) as error:
            line = (str(error).strip() or type(error).__name__).splitlines()[0]
            said = re.sub(r"^\[[^]]*\] *", "", line)[:160]  # without the line in torch's sources
            raise ProcessError(self.gone() or f"the processes do not reach each other: {said}", hint=GO_ON) from None


@contextmanager
def together(devices: int | None, options: TrainingOptions, work: Work, *arguments: object) -> Iterator[ProcessGroup]:
    """This process's group: alone, of torchrun, or `devices` begun here for `work(group, *arguments)`."""
    count, device = begun_elsewhere(devices), options.device
    if (devices if count is None else count) in (None, 1):
        yield SINGLE
        return
    check_shared_options(options)
    if count is None and devices is not None:
        check_processes(devices, "--devices")
    try:
        if count is None:
            with _begun_here(devices or 1, device, work, arguments) as group:
                yield group
        else:  # torchrun says in the environment where they meet
            local, meet = int(os.environ.get("LOCAL_RANK", "0")), distributed.init_process_group
            own = _own_device(local, device)
            yield TorchGroup(int(os.environ["RANK"]), count, own, partial(meet, _backend(own)))
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()


def begun_elsewhere(devices: int | None) -> int | None:
    """How many processes torchrun has begun; None if it has not."""
    if "TORCHELASTIC_RUN_ID" not in os.environ or "RANK" not in os.environ:
        return None
    count = int(os.environ["WORLD_SIZE"])
    if devices is not None and devices != count:
        what = f"torchrun began {count} processes, --devices says {devices}"
        raise ConfigError(what, hint="say the same, or leave out --devices")
    return count


def follows_elsewhere(devices: int | None) -> bool:
    """Whether this process was begun by torchrun, and is not the one that writes."""
    return begun_elsewhere(devices) is not None and int(os.environ["RANK"]) > 0


def _own_device(rank: int, device: str) -> torch.device:
    """The device of a process of this machine."""
    kind = make_device(device).type
    if kind == "cuda":
        torch.cuda.set_device(rank)
        return torch.device(kind, rank)
    return torch.device("cpu")  # gloo exchanges tensors of the CPU


def _backend(device: torch.device) -> str:
    return "nccl" if device.type == "cuda" else "gloo"


def _meet(rank: int, count: int, port: int, device: torch.device, listening: socket.socket | None = None) -> None:
    """Meet the other processes of this machine on loopback; the first one listens."""
    for _, name in socket.if_nameindex():
        if name in ("lo", "lo0"):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
    patience, given = timedelta(seconds=SECONDS_TO_MEET), None if listening is None else os.dup(listening.fileno())
    store = distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
        HERE, port, count, rank == 0, timeout=patience, wait_for_workers=False, master_listen_fd=given
    )
    distributed.init_process_group(_backend(device), store=store, rank=rank, world_size=count)


@contextmanager
def _begun_here(count: int, device: str, work: Work, arguments: Sequence[Any]) -> Iterator[ProcessGroup]:
    """Begin the others, as child processes of this one."""
    with listener() as listening:
        port, own = listening.getsockname()[1], _own_device(0, device)
        with _children(count, _follow, count, port, device, work, arguments) as others:

            def join() -> None:
                for rank, other in enumerate(others, start=1):
                    _received(f"rank {rank}", *other, hint="was there memory?", when=", before the first step")
                _meet(0, count, port, own, listening)

            yield TorchGroup(0, count, own, join, partial(ended_process, others))
            for process, _ in others:
                process.join(SECONDS_TO_END)


def listener() -> socket.socket:
    """A socket on loopback, at the port that the environment names, or any."""
    port = os.environ.get("MASTER_PORT", "0")
    made = socket.socket()
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HERE, int(port)))
        made.listen()
    except (OSError, ValueError, OverflowError) as error:
        made.close()
        what = f"rank 0 cannot listen at {HERE}:{port}, where the others are to meet it: {error}"
        hint = "set MASTER_PORT to a port that is free, or leave it out, and one is found"
        raise ConfigError(what, hint=hint) from None
    return made


def ended_process(others: Children) -> str:
    """Which process has ended, how, and the error that it sent, if it could."""
    ended = wait([process.sentinel for process, _ in others], SECONDS_TO_END)
    for rank, (process, connection) in enumerate(others, start=1):
        if process.sentinel in ended:
            process.join(SECONDS_TO_END)  # its pipe closes a moment before its exit code is there
        if process.exitcode is not None:
            said = f": {connection.recv()}" if process.exitcode >= 0 and connection.poll() else ""
            return f"rank {rank} {_end_of(process)}{said}"
    return ""


def _follow(
    rank: int, connection: Connection, count: int, port: int, device: str, work: Work, arguments: Sequence[Any]
) -> None:
    """What a process of a training does that was begun here."""

    own = _own_device(rank, device)

    def join() -> None:
        connection.send("ready")
        _meet(rank, count, port, own)

    group = TorchGroup(rank, count, own, join, lambda: "rank 0 is gone")
    last_words = f"error: rank {rank}: rank 0 is gone, and the training is over\n  {GO_ON}\n"
    _work(connection, f"rank {rank}", partial(work, group, *arguments), last_words)
