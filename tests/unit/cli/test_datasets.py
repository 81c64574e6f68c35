"""r2n datasets."""

import json

from typer.testing import CliRunner

from r2n.cli import app
from r2n.cli.datasets import _BytesTold
from r2n.datasets.benchmarks import DATASETS

runner = CliRunner()


def test_list_and_show() -> None:
    rows = json.loads(runner.invoke(app, ["datasets", "list", "--json"]).stdout)
    assert [row["name"] for row in rows] == list(DATASETS)
    assert "countries-s3" in runner.invoke(app, ["datasets", "list"]).stdout
    shown = json.loads(runner.invoke(app, ["datasets", "show", "nations", "--json"]).stdout)
    assert shown["splits"] == {"train": 1592, "valid": 199, "test": 201}


def test_download_of_what_is_here_and_of_what_is_unknown() -> None:
    result = runner.invoke(app, ["datasets", "download", "nations"])
    assert result.exit_code == 0
    assert "in the package" in result.stdout
    result = runner.invoke(app, ["datasets", "download", "nation"])
    assert result.exit_code == 2
    assert "did you mean 'nations'" in result.output


def test_bytes_are_told_as_they_come() -> None:
    told: list[tuple[int, int]] = []
    bar = _BytesTold(lambda done, total: told.append((done, total)))
    bar.total = 10
    bar.update(4.0)
    bar.update(6.0)
    bar.reset()
    bar.update(1.0)
    bar.close()
    assert told == [(4, 10), (10, 10), (1, 10)]
