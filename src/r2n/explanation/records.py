"""The content of an explanation, as records that others draw and serve, and as lines of text.

Logits are the network's own, before any calibration. An `effect` is the logit as it is, minus the logit without the
thing: a positive effect supports the atom.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from html import escape
from io import StringIO
from typing import Any, Literal

from rich.console import Console
from rich.text import Text
from rich.tree import Tree
from scipy.special import expit

from r2n.errors import counted
from r2n.visible import printable, shortened

Kind = Literal["not known", "known to be false", "without rule"]
"""What is changed in a counterfactual."""


@dataclass(frozen=True, slots=True)
class Belief:
    """The answer for an atom.

    A `known` atom has the probability of what is known, and a `closed` one that is no fact has 0; `logit` is the
    network's in any case. `spread` is the deviation of the logit over the networks of an ensemble, and `calibrated`
    describes the calibration.
    """

    probability: float
    logit: float
    known: bool | None = None
    closed: bool = False
    spread: float | None = None
    calibrated: str | None = None


@dataclass(frozen=True, slots=True)
class LayerBelief:
    """out(a) read off layer l: 0 is the input layer, the last one gives the answer."""

    layer: int
    logit: float
    probability: float


@dataclass(frozen=True, slots=True)
class Member:
    """Another atom of a ground rule than the explained one, and the reasons for it in turn.

    `effect` is that of its input (its embedding, and what is known of it) on the explained atom, if measured.
    `is_explained_above`: its reasons are listed elsewhere in the same explanation.
    """

    atom: str
    belief: Belief
    effect: float | None = None
    reasons: tuple["Reason", ...] = ()
    is_explained_above: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """A ground rule, its effect on the atom's logit, and its other atoms (at most eight)."""

    rule: str
    ground_rule: str
    effect: float
    because: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """The answer if the facts `what` were changed, or without the rule of that name; `turns`: it would flip."""

    kind: Kind
    what: tuple[str, ...]
    logit: float
    probability: float
    turns: bool


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How much of an answer the listed ground rules account for: `listed` of the atom's `ground_rules`.

    The logits with all of them, with the listed ones `alone`, `without` the listed ones, and with `none`. `sufficiency`
    is the share of `full - none` that the listed ones alone give, `necessity` the share that is lost without them; None
    if ground rules make no difference.
    """

    listed: int
    ground_rules: int
    full: float
    alone: float
    without: float
    none: float

    @property
    def sufficiency(self) -> float | None:
        """1 if the listed ground rules alone give the answer."""
        return self._share(self.alone - self.none)

    @property
    def necessity(self) -> float | None:
        """1 if nothing is left of the effect of ground rules without them."""
        return self._share(self.full - self.without)

    def _share(self, part: float) -> float | None:
        total = self.full - self.none
        return None if abs(total) < 1e-9 else part / total


@dataclass(frozen=True, slots=True)
class Similar:
    """A known atom with a similar embedding; 1 is the same direction."""

    atom: str
    known: bool
    similarity: float


@dataclass(frozen=True, slots=True)
class FeatureEffect:
    """The effect of a part of the features on the logit: a channel of a pair, or a word of a constant's text."""

    part: str
    of: str
    effect: float


@dataclass(frozen=True, slots=True)
class InputReasons:
    """Why the input layer answers as it does."""

    similar: tuple[Similar, ...] = ()
    features: tuple[FeatureEffect, ...] = ()


@dataclass(frozen=True, slots=True)
class Contrast:
    """The ground rules that make the difference between the explained atom's logit and that of the `other`."""

    other: str
    belief: Belief
    difference: float
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an atom is answered as it is.

    `turned_by` is the smallest set of facts, found greedily, whose absence flips the answer. `input` explains the input
    layer's part. `notes` are remarks for the reader, and `labels` the names of constants by the features.
    """

    atom: str
    belief: Belief
    layers: tuple[LayerBelief, ...]
    reasons: tuple[Reason, ...]
    counterfactuals: tuple[Counterfactual, ...] = ()
    turned_by: Counterfactual | None = None
    fidelity: Fidelity | None = None
    input: InputReasons | None = None
    contrast: Contrast | None = None
    notes: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The explanation as one JSON document."""
        document = asdict(self) | {"labels": dict(self.labels)}
        if self.fidelity is not None:
            shares = {"sufficiency": self.fidelity.sufficiency, "necessity": self.fidelity.necessity}
            document["fidelity"] |= {**shares, "text": fidelity_text(self.fidelity)}
        return {"atom": document.pop("atom"), **document.pop("belief"), **document}

    def __repr__(self) -> str:
        return explanation_text(self)

    def _repr_html_(self) -> str:
        """The drawing, in a frame that scrolls, and the tree below it, folded."""
        from r2n.explanation.drawing import explanation_svg

        frame = f'<div style="overflow-x:auto">{explanation_svg(self)}</div>'
        return f"{frame}<details><summary>in words</summary><pre>{escape(str(self))}</pre></details>"


