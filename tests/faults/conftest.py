"""Fixtures of the fault tests: a process that has loaded r2n, and what it is given to work on."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import r2n
from r2n.data.problem import load_problem
from tests.faults.killed_works import Given, Trial, write_given, write_site
from tests.faults.warm_process import WarmProcess
from tests.toy_problem import write_toy_problem


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmProcess]:
    with WarmProcess() as process:
        yield process


@pytest.fixture(scope="session")
def given(warm: WarmProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Given]:
    folder = tmp_path_factory.mktemp("given")
    toy, queries = write_given(folder)
    for command in (["train", "--out", "run"], ["ground", "--strategy", "known-body", "--out", "known-body"]):
        assert warm.run("r2n", command[0], toy, *command[1:], folder=folder).code == 0
    write_site(folder / "site")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder / "site")))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield Given(toy, folder / "run", queries, f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def trial(warm: WarmProcess, given: Given, tmp_path: Path) -> Trial:
    return Trial(warm, given, tmp_path)


@pytest.fixture
def toy(tmp_path: Path) -> r2n.Problem:
    return load_problem(write_toy_problem(tmp_path / "toy", epochs=2))
