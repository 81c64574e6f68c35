"""The drawing of an explanation: its graph of atoms and ground rules, its boxes, its layout, its lines, its colours."""

from dataclasses import replace
from itertools import product
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from r2n.explanation.drawing import (
    COLOURS,
    LOWEST_ANSWER,
    MOST_GROUND_RULES,
    MOST_NAMED,
    MOST_OF_ONE_ATOM,
    SHAPES,
    THICKEST,
    THINNEST,
    Box,
    Edge,
    Node,
    Theme,
    answer_box,
    contrast_box,
    drawn_nodes,
    explanation_svg,
    node_box,
    positioned,
    reason_graph,
    style_sheet,
    text_width,
)
from r2n.explanation.records import Belief, Counterfactual, Explanation, Member, Reason
from r2n.model.model import Model
from r2n.model.run import Run
from tests.explanations import CLOSED, FALSE, NASTY, TRUE, chain, italy
from tests.html_pages import contrast

SVG = "{http://www.w3.org/2000/svg}"
ALONE = Explanation("p(a)", Belief(0.5, 0.0), (), ())


def drawn(explanation: Explanation, theme: Theme = "auto") -> Element:
    return ElementTree.fromstring(explanation_svg(explanation, theme=theme))


def marks(root: Element, style: str) -> list[Element]:
    return [element for element in root.iter() if style in element.get("class", "").split()]


# boxes


def atom(belief: Belief, name: str = "p(a)") -> Box:
    return node_box(Node("atom", name, "a note", "", 2, belief))


def styles(box: Box) -> list[str]:
    return [mark.get("class", "").split()[0] for mark in box.marks]


def is_inside(box: Box) -> bool:
    """Whether all texts and rectangles are within the box."""
    for mark in box.marks:
        x, y = float(mark.get("x", 0)), float(mark.get("y", 1))
        if mark.tag == "text":
            width = text_width(mark.text or "", mark.get("class", ""))
            left = x - width / 2 if mark.get("text-anchor") == "middle" else x
            if left < 0 or left + width > box.width or not 0 < y < box.height:
                return False
        elif mark.tag == "rect" and (x + float(mark.get("width", 0)) > box.width + 0.01 or y > box.height):
            return False
    return True


def test_truth_is_shown_by_a_colour_a_sign_and_a_dash() -> None:
    assert {"sign-for", "edge-for"} <= set(styles(atom(TRUE)))
    for belief in (FALSE, CLOSED):
        assert {"sign-against", "edge-against"} <= set(styles(atom(belief)))
    level = atom(Belief(0.75, 1.1)).marks[3]
    assert (level.get("class"), level.get("height"), level.get("y")) == ("level-for", "18", "16")
    for name in ("edge", "pill", "flow"):
        assert "dasharray" in SHAPES[f"{name}-against"]
        assert "dasharray" not in SHAPES[f"{name}-for"]


def test_any_name_fits_into_its_box() -> None:
    for name in NASTY:
        shown = name.encode("utf-8", "replace").decode()
        assert is_inside(atom(TRUE, shown))
        assert is_inside(node_box(Node("rule", shown, "+1.00", "", 1, effect=1.0)))
        flip = Counterfactual("known to be false", (name,) * 5, 0.0, 0.5, True)
        assert is_inside(answer_box(replace(italy(), atom=name, turned_by=flip, contrast=None)))
        compared = italy().contrast
        assert compared is not None
        assert is_inside(contrast_box(replace(italy(), contrast=replace(compared, other=name))))
    assert atom(TRUE, "x" * 10_000).width < 400


# positions


def test_a_node_stands_between_its_children_and_the_answer_near_the_top() -> None:
    def boxes(explanation: Explanation, height: float = 20) -> list[Box]:
        graph = reason_graph(explanation.atom, explanation.belief, explanation.reasons)
        return positioned(graph, [Box(50, height, ()) for _ in graph.nodes])[0]

    assert len({box.middle for box in boxes(chain(2))}) == 1  # a chain is a straight line
    answer, first, held, *others = boxes(chain(1, 3))
    assert answer.middle == others[0].middle
    assert held.middle == first.middle
    assert [box.y for box in (first, *others)] == sorted(box.y for box in (first, *others))
    assert boxes(chain(1, 12), height=400)[0].y == LOWEST_ANSWER


# lines, legend, colours


def test_lines_are_as_wide_as_the_effect_and_dotted_where_they_lead_back() -> None:
    root = drawn(replace(italy(), contrast=None))
    flows = [mark for mark in marks(root, "flow-for") if len(mark)]  # without that of the legend
    widths = sorted(float(mark.get("stroke-width", 0)) for mark in flows)
    assert len(widths) == 6
    assert (widths[0], widths[-1]) == (pytest.approx(THINNEST + (THICKEST - THINNEST) * 0.4 / 3.4, abs=0.01), THICKEST)
    assert {mark.findtext(f"{SVG}title") for mark in marks(root, "flow-against") if len(mark)} == {"effect -0.42"}
    assert [len(marks(root, style)) for style in ("link-back", "link")] == [1, 13]


def test_a_screen_reader_reads_what_it_shows() -> None:
    root = drawn(italy())
    assert root.get("role") == "img"
    assert not [element for element in root.iter() if "id" in element.attrib]  # a page can hold several
    assert root.get("aria-label") == root.findtext(f"{SVG}title") == "Why locatedIn(italy, europe)?"
    description = root.findtext(f"{SVG}desc") or ""
    assert description.startswith("The answer is 0.97; the strongest reason is neighborOf(france, italy) & ")
    assert description.endswith("without them 0.12 is left.")
    assert drawn(ALONE).findtext(f"{SVG}desc") == "The answer is 0.50; no ground rule is a reason."


