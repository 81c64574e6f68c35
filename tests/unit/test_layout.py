"""The package as a whole: its public names, its direction of import, and files that no merge has damaged."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import r2n

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "r2n"

WITHOUT_TORCH = ("errors", "files", "options", "logic", "data", "datasets", "grounding", "mining")


def modules() -> list[str]:
    return sorted(str(p.relative_to(SOURCE)) for p in SOURCE.rglob("*.py") if not p.name.startswith("__"))


def test_all_is_what_is_exported() -> None:
    assert list(r2n.__all__) == sorted(set(r2n.__all__))
    for name in r2n.__all__:
        assert getattr(r2n, name).__module__.startswith("r2n.")
    assert set(dir(r2n)) - {"__version__"} == set(r2n.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = r2n.nothing


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    imported = [
        a for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0 for a in node.names
    ]
    seen = {alias.asname for alias in imported if alias.asname}
    assert seen == set(r2n.__all__)


def test_symbols_knowledge_and_grounding_never_import_torch() -> None:
    inside = [
        f"r2n.{m[:-3].replace('/', '.')}" for m in modules() if m.split("/")[0].removesuffix(".py") in WITHOUT_TORCH
    ]
    code = f"import sys, importlib\nfor m in {inside}: importlib.import_module(m)\nprint('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("module", modules())
def test_a_module_opens_with_a_sentence(module: str) -> None:
    text = (SOURCE / module).read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "a module opens with one sentence"
    assert "from __future__ import annotations" not in text


def test_the_network_asks_no_part_of_what_kind_it_is() -> None:
    text = (SOURCE / "network" / "r2n.py").read_text(encoding="utf-8")
    names = [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    assert names.count("isinstance") == 0
    assert text.count("pyright: ignore") == 0
