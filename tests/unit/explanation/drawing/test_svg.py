"""The drawing as SVG."""

from xml.etree import ElementTree

from r2n.explanation.drawing.svg import Theme, explanation_svg
from tests.explanations import italy

NAMESPACE = "{http://www.w3.org/2000/svg}"


def parsed(theme: Theme = "auto") -> ElementTree.Element:
    return ElementTree.fromstring(explanation_svg(italy(), theme=theme))


def sheet(theme: Theme) -> str:
    return parsed(theme).findtext(f"{NAMESPACE}style") or ""


def test_it_says_what_it_is() -> None:
    root = parsed()
    assert root.tag == f"{NAMESPACE}svg"
    assert root.get("role") == "img"
    assert root.get("aria-label") == root.findtext(f"{NAMESPACE}title") == "Why locatedIn(italy, europe)?"
    assert (root.findtext(f"{NAMESPACE}desc") or "").startswith("The answer is 0.97")


def test_it_is_light_or_dark_or_as_its_reader_likes_it() -> None:
    assert "prefers-color-scheme" in sheet("auto")
    assert "prefers-color-scheme" not in sheet("light")
    assert "#0d1117" in sheet("dark")
    assert "#0d1117" not in sheet("light")


def test_several_can_stand_in_one_page() -> None:
    root = parsed()
    assert not [element for element in root.iter() if "id" in element.attrib]
    rules = [part for part in sheet("light").split("}") if part]
    assert all(rule.startswith(".r2n-drawing .") for rule in rules)


def test_every_class_has_a_style() -> None:
    text, root = sheet("light"), parsed()
    classes = {element.get("class") for element in root.iter() if element is not root and element.get("class")}
    assert classes
    assert all(f".{name}{{" in text for name in classes)
