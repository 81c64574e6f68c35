"""`r2n ground` with every option, and the version."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import r2n
from r2n.cli import app
from r2n.grounding.backward import BackwardGrounder
from tests.command_line import document, invoke

THEORY = """\
domain country = {austria, france, italy}
domain region = {asia, europe}
domain place = country | region
predicate locatedIn(place, place)
predicate neighborOf(country, country) closed
rule manifold: neighborOf(x, y) & locatedIn(x, z: region) -> locatedIn(y, z)
implicit pair: [neighborOf(x, y), neighborOf(y, x)]
"""
TRAIN = "italy neighborOf france\nfrance neighborOf austria\nitaly locatedIn europe\n".replace(" ", "\t")
TEST = "france locatedIn europe 1\naustria locatedIn asia 0\n".replace(" ", "\t")
VALID = "austria locatedIn europe 1\n".replace(" ", "\t")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "theory.r2n").write_text(THEORY)
    (tmp_path / "train.tsv").write_text(TRAIN)
    (tmp_path / "test.tsv").write_text(TEST)
    (tmp_path / "valid.tsv").write_text(VALID)
    (tmp_path / "problem.toml").write_text(
        'name = "towns"\ntheory = "theory.r2n"\n'
        '[facts]\ntrain = "train.tsv"\n[queries]\nvalid = "valid.tsv"\ntest = "test.tsv"\n'
        '[grounding]\nstrategy = "backward"\nwidth = 1\ndepth = 2\n'
    )
    return tmp_path


def test_ground_has_the_shape_that_others_rely_on(folder: Path) -> None:
    said = document("ground", folder)
    assert {"ground_rules", "atoms", "rules", "queries"} <= set(said)
    assert [rule["name"] for rule in said["rules"]] == ["manifold", "pair"]
    assert all(min(rule["ground_rules"], rule["seconds"]) >= 0 for rule in said["rules"])
    assert said["ground_rules"] == sum(rule["ground_rules"] for rule in said["rules"])
    assert set(said["queries"]) == {"reached", "unreached"}
    assert sum(said["queries"].values()) == 3
    assert document("ground", folder, "--queries", "valid")["queries"] == {"reached": 1, "unreached": 0}
    assert document("ground", folder, "--queries", "test")["queries"] == {"reached": 1, "unreached": 1}
    assert "test" in invoke("ground", folder, "--queries", "tset", code=2)


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ((), 2),
        (("--depth", 1), 1),
        (("--strategy", "full"), 4),
        (("--strategy", "known-body"), 1),
        (("--strategy", "backward", "--width", 0, "--depth", 1), 1),
    ],
)
def test_options_of_the_problem_and_of_the_command_reach_the_grounder(
    folder: Path, options: tuple[object, ...], number: int
) -> None:
    assert document("ground", folder, *options)["rules"][0]["ground_rules"] == number


def test_the_second_run_reads_what_the_first_has_written(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path_factory.mktemp("out")
    first = document("ground", folder, "--out", out)
    assert list(out.rglob("*.parquet"))

    def not_again(*_: object) -> None:
        raise AssertionError("grounded again")

    monkeypatch.setattr(BackwardGrounder, "ground", not_again)
    second = document("ground", folder, "--out", out)
    same = ("ground_rules", "atoms", "queries")
    assert [first[key] for key in same] == [second[key] for key in same]
    with pytest.raises(AssertionError, match="grounded again"):
        CliRunner().invoke(app, ["ground", str(folder), "--out", str(out), "--depth", "1"], catch_exceptions=False)
    with (folder / "train.tsv").open("a") as file:
        file.write("france\tlocatedIn\tasia\n")
    with pytest.raises(AssertionError, match="grounded again"):
        CliRunner().invoke(app, ["ground", str(folder), "--out", str(out)], catch_exceptions=False)


def test_the_version_is_printed() -> None:
    assert invoke("--version").strip() == f"r2n {r2n.__version__}"