def test_colours_follow_the_theme_and_have_enough_contrast() -> None:
    sheets = {theme: drawn(italy(), theme).findtext(f"{SVG}style") for theme in ("auto", "light", "dark", "page")}
    assert sheets["page"] is None
    assert "prefers-color-scheme" in (sheets["auto"] or "")
    assert ("#0d1117" in (sheets["dark"] or ""), "#0d1117" in (sheets["light"] or "")) == (True, False)
    assert "var(--ink)" in style_sheet("page")
    for theme, below in product((0, 1), ("page", "card")):  # WCAG AA
        palette = {name: values[theme] for name, values in COLOURS.items()}
        assert all(contrast(palette[name], palette[below]) > 4.5 for name in ("ink", "quiet", "for", "against"))


# for a page


def test_nodes_say_what_can_be_left_out(toy_run: Run) -> None:
    predictor = Model.from_run(toy_run).with_facts("!liesIn(n1, south)")
    facts = {}
    for valley in ("north", "south"):
        explanation = predictor.explain(f"liesIn(n2, {valley})")
        nodes = drawn_nodes(explanation)
        assert (nodes[0]["kind"], nodes[0]["fact"]) == ("answer", None)
        assert {node["of"] for node in nodes if node["kind"] == "rule"} == {"neighbours"}
        numbers = [node.get("data-node") for node in marks(drawn(explanation), "node")]
        assert numbers == [str(i) for i in range(len(nodes))]
        facts |= {node["of"]: node["fact"] for node in nodes if node["kind"] == "atom"}
    assert facts["liesIn(n1, north)"] == "liesIn(n1, north)"
    assert facts["liesIn(n1, south)"] == "!liesIn(n1, south)"


ITALY = italy()
GRAPH = reason_graph(ITALY.atom, ITALY.belief, ITALY.reasons, if_unknown={"neighborOf(france, italy)": "0.78"})


def test_every_node_but_the_answer_is_the_child_of_one_other_a_column_left() -> None:
    graph = GRAPH
    back = next(i for i, node in enumerate(graph.nodes) if node.title.startswith("manifold +0.40"))
    assert Edge(back, 0) in graph.edges
    parents = {child: i for i, node in enumerate(graph.nodes) for child in node.children}
    assert sorted(parents) == list(range(1, len(graph.nodes)))
    assert sum(len(node.children) for node in graph.nodes) == len(parents)
    for child, parent in parents.items():
        assert parent < child
        assert graph.nodes[child].column == graph.nodes[parent].column + 1


def test_reasons_that_stand_elsewhere_are_found() -> None:
    """An atom that is referred to first and explained later is expanded where it is nearest to the answer."""
    deep = Member("q(a)", TRUE, reasons=(Reason("t", "u(a) -> q(a)", 0.5, (Member("u(a)", TRUE),)),))
    over = Member("s(a)", TRUE, reasons=(Reason("s", "q(a) -> s(a)", 0.4, (deep,)),))
    reasons = (
        Reason("r", "q(a) & s(a) -> p(a)", 1.0, (Member("q(a)", TRUE, is_explained_above=True), over)),
        Reason("r", "q(a) -> p(a)", 1.0, (Member("q(a)", TRUE, is_explained_above=True),)),
    )
    graph = reason_graph("p(a)", Belief(0.5, 0.0), reasons)
    columns = {node.name: node.column for node in graph.nodes if node.kind == "atom"}
    assert columns == {"q(a)": 2, "s(a)": 2, "u(a)": 4}
    assert sum(edge.effect is None for edge in graph.edges) == 5


def test_an_atom_at_two_positions_has_one_edge_and_the_answer_of_a_difference_stands_for_both() -> None:
    twice = Reason("r", "q(a) & q(a) -> p(a)", 1.0, (Member("q(a)", TRUE), Member("q(a)", TRUE)))
    assert reason_graph("p(a)", TRUE, (twice,)).edges == (Edge(1, 0, 1.0), Edge(1, 2))
    members = Member("q(a)", TRUE), Member("p(b)", TRUE)
    graph = reason_graph("p(a)", TRUE, (Reason("r", "q(a) -> p(b)", -1.0, members),), other="p(b)")
    assert [node.name for node in graph.nodes] == ["p(a)", "r", "q(a)"]
    assert graph.edges == (Edge(1, 0, -1.0), Edge(1, 2))


def test_many_ground_rules_are_counted_and_named_by_a_node_of_their_own() -> None:
    reasons = tuple(Reason(f"r{i}", f"q({i}) -> p(a)", 1.0 / (i + 1), (Member(f"q({i})", TRUE),)) for i in range(100))
    graph = reason_graph("p(a)", TRUE, reasons)
    more = [node for node in graph.nodes if node.kind == "more"]
    assert [node.name for node in more] == [f"and {100 - MOST_OF_ONE_ATOM} more ground rules"]
    assert len(more[0].title.splitlines()) == MOST_NAMED + 1
    assert more[0].title.endswith(f"and {100 - MOST_OF_ONE_ATOM - MOST_NAMED} more")
    one_more = reason_graph("p(a)", TRUE, reasons[: MOST_OF_ONE_ATOM + 1])
    assert not [node for node in one_more.nodes if node.kind == "more"]


def test_a_deep_explanation_is_drawn_from_the_answer_on_as_far_as_there_is_room() -> None:
    given = chain(20, rules=3)
    graph = reason_graph(given.atom, given.belief, given.reasons)
    drawn = sum(node.kind == "rule" for node in graph.nodes)
    assert MOST_GROUND_RULES <= drawn <= MOST_GROUND_RULES + 2
    left = [node.note for node in graph.nodes if "not drawn" in node.note]
    assert left == ["believed 0.70 · 3 reasons not drawn"] or any("more ground rule" in n.name for n in graph.nodes)
