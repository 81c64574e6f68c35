"""A process that has loaded r2n, and forks for every command: as a new one, without the seconds of its imports."""

import ctypes
import fcntl
import io
import itertools
import json
import mmap
import os
import resource
import signal
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

OPERATIONS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree")
MOST_SAID = 2**20
TOO_EARLY = 99  # the code of what was interrupted before it began
HANGS = 98  # and of what did not end by itself
MOST_SECONDS = 600  # on the clock of a machine that may be busy
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Conditions:
    """Under which a work is done: without root's rights, with little memory or room, with a clock that goes back.

    `more_memory`: bytes beyond what the process has already. `file_size`: of the largest file that may be written.
    `signal`: what is sent after so many seconds, to it and all that it began, where it is not kill -9.
    """

    obeys_modes: bool = False
    more_memory: int | None = None
    file_size: int | None = None
    clock_goes_back: bool = False
    closed_output: bool = False
    signal: int = signal.SIGKILL


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (None: killed), after how long, and the operations on files before."""

    code: int | None
    seconds: float
    operations: int
    said: str


class WarmProcess:
    """The end of it that gives the orders."""

    def __enter__(self) -> "WarmProcess":
        threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.warm_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads, "NO_PROXY": "127.0.0.1"},
        )
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.process.communicate(timeout=60)

    def run(
        self,
        work: str,
        *arguments: object,
        folder: Path,
        after: float | None = None,
        before: int | None = None,
        under: Conditions = Conditions(),  # noqa: B008  # frozen
    ) -> Ended:
        """Let it work in a folder, and kill it, if it is to be, after some seconds or before an operation."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        order = {"work": work, "arguments": [str(a) for a in arguments], "folder": str(folder)}
        self.process.stdin.write(json.dumps({**order, "after": after, "before": before, "under": asdict(under)}) + "\n")
        self.process.stdin.flush()
        return Ended(**json.loads(self.process.stdout.readline()))


def command(*arguments: str) -> None:
    from r2n.__main__ import main

    sys.argv = ["r2n", *arguments]
    main()


def fetch(address: str, cache: str, described: str) -> None:
    from r2n.datasets.benchmarks import Source, download

    sources = tuple(Source("owner/repo", "abc", path, *kept) for path, keeps in json.loads(described) for kept in keeps)
    download("kg", base=address, cache=Path(cache), sources=sources)


def train(problem: str, folder: str, networks: str) -> None:
    """A training as `r2n train --resume` makes it, every epoch of it kept, without the reports."""
    from r2n.data.problem import load_problem
    from r2n.model.run import prepare_run
    from r2n.model.training import train_in

    loaded = load_problem(Path(problem))
    run = prepare_run(loaded, loaded.options, 3, size=int(networks))
    for _ in train_in(Path(folder), run, resume=True, checkpoint_seconds=0):
        pass


def collate(problem: str, folder: str) -> None:
    """A grounding that is kept in parts, read for the first time: its arrays are laid beside it."""
    from r2n.data.problem import load_problem
    from r2n.grounding.cache import read_partitioned
    from r2n.grounding.full import FullGrounder

    assert read_partitioned(Path(folder), load_problem(Path(problem)).knowledge, FullGrounder()) is not None


WORKS: dict[str, Callable[..., None]] = {"r2n": command, "fetch": fetch, "train": train, "collate": collate}


def _watch(folder: str, before: int | None, counter: mmap.mmap) -> None:
    """Count the operations on files below a folder, and die before one of them."""

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in OPERATIONS or not isinstance(arguments[0], str | bytes | Path):
            return
        if event == "open" and not arguments[2] & WRITING:
            return
        if not str(Path(folder, os.fsdecode(arguments[0]))).startswith(folder):
            return
        count = struct.unpack("q", counter[:8])[0] + 1
        counter[:8] = struct.pack("q", count)
        if count == before:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hear)


def _set(under: Conditions) -> None:
    if under.file_size is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit is an error, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (under.file_size, resource.RLIM_INFINITY))
    if under.more_memory is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + under.more_memory
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    if under.clock_goes_back:
        seconds = itertools.count(2**31, -3600)
        time.time = lambda: float(next(seconds))
        time.time_ns = lambda: next(seconds) * 10**9
    if under.obeys_modes:
        version_3, nothing = 0x20080522, (ctypes.c_uint32 * 6)()  # modes of files then hold for root too
        assert ctypes.CDLL(None, use_errno=True).capset((ctypes.c_uint32 * 2)(version_3, 0), nothing) == 0
    if under.closed_output:
        reading, writing = os.pipe()
        os.dup2(writing, 1)
        os.close(reading)


def _child(order: dict[str, Any], said: int, counter: mmap.mmap) -> None:
    code = 1
    try:
        os.setpgid(0, 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))  # the other has been read
        os.chdir(order["folder"])
        _set(Conditions(**order["under"]))
        _watch(order["folder"], order["before"], counter)
        WORKS[order["work"]](*order["arguments"])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:  # before the work began
        code = TOO_EARLY
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(BrokenPipeError):
            sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _heard(said: int) -> str:
    """All that was said; processes that outlive the one that said it are not waited for."""
    os.set_blocking(said, False)
    with suppress(BlockingIOError), open(said, "rb", buffering=0) as file:
        return (file.read(MOST_SAID) or b"").decode("utf-8", "replace")
    return ""


def _waited_for(child: int) -> int | None:
    """Its exit code; None where a signal ended it. What hangs is killed, so that a test can say so."""
    hung = []

    def kill(*_: object) -> None:
        hung.append(child)
        with suppress(ProcessLookupError):  # it has just ended
            os.killpg(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, kill)
    signal.alarm(MOST_SECONDS)
    status = os.waitpid(child, 0)[1]
    signal.alarm(0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    if hung:
        return HANGS
    return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def main() -> None:
    import pooch  # noqa: F401
    import sklearn.metrics  # noqa: F401
    import torch
    import torch._dynamo  # an optimiser imports it when it is made

    import r2n.cli
    import r2n.model.training
    import r2n.reporting.pages  # noqa: F401

    torch.set_num_threads(1)  # a pool of threads would not outlive a fork
    for line in sys.stdin:
        order = json.loads(line)
        counter, (said, saying) = mmap.mmap(-1, 8), os.pipe()
        fcntl.fcntl(said, fcntl.F_SETPIPE_SZ, MOST_SAID)  # all is read at the end
        start, child = time.monotonic(), os.fork()
        if not child:
            try:
                _child(order, saying, counter)
            finally:
                os._exit(TOO_EARLY)
        with suppress(OSError):
            os.setpgid(child, child)
        if order["after"] is not None:
            time.sleep(max(0.0, start + order["after"] - time.monotonic()))
            os.killpg(child, order["under"]["signal"])  # until it is waited for, the number is its own
        code = _waited_for(child)
        os.close(saying)
        ended = {
            "code": code,
            "seconds": time.monotonic() - start,
            "operations": struct.unpack("q", counter[:8])[0],
            "said": _heard(said),
        }
        sys.stdout.write(json.dumps(ended) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
