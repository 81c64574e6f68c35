"""A server that listens, as `r2n serve` starts it, for tests that need real connections; 127.0.0.1 alone."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

SECONDS_TO_START = 120.0


@dataclass(frozen=True, eq=False)
class Listening:
    """A running server: its port, and its process with those below it."""

    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def connect(self, seconds: float = 30.0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)

    def memory(self) -> int:
        """Bytes of memory of the server, its keeper and its workers; what several share is counted once (PSS)."""
        return sum(_proportional(pid) for pid in _family(self.process.pid))


@contextmanager
def listening(run: Path, *options: str) -> Iterator[Listening]:
    """Start a server, and end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "r2n", "serve", str(run), "--port", str(port), *options]
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        _wait(port, process)
        yield Listening(port, process)
    finally:
        process.terminate()
        process.wait(30)


def _wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Until it answers; the socket listens before the run is loaded, so that an answer has to come."""
    end = monotonic() + SECONDS_TO_START
    while monotonic() < end and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_TO_START) as connection:
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                if connection.recv(12).endswith(b"200"):
                    return
        except OSError:
            sleep(0.1)
    raise AssertionError("the server did not start")


def _family(pid: int) -> list[int]:
    children = [
        int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()
    ]
    return [pid, *(each for child in children for each in _family(child))]


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # it has ended
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
