"""An explanation -> lines within lines, which the terminal, plain text and pages show alike."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from r2n.errors import counted
from r2n.explanation.records import Counterfactual, Explanation, InputReasons, Member, Reason
from r2n.explanation.wording import (
    answer_texts,
    change_text,
    condition_texts,
    effect_text,
    fidelity_logits,
    fidelity_text,
    known_text,
    layer_name,
    network_probability,
    printable,
    probability_text,
    share_of,
    shortened,
    status_text,
    strongest,
)

LONGEST_LABEL = 80
MOST_MEMBERS = 8
"""Of a ground rule with more atoms than this, these are shown, and the others counted."""

Role = Literal["words", "quiet", "title", "label", "atom", "rule", "formula", "number", "for", "against", "bar"]
"""What a span is; a formula stands on a line of its own."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line; `share` (0 to 1) is the length of a bar."""

    text: str
    role: Role = "words"
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """What is said in one line, and the lines below it."""

    spans: tuple[Span, ...]
    lines: tuple["Line", ...] = ()

    def __str__(self) -> str:
        """The line as plain words, without bars and without what is below."""
        return "".join(span.text for span in self.spans if span.role != "bar")


def tell(explanation: Explanation) -> Line:
    """An explanation as one line with all others below it: its parts, each under a title."""
    head = (
        _atom(explanation.atom),
        Span("  "),
        Span(probability_text(explanation.belief.probability), "number"),
        Span(f"  {'; '.join(answer_texts(explanation))}", "quiet"),
    )
    return Line(head, tuple(part for part in _parts(explanation) if part.lines))


def _parts(explanation: Explanation) -> Iterator[Line]:
    teller = _Teller(_strongest(explanation), {explanation.atom})
    yield _titled("layer by layer", _layers(explanation))
    title = "because of these ground rules, by their effect on the logit"
    yield _titled(title, [teller.reason(reason) for reason in explanation.reasons])
    yield _titled("what if", [_counterfactual(explanation, item) for item in explanation.counterfactuals])
    if explanation.turned_by is not None:
        title = "the smallest set of facts found whose absence turns the answer"
        yield _titled(title, [_counterfactual(explanation, explanation.turned_by)])
    if explanation.contrast is not None:
        yield teller.contrast(explanation)
    if explanation.fidelity is not None:
        texts = fidelity_text(explanation.fidelity), fidelity_logits(explanation.fidelity)
        yield _titled("how far these ground rules carry the answer", [_quiet(text) for text in texts])
    if explanation.input is not None:
        yield _titled("what the input layer goes by", teller.input(explanation.input))
    labels = ((name, shortened(printable(label), LONGEST_LABEL)) for name, label in explanation.labels)
    named = [Line((_atom(name), Span(f": {label}"))) for name, label in labels]
    yield _titled("what the constants are called", named)
    yield _titled("notes", [Line((Span(printable(note)),)) for note in explanation.notes])


class _Teller:
    """Tells reasons in their order, knowing what was told before."""

    def __init__(self, whole: float, told: set[str]) -> None:
        """`whole` is the effect of a whole bar; `told` are the atoms whose reasons stand above."""
        self.whole, self.told = whole, told

    def reason(self, reason: Reason) -> Line:
        spans = (*self._effect(reason.effect), Span(printable(reason.rule), "rule"))
        shown, others = shown_members(reason)
        lines = [self.member(member) for member in shown]
        if others:
            lines.append(_quiet(f"and {_counts(others)}"))
        return Line((*spans, Span(printable(reason.ground_rule), "formula")), tuple(lines))

    def member(self, member: Member) -> Line:
        spans = [_atom(member.atom), Span(f": {status_text(member.belief)}")]
        if member.effect is not None:
            spans.append(Span(f"  (effect {effect_text(member.effect)})", "quiet"))
        if member.is_told_above:
            spans.append(Span(f"  (told {'above' if member.atom in self.told else 'elsewhere'})", "quiet"))
        if member.reasons:
            self.told.add(member.atom)
        return Line(tuple(spans), tuple(self.reason(reason) for reason in member.reasons))

    def contrast(self, explanation: Explanation) -> Line:
        contrast = explanation.contrast
        assert contrast is not None
        known = known_text(contrast.belief)
        difference = f"the logits differ by {effect_text(contrast.difference)}; these ground rules make it"
        spans = (
            Span("rather than ", "title"),
            _atom(contrast.other),
            Span("  "),
            Span(probability_text(contrast.belief.probability), "number"),
            Span(f"  {known + '; ' if known else ''}{difference}", "quiet"),
        )
        lines = [self.reason(reason) for reason in contrast.reasons] or [_quiet("no ground rule makes a difference")]
        return Line(spans, tuple(lines))

    def input(self, reasons: InputReasons) -> list[Line]:
        lines = [
            Line(
                (
                    Span(f"similarity {item.similarity:.2f}  "),
                    _atom(item.atom),
                    Span(f": {'true' if item.known else 'false'} by the facts"),
                )
            )
            for item in reasons.similar
        ]
        for item in reasons.features:
            what = (Span(printable(item.part), "atom"), Span(f" of {printable(item.of)}" if item.of else "", "quiet"))
            lines.append(Line((*self._effect(item.effect), *what)))
        return lines

    def _effect(self, effect: float) -> tuple[Span, ...]:
        """`+2.31`, and a bar as long as it is."""
        role: Role = "against" if effect < 0 else "for"
        return Span(f"{effect_text(effect):>6} ", role), Span("", "bar", share_of(effect, self.whole)), Span(" ")


