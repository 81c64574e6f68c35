"""The drawing of an explanation as SVG, for files, notebooks, reports and the served page.

Blue supports an atom and orange opposes it, in tones for colour-blind people; a dash, a sign or a word says the same.
Coordinates are pixels from the upper left corner.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from rich.cells import cell_len

from r2n.errors import counted
from r2n.explanation.records import (
    Belief,
    Explanation,
    LayerBelief,
    Reason,
    all_reasons,
    answer_texts,
    condition_texts,
    effect_text,
    fidelity_text,
    layer_name,
    network_probability,
    probability_text,
    share_of,
    status_text,
    strongest,
)
from r2n.visible import printable, shortened

Number = int | float
Point = tuple[Number, Number]
Theme = Literal["auto", "light", "dark", "page"]
"""The colours: `auto` is light or dark as the reader prefers, `page` takes the variables of the page around it."""

COLOURS = {  # name: light, dark
    "page": ("#ffffff", "#0d1117"),
    "card": ("#f6f8fa", "#161b22"),
    "ink": ("#1b1f24", "#e6edf3"),
    "quiet": ("#57606a", "#9da7b1"),
    "line": ("#afb8c1", "#565f69"),
    "for": ("#0a5fae", "#6cb2ff"),
    "against": ("#b34700", "#f59a55"),
}
MONOSPACE = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif"


class Font(NamedTuple):
    """How a text looks; `size` is in pixels, and `em` the width of a letter as a share of it."""

    colour: str
    size: Number
    weight: int = 400
    family: str = SANS
    em: float = 0.555


FONTS = {
    "atom": Font("ink", 13, 400, MONOSPACE, 0.615),
    "answer": Font("ink", 15, 600, MONOSPACE, 0.615),
    "figure": Font("ink", 34, 600, em=0.6),
    "rule": Font("ink", 12.5),
    "number-for": Font("for", 12.5, 600, em=0.6),
    "number-against": Font("against", 12.5, 600, em=0.6),
    "note": Font("quiet", 11.5),
    "strong-note": Font("ink", 11.5, 600, em=0.6),
    "small": Font("quiet", 10.5),
    "heading": Font("quiet", 12, 600, em=0.6),
}
SHAPES = {
    "background": "fill:{page}",
    "panel": "fill:{card};stroke:{line};stroke-width:1.25",
    "box": "fill:{page}",
    "edge-for": "fill:{for};stroke:{for};stroke-width:1.25",
    "edge-against": "fill:{against};stroke:{against};stroke-width:1.25;stroke-dasharray:4 3",
    "pill-for": "fill:{page};stroke:{for};stroke-width:1.5",
    "pill-against": "fill:{page};stroke:{against};stroke-width:1.5;stroke-dasharray:4 3",
    "level-for": "fill:{for}",
    "level-against": "fill:{against}",
    "track": "fill:{line};fill-opacity:.25",
    "gauge": "fill:{line};fill-opacity:.35",
    "flow-for": "fill:none;stroke:{for};stroke-opacity:.6;stroke-linejoin:round",
    "flow-against": "fill:none;stroke:{against};stroke-opacity:.6;stroke-dasharray:9 4;stroke-linejoin:round",
    "link": "fill:none;stroke:{line};stroke-width:1.5",
    "link-back": "fill:none;stroke:{line};stroke-width:1.5;stroke-dasharray:2 4",
    "sign-for": "fill:none;stroke:{for};stroke-width:2.5;stroke-linejoin:round",
    "sign-against": "fill:none;stroke:{against};stroke-width:2.5",
}

LONGEST_NAME, LONGEST_RULE, LONGEST_TITLE = 42, 24, 300  # characters
NARROWEST_PANEL, PADDING = 268.0, 18.0
NOTE_HEIGHT, MOST_LINES, MOST_LAYERS = 15.5, 5, 6
CHART_HEIGHT, BAR, BAR_GAP = 34.0, 18.0, 9.0
THINNEST, THICKEST = 1.5, 9.0
MARGIN, HEADING, LEGEND_LINE = 24.0, 34.0, 18.0
LOWEST_ANSWER = 420.0  # the top of the answer, so that it is seen first in a tall drawing
GAPS = (78.0, 56.0)  # right of atoms, right of ground rules
BELOW_ATOM, BELOW_GROUND_RULE = 10.0, 20.0


def drawn_nodes(explanation: Explanation) -> list[dict[str, str | None]]:
    """The nodes that `data-node` counts: `of` is the atom or the rule's name, `fact` what can be left out, if any."""
    found = []
    for node in (node for _, graph, _ in _parts(explanation) for node in graph.nodes):
        known = node.belief.known if node.kind == "atom" and node.belief is not None else None
        fact = None if known is None else node.of if known else f"!{node.of}"
        found.append({"kind": node.kind, "of": node.of, "fact": fact})
    return found


