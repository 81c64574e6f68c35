"""Runs -> pages: a run held against another on the same queries, or why that cannot be."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from r2n.data.herbrand import Codes, HerbrandBase
from r2n.data.problem import Problem
from r2n.errors import counted
from r2n.evaluation.by_query import ByQuery, ClassifiedQueries, PairedTest, RankedQueries, compare_queries
from r2n.evaluation.ranking import Filter
from r2n.evaluation.report import Report
from r2n.store.folder import RunConfig


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """What is kept of a run for the comparison: no network."""

    folder: Path
    config: RunConfig
    problem: Problem
    reports: Mapping[str, Report]

    @cached_property
    def known(self) -> Codes:
        """The true atoms of all splits, which are no candidates of a ranking."""
        return Filter.of(self.problem).facts

    @property
    def base(self) -> HerbrandBase:
        """The Herbrand base of the problem."""
        return self.problem.knowledge.base


@dataclass(frozen=True, slots=True)
class Against:
    """A run held against the first one on a split: the tests, or (`why_not`) why there is none."""

    run: str
    tests: tuple[PairedTest, ...] = ()
    why_not: str = ""


def against(split: str, first: ComparedRun, other: ComparedRun, name: str) -> Against:
    """A run held against the first one, where both were asked the same."""
    pair = [run.reports[split].by_query if split in run.reports else None for run in (first, other)]
    if pair[0] is None or pair[1] is None:
        return Against(name, why_not=f"one of the two has no queries '{split}'")
    why_not = _why_not(first, other, pair[0], pair[1])
    if why_not:
        return Against(name, why_not=why_not)
    if isinstance(pair[0], RankedQueries) and not len(pair[0].atoms):
        return Against(name, why_not=first.reports[split].nothing_to_rank)
    if isinstance(pair[0], ClassifiedQueries) and isinstance(pair[1], ClassifiedQueries):
        pair[1] = _in_order(first, other, pair[0], pair[1])
    return Against(name, tuple(compare_queries(*pair)))


def _why_not(first: ComparedRun, other: ComparedRun, a: ByQuery, b: ByQuery) -> str:
    """Why two runs cannot be tested on the queries of a split; empty where they can."""
    one, two = _named(first.base, a.atoms), _named(other.base, b.atoms)
    if set(one) != set(two):
        return (
            f"the queries are not the same: {counted(len(set(one) - set(two)), 'atom')} asked of the first run alone,"
            f" {counted(len(set(two) - set(one)), 'atom')} of this one alone"
        )
    if type(a) is not type(b):
        return "one of the two ranks these queries, the other classifies them"
    if isinstance(a, ClassifiedQueries) and isinstance(b, ClassifiedQueries):
        true = [
            {name for name, is_true in zip(names, part.truth, strict=True) if is_true}
            for names, part in ((one, a), (two, b))
        ]
        changed = len(true[0] ^ true[1])
        return f"{counted(changed, 'query', 'queries')} have another truth" if changed else ""
    if first.config.fingerprints.get("language") != other.config.fingerprints.get("language"):
        return "the queries are ranked among other constants"
    if not np.array_equal(first.known, other.known):
        return "other atoms are known to be true, so that the candidates of the rankings differ"
    return ""


def _named(base: HerbrandBase, atoms: Codes) -> list[tuple[str, ...]]:
    """Atoms by the names of their predicates and constants, which mean the same in all problems."""
    index, arguments = base.decode(atoms)
    predicates, constants = base.language.predicates, base.language.constants
    rows = zip(index.tolist(), arguments.tolist(), strict=True)
    return [(predicates[i].name, *(constants[c] for c in row[: predicates[i].arity])) for i, row in rows]


def _in_order(first: ComparedRun, other: ComparedRun, a: ClassifiedQueries, b: ClassifiedQueries) -> ClassifiedQueries:
    """The second one's queries in the order of the first's."""
    place = {name: i for i, name in enumerate(_named(other.base, b.atoms))}
    order = np.array([place[name] for name in _named(first.base, a.atoms)], np.int64)
    return ClassifiedQueries(a.atoms, b.truth[order], b.logits[order])
