"""Bad input through the command line: exit code 2, the file and line, what to do, and never a traceback."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from tests.command_line import invoke

THEORY = """\
domain country, region
domain place = country | region
predicate locatedIn(place, place)
predicate neighborOf(country, country) closed
rule manifold: neighborOf(x, y) & locatedIn(x, z: region) -> locatedIn(y, z)
"""
PROBLEM = """\
name = "towns"
theory = "theory.r2n"
[domains]
country = "countries.txt"
region = "regions.txt"
[facts]
train = "train.tsv"
[queries]
test = "test.tsv"
"""
TRAIN = "italy\tneighborOf\tfrance\nitaly\tlocatedIn\teurope\n"
FILES = {
    "problem.toml": PROBLEM,
    "theory.r2n": THEORY,
    "countries.txt": "italy\nfrance\n",
    "regions.txt": "europe\nasia\n",
    "train.tsv": TRAIN,
    "test.tsv": "france\tlocatedIn\teurope\t1\nfrance\tlocatedIn\tasia\t0\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return result.stderr


def test_the_problem_is_good_before_it_is_spoiled(folder: Path) -> None:
    invoke("check", folder)
    invoke("ground", folder)


LONG, TURNED = TRAIN + "x" * 10_000_000 + "\n", 'rule r: neighborOf(x, "europe") -> neighborOf("europe", x)\n'
SPOILED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "a misspelt constant": ("train.tsv", TRAIN + "itly\tneighborOf\tfrance\n", ("train.tsv:3", "mean 'italy'?")),
    "a line of 10 MB": ("train.tsv", LONG, ("train.tsv:3",)),
    "empty queries": ("test.tsv", "", ("test.tsv", "empty")),
    "a constant of another domain in a rule": ("theory.r2n", THEORY + TURNED, ("theory.r2n:6", "europe", "country")),
    "an open bracket": ("theory.r2n", THEORY + "rule r: (", ("theory.r2n:6:", "\n  |         ^")),
    "an unknown section": ("problem.toml", f"{PROBLEM}[quries]\n", ("problem.toml:", "did you mean 'queries'?")),
    "bytes that are not UTF-8": ("countries.txt", "italy\nfrance\n# caf\udce9\n", ("countries.txt:3", "UTF-8")),
}


@pytest.mark.parametrize("fault", SPOILED)
def test_a_spoiled_file_is_named_with_the_line_and_what_to_do(folder: Path, fault: str) -> None:
    name, text, expected = SPOILED[fault]
    (folder / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    said = refused("check", folder)
    assert [part for part in expected if part not in said] == []
    assert len(said) < 2000


@pytest.mark.parametrize("name", ["theory.r2n", "train.tsv", "regions.txt"])
def test_missing_file(folder: Path, name: str) -> None:
    (folder / name).rename(folder / f"{name}x")
    said = refused("check", folder)
    assert name in said
    assert f"did you mean '{name}x'?" in said or "names a text file" in said


def test_a_grounding_beyond_the_budget(folder: Path) -> None:
    (folder / "theory.r2n").write_text(THEORY.replace(" closed", ""))
    said = refused("ground", folder, "--max-groundings", "7", "--strategy", "full")
    assert [part for part in ("rule 'manifold'", "8", "7", "domain", "close", "strategy") if part not in said] == []


def test_skip_collects_what_is_wrong_and_continues(folder: Path) -> None:
    (folder / "train.tsv").write_text(TRAIN + "itly\tneighborOf\tfrance\nitaly\tlocatedIn\n")
    for more in ([], ["--json"]):
        result = CliRunner().invoke(app, ["check", str(folder), "--on-error", "skip", *more])
        assert result.exit_code == 0
        assert all(f"train.tsv:{line}" in result.output for line in (3, 4))


@pytest.mark.parametrize(
    "arguments",
    [("ground",), ("ground", "x", "--width", "-1"), ("nothing",), ("check", "--what"), ("check", "no-such")],
)
def test_wrong_usage_has_exit_code_2(arguments: tuple[str, ...]) -> None:
    invoke(*arguments, code=2)