def probability_text(probability: float) -> str:
    """`0.97`; near 0 and 1 with more digits."""
    if not 0 < probability < 1:
        return f"{probability:.2f}"
    texts = (f"{probability:.{digits}f}" for digits in (2, 3, 4))
    return next((text for text in texts if 0 < float(text) < 1), "<0.0001" if probability < 0.5 else ">0.9999")


def effect_text(effect: float) -> str:
    """`+2.31`, `-0.0004`."""
    text = f"{effect:+.2f}"
    return text if effect == 0 or not math.isfinite(effect) or float(text) else f"{effect:+.1g}"


def change_text(before: float, after: float) -> str:
    """`0.97 → 0.41`, with enough digits to distinguish the two, at most four."""
    for digits in (2, 3, 4):
        texts = f"{before:.{digits}f}", f"{after:.{digits}f}"
        if texts[0] != texts[1] and {0.0, 1.0}.isdisjoint({float(texts[0]), float(texts[1])} - {before, after}):
            return " → ".join(texts)
    return f"{probability_text(before)} → {probability_text(after)}"


def strongest(effects: Iterable[float]) -> float:
    """The largest absolute effect; 0 without any."""
    return max((abs(effect) for effect in effects if math.isfinite(effect)), default=0.0)


def share_of(effect: float, full: float) -> float:
    """An effect as a share (0 to 1) of the strongest one."""
    return 0.0 if not full or math.isnan(effect) else min(abs(effect) / full, 1.0)


def known_text(belief: Belief) -> str | None:
    """What is known of an atom; None if nothing is."""
    if belief.known is not None:
        return "true by the facts" if belief.known else "false by the facts"
    return "closed: no fact, so false" if belief.closed else None


def status_text(belief: Belief) -> str:
    """What is known of an atom, or else its probability."""
    return known_text(belief) or f"believed {probability_text(belief.probability)}"


def answer_texts(explanation: Explanation) -> list[str]:
    """Remarks on the answer: whether it is known, how it is calibrated, and how far the networks differ."""
    belief, known = explanation.belief, known_text(explanation.belief)
    texts = ["not known, believed by the network"] if known is None else [known]
    if known is not None:
        texts.append(f"the network predicts {probability_text(network_probability(explanation))}")
    if belief.calibrated:
        texts.append(printable(belief.calibrated))
    elif known is None:
        texts.append("not calibrated")
    if belief.spread is not None:
        texts.append(f"networks differ by ±{belief.spread:.2f} (logit)")
    return texts


def network_probability(explanation: Explanation) -> float:
    """The network's probability, also of an atom that is known."""
    belief = explanation.belief
    if belief.known is None and not belief.closed:
        return belief.probability
    return explanation.layers[-1].probability if explanation.layers else float(expit(belief.logit))


def layer_name(layer: LayerBelief) -> str:
    """`input layer`, `layer 1`, ..."""
    return f"layer {layer.layer}" if layer.layer else "input layer"


def condition_texts(counterfactual: Counterfactual) -> tuple[str, str]:
    """The text before and behind the names of a counterfactual: `if `, ` were not known`."""
    if counterfactual.kind == "without rule":
        return "without rule ", ""
    return "if ", f" were {counterfactual.kind}"


