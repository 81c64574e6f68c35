"""An explanation, drawn: Explanation -> Picture, which is then written as SVG or PNG."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from r2n.explanation.drawing.boxes import Box, answer_box, contrast_box, layers_text, node_box
from r2n.explanation.drawing.layout import HEADING, MARGIN, Layout, Place, lay_out
from r2n.explanation.drawing.marks import Group, Mark, Number, Picture, Point, Rectangle, Stroke, Words
from r2n.explanation.drawing.reason_graph import Edge, ReasonGraph, reason_graph
from r2n.explanation.drawing.styles import text_width
from r2n.explanation.records import Explanation
from r2n.explanation.text import (
    answer_texts,
    fidelity_text,
    network_probability,
    printable,
    probability_text,
    share_of,
    shortened,
)

THINNEST, THICKEST = 1.5, 9.0
LEGEND = 30.0
LONGEST_TITLE = 300


def explanation_picture(explanation: Explanation) -> Picture:
    """The answer on the left, the ground rules that moved it right of it, their atoms, and so on to the facts.

    Where the explanation holds another atom against the answer, what makes the difference is drawn below.
    """
    parts = [_drawn("the answer", explanation_graph(explanation), answer_box(explanation), _answer_title(explanation))]
    if explanation.contrast is not None:
        contrast = explanation.contrast
        graph = reason_graph(explanation.atom, explanation.belief, contrast.reasons, other=contrast.other)
        title = f"{printable(explanation.atom)} rather than {printable(contrast.other)}"
        parts.append(_drawn("the difference", graph, contrast_box(explanation), title))
    groups, y = [], 0.0
    for layout, drawn in parts:
        groups += [group.moved(0, y) for group in drawn]
        y += layout.height
    shown = (group for _, drawn in parts for group in drawn[:1] + drawn[2:])  # all but the answer
    legend, legend_width = _legend({mark.style for group in shown for mark in group.marks})
    width = max([layout.width for layout, _ in parts] + [legend_width + 2 * MARGIN])
    height = y + (LEGEND if legend else 0.0)
    page = Group("", (Rectangle(0, 0, width, height, "page", 14),))
    groups = [page, *groups, Group("", tuple(mark.moved(MARGIN, height - MARGIN) for mark in legend))]
    return Picture(_title(explanation), _description(explanation), width, height, tuple(groups))


def explanation_graph(explanation: Explanation) -> ReasonGraph:
    """Atoms and ground rules; a fact says what the answer would be without it, where that is another."""
    answer = probability_text(network_probability(explanation))
    alone = [item for item in explanation.counterfactuals if item.kind == "not known" and len(item.what) == 1]
    changes = {item.what[0]: probability_text(item.probability) for item in alone}
    told = {name: text for name, text in changes.items() if text != answer}
    return reason_graph(explanation.atom, explanation.belief, explanation.reasons, if_unknown=told)


def _drawn(heading: str, graph: ReasonGraph, answer: Box, title: str) -> tuple[Layout, list[Group]]:
    """A graph whose answer has this box: headings and edges, then the answer and the other nodes on top of them."""
    boxes = [answer, *(node_box(node) for node in graph.nodes[1:])]
    layout = lay_out(graph, boxes)
    titles = [title, *(node.title for node in graph.nodes[1:])]
    nodes = [
        Group(text, box.marks).moved(place.x, place.y)
        for text, box, place in zip(titles, boxes, layout.places, strict=True)
    ]
    edges = [stroke for _, stroke in drawn_edges(graph, layout.places)]
    return layout, [Group("", (*_headings(heading, layout), *edges)), *nodes]


def _headings(first: str, layout: Layout) -> Iterator[Mark]:
    for column, x in enumerate(layout.columns):
        text = "given" if column and column % 2 == 0 else "because of" if column else first
        yield Words(x, MARGIN + HEADING / 2 - 4, text, "heading")


def drawn_edges(graph: ReasonGraph, places: Sequence[Place]) -> Iterator[tuple[Edge, Stroke]]:
    """Each edge with its line, those that lie below others first."""
    yield from _links(graph, places)
    yield from _flows(graph, places)


def _flows(graph: ReasonGraph, places: Sequence[Place]) -> Iterator[tuple[Edge, Stroke]]:
    """From each ground rule to the atom that it moves: as wide as its effect."""
    by_atom, whole = defaultdict(list), graph.strongest
    for edge in graph.edges:
        if edge.effect is not None:
            by_atom[edge.atom].append(edge)
    for atom, edges in by_atom.items():
        room = places[atom].height - 20
        step = min(room / max(len(edges) - 1, 1), 16.0)
        for i, edge in enumerate(edges):
            end = places[atom].middle + (i - (len(edges) - 1) / 2) * step
            share = share_of(edge.effect, whole)
            style = "flow-against" if edge.effect < 0 else "flow-for"
            start = places[edge.rule].x, places[edge.rule].middle
            yield edge, _curve(start, (places[atom].right, end), style, THINNEST + (THICKEST - THINNEST) * share)


def _links(graph: ReasonGraph, places: Sequence[Place]) -> Iterator[tuple[Edge, Stroke]]:
    """From each ground rule to the atoms that it holds; dotted to those that stand further left."""
    for edge in graph.edges:
        if edge.effect is not None:
            continue
        rule, atom = places[edge.rule], places[edge.atom]
        if atom.x > rule.x:
            yield edge, _curve((rule.right, rule.middle), (atom.x, atom.middle), "link", 1.5)
        else:
            below, beside = (rule.x + rule.width / 2, rule.y + rule.height), (atom.right, atom.middle)
            turns = (below[0], below[1] + 40), (beside[0] + 50, beside[1])
            yield edge, Stroke((below, *turns, beside), "link-back", 1.5, is_curve=True)


def _curve(start: Point, end: Point, style: str, width: Number) -> Stroke:
    """From one side to another, level at both ends."""
    half = (start[0] + end[0]) / 2
    return Stroke((start, (half, start[1]), (half, end[1]), end), style, width, is_curve=True)


def _legend(used: set[str]) -> tuple[list[Mark], Number]:
    """What the marks of these styles mean, and how wide that is."""
    cross = [Stroke(((0, -9), (9, 0)), "sign-against", 2.5), Stroke(((0, 0), (9, -9)), "sign-against", 2.5)]
    gauge = [Rectangle(0, -11, 6, 13, "track", 2, 0.35), Rectangle(0, -6, 6, 8, "tint-for", 2)]
    entries: list[tuple[Sequence[Mark], Number, str]] = [
        ([Stroke(((0, -4), (28, -4)), "flow-for", 6)], 28, "speaks for it: the wider, the more"),
        ([Stroke(((0, -4), (28, -4)), "flow-against", 6)], 28, "speaks against it"),
        ([Stroke(((0, -4), (4, 0), (11, -9)), "sign-for", 2.5)], 11, "true by the facts"),
        (cross, 9, "false"),
        (gauge, 6, "believed, so far"),
    ]
    marks: list[Mark] = []
    x = 0.0
    for signs, width, text in entries:
        if signs[0].style in used:
            marks += [*(sign.moved(x, 0) for sign in signs), Words(x + width + 7, 0, text, "small")]
            x += width + 7 + text_width(text, "small") + 20
    return marks, x


def _title(explanation: Explanation) -> str:
    return f"Why {shortened(printable(explanation.atom), LONGEST_TITLE)}?"


def _answer_title(explanation: Explanation) -> str:
    texts = [probability_text(explanation.belief.probability), *answer_texts(explanation)]
    texts += [layers_text(explanation)] if explanation.layers else []
    return f"{printable(explanation.atom)}: {'; '.join(texts)}"


def _description(explanation: Explanation) -> str:
    """The drawing in a few words, for who hears it."""
    first = [f"{shortened(printable(reason.ground_rule), LONGEST_TITLE)}" for reason in explanation.reasons[:1]]
    texts = [f"The answer is {probability_text(explanation.belief.probability)}"]
    texts += [f"the strongest reason is {text}" for text in first] or ["no ground rule is a reason"]
    texts += [fidelity_text(explanation.fidelity)] if explanation.fidelity is not None else []
    return f"{'; '.join(texts)}."
