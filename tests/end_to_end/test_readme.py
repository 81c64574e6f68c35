"""The README's examples in Python, and the notebook of a first session, run as they stand."""

import ast
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from torch import nn

import r2n
from tests.toy_problem import write_toy_problem

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NINE_LINES, OWN_DATA = re.findall(r"```python\n(import r2n\n.*?)```", README, re.S)


@pytest.mark.parametrize("only_true", [False, True])
def test_the_nine_lines_run(
    only_true: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = r2n.load(str(write_toy_problem(tmp_path / "towns")))
    if only_true:  # as in knowledge graphs: there is no average precision of these
        test = problem.test
        problem = replace(problem, queries={"test": r2n.Evidence(test.atoms[test.truth], test.truth[test.truth])})
    monkeypatch.setattr(r2n, "load", lambda _: problem, raising=False)
    monkeypatch.chdir(tmp_path)
    code = NINE_LINES.replace("locatedIn(germany", "liesIn(n5").replace("locatedIn(atlantis", "liesIn(n5")
    names: dict[str, object] = {}
    exec(compile(code.replace("neighborOf(atlantis, spain)", "near(n5, n0)"), "README.md", "exec"), names)
    assert f"Report on 'test' ({'ranking' if only_true else 'classification'}" in capsys.readouterr().out
    assert isinstance(names["network"], nn.Module)


def test_the_example_of_own_data_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(r2n, "train", partial(r2n.train, baseline=False), raising=False)
    exec(compile(OWN_DATA, "README.md", "exec"), {})
    probability = re.search(r"grandparent\(eve, ben\) ([\d.]+)", capsys.readouterr().out)
    assert probability is not None
    assert float(probability[1]) > 0.5


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell, with few epochs; the value that each cell shows has a representation."""
    monkeypatch.setattr(r2n, "train", partial(r2n.train, epochs=3, baseline=False), raising=False)
    cells = json.loads((ROOT / "examples" / "first_session.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    shown = list[str]()
    for source in ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"):
        *statements, last = ast.parse(source).body
        exec(compile(ast.Module(statements, []), "notebook", "exec"), names)
        assert isinstance(last, ast.Expr), source
        shown.append(str(eval(compile(ast.Expression(last.value), "notebook", "eval"), names)))
    assert "Problem 'countries-s3'" in shown[0]
    assert "locatedIn(germany" in shown[2]
    assert "atlantis" in shown[4]
    assert "coastal(town" in shown[-1]
