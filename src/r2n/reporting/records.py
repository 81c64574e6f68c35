"""Runs -> pages: what the page of a run tells, section by section, before it is a page.

A part that is None, or empty, is left out of the page.
"""

from dataclasses import dataclass
from typing import Literal

from r2n.evaluation.by_query import PrecisionRecall, RankCounts
from r2n.evaluation.plots import Curve
from r2n.evaluation.report import Report
from r2n.explanation.records import Explanation
from r2n.reporting.phases import PhaseCost

Origin = Literal["default", "set", "chosen"]


@dataclass(frozen=True, slots=True)
class PredicateLine:
    """A predicate as it was trained: its domains, what is known of it, and how many queries ask for it."""

    name: str
    domains: tuple[str, ...]
    is_closed: bool
    true: int
    false: int
    queries: int


@dataclass(frozen=True, slots=True)
class TrainedOn:
    """What was trained on what.

    `facts` are words for it, each under its heading; `domains` have their number of constants. `rules` are the
    theory's, as they are written, the first ones where there are many; `more_rules` were left out.
    """

    problem: str
    facts: tuple[tuple[str, str], ...]
    domains: tuple[tuple[str, int], ...] = ()
    predicates: tuple[PredicateLine, ...] = ()
    rules: tuple[str, ...] = ()
    more_rules: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """The report on a split, and its curves or counts, that of all predicates first."""

    report: Report
    precision_recall: tuple[PrecisionRecall, ...] = ()
    ranks: tuple[RankCounts, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleLine:
    """What a rule does, as far as it is known.

    `satisfied` is the share of its ground rules that hold on the evidence, `out` the mean out(g), `effect` its mean
    absolute effect on answers; `without` and `alone` are the validation metric without it and with no other.
    `details` say more: contexts where it helps or hurts, clauses that an implicit rule has learned.
    """

    name: str
    text: str
    ground_rules: int | None = None
    satisfied: float | None = None
    out: float | None = None
    effect: float | None = None
    without: float | None = None
    alone: float | None = None
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The rules; `metric` is what `without` and `alone` are, and `whole` what the network reaches with all of them.

    `left_out` rules are not told of. `notes` say what a person should know to read the rest.
    """

    rules: tuple[RuleLine, ...]
    metric: str = ""
    whole: float | None = None
    left_out: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToldAnswer:
    """An answer to a query, with its truth (None where it is not known), in words what is remarkable, and why."""

    atom: str
    probability: float
    truth: bool | None
    words: str = ""
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class ToldAnswers:
    """Some answers of one kind, and which these are."""

    heading: str
    words: str
    answers: tuple[ToldAnswer, ...]


@dataclass(frozen=True, slots=True)
class OptionLine:
    """An option, where its value comes from, and why it was chosen, where it was."""

    key: str
    value: str
    default: str
    origin: Origin
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RunReport:
    """All that the page of a run tells.

    `networks` have the curves of their training, one list for each network of an ensemble. `figures` are the numbers to
    look at first, with their names; `notes` are what a person should know to read the rest.
    """

    trained_on: TrainedOn
    results: tuple[Result, ...] = ()
    networks: tuple[tuple[Curve, ...], ...] = ()
    rules: RuleTable | None = None
    answers: tuple[ToldAnswers, ...] = ()
    phases: tuple[PhaseCost, ...] = ()
    options: tuple[OptionLine, ...] = ()
    notes: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()
