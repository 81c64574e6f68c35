"""Bad input, one test each, through the command line: exit code 2, where it is, what to do, never a traceback."""

import gzip
import json
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


def rule(folder: Path, text: str) -> str:
    """What `r2n check` says when line 5 of the theory is replaced."""
    return spoiled(folder, "theory.r2n", "".join(THEORY.splitlines(keepends=True)[:4]) + text + "\n")


def test_the_problem_is_good_before_it_is_spoiled(folder: Path) -> None:
    accepted("check", folder)
    accepted("ground", folder)


def test_unknown_predicate_in_a_fact(folder: Path) -> None:
    said = spoiled(folder, "train.tsv", TRAIN + "italy\tlocatedln\teurope\n")
    assert "train.tsv:3" in said
    assert "unknown predicate 'locatedln'" in said
    assert "did you mean 'locatedIn'?" in said


def test_unknown_predicate_in_a_rule(folder: Path) -> None:
    said = rule(folder, "rule r: neighbourOf(x, y) -> locatedIn(x, y)")
    assert "theory.r2n:5:9: " in said
    assert "unknown predicate 'neighbourOf'" in said
    assert "did you mean 'neighborOf'?" in said


def test_wrong_arity_in_a_rule(folder: Path) -> None:
    said = rule(folder, "rule r: neighborOf(x, y, z) -> locatedIn(x, y)")
    assert "theory.r2n:5:9: " in said
    assert "has 3 terms, but neighborOf takes 2" in said


def test_wrong_arity_in_facts(folder: Path) -> None:
    (folder / "problem.toml").write_text(
        PROBLEM.replace('"train.tsv"', '{file = "train.tsv", predicate = "locatedIn"}')
    )
    said = spoiled(folder, "train.tsv", "italy\tfrance\teurope\tasia\n")
    assert "train.tsv" in said
    assert "locatedIn" in said
    assert "2" in said


def test_constant_outside_its_domain(folder: Path) -> None:
    said = spoiled(folder, "train.tsv", TRAIN + "itly\tneighborOf\tfrance\n")
    assert "train.tsv:3" in said
    assert "'itly'" in said
    assert "country" in said
    assert "did you mean 'italy'?" in said


def test_constant_of_a_rule_outside_its_domain(folder: Path) -> None:
    said = rule(folder, 'rule r: neighborOf(x, "europe") -> neighborOf("europe", x)')
    assert "theory.r2n:5" in said
    assert "europe" in said
    assert "country" in said


def test_a_fact_both_true_and_false(folder: Path) -> None:
    said = spoiled(
        folder, "train.tsv", "italy\tlocatedIn\tasia\t1\nfrance\tlocatedIn\tasia\t1\nitaly\tlocatedIn\tasia\t0\n"
    )
    assert "train.tsv:3" in said
    assert "train.tsv:1" in said
    assert "locatedIn(italy, asia) is stated both true and false" in said


def test_a_variable_whose_domain_cannot_be_inferred(folder: Path) -> None:
    theory = "domain country, region\npredicate p(country)\npredicate q(region)\nrule r: p(x) -> q(x)\n"
    said = spoiled(folder, "theory.r2n", theory)
    assert "theory.r2n:4:17: " in said
    assert "the domain of x cannot be inferred" in said
    assert "write x: DOMAIN" in said


def test_unsafe_rule(folder: Path) -> None:
    said = rule(folder, "rule r: neighborOf(x, y) -> locatedIn(x, y), x != z")
    assert "theory.r2n:5:" in said
    assert "unsafe: z stands in a guard but in no atom" in said


def test_empty_rule(folder: Path) -> None:
    said = rule(folder, "rule r:")
    assert "theory.r2n:5:" in said
    assert "expected" in said


def test_unbalanced_parenthesis(folder: Path) -> None:
    said = rule(folder, "rule r: (neighborOf(x, y) -> locatedIn(x, y)")
    assert "theory.r2n:5:9: '(' is never closed" in said
    assert "\n  |         ^\n" in said


@pytest.mark.parametrize(
    ("key", "nearest"), [("teory = 'x'", "theory"), ("[quries]", "queries"), ("[grounding]\nwidht = 2", "width")]
)
def test_unknown_toml_key(folder: Path, key: str, nearest: str) -> None:
    text = f"{key}\n{PROBLEM}" if not key.startswith("[") else f"{PROBLEM}{key}\n"
    said = spoiled(folder, "problem.toml", text)
    assert "problem.toml:" in said
    assert f"did you mean '{nearest}'?" in said


def test_toml_that_is_no_toml(folder: Path) -> None:
    said = spoiled(folder, "problem.toml", "name = \n")
    assert "problem.toml:1" in said


