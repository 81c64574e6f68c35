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
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

from r2n.errors import ConfigError, ProcessError, R2NError
from r2n.evaluation.ranking import ALONE, Share, in_order
from r2n.model.memory import make_device
from r2n.options import TrainingOptions
from r2n.training.batches import SINGLE, ProcessGroup
from r2n.training.fit import check_shared_options

Part = TypeVar("Part")
Work = Callable[..., object]
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


HERE = "127.0.0.1"
SECONDS_TO_MEET = 120
SECONDS_BETWEEN_LOOKS = 0.5
GO_ON = "its last checkpoint is whole: go on with --resume, with as many processes as you like"
"""Called with the team of a process that does not write, and what else it needs; found by its name elsewhere."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which process of how many this is, and where they meet; `port` 0: as the environment says."""

    rank: int
    count: int
    port: int = 0

    @property
    def environment(self) -> dict[str, str]:
        """What Fabric reads of it, for processes of one machine."""
        given = {"MASTER_ADDR": HERE, "MASTER_PORT": str(self.port), "NODE_RANK": "0", "LOCAL_RANK": str(self.rank)}
        loopback = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
        return given | ({"GLOO_SOCKET_IFNAME": loopback[0]} if loopback else {})


@dataclass(eq=False)
class FabricTeam:
    """The processes of a training, met at the first exchange.

    `join` brings this process to the others, and gives its Fabric; `gone` says which one is gone, where that is known.
    """

    rank: int
    count: int
    join: Callable[[], Any]
    gone: Callable[[], str] = lambda: ""
    fabric: Any = field(default=None, init=False)

    def summed(self, values: Tensor) -> Tensor:
        """The sum over all; a message where one of them cannot be heard any more."""
        try:
            if self.fabric is None:
                self.fabric = self.join()
            return self.fabric.all_reduce(values, reduce_op="sum")
        except (RuntimeError, OSError) as error:
            raise ProcessError(
                self.gone() or f"the processes do not reach each other: {_said(error)}", hint=GO_ON
            ) from None


@contextmanager
def together(devices: int | None, options: TrainingOptions, work: Work, *arguments: object) -> Iterator[ProcessGroup]:
    """The team of this process: alone, of those that torchrun or SLURM began, or of `devices` that are begun here.

    The others do `work(team, *arguments)`. Each process has a device of the kind that the options name.
    """
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
            with _begun_here(devices or 1, device, work, arguments) as team:
                yield team
        else:
            rank = _rank_elsewhere()
            yield FabricTeam(rank, count, lambda: _fabric(count, device))
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()
        os.environ.clear()
        os.environ.update(kept)


def begun_elsewhere(devices: int | None) -> int | None:
    """How many processes torchrun, or SLURM where `devices` are asked for, has begun; None: neither has."""
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
    """Fabric in this process, which meets the others where it has not yet."""
    from lightning_fabric.strategies.ddp import DDPStrategy

    kind = make_device(device).type
    nodes = int(os.environ.get("GROUP_WORLD_SIZE", os.environ.get("SLURM_NNODES", "1")))
    backend = "nccl" if kind == "cuda" else "gloo"
    fabric = _driver().Fabric(
        accelerator=kind,
        devices=max(1, count // nodes),
        num_nodes=nodes,
        strategy=DDPStrategy(process_group_backend=backend),
    )
    fabric.launch()
    return fabric


def _met(place: Place, device: str, listening: socket.socket | None = None) -> Any:
    """Meet the other processes of this machine; the first one listens, on loopback alone."""
    os.environ.update(place.environment)
    store = distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
        HERE,
        place.port,
        place.count,
        place.rank == 0,
        timeout=timedelta(seconds=SECONDS_TO_MEET),
        wait_for_workers=False,
        master_listen_fd=None if listening is None else os.dup(listening.fileno()),
    )
    if make_device(device).type == "cuda":
        torch.cuda.set_device(place.rank)
    backend = "nccl" if make_device(device).type == "cuda" else "gloo"
    distributed.init_process_group(backend, store=store, rank=place.rank, world_size=place.count)
    return _fabric(place.count, device)


