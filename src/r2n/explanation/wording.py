"""An explanation -> words: how its numbers and parts are said, the same in trees, drawings and pages."""

import math
import unicodedata
from collections.abc import Iterable

from scipy.special import expit

from r2n.errors import counted
from r2n.explanation.records import Belief, Counterfactual, Explanation, Fidelity, LayerBelief

REPLACED = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """The text on one line, with a picture of what has none: control characters, halves of surrogate pairs."""
    return text if text.isprintable() else "".join(map(_character, text))


def _character(character: str) -> str:
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return chr(0x2400 + min(code, 0x21))
    is_none = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or code & 0xFFFE == 0xFFFE
    return REPLACED if is_none else character


def shortened(text: str, most: int) -> str:
    """The text, without its middle where it is longer than `most` characters."""
    if len(text) <= most:
        return text
    end = most // 3
    return f"{text[: most - end - 1]}…{text[len(text) - end :]}"


def probability_text(probability: float) -> str:
    """`0.97`; near 0 and 1 with the digits that tell it from them."""
    if not 0 < probability < 1:
        return f"{probability:.2f}"
    texts = (f"{probability:.{digits}f}" for digits in (2, 3, 4))
    return next((text for text in texts if 0 < float(text) < 1), "<0.0001" if probability < 0.5 else ">0.9999")


def effect_text(effect: float) -> str:
    """`+2.31`, `-0.0004`."""
    text = f"{effect:+.2f}"
    return text if effect == 0 or not math.isfinite(effect) or float(text) else f"{effect:+.1g}"


def change_text(before: float, after: float) -> str:
    """`0.97 → 0.41`, with as many digits as tell the two apart, at most four."""
    for digits in (2, 3, 4):
        texts = f"{before:.{digits}f}", f"{after:.{digits}f}"
        if texts[0] != texts[1] and {0.0, 1.0}.isdisjoint({float(texts[0]), float(texts[1])} - {before, after}):
            return " → ".join(texts)
    return f"{probability_text(before)} → {probability_text(after)}"


def strongest(effects: Iterable[float]) -> float:
    """The largest effect, of either sign, which others are held against; 0 where there is none."""
    return max((abs(effect) for effect in effects if math.isfinite(effect)), default=0.0)


def share_of(effect: float, whole: float) -> float:
    """How much (0 to 1) of the strongest effect an effect is."""
    return 0.0 if not whole or math.isnan(effect) else min(abs(effect) / whole, 1.0)


def known_text(belief: Belief) -> str | None:
    """What is known of an atom, where anything is."""
    if belief.known is not None:
        return "true by the facts" if belief.known else "false by the facts"
    return "closed: no fact, so false" if belief.closed else None


def status_text(belief: Belief) -> str:
    """What is known of an atom, or else how far it is believed."""
    return known_text(belief) or f"believed {probability_text(belief.probability)}"


def answer_texts(explanation: Explanation) -> list[str]:
    """What is said of the answer beside its probability: what it rests on, and how sure it is."""
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
    """What the network says, also of an atom that is known."""
    belief = explanation.belief
    if belief.known is None and not belief.closed:
        return belief.probability
    if explanation.layers:
        return explanation.layers[-1].probability
    return float(expit(belief.logit))


def layer_name(layer: LayerBelief) -> str:
    """`input layer`, `layer 1`, ..."""
    return f"layer {layer.layer}" if layer.layer else "input layer"


def condition_texts(counterfactual: Counterfactual) -> tuple[str, str]:
    """What stands before and behind the names of a counterfactual: `if `, ` were not known`."""
    if counterfactual.kind == "without rule":
        return "without rule ", ""
    return "if ", f" were {counterfactual.kind}"


def fidelity_text(fidelity: Fidelity) -> str:
    """`these 5 of 12 ground rules alone give 0.93 of what ground rules do; without them 0.12 is left`."""
    if not fidelity.ground_rules:
        return "the atom stands in no ground rule"
    rules = counted(fidelity.ground_rules, "ground rule")
    if fidelity.sufficiency is None or fidelity.necessity is None:
        return f"the answer is the same without any of the {rules} that the atom stands in"
    if not fidelity.listed:
        return f"none of the {rules} that the atom stands in is listed"
    if fidelity.listed >= fidelity.ground_rules:
        these = "this is the only ground rule" if fidelity.ground_rules == 1 else f"these are all {rules}"
        return f"{these} that the atom stands in"
    is_one = fidelity.listed == 1
    these, gives, them = ("this one", "gives", "it") if is_one else (f"these {fidelity.listed:,}", "give", "them")
    return (
        f"{these} of {rules} alone {gives} {fidelity.sufficiency:.2f} of what ground rules do; "
        f"without {them} {1 - fidelity.necessity:.2f} is left"
    )


def fidelity_logits(fidelity: Fidelity) -> str:
    """The logits that the shares are made from."""
    if not fidelity.listed:
        return f"logit {fidelity.full:.2f}; without any ground rule {fidelity.none:.2f}"
    return (
        f"logit {fidelity.full:.2f}; with these alone {fidelity.alone:.2f}, without them {fidelity.without:.2f}, "
        f"without any ground rule {fidelity.none:.2f}"
    )
