"""The tests mirror the sources file by file, and the package exports what it says."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import r2n

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "r2n"
UNIT = ROOT / "tests" / "unit"

TESTED_ELSEWHERE = {
    "logic/theory_builder.py": "unit/logic/test_parser.py",
}
WITHOUT_TORCH = ("errors", "logic", "knowledge", "datasets", "grounding", "mining")


def modules() -> list[str]:
    return sorted(str(p.relative_to(SOURCE)) for p in SOURCE.rglob("*.py") if not p.name.startswith("__"))


def twin(module: str) -> Path:
    path = Path(module)
    return UNIT / path.parent / f"test_{path.name}"


@pytest.mark.parametrize("module", modules())
def test_every_source_file_has_a_twin(module: str) -> None:
    expected = ROOT / "tests" / TESTED_ELSEWHERE[module] if module in TESTED_ELSEWHERE else twin(module)
    assert expected.is_file(), f"write {expected.relative_to(ROOT)}"


def test_the_list_of_exceptions_is_short_and_needed() -> None:
    assert len(TESTED_ELSEWHERE) <= 5
    for module in TESTED_ELSEWHERE:
        assert module in modules()
        assert not twin(module).exists()


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
def test_a_module_opens_with_its_place_in_the_flow_and_stays_short(module: str) -> None:
    text = (SOURCE / module).read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "a module opens with one sentence"
    assert text.count("\n") <= 300
    assert "from __future__ import annotations" not in text
