"""r2n reproduce."""

import json

import pytest

from r2n.reproduction import reproduce as module
from r2n.reproduction.reproduce import TableRow, table_rows
from tests.command_line import invoke


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two epochs a network."""

    def rows(table: str) -> list[TableRow]:
        return [row.model_copy(update={"training": {"epochs": 2}}) for row in table_rows(table)]

    monkeypatch.setattr(module, "table_rows", rows)


def test_json_has_a_record_for_each_cell_and_metric() -> None:
    arguments = ["reproduce", "ablation", "--seeds", "1", "--jobs", "1", "--dataset", "countries-s1", "--json"]
    records = json.loads(invoke(*arguments))
    assert len(records) == 4 * 3
    assert {record["table"] for record in records} == {"ablation"}


def test_the_table_shows_ours_beside_the_papers() -> None:
    shown = invoke("reproduce", "countries", "--seeds", "1", "--jobs", "1", "--dataset", "countries-s1")
    for text in ("proofs counted", "R2NS", "FGNN", "the paper", "0.935", "CPU-seconds"):
        assert text in shown


def test_an_unknown_model_is_refused() -> None:
    assert "no such dataset or model" in invoke("reproduce", "countries", "--model", "R3N", code=2)