def fidelity_text(fidelity: Fidelity) -> str:
    """`these 5 of 12 ground rules alone give 0.93 of what ground rules do; without them 0.12 is left`."""
    if not fidelity.ground_rules:
        return "no ground rule contains the atom"
    rules = counted(fidelity.ground_rules, "ground rule")
    if fidelity.sufficiency is None or fidelity.necessity is None:
        return f"the answer is the same without any of the {rules} with the atom"
    if not 0 < fidelity.listed < fidelity.ground_rules:
        return f"{'all' if fidelity.listed else 'none'} of the {rules} with the atom are listed"
    return (
        f"these {fidelity.listed:,} of {rules} alone give {fidelity.sufficiency:.2f} of what ground rules do; "
        f"without them {1 - fidelity.necessity:.2f} is left"
    )


LONGEST_LABEL = 80

Role = Literal["words", "quiet", "title", "label", "atom", "rule", "formula", "number", "for", "against", "bar"]
"""The kind of a span; a formula has a line of its own."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line; `share` (0 to 1) is the length of a bar."""

    text: str
    role: Role = "words"
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, and the lines below it."""

    spans: tuple[Span, ...]
    lines: tuple["Line", ...] = ()


def render(explanation: Explanation) -> Line:
    """An explanation as one line with all others below it: its parts, each under a title."""
    e = explanation
    contrast = e.contrast.reasons if e.contrast is not None else ()
    features = e.input.features if e.input is not None else ()
    effects = [item.effect for item in (*all_reasons((*e.reasons, *contrast)), *features)]
    renderer = _Renderer(strongest(effects), {e.atom})
    width = max((len(layer_name(layer)) for layer in e.layers), default=0)
    layers = []
    for layer in e.layers:
        name, p = Span(f"{layer_name(layer):<{width}}  ", "label"), layer.probability
        number = Span(f" {probability_text(p)}", "number")
        layers.append(Line((name, Span("", "bar", p if 0 <= p <= 1 else 0.0), number)))
    labels = [Line((_atom(n), Span(f": {shortened(printable(label), LONGEST_LABEL)}"))) for n, label in e.labels]
    reasons = [renderer.reason(reason) for reason in e.reasons]
    fidelity = [] if e.fidelity is None else [_quiet(fidelity_text(e.fidelity))]
    flips = [] if e.turned_by is None else [_counterfactual(e, e.turned_by)]
    parts = [
        _titled("layer by layer", layers),
        _titled("because of these ground rules, by their effect on the logit", reasons),
        _titled("what if", [_counterfactual(e, item) for item in e.counterfactuals]),
        _titled("the smallest set of facts found whose absence flips the answer", flips),
        *([renderer.contrast(e)] if e.contrast is not None else []),
        _titled("share of the answer due to these ground rules", fidelity),
        _titled("what the input layer goes by", renderer.input(e)),
        _titled("what the constants are called", labels),
        _titled("notes", [Line((Span(printable(note)),)) for note in e.notes]),
    ]
    return Line(_answer(e.atom, e.belief, answer_texts(e)), tuple(part for part in parts if part.lines))


class _Renderer:
    """Renders reasons in their order; `full` is the effect of a full bar, `above` the atoms explained so far."""

    def __init__(self, full: float, above: set[str]) -> None:
        self.full, self.above = full, above

    def reason(self, reason: Reason) -> Line:
        spans = (*self._effect(reason.effect), Span(printable(reason.rule), "rule"))
        return Line(
            (*spans, Span(printable(reason.ground_rule), "formula")),
            tuple(self.member(member) for member in reason.because),
        )

    def member(self, member: Member) -> Line:
        spans = [_atom(member.atom), Span(f": {status_text(member.belief)}")]
        if member.effect is not None:
            spans.append(Span(f"  (effect {effect_text(member.effect)})", "quiet"))
        if member.is_explained_above:
            spans.append(Span(f"  (explained {'above' if member.atom in self.above else 'elsewhere'})", "quiet"))
        if member.reasons:
            self.above.add(member.atom)
        return Line(tuple(spans), tuple(self.reason(reason) for reason in member.reasons))

    def contrast(self, explanation: Explanation) -> Line:
        contrast = explanation.contrast
        assert contrast is not None
        known = known_text(contrast.belief)
        difference = f"the logits differ by {effect_text(contrast.difference)}; these ground rules make it"
        spans = Span("rather than ", "title"), *_answer(contrast.other, contrast.belief, [known, difference])
        lines = [self.reason(reason) for reason in contrast.reasons] or [_quiet("no ground rule makes a difference")]
        return Line(spans, tuple(lines))

    def input(self, explanation: Explanation) -> list[Line]:
        reasons, lines = explanation.input, []
        for item in () if reasons is None else reasons.similar:
            known = Span(f": {'true' if item.known else 'false'} by the facts")
            lines.append(Line((Span(f"similarity {item.similarity:.2f}  "), _atom(item.atom), known)))
        for item in () if reasons is None else reasons.features:
            what = (Span(printable(item.part), "atom"), Span(f" of {printable(item.of)}" if item.of else "", "quiet"))
            lines.append(Line((*self._effect(item.effect), *what)))
        return lines

    def _effect(self, effect: float) -> tuple[Span, ...]:
        """`+2.31`, and a bar as long as it is."""
        role: Role = "against" if effect < 0 else "for"
        return Span(f"{effect_text(effect):>6} ", role), Span("", "bar", share_of(effect, self.full)), Span(" ")


def _counterfactual(explanation: Explanation, item: Counterfactual) -> Line:
    """`if neighborOf(italy, france) were not known: 0.97 → 0.41, the answer flips  (effect +3.97)`."""
    before, logit = network_probability(explanation), explanation.belief.logit
    first, last = condition_texts(item)
    role: Role = "rule" if item.kind == "without rule" else "atom"
    names = [span for name in item.what for span in (Span(" and "), Span(printable(name), role))][1:]
    turns = [Span(", the answer flips", "against")] if item.turns else []
    effect = Span(f"  (effect {effect_text(logit - item.logit)})", "quiet")
    change = Span(change_text(before, item.probability), "number")
    return Line((Span(first), *names, Span(f"{last}: "), change, *turns, effect))


def all_reasons(reasons: Iterable[Reason]) -> Iterator[Reason]:
    """These reasons and all below them, each before those of its atoms."""
    for reason in reasons:
        yield reason
        for member in reason.because:
            yield from all_reasons(member.reasons)


def _atom(name: str) -> Span:
    return Span(printable(name), "atom")


def _answer(atom: str, belief: Belief, texts: Iterable[str | None]) -> tuple[Span, ...]:
    number = Span(probability_text(belief.probability), "number")
    return _atom(atom), Span("  "), number, Span(f"  {'; '.join(filter(None, texts))}", "quiet")


def _quiet(text: str) -> Line:
    return Line((Span(text, "quiet"),))


def _titled(title: str, lines: Iterable[Line]) -> Line:
    return Line((Span(title, "title"),), tuple(lines))


BAR_WIDTH = 10
LONGEST_NAME = 200
STYLES = {"title": "bold", "rule": "bold", "number": "bold", "formula": "dim", "quiet": "dim"}
STYLES |= {"for": "bright_blue", "against": "dark_orange", "bar": "bright_blue"}
IN_ASCII = str.maketrans({"→": "->", "±": "+/-", "·": "-", "█": "#"})


def explanation_tree(explanation: Explanation, *, in_ascii: bool = False) -> Tree:
    """An explanation as a tree of rich; names are text, never markup. `in_ascii`: without special characters."""
    return _tree(render(explanation), in_ascii)


def explanation_text(explanation: Explanation, *, width: int = 80) -> str:
    """An explanation as plain text: what the command line prints, without colours."""
    console = Console(
        file=StringIO(), width=width, color_system=None, force_terminal=False, force_jupyter=False, _environ={}
    )
    with console.capture() as captured:
        console.print(explanation_tree(explanation))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _tree(line: Line, in_ascii: bool) -> Tree:
    sign = "against" if any(span.role == "against" for span in line.spans) else "for"
    label = Text()
    for span in line.spans:
        is_name = span.role in ("atom", "rule", "formula")
        text = shortened(span.text, LONGEST_NAME) if is_name else printable(span.text)
        if span.role == "bar":
            text = ("█" * max(round(span.share * BAR_WIDTH), int(span.share > 0))).ljust(BAR_WIDTH)
        text = f"\n{text}" if span.role == "formula" else text
        style = STYLES.get(sign if span.role == "bar" else span.role)
        label.append(text.translate(IN_ASCII) if in_ascii else text, style)
    tree = Tree(label, guide_style="dim", highlight=False)
    tree.children.extend(_tree(below, in_ascii) for below in line.lines)
    return tree
