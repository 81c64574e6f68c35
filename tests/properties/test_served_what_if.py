"""What-if over HTTP, many at once: each is what `predict --with --without` gives, and leaves nothing behind."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from r2n.model.model import Model
from r2n.serving.app import create_app
from r2n.serving.guards import Access
from r2n.serving.session import Limits, Session
from tests.examples import at_most
from tests.served_problem import write_served_run
from tests.toy_problem import HELD_OUT, TOWNS, valley_of

QUERIES = ["liesIn(?, north)", "liesIn(n2, ?)", "near(n0, ?)"]
KNOWN = [
    f"liesIn({town}, {valley_of(town)})" for town in TOWNS if town not in {t for p in HELD_OUT.values() for t in p}
]
UNKNOWN = [f"{sign}liesIn({town}, north)" for town in ("n2", "s2", "n5", "s5") for sign in ("", "!")]
NEW = ["near(atlantis, n0)", "near(n3, atlantis)"]


class Served:
    def __init__(self, run: Path, client: TestClient) -> None:
        self.run, self.client, self.predictor = run, client, Model.load(run, device="cpu")
        self.plain = self.asked({})

    def asked(self, change: dict[str, Any]) -> Any:
        response = self.client.post("/api/query", json={"queries": QUERIES, "top": 1000, **change})
        assert response.status_code == 200, response.text
        return response.json()["results"]

    def expected(self, change: dict[str, Any]) -> Any:
        predictor = self.predictor
        if change["without"]:
            predictor = predictor.without_facts(change["without"])
        if change["with"]:
            predictor = predictor.with_facts(change["with"])
        found = [[asdict(answer) for answer in predictor.predict(query, top=1000)] for query in QUERIES]
        return json.loads(json.dumps(found))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    run = write_served_run(tmp_path_factory.mktemp("served"))
    session = Session.load(run, Limits(seconds=60.0))
    with TestClient(create_app(session, Access(hosts=None), workers=2)) as client:
        yield Served(run, client)


def one_of_each(facts: list[str]) -> list[str]:
    """No atom both true and false."""
    return list({fact.removeprefix("!"): fact for fact in facts}.values())


CHANGES = st.fixed_dictionaries(
    {
        "without": st.lists(st.sampled_from(KNOWN), max_size=3, unique=True),
        "with": st.lists(st.sampled_from([*UNKNOWN, *NEW]), max_size=3, unique=True).map(one_of_each),
    }
)


@at_most(8, because="each is several requests, computed twice")
@given(changes=st.lists(CHANGES, min_size=2, max_size=4))
def test_requests_at_once_are_each_what_they_would_be_alone(served: Served, changes: list[dict[str, Any]]) -> None:
    plain: dict[str, Any] = {}
    mixed = [part for change in changes for part in (change, plain)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(served.asked, mixed))
    for change, results in zip(mixed, found, strict=True):
        if change is plain:
            assert results == served.plain
        else:
            assert [result["answers"] for result in results] == served.expected(change)
