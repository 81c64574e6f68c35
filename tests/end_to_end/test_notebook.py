"""The notebook of a first session runs from its first cell to its last."""

import ast
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import r2n

NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_session.ipynb"


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell, with few epochs; the value that each cell shows has a representation."""
    monkeypatch.setattr(r2n, "train", partial(r2n.train, epochs=3, baseline=False), raising=False)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
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
