"""Predictions -> numbers: what is asked of a model, and the report that says how it was asked.

Two protocols. `classify` takes the queries as they are, true and false. `rank` takes the true ones, and asks for each
position which constant belongs there, among all constants of its domain: filtered, on logits, ties in the middle.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import isnan, prod
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.special import expit

from r2n.errors import DataError
from r2n.evaluation.filters import Filter
from r2n.evaluation.metrics import (
    Calibration,
    Ranks,
    average_precision,
    calibration,
    ranking_metrics,
    ranks,
    roc_auc_by_group,
    roc_auc_macro,
)
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import Evidence
from r2n.progress import Progress, no_progress

ATOMS_AT_ONCE = 2**20

Score = Callable[[Codes], Float64[np.ndarray, " atoms"]]
"""Codes of atoms -> their logits. Called with up to `ATOMS_AT_ONCE` atoms, or one row of candidates if that is more."""


@runtime_checkable
class ScoreByPosition(Protocol):
    """Scores that depend on which position of an atom is asked for."""

    def asked_at(self, position: int) -> Score:
        """The scores of atoms as answers to what stands at this position."""
        ...


Numbers = Mapping[str, int | float]


@dataclass(frozen=True, eq=False)
class Report:
    """The metrics of one split, pooled and per predicate, and the protocol: how they came about.

    `ties` holds what the metrics would be with equal scores placed at best ("optimistic") and at worst
    ("pessimistic") for the model. A metric of nothing is NaN here, and null in JSON.
    """

    split: str
    metrics: Mapping[str, float]
    per_predicate: Mapping[str, Numbers]
    protocol: Mapping[str, str | int]
    ties: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    calibration: Calibration | None = None

    def to_dict(self) -> dict[str, Any]:
        """The report as one JSON document."""
        return _without_nan(asdict(self))


def classify(score: Score, queries: Evidence, base: HerbrandBase, *, split: str = "queries") -> Report:
    """Tell true queries from false ones: pooled average precision, macro ROC-AUC, accuracy, calibration."""
    bounds = _predicate_bounds(base, queries.atoms)
    scores = _scored(score, queries.atoms, base)
    groups = _groups(base, queries.atoms)
    per_predicate: dict[str, Numbers] = {}
    for predicate, start, end in zip(base.language.predicates, bounds[:-1], bounds[1:], strict=True):
        if start < end:
            part = slice(start, end)
            counts = {"queries": int(end - start), "true": int(queries.truth[part].sum())}
            per_predicate[predicate.name] = counts | _classified(scores[part], queries.truth[part], groups[part])
    aucs = roc_auc_by_group(scores, queries.truth, groups)
    protocol: dict[str, str | int] = {
        "task": "classification",
        "ap": "pooled over all queries",
        "roc_auc_macro": "mean over groups of one predicate and last constant (a unary predicate is one group)",
        "accuracy": "an atom is held true where its logit is above 0",
        "queries": len(queries),
        "true": int(queries.truth.sum()),
        "groups": len(aucs),
        "groups_of_one_class_left_out": int(np.isnan(aucs).sum()),
    }
    pooled = _classified(scores, queries.truth, groups)
    return Report(split, pooled, per_predicate, protocol, calibration=calibration(expit(scores), queries.truth))


def rank(
    score: Score,
    queries: Evidence,
    base: HerbrandBase,
    filtered: Filter,
    *,
    split: str = "queries",
    sides: tuple[int, ...] | None = None,
    atoms_at_once: int = ATOMS_AT_ONCE,
    progress: Progress = no_progress,
) -> Report:
    """Rank each true query among the atoms with another constant in one position: MRR and Hits@k, all sides pooled.

    Candidates are all constants of the position's domain, except those that make another atom that is `filtered`, or
    another true query. `sides`: the positions, from 0, to ask (all).
    """
    asked = queries.atoms[queries.truth]
    bounds = _predicate_bounds(base, asked)
    known = np.union1d(filtered.facts, asked)
    all_sides = [side for i in np.flatnonzero(np.diff(bounds)).tolist() for side in _sides(base, i, sides)]
    open_sides = [side for side in all_sides if side.candidates > 1]
    total, done, trivial = sum(_count(bounds, side) for side in open_sides), 0, 0
    found: dict[int, list[Ranks]] = {}
    for side in open_sides:
        of_side = asked[bounds[side.predicate] : bounds[side.predicate + 1]]
        asked_for = score.asked_at(side.position) if isinstance(score, ScoreByPosition) else score
        for part, alone in _ranks_of_side(asked_for, base, side, of_side, known, atoms_at_once):
            found.setdefault(side.predicate, []).append(part)
            done, trivial = done + len(part), trivial + alone
            progress("evaluate", done, total)
    pooled = {base.language.predicates[i].name: Ranks.pooled(parts) for i, parts in found.items()}
    protocol: dict[str, str | int] = {
        "filter": filtered.words(split),
        "sides": "all positions" if sides is None else f"positions {', '.join(map(str, sides))}",
        "queries": len(asked),
        "ranks": total,
        "ranks_with_no_other_candidate": trivial,
        "ranks_left_out_for_a_domain_of_one": sum(_count(bounds, side) for side in all_sides) - total,
    }
    return _ranking_report(split, pooled, protocol)


def _ranking_report(split: str, pooled: Mapping[str, Ranks], asked: Mapping[str, str | int]) -> Report:
    everything = Ranks.pooled(list(pooled.values()))
    per_predicate: dict[str, Numbers] = {
        name: {"ranks": len(part)} | ranking_metrics(part.realistic) for name, part in pooled.items()
    }
    protocol: dict[str, str | int] = {
        "task": "ranking",
        "ties": "realistic: the mean of the best and the worst rank among equal logits",
        "candidates": "all constants of the position's domain",
        **asked,
    }
    ties = {kind: ranking_metrics(getattr(everything, kind)) for kind in ("optimistic", "pessimistic")}
    return Report(split, ranking_metrics(everything.realistic), per_predicate, protocol, ties)


@dataclass(frozen=True, slots=True)
class _Side:
    """One position of one predicate: its constant is asked for, the others are given.

    The candidates' codes lie `stride` apart; a row is named by the code of its first candidate.
    """

    predicate: int
    position: int
    offset: int
    stride: int
    candidates: int

    def located(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The row of each code, and its place there."""
        place = (codes - self.offset) // self.stride % self.candidates
        return codes - place * self.stride, place


