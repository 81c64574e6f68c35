"""A trained network, explained: what an explanation says, as records that others print, draw and serve.

Logits are the network's own, before any calibration. An `effect` is the logit as it is, minus the logit without the
thing: what is positive speaks for the atom.
"""

from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Literal

MOST_LINES = 40

Kind = Literal["not known", "known to be false", "without rule"]
"""What would be otherwise in a counterfactual."""


@dataclass(frozen=True, slots=True)
class Belief:
    """What is said of an atom.

    A `known` atom has the probability of what is known, and a `closed` one that is no fact has 0; `logit` is what the
    network says all the same. `spread` is the deviation of the logit over the networks of an ensemble, and `calibrated`
    says in words whether the probability was fitted, and on what.
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
    """An atom of a ground rule, beside the one that is explained, and the reasons for it in turn.

    `effect` is that of what the network reads of this atom (its embedding, and what is known of it) on the explained
    atom, where it was asked. `is_told_above`: its reasons stand at another place of the same explanation.
    """

    atom: str
    belief: Belief
    effect: float | None = None
    reasons: tuple["Reason", ...] = ()
    is_told_above: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """A ground rule that the atom stands in, and what it does to the atom's logit.

    `because` are its other atoms, in the order of the rule; of a wide rule those with the largest effects.
    """

    rule: str
    ground_rule: str
    effect: float
    because: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """What would be said if something were otherwise: facts that are `what`, or without the rule of that name.

    `turns`: the answer would be another (below 0.5, or out of first place).
    """

    kind: Kind
    what: tuple[str, ...]
    logit: float
    probability: float
    turns: bool


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How much of an answer the listed ground rules carry: `listed` of `ground_rules` that the atom stands in.

    Logits with all of them, with the listed ones `alone` (of those that the atom stands in), `without` the listed ones,
    and with `none` of all. `sufficiency` is the share of `full - none` that the listed ones alone reproduce, and
    `necessity` the share that goes when they go; None where ground rules make no difference.
    """

    listed: int
    ground_rules: int
    full: float
    alone: float
    without: float
    none: float

    @property
    def sufficiency(self) -> float | None:
        """1 where the listed ground rules alone give the answer."""
        return self._share(self.alone - self.none)

    @property
    def necessity(self) -> float | None:
        """1 where without them nothing is left of what ground rules do."""
        return self._share(self.full - self.without)

    def _share(self, part: float) -> float | None:
        whole = self.full - self.none
        return None if abs(whole) < 1e-9 else part / whole


@dataclass(frozen=True, slots=True)
class Similar:
    """A known atom that the input layer reads as it reads the explained one; 1 is the same direction."""

    atom: str
    known: bool
    similarity: float


@dataclass(frozen=True, slots=True)
class FeatureEffect:
    """What a part of the features does to the logit: a channel of a pair, or a word of a constant's text."""

    part: str
    of: str
    effect: float


@dataclass(frozen=True, slots=True)
class Contrast:
    """The explained atom beside another: which ground rules make the difference of their logits.

    Effects of the reasons are on `difference`: the logit of the explained atom minus that of the `other`.
    """

    other: str
    belief: Belief
    difference: float
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an atom is answered as it is.

    `turned_by` is the smallest set of facts, found greedily, whose absence turns the answer; none where none was found.
    `input` is what the input layer goes by. `notes` say what a person should know to read the rest,
    and `labels` what people call the constants in it, where the features tell.
    """

    atom: str
    belief: Belief
    layers: tuple[LayerBelief, ...]
    reasons: tuple[Reason, ...]
    counterfactuals: tuple[Counterfactual, ...] = ()
    turned_by: Counterfactual | None = None
    fidelity: Fidelity | None = None
    input: "InputReasons | None" = None
    contrast: Contrast | None = None
    notes: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The explanation as one JSON document."""
        document = asdict(self)
        belief = document.pop("belief")
        fidelity = document.pop("fidelity")
        if self.fidelity is not None:
            fidelity |= {"sufficiency": self.fidelity.sufficiency, "necessity": self.fidelity.necessity}
        document |= {"fidelity": fidelity, "labels": dict(self.labels)}
        return {"atom": document.pop("atom"), **belief, **document}

    # The tree and the drawing are made of these records, so they come in where they are used.

    def __str__(self) -> str:
        """The whole tree, as `r2n explain` prints it."""
        from r2n.explanation.text import explanation_text

        return explanation_text(self)

    def __repr__(self) -> str:
        """The tree, as far as it fits on one screen."""
        lines = str(self).split("\n")
        more = len(lines) - MOST_LINES
        return "\n".join([*lines[:MOST_LINES], *[f"... and {more:,} more lines: print it"] * (more > 0)])

    def _repr_svg_(self) -> str:
        from r2n.explanation.drawing import explanation_svg

        return explanation_svg(self)

    def _repr_html_(self) -> str:
        """The drawing, in a frame of its own that scrolls, and the tree below it for who opens it."""
        frame = f'<div style="overflow-x:auto">{self._repr_svg_()}</div>'
        return f"{frame}<details><summary>in words</summary><pre>{escape(str(self))}</pre></details>"


@dataclass(frozen=True, slots=True)
class InputReasons:
    """What the input layer's part of an answer rests on."""

    similar: tuple[Similar, ...] = ()
    features: tuple[FeatureEffect, ...] = ()
