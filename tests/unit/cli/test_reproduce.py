"""r2n reproduce."""

import json

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from r2n.reproduction import reproduce as module
from r2n.reproduction.reproduce import TableRow, table_rows

runner = CliRunner()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two epochs a network."""

    def rows(table: str) -> list[TableRow]:
        return [row.model_copy(update={"training": {"epochs": 2}}) for row in table_rows(table)]

    monkeypatch.setattr(module, "table_rows", rows)


def test_json_has_a_record_for_each_cell_and_metric() -> None:
    arguments = ["reproduce", "ablation", "--seeds", "1", "--jobs", "1", "--dataset", "countries-s1", "--json"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    records = json.loads(result.stdout)
    assert len(records) == 4 * 3
    assert {record["table"] for record in records} == {"ablation"}


def test_the_table_shows_ours_beside_the_papers() -> None:
    result = runner.invoke(app, ["reproduce", "countries", "--seeds", "1", "--jobs", "1", "--dataset", "countries-s1"])
    assert result.exit_code == 0, result.output
    for text in ("proofs counted", "R2NS", "FGNN", "the paper", "0.935", "CPU-seconds"):
        assert text in result.stdout


def test_an_unknown_table_is_refused() -> None:
    result = runner.invoke(app, ["reproduce", "cities"])
    assert result.exit_code == 2
    assert "no table 'cities'" in result.output
    result = runner.invoke(app, ["reproduce", "countries", "--model", "R3N"])
    assert result.exit_code == 2
    assert "no such dataset or model" in result.output
