"""A graph that somebody brings: `r2n train` with a problem file and no option trains, whatever its rules look like."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import r2n
from r2n.cli import app
from r2n.data.validation import contradictions
from r2n.datasets.generated import GraphOptions, generate
from r2n.model.choices import choose_options

SMALL = GraphOptions(facts=900, constants=150, relations=6, rules=8, communities=8)
RULES_OF_ALL_KINDS = """
rule either: r0(x, y) -> r1(x, y) | r2(x, y)
rule never: !r3(x, x)
rule fact: r0("c1", "c2")
rule star: r0(z, x) & r1(z, y) & r2(z, w) -> r3(x, y), x != y
rule to: r0(x, "c1") & r1(x, y) -> r2(x, y)
rule at: r0(x, y) -> r1(x, "c2")
rule far: r0(x, y) & r1(z, w) -> r2(x, y)
rule any: r0(x, y) -> r2(x, z)
rule unless: r0(x, y) & !r1(x, y) -> r2(x, y)
"""
REPLACED = {
    "r1\t": "is next to (nearly)\t",
    "c1\t": "New York, N.Y.\t",
    "c2\t": "it's \N{GREEK SMALL LETTER PI}\t",
}
MORE_ROWS = {  # rare relations, duplicates, names of reciprocals, and names that are in the test alone
    "train": "".join(f"c{i % 150}\tmany{i % 200}\tc{(7 * i + 1) % 150}\n" for i in range(400))
    + "c1\tr0\tc2\nc1\tr0\tc2\nc2\tr0^-1\tc1\nc2\tr0^-1 (reciprocal)\tc1\n",
    "valid": "",
    "test": "c1\tunheard\tc2\nc1\tr0\tnobody\n",
}


def odd_rows(folder: Path) -> None:
    """No theory, and odd rows and names."""
    text = (folder / "problem.toml").read_text()
    (folder / "problem.toml").write_text(text.replace('theory = "theory.r2n"\n', ""))
    for name, more in MORE_ROWS.items():
        text = (folder / f"{name}.tsv").read_text()
        for old, new in REPLACED.items():
            text = text.replace(old, new)
        (folder / f"{name}.tsv").write_text(text + more, encoding="utf-8")


def rules_of_all_kinds(folder: Path) -> None:
    with (folder / "theory.r2n").open("a", encoding="utf-8") as file:
        file.write(RULES_OF_ALL_KINDS)


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "odd rows": (odd_rows, "chosen: model.reasoner = paths (queries are answered along paths)"),
    "rules of all kinds": (rules_of_all_kinds, "warning: 3 rules of the theory left out along paths; only Horn rules"),
}


@pytest.mark.parametrize("case", CASES)
def test_it_trains_with_nothing_but_a_problem_file(case: str, tmp_path: Path) -> None:
    (spoil, said), folder = CASES[case], tmp_path / "graph"
    generate(SMALL, folder)
    spoil(folder)
    changes = ["--set=training.epochs=1", "--set=model.dim=8", "--no-report", "--no-baseline"]  # for speed alone
    result = CliRunner().invoke(app, ["train", str(folder), "--json", "--out", str(folder / "run"), *changes])
    assert result.exit_code == 0, result.output
    assert said in result.stderr
    assert "chosen: training.loss = full-softmax" in result.stderr
    test = next(report for report in json.loads(result.stdout)["reports"] if report["split"] == "test")
    assert 0 < test["metrics"]["mrr"] <= 1
    problem = r2n.load(folder)
    assert contradictions(problem, choose_options(problem, problem.options)[0]) == [], "nor does check warn of anything"
    result = CliRunner().invoke(app, ["predict", str(folder / "run"), "r0(c3, ?)", "--top", "3", "--json"])
    assert [answer["predicate"] for answer in json.loads(result.stdout)["answers"]] == ["r0"] * 3
