"""Filtered ranking among the candidates of each query."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int64

from r2n.data.herbrand import Codes, HerbrandBase, QueryPattern, union
from r2n.data.knowledge_base import Evidence
from r2n.data.problem import TRAIN, Problem
from r2n.errors import DataError
from r2n.evaluation.by_query import RankedQueries
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.metrics import TOLERANCE, Ranks, drawn, intervals, ranking_metrics, ranks
from r2n.evaluation.report import NOTHING_TO_RANK, Numbers, Report, Score, predicate_bounds, refuse_nan, scored
from r2n.progress import Progress, no_progress

Part = TypeVar("Part")


@dataclass(frozen=True, eq=False)
class Filter:
    """True atoms that are no candidates of a query, and the splits they are of; the queries are always added.

    Never for negative samples in training: the network would learn what is held out.
    """

    facts: Codes
    splits: tuple[str, ...]

    @classmethod
    def of(cls, problem: Problem, splits: Sequence[str] | None = None) -> "Filter":
        """The true atoms of some splits of a problem: `train`, and the names of its queries; all by default."""
        every = {TRAIN: problem.train, **problem.queries}
        chosen = tuple(every) if splits is None else tuple(splits)
        return cls(true_atoms(every[split] for split in chosen), chosen)

    @classmethod
    def by(cls, evidence: Evidence | None) -> "Filter":
        """The true atoms of evidence, if there is any."""
        if evidence is None:
            return cls(np.zeros(0, np.int64), ())
        return cls(true_atoms([evidence]), ("evidence",))

    def words(self, split: str) -> str:
        """What a report on the queries of a split says."""
        splits = tuple(dict.fromkeys((*self.splits, split)))
        named = " and ".join(part for part in (", ".join(splits[:-1]), splits[-1]) if part)
        return f"other true atoms of {named} are no candidates"


def true_atoms(parts: Iterable[Evidence]) -> Codes:
    """The true atoms of several parts of evidence, sorted and distinct."""
    return union(*(part.atoms[part.truth] for part in parts))


@dataclass(frozen=True, slots=True)
class Share:
    """The share of process `number` of `count` in some work; `exchange` sends its parts, or adds those of others."""

    number: int = 0
    count: int = 1
    exchange: Callable[[list[Any]], list[Any]] = list

    def takes(self, number: int) -> bool:
        """Whether a part is done here."""
        return number % self.count == self.number

    def together(self, own: Sequence[tuple[int, Part]]) -> list[Part]:
        """The parts done here, and, in process 0, those of all, by their numbers."""
        return [part for _, part in sorted(self.exchange(list(own)), key=lambda pair: pair[0])]


ALONE = Share()

MEMORY = 2**28  # bytes
SHARE_OF_ROWS = 8  # rows at once take at most the eighth part of what may be taken
BYTES_BY_CODE = 2**8  # of a candidate whose code is written out: 2**20 at once by default
BYTES_IN_A_ROW = 2**5  # of one that is only scored and compared

Given = Int64[np.ndarray, "rows positions"]
"""The constants (ids) of rows; what stands at the open position is not read."""

ForbiddenCandidates = Callable[[int, int, Given], Bool[np.ndarray, "rows candidates"]]
"""(predicate by index, open position, constants given) -> which candidates cannot be, in the order of their domain."""


@runtime_checkable
class ScoreByPosition(Protocol):
    """Scores that depend on which position of an atom is asked for."""

    def at_position(self, position: int) -> Score:
        """The scores of atoms as answers to what stands at this position."""
        ...


@runtime_checkable
class ScoreByRow(Protocol):
    """Scores of all candidates of rows at once."""

    def rows(self, predicate: int, position: int, given: Given) -> Float[np.ndarray, "rows candidates"]:
        """The scores of a predicate's atoms with each constant of the open position's domain, in its order.

        The array is the caller's, to write in.
        """
        ...


def row_memory(allowed: int | None) -> int:
    """The bytes for rows that are scored at once, if `allowed` bytes may be taken in all."""
    return MEMORY if allowed is None else max(1, min(MEMORY, allowed // SHARE_OF_ROWS))


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationOptions:
    """How the queries of a split are evaluated. A classification has `calibration` alone.

    `sides` are the positions to rank (all), from 0, negative ones from the end. `sample` queries are drawn by `seed`,
    by default all. `forbidden` candidates rank below all others, equal among themselves, a true one too. As many rows
    are scored at once as `memory` (bytes) holds; `share` says which of these parts are scored in this process.
    """

    sides: tuple[int, ...] | None = None
    sample: int | None = None
    seed: int = 0
    forbidden: ForbiddenCandidates | None = None
    calibration: Calibrated | None = None
    memory: int = MEMORY
    share: Share = ALONE


DEFAULT_OPTIONS = EvaluationOptions()


def rank(
    score: Score,
    queries: Evidence,
    base: HerbrandBase,
    filtered: Filter,
    options: EvaluationOptions = DEFAULT_OPTIONS,
    *,
    split: str = "queries",
    progress: Progress = no_progress,
) -> Report:
    """Rank each true query among the atoms with another constant in one position: MRR and Hits@k, all sides pooled.

    Candidates are all constants of the position's domain, except those that make another atom that is `filtered`, or
    another true query. Queries with a single candidate are excluded: their rank is always 1.
    """
    every, sample = queries.atoms[queries.truth], options.sample
    predicate_bounds(base, every)
    asked = every if sample is None else every[drawn(len(every), sample, options.seed)]
    bounds = predicate_bounds(base, asked)
    counts = np.diff(bounds)
    sides = [side for i in np.flatnonzero(counts).tolist() for side in _sides(base, i, options.sides)]
    open_sides = [side for side in sides if side.candidates > 1]
    parts = _own_parts(score, open_sides, asked, bounds, union(filtered.facts, every), options, progress)
    found = options.share.together(list(parts))
    protocol: dict[str, str | int] = {
        "task": "ranking",
        "ties": "realistic: the mean of the best and the worst rank among equal logits, those that differ by at most"
        f" {TOLERANCE:g} of the largest in the row, or of 1",
        "candidates": "all constants of the position's domain",
        "filter": filtered.words(split),
        "sides": "all positions" if options.sides is None else f"positions {', '.join(map(str, options.sides))}",
        "queries": len(asked),
        "ranks": sum(len(part.ranks) for part in found),
        "ranks_left_out_with_no_other_candidate": sum(part.alone for part in found),
        "ranks_left_out_for_a_domain_of_one": sum(int(counts[s.predicate]) for s in sides if s.candidates <= 1),
    }
    if not protocol["ranks"]:
        nothing = "no query has a candidate besides its answer" if len(asked) else "there are no queries"
        protocol[NOTHING_TO_RANK] = f"{nothing}: there is nothing to rank"
    if options.forbidden is not None:
        protocol["forbidden"] = "candidates that a constraint forbids stand below all others, the true one too"
    report = _report(base, split, asked, found, protocol)
    if sample is None:
        return report
    words = f"{len(asked):,} of {len(every):,} queries, drawn with seed {options.seed}"
    pooled = Ranks.pooled([part.ranks for part in found])
    sure = intervals(pooled, _concatenated(part.queries for part in found), len(asked), len(every))
    return replace(report, protocol={**protocol, "sample": words}, intervals=sure)


def _sides(base: HerbrandBase, predicate: int, wanted: tuple[int, ...] | None) -> list[QueryPattern]:
    shape, most = base.shapes[predicate], max(map(len, base.shapes))
    unknown = [side for side in wanted or () if not -most <= side < most]
    if unknown:
        raise DataError(
            f"no predicate has a position {unknown[0]}",
            hint=f"sides are positions counted from 0, or from the end (-1); the longest predicate has {most}",
        )
    asked = [i for i in range(len(shape)) if wanted is None or i in wanted or i - len(shape) in wanted]
    return [QueryPattern.of(base, predicate, i) for i in asked]


def row_scores(score: Score, side: QueryPattern, rows: Codes) -> Float[np.ndarray, "rows candidates"]:
    """The scores of all candidates of rows, the array is the caller's.

    A row is scored in one call, the true candidate with the others: apart, equals might differ in a bit.
    """
    if not isinstance(score, ScoreByRow):
        at_position = score.at_position(side.position) if isinstance(score, ScoreByPosition) else score
        parts = [
            scored(at_position, codes, side.base) for _, codes in side.all_codes(rows, len(rows) * side.candidates)
        ]
        return np.concatenate(parts).reshape(len(rows), side.candidates)
    found = score.rows(side.predicate, side.position, side.given(rows))
    if found.shape != (len(rows), side.candidates):
        raise DataError(
            f"the model gave scores of shape {found.shape} for {len(rows):,} rows of {side.candidates:,} candidates"
        )
    if found.size and np.isnan(found.min()):  # the smallest of any that has a NaN is NaN
        row, place = np.nonzero(np.isnan(found))
        refuse_nan(side.base, rows[row] + side.stride * place, found.size)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Ranked:
    """The ranks of some queries, given by their numbers; how many more have none: no other candidate was left."""

    predicate: int
    position: int
    queries: Int64[np.ndarray, " _"]
    ranks: Ranks
    alone: int


def _own_parts(
    score: Score,
    sides: list[QueryPattern],
    asked: np.ndarray,
    bounds: np.ndarray,
    known: np.ndarray,
    options: EvaluationOptions,
    progress: Progress,
) -> Iterator[tuple[int, _Ranked]]:
    """The parts that are done in this process, each with its number among all."""
    share, numbers, done = options.share, count(), 0
    total = sum(int(bounds[side.predicate + 1] - bounds[side.predicate]) for side in sides)
    for side in sides:
        first, last = bounds[side.predicate : side.predicate + 2].tolist()
        for ranked in _parts_of_pattern(score, side, asked[first:last], known, options):
            number = next(numbers)
            if share.takes(number):
                part = ranked()
                done = min(total, done + share.count * (len(part.ranks) + part.alone))
                progress("evaluate", done, total)
                yield number, replace(part, queries=first + part.queries)


def _parts_of_pattern(
    score: Score, side: QueryPattern, asked: np.ndarray, known: np.ndarray, options: EvaluationOptions
) -> Iterator[Callable[[], _Ranked]]:
    """The ranks of a predicate's queries at one position, to be computed as many rows at once as memory holds."""
    rows, places = side.located(asked)
    order = np.argsort(rows, kind="stable")  # queries that share a row stand together, and it is scored once
    distinct, starts = np.unique(rows[order], return_index=True)
    starts = np.append(starts, len(order))
    known = known[slice(*np.searchsorted(known, side.bounds))]
    known_rows, known_places = side.located(known)
    by_row = np.argsort(known_rows, kind="stable")
    known_rows, known_places = known_rows[by_row], known_places[by_row]
    is_by_row: bool = isinstance(score, ScoreByRow)
    size = max(1, options.memory // ((BYTES_IN_A_ROW if is_by_row else BYTES_BY_CODE) * side.candidates))

    def ranked(start: int) -> _Ranked:
        some = distinct[start : start + size]
        queries = order[starts[start] : starts[min(start + size, len(distinct))]]
        row = np.searchsorted(some, rows[queries])
        near = slice(np.searchsorted(known_rows, some[0]), np.searchsorted(known_rows, some[-1], side="right"))
        known_row = np.searchsorted(some, known_rows[near])
        is_asked = some[known_row] == known_rows[near]
        excluded = known_row[is_asked], known_places[near][is_asked]  # the true ones are known: they too
        left = side.candidates - np.bincount(excluded[0], minlength=len(some))
        forbidden = options.forbidden and options.forbidden(side.predicate, side.position, side.given(some))
        scores = row_scores(score, side, some)
        found = ranks(scores, row, places[queries], excluded=excluded, forbidden=forbidden)
        kept = left[row] > 0
        own = Ranks(found.optimistic[kept], found.pessimistic[kept])
        return _Ranked(side.predicate, side.position, queries[kept], own, int((~kept).sum()))

    return (partial(ranked, start) for start in range(0, len(distinct), size))


def _report(
    base: HerbrandBase, split: str, asked: np.ndarray, found: list[_Ranked], protocol: Mapping[str, str | int]
) -> Report:
    by_predicate: dict[int, list[Ranks]] = {}
    for part in (part for part in found if len(part.ranks)):
        by_predicate.setdefault(part.predicate, []).append(part.ranks)
    pooled = {base.language.predicates[i].name: Ranks.pooled(parts) for i, parts in by_predicate.items()}
    everything = Ranks.pooled(list(pooled.values()))
    per_predicate: dict[str, Numbers] = {
        name: {"ranks": len(part)} | ranking_metrics(part.realistic) for name, part in pooled.items()
    }
    ties = {kind: ranking_metrics(getattr(everything, kind)) for kind in ("optimistic", "pessimistic")}
    positions = _concatenated(np.full(len(part.queries), part.position) for part in found)
    atoms = asked[_concatenated(part.queries for part in found)]
    by_query = RankedQueries.of(atoms, positions, Ranks.pooled([part.ranks for part in found]))
    return Report(split, ranking_metrics(everything.realistic), per_predicate, protocol, ties, by_query=by_query)


def _concatenated(parts: Iterable[np.ndarray]) -> Int64[np.ndarray, " _"]:
    return np.concatenate([np.zeros(0, np.int64), *parts])
