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


@pytest.mark.parametrize("options", [["--json"], []])
def test_a_table_has_a_record_for_each_cell_and_metric(options: list[str]) -> None:
    arguments = ["reproduce", "ablation", "--seeds", "1", "--jobs", "1", "--dataset", "countries-s1", *options]
    shown = invoke(*arguments)
    assert len(json.loads(shown)) == 4 * 3 if options else "the paper" in shown


def test_an_unknown_model_is_refused() -> None:
    assert "no such dataset or model" in invoke("reproduce", "countries", "--model", "R3N", code=2)
