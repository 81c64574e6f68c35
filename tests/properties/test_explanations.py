"""Whatever an explanation holds is shown, as itself: in the tree, in the drawing, in the page."""

from collections.abc import Iterator
from itertools import combinations
from xml.etree import ElementTree

from hypothesis import given
from rich.cells import cell_len

from r2n.explanation.drawing import Node, explanation_svg, reason_trees
from r2n.explanation.records import LONGEST_NAME, Explanation, Line, Reason, explanation_text, render
from r2n.reporting.pages import REPLACED, explanation_page
from r2n.visible import printable, shortened
from tests.examples import at_most
from tests.explanations import explanations
from tests.html_pages import read_page

few = at_most(60, because="each example is a whole explanation, of a hundred names")
SHOWN_TAGS = {"html", "head", "meta", "title", "style", "body", "main", "header", "section", "h1", "h2", "ul", "li"}
SHOWN_TAGS |= {"p", "bdi", "strong", "span", "div", "i", "svg", "desc", "g", "rect", "text", "path"}


def oracle_reasons(reasons: tuple[Reason, ...]) -> Iterator[Reason]:
    for reason in reasons:
        yield reason
        for member in reason.because:
            yield from oracle_reasons(member.reasons)


def names(explanation: Explanation) -> set[str]:
    reasons = list(oracle_reasons(explanation.reasons))
    found = {explanation.atom}
    if explanation.contrast is not None:
        found.add(explanation.contrast.other)
        reasons += oracle_reasons(explanation.contrast.reasons)
    for reason in reasons:
        found |= {reason.rule, reason.ground_rule, *(member.atom for member in reason.because)}
    return found


def other_names(explanation: Explanation) -> set[str]:
    """What else is named: facts that could be otherwise, similar atoms, features, notes."""
    found = {name for item in explanation.counterfactuals for name in item.what} | set(explanation.notes)
    if explanation.turned_by is not None:
        found |= set(explanation.turned_by.what)
    if explanation.input is not None:
        found |= {item.atom for item in explanation.input.similar} | {item.part for item in explanation.input.features}
    return found


def spans(line: Line) -> Iterator[str]:
    yield from (span.text for span in line.spans)
    for below in line.lines:
        yield from spans(below)


def overlap(one: Node, other: Node) -> bool:
    apart = one.x + one.width <= other.x or other.x + other.width <= one.x
    return not (apart or one.y + one.height <= other.y or other.y + other.height <= one.y)


@few
@given(explanations())
def test_text_drawing_and_page_show_everything_as_itself(explanation: Explanation) -> None:
    """The tree keeps to its width, the drawing is XML, the page holds no tag of theirs."""
    named, others = names(explanation), other_names(explanation)
    shown = set(spans(render(explanation)))
    wide, narrow = explanation_text(explanation, width=5_000), explanation_text(explanation, width=80)
    page = read_page(explanation_page(explanation))
    for name in named | others:
        assert printable(name) in shown
        assert printable(name).translate(REPLACED) in page.text
    for name in named:
        assert shortened(printable(name), LONGEST_NAME).rstrip() in wide
    assert all(cell_len(line) <= 80 for line in narrow.splitlines())
    assert "\x1b" not in narrow
    assert set(page.tags) <= SHOWN_TAGS
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    root = ElementTree.fromstring(explanation_svg(explanation).encode())
    written = "\n".join(element.text or "" for element in root.iter() if element.tag.endswith(("}title", "}text")))
    assert [name for name in named if printable(name) not in written] == []
    assert "nan" not in " ".join(value for e in root.iter() for key, value in e.items() if key != "aria-label")


@few
@given(explanations())
def test_every_ground_rule_is_drawn_with_its_atoms_and_no_box_covers_another(explanation: Explanation) -> None:
    tree = reason_trees(explanation)[0]
    reasons = list(oracle_reasons(explanation.reasons))
    held = [[part.of for part in node.children] for node in tree.nodes if node.kind == "rule"]
    assert sorted(held) == sorted([member.atom for member in reason.because] for reason in reasons)
    tree.place()
    assert not [pair for pair in combinations(tree.nodes, 2) if overlap(*pair)]
    for node in tree.nodes:
        assert min(node.x, node.y) >= 0
        assert node.x + node.width <= tree.width
        assert node.y + node.height <= tree.height
