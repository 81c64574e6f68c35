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


def test_the_problem_is_good_before_it_is_spoiled(folder: Path) -> None:
    accepted("check", folder)
    accepted("ground", folder)


DEEP = "rule deep: " + "locatedIn(x, y) -> (" * 10_000 + "locatedIn(x, y)" + ")" * 10_000
BOTH = "italy\tlocatedIn\tasia\t1\nfrance\tlocatedIn\tasia\t1\nitaly\tlocatedIn\tasia\t0\n"
TWO_DOMAINS = "domain country, region\npredicate p(country)\npredicate q(region)\nrule r: p(x) -> q(x)\n"
SPOILED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "unknown predicate in a fact": (
        "train.tsv",
        TRAIN + "italy\tlocatedln\teurope\n",
        ("train.tsv:3", "unknown predicate 'locatedln'", "did you mean 'locatedIn'?"),
    ),
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
    "too few columns": ("train.tsv", TRAIN + "italy\tlocatedIn\n", ("train.tsv:3", "too few columns")),
    "too many columns": ("train.tsv", TRAIN + "a\tb\tc\td\te\n", ("train.tsv:3", "too many columns")),
    "a line of 10 MB in a table": ("train.tsv", TRAIN + "x" * 10_000_000 + "\n", ("train.tsv:3",)),
    "an empty table": ("train.tsv", "", ("train.tsv", "empty")),
    "empty queries": ("test.tsv", "", ("test.tsv", "empty")),
    "overlap between splits": (
        "test.tsv",
        "italy\tlocatedIn\teurope\t1\n",
        ("locatedIn(italy, europe)", "test", "train"),
    ),
    "no TOML": ("problem.toml", "name = \n", ("problem.toml:1",)),
    "unknown key": ("problem.toml", f"teory = 'x'\n{PROBLEM}", ("problem.toml:", "did you mean 'theory'?")),
    "unknown section": ("problem.toml", f"{PROBLEM}[quries]\n", ("problem.toml:", "did you mean 'queries'?")),
    "unknown option": (
        "problem.toml",
        f"{PROBLEM}[grounding]\nwidht = 2\n",
        ("problem.toml:", "did you mean 'width'?"),
    ),
    "wrong value": (
        "problem.toml",
        PROBLEM + "[grounding]\nstrategy = 'forward'\n",
        ("problem.toml", "strategy", "known-body"),
    ),
    "a domain that cannot be inferred": (
        "theory.r2n",
        TWO_DOMAINS,
        ("theory.r2n:4:17: ", "the domain of x cannot be inferred", "write x: DOMAIN"),
    ),
    "a Herbrand base beyond 64 bits": (
        "theory.r2n",
        THEORY + f"predicate wide({', '.join(['country'] * 64)})\n",
        ("64 bits", "wide", "fewer"),
    ),
}
RULES: dict[str, tuple[str, ...]] = {
    "rule r: neighbourOf(x, y) -> locatedIn(x, y)": (
        "theory.r2n:5:9: ",
        "unknown predicate 'neighbourOf'",
        "did you mean 'neighborOf'?",
    ),
    "rule r: neighborOf(x, y, z) -> locatedIn(x, y)": ("theory.r2n:5:9: ", "has 3 terms, but neighborOf takes 2"),
    'rule r: neighborOf(x, "europe") -> neighborOf("europe", x)': ("theory.r2n:5", "europe", "country"),
    "rule r: neighborOf(x, y) -> locatedIn(x, y), x != z": (
        "theory.r2n:5:",
        "unsafe: z stands in a guard but in no atom",
    ),
    "rule r:": ("theory.r2n:5:", "expected"),
    "rule r: (neighborOf(x, y) -> locatedIn(x, y)": ("theory.r2n:5:9: '(' is never closed", "\n  |         ^\n"),
    "# " + "x" * 10_000_000: ("theory.r2n:5",),
    DEEP: ("theory.r2n:5:", "nested"),
}


@pytest.mark.parametrize("fault", SPOILED)
def test_a_spoiled_file_is_named_with_the_line_and_what_to_do(folder: Path, fault: str) -> None:
    name, text, expected = SPOILED[fault]
    said = spoiled(folder, name, text)
    assert [part for part in expected if part not in said] == []
    assert len(said) < 2000


@pytest.mark.parametrize("rule", RULES, ids=range(len(RULES)))
def test_a_wrong_rule_is_named_with_its_line(folder: Path, rule: str) -> None:
    said = spoiled(folder, "theory.r2n", "".join(THEORY.splitlines(keepends=True)[:4]) + rule + "\n")
    assert [part for part in RULES[rule] if part not in said] == []
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


@pytest.mark.parametrize("name", ["theory.r2n", "train.tsv", "problem.toml", "countries.txt"])
def test_bytes_that_are_not_utf_8(folder: Path, name: str) -> None:
    said = spoiled(folder, name, (folder / name).read_bytes() + b"# caf\xe9\tx\ty\n")
    line = (folder / name).read_bytes().count(b"\n")
    assert f"{name}:{line}" in said
    assert "UTF-8" in said


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
