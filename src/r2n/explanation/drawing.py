"""The drawing of an explanation as SVG: a tree from the answer through ground rules and their atoms to the facts.

Blue supports an atom and orange opposes it, in tones for colour-blind people; a dash, a sign or a word says the same.
Coordinates are pixels from the upper left corner.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from textwrap import wrap
from typing import Literal, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from rich.cells import cell_len

from r2n.errors import counted
from r2n.explanation import records
from r2n.explanation.records import Belief, Explanation, Reason, probability_text
from r2n.visible import printable, shortened

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
FONTS = {  # colour, size in pixels, weight, family
    "atom": ("ink", 13, 400, MONOSPACE),
    "answer": ("ink", 15, 600, MONOSPACE),
    "figure": ("ink", 34, 600, SANS),
    "rule": ("ink", 12.5, 600, SANS),
    "note": ("quiet", 11.5, 400, SANS),
    "strong-note": ("ink", 11.5, 600, SANS),
    "small": ("quiet", 10.5, 400, SANS),
    "heading": ("quiet", 12, 600, SANS),
}
LETTER, LINE = 0.615, 1.4  # the width of a letter and the height of a line, as shares of a font's size
SHAPES = {
    "background": "fill:{page}",
    "panel": "fill:{card}",
    "box": "fill:{page}",
    "edge-for": "fill:{for};stroke:{for};stroke-width:1.25",
    "edge-against": "fill:{against};stroke:{against};stroke-width:1.25;stroke-dasharray:4 3",
    "pill-for": "fill:{page};stroke:{for};stroke-width:1.5",
    "pill-against": "fill:{page};stroke:{against};stroke-width:1.5;stroke-dasharray:4 3",
    "level-for": "fill:{for}",
    "level-against": "fill:{against}",
    "gauge": "fill:{line};fill-opacity:.35",
    "flow-for": "fill:none;stroke:{for};stroke-opacity:.6;stroke-linejoin:round",
    "flow-against": "fill:none;stroke:{against};stroke-opacity:.6;stroke-dasharray:9 4;stroke-linejoin:round",
    "link": "fill:none;stroke:{line};stroke-width:1.5",
    "sign-for": "fill:none;stroke:{for};stroke-width:2.5;stroke-linejoin:round",
    "sign-against": "fill:none;stroke:{against};stroke-width:2.5",
}

LONGEST_NAME, LONGEST_RULE, LONGEST_TITLE = 42, 24, 300  # characters
LETTERS_OF_A_LINE, MOST_LINES = 40, 5  # of a note in the answer's box
MARGIN, HEADING, LEGEND_WIDTH, LEGEND_HEIGHT = 24.0, 34.0, 420.0, 46.0
LOWEST_ANSWER = 420.0  # the top of the answer, so that it is seen first in a tall drawing
COLUMN_GAPS, GAP = (56.0, 78.0), 10.0  # right of ground rules, right of atoms; below a box
THINNEST, THICKEST = 1.5, 9.0
MOST_GROUND_RULES, MOST_OF_ONE_ATOM, MOST_NAMED = 40, 12, 50


@dataclass(slots=True)
class Node:
    """A box: the answer, an atom, a ground rule, or the number of those that are not drawn.

    `of` is the atom, or the name of the rule, as it is in the data; `lines` are texts with their styles, and `title` is
    the full text. The `children` stand a column right of it.
    """

    kind: Literal["answer", "atom", "rule", "more"]
    of: str
    title: str
    lines: list[tuple[str, str]]
    belief: Belief | None = None
    effect: float = 0.0
    column: int = 0
    children: list["Node"] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0

    @property
    def left(self) -> int:
        """Where texts begin: right of the sign of an atom."""
        return 32 if self.kind == "atom" else 14

    @property
    def width(self) -> float:
        """The width of the box."""
        return self.left + max(text_width(text, style) for text, style in self.lines) + 14

    @property
    def height(self) -> float:
        """The height of the box."""
        return 14 + sum(LINE * FONTS[style][1] for _, style in self.lines)

    @property
    def texts(self) -> Iterator[tuple[float, str, str]]:
        """The baseline of each line, its text and its style."""
        y = 5.0
        for text, style in self.lines:
            y += LINE * FONTS[style][1]
            yield y, text, style

    @property
    def share(self) -> float:
        """The probability, from 0 to 1; of a rule whether it speaks for the atom."""
        return float(self.effect >= 0) if self.belief is None else min(max(self.belief.probability, 0.0), 1.0)

    @property
    def sign(self) -> str:
        """`for` or `against`."""
        return "for" if self.share >= 0.5 else "against"

    @property
    def is_certain(self) -> bool:
        """Whether it is an atom of which something is known."""
        return self.belief is not None and (self.belief.known is not None or self.belief.closed)

    @property
    def strength(self) -> float:
        """The opacity of the box."""
        return 0.07 if self.kind == "answer" else 0.2 if self.is_certain else 0.16 * abs(2 * self.share - 1)

    def span(self) -> float:
        """The height of the node with all that is below it."""
        return max(self.height, sum(child.span() + GAP for child in self.children) - GAP)


class Edge(NamedTuple):
    """A line of a drawing: a flow, as wide as the effect, or a link without a width."""

    style: str
    path: str
    width: float = 0.0
    title: str = ""


@dataclass(slots=True)
class Tree:
    """A tree of reasons, each node after its parent; `first` is the number of its root in the drawing."""

    heading: str
    nodes: list[Node]
    first: int = 0
    top: float = 0.0
    columns: list[float] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def place(self) -> None:
        """Put the nodes into columns, the children of a node around its middle."""
        widths = [0.0] * (1 + max(node.column for node in self.nodes))
        for node in self.nodes:
            widths[node.column] = max(widths[node.column], node.width)
        x = MARGIN
        for column, width in enumerate(widths):
            self.columns.append(x)
            x += width + COLUMN_GAPS[(column + 1) % 2]
        self.width = self.columns[-1] + widths[-1] + MARGIN
        self.height = MARGIN + HEADING + self.nodes[0].span() + MARGIN
        tops = {id(self.nodes[0]): MARGIN + HEADING}
        for node in self.nodes:
            top, span = tops[id(node)], node.span()
            node.x, node.y = self.columns[node.column], top + (span - node.height) / 2
            top += (span - sum(child.span() + GAP for child in node.children) + GAP) / 2
            for child in node.children:
                tops[id(child)] = top
                top += child.span() + GAP
        self.nodes[0].y = min(self.nodes[0].y, LOWEST_ANSWER)

    def edges(self) -> Iterator[Edge]:
        """From each ground rule to its atoms, and, as wide as its effect, to the atom that it moves."""
        full = records.strongest(node.effect for node in self.nodes)
        for node in self.nodes:
            step = min((node.height - 20) / max(len(node.children) - 1, 1), 16.0)
            for i, child in enumerate(node.children):
                end = child.x, child.y + child.height / 2
                start = node.x + node.width, node.y + node.height / 2
                if child.kind == "rule":
                    start = start[0], start[1] + (i - (len(node.children) - 1) / 2) * step
                    width = THINNEST + (THICKEST - THINNEST) * records.share_of(child.effect, full)
                    title = f"effect {records.effect_text(child.effect)}"
                    yield Edge(f"flow-{child.sign}", _curve(end, start), width, title)
                elif child.kind == "atom":
                    yield Edge("link", _curve(start, end))


def _curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    """A path that is level at both ends."""
    half = (start[0] + end[0]) / 2
    return (
        f"M{start[0]:.1f} {start[1]:.1f} C{half:.1f} {start[1]:.1f} {half:.1f} {end[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    )


def reason_tree(root: Node, reasons: Sequence[Reason], changes: Mapping[str, str] | None = None) -> list[Node]:
    """Grow the tree of the reasons for a root, nearest first, up to the limits; all nodes, each after its parent.

    `changes` has the answer without a fact, by fact.
    """
    nodes, drawn = [root], 0
    waiting = deque([(root, tuple(reasons))])

    def add(node: Node, parent: Node) -> Node:
        node.column = parent.column + 1
        parent.children.append(node)
        nodes.append(node)
        return node

    while waiting:
        atom, found = waiting.popleft()
        room = max(min(MOST_OF_ONE_ATOM, MOST_GROUND_RULES - drawn), 0)
        room += bool(room) and len(found) == room + 1  # as long as the words for one more
        for reason in found[:room]:
            name, effect = printable(reason.rule), records.effect_text(reason.effect)
            title = f"{name} {effect}: {printable(reason.ground_rule)}"
            lines = [(f"{effect}  {shortened(name, LONGEST_RULE)}", "rule")]
            rule = add(Node("rule", reason.rule, title, lines, effect=reason.effect), atom)
            drawn += 1
            for member in reason.because:
                waiting.append((add(_atom(member, changes or {}), rule), member.reasons))
        if left := found[room:]:
            text, lines = f"and {counted(len(left), 'more ground rule')}", [r.ground_rule for r in left[:MOST_NAMED]]
            title = "\n".join(
                [*map(printable, lines), *[f"and {len(left) - MOST_NAMED:,} more"] * (len(left) > MOST_NAMED)]
            )
            add(Node("more", "", title, [(text, "note")]), atom)
    return nodes


def _atom(member: records.Member, changes: Mapping[str, str]) -> Node:
    notes = [records.status_text(member.belief)]
    notes += [f"answer without it {text}" for text in [changes.get(member.atom)] if text]
    notes += ["explained elsewhere"] * member.is_explained_above
    name = printable(member.atom)
    lines = [(shortened(name, LONGEST_NAME), "atom"), (" · ".join(notes), "note")]
    return Node("atom", member.atom, f"{name}: {'; '.join(notes)}", lines, member.belief)


def _answer(explanation: Explanation) -> Node:
    """The answer: its atom and probability, how certain it is, and what would flip it."""
    e, name, number = explanation, printable(explanation.atom), probability_text(explanation.belief.probability)
    notes = [(text, "note") for text in records.answer_texts(e)]
    flip = e.turned_by or next((item for item in e.counterfactuals if item.turns), None)
    if flip is not None:  # by a set of facts, or else by the first change that does it
        names = [shortened(printable(name), LONGEST_NAME) for name in flip.what[:3]]
        names += [f"{len(flip.what) - 3} more"] * (len(flip.what) > 3)
        before, behind = records.condition_texts(flip)
        change = f"{before}{' and '.join(names)}{behind}: {probability_text(flip.probability)}"
        notes += [("The answer would flip", "strong-note"), (change, "note")]
    layers = ", ".join(f"{records.layer_name(one)} {probability_text(one.probability)}" for one in e.layers)
    title = f"{name}: {'; '.join([number, *records.answer_texts(e), *[layers] * bool(layers)])}"
    lines = [(shortened(name, LONGEST_NAME), "answer"), (number, "figure")]
    limits = {"max_lines": MOST_LINES, "placeholder": " …", "break_on_hyphens": False}
    lines += [(line, style) for text, style in notes for line in wrap(text, LETTERS_OF_A_LINE, **limits)]
    return Node("answer", e.atom, title, lines, e.belief)


def _difference(explanation: Explanation, contrast: records.Contrast) -> Node:
    """The explained atom and the one it is compared with."""
    lines = []
    for atom, belief in ((explanation.atom, explanation.belief), (contrast.other, contrast.belief)):
        lines += [("rather than", "note")] * bool(lines) + [(shortened(printable(atom), LONGEST_NAME), "answer")]
        lines += [(probability_text(belief.probability), "strong-note")]
    title = f"{printable(explanation.atom)} rather than {printable(contrast.other)}"
    return Node("answer", explanation.atom, title, lines, explanation.belief)


def reason_trees(explanation: Explanation) -> list[Tree]:
    """The answer with its reasons, and the contrast if there is one."""
    e, answer = explanation, probability_text(records.network_probability(explanation))
    alone = [item for item in e.counterfactuals if item.kind == "not known" and len(item.what) == 1]
    changes = {item.what[0]: probability_text(item.probability) for item in alone}
    changes = {fact: text for fact, text in changes.items() if text != answer}
    trees = [Tree("the answer", reason_tree(_answer(e), e.reasons, changes))]
    if e.contrast is not None:
        trees.append(Tree("the difference", reason_tree(_difference(e, e.contrast), e.contrast.reasons)))
        trees[1].first = len(trees[0].nodes)
    return trees


def drawn_nodes(explanation: Explanation) -> list[dict[str, str | None]]:
    """The nodes that `data-node` counts: `of` is the atom or the rule's name, `fact` what can be left out, if any."""
    found = []
    for node in (node for tree in reason_trees(explanation) for node in tree.nodes):
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
    trees, width, height = reason_trees(explanation), LEGEND_WIDTH, 0.0
    for tree in trees:
        tree.place()
        tree.top = height
        width, height = max(width, tree.width), height + tree.height
    texts = [f"The answer is {probability_text(explanation.belief.probability)}", "no ground rule is a reason"]
    if explanation.reasons:
        texts[1] = f"the strongest reason is {shortened(printable(explanation.reasons[0].ground_rule), LONGEST_TITLE)}"
    texts += [] if explanation.fidelity is None else [records.fidelity_text(explanation.fidelity)]
    return _template().render(
        title=f"Why {shortened(printable(explanation.atom), LONGEST_TITLE)}?",
        description=f"{'; '.join(texts)}.",
        style=None if theme == "page" else style_sheet(theme),
        trees=trees,
        width=width,
        height=height + LEGEND_HEIGHT,
    )


