"""A trained network, explained: what its rules do, as records that others print, draw and serve.

An effect is on the logit: as it is, minus without the rule. A gain is on the probability of what is true: what is
positive helps.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from r2n.json_text import finite
from r2n.logic.theory import Rule

Kind = Literal["explicit", "implicit", "counted"]
"""How a network reads a rule."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """How often a rule stands in the graph, and whether it holds there.

    `known` ground rules have atoms that are all known, and `satisfied` is the share of these that hold: None where
    there are none, and for implicit rules, of which nobody knows when they hold. `out` is the mean probability that a
    ground rule holds, as the network says (out(g)), where it was trained to say so.
    """

    ground_rules: int
    known: int = 0
    satisfied: float | None = None
    out: float | None = None


@dataclass(frozen=True, slots=True)
class RuleEffect:
    """What becomes of the answers without a rule, and with it alone.

    `effect` is the mean absolute change of the queries' logits, `gain` the mean change of the probability of the truth,
    `felt` how many logits change. `metric` is that of the network as it is, `without` and `alone` those without the
    rule and without all others.
    """

    effect: float
    gain: float
    felt: int
    metric: float | None = None
    without: float | None = None
    alone: float | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """Queries of one kind on which a rule helps, or hurts, more often than on others.

    `kind` and `what` say which: those with this constant, predicate, word, or domain at a position. Queries that do
    not feel the rule count nowhere. `p` is the chance that queries drawn blindly would differ so much, times the number
    of kinds that were tried.
    """

    kind: Literal["predicate", "domain", "word", "constant"]
    what: str
    helps: bool
    helped: int
    hurt: int
    helped_elsewhere: int
    hurt_elsewhere: int
    p: float


@dataclass(frozen=True, slots=True)
class LearnedClause:
    """A clause that a network has learned for an implicit rule, as an explicit rule that could stand in its place.

    `support` is the number of ground rules whose body is held true, and `fidelity` the share of these of which the
    network says the head. `confidence` is the share where the head is known to be so, of `known` ground rules; None
    where nothing is known. `score` ranks: the share of ground rules with this body, times how much more often than by
    chance the head follows.
    """

    rule: Rule
    support: int
    fidelity: float
    known: int
    confidence: float | None
    score: float

    def __str__(self) -> str:
        """The clause with its guards and typed variables, without the name."""
        return str(self.rule).partition(": ")[2]

    @property
    def counts(self) -> str:
        """What was counted, as a comment of a theory file says it."""
        confidence = "nothing known" if self.confidence is None else f"{self.confidence:.3f} of {self.known:,} known"
        return f"support {self.support:,}, confidence {confidence}, fidelity {self.fidelity:.3f}"

    def to_dict(self) -> dict[str, Any]:
        """As one JSON document."""
        numbers = {name: getattr(self, name) for name in ("support", "confidence", "known", "fidelity", "score")}
        return {"clause": str(self), **numbers}


@dataclass(frozen=True, slots=True)
class RuleAccount:
    """All that is told of one rule; what was not asked or cannot be told is None, or empty."""

    rule: Rule
    kind: Kind
    occurrence: Occurrence | None = None
    effect: RuleEffect | None = None
    contexts: tuple[Context, ...] = ()
    clauses: tuple[LearnedClause, ...] = ()

    @property
    def name(self) -> str:
        """The name of the rule."""
        return self.rule.name

    def to_dict(self) -> dict[str, Any]:
        """As one JSON document."""
        occurrence = asdict(self.occurrence) if self.occurrence is not None else {}
        effect = asdict(self.effect) if self.effect is not None else {}
        absent = dict.fromkeys((*Occurrence.__dataclass_fields__, *RuleEffect.__dataclass_fields__))
        return {
            "name": self.name,
            "text": str(self.rule),
            "kind": self.kind,
            **absent,
            **occurrence,
            **effect,
            "contexts": [asdict(context) for context in self.contexts],
            "clauses": [clause.to_dict() for clause in self.clauses],
        }


@dataclass(frozen=True, slots=True)
class RuleReport:
    """What the rules of a trained network do, those with the largest effect first.

    `metric` has its name and value with all rules, `none` its value without any. `left_out` rules are not told of.
    `contexts_on` says on which labelled atoms contexts were sought. `notes` say what a person should know to read the
    rest.
    """

    problem: str
    split: str | None
    queries: int
    metric: str | None
    value: float | None
    none: float | None
    rules: tuple[RuleAccount, ...]
    left_out: int = 0
    contexts_on: str | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The report as one JSON document."""
        fields = ("problem", "split", "queries", "metric", "value", "none", "left_out", "contexts_on")
        document = {name: getattr(self, name) for name in fields}
        rules = [rule.to_dict() for rule in self.rules]
        return finite({**document, "notes": list(self.notes), "rules": rules})
