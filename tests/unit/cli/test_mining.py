"""r2n mine: what it prints and writes, what it refuses; its theory is accepted by check, ground and train."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import r2n
from tests.command_line import document, invoke, run

runner = CliRunner()


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    """A ring of parents, and their children; some of them asked."""
    pairs = [(f"k{i}", f"k{(i + 1) % 12}") for i in range(12)]
    facts = [f"{x}\tparent\t{y}" for x, y in pairs] + [f"{y}\tchild\t{x}" for x, y in pairs[:9]]
    (tmp_path / "train.tsv").write_text("\n".join(facts) + "\n")
    (tmp_path / "test.tsv").write_text("\n".join(f"{y}\tchild\t{x}" for x, y in pairs[9:]) + "\n")
    text = 'theory = "theory.r2n"\n[facts]\ntrain = "train.tsv"\n[queries]\ntest = "test.tsv"\n'
    (tmp_path / "problem.toml").write_text(text + '[grounding]\nstrategy = "known-body"\n')
    own = "domain k\npredicate parent(k, k)\npredicate child(k, k)\nrule own: parent(x, y) -> !child(x, y)\n"
    (tmp_path / "theory.r2n").write_text(own)
    return tmp_path / "problem.toml"


def test_the_theory_is_printed_and_is_a_theory(problem: Path) -> None:
    theory = r2n.parse_theory(run("mine", problem))
    assert [rule.name for rule in theory.rules][:2] == ["own", "m0"]
    assert "rule m0 [1.0]: child(y, x) -> parent(x, y), x != y" in map(str, theory.rules)
    assert "own" not in run("mine", problem, "--fresh")


def test_a_written_theory_is_accepted_by_check_ground_and_train(problem: Path) -> None:
    out = problem.parent / "mined.r2n"
    printed = run("mine", problem, "--constraints", "--max-length", 1)
    assert run("mine", problem, "--constraints", "--max-length", 1, "--out", out) == ""
    assert out.read_text() == printed
    problem.write_text(problem.read_text().replace("theory.r2n", "mined.r2n"))
    theory = r2n.parse_theory(printed)
    assert document("check", problem)["rules"] == len(theory.rules)
    grounded = {rule["name"]: rule["ground_rules"] for rule in document("ground", problem)["rules"]}
    (concluded,) = (rule.name for rule in theory.rules if str(rule.formula) == "parent(y, x) -> child(x, y)")
    assert grounded[concluded] == 12
    options = ["--no-report", "--no-baseline", "--set", "training.epochs=1"]
    invoke("train", str(problem), "--out", str(problem.parent / "run"), *options)


def test_json_says_what_was_counted(problem: Path) -> None:
    found = document("mine", problem, "--max-length", 1, "--constraints")
    (rule,) = (rule for rule in found["rules"] if "parent(y, x) -> child(x, y)" in rule["rule"])
    assert (rule["support"], rule["body_pairs"], rule["pca_pairs"], rule["confidence"]) == (9, 12, 9, 0.75)
    assert {"kind": "irreflexive", "predicates": ["child"], "support": 9, "exceptions": 0} in found["constraints"]
    assert (found["stopped"], found["unwritable"]) == (None, 0)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--max-length", "4"], "bodies of 4 atoms"),
        (["--max-exceptions", "-1"], "--max-exceptions is -1"),
        (["--out", "mined.txt"], "does not end in .r2n"),
    ],
)
def test_options_that_cannot_be_are_refused(problem: Path, options: list[str], what: str) -> None:
    assert what in invoke("mine", str(problem), *options, code=2)