def explanation_svg(explanation: Explanation, *, theme: Theme = "auto") -> str:
    """The drawing of an explanation.

    The answer stands on the left, the ground rules that moved it right of it, their atoms, and so on to the facts. A
    contrast with another atom is drawn below. It is self-contained (but in the theme `page`, which needs
    `style_sheet("page")`) and has no ids, so that one page can hold several.
    """
    drawn, width, y, number = [], 0.0, 0.0, 0
    for heading, graph, sizes in _parts(explanation):
        boxes, columns, size = positioned(graph, sizes)
        part = svg_element("g", "part", transform=_moved(0, y))
        for column, x in enumerate(columns):
            text = heading if column == 0 else "because of" if column % 2 else "given"
            part.append(svg_text(x, MARGIN + HEADING / 2 - 4, text, "heading"))
        part.extend(_edges(graph, boxes))
        for node, box in zip(graph.nodes, boxes, strict=True):
            group = SubElement(part, "g", {"class": f"node {node.kind}", "transform": _moved(box.x, box.y)})
            group.set("data-node", str(number))
            SubElement(group, "title").text = node.title
            group.extend(box.marks)
            number += 1
        drawn.append(part)
        width, y = max(width, size[0]), y + size[1]
    legend, legend_size = _legend({e.get("class", "") for part in drawn for e in part.iter()}, width - 2 * MARGIN)
    width, height = max(width, legend_size[0] + 2 * MARGIN), y + legend_size[1]
    legend.set("transform", _moved(MARGIN, y))
    title = f"Why {shortened(printable(explanation.atom), LONGEST_TITLE)}?"
    texts = [f"The answer is {probability_text(explanation.belief.probability)}", "no ground rule is a reason"]
    if explanation.reasons:
        texts[1] = f"the strongest reason is {shortened(printable(explanation.reasons[0].ground_rule), LONGEST_TITLE)}"
    texts += [fidelity_text(explanation.fidelity)] if explanation.fidelity is not None else []
    frame = f"0 0 {_number(width)} {_number(height)}"
    root = svg_element("svg", "r2n-drawing", width=width, height=height, viewBox=frame)
    root.attrib |= {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria-label": title}
    SubElement(root, "title").text = title
    SubElement(root, "desc").text = f"{'; '.join(texts)}."
    if theme != "page":
        SubElement(root, "style").text = style_sheet(theme)
    root.append(svg_element("rect", "background", width=width, height=height, rx=14))
    root.extend([*drawn, legend])
    return tostring(root, encoding="unicode")


def style_sheet(theme: Theme = "page") -> str:
    """The CSS rules of drawings in the colours of a theme."""
    if theme == "auto":
        return f"{style_sheet('light')}@media (prefers-color-scheme:dark){{{style_sheet('dark')}}}"
    values = {name: {"light": light, "dark": dark} for name, (light, dark) in COLOURS.items()}
    colours = {name: value.get(theme, f"var(--{name})") for name, value in values.items()}
    rules = {name: shape.format_map(colours) for name, shape in SHAPES.items()}
    for name, font in FONTS.items():
        face = f"{font.weight} {_number(font.size)}px {font.family}"
        rules[name] = f"fill:{colours[font.colour]};font:{face};white-space:pre"
    return "".join(f".r2n-drawing .{name}{{{rule}}}" for name, rule in rules.items())


def text_width(text: str, style: str) -> float:
    """An estimate of a text's width in pixels, rather too large than too small, because fonts differ."""
    odd = sum(character > "\u2030" for character in text)  # a fallback font may draw these, often a wider one
    return (cell_len(text) + odd) * FONTS[style].em * FONTS[style].size


# what is drawn


def _parts(explanation: Explanation) -> "list[tuple[str, ReasonGraph, list[Box]]]":
    """The answer, and the contrast if there is one: a heading, a graph of reasons, and the boxes of its nodes."""
    e, answer = explanation, probability_text(network_probability(explanation))
    alone = [item for item in e.counterfactuals if item.kind == "not known" and len(item.what) == 1]
    changes = {item.what[0]: probability_text(item.probability) for item in alone}
    changes = {fact: text for fact, text in changes.items() if text != answer}
    graph = reason_graph(e.atom, e.belief, e.reasons, if_unknown=changes)
    layers = ", ".join(f"{layer_name(layer)} {probability_text(layer.probability)}" for layer in e.layers)
    texts = [probability_text(e.belief.probability), *answer_texts(e), *[layers] * bool(layers)]
    graph.nodes[0].title = f"{printable(e.atom)}: {'; '.join(texts)}"
    found = [("the answer", graph, [answer_box(e), *map(node_box, graph.nodes[1:])])]
    if e.contrast is not None:
        graph = reason_graph(e.atom, e.belief, e.contrast.reasons, other=e.contrast.other)
        graph.nodes[0].title = f"{printable(e.atom)} rather than {printable(e.contrast.other)}"
        found.append(("the difference", graph, [contrast_box(e), *map(node_box, graph.nodes[1:])]))
    return found


# boxes


@dataclass(frozen=True, slots=True)
class Box:
    """The size of a node, its marks around its own upper left corner, and the position of this corner."""

    width: Number
    height: Number
    marks: tuple[Element, ...]
    x: Number = 0.0
    y: Number = 0.0

    right = property(lambda self: self.x + self.width)
    bottom = property(lambda self: self.y + self.height)
    middle = property(lambda self: self.y + self.height / 2)


def node_box(node: "Node") -> Box:
    """The box of an atom, a ground rule or of what is not drawn."""
    if node.kind == "more":
        return Box(text_width(node.name, "note") + 16, 22.0, (svg_text(8, 15, node.name, "note"),))
    if node.kind == "rule":
        sign, name = "against" if node.effect < 0 else "for", shortened(node.name, LONGEST_RULE)
        start = 14 + text_width(node.note, f"number-{sign}") + 9
        width = start + text_width(name, "rule") + 12
        texts = svg_text(14, 18.5, node.note, f"number-{sign}"), svg_text(start, 18.5, name, "rule")
        return Box(width, 28.0, (_rectangle(0, 0, width, 28, f"pill-{sign} frame", 14), *texts))
    assert node.belief is not None
    name, belief = shortened(node.name, LONGEST_NAME), node.belief
    width = 44 + max(text_width(name, "atom"), text_width(node.note, "note"))
    texts = svg_text(32, 19, name, "atom"), svg_text(32, 35, node.note, "note")
    if belief.known is None and not belief.closed:  # an upright gauge for one that is believed
        share = min(max(belief.probability, 0.0), 1.0)
        level = _rectangle(13, 10 + 24 * (1 - share), 8, 24 * share, f"level-{_sign(belief)}", min(3.0, 12 * share))
        marks, strength = [_rectangle(13, 10, 8, 24, "gauge", 3), level], 0.16 * abs(2 * belief.probability - 1)
    else:  # a check for a true atom, a cross for a false one
        path = "M11 22L15.5 27 23 16.5" if belief.known else "M12 17L22 27M12 27L22 17"
        marks, strength = [svg_element("path", "sign-for" if belief.known else "sign-against", d=path)], 0.2
    edge = _rectangle(0, 0, width, 44, f"edge-{_sign(belief)} frame", 7, strength)
    return Box(width, 44.0, (_rectangle(0, 0, width, 44, "box", 7), edge, *marks, *texts))


def _sign(belief: Belief | LayerBelief) -> str:
    return "for" if belief.probability >= 0.5 else "against"


def answer_box(explanation: Explanation) -> Box:
    """The answer: its atom, probability and layers, how certain it is, and what would flip it."""
    name = shortened(printable(explanation.atom), LONGEST_NAME)
    number, layers = probability_text(explanation.belief.probability), explanation.layers[-MOST_LAYERS:]
    figures = text_width(number, "figure") + 3 * BAR_GAP + len(layers) * (BAR + BAR_GAP)
    width = max(NARROWEST_PANEL, 2 * PADDING + max(text_width(name, "answer"), figures))
    marks = [svg_text(PADDING, 33, name, "answer"), svg_text(PADDING, 80, number, "figure")]
    for i, layer in enumerate(reversed(layers)):
        x, share = width - PADDING - BAR - i * (BAR + BAR_GAP), min(max(layer.probability, 0.0), 1.0)
        tall = max(CHART_HEIGHT * share, 1.5)
        bar = _rectangle(x, 46 + CHART_HEIGHT - tall, BAR, tall, f"level-{_sign(layer)}", min(3.0, tall / 2))
        label = svg_text(x + BAR / 2, 93, str(layer.layer) if layer.layer else "input", "small", text_anchor="middle")
        marks += [_rectangle(x, 46, BAR, CHART_HEIGHT, "track", 3), bar, label]
    paragraphs = [(text, "note") for text in answer_texts(explanation)]
    flip = explanation.turned_by or next((item for item in explanation.counterfactuals if item.turns), None)
    if flip is not None:  # by a set of facts, or else by the first change that does it
        names = [shortened(printable(name), LONGEST_NAME) for name in flip.what[:3]]
        names += [f"{len(flip.what) - 3} more"] if len(flip.what) > 3 else []
        before, behind = condition_texts(flip)
        change = f"{before}{' and '.join(names)}{behind}: {probability_text(flip.probability)}"
        paragraphs += [("The answer would flip", "strong-note"), (change, "note")]
    y = 113.0
    for text, style in paragraphs:
        y += 9 if style == "strong-note" else 0
        letter = max(text_width(character, style) for character in {*text, "m"})
        most = max(int((width - 2 * PADDING) / letter), 4)  # as if all letters were as wide as the widest
        for line in wrap(text, most, max_lines=MOST_LINES, placeholder=" …", break_on_hyphens=False):
            marks.append(svg_text(PADDING, y, line, style))
            y += NOTE_HEIGHT
    edge = _rectangle(0, 0, width, y + 2, f"edge-{_sign(explanation.belief)} frame", 12, 0.07)
    return Box(width, y + 2, (_rectangle(0, 0, width, y + 2, "panel", 12), edge, *marks))


def contrast_box(explanation: Explanation) -> Box:
    """The explained atom and the one it is compared with."""
    contrast = explanation.contrast
    assert contrast is not None
    names = [shortened(printable(name), LONGEST_NAME) for name in (explanation.atom, contrast.other)]
    width = max(NARROWEST_PANEL, 2 * PADDING + max(text_width(name, "answer") for name in names))
    marks = [_rectangle(0, 0, width, 132, "panel frame", 12), svg_text(PADDING, 72, "rather than", "note")]
    for y, name, belief in zip((33, 94), names, (explanation.belief, contrast.belief), strict=True):
        number = probability_text(belief.probability)
        marks += [svg_text(PADDING, y, name, "answer"), svg_text(PADDING, y + 19, number, "strong-note")]
    return Box(width, 132.0, tuple(marks))


# positions


def positioned(graph: "ReasonGraph", boxes: Sequence[Box]) -> tuple[list[Box], list[Number], Point]:
    """The boxes in columns, the left edges of these, and the size of all.

    The children of a node stand one column right of it, centred at its middle.
    """
    gaps = [BELOW_GROUND_RULE if node.kind == "rule" else BELOW_ATOM for node in graph.nodes]
    heights, below = [box.height for box in boxes], [0.0] * len(boxes)  # of a subtree, and of all below its node
    for i in reversed(range(len(boxes))):  # children come after their parents
        children = graph.nodes[i].children
        below[i] = sum(heights[child] + gaps[child] for child in children) - (gaps[children[-1]] if children else 0)
        heights[i] = max(heights[i], below[i])
    tops = [MARGIN + HEADING] * len(boxes)
    for i, node in enumerate(graph.nodes):
        top = tops[i] + (heights[i] - below[i]) / 2
        for child in node.children:
            tops[child], top = top, top + heights[child] + gaps[child]
    widths = [0.0] * (1 + max(node.column for node in graph.nodes))
    for node, box in zip(graph.nodes, boxes, strict=True):
        widths[node.column] = max(widths[node.column], box.width)
    columns, right = [], 0.0
    for column, width in enumerate(widths):
        columns.append(right + (GAPS[(column - 1) % 2] if column else MARGIN))
        right = columns[-1] + width
    ys = [top + (height - box.height) / 2 for top, height, box in zip(tops, heights, boxes, strict=True)]
    ys[0] = min(ys[0], LOWEST_ANSWER)
    found = [replace(b, x=columns[n.column], y=y) for b, n, y in zip(boxes, graph.nodes, ys, strict=True)]
    return found, columns, (right + MARGIN, tops[0] + heights[0] + MARGIN)


# lines and legend


def _edges(graph: "ReasonGraph", boxes: Sequence[Box]) -> Iterator[Element]:
    """From each ground rule to its atoms, then, as wide as its effect, to the atom that it moves.

    Dotted lines lead back to the left.
    """
    moved, full = defaultdict(list), strongest(edge.effect for edge in graph.edges if edge.effect is not None)
    for edge in graph.edges:
        rule, atom = boxes[edge.rule], boxes[edge.atom]
        if edge.effect is not None:
            moved[edge.atom].append(edge)
        elif atom.x > rule.x:
            yield svg_element("path", "link", d=_curve((rule.right, rule.middle), (atom.x, atom.middle)))
        else:
            start, end = (rule.x + rule.width / 2, rule.bottom), (atom.right, atom.middle)
            points = start, (start[0], start[1] + 40), (end[0] + 50, end[1]), end
            yield svg_element("path", "link-back", d=_path(points))
    for i, edges in moved.items():
        step = min((boxes[i].height - 20) / max(len(edges) - 1, 1), 16.0)
        for k, edge in enumerate(edges):
            end = boxes[i].right, boxes[i].middle + (k - (len(edges) - 1) / 2) * step
            effect, path = edge.effect or 0.0, _curve((boxes[edge.rule].x, boxes[edge.rule].middle), end)
            width = THINNEST + (THICKEST - THINNEST) * share_of(effect, full)
            flow = svg_element("path", "flow-against" if effect < 0 else "flow-for", d=path, stroke_width=width)
            SubElement(flow, "title").text = f"effect {effect_text(effect)}"
            yield flow


def _legend(used: set[str], room: Number) -> tuple[Element, Point]:
    """The meaning of the marks that are used, in lines of at most a width; and its width and height."""
    line = {"d": "M0 -4H28", "stroke_width": 6}
    gauge = [_rectangle(0, -11, 6, 13, "gauge", 2), _rectangle(0, -6, 6, 8, "level-for", 2)]
    entries: list[tuple[list[Element], Number, str]] = [
        ([svg_element("path", "flow-for", **line)], 28, "speaks for it: the wider, the more"),
        ([svg_element("path", "flow-against", **line)], 28, "speaks against it"),
        ([svg_element("path", "sign-for", d="M0 -4L4 0 11 -9")], 11, "true by the facts"),
        ([svg_element("path", "sign-against", d="M0 -9L9 0M0 0L9 -9")], 9, "false"),
        (gauge, 6, "believed, to this degree"),
    ]
    legend, x, y, right = svg_element("g", "legend-marks"), 0.0, 0.0, 0.0
    for marks, width, text in entries:
        if marks[0].get("class") in used:
            length = width + 7 + text_width(text, "small")
            x, y = (x, y or LEGEND_LINE) if x + length <= room else (0.0, y + LEGEND_LINE)
            group = SubElement(legend, "g", {"transform": _moved(x, y - 12)})
            group.extend([*marks, svg_text(width + 7, 0, text, "small")])
            right, x = max(right, x + length), x + length + 20
    return legend, (right, y)


# SVG


def svg_element(tag: str, style: str, **attributes: Number | str) -> Element:
    """An element of SVG with its class; numbers have two decimals, and `_` in a name stands for `-`."""
    texts = {name: value if isinstance(value, str) else _number(value) for name, value in attributes.items()}
    return Element(tag, {"class": style, **{name.replace("_", "-"): text for name, text in texts.items()}})


def svg_text(x: Number, y: Number, text: str, style: str, **attributes: str) -> Element:
    """A line of text on its baseline."""
    made = svg_element("text", style, x=x, y=y, **attributes)
    made.text = text or " "  # not <text/>, which HTML does not know
    return made


def _rectangle(
    x: Number, y: Number, width: Number, height: Number, style: str, radius: Number = 0.0, strength: Number = 1.0
) -> Element:
    """A box with round corners; `strength` (0 to 1) is the opacity of its fill."""
    shown = {"fill_opacity": strength} if strength < 1 else {}
    return svg_element("rect", style, x=x, y=y, width=width, height=height, rx=radius, **shown)


def _curve(start: Point, end: Point) -> str:
    """A curve that is level at both ends."""
    half = (start[0] + end[0]) / 2
    return _path((start, (half, start[1]), (half, end[1]), end))


def _path(points: Sequence[Point]) -> str:
    first, *others = (f"{_number(x)} {_number(y)}" for x, y in points)
    return f"M{first} C{' '.join(others)}"


def _moved(x: Number, y: Number) -> str:
    return f"translate({_number(x)} {_number(y)})"


def _number(value: Number) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


# the graph of atoms and ground rules, in which every atom is one node

MOST_GROUND_RULES = 40
MOST_OF_ONE_ATOM = 12
MOST_NAMED = 50

NodeKind = Literal["answer", "atom", "rule", "more"]


@dataclass(slots=True)
class Node:
    """An atom, a ground rule, or the number of those that are not drawn.

    `name` is shown, `note` below it, and `title` is the full text. `column` counts from the answer. Every node but the
    answer is one of the `children` of one other node. `of` is the atom, or the name of the rule, as it is in the data.
    """

    kind: NodeKind
    name: str
    note: str
    title: str
    column: int
    belief: Belief | None = None
    effect: float = 0.0
    children: list[int] = field(default_factory=list)
    of: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """From a ground rule (`rule`) to the atom it moves, with its effect, or to an atom it holds (no effect)."""

    rule: int
    atom: int
    effect: float | None = None


@dataclass(frozen=True, slots=True)
class ReasonGraph:
    """Nodes, the answer first, and edges between ground rules and atoms."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def reason_graph(
    atom: str, belief: Belief, reasons: Sequence[Reason], if_unknown: Mapping[str, str] | None = None, other: str = ""
) -> ReasonGraph:
    """The graph of the reasons for an atom, nearest first.

    `if_unknown` has the answer without a fact, by fact. If the reasons explain the difference to an `other` atom, the
    answer's node stands for both atoms.
    """
    by_atom = {atom: tuple(reasons)}
    for member in (member for reason in all_reasons(reasons) for member in reason.because if member.reasons):
        by_atom.setdefault(member.atom, member.reasons)
    builder = _Builder(by_atom, if_unknown or {})
    builder.add_atom("answer", atom, belief, 0)
    if other:
        builder.atoms[other] = 0
    while builder.waiting:
        builder.expand(builder.waiting.popleft())
    return ReasonGraph(tuple(builder.nodes), tuple(builder.edges))


@dataclass
class _Builder:
    """Builds the graph breadth first, within its limits, from the reasons for each atom."""

    reasons: dict[str, tuple[Reason, ...]]
    if_unknown: Mapping[str, str]
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    atoms: dict[str, int] = field(default_factory=dict)
    waiting: deque[int] = field(default_factory=deque)
    ground_rules: int = 0

    def add(self, node: Node, parent: int | None = None) -> int:
        self.nodes.append(node)
        if parent is not None:
            self.nodes[parent].children.append(len(self.nodes) - 1)
        return len(self.nodes) - 1

    def add_atom(self, kind: NodeKind, atom: str, belief: Belief, column: int, parent: int | None = None) -> None:
        note = status_text(belief)
        title = f"{printable(atom)}: {note}"
        if atom in self.if_unknown:
            without = f"answer without it {self.if_unknown[atom]}"
            note, title = f"{note} · {without}", f"{title}; {without}"
        self.atoms[atom] = self.add(Node(kind, printable(atom), note, title, column, belief, of=atom), parent)
        self.waiting.append(self.atoms[atom])

    def expand(self, index: int) -> None:
        """Add the ground rules that moved an atom, up to the limits."""
        atom, reasons = self.nodes[index], self.reasons.get(self.nodes[index].of, ())
        room = max(min(MOST_OF_ONE_ATOM, MOST_GROUND_RULES - self.ground_rules), 0)
        room = len(reasons) if len(reasons) == room + 1 and room else room
        for reason in reasons[:room]:
            self.add_rule(index, reason)
        left = reasons[room:]
        if left and room:
            lines = [printable(reason.ground_rule) for reason in left[:MOST_NAMED]]
            lines += [f"and {len(left) - MOST_NAMED:,} more"] * (len(left) > MOST_NAMED)
            name = f"and {counted(len(left), 'more ground rule')}"
            self.add(Node("more", name, "", "\n".join(lines), atom.column + 1), index)
        elif left:
            atom.note += f" · {counted(len(left), 'reason')} not drawn"

    def add_rule(self, atom: int, reason: Reason) -> None:
        column, effect = self.nodes[atom].column + 1, effect_text(reason.effect)
        title = f"{printable(reason.rule)} {effect}: {printable(reason.ground_rule)}"
        node = Node("rule", printable(reason.rule), effect, title, column, effect=reason.effect, of=reason.rule)
        rule = self.add(node, atom)
        self.ground_rules += 1
        self.edges.append(Edge(rule, atom, reason.effect))
        for member in (member for member in reason.because if member.atom not in self.atoms):
            self.add_atom("atom", member.atom, member.belief, column + 1, rule)
        held = dict.fromkeys(self.atoms[member.atom] for member in reason.because)
        self.edges += [Edge(rule, other) for other in held if other != atom]
