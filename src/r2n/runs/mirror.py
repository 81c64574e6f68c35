"""Predictions -> a run: a mirror beside a network's result: what its rules, and its input layer, reach without it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.evaluate import Score
from r2n.evaluation.rules_alone import RulesAlone
from r2n.graph.sources import Ungrounded
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.problem import Problem
from r2n.model.atom_logits import AtomLogits
from r2n.model.combination import NETWORK_ALONE, RULES_ALONE
from r2n.model.passes import Logits
from r2n.model.r2n import R2N

RULES, INPUT, NETWORK = "rules alone", "input layer alone", "without counted rules"
WITHOUT_REASONING = "without reasoning"  # the same input layer, trained without any rule
SINGLE, DEVIATION = "single network, mean", "deviation"

MOST_CANDIDATES = 2**30  # of all queries of a split: above, there is no mirror
MOST_CANDIDATES_WITH_LAYERS = 2**26


def mirrors(logits: AtomLogits, problem: Problem) -> dict[str, Score]:
    """What stands beside a network, as far as it is cheap: scores that are asked the same queries.

    Rules that are counted have the weights that were learned, others their confidence in the training facts. The input
    layer stands alone where its score is a part of the output.
    """
    model, asked = logits.model, _candidates(problem)
    if model.counted is None:
        return (_counted(problem) | _input(logits)) if asked <= MOST_CANDIDATES else {}
    if asked > (MOST_CANDIDATES_WITH_LAYERS if len(model.layers) else MOST_CANDIDATES):
        return {}
    _ = logits.whole  # the pass is shared
    network = NETWORK if len(model.layers) else WITHOUT_REASONING  # counted rules do not train the input layer
    return {RULES: logits.by(RULES_ALONE), network: logits.by(NETWORK_ALONE)}


def _candidates(problem: Problem) -> int:
    """The candidates of the queries' rows, of the split that has the most."""
    base = problem.knowledge.base
    widths = np.array([sum(shape) for shape in base.shapes], np.int64)
    return max((int(widths[base.decode(part.atoms)[0]].sum()) for part in problem.queries.values()), default=0)


def _counted(problem: Problem) -> dict[str, Score]:
    found = RulesAlone.of(problem.knowledge)
    return {} if found is None else {RULES: found}


def _input(logits: AtomLogits) -> dict[str, Score]:
    model = logits.model
    if not model.input_score:
        return {}
    alone, *others = map(_without_layers, logits.models)
    return {INPUT: AtomLogits(alone, Ungrounded(), logits.evidence, others=tuple(others))}


def _without_layers(model: R2N) -> R2N:
    alone = R2N(model.base, model.constants, model.atom_embedding).train(model.training)  # it has no other parts
    alone.trained_ids = model.trained_ids
    return alone


def single_networks(
    logits: AtomLogits, problem: Problem, split: str, metrics: Callable[[Score], Mapping[str, float]]
) -> dict[str, Mapping[str, float]]:
    """Beside an ensemble: mean and deviation over its networks of what each alone reaches, where that is cheap."""
    found = [metrics(score) for score in _singles(logits, problem, split)]
    columns = {name: np.array([numbers[name] for numbers in found]) for name in (found[0] if found else ())}
    if not columns:
        return {}
    return {
        SINGLE: {name: float(values.mean()) for name, values in columns.items()},
        DEVIATION: {name: float(values.std(ddof=1)) for name, values in columns.items()},
    }


def _singles(logits: AtomLogits, problem: Problem, split: str) -> Sequence[Score]:
    """The scores of each network of an ensemble; none where asking them would cost much."""
    queries = problem.queries[split]
    if not logits.others:
        return ()
    if not queries.truth.all():
        return [_Looked(row) for row in logits.each(queries.atoms)]
    asked = _candidates(problem) * len(logits.models)
    most = MOST_CANDIDATES_WITH_LAYERS if len(logits.model.layers) else MOST_CANDIDATES
    return logits.members if logits.whole is not None and asked <= most else ()


@dataclass(frozen=True, eq=False)
class _Looked:
    """Logits of the queries that are asked, in their order."""

    logits: Logits

    def __call__(self, _: Codes) -> Logits:
        return self.logits


def said_of(logits: AtomLogits, calibration: Calibrated | None) -> dict[str, str | int]:
    """What the protocol of a report says of the networks and of their probabilities."""
    said: dict[str, str | int] = {"calibration": "none" if calibration is None else str(calibration)}
    if logits.others:
        said["ensemble"] = f"ensemble of {len(logits.models)}: the mean of the logits of as many networks"
    return said
