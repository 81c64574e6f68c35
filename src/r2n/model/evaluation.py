"""How good the networks of a model are on the queries of a problem, and its baselines."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from jaxtyping import Bool, Int64

from r2n.data.knowledge_base import KnowledgeBase
from r2n.data.problem import Problem
from r2n.errors import ConfigError, nearest
from r2n.evaluation.by_query import compare_queries
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.evaluate import RulesAlone, evaluate_scores
from r2n.evaluation.ranking import DEFAULT_OPTIONS, EvaluationOptions, Filter
from r2n.evaluation.report import NOT_HELD_OUT, REASONING_HARMS, Report, Score
from r2n.mining.constraints import KINDS, Constraint, Forbidden, mine_constraints
from r2n.network.graph_sources import Ungrounded
from r2n.network.mixture import NETWORK_ALONE, RULES_ALONE, WEIGHTINGS
from r2n.network.r2n import R2N
from r2n.options import Options
from r2n.progress import Progress, no_progress
from r2n.scoring import AtomLogits

RULES, INPUT, NETWORK = "rules alone", "input layer alone", "without counted rules"
WITHOUT_REASONING = "without reasoning"  # the same input layer, trained without any rule
SINGLE, DEVIATION = "single network, mean", "deviation"

MOST_CANDIDATES = 2**30  # of all queries of a split: above, there are no baselines
MOST_CANDIDATES_WITH_LAYERS = 2**26


def baseline_scores(logits: AtomLogits, problem: Problem) -> dict[str, Score]:
    """The baselines of a network that are cheap to evaluate: scores for the same queries.

    Rules that are counted have the weights that were learned, others their confidence in the training facts. The input
    layer stands alone where its score is a part of the output.
    """
    model, asked, found = logits.model, _candidates(problem), dict[str, Score]()
    if asked > (MOST_CANDIDATES_WITH_LAYERS if model.counted is not None and len(model.layers) else MOST_CANDIDATES):
        return found
    if model.counted is None:
        if (rules := RulesAlone.from_knowledge(problem.knowledge)) is not None:
            found[RULES] = rules
        if model.input_score:
            alone = [R2N(m.base, m.constants, m.atom_embedding).train(m.training) for m in logits.models]
            for part, whole in zip(alone, logits.models, strict=True):
                part.trained_ids = whole.trained_ids
            found[INPUT] = AtomLogits(alone[0], Ungrounded(), logits.evidence, others=tuple(alone[1:]))
        return found
    _ = logits.full_pass  # the pass is shared
    network = NETWORK if len(model.layers) else WITHOUT_REASONING  # counted rules do not train the input layer
    return {RULES: logits.by(RULES_ALONE), network: logits.by(NETWORK_ALONE)}


def _candidates(problem: Problem) -> int:
    """The candidates of the queries' rows, of the split that has the most."""
    base = problem.knowledge.base
    widths = np.array([sum(shape) for shape in base.shapes], np.int64)
    return max((int(widths[base.decode(part.atoms)[0]].sum()) for part in problem.queries.values()), default=0)


def single_networks(
    logits: AtomLogits, problem: Problem, split: str, metrics: Callable[[Score], Mapping[str, float]]
) -> dict[str, Mapping[str, float]]:
    """The mean and deviation of the metrics of an ensemble's single networks, if they are cheap to evaluate."""
    queries, most = problem.queries[split], MOST_CANDIDATES_WITH_LAYERS if len(logits.model.layers) else MOST_CANDIDATES
    if not logits.others:
        return {}
    if not queries.truth.all():
        found = [metrics(lambda _, row=row: row) for row in logits.each(queries.atoms)]
    elif logits.full_pass is not None and _candidates(problem) * len(logits.models) <= most:
        found = [metrics(member) for member in logits.members]
    else:
        return {}
    columns = {name: np.array([numbers[name] for numbers in found]) for name in found[0]}
    return {
        SINGLE: {name: float(values.mean()) for name, values in columns.items()},
        DEVIATION: {name: float(values.std(ddof=1)) for name, values in columns.items()},
    }


LEAST_SUPPORT = 30
"""By default: what 30 facts keep, hardly more than one in ten others breaks (1 - 0.05^(1/30))."""


@dataclass(frozen=True, eq=False)
class Constrained:
    """Constraints that no training fact breaks, and the candidates that they forbid: as `rank` wants it."""

    knowledge: KnowledgeBase
    constraints: tuple[Constraint, ...]

    @classmethod
    def from_knowledge(
        cls, knowledge: KnowledgeBase, kinds: Collection[str] = KINDS, min_support: int = LEAST_SUPPORT
    ) -> "Constrained":
        """Mine constraints of some kinds; they see what is known, and no query."""
        for kind in kinds:
            if kind not in KINDS:
                known = f"there are: {', '.join(KINDS)}"
                raise ConfigError(f"there is no kind of constraint '{kind}'", hint=nearest(kind, KINDS) or known)
        found = mine_constraints(knowledge, min_support=min_support)
        return cls(knowledge, tuple(constraint for constraint in found if constraint.kind in kinds))

    def __str__(self) -> str:
        """`irreflexive 40, disjoint 3`."""
        counts = Counter(constraint.kind for constraint in self.constraints)
        return ", ".join(f"{kind} {counts[kind]}" for kind in KINDS if counts[kind]) or "none found"

    def __call__(
        self, predicate: int, position: int, given: Int64[np.ndarray, "rows positions"]
    ) -> Bool[np.ndarray, "rows candidates"]:
        """Which candidates of rows cannot be; constraints speak of binary predicates alone."""
        language = self.knowledge.language
        asked = language.predicates[predicate]
        if asked.arity != 2:
            return np.zeros((len(given), len(language.members(asked.domains[position]))), bool)
        return self._forbidden.candidates(asked, position, given[:, 1 - position])

    @cached_property
    def _forbidden(self) -> Forbidden:
        return Forbidden(self.constraints, self.knowledge.base, self.knowledge.evidence)


