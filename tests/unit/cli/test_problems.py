"""r2n check, r2n ground: what the tables say (their options are tested end to end)."""

import json

from typer.testing import CliRunner

from r2n.cli import app

runner = CliRunner()


def test_check_shows_domains_predicates_splits_and_rules() -> None:
    out = runner.invoke(app, ["check", "countries-s3"]).stdout
    for text in ("132,977 ground atoms", "subregion", "neighborOf(country, country) closed", "978", "rule manifold"):
        assert text in out


def test_ground_shows_each_rule_and_the_queries() -> None:
    out = runner.invoke(app, ["ground", "countries-s3"]).stdout
    for text in ("5,612", "3,240", "x: country (244)", "8,852 ground rules", "240 reached by a ground rule, 0 not"):
        assert text in out


def test_check_announces_that_it_reads() -> None:
    result = runner.invoke(app, ["check", "countries-s3", "--json"])
    assert json.loads(result.stdout)["name"] == "countries-s3"
    assert result.stderr == "read ...\n"
