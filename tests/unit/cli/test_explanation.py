"""r2n explain: its options, its output, its files.

The engine is stood in for: `explained` replaces `Model.explain`, so that all kinds of explanations are seen here.
What the engine itself says is tested with it.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from r2n.cli import app
from r2n.explanation.drawing import explanation_svg
from r2n.explanation.records import Explanation
from r2n.model.model import Model
from tests.explanations import italy
from tests.html_pages import read_page

runner = CliRunner()
ATOM = "liesIn(n5, north)"


@pytest.fixture
def explained(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the engine was asked; it answers with an explanation made by hand."""
    asked: list[dict[str, Any]] = []

    def explain(predictor: Model, atom: str, **options: object) -> Explanation:
        asked.append({"atom": atom, "known": len(predictor.problem.train), **options})
        return italy()

    monkeypatch.setattr(Model, "explain", explain, raising=False)
    return asked


def invoke(*arguments: object, code: int = 0) -> Result:
    result = runner.invoke(app, ["explain", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def test_options_reach_the_engine_and_files_are_written(
    run_folder: Path, explained: list[dict[str, Any]], tmp_path: Path
) -> None:
    page, drawing = tmp_path / "why.html", tmp_path / "why.svg"
    facts = ["--with", "near(n1, atlantis)", "--without", "near(n1, n0)", "--without", "near(n0, n1)"]
    options = ["--against", "liesIn(n5, south)", "--depth", 0, "--top", 3, "--device", "cpu"]
    result = invoke(run_folder, ATOM, *options, *facts, "--html", page, "--svg", drawing)
    assert explained == [{"atom": ATOM, "known": 43, "depth": 0, "top": 3, "against": "liesIn(n5, south)"}]
    assert result.stdout.startswith("locatedIn(italy, europe)  0.97")
    for text in ("new constant: atlantis", f"written: {page}", f"written: {drawing}"):
        assert text in result.stderr
    read = read_page(page.read_text(encoding="utf-8"))
    assert read.tags["svg"] == 1
    assert all(text in read.text for text in ("towns", "near(n1, atlantis)"))
    assert drawing.read_text(encoding="utf-8") == explanation_svg(italy())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["why.html", "why.svg"]
    found = json.loads(invoke(run_folder, ATOM, "--json").stdout)
    assert found == json.loads(json.dumps(italy().to_dict()))
    assert explained[1] == {"atom": ATOM, "known": 44, "depth": 2, "top": 5, "against": None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--html", "{}/nowhere/x.html"], "cannot be written: there is no folder"),
        (["--svg", "{}"], "cannot be written: it is a folder"),
        (["--svg", "{}/why.png"], "cannot be written: PNG is not supported"),
        (["--depth", "-1"], "Invalid value for '--depth'"),
        (["--top", "0"], "Invalid value for '--top'"),
        (["--with", "nera(n1, n2)"], "unknown predicate 'nera'"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_work(
    arguments: list[str], message: str, run_folder: Path, explained: list[dict[str, Any]], tmp_path: Path
) -> None:
    given = [argument.format(tmp_path) for argument in arguments]
    output = invoke(run_folder, ATOM, *given, code=2).output
    assert message in " ".join(output.replace("│", " ").split())
    assert explained == []
