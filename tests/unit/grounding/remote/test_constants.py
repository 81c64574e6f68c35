"""Constants that Spark numbers: in order of name, as this process does."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from r2n.data.spark_session import without_warnings
from r2n.errors import DataError
from r2n.grounding.remote.constants import constant_id, number_constants, numbered
from r2n.grounding.remote.stated import Stated
from r2n.logic.language import Language
from r2n.logic.parser import parse_theory
from tests.spark_place import spark_engine

pytestmark = pytest.mark.spark
NAMES = ["b", "Ä", "a", "ab", "a b", "\U0001f600", "\uffee", "Z", "10", "9", "ﬀ", "é"]


def test_ids_are_places_in_the_order_of_names(tmp_path: Path) -> None:
    engine = spark_engine()
    theory = parse_theory("domain d\ndomain listed = {b, zz}\ndomain all = d | listed\npredicate p(d, listed)\n")
    table = pa.table(
        {"predicate": ["p"] * len(NAMES), "truth": [True] * len(NAMES), "c0": NAMES, "c1": ["b"] * len(NAMES)}
    )
    with without_warnings():
        engine.session.createDataFrame(table).createOrReplaceTempView("stated_names")
    stated = Stated("stated_names", "train", "names", 2, ("p",))
    told = Language.build(theory.domains, theory.predicates)
    found = number_constants(engine, theory, told, {}, [stated], tmp_path)
    here = Language.build(theory.domains, theory.predicates, {"d": NAMES})
    rows = engine.ask("SELECT id, name, in_0, in_1, in_2 FROM constants ORDER BY id")
    assert rows["name"].tolist() == list(here.constants)
    assert rows["id"].tolist() == list(range(len(here.constants)))
    assert found.count == len(here.constants)
    for k, domain in enumerate(theory.domains):
        assert np.flatnonzero(rows[f"in_{k}"]).tolist() == here.members(domain).tolist()
        assert found.size(domain) == len(here.members(domain))
        if found.is_all(domain):
            continue
        places = engine.ask(f"SELECT a0 FROM place_{k} ORDER BY place")
        assert places["a0"].tolist() == here.members(domain).tolist()
    assert constant_id(engine, "é") == here.constant_id("é")
    with pytest.raises(DataError, match="unknown constant 'nobody'"):
        constant_id(engine, "nobody")


def test_rows_of_several_files_are_numbered_through(tmp_path: Path) -> None:
    engine = spark_engine()
    engine.view("many", "SELECT /*+ REPARTITION(4) */ (id * 7) % 101 AS k FROM range(101)")
    numbered(engine, "many", "k", tmp_path / "many", "many_numbered", "number")
    found = engine.ask("SELECT k, number FROM many_numbered ORDER BY number")
    assert found["k"].tolist() == found["number"].tolist() == list(range(101))
