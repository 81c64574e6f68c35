"""The drawing of an explanation: its tree of atoms and ground rules, its boxes, its layout, its lines, its colours."""

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
    Theme,
    drawn_nodes,
    explanation_svg,
    reason_trees,
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


def atom(belief: Belief) -> Element:
    """The drawing of an atom below a rule."""
    reason = Reason("r", "p(b) -> p(a)", 1.0, (Member("p(b)", belief),))
    (node,) = marks(drawn(replace(ALONE, reasons=(reason,))), "atom")[:1]
    return node


def styles(node: Element) -> set[str]:
    return {part for mark in node for part in mark.get("class", "").split()}


def test_truth_is_shown_by_a_colour_a_sign_and_a_dash() -> None:
    assert {"sign-for", "edge-for"} <= styles(atom(TRUE))
    for belief in (FALSE, CLOSED):
        assert {"sign-against", "edge-against"} <= styles(atom(belief))
    (level,) = marks(atom(Belief(0.75, 1.1)), "level-for")
    assert (level.get("height"), level.get("y")) == ("18", "18")
    for name in ("edge", "pill", "flow"):
        assert "dasharray" in SHAPES[f"{name}-against"]
        assert "dasharray" not in SHAPES[f"{name}-for"]


def test_any_name_fits_into_its_box() -> None:
    compared = italy().contrast
    assert compared is not None
    for name in NASTY:
        flip = Counterfactual("known to be false", (name,) * 5, 0.0, 0.5, True)
        reason = Reason(name, name, 1.0, (Member(name, TRUE),))
        given = replace(italy(), atom=name, reasons=(reason,), turned_by=flip, contrast=replace(compared, other=name))
        for node in (node for tree in reason_trees(given) for node in tree.nodes):
            assert all(node.left + text_width(text, style) <= node.width for _, text, style in node.texts)
            assert all(0 < y < node.height for y, _, _ in node.texts)
            assert node.width < 600


def test_a_node_stands_between_its_children_and_the_answer_near_the_top() -> None:
    def middles(explanation: Explanation) -> list[float]:
        tree = reason_trees(explanation)[0]
        tree.place()
        return [round(node.y + node.height / 2, 6) for node in tree.nodes]

    assert len(set(middles(chain(2)))) == 1  # a chain is a straight line
    answer, *below = middles(chain(1, 3))
    rules = below[::2]
    assert answer == rules[1]
    assert rules == below[1::2] == sorted(rules)
    tree = reason_trees(chain(3, 12))[0]
    tree.place()
    assert tree.nodes[0].y == LOWEST_ANSWER


def test_lines_are_as_wide_as_the_effect() -> None:
    root = drawn(replace(italy(), contrast=None))
    flows = [mark for mark in marks(root, "flow-for") if len(mark)]  # without that of the legend
    widths = sorted(float(mark.get("stroke-width", 0)) for mark in flows)
    assert len(widths) == 6
    assert (widths[0], widths[-1]) == (pytest.approx(THINNEST + (THICKEST - THINNEST) * 0.4 / 3.4, abs=0.01), THICKEST)
    assert {mark.findtext(f"{SVG}title") for mark in marks(root, "flow-against") if len(mark)} == {"effect -0.42"}
    assert len(marks(root, "link")) == 14


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


def test_many_ground_rules_are_counted_and_named_by_a_node_of_their_own() -> None:
    reasons = tuple(Reason(f"r{i}", f"q({i}) -> p(a)", 1.0 / (i + 1), (Member(f"q({i})", TRUE),)) for i in range(100))
    more = reason_trees(replace(ALONE, reasons=reasons))[0].nodes[0].children[-1]
    assert (more.kind, more.lines[0][0]) == ("more", f"and {100 - MOST_OF_ONE_ATOM} more ground rules")
    assert len(more.title.splitlines()) == MOST_NAMED + 1
    assert more.title.endswith(f"and {100 - MOST_OF_ONE_ATOM - MOST_NAMED} more")
    one_more = reason_trees(replace(ALONE, reasons=reasons[: MOST_OF_ONE_ATOM + 1]))[0]
    assert not [node for node in one_more.nodes if node.kind == "more"]


def test_a_deep_explanation_is_drawn_from_the_answer_on_as_far_as_there_is_room() -> None:
    (tree,) = reason_trees(chain(20, rules=3))
    drawn = sum(node.kind == "rule" for node in tree.nodes)
    assert MOST_GROUND_RULES <= drawn <= MOST_GROUND_RULES + 2
    assert any("more ground rule" in node.lines[0][0] for node in tree.nodes if node.kind == "more")
