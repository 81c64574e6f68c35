"""A run that is served: loaded in the test itself (`session`), and by a process that forks workers (`client`)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from r2n.serving.app import create_app
from r2n.serving.guards import Access
from r2n.serving.keeper import Keeper
from r2n.serving.limits import Limits
from r2n.serving.session import Session
from tests.served_problem import write_served_run

ACCESS = Access(hosts=frozenset({"testserver"}))


@pytest.fixture(scope="session")
def served_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_served_run(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def session(served_run: Path) -> Session:
    return Session.load(served_run, Limits())


@pytest.fixture(scope="session")
def keeper(served_run: Path) -> Iterator[Keeper]:
    keeper = Keeper.start(served_run, Limits(seconds=60.0))
    yield keeper
    keeper.close()


@pytest.fixture(scope="session")
def client(keeper: Keeper) -> Iterator[TestClient]:
    with TestClient(create_app(keeper, ACCESS, workers=1), raise_server_exceptions=False) as client:
        yield client
