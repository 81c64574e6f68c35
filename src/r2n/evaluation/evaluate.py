"""Evaluation of scores, and of rules alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from jaxtyping import Float64, Int64

from r2n.data.herbrand import Codes, HerbrandBase, QueryPattern, RowIndex, index_among
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.errors import ConfigError, GroundingError
from r2n.evaluation.ranking import DEFAULT_OPTIONS, EvaluationOptions, Filter, probabilities, rank_each, true_atoms
from r2n.evaluation.report import Report, Score, classify
from r2n.grounding.counting import RuleCounts, split_rules
from r2n.grounding.full import KnownBodyGrounder
from r2n.grounding.store import Store
from r2n.network.factor_graph import FactorGraph
from r2n.network.graph_sources import FullGraph, GraphSource
from r2n.network.r2n import R2N
from r2n.progress import Progress, no_progress
from r2n.scoring import AtomLogits

POWER = 0.3  # of a count: the tenth proof by one rule says less than the first; counted rules begin there too
UNREACHED = -30.0  # the logit of an atom that no rule concludes: below all others
MOST_RULES = 20_000
MOST_GROUND_RULES = 5_000_000  # by the estimate, of all rules together: above, counting would take long

_ByRow = tuple[RowIndex, Int64[np.ndarray, " atoms"], Float64[np.ndarray, " atoms"]]


@dataclass(frozen=True, eq=False)
class RulesAlone:
    """The atoms (ascending) that some rule concludes, and their logits."""

    base: HerbrandBase
    atoms: Codes
    logits: Float64[np.ndarray, " atoms"]
    _patterns: dict[tuple[int, int], _ByRow] = field(default_factory=dict)

    @classmethod
    def from_knowledge(cls, knowledge: KnowledgeBase) -> "RulesAlone | None":
        """None where no rule can be counted, or not at once."""
        rules, store = split_rules(knowledge)[1], Store(knowledge)
        if not rules or len(rules) > MOST_RULES:
            return None
        queries = (KnownBodyGrounder().query(store, rule, every_variable=True) for rule in rules)
        if sum(query.estimate() for query in queries) > MOST_GROUND_RULES:
            return None
        try:
            counts = RuleCounts.from_store(store, rules)
        except GroundingError:  # the estimate was wrong
            return None
        atoms, number = np.unique(counts.codes, return_inverse=True)
        weights = np.bincount(number, counts.confidences[counts.rule] * counts.counts**POWER, minlength=len(atoms))
        return cls(counts.base, atoms, np.log(np.expm1(weights)))

    def __call__(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        """The logits of atoms."""
        found = np.full(len(codes), UNREACHED)
        row = index_among(codes, self.atoms)
        found[row >= 0] = self.logits[row[row >= 0]]
        return found

    def rows(
        self, predicate: int, position: int, given: Int64[np.ndarray, "rows positions"]
    ) -> Float64[np.ndarray, "rows candidates"]:
        """The logits of a predicate's atoms with each constant of the open position's domain, in its order."""
        pattern = QueryPattern.from_base(self.base, predicate, position)
        if (predicate, position) not in self._patterns:
            part = slice(*np.searchsorted(self.atoms, pattern.bounds))
            at, candidates = pattern.located(self.atoms[part])
            order = np.argsort(at, kind="stable")
            index, logits = RowIndex.from_rows(at[order]), self.logits[part]
            self._patterns[predicate, position] = index, candidates[order], logits[order]
        index, candidates, logits = self._patterns[predicate, position]
        row, entry = index.entries(pattern.rows(given))
        found = np.full((len(given), pattern.candidates), UNREACHED)
        found[row, candidates[entry]] = logits[entry]
        return found


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
    that reads evidence gets. A graph stands for a source that has no other: it must hold all that is compared.
    """
    graphs = FullGraph(source) if isinstance(source, FactorGraph) else source
    logits = AtomLogits(model, graphs, evidence if evidence is not None else Evidence.empty())
    known = [] if evidence is None else [evidence]
    filtered = Filter(true_atoms(known), ("evidence",) * len(known))
    return evaluate_each([logits], queries, model.base, filtered, split=split)[0]


def evaluate_each(
    scores: Sequence[Score],
    queries: Evidence,
    base: HerbrandBase,
    filtered: Filter,
    options: EvaluationOptions = DEFAULT_OPTIONS,
    *,
    split: str,
    progress: Progress = no_progress,
) -> list[Report]:
    """The report of each of several scores on queries: ranking (filtered) if all are true, else classification.

    In a ranking, scores share what they compute for the same rows.
    """
    if queries.truth.all():
        return rank_each(scores, queries, base, filtered, options, split=split, progress=progress)
    constrained = options.forbidden is not None, "respects constraints", "ask without them"
    sampled = options.sample is not None, "is sampled", "ask for all of them, which takes one pass"
    for is_wanted, does, hint in (constrained, sampled):
        if is_wanted:
            what = f"only a ranking {does}, and the queries '{split}' are classified: some are false"
            raise ConfigError(what, hint=hint)
    reports, calibration = list[Report](), options.calibration
    for score in scores:
        believed = None
        if calibration is not None and not calibration.why_not:
            believed = partial(probabilities, calibration, score, base=base, known=options.known)
        reports.append(classify(score, queries, base, split=split, probabilities=believed))
    return reports