def shown_members(reason: Reason) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
    """The atoms of a ground rule that are shown, and the others, each in the order of the rule.

    Where there are many, those that have reasons are shown first, then the strongest and those known to be true.
    """
    members = reason.because
    if len(members) <= MOST_MEMBERS + 1:
        return members, ()
    order = sorted(range(len(members)), key=lambda i: _weight(members[i]), reverse=True)
    kept = set(order[:MOST_MEMBERS])
    shown, others = ([members[i] for i in range(len(members)) if (i in kept) is wanted] for wanted in (True, False))
    return tuple(shown), tuple(others)


def _weight(member: Member) -> tuple[bool, float, bool, float]:
    has_reasons = bool(member.reasons) or member.is_told_above
    return has_reasons, abs(member.effect or 0.0), member.belief.known is True, member.belief.probability


def _counts(members: Sequence[Member]) -> str:
    """`47 more atoms: 2 true by the facts, 45 believed`."""
    kinds = Counter(known_text(member.belief) or "believed" for member in members)
    told = ", ".join(f"{number:,} {kind.partition(':')[0]}" for kind, number in kinds.items())
    return f"{counted(len(members), 'more atom')}: {told}"


def _layers(explanation: Explanation) -> list[Line]:
    names = [layer_name(layer) for layer in explanation.layers]
    width = max(map(len, names), default=0)
    return [
        Line((Span(f"{name:<{width}}  ", "label"), _share(p), Span(f" {probability_text(p)}", "number")))
        for name, p in zip(names, (layer.probability for layer in explanation.layers), strict=True)
    ]


def _counterfactual(explanation: Explanation, item: Counterfactual) -> Line:
    """`if neighborOf(italy, france) were not known: 0.97 → 0.41, the answer turns  (effect +3.97)`."""
    before, logit = network_probability(explanation), explanation.belief.logit
    first, last = condition_texts(item)
    names = [span for name in item.what for span in (Span(" and "), _named(item, name))][1:]
    turns = [Span(", the answer turns", "against")] if item.turns else []
    effect = Span(f"  (effect {effect_text(logit - item.logit)})", "quiet")
    change = Span(change_text(before, item.probability), "number")
    return Line((Span(first), *names, Span(f"{last}: "), change, *turns, effect))


def _named(item: Counterfactual, name: str) -> Span:
    return Span(printable(name), "rule") if item.kind == "without rule" else _atom(name)


def _strongest(explanation: Explanation) -> float:
    """The largest effect of all, which has the longest bar."""
    effects = [reason.effect for reason in all_reasons(explanation.reasons)]
    if explanation.contrast is not None:
        effects += [reason.effect for reason in all_reasons(explanation.contrast.reasons)]
    if explanation.input is not None:
        effects += [item.effect for item in explanation.input.features]
    return strongest(effects)


def all_reasons(reasons: Iterable[Reason]) -> Iterator[Reason]:
    """These reasons and all below them, each before those of its atoms."""
    for reason in reasons:
        yield reason
        for member in reason.because:
            yield from all_reasons(member.reasons)


def _atom(name: str) -> Span:
    return Span(printable(name), "atom")


def _share(probability: float) -> Span:
    return Span("", "bar", probability if 0 <= probability <= 1 else 0.0)


def _quiet(text: str) -> Line:
    return Line((Span(text, "quiet"),))


def _titled(title: str, lines: Iterable[Line]) -> Line:
    return Line((Span(title, "title"),), tuple(lines))
