"""An explanation, drawn: a graph of nodes with sizes -> where each node stands, from left to right.

Every node but the answer is the child of one other and stands one column right of it, half way between its own first
and last child. What hangs on a node moves as one, and comes as near to what is above as no two boxes of a column touch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from r2n.explanation.drawing.boxes import Box
from r2n.explanation.drawing.marks import Number
from r2n.explanation.drawing.reason_graph import ReasonGraph

MARGIN = 24.0
HEADING = 34.0  # above the columns
LOWEST_ANSWER = 420.0  # the top of the answer, so that it is seen first of a tall drawing
GAPS = (78.0, 56.0)  # right of atoms, right of ground rules
BELOW_ATOM, BELOW_GROUND_RULE = 10.0, 20.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a box stands."""

    x: Number
    y: Number
    width: Number
    height: Number

    @property
    def right(self) -> Number:
        """Its right side."""
        return self.x + self.width

    @property
    def bottom(self) -> Number:
        """Its lower side."""
        return self.y + self.height

    @property
    def middle(self) -> Number:
        """Half way down."""
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class Layout:
    """A place for each node; `columns` are where columns begin, by number."""

    places: tuple[Place, ...]
    columns: tuple[Number, ...]
    width: Number
    height: Number


@dataclass(slots=True)
class _Outline:
    """What hangs on a node, from its own column on: where it begins and ends in each, counted from the node's top."""

    tops: list[Number]
    bottoms: list[Number]


def lay_out(graph: ReasonGraph, boxes: Sequence[Box]) -> Layout:
    """Where the nodes of a graph stand, whose boxes have these sizes."""
    offsets, outline = _offsets(graph, boxes)
    columns, width = _columns(graph, boxes)
    tops = [MARGIN + HEADING - min(outline.tops)] * len(boxes)
    for i, node in enumerate(graph.nodes):  # parents come before their children
        for child in node.children:
            tops[child] = tops[i] + offsets[child]
    places = tuple(
        Place(columns[node.column], top, box.width, box.height)
        for node, top, box in zip(graph.nodes, tops, boxes, strict=True)
    )
    answer = replace(places[0], y=min(tops[0], LOWEST_ANSWER))
    return Layout((answer, *places[1:]), columns, width, tops[0] + max(outline.bottoms) + MARGIN)


def _offsets(graph: ReasonGraph, boxes: Sequence[Box]) -> tuple[list[Number], _Outline]:
    """How far below its parent's top each node begins, and the outline of all."""
    offsets = [0.0] * len(boxes)
    outlines: dict[int, _Outline] = {}
    for i in reversed(range(len(boxes))):
        children = graph.nodes[i].children
        stacked = _Outline([], [])
        for child in children:
            gap = BELOW_GROUND_RULE if graph.nodes[child].kind == "rule" else BELOW_ATOM
            offsets[child] = _stack(stacked, outlines.pop(child), gap)
        up = 0.0
        if children:
            first, last = (offsets[child] + boxes[child].height / 2 for child in (children[0], children[-1]))
            up = (first + last - boxes[i].height) / 2
        for child in children:
            offsets[child] -= up
        tops, bottoms = ([y - up for y in side] for side in (stacked.tops, stacked.bottoms))
        outlines[i] = _Outline([0.0, *tops], [boxes[i].height, *bottoms])
    return offsets, outlines[0]


def _stack(above: _Outline, below: _Outline, gap: Number) -> Number:
    """Put one outline under another, as near as may be, and make them one; how far down it came."""
    shared = zip(above.bottoms, below.tops, strict=False)
    down = max((bottom + gap - top for bottom, top in shared), default=0.0)
    reach = len(above.tops)
    above.bottoms[: len(below.bottoms)] = [bottom + down for bottom in below.bottoms]
    above.tops += [top + down for top in below.tops[reach:]]
    return down


def _columns(graph: ReasonGraph, boxes: Sequence[Box]) -> tuple[tuple[Number, ...], Number]:
    """Where columns begin, and how wide they are together."""
    number = 1 + max(node.column for node in graph.nodes)
    widths = [0.0] * number
    for node, box in zip(graph.nodes, boxes, strict=True):
        widths[node.column] = max(widths[node.column], box.width)
    begins, x = [], MARGIN
    for column, width in enumerate(widths):
        begins.append(x)
        x += width + (GAPS[column % 2] if column < number - 1 else 0.0)
    return tuple(begins), x + MARGIN
