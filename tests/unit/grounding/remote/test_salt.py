"""Hot constants, salted: the same ground rules, of a skewed graph."""

from pathlib import Path

import pytest

from r2n.datasets.streamed import StreamedOptions, write_streamed
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.remote import salt
from r2n.grounding.remote.salt import salted
from tests.spark_place import adaptive
from tests.spark_problem import both

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("is_salted", [False, True])
def test_a_skewed_graph_is_grounded_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_salted: bool) -> None:
    write_streamed(StreamedOptions(5_000, 4, 3, seed=2), tmp_path / "graph")
    used: list[int] = []
    if is_salted:
        monkeypatch.setattr(salt, "LEAST_PAIRS", 20)
        monkeypatch.setattr(salt, "HOT_SHARE", 0.0)
    monkeypatch.setattr(
        "r2n.grounding.remote.grounding.salted", lambda *given: used.append(len(found := salted(*given))) or found
    )
    with adaptive():
        spark, arrays = both(tmp_path / "graph", KnownBodyGrounder(), tmp_path / "out")
    assert spark == arrays
    assert sum(map(len, arrays)) > 1_000
    assert (2 in used) == is_salted
