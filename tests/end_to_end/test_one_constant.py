"""One constant, so that no query has another candidate than its answer: every command says so, and no number is NaN."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from r2n.serving.session import Limits, Session
from r2n.serving.workers import run_job
from tests.command_line import invoke
from tests.html_pages import Page, faults

WHY = "no query has a candidate besides its answer: there is nothing to rank"
THEORY = "domain thing\npredicate p(thing)\npredicate q(thing)\nrule r: p(x) -> q(x)\n"
PROBLEM = """
name = "one"
theory = "theory.r2n"
[facts]
train = { file = "p.csv", predicate = "p" }
[queries]
valid = { file = "q.csv", predicate = "q" }
[training]
epochs = 2
patience = 3
validate_every = 1
"""


def without_nan(text: str) -> str:
    assert not re.search(r"\bnan\b", text, re.IGNORECASE), text
    return text


def said(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return " ".join(without_nan(result.output).split())


def strict(text: str | bytes) -> Any:
    return json.loads(text, parse_constant=pytest.fail)


def document(*arguments: object) -> Any:
    return strict(invoke(*arguments, "--json"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("one")
    (folder / "theory.r2n").write_text(THEORY)
    for name in "pq":
        (folder / f"{name}.csv").write_text("a\n")
    (folder / "problem.toml").write_text(PROBLEM)
    found = folder / "run", folder / "other"
    for seed, run in enumerate(found):
        assert f"no metrics: {WHY}" in said("train", folder, "--out", run, "--seed", seed)
    return found


def test_the_run_says_so(runs: tuple[Path, Path]) -> None:
    run, _ = runs
    report = strict((run / "report.json").read_bytes())["reports"][0]
    assert set(report["metrics"].values()) == {None}
    assert report["protocol"]["nothing_to_rank"] == WHY
    assert [strict(line)["valid"] for line in (run / "trace.jsonl").read_bytes().splitlines()] == [None, None]
    html = (run / "report.html").read_text("utf-8")
    assert faults(html) == []
    text = without_nan(Page(html).text)
    assert f"No metrics: {WHY}." in text
    assert "valid mrr, not held out none" in " ".join(text.split())


def test_evaluate_and_rules_say_so(runs: tuple[Path, Path]) -> None:
    run, _ = runs
    for more in ((), ("--sample", 1)):
        assert f"no metrics: {WHY}" in said("evaluate", run, "--split", "valid", *more)
        found = document("evaluate", run, "--split", "valid", *more)
        assert set(found["metrics"].values()) == {None}
        assert found["protocol"]["nothing_to_rank"] == WHY
    assert f"note: {WHY}" in said("rules", run)
    assert document("rules", run)["value"] is None


def test_compare_says_so(runs: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = said("compare", *runs, "--html", page)
    assert f"other is not tested against run: {WHY}" in text
    assert f"ranking of 1 query; {WHY}" in without_nan(Page(page.read_text("utf-8")).text).lower()
    (split,) = document("compare", *runs)["splits"]
    assert split["asked"] == f"ranking of 1 query; {WHY}; not held out: used for early stopping"
    assert split["metrics"]["mrr"] == [None, None]
    assert split["against_the_first"] == [{"run": "other", "tests": [], "why_not": WHY}]


def test_a_served_run_says_so(runs: tuple[Path, Path]) -> None:
    session = Session.load(runs[0], Limits())
    report = strict(run_job(session, "report", {})[0].body)
    assert report["results"][0]["report"]["protocol"]["nothing_to_rank"] == WHY
    assert report["figures"][0] == ["valid mrr, not held out", "none"]
    assert strict(run_job(session, "rules", {})[0].body)["value"] is None