LEVEL = 0.01  # of a paired test: a result is worse than another by more than chance
LEAST_HARM = 0.005  # of the metric: less is not worth a note, however sure


def evaluate_split(
    logits: AtomLogits,
    problem: Problem,
    split: str,
    progress: Progress = no_progress,
    *,
    options: EvaluationOptions = DEFAULT_OPTIONS,
    baselines: Mapping[str, Score] | None = None,
    training: Options | None = None,
) -> Report:
    """The report of a network on a split; ranking is filtered by the true atoms of all splits, as is usual.

    `baselines` are scores (`baseline_scores`) that are evaluated on the same queries, and their metrics are part of
    the report; of an ensemble, so are the means of its single networks. `training` are the options of the training,
    which say what `valid` was used for.
    """
    if split not in problem.queries:
        splits = ", ".join(problem.queries) or "none"
        raise ConfigError(f"the problem has no queries '{split}'", hint=f"it has: {splits}")
    _ = logits.full_pass  # grounding and the pass are phases before this one
    progress("evaluate", 0, 0)
    queries, base, filtered = problem.queries[split], problem.knowledge.base, Filter.from_problem(problem)
    report = partial(evaluate_scores, queries=queries, base=base, filtered=filtered, split=split)
    calibration, plain = options.calibration, replace(options, calibration=None)
    own = report(logits, options=options, progress=progress)
    found = {name: report(scores, options=plain) for name, scores in (baselines or {}).items()}
    others = {name: part.metrics for name, part in found.items()}
    if baselines is not None:
        others = single_networks(logits, problem, split, lambda scores: report(scores, options=plain).metrics) | others
    said: dict[str, str | int] = {"calibration": "none" if calibration is None else str(calibration)}
    if logits.others:
        said["ensemble"] = f"ensemble of {len(logits.models)}: the mean of the logits of as many networks"
    said |= _harm(own, found.get(WITHOUT_REASONING)) | selected_on(own, logits, problem, training, calibration)
    return replace(own, baselines=others, protocol={**own.protocol, **said})


def _harm(own: Report, without: Report | None) -> dict[str, str]:
    """What the protocol says where the network is worse than without reasoning, by more than chance."""
    name, value = own.main
    if without is None or not without.metrics[name] > value:
        return {}
    test = next((test for test in compare_queries(without.by_query, own.by_query) if test.metric == name), None)
    if test is None or test.p >= LEVEL or abs(test.difference) < LEAST_HARM:
        return {}
    numbers = f"{name} {value:.3f} with the rules, {without.metrics[name]:.3f} without reasoning"
    chance = f"difference {test.difference:+.3f}, 95 % interval {test.low:+.3f} to {test.high:+.3f}, p {test.p:.4f}"
    return {REASONING_HARMS: f"{own.split}: reasoning makes it worse: {numbers} ({chance})"}


def selected_on(
    own: Report, logits: AtomLogits, problem: Problem, options: Options | None, calibration: Calibrated | None
) -> dict[str, str]:
    """What the protocol says of choices that were made on validation queries: the combination, and what they were."""
    chosen = dict.fromkeys(str(model.combination.chosen) for model in logits.models if model.combination is not None)
    combined, said = bool(chosen) and logits.weighting is None and len(problem.valid) > 0, {}
    if chosen and logits.weighting is None:
        by = f"the best of {len(WEIGHTINGS)} on the validation queries" if combined else "nothing could choose another"
        said["combination"] = f"{'; '.join(chosen)} ({by})"
    stopped = options is not None and options.training.patience is not None
    is_fitted = calibration is not None and calibration.on_validation and not calibration.is_as_trained
    uses = [
        *["early stopping"] * stopped,
        *["choosing the combination of network and rules"] * combined,
        *["the calibration"] * (is_fitted and own.calibrated is not None),
    ]
    if own.split == "valid" and len(problem.valid) and uses:
        weaker = "; in training its metric was filtered without the facts of other splits"
        said[NOT_HELD_OUT] = f"used for {' and for '.join(uses)}" + weaker * has_weaker_filter(problem)
    return said


def has_weaker_filter(problem: Problem) -> bool:
    """Whether the validation metric of a training has another filter than the report: facts of no other split."""
    return bool(problem.valid.truth.all()) and len(problem.queries) > 1
