"""An explanation, drawn: what each node looks like, as marks around its own upper left corner."""

from dataclasses import dataclass

from rich.cells import chop_cells

from r2n.explanation.drawing.marks import Mark, Number, Rectangle, Stroke, Words
from r2n.explanation.drawing.reason_graph import Node
from r2n.explanation.drawing.styles import text_width
from r2n.explanation.records import Belief, Counterfactual, Explanation, LayerBelief
from r2n.explanation.text import REPLACED, answer_texts, layer_name, printable, probability_text, shortened

LONGEST_NAME = 42  # characters
LONGEST_RULE = 24
NARROWEST_PANEL, PADDING = 268.0, 18.0
NOTE_HEIGHT, MOST_LINES, MOST_LAYERS = 15.5, 5, 6
CHART_HEIGHT, BAR, BAR_GAP = 34.0, 18.0, 9.0


@dataclass(frozen=True, slots=True)
class Box:
    """The size of a node, and its marks."""

    width: Number
    height: Number
    marks: tuple[Mark, ...]


def node_box(node: Node) -> Box:
    """A node that is not the answer."""
    if node.kind == "rule":
        return _rule_box(node)
    return _more_box(node) if node.kind == "more" else _atom_box(node)


def _atom_box(node: Node) -> Box:
    assert node.belief is not None
    name = shortened(node.name, LONGEST_NAME)
    width, height = 44 + max(text_width(name, "atom"), text_width(node.note, "note")), 44.0
    marks = [*_frame(width, height, node.belief), *_sign(node.belief), Words(32, 19, name, "atom")]
    return Box(width, height, (*marks, Words(32, 35, node.note, "note")))


def _frame(width: Number, height: Number, belief: Belief) -> list[Mark]:
    """A box in the colour of the truth: strong where it is known, by its probability where it is believed."""
    side = side_of(belief)
    is_known = belief.known is not None or belief.closed
    strength = 0.2 if is_known else 0.16 * abs(2 * belief.probability - 1)
    tint = Rectangle(0, 0, width, height, f"tint-{side}", 7, strength)
    edge = Rectangle(0, 0, width, height, f"edge-{side}", 7)
    return [Rectangle(0, 0, width, height, "box", 7), tint, edge]


def _sign(belief: Belief) -> list[Mark]:
    """A check for what is true, a cross for what is false, an upright gauge for what is believed."""
    if belief.known is None and not belief.closed:
        share = min(max(belief.probability, 0.0), 1.0)
        full = Rectangle(13, 10 + 24 * (1 - share), 8, 24 * share, f"tint-{side_of(belief)}", min(3.0, 12 * share))
        return [Rectangle(13, 10, 8, 24, "track", 3, 0.35), full]
    if belief.known:
        return [Stroke(((11, 22), (15.5, 27), (23, 16.5)), "sign-for", 2.5)]
    return [Stroke(((12, 17), (22, 27)), "sign-against", 2.5), Stroke(((12, 27), (22, 17)), "sign-against", 2.5)]


def side_of(belief: Belief) -> str:
    """`for` what is rather true, `against` what is rather false."""
    return "for" if belief.probability >= 0.5 else "against"


def _rule_box(node: Node) -> Box:
    side, rule = "against" if node.effect < 0 else "for", shortened(node.name, LONGEST_RULE)
    start = 14 + text_width(node.note, f"number-{side}") + 9
    width, height = start + text_width(rule, "rule") + 12, 28.0
    frame = Rectangle(0, 0, width, height, f"pill-{side}", height / 2)
    return Box(width, height, (frame, Words(14, 18.5, node.note, f"number-{side}"), Words(start, 18.5, rule, "rule")))


def _more_box(node: Node) -> Box:
    return Box(text_width(node.name, "note") + 16, 22.0, (Words(8, 15, node.name, "note"),))


# the answer


def answer_box(explanation: Explanation) -> Box:
    """The answer: its atom, probability and layers, how sure it is, and what would turn it."""
    name = shortened(printable(explanation.atom), LONGEST_NAME)
    number, shown = probability_text(explanation.belief.probability), explanation.layers[-MOST_LAYERS:]
    figures = text_width(number, "figure") + 3 * BAR_GAP + len(shown) * (BAR + BAR_GAP)
    width = max(NARROWEST_PANEL, 2 * PADDING + max(text_width(name, "answer"), figures))
    marks: list[Mark] = [Words(PADDING, 33, name, "answer"), Words(PADDING, 80, number, "figure")]
    marks += _chart(shown, width - PADDING)
    y = 113.0
    for text in answer_texts(explanation):
        y = _paragraph(marks, text.split(" "), "note", y, width)
    turning = _turning(explanation)
    if turning is not None:
        y = _paragraph(marks, ["The answer would turn"], "strong-note", y + 9, width)
        y = _paragraph(marks, _condition(turning), "note", y, width)
    height = y + 2
    side = side_of(explanation.belief)
    frame = [
        Rectangle(0, 0, width, height, "panel", 12),
        Rectangle(0, 0, width, height, f"tint-{side}", 12, 0.07),
        Rectangle(0, 0, width, height, f"pill-{side}", 12, 0),
    ]
    return Box(width, height, (*frame, *marks))


