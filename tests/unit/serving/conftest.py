"""A run that is served: loaded once (`session`), and behind HTTP with a worker (`client`)."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from r2n.serving.app import create_app
from r2n.serving.guards import Access
from r2n.serving.session import Limits, Session
from tests.served_problem import write_served_run


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session.load(write_served_run(tmp_path_factory.mktemp("served")), Limits(seconds=60.0))


@pytest.fixture(scope="session")
def narrow(session: Session) -> Session:
    """The same run, where a request may ask for few atoms."""
    return Session(session.folder, session.model, Limits(candidates=5))


@pytest.fixture(scope="session")
def client(session: Session) -> Iterator[TestClient]:
    app = create_app(session, Access(hosts=frozenset({"testserver"})), workers=1)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client
