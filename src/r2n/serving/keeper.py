"""A run, served: the process that loads the run once, and forks the workers, which so share all that was loaded.

It works only while it loads, so that a fork of it is whole at any time; the server itself, with its event loop, is
never forked. Orders come over a socket: fork a worker at the other end of the socket that is sent along, or
end one. When the server goes, all go.
"""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from r2n.errors import ConfigError, Location, R2NError
from r2n.serving.limits import Limits

MESSAGE = 2**16  # bytes of the longest order or answer


@dataclass(frozen=True, eq=False)
class Keeper:
    """The server's end of it."""

    process: "subprocess.Popen[bytes]"
    control: socket.socket
    limits: Limits
    lock: Lock = field(default_factory=Lock)

    @classmethod
    def start(cls, folder: Path, limits: Limits) -> "Keeper":
        """Load the run in a folder, in a process of its own."""
        if not hasattr(os, "fork"):
            raise ConfigError("a run is served by forks of one process, which this system has not", hint="take Linux")
        own, other = socket.socketpair()
        settable = {name: value for name, value in limits.to_dict().items() if name in Limits.settable()}
        asked = json.dumps({"folder": str(folder), "control": other.fileno(), "limits": settable})
        command = [sys.executable, "-m", "r2n.serving.keeper", asked]
        process = subprocess.Popen(command, pass_fds=[other.fileno()], start_new_session=True, stdin=subprocess.DEVNULL)
        other.close()
        keeper = cls(process, own, limits)
        try:
            loaded = _received(own)
        except ConfigError:
            keeper.close()
            raise
        if "what" in loaded:
            keeper.close()
            where = Location(loaded["where"]) if loaded["where"] else None
            raise R2NError(loaded["what"], where=where, hint=loaded["hint"])
        return keeper

    def fork(self) -> tuple[int, socket.socket]:
        """A new worker: its process id, and the socket that it takes jobs from."""
        own, other = socket.socketpair()
        try:
            with self.lock, other:
                socket.send_fds(self.control, [b'{"do": "fork"}'], [other.fileno()])
                return _received(self.control)["pid"], own
        except BaseException:
            own.close()
            raise

    def end(self, worker: int) -> None:
        """End a worker, whatever it does; one that has ended is no error."""
        with self.lock:
            self.control.sendall(json.dumps({"do": "end", "pid": worker}).encode())
            _received(self.control)

    def close(self) -> None:
        """End all workers, and the process itself."""
        self.control.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _received(control: socket.socket) -> dict[str, Any]:
    message = control.recv(MESSAGE)
    if not message:
        raise ConfigError("the process that holds the run has ended", hint="its last words stand above; start again")
    return json.loads(message)


# the other end

Work = Callable[[socket.socket], None]


def main() -> None:
    """Load, say so, and take orders."""
    import torch

    asked = json.loads(sys.argv[1])
    control = socket.socket(fileno=asked["control"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)  # a pool of threads would not outlive a fork
    from r2n.serving.session import Session
    from r2n.serving.worker import work

    try:
        session = Session.load(Path(asked["folder"]), Limits(**asked["limits"]))
    except R2NError as error:
        where = None if error.where is None else str(error.where)
        control.sendall(json.dumps({"what": error.what, "where": where, "hint": error.hint}).encode()[:MESSAGE])
        return
    gc.collect()
    gc.freeze()  # what is never collected is never copied
    control.sendall(b"{}")
    keep(control, lambda connection: work(connection, session))


def keep(control: socket.socket, work: Work) -> None:
    """Take orders until the server goes; a worker does its `work` at the socket that came with the order."""
    workers: set[int] = set()
    while True:
        message, sent, _, _ = socket.recv_fds(control, MESSAGE, 1)
        if not message:
            break
        order = json.loads(message)
        if order["do"] == "fork":
            worker = _forked(control, sent[0], work)
            workers.add(worker)
            control.sendall(json.dumps({"pid": worker}).encode())
        else:
            _end(order["pid"], workers)
            control.sendall(b"{}")
    for worker in list(workers):
        _end(worker, workers)


def _forked(control: socket.socket, connection: int, work: Work) -> int:
    """The process id of a new worker."""
    worker = os.fork()
    if worker:
        os.close(connection)
        return worker
    code = 1
    try:
        control.close()
        with socket.socket(fileno=connection) as own:
            work(own)
        code = 0
    finally:
        os._exit(code)  # nothing that the keeper holds may be closed here


def _end(worker: int, workers: set[int]) -> None:
    """Kill a worker of ours, and take note of its end."""
    if worker in workers:
        os.kill(worker, signal.SIGKILL)  # until it is waited for, the number is its own
        os.waitpid(worker, 0)
        workers.discard(worker)


if __name__ == "__main__":
    main()
