"""Ctrl-C while DuckDB works, or the end of its time: the query ends on all its threads."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import duckdb


@contextmanager
def interruptible(connection: duckdb.DuckDBPyConnection, seconds: float | None = None) -> Iterator[None]:
    """Let Ctrl-C, or the end of so many `seconds` (InterruptException), end what the connection is asked within.

    On its own DuckDB stops the main thread alone, which then waits, deaf to any further Ctrl-C, until the others have
    answered the query in full.
    """
    earlier, came = signal.getsignal(signal.SIGINT), False
    is_caught = threading.current_thread() is threading.main_thread() and callable(earlier)

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        connection.interrupt()
        if callable(earlier):
            earlier(number, frame)

    timer = threading.Timer(seconds or 0.0, connection.interrupt)
    timer.daemon = True
    if seconds is not None:
        timer.start()
    if is_caught:
        signal.signal(signal.SIGINT, stop)
    try:
        yield
    except (duckdb.Error, RuntimeError) as error:
        if came:
            raise KeyboardInterrupt from error
        raise
    finally:
        timer.cancel()
        if is_caught:
            signal.signal(signal.SIGINT, earlier)
