"""Predictions -> a run: a mirror beside a network's result: what its rules, and its input layer, reach without it."""

import numpy as np

from r2n.evaluation.evaluate import Score
from r2n.evaluation.rules_alone import RulesAlone
from r2n.graph.sources import Ungrounded
from r2n.knowledge.problem import Problem
from r2n.model.atom_logits import AtomLogits
from r2n.model.combination import NETWORK_ALONE, RULES_ALONE
from r2n.model.r2n import R2N

RULES, INPUT, NETWORK = "rules alone", "input layer alone", "network alone"

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
    return {RULES: logits.by(RULES_ALONE), NETWORK if len(model.layers) else INPUT: logits.by(NETWORK_ALONE)}


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
    alone = R2N(model.base, model.constants, model.atom_embedding).train(model.training)  # it has no other parts
    alone.trained_ids = model.trained_ids
    return {INPUT: AtomLogits(alone, Ungrounded(), logits.evidence)}
