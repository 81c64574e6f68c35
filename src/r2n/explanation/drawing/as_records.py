"""An explanation, drawn: Explanation -> its boxes and lines as plain records, for who draws them elsewhere."""

from typing import Any

from r2n.explanation.drawing.boxes import Box, answer_box, node_box
from r2n.explanation.drawing.layout import Place, lay_out
from r2n.explanation.drawing.marks import Words
from r2n.explanation.drawing.picture import drawn_edges, explanation_graph
from r2n.explanation.drawing.reason_graph import Node
from r2n.explanation.records import Belief, Explanation

LABEL = "small"  # the style of what stands at the bars of a chart


def explanation_drawing(explanation: Explanation) -> dict[str, Any]:
    """The drawing as one JSON document: boxes with their places, and links with the points of their curves.

    A box has a `switch` where it stands for a fact or a rule that can be left out.
    """
    graph = explanation_graph(explanation)
    boxes = [answer_box(explanation), *(node_box(node) for node in graph.nodes[1:])]
    layout = lay_out(graph, boxes)
    told = [
        _box(i, node, box, place)
        for i, (node, box, place) in enumerate(zip(graph.nodes, boxes, layout.places, strict=True))
    ]
    links = [
        {
            "from": f"n{edge.rule}",
            "to": f"n{edge.atom}",
            "effect": edge.effect,
            "width": stroke.width,
            "points": [list(point) for point in stroke.points],
        }
        for edge, stroke in drawn_edges(graph, layout.places)
    ]
    return {"width": layout.width, "height": layout.height, "boxes": told, "links": links}


def _box(number: int, node: Node, box: Box, place: Place) -> dict[str, Any]:
    return {
        "id": f"n{number}",
        "kind": "atom" if node.kind == "answer" else node.kind,
        "text": node.of or node.name,
        "title": node.title,
        "lines": [mark.text for mark in box.marks if isinstance(mark, Words) and mark.style != LABEL],
        "x": place.x,
        "y": place.y,
        "width": place.width,
        "height": place.height,
        "column": node.column,
        "truth": None if node.belief is None else _truth(node.belief),
        "belief": None if node.belief is None else node.belief.probability,
        "effect": node.effect if node.kind == "rule" else None,
        "switch": _switch(node),
    }


def _truth(belief: Belief) -> bool | None:
    """What is known of an atom."""
    return False if belief.closed else belief.known


def _switch(node: Node) -> dict[str, str] | None:
    """What can be left out to see the answer move."""
    if node.kind == "rule":
        return {"rule": node.of}
    if node.belief is None or node.belief.known is None:
        return None
    return {"fact": node.of if node.belief.known else f"!{node.of}"}
