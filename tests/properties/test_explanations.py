"""Whatever an explanation holds is shown, as itself: in the tree, in the drawing, in the page."""

from collections.abc import Iterator
from itertools import combinations
from xml.etree import ElementTree

from hypothesis import given
from rich.cells import cell_len

from r2n.explanation.drawing import Box, answer_box, explanation_svg, node_box, wide_layout
from r2n.explanation.reason_graph import reason_graph
from r2n.explanation.records import Explanation, Reason
from r2n.explanation.text import LONGEST_NAME, Line, explanation_text, printable, render, shortened
from r2n.reporting.pages import REPLACED, explanation_page
from r2n.visible import visible
from tests.examples import at_most
from tests.explanations import explanations
from tests.page_reader import read_page

few = at_most(60, because="each example is a whole explanation, of a hundred names")
SHOWN_TAGS = {"html", "head", "meta", "title", "style", "body", "main", "header", "section", "h1", "h2", "ul", "li"}
SHOWN_TAGS |= {"p", "bdi", "strong", "span", "div", "i", "svg", "desc", "g", "rect", "text", "path"}


def oracle_reasons(reasons: tuple[Reason, ...]) -> Iterator[Reason]:
    for reason in reasons:
        yield reason
        for member in reason.because:
            yield from oracle_reasons(member.reasons)


def names(explanation: Explanation) -> set[str]:
    """All atoms, rules and ground rules, by plain loops."""
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


@few
@given(explanations())
def test_everything_is_told(explanation: Explanation) -> None:
    told = set(spans(render(explanation)))
    for name in names(explanation) | other_names(explanation):
        assert printable(name) in told


@few
@given(explanations())
def test_the_tree_names_everything_and_keeps_to_its_width(explanation: Explanation) -> None:
    wide, narrow = explanation_text(explanation, width=5_000), explanation_text(explanation, width=80)
    for name in names(explanation):
        assert visible(shortened(printable(name), LONGEST_NAME)).rstrip() in wide
    assert all(cell_len(line) <= 80 for line in narrow.splitlines())
    assert "\x1b" not in narrow


@few
@given(explanations())
def test_the_drawing_is_xml_that_names_everything(explanation: Explanation) -> None:
    for narrow in (False, True):
        root = ElementTree.fromstring(explanation_svg(explanation, narrow=narrow).encode())
        written = "\n".join(element.text or "" for element in root.iter() if element.tag.endswith(("}title", "}text")))
        for name in names(explanation):
            assert printable(name) in written
        assert "nan" not in " ".join(value for e in root.iter() for key, value in e.items() if key != "aria-label")


@few
@given(explanations())
def test_the_page_names_everything_and_holds_no_tag_of_theirs(explanation: Explanation) -> None:
    read = read_page(explanation_page(explanation))
    for name in names(explanation) | other_names(explanation):
        assert printable(name).translate(REPLACED) in read.text
    assert set(read.tags) <= SHOWN_TAGS
    assert not [name for name, _ in read.attributes if name.startswith("on")]


def overlap(one: Box, other: Box) -> bool:
    beside = one.right <= other.x or other.right <= one.x
    return not (beside or one.bottom <= other.y or other.bottom <= one.y)


@few
@given(explanations())
def test_no_box_stands_on_another(explanation: Explanation) -> None:
    graph = reason_graph(explanation.atom, explanation.belief, explanation.reasons)
    boxes = [answer_box(explanation), *(node_box(node) for node in graph.nodes[1:])]
    layout = wide_layout(graph, boxes)
    assert not [pair for pair in combinations(layout.boxes, 2) if overlap(*pair)]
    for place in layout.boxes:
        assert place.x >= 0
        assert place.y >= 0
        assert place.right <= layout.width
        assert place.bottom <= layout.height


@few
@given(explanations())
def test_every_atom_is_one_node_and_every_ground_rule_has_its_atoms(explanation: Explanation) -> None:
    graph = reason_graph(explanation.atom, explanation.belief, explanation.reasons)
    atoms = {explanation.atom} | {
        member.atom for reason in oracle_reasons(explanation.reasons) for member in reason.because
    }
    assert sum(node.kind in ("atom", "answer") for node in graph.nodes) == len(atoms)
    for reason in oracle_reasons(explanation.reasons):
        wanted = {printable(member.atom) for member in reason.because}
        rules = [i for i, node in enumerate(graph.nodes) if node.title.endswith(f": {printable(reason.ground_rule)}")]
        held = [{graph.nodes[edge.atom].name for edge in graph.edges if edge.rule == i} for i in rules]
        assert any(wanted <= atoms and len(atoms - wanted) <= 1 for atoms in held)  # and the one that it moves
