"""Work shared by processes, on one machine or several."""

import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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
class FabricGroup(ProcessGroup):
    """The processes of a training; `join` meets the others and returns its Fabric, `gone` says which one has ended."""

    join: Callable[[], Any]
    gone: Callable[[], str] = lambda: ""
    fabric: Any = field(default=None, init=False)

    def summed(self, values: Tensor) -> Tensor:
        """The sum over all; an error if one of them cannot be reached any more."""
        try:
            if self.fabric is None:
                self.fabric = self.join()
            return self.fabric.all_reduce(values, reduce_op="sum")
        except (RuntimeError, OSError) as error:
            line = (str(error).strip() or type(error).__name__).splitlines()[0]
            said = re.sub(r"^\[[^]]*\] *", "", line)[:160]  # without the line in torch's sources
            raise ProcessError(self.gone() or f"the processes do not reach each other: {said}", hint=GO_ON) from None


@contextmanager
def together(devices: int | None, options: TrainingOptions, work: Work, *arguments: object) -> Iterator[ProcessGroup]:
    """This process's group: alone, of torchrun or SLURM, or `devices` begun here for `work(group, *arguments)`."""
    count, device = begun_elsewhere(devices), options.device
    if (devices if count is None else count) in (None, 1):
        yield SINGLE
        return
    check_shared_options(options)
    if count is None and devices is not None:
        check_processes(devices, "--devices")
    kept = dict(os.environ)
    _driver()
    try:
        if count is None:
            with _begun_here(devices or 1, device, work, arguments) as group:
                yield group
        else:
            yield FabricGroup(_rank_elsewhere(), count, lambda: _fabric(count, device))
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()
        os.environ.clear()
        os.environ.update(kept)


def begun_elsewhere(devices: int | None) -> int | None:
    """How many processes torchrun, or SLURM if `devices` are asked for, has begun; None: neither has."""
    by_torchrun = "TORCHELASTIC_RUN_ID" in os.environ and "RANK" in os.environ
    by_slurm = devices is not None and "SLURM_PROCID" in os.environ and int(os.environ.get("SLURM_NTASKS", "1")) > 1
    if not by_torchrun and not by_slurm:
        return None
    count = int(os.environ["WORLD_SIZE" if by_torchrun else "SLURM_NTASKS"])
    if devices is not None and devices != count:
        who = "torchrun" if by_torchrun else "SLURM"
        raise ConfigError(f"{who} began {count} processes, --devices says {devices}", hint="say the same, or neither")
    return count


def _rank_elsewhere() -> int:
    return int(os.environ["RANK" if "TORCHELASTIC_RUN_ID" in os.environ else "SLURM_PROCID"])


def follows_elsewhere(devices: int | None) -> bool:
    """Whether this process was begun by torchrun or SLURM, and is not the one that writes."""
    return begun_elsewhere(devices) is not None and _rank_elsewhere() > 0


def _driver() -> Any:
    try:
        import lightning_fabric
    except ImportError:
        hint = "pip install r2n[distributed]"
        raise ConfigError("several processes need Lightning Fabric to train one network", hint=hint) from None
    return lightning_fabric


def _fabric(count: int, device: str) -> Any:
    """Fabric in this process, which meets the others if it has not yet."""
    from lightning_fabric.strategies.ddp import DDPStrategy

    kind = make_device(device).type
    nodes = int(os.environ.get("GROUP_WORLD_SIZE", os.environ.get("SLURM_NNODES", "1")))
    strategy = DDPStrategy(process_group_backend="nccl" if kind == "cuda" else "gloo")
    fabric = _driver().Fabric(accelerator=kind, devices=max(1, count // nodes), num_nodes=nodes, strategy=strategy)
    fabric.launch()
    return fabric


def fabric_environment(rank: int, port: int) -> dict[str, str]:
    """What Fabric reads of a process of this machine; processes meet on loopback only."""
    given = {"MASTER_ADDR": HERE, "MASTER_PORT": str(port), "NODE_RANK": "0", "LOCAL_RANK": str(rank)}
    loopback = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    return given | ({"GLOO_SOCKET_IFNAME": loopback[0]} if loopback else {})


def _met(rank: int, count: int, port: int, device: str, listening: socket.socket | None = None) -> Any:
    """Meet the other processes of this machine; the first one listens."""
    os.environ.update(fabric_environment(rank, port))
    patience, given = timedelta(seconds=SECONDS_TO_MEET), None if listening is None else os.dup(listening.fileno())
    store = distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
        HERE, port, count, rank == 0, timeout=patience, wait_for_workers=False, master_listen_fd=given
    )
    is_cuda = make_device(device).type == "cuda"
    if is_cuda:
        torch.cuda.set_device(rank)
    distributed.init_process_group("nccl" if is_cuda else "gloo", store=store, rank=rank, world_size=count)
    return _fabric(count, device)


@contextmanager
def _begun_here(count: int, device: str, work: Work, arguments: Sequence[Any]) -> Iterator[ProcessGroup]:
    """Begin the others, as child processes of this one."""
    with listener() as listening:
        port = listening.getsockname()[1]
        with _children(count, _follow, count, port, device, work, arguments) as others:

            def join() -> Any:
                for rank, other in enumerate(others, start=1):
                    _received(f"rank {rank}", *other, hint="was there memory?", when=", before the first step")
                return _met(0, count, port, device, listening)

            yield FabricGroup(0, count, join, partial(ended_process, others))
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

    def join() -> Any:
        connection.send("ready")
        return _met(rank, count, port, device)

    group = FabricGroup(rank, count, join, lambda: "rank 0 is gone")
    last_words = f"error: rank {rank}: rank 0 is gone, and the training is over\n  {GO_ON}\n"
    _work(connection, f"rank {rank}", partial(work, group, *arguments), last_words)
