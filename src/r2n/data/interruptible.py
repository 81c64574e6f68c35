"""Ctrl-C while DuckDB works, or the end of its time: the query ends on all its threads."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import duckdb


@contextmanager
def interruptible(connection: duckdb.DuckDBPyConnection, seconds: float | None = None) -> Iterator[None]:
    """Let Ctrl-C end what the connection is asked within: on its own DuckDB stops the main thread alone.

    That thread then waits, deaf to any further Ctrl-C, until the others have answered the whole query. After so many
    `seconds` the query ends too, with DuckDB's InterruptException.
    """
    timer = None if seconds is None else threading.Timer(seconds, connection.interrupt)
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        with _ended_by_ctrl_c(connection):
            yield
    finally:
        if timer is not None:
            timer.cancel()


@contextmanager
def _ended_by_ctrl_c(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    earlier = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(earlier):
        yield
        return
    came = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        connection.interrupt()
        earlier(number, frame)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    except (duckdb.Error, RuntimeError) as error:
        if came:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, earlier)