def _sides(base: HerbrandBase, predicate: int, wanted: tuple[int, ...] | None) -> list[_Side]:
    shape, most = base.shapes[predicate], max(map(len, base.shapes))
    unknown = [side for side in wanted or () if not 0 <= side < most]
    if unknown:
        raise DataError(
            f"no predicate has a position {unknown[0]}",
            hint=f"sides are positions counted from 0; the longest predicate has {most}",
        )
    asked = [i for i in range(len(shape)) if wanted is None or i in wanted]
    return [_Side(predicate, i, int(base.offsets[predicate]), prod(shape[i + 1 :]), shape[i]) for i in asked]


def _count(bounds: np.ndarray, side: _Side) -> int:
    return int(bounds[side.predicate + 1] - bounds[side.predicate])


def _ranks_of_side(
    score: Score, base: HerbrandBase, side: _Side, asked: np.ndarray, known: np.ndarray, atoms_at_once: int
) -> Iterator[tuple[Ranks, int]]:
    """Ranks, batch by batch, and how many of them had no other candidate left.

    A row is scored in one call, with its true candidate in it: scored apart, equal atoms might differ in the last bit.
    """
    rows, places = side.located(asked)
    order = np.argsort(rows, kind="stable")  # queries that share a row stand together, and it is scored once
    known = known[slice(*np.searchsorted(known, base.offsets[side.predicate : side.predicate + 2]))]
    known_rows, known_places = side.located(known)
    by_row = np.argsort(known_rows, kind="stable")
    known_rows, known_places = known_rows[by_row], known_places[by_row]
    size = max(1, atoms_at_once // side.candidates)
    for start in range(0, len(order), size):
        batch = order[start : start + size]
        distinct, row = np.unique(rows[batch], return_inverse=True)
        codes = (distinct[:, None] + side.stride * np.arange(side.candidates)).ravel()
        scores = _scored(score, codes, base).reshape(len(distinct), side.candidates)
        others = _allowed(distinct, side.candidates, known_rows, known_places)[row]  # the true ones are known: not they
        yield ranks(scores[row], places[batch], others), int((others.sum(axis=1) == 0).sum())


def _allowed(
    rows: Int64[np.ndarray, " batch"], candidates: int, known_rows: np.ndarray, known_places: np.ndarray
) -> Bool[np.ndarray, "batch candidates"]:
    """Where a row (ascending) holds an atom that is not known; known atoms by row (ascending) and place."""
    near = slice(np.searchsorted(known_rows, rows[0]), np.searchsorted(known_rows, rows[-1], side="right"))
    row = np.searchsorted(rows, known_rows[near])
    is_asked = rows[row] == known_rows[near]
    allowed = np.ones((len(rows), candidates), bool)
    allowed[row[is_asked], known_places[near][is_asked]] = False
    return allowed


def _classified(scores: np.ndarray, truth: np.ndarray, groups: np.ndarray) -> dict[str, float]:
    believed = calibration(expit(scores), truth)
    return {
        "ap": average_precision(scores, truth),
        "roc_auc_macro": roc_auc_macro(scores, truth, groups),
        "accuracy": float(np.mean((scores > 0) == truth)) if len(truth) else float("nan"),
        "brier": believed.brier,
        "ece": believed.ece,
    }


def _groups(base: HerbrandBase, codes: Codes) -> Codes:
    """A number for each atom's predicate and last constant; for the predicate alone where it is unary."""
    index, arguments = base.decode(codes)
    arity = np.array([predicate.arity for predicate in base.language.predicates], np.int64)[index]
    last = np.where(arity > 1, arguments[np.arange(len(codes)), arity - 1], -1)
    return index * (len(base.language.constants) + 1) + last + 1


def _predicate_bounds(base: HerbrandBase, codes: Codes) -> np.ndarray:
    """Where each predicate's atoms begin among the codes (ascending), and the end; int64 (predicates + 1,)."""
    if len(codes) and not 0 <= codes[0] <= codes[-1] < base.size:
        raise DataError(
            f"the queries hold a code outside the Herbrand base of {base.size:,} atoms",
            hint="take queries and base from one problem",
        )
    return np.searchsorted(codes, base.offsets).astype(np.int64)


def _scored(score: Score, codes: Codes, base: HerbrandBase) -> Float64[np.ndarray, " atoms"]:
    scores = np.asarray(score(codes), np.float64)
    if scores.shape != codes.shape:
        raise DataError(f"the model gave scores of shape {scores.shape} for {len(codes):,} atoms")
    wrong = np.flatnonzero(np.isnan(scores))
    if len(wrong):
        raise DataError(
            f"the score of {base.names(codes[wrong[:1]])[0]} is NaN, and {len(wrong) - 1:,} others of {len(codes):,}",
            hint="the model is broken: look for the epoch where its loss stopped being a number",
        )
    return scores


def _without_nan(value: Any) -> Any:
    """The same with None for NaN, and lists for tuples, as JSON wants it."""
    if isinstance(value, Mapping):
        return {key: _without_nan(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and isnan(value) else value
