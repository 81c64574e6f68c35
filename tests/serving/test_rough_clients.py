"""Clients that are slow, send halves, or too much: refused, and the server lives."""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

from tests.served_problem import write_served_run
from tests.serving.listening import Listening, listening

HEAD = "POST /api/query HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
pytestmark = pytest.mark.slow
WAIT = 2.0  # seconds that a client has here


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    run = write_served_run(tmp_path_factory.mktemp("served"))
    with listening(run, "--client-seconds", str(WAIT), "--seconds", "5") as server:
        yield server


@pytest.fixture(autouse=True)
def it_lives(server: Listening) -> Iterator[None]:
    """Before and after each test an ordinary query is answered."""
    yield
    status, document = asked(server, {"queries": ["liesIn(n2, ?)"]})
    assert status == 200
    assert len(document["results"][0]["answers"]) == 2


def asked(server: Listening, document: object) -> tuple[int, dict]:
    body = json.dumps(document).encode()
    with server.connect() as connection:
        connection.sendall(f"{HEAD}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        return read(connection)


def read(connection: socket.socket) -> tuple[int, dict]:
    """The status and the document of an answer; the connection is closed after it."""
    parts = bytearray()
    while part := connection.recv(2**16):
        parts += part
    head, _, body = bytes(parts).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize("begun", ["", "GET / HT", "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
def test_half_a_head_is_not_waited_for(server: Listening, begun: str) -> None:
    with server.connect() as connection:
        connection.sendall(begun.encode())
        started = monotonic()
        assert connection.recv(100) == b""
        assert monotonic() - started < 5 * WAIT


def test_half_a_second_head_is_not_waited_for(server: Listening) -> None:
    with server.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert connection.recv(2**16).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /hea")
        with suppress(ConnectionResetError):
            while connection.recv(2**16):
                pass


def test_half_a_body_is_refused(server: Listening) -> None:
    with server.connect() as connection:
        connection.sendall(f"{HEAD}Content-Length: 100\r\n\r\n{{".encode())
        status, document = read(connection)
    assert (status, document["what"]) == (408, "the request was not sent in time")


def test_a_hundred_slow_clients_keep_nobody_waiting(server: Listening) -> None:
    slow = [server.connect() for _ in range(100)]
    for connection in slow:
        connection.sendall(f"{HEAD}Content-Length: 1000\r\n\r\n{{".encode())
    status, _ = asked(server, {"queries": ["liesIn(n2, ?)"]})
    assert status == 200
    for connection in slow:
        connection.close()


@pytest.mark.parametrize("is_told", [True, False])
def test_a_body_of_100_megabytes_is_refused(server: Listening, is_told: bool) -> None:
    before = server.memory()
    part = b"x" * 2**20
    with server.connect() as connection:
        length = f"Content-Length: {100 * 2**20}" if is_told else "Transfer-Encoding: chunked"
        connection.sendall(f"{HEAD}{length}\r\n\r\n".encode())
        try:
            for _ in range(100):
                connection.sendall(part if is_told else f"{len(part):x}\r\n".encode() + part + b"\r\n")
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            pass  # it is closed while more is on its way
        with suppress(ConnectionResetError):
            assert connection.recv(12) in (b"HTTP/1.1 413", b"")
    assert server.memory() < 1.1 * before + 20 * 2**20


def test_ten_thousand_atoms_are_refused(server: Listening) -> None:
    status, document = asked(server, {"queries": ["liesIn(n2, north)"] * 10_000})
    assert (status, document["where"]) == (422, "queries")


def test_a_request_that_takes_too_long_is_stopped_and_the_next_is_answered(tmp_path: Path) -> None:
    """A million atoms and as many ground rules, where half a second is all there is."""
    changes = {
        "constants": {"town": [f"t{i}" for i in range(900)], "valley": [f"v{i}" for i in range(1_000)]},
        "with": [f"near(t{i % 30}, t{i // 30})" for i in range(900)],
    }
    with listening(write_served_run(tmp_path), "--seconds", "0.5", "--workers", "1") as hasty:
        document = {"queries": ["liesIn(?, ?)"], "everything": True, "top": 10_000, **changes}
        status, reply = asked(hasty, document)
        assert (status, reply["what"]) == (503, "the request was stopped: it took more than 0.5 seconds")
        end = monotonic() + 60
        while monotonic() < end and status == 503:  # until there is a worker again
            status, reply = asked(hasty, {"queries": ["liesIn(n2, ?)"]})
    assert status == 200
    assert len(reply["results"][0]["answers"]) == 2
