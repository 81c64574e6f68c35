"""The content of an explanation, as records that others print, draw and serve.

Logits are the network's own, before any calibration. An `effect` is the logit as it is, minus the logit without the
thing: a positive effect supports the atom.
"""

from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Literal

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
            from r2n.explanation.text import fidelity_text

            shares = {"sufficiency": self.fidelity.sufficiency, "necessity": self.fidelity.necessity}
            document["fidelity"] |= {**shares, "text": fidelity_text(self.fidelity)}
        return {"atom": document.pop("atom"), **document.pop("belief"), **document}

    def __repr__(self) -> str:
        from r2n.explanation.text import explanation_text

        return explanation_text(self)

    def _repr_html_(self) -> str:
        """The drawing, in a frame that scrolls, and the tree below it, folded."""
        from r2n.explanation.drawing import explanation_svg

        frame = f'<div style="overflow-x:auto">{explanation_svg(self)}</div>'
        return f"{frame}<details><summary>in words</summary><pre>{escape(str(self))}</pre></details>"
