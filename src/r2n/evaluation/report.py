"""The report on a split, and classification of its queries."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from math import isnan, nan
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from jaxtyping import Float64
from scipy.special import expit

from r2n.data.herbrand import Codes, HerbrandBase, QueryPattern
from r2n.data.knowledge_base import Evidence
from r2n.errors import DataError, counted, optional_library
from r2n.evaluation.by_query import ByQuery, ClassifiedQueries
from r2n.evaluation.metrics import METRICS, TOLERANCE, Calibration, classification_metrics, roc_auc_by_group
from r2n.evaluation.metrics import calibration as reliability
from r2n.files import finite

if TYPE_CHECKING:
    import pandas

Score = Callable[[Codes], Float64[np.ndarray, " atoms"]]
"""Codes of atoms -> their logits."""

Numbers = Mapping[str, int | float]

NOTHING_TO_RANK, NOT_HELD_OUT, REASONING_HARMS = "nothing_to_rank", "not_held_out", "reasoning_harms"  # of a protocol
NOT_COMPARED, ASKED = "not_compared", "asked"


@dataclass(frozen=True, eq=False)
class Report:
    """The metrics of one split, pooled, per predicate and (of a ranking) by position, and the protocol: how they came
    about.

    `ties` holds the metrics with equal scores ranked at best ("optimistic") and at worst ("pessimistic"), `intervals`
    the 95 % interval of each metric if only a sample was asked, `baselines` the metrics that parts of
    the model reach alone. `calibration` is of the probabilities that the logits give, `calibrated` of those after a
    calibration. `by_query` holds what all this was computed from, and is left out of JSON. A metric of nothing is NaN
    here, and null in JSON; `nothing_to_rank` says why a ranking has none.
    """

    split: str
    metrics: Mapping[str, float]
    per_predicate: Mapping[str, Numbers]
    protocol: Mapping[str, str | int]
    ties: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    calibration: Calibration | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    baselines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    calibrated: Calibration | None = None
    by_query: ByQuery | None = None
    by_position: Mapping[str, Numbers] = field(default_factory=dict)

    @property
    def main(self) -> tuple[str, float]:
        """The main metric with its name: of a ranking `mrr`, of a classification `ap`."""
        name = next(name for name in METRICS if name in self.metrics)
        return name, self.metrics[name]

    @property
    def nothing_to_rank(self) -> str:
        """Why a ranking has no metrics, in a sentence; empty where it has some, and of a classification."""
        return str(self.protocol.get(NOTHING_TO_RANK, ""))

    def __repr__(self) -> str:
        asked = f"{self.protocol['task']}, {counted(int(self.protocol['queries']), 'query', 'queries')}"
        metrics = ", ".join(f"{name} {value:.4f}" for name, value in self.metrics.items() if not isnan(value))
        return f"Report on '{self.split}' ({asked}): {metrics or self.nothing_to_rank or 'no metrics'}"

    def __str__(self) -> str:
        """A table: the metrics of all queries, of the baselines and, if there are several, of positions, predicates."""
        rows, names = self._rows(), list(self.metrics)
        if not names:
            return repr(self)
        for i, bound in enumerate(("of all at 95 %, from", "to") if self.intervals else ()):
            rows[bound] = {name: interval[i] for name, interval in self.intervals.items()}
        if self.calibrated is not None:
            pairs = "pair_accuracy" if "pair_accuracy" in self.metrics else "accuracy"
            found = self.calibrated
            rows["calibrated"] = {pairs: found.accuracy, "brier": found.brier, "ece": found.ece}
        width = max(map(len, rows))
        lines = [" ".join([" " * width, *(f"{name:>{max(7, len(name))}}" for name in names)])]
        for label, numbers in rows.items():
            cells = [f"{numbers.get(name, nan):.4f}".replace("nan", "-").rjust(max(7, len(name))) for name in names]
            lines.append(" ".join([label.ljust(width), *cells]))
        return "\n".join([repr(self).partition(":")[0], *lines])

    def _rows(self) -> dict[str, Numbers]:
        several = (part for part in (self.by_position, self.per_predicate) if len(part) > 1)
        rows = {"asked" if ASKED in self.protocol else "all queries": self.metrics, **self.baselines}
        return rows | {name: numbers for part in several for name, numbers in part.items()}

    def to_pandas(self) -> "pandas.DataFrame":
        """A row for all queries, for each baseline and, if there are several, for each position and predicate."""
        return optional_library("pandas").DataFrame.from_dict(self._rows(), orient="index")

    def to_dict(self) -> dict[str, Any]:
        """The report as one JSON document."""
        document = asdict(replace(self, by_query=None))
        del document["by_query"]
        return finite(document)


def classify(
    score: Score,
    queries: Evidence,
    base: HerbrandBase,
    *,
    split: str = "queries",
    probabilities: Callable[[Codes, Float64[np.ndarray, " atoms"]], Float64[np.ndarray, " atoms"]] | None = None,
) -> Report:
    """Classify queries as true or false: pooled average precision, macro ROC-AUC, accuracy, calibration.

    With `probabilities`, those of a calibration for codes and logits, these are judged once more, and say which atoms
    are held true.
    """
    bounds = predicate_bounds(base, queries.atoms)
    scores = scored(score, queries.atoms, base)
    index, arguments = base.decode(queries.atoms)  # a group is a predicate and last constant, or a unary predicate
    arity = np.array([predicate.arity for predicate in base.language.predicates], np.int64)[index]
    last = np.where(arity > 1, arguments[np.arange(len(queries)), arity - 1], -1)
    groups = index * (len(base.language.constants) + 1) + last + 1
    per_predicate: dict[str, Numbers] = {}
    rows = np.full(len(queries), -1, np.int64)  # of functional predicates
    for i, (start, end) in enumerate(pairwise(bounds.tolist())):
        if start < end:
            part, predicate = slice(start, end), base.language.predicates[i]
            if predicate.functional:
                rows[part] = QueryPattern.from_base(base, i, predicate.arity - 1).located(queries.atoms[part])[0]
            counts = {"queries": end - start, "true": int(queries.truth[part].sum())}
            own = scores[part], queries.truth[part], groups[part], rows[part] if predicate.functional else None
            per_predicate[predicate.name] = counts | classification_metrics(*own)
    aucs = roc_auc_by_group(scores, queries.truth, groups)
    protocol: dict[str, str | int] = {
        "task": "classification",
        "ap": f"pooled over all queries; logits are equal within {TOLERANCE:g} of the largest, or of 1",
        "roc_auc_macro": "mean over groups of one predicate and last constant (a unary predicate is one group)",
        "accuracy": f"an atom is held true where its {'logit' if probabilities is None else 'probability'} is above"
        f" {'0' if probabilities is None else 'one half'}",
        "queries": len(queries),
        "true": int(queries.truth.sum()),
        "groups": len(aucs),
        "groups_of_one_class_left_out": int(np.isnan(aucs).sum()),
    }
    is_functional = bool((rows >= 0).any())
    if is_functional:
        protocol["pair_accuracy"] = protocol.pop("accuracy")
        judged = "over the first constants of functional predicates with one true query and false ones"
        protocol["class_accuracy"] = f"how often the most probable value is the true one, {judged}; ties share"
        protocol["macro_f1"] = "the mean F1 over values, of the same queries"
    pooled = classification_metrics(scores, queries.truth, groups, rows if is_functional else None)
    before = reliability(expit(scores), queries.truth)
    after = None if probabilities is None else reliability(probabilities(queries.atoms, scores), queries.truth)
    if after is not None:
        pooled = {**pooled, "pair_accuracy" if is_functional else "accuracy": after.accuracy}
    asked = ClassifiedQueries(queries.atoms, queries.truth, scores)
    return Report(split, pooled, per_predicate, protocol, calibration=before, calibrated=after, by_query=asked)


def predicate_bounds(base: HerbrandBase, codes: Codes) -> np.ndarray:
    """Where each predicate's atoms begin among the codes (ascending), and the end; int64 (predicates + 1,)."""
    if len(codes) and not 0 <= codes[0] <= codes[-1] < base.size:
        what = f"the queries hold a code outside the Herbrand base of {base.size:,} atoms"
        raise DataError(what, hint="take queries and base from one problem")
    return np.searchsorted(codes, base.offsets).astype(np.int64)


def scored(score: Score, codes: Codes, base: HerbrandBase) -> Float64[np.ndarray, " atoms"]:
    """The logits of atoms; what is no logit is refused."""
    scores = np.asarray(score(codes), np.float64)
    if scores.shape != codes.shape:
        raise DataError(f"the model gave scores of shape {scores.shape} for {len(codes):,} atoms")
    wrong = np.isnan(scores)
    if wrong.any():
        refuse_nan(base, codes[wrong], len(codes))
    return scores


def refuse_nan(base: HerbrandBase, wrong: Codes, among: int) -> NoReturn:
    """Say which atoms, of how many, have NaN for a logit."""
    what = f"the score of {base.names(wrong[:1])[0]} is NaN, and {len(wrong) - 1:,} others of {among:,}"
    raise DataError(what, hint="the model is broken: look for the epoch where its loss stopped being a number")