@cache
def _template() -> Template:
    made = Environment(loader=PackageLoader("r2n.explanation"), autoescape=True, undefined=StrictUndefined)
    made.trim_blocks = made.lstrip_blocks = True
    made.filters["px"] = lambda value: f"{value:.2f}".rstrip("0").rstrip(".")
    return made.get_template("drawing.svg.j2")


def style_sheet(theme: Theme = "page") -> str:
    """The CSS rules of drawings in the colours of a theme."""
    if theme == "auto":
        return f"{style_sheet('light')}@media (prefers-color-scheme:dark){{{style_sheet('dark')}}}"
    values = {name: {"light": light, "dark": dark} for name, (light, dark) in COLOURS.items()}
    colours = {name: value.get(theme, f"var(--{name})") for name, value in values.items()}
    rules = {name: shape.format_map(colours) for name, shape in SHAPES.items()}
    for name, (colour, size, weight, family) in FONTS.items():
        rules[name] = f"fill:{colours[colour]};font:{weight} {size}px {family};white-space:pre"
    return "".join(f".r2n-drawing .{name}{{{rule}}}" for name, rule in rules.items())


def text_width(text: str, style: str) -> float:
    """An estimate of a text's width in pixels, rather too large than too small, because fonts differ."""
    odd = sum(character > "\u2030" for character in text)  # a fallback font may draw these, often a wider one
    return (cell_len(text) + odd) * LETTER * FONTS[style][1]
