"""The page's own files: nothing from elsewhere, nothing inline, names never as markup, files that can be read."""

import re
from pathlib import Path

import pytest

import r2n.serving

PAGE = Path(r2n.serving.__file__).parent / "page"
STATIC = PAGE / "static"
MODULES = sorted(STATIC.glob("*.js"))
FILES = [PAGE / "index.html", *sorted(STATIC.iterdir())]
MOST_LINES = 300
AS_MARKUP = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval(", "new Function")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_short_and_loads_nothing_from_another_host(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.count("\n") <= MOST_LINES
    assert set(re.findall(r"https?://[^\s\"'`]+", text)) <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_module_makes_no_markup_of_names_and_keeps_nothing(path: Path) -> None:
    text = path.read_text("utf-8")
    allowed = {"DOMParser"} if path.name == "drawing.js" else set()  # for SVG of the server; it keeps few tags
    assert {word for word in AS_MARKUP if word in text} == allowed
    assert [word for word in ("localStorage", "sessionStorage", "cookie", "indexedDB") if word in text] == []
    assert not re.search(r"\bstyle:", text), "a style attribute is refused by the policy; use classes or CSSOM"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_module_says_what_it_is_for_and_uses_all_that_it_imports(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.startswith("/**\n * ")
    for names, source in re.findall(r'^import \{([^}]*)\} from "\./([^"]+)";', text, re.M):
        exported = (STATIC / source).read_text("utf-8")
        for name in (part.strip() for part in names.split(",") if part.strip()):
            assert re.search(rf"export (?:async )?(?:function|class|const) {name}\b", exported), (source, name)
            assert len(re.findall(rf"\b{name}\b", text)) > 1, f"{name} is imported and not used"


def test_every_module_is_reached_and_every_export_is_used() -> None:
    texts = {path.name: path.read_text("utf-8") for path in MODULES}
    reached, waiting = set(), ["main.js"]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += re.findall(r'^(?:import|\}).* from "\./([^"]+)";', texts[name], re.M)
    assert reached == set(texts)
    for name, text in texts.items():
        for export in re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", text, re.M):
            others = "".join(other for key, other in texts.items() if key != name)
            assert re.search(rf"\b{export}\b", others), f"{export} of {name} is used nowhere"


def test_the_shell_has_nothing_inline() -> None:
    text = (PAGE / "index.html").read_text("utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text)
