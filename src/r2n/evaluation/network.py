"""Predictions -> numbers: how good a network, or any other score of atoms, is on queries."""

from r2n.errors import ConfigError
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.evaluate import Report, Score, classify
from r2n.evaluation.filters import Filter
from r2n.evaluation.ranking import MEMORY, Forbidden, rank
from r2n.evaluation.shares import ALONE, Share
from r2n.graph.factor_graph import FactorGraph
from r2n.graph.sources import GraphSource, WholeGraph
from r2n.knowledge.herbrand import HerbrandBase
from r2n.knowledge.knowledge_base import Evidence
from r2n.model.atom_logits import AtomLogits
from r2n.model.r2n import R2N
from r2n.progress import Progress, no_progress


def evaluate(
    model: R2N,
    source: GraphSource | FactorGraph,
    queries: Evidence,
    *,
    evidence: Evidence | None = None,
    split: str = "queries",
) -> Report:
    """The report on queries: ranking where all are true, else classification.

    Ranking is filtered by the true queries themselves and the true `evidence`; `evidence` is also what a network
    that reads evidence is told. A graph stands for a source that has no other: it must hold all that is compared.
    """
    graphs = WholeGraph(source) if isinstance(source, FactorGraph) else source
    logits = AtomLogits(model, graphs, evidence if evidence is not None else Evidence.empty())
    return evaluate_scores(logits, queries, model.base, Filter.by(evidence), split=split)


def evaluate_scores(
    scores: Score,
    queries: Evidence,
    base: HerbrandBase,
    filtered: Filter,
    *,
    split: str,
    sample: int | None = None,
    seed: int = 0,
    forbidden: Forbidden | None = None,
    calibration: Calibrated | None = None,
    memory: int = MEMORY,
    share: Share = ALONE,
    progress: Progress = no_progress,
) -> Report:
    """The report of scores on queries: ranking (filtered) where all are true, else classification.

    `sample`, `seed`, `forbidden`, `memory` and `share` are those of `rank`, `calibration` is that of `classify`.
    """
    if queries.truth.all():
        return rank(
            scores,
            queries,
            base,
            filtered,
            split=split,
            sample=sample,
            seed=seed,
            forbidden=forbidden,
            memory=memory,
            share=share,
            progress=progress,
        )
    if forbidden is not None:
        raise ConfigError(
            f"only a ranking respects constraints, and the queries '{split}' are classified: some are false",
            hint="ask without them",
        )
    if sample is not None:
        raise ConfigError(
            f"only a ranking is sampled, and the queries '{split}' are classified: some are false",
            hint="ask for all of them, which takes one pass",
        )
    return classify(scores, queries, base, split=split, calibration=calibration)
