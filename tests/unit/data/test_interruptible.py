"""What DuckDB is asked can be interrupted, and what it refuses stays what it is."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing

import duckdb
import pytest

from r2n.data.interruptible import interruptible

LONG = "SELECT a.range FROM range(20000000000) a WHERE hash(a.range) % 99999999 = 7"  # minutes, on all threads


@pytest.fixture
def heard() -> Iterator[None]:
    """Processes that share tests out do not hear Ctrl-C on their own."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_a_query_on_all_its_threads(heard: None) -> None:
    with closing(duckdb.connect(config={"threads": 2})) as connection:
        for _ in range(3):
            ctrl_c = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            ctrl_c.start()
            with pytest.raises(KeyboardInterrupt), interruptible(connection):
                connection.execute(LONG).fetchall()
            ctrl_c.join()
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_in_another_thread_nothing_is_watched() -> None:
    found = []

    def ask() -> None:
        with closing(duckdb.connect()) as connection, interruptible(connection):
            found.append(connection.execute("SELECT 1").fetchall())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [[(1,)]]