def test_wrong_value_in_toml(folder: Path) -> None:
    said = spoiled(folder, "problem.toml", PROBLEM + "[grounding]\nstrategy = 'forward'\n")
    assert "problem.toml" in said
    assert "strategy" in said
    assert "known-body" in said


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


@pytest.mark.parametrize("name", ["train.tsv", "test.tsv"])
def test_empty_file(folder: Path, name: str) -> None:
    said = spoiled(folder, name, "")
    assert name in said
    assert "empty" in said


@pytest.mark.parametrize("name", ["theory.r2n", "train.tsv", "problem.toml", "countries.txt"])
def test_bytes_that_are_not_utf_8(folder: Path, name: str) -> None:
    said = spoiled(folder, name, (folder / name).read_bytes() + b"# caf\xe9\tx\ty\n")
    line = (folder / name).read_bytes().count(b"\n")
    assert f"{name}:{line}" in said
    assert "UTF-8" in said


@pytest.mark.parametrize(
    ("row", "what"), [("italy\tlocatedIn", "too few columns"), ("a\tb\tc\td\te", "too many columns")]
)
def test_a_row_with_too_few_or_too_many_columns(folder: Path, row: str, what: str) -> None:
    said = spoiled(folder, "train.tsv", f"{TRAIN}{row}\n")
    assert "train.tsv:3" in said
    assert what in said


def test_crlf_and_bom_are_accepted(folder: Path) -> None:
    plain = accepted("ground", folder, "--json")
    for name in ("theory.r2n", "train.tsv", "test.tsv", "countries.txt", "regions.txt"):
        path = folder / name
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    with_marks = json.loads(accepted("ground", folder, "--json"))
    without = json.loads(plain)
    assert (with_marks["ground_rules"], with_marks["atoms"]) == (without["ground_rules"], without["atoms"])
    assert without["ground_rules"] > 0


def test_duplicate_facts_are_accepted_and_counted(folder: Path) -> None:
    (folder / "train.tsv").write_text(TRAIN + TRAIN + "italy\tlocatedIn\teurope\n")
    assert "3 duplicate facts" in accepted("check", folder)
    assert '"train": 3' in accepted("check", folder, "--json")


def test_a_line_of_10_mb_in_a_theory(folder: Path) -> None:
    said = rule(folder, "# " + "x" * 10_000_000)
    assert "theory.r2n:5" in said
    assert len(said) < 2000


def test_a_line_of_10_mb_in_a_table(folder: Path) -> None:
    said = spoiled(folder, "train.tsv", TRAIN + "x" * 10_000_000 + "\n")
    assert "train.tsv:3" in said
    assert len(said) < 2000


@pytest.mark.parametrize("formula", ["(" * 10_000 + "locatedIn(x, y)" + ")" * 10_000, "!" * 10_000 + "locatedIn(x, y)"])
def test_a_theory_nested_10_000_deep(folder: Path, formula: str) -> None:
    (folder / "theory.r2n").write_text(THEORY + f"rule deep: {formula}\n")
    result = CliRunner().invoke(app, ["check", str(folder)])
    assert result.exit_code in (0, 2)  # parentheses around one atom nest nothing
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if result.exit_code == 2:
        assert "theory.r2n:6:" in result.stderr
        assert len(result.stderr) < 2000


def test_implications_nested_10_000_deep(folder: Path) -> None:
    said = rule(folder, "rule deep: " + "locatedIn(x, y) -> (" * 10_000 + "locatedIn(x, y)" + ")" * 10_000)
    assert "theory.r2n:5:" in said
    assert "nested" in said
    assert len(said) < 2000


def test_a_herbrand_base_beyond_64_bits(folder: Path) -> None:
    domains = ", ".join(["country"] * 64)
    said = spoiled(folder, "theory.r2n", THEORY + f"predicate wide({domains})\n")
    assert "64 bits" in said
    assert "wide" in said
    assert "narrower" in said or "fewer" in said


def test_a_grounding_beyond_the_budget(folder: Path) -> None:
    (folder / "theory.r2n").write_text(THEORY.replace(" closed", ""))
    said = refused("ground", folder, "--max-groundings", "7", "--strategy", "full")
    assert "rule 'manifold'" in said
    assert "8" in said
    assert "7" in said
    for way_out in ("domain", "close", "strategy"):
        assert way_out in said


def test_overlap_between_splits(folder: Path) -> None:
    said = spoiled(folder, "test.tsv", "italy\tlocatedIn\teurope\t1\n")
    assert "locatedIn(italy, europe)" in said
    assert "test.tsv:1" in said or "test" in said
    assert "train" in said


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
