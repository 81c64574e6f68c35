"""Filtered ranking among the candidates of each query."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress, count
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64
from scipy.special import expit, logsumexp

from r2n.data.herbrand import Codes, HerbrandBase, QueryPattern, are_among, union
from r2n.data.knowledge_base import Evidence
from r2n.data.problem import TRAIN, Problem
from r2n.errors import DataError
from r2n.evaluation.by_query import RankedQueries
from r2n.evaluation.calibrate import COEFFICIENTS, Calibrated, RowFeatures
from r2n.evaluation.metrics import TOLERANCE, Ranks, drawn, intervals, ranking_metrics, ranks
from r2n.evaluation.report import ASKED, NOTHING_TO_RANK, Numbers, Report, Score, predicate_bounds, refuse_nan, scored
from r2n.progress import Progress, no_progress

Part = TypeVar("Part")
FARTHEST = 50.0  # in logits: what is farther from its rivals is as sure


@dataclass(frozen=True, eq=False)
class Filter:
    """True atoms that are no candidates of a query, and their splits; never for negatives in training."""

    facts: Codes
    splits: tuple[str, ...]

    @classmethod
    def from_problem(cls, problem: Problem, splits: Sequence[str] | None = None) -> "Filter":
        """The true atoms of some splits of a problem: `train`, and the names of its queries; all by default."""
        every = {TRAIN: problem.train, **problem.queries}
        chosen = tuple(every) if splits is None else tuple(splits)
        return cls(true_atoms(every[split] for split in chosen), chosen)

    def words(self, split: str) -> str:
        """What a report on the queries of a split says."""
        splits = tuple(dict.fromkeys((*self.splits, split)))
        named = " and ".join(part for part in (", ".join(splits[:-1]), splits[-1]) if part)
        return f"other true atoms of {named} are no candidates"


def true_atoms(parts: Iterable[Evidence]) -> Codes:
    """The true atoms of several parts of evidence, sorted and distinct."""
    return union(*(part.facts for part in parts))


@dataclass(frozen=True, slots=True)
class Shard:
    """What process `number` of `count` does of some work; `exchange` sends its parts, or adds those of others."""

    number: int = 0
    count: int = 1
    exchange: Callable[[list[Any]], list[Any]] = list

    def takes(self, number: int) -> bool:
        """Whether a part is done here."""
        return number % self.count == self.number

    def together(self, own: Sequence[tuple[int, Part]]) -> list[Part]:
        """The parts done here, and, in process 0, those of all, by their numbers."""
        return [part for _, part in sorted(self.exchange(list(own)), key=lambda pair: pair[0])]


ALONE = Shard()

MEMORY = 2**28  # bytes
SHARE_OF_ROWS = 8  # rows at once take at most the eighth part of what may be taken
BYTES_BY_CODE = 2**8  # of a candidate whose code is written out: 2**20 at once by default
BYTES_IN_A_ROW = 2**5  # of one that is only scored and compared

Given = Int64[np.ndarray, "rows positions"]
"""The constants (ids) of rows; what stands at the open position is not read."""

ForbiddenCandidates = Callable[[int, int, Given], Bool[np.ndarray, "rows candidates"]]
"""(predicate by index, open position, constants given) -> which candidates cannot be, in the order of their domain."""


@runtime_checkable
class ScoreByRow(Protocol):
    """Scores of all candidates of rows at once."""

    def rows(self, predicate: int, position: int, given: Given) -> Float[np.ndarray, "rows candidates"]:
        """The scores with each constant of the open position's domain, in its order; the array is the caller's."""
        ...


def row_memory(allowed: int | None) -> int:
    """The bytes for rows that are scored at once, if `allowed` bytes may be taken in all."""
    return MEMORY if allowed is None else max(1, min(MEMORY, allowed // SHARE_OF_ROWS))


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationOptions:
    """How the queries of a split are evaluated. A classification has `calibration` and `known` alone.

    `known` are the atoms that no other has for a rival in its row, where the calibration reads rows.
    `positions` are those to rank (all), from 0, negative ones from the end. The metrics are over those in `ask`, by the
    name of the predicate (of others: all); those by position are over all that are ranked. `sample` queries are drawn
    by `seed`, by default all. `forbidden` candidates rank below all others, equal among themselves, a true one too. As
    many rows are scored at once as `memory` (bytes) holds; `shard` says which of them are scored in this process.
    """

    positions: tuple[int, ...] | None = None
    ask: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sample: int | None = None
    seed: int = 0
    forbidden: ForbiddenCandidates | None = None
    calibration: Calibrated | None = None
    known: Codes = field(default_factory=lambda: np.zeros(0, np.int64))
    memory: int = MEMORY
    shard: Shard = ALONE


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
    """Rank each true query among the atoms with another constant in one position: MRR and Hits@k, all patterns pooled.

    Candidates are all constants of the position's domain, except those that make another atom that is `filtered`, or
    another true query. Queries with a single candidate are excluded: their rank is always 1.
    """
    return rank_each([score], queries, base, filtered, options, split=split, progress=progress)[0]


def rank_each(
    scores: Sequence[Score],
    queries: Evidence,
    base: HerbrandBase,
    filtered: Filter,
    options: EvaluationOptions = DEFAULT_OPTIONS,
    *,
    split: str = "queries",
    progress: Progress = no_progress,
) -> list[Report]:
    """The same for each of several scores, which see the same rows one after the other, and may share their work."""
    every, sample = queries.facts, options.sample
    predicate_bounds(base, every)
    asked = every if sample is None else every[drawn(len(every), sample, options.seed)]
    bounds = predicate_bounds(base, asked)
    counts = np.diff(bounds)
    patterns = [pattern for i in np.flatnonzero(counts).tolist() for pattern in _patterns(base, i, options.positions)]
    open_patterns = [pattern for pattern in patterns if pattern.candidates > 1]
    shard, known, numbers = options.shard, union(filtered.facts, every), count()
    parts, done = list[tuple[int, list[_Ranked]]](), 0
    total = sum(int(counts[p.predicate]) for p in open_patterns)
    for pattern in open_patterns:
        first, last = bounds[pattern.predicate : pattern.predicate + 2].tolist()
        for ranked in _parts_of_pattern(scores, pattern, asked[first:last], known, options):
            if shard.takes(number := next(numbers)):
                each = [replace(part, queries=first + part.queries) for part in ranked()]
                done = min(total, done + shard.count * (len(each[0].ranks) + each[0].alone))
                progress("evaluate", done, total)
                parts.append((number, each))
    found = shard.together(parts)
    report = partial(_report, asked=asked, every=every, base=base, filtered=filtered, options=options, split=split)
    too_small = sum(int(counts[p.predicate]) for p in patterns if p.candidates <= 1)
    return [report([each[i] for each in found], too_small=too_small) for i in range(len(scores))]


def _report(
    found: list["_Ranked"],
    *,
    asked: Codes,
    every: Codes,
    base: HerbrandBase,
    filtered: Filter,
    options: EvaluationOptions,
    split: str,
    too_small: int,
) -> Report:
    """The report on the ranks of all parts; `too_small`: ranks left out for a domain of one."""
    sample = options.sample
    protocol: dict[str, str | int] = {
        "task": "ranking",
        "ties": "realistic: the mean of the best and the worst rank among equal logits, those that differ by at most"
        f" {TOLERANCE:g} of the largest in the row, or of 1",
        "candidates": "all constants of the position's domain",
        "filter": filtered.words(split),
        "sides": "all positions" if (some := options.positions) is None else f"positions {', '.join(map(str, some))}",
        "queries": len(asked),
        "ranks": sum(len(part.ranks) for part in found),
        "ranks_left_out_with_no_other_candidate": sum(part.alone for part in found),
        "ranks_left_out_for_a_domain_of_one": too_small,
    }
    if not protocol["ranks"]:
        nothing = "no query has a candidate besides its answer" if len(asked) else "there are no queries"
        protocol[NOTHING_TO_RANK] = f"{nothing}: there is nothing to rank"
    if options.forbidden is not None:
        protocol["forbidden"] = "candidates that a constraint forbids stand below all others, the true one too"
    by_position: dict[str, Numbers] = {}
    for position in sorted({part.position for part in found}):
        own = Ranks.pooled([part.ranks for part in found if part.position == position]).realistic
        by_position[_position_name(position, found, base)] = {"ranks": len(own)} | ranking_metrics(own)
    names = base.language.predicates
    is_asked = [part.position in options.ask.get(names[part.predicate].name, (part.position,)) for part in found]
    if options.ask:
        some = dict.fromkeys(_position_name(part.position, found, base) for part in compress(found, is_asked))
        protocol[ASKED] = f"the metrics are over {' and '.join(some) or 'no position'} alone: queries.ask"
    found = list(compress(found, is_asked))
    pooled, numbers = Ranks.pooled([part.ranks for part in found]), _concatenated(part.queries for part in found)
    predicate = _concatenated(np.full(len(part.queries), part.predicate) for part in found)
    position = _concatenated(np.full(len(part.queries), part.position) for part in found)
    per_predicate: dict[str, Numbers] = {}
    for i in np.unique(predicate).tolist():
        own = pooled.realistic[predicate == i]
        per_predicate[names[i].name] = {"ranks": len(own)} | ranking_metrics(own)
    sure = {}
    if sample is not None:
        protocol["sample"] = f"{len(asked):,} of {len(every):,} queries, drawn with seed {options.seed}"
        sure = intervals(pooled, numbers, len(asked), len(every))
    ties = {kind: ranking_metrics(getattr(pooled, kind)) for kind in ("optimistic", "pessimistic")}
    by_query, metrics = RankedQueries.from_ranks(asked[numbers], position, pooled), ranking_metrics(pooled.realistic)
    by = {"by_query": by_query, "by_position": by_position}
    return Report(split, metrics, per_predicate, protocol, ties, intervals=sure, **by)


def _patterns(base: HerbrandBase, predicate: int, wanted: tuple[int, ...] | None) -> list[QueryPattern]:
    shape, most = base.shapes[predicate], max(map(len, base.shapes))
    unknown = [position for position in wanted or () if not -most <= position < most]
    if unknown:
        hint = f"positions are counted from 0, or from the end (-1); the longest predicate has {most}"
        raise DataError(f"no predicate has a position {unknown[0]}", hint=hint)
    asked = [i for i in range(len(shape)) if wanted is None or i in wanted or i - len(shape) in wanted]
    return [QueryPattern.from_base(base, predicate, i) for i in asked]


def row_scores(score: Score, pattern: QueryPattern, rows: Codes) -> Float[np.ndarray, "rows candidates"]:
    """The scores of all candidates of rows, each row in one call: apart, equals might differ in a bit."""
    if not isinstance(score, ScoreByRow):
        codes = pattern.all_codes(rows, len(rows) * pattern.candidates)
        return np.concatenate([scored(score, part, pattern.base) for _, part in codes]).reshape(-1, pattern.candidates)
    found = score.rows(pattern.predicate, pattern.position, pattern.given(rows))
    if found.shape != (len(rows), pattern.candidates):
        shape = f"{len(rows):,} rows of {pattern.candidates:,} candidates"
        raise DataError(f"the model gave scores of shape {found.shape} for {shape}")
    if found.size and np.isnan(found.min()):  # the smallest of any that has a NaN is NaN
        row, candidate = np.nonzero(np.isnan(found))
        refuse_nan(pattern.base, rows[row] + pattern.stride * candidate, found.size)
    return found


def probabilities(
    calibration: Calibrated | None, score: Score, codes: Codes, logits: np.ndarray, *, base: HerbrandBase, known: Codes
) -> Float64[np.ndarray, " atoms"]:
    """That atoms are true: by the calibration, which may read their rows, if there is one."""
    if calibration is None:
        return expit(logits)
    return calibration(logits, row_features(score, codes, logits, base, known) if calibration.by_rows else None)


def row_features(
    score: Score, codes: Codes, logits: np.ndarray, base: HerbrandBase, known: Codes, memory: int = MEMORY
) -> RowFeatures:
    """Features of atoms in their rows, whose last position is open; rivals are the others that are not `known`.

    By column: 1, the logit, the log-odds in the softmax of the row, the margin to the best rival, and the negative log
    of the rank; the last three are no more than `FARTHEST`, and 0 for an atom without a rival.
    """
    found, index = np.ones((len(codes), COEFFICIENTS)), base.decode(codes)[0]
    found[:, 1] = logits
    for i in np.unique(index).tolist():
        pattern, which = QueryPattern.from_base(base, i, len(base.shapes[i]) - 1), np.flatnonzero(index == i)
        rows, candidates = pattern.located(codes[which])
        distinct, row = np.unique(rows, return_inverse=True)
        known_rows, known_candidates = pattern.located(known[slice(*np.searchsorted(known, pattern.bounds))])
        size = max(1, memory // (BYTES_BY_CODE * pattern.candidates))
        for start in range(0, len(distinct), size):
            some = distinct[start : start + size]
            own = np.flatnonzero((row >= start) & (row < start + size))
            at = row[own] - start
            scores = row_scores(score, pattern, some).astype(np.float64)
            own_scores = scores[at, candidates[own]]
            near = are_among(known_rows, some)
            scores[np.searchsorted(some, known_rows[near]), known_candidates[near]] = -np.inf
            is_rival = scores[at, candidates[own]] > -np.inf
            found[which[own], 2:] = _columns(np.sort(scores, axis=1), at, own_scores, is_rival)
    return RowFeatures(found, index, tuple(predicate.name for predicate in base.language.predicates))


def _columns(
    ascending: Float64[np.ndarray, "rows candidates"],
    row: Int64[np.ndarray, " atoms"],
    logits: Float64[np.ndarray, " atoms"],
    is_rival: Bool[np.ndarray, " atoms"],
) -> Float64[np.ndarray, "atoms columns"]:
    """The last columns of `row_features` for atoms in sorted rows; a rival of others is no rival of its own."""
    padded = np.pad(ascending, ((0, 0), (2, 0)), constant_values=-np.inf)
    best, second, count = padded[row, -1], padded[row, -2], ascending.shape[1]
    is_first = is_rival & (logits >= best)
    with np.errstate(divide="ignore", invalid="ignore"):
        whole, rest = logsumexp(padded, axis=1)[row], logsumexp(padded[:, :-1], axis=1)[row]
        part = np.where(is_rival, np.minimum(np.exp(logits - whole), 0.5), 0.0)  # one that is not first has no more
        rivals = np.where(is_first, rest, whole + np.log1p(-part))
    margin = TOLERANCE * np.maximum(1.0, np.abs(np.where(np.isfinite(padded), padded, 0.0)).max(axis=1))[row]
    rank = np.ones(len(row))
    for i in np.unique(row).tolist():
        own = np.flatnonzero(row == i)
        above = count - np.searchsorted(ascending[i], logits[own] + margin[own], "right")
        equal = count - np.searchsorted(ascending[i], logits[own] - margin[own], "left") - above - is_rival[own]
        rank[own] = 1 + above + equal / 2
    found = np.stack([logits - rivals, logits - np.where(is_first, second, best), -np.log(rank)], axis=1)
    return np.where(np.isfinite(rivals)[:, None], np.clip(found, -FARTHEST, FARTHEST), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Ranked:
    """The ranks of some queries, given by their numbers; how many more have none: no other candidate was left."""

    predicate: int
    position: int
    queries: Int64[np.ndarray, " _"]
    ranks: Ranks
    alone: int


def _parts_of_pattern(
    scores: Sequence[Score], pattern: QueryPattern, asked: np.ndarray, known: np.ndarray, options: EvaluationOptions
) -> Iterator[Callable[[], list[_Ranked]]]:
    """The ranks by each score of a predicate's queries at one position, as many rows at once as memory holds."""
    rows, candidates = pattern.located(asked)
    order = np.argsort(rows, kind="stable")  # queries that share a row stand together, and it is scored once
    distinct, starts = np.unique(rows[order], return_index=True)
    starts = np.append(starts, len(order))
    known_rows, known_candidates = pattern.located(known[slice(*np.searchsorted(known, pattern.bounds))])
    by_row = np.argsort(known_rows, kind="stable")
    known_rows, known_candidates = known_rows[by_row], known_candidates[by_row]
    is_by_row = all(isinstance(score, ScoreByRow) for score in scores)
    size = max(1, options.memory // ((BYTES_IN_A_ROW if is_by_row else BYTES_BY_CODE) * pattern.candidates))

    def ranked(start: int) -> list[_Ranked]:
        some = distinct[start : start + size]
        queries = order[starts[start] : starts[min(start + size, len(distinct))]]
        row = np.searchsorted(some, rows[queries])
        near = slice(np.searchsorted(known_rows, some[0]), np.searchsorted(known_rows, some[-1], side="right"))
        known_row = np.searchsorted(some, known_rows[near])
        is_asked = some[known_row] == known_rows[near]
        excluded = known_row[is_asked], known_candidates[near][is_asked]  # the true ones are known: they too
        left = pattern.candidates - np.bincount(excluded[0], minlength=len(some))
        forbidden = options.forbidden and options.forbidden(pattern.predicate, pattern.position, pattern.given(some))
        kept, each = left[row] > 0, list[_Ranked]()
        for score in scores:
            logits = row_scores(score, pattern, some)
            found = ranks(logits, row, candidates[queries], excluded=excluded, forbidden=forbidden)
            own = Ranks(found.optimistic[kept], found.pessimistic[kept])
            each.append(_Ranked(pattern.predicate, pattern.position, queries[kept], own, int((~kept).sum())))
        return each

    return (partial(ranked, start) for start in range(0, len(distinct), size))


def _position_name(position: int, found: Sequence[_Ranked], base: HerbrandBase) -> str:
    """`position 2 (product)`; without the domain where those of the predicates differ, or all positions have one."""
    predicates = [base.language.predicates[i] for i in {part.predicate for part in found}]
    domains = {predicate.domains[position].name for predicate in predicates if position < predicate.arity}
    is_clear = len(domains) == 1 and len({domain for predicate in predicates for domain in predicate.domains}) > 1
    return f"position {position + 1}" + (f" ({domains.pop()})" if is_clear else "")


def _concatenated(parts: Iterable[np.ndarray]) -> Int64[np.ndarray, " _"]:
    return np.concatenate([np.zeros(0, np.int64), *parts])
