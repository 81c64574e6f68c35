"""Three countries, three regions and a planet: a base small enough to work rankings out by hand."""

from typing import Any

import numpy as np

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence
from r2n.evaluation.ranking import EvaluationOptions, Filter, rank
from r2n.evaluation.report import Report, Score
from r2n.logic.language import Domain, Language, Predicate
from r2n.progress import Progress, no_progress

COUNTRY, REGION, PLANET = Domain("country"), Domain("region"), Domain("planet")
BASE = HerbrandBase(
    Language.build(
        [COUNTRY, REGION, PLANET],
        [Predicate("locatedIn", (COUNTRY, REGION)), Predicate("large", (COUNTRY,)), Predicate("on", (REGION, PLANET))],
        {"country": ["chad", "italy", "japan"], "region": ["africa", "asia", "europe"], "planet": ["earth"]},
    )
)
ATOMS = BASE.names(np.arange(BASE.size))


def code(atom: str) -> int:
    return ATOMS.index(atom)


def evidence(atoms: dict[str, bool]) -> Evidence:
    codes = sorted((code(atom), truth) for atom, truth in atoms.items())
    return Evidence(np.array([c for c, _ in codes], np.int64), np.array([t for _, t in codes], bool))


def codes(*atoms: str) -> np.ndarray:
    return np.array(sorted(map(code, atoms)), np.int64)


def filtered(*names: str) -> Filter:
    return Filter(codes(*names), ())


def scorer(logits: dict[str, float], otherwise: float = 0.0) -> Score:
    table = np.full(BASE.size, otherwise)
    table[[code(atom) for atom in logits]] = list(logits.values())
    return table.__getitem__


def ranked(
    score: Score,
    queries: Evidence,
    *known: str,
    split: str = "queries",
    progress: Progress = no_progress,
    **options: Any,
) -> Report:
    """The ranking of queries, filtered by known atoms."""
    return rank(score, queries, BASE, filtered(*known), EvaluationOptions(**options), split=split, progress=progress)