def contrast_box(explanation: Explanation) -> Box:
    """The other atom that the answer is held against."""
    contrast = explanation.contrast
    assert contrast is not None
    first, other = (shortened(printable(name), LONGEST_NAME) for name in (explanation.atom, contrast.other))
    width = max(NARROWEST_PANEL, 2 * PADDING + max(text_width(name, "answer") for name in (first, other)))
    numbers = [probability_text(belief.probability) for belief in (explanation.belief, contrast.belief)]
    marks: list[Mark] = [
        Rectangle(0, 0, width, 132, "panel", 12),
        Words(PADDING, 33, first, "answer"),
        Words(PADDING, 52, numbers[0], "strong-note"),
        Words(PADDING, 72, "rather than", "note"),
        Words(PADDING, 94, other, "answer"),
        Words(PADDING, 113, numbers[1], "strong-note"),
    ]
    return Box(width, 132.0, tuple(marks))


def _turning(explanation: Explanation) -> Counterfactual | None:
    """What would turn the answer: facts that are not known, or whatever was found first."""
    turning = (item for item in explanation.counterfactuals if item.turns)
    return explanation.turned_by or next(turning, None)


def _condition(item: Counterfactual) -> list[str]:
    """`without`, `p(a, b)`, `and`, `q(a)`, `0.41`: words, of which a name is one."""
    names = [shortened(printable(name), LONGEST_NAME) for name in item.what[:3]]
    names += [f"{len(item.what) - 3} more"] if len(item.what) > 3 else []
    listed = [word for name in names for word in ("and", name)][1:]
    if item.kind == "known to be false":
        words = ["if", *listed, "were", "false"]
    else:
        words = ["without", *(["rule"] if item.kind == "without rule" else []), *listed]
    return [*words[:-1], f"{words[-1]}:", probability_text(item.probability)]


def _chart(layers: tuple[LayerBelief, ...], right: Number) -> list[Mark]:
    """What is believed after each layer, as upright bars."""
    marks: list[Mark] = []
    for place, layer in enumerate(reversed(layers)):
        x, share = right - BAR - place * (BAR + BAR_GAP), min(max(layer.probability, 0.0), 1.0)
        side = "for" if layer.probability >= 0.5 else "against"
        marks.append(Rectangle(x, 46, BAR, CHART_HEIGHT, "track", 3, 0.25))
        height = max(CHART_HEIGHT * share, 1.5)
        marks.append(Rectangle(x, 46 + CHART_HEIGHT - height, BAR, height, f"tint-{side}", min(3.0, height / 2)))
        label = str(layer.layer) if layer.layer else "input"
        marks.append(Words(x + BAR / 2, 93, label, "small", "middle"))
    return marks


def layers_text(explanation: Explanation) -> str:
    """`input layer 0.53, layer 1 0.91`."""
    return ", ".join(f"{layer_name(layer)} {probability_text(layer.probability)}" for layer in explanation.layers)


def _paragraph(marks: list[Mark], words: list[str], style: str, y: Number, width: Number) -> Number:
    """Add lines of words; the baseline of the line below them."""
    lines = wrapped(words, style, width - 2 * PADDING)
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"{lines[MOST_LINES - 1]} …"]
    for line in lines:
        marks.append(Words(PADDING, y, line, style))
        y += NOTE_HEIGHT
    return y


def wrapped(words: list[str], style: str, width: Number) -> list[str]:
    """Words in lines of at most a width; those that are longer are cut."""
    lines = [""]
    for word in (piece for whole in words for piece in _pieces(whole, style, width)):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if not lines[-1] or text_width(joined, style) <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def _pieces(word: str, style: str, width: Number) -> list[str]:
    """A word, or its pieces where it is wider than a line."""
    if text_width(word, style) <= width:
        return [word]
    return chop_cells(word, max(int(width / text_width("m" if word.isascii() else REPLACED, style)), 2))