@contextmanager
def _begun_here(count: int, device: str, work: Work, arguments: Sequence[Any]) -> Iterator[ProcessGroup]:
    """Begin the others, as processes of this one."""
    listening = _listening()
    port = listening.getsockname()[1]
    context = get_context("spawn")  # threads of torch and DuckDB do not survive a fork
    others: list[tuple[BaseProcess, Connection]] = []
    try:
        for rank in range(1, count):
            here, there = context.Pipe(duplex=False)
            place = Place(rank, count, port)
            process = context.Process(target=_follow, args=(place, device, there, work, arguments), daemon=True)
            begin(process)
            there.close()
            others.append((process, here))

        def join() -> Any:
            for rank, (process, connection) in enumerate(others, start=1):
                _wait_for(rank, count, process, connection)
            return _met(Place(0, count, port), device, listening)

        yield FabricTeam(0, count, join, lambda: _who_is_gone(others))
        for process, _ in others:
            process.join(SECONDS_TO_END)
    finally:
        listening.close()
        for process, connection in others:
            connection.close()
            process.kill()
        for process, _ in others:
            process.join()


def _listening() -> socket.socket:
    """A socket on loopback, at the port that the environment names, or any."""
    port = os.environ.get("MASTER_PORT", "0")
    made = socket.socket()
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HERE, int(port)))
        made.listen()
    except (OSError, ValueError, OverflowError) as error:
        made.close()
        raise ConfigError(
            f"rank 0 cannot listen at {HERE}:{port}, where the others are to meet it: {error}",
            hint="set MASTER_PORT to a port that is free, or leave it out, and one is found",
        ) from None
    return made


def _wait_for(rank: int, count: int, process: BaseProcess, connection: Connection) -> None:
    """Wait until another process is ready; its own error where it fails before."""
    try:
        message = connection.recv()
    except EOFError:
        raise ProcessError(f"{_end_of(rank, process)}, before the first step", hint="was there memory?") from None
    if isinstance(message, R2NError):
        raise message


def _who_is_gone(others: Sequence[tuple[BaseProcess, Connection]]) -> str:
    """Which process is gone, and how it ended; what it said last where it could say it."""
    wait([process.sentinel for process, _ in others], SECONDS_TO_END)
    for rank, (process, connection) in enumerate(others, start=1):
        if process.exitcode is not None:
            said = str(connection.recv()) if process.exitcode >= 0 and connection.poll() else ""
            return f"{_end_of(rank, process)}{f': {said}' if said else ''}"
    return ""


def _said(error: BaseException) -> str:
    """What torch says, without the place in its sources."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return re.sub(r"^\[[^]]*\] *", "", line)[:160]


def _end_of(rank: int, process: BaseProcess) -> str:
    process.join(SECONDS_TO_END)
    code = process.exitcode
    return f"rank {rank} " + (f"was killed by signal {-code}" if code is not None and code < 0 else "ended early")


def _follow(place: Place, device: str, connection: Connection, work: Work, arguments: Sequence[Any]) -> None:
    """What a process does that was begun here, from its first to its last moment."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who was asked to stop is rank 0
    threading.Thread(target=_end_with_first, args=(place,), daemon=True).start()

    def join() -> Any:
        connection.send("ready")
        return _met(place, device)

    try:
        work(FabricTeam(place.rank, place.count, join, lambda: "rank 0 is gone"), *arguments)
    except BrokenPipeError:
        return
    except R2NError as error:
        connection.send(error)
    except (OSError, MemoryError, RuntimeError) as error:
        connection.send(ProcessError(f"rank {place.rank}: {str(error) or type(error).__name__}"))


def _end_with_first(place: Place) -> None:
    """A process whose first one is gone says so, and is gone too."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        sys.stderr.write(f"error: rank {place.rank}: rank 0 is gone, and the training is over\n  {GO_ON}\n")
        sys.stderr.flush()
        os._exit(1)
