"""Bad input, one test each, through the command line: exit code 2, where it is, what to do, never a traceback."""

import gzip
from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app

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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good problem, for a test to spoil."""
    files = {
        "problem.toml": PROBLEM,
        "theory.r2n": THEORY,
        "countries.txt": "italy\nfrance\n",
        "regions.txt": "europe\nasia\n",
        "train.tsv": TRAIN,
        "test.tsv": "france\tlocatedIn\teurope\t1\nfrance\tlocatedIn\tasia\t0\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def accepted(*arguments: object) -> str:
    """What a command that works prints."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: object) -> str:
    """What a command that is refused says on standard error."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    assert result.stdout == ""
    return result.stderr


def spoiled(folder: Path, name: str, text: str | bytes) -> str:
    """What `r2n check` says when one file of the problem is replaced."""
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return refused("check", folder)


def test_the_problem_is_good_before_it_is_spoiled(folder: Path) -> None:
    accepted("check", folder)
    accepted("ground", folder)


BOTH = "italy\tlocatedIn\tasia\t1\nfrance\tlocatedIn\tasia\t1\nitaly\tlocatedIn\tasia\t0\n"
SPOILED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "constant outside its domain": (
        "train.tsv",
        TRAIN + "itly\tneighborOf\tfrance\n",
        ("train.tsv:3", "'itly'", "country", "did you mean 'italy'?"),
    ),
    "a fact both true and false": (
        "train.tsv",
        BOTH,
        ("train.tsv:3", "train.tsv:1", "locatedIn(italy, asia) is stated both true and false"),
    ),
    "a line of 10 MB in a table": ("train.tsv", TRAIN + "x" * 10_000_000 + "\n", ("train.tsv:3",)),
    "an empty table": ("train.tsv", "", ("train.tsv", "empty")),
    "empty queries": ("test.tsv", "", ("test.tsv", "empty")),
    "a rule that is not closed": (
        "theory.r2n",
        THEORY + "rule r: (neighborOf(x, y) -> locatedIn(x, y)\n",
        ("theory.r2n:6:9: '(' is never closed", "\n  |         ^\n"),
    ),
    "a constant of another domain in a rule": (
        "theory.r2n",
        THEORY + 'rule r: neighborOf(x, "europe") -> neighborOf("europe", x)\n',
        ("theory.r2n:6", "europe", "country"),
    ),
    "no TOML": ("problem.toml", "name = \n", ("problem.toml:1",)),
    "unknown key": ("problem.toml", f"teory = 'x'\n{PROBLEM}", ("problem.toml:", "did you mean 'theory'?")),
    "unknown section": ("problem.toml", f"{PROBLEM}[quries]\n", ("problem.toml:", "did you mean 'queries'?")),
    "wrong value": (
        "problem.toml",
        PROBLEM + "[grounding]\nstrategy = 'forward'\n",
        ("problem.toml", "strategy", "known-body"),
    ),
}


@pytest.mark.parametrize("fault", SPOILED)
def test_a_spoiled_file_is_named_with_the_line_and_what_to_do(folder: Path, fault: str) -> None:
    name, text, expected = SPOILED[fault]
    said = spoiled(folder, name, text)
    assert [part for part in expected if part not in said] == []
    assert len(said) < 2000


def test_wrong_arity_in_facts(folder: Path) -> None:
    named = '{file = "train.tsv", predicate = "locatedIn"}'
    (folder / "problem.toml").write_text(PROBLEM.replace('"train.tsv"', named))
    said = spoiled(folder, "train.tsv", "italy\tfrance\teurope\tasia\n")
    assert [part for part in ("train.tsv", "locatedIn", "2") if part not in said] == []


@pytest.mark.parametrize("name", ["theory.r2n", "train.tsv", "test.tsv", "regions.txt"])
def test_missing_file(folder: Path, name: str) -> None:
    (folder / name).rename(folder / f"{name}x")
    said = refused("check", folder)
    assert name in said
    assert f"did you mean '{name}x'?" in said or "names a text file" in said


def test_missing_problem(folder: Path) -> None:
    assert "no-such-problem" in refused("check", folder / "no-such-problem")
    assert "did you mean 'countries-s3'?" in refused("check", "countries-s33")
    (folder / "problem.toml").unlink()
    assert "problem.toml" in refused("check", folder)


def test_bytes_that_are_not_utf_8(folder: Path) -> None:
    said = spoiled(folder, "countries.txt", (folder / "countries.txt").read_bytes() + b"# caf\xe9\tx\ty\n")
    assert "countries.txt:3" in said
    assert "UTF-8" in said


def test_duplicate_facts_are_accepted_and_counted(folder: Path) -> None:
    (folder / "train.tsv").write_text(TRAIN + TRAIN + "italy\tlocatedIn\teurope\n")
    assert "3 duplicate facts" in accepted("check", folder)
    assert '"train": 3' in accepted("check", folder, "--json")


def test_a_grounding_beyond_the_budget(folder: Path) -> None:
    (folder / "theory.r2n").write_text(THEORY.replace(" closed", ""))
    said = refused("ground", folder, "--max-groundings", "7", "--strategy", "full")
    assert "rule 'manifold'" in said
    assert "8" in said
    assert "7" in said
    for way_out in ("domain", "close", "strategy"):
        assert way_out in said


def test_skip_collects_what_is_wrong_and_goes_on(folder: Path) -> None:
    (folder / "train.tsv").write_text(TRAIN + "itly\tneighborOf\tfrance\nitaly\tlocatedIn\n")
    result = CliRunner().invoke(app, ["check", str(folder), "--on-error", "skip"])
    assert result.exit_code == 0
    assert "train.tsv:3" in result.stderr
    assert "train.tsv:4" in result.stderr
    assert "train.tsv:3" in accepted("check", folder, "--on-error", "skip", "--json")


def test_a_damaged_gzip_file(folder: Path) -> None:
    (folder / "problem.toml").write_text(PROBLEM.replace('"train.tsv"', '"train.tsv.gz"'))
    (folder / "train.tsv.gz").write_bytes(gzip.compress(TRAIN.encode())[:-12])
    assert "train.tsv.gz" in refused("check", folder)


@pytest.mark.parametrize(
    "arguments", [("ground",), ("ground", "x", "--width", "-1"), ("nothing",), ("check", "--what")]
)
def test_wrong_usage_has_exit_code_2(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 2
    assert "Traceback" not in result.output
