"""Predictions -> a run: how good a network, or an ensemble of them, is on the queries of a problem."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from r2n.errors import ConfigError
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.evaluate import NOT_HELD_OUT, REASONING_HARMS, Report, Score
from r2n.evaluation.filters import Filter
from r2n.evaluation.network import evaluate_scores
from r2n.evaluation.paired import compare_queries
from r2n.evaluation.ranking import Forbidden, row_memory
from r2n.evaluation.shares import ALONE, Share
from r2n.knowledge.options import Options
from r2n.knowledge.problem import Problem
from r2n.model.atom_logits import AtomLogits
from r2n.model.combination import WAYS
from r2n.progress import Progress, no_progress
from r2n.runs.mirror import WITHOUT_REASONING, said_of, single_networks

LEVEL = 0.01  # of a paired test: a result is worse than another by more than chance
LEAST_HARM = 0.005  # of the metric: less is not worth a note, however sure


def evaluate_split(
    logits: AtomLogits,
    problem: Problem,
    split: str,
    progress: Progress = no_progress,
    *,
    sample: int | None = None,
    seed: int = 0,
    forbidden: Forbidden | None = None,
    beside: Mapping[str, Score] | None = None,
    options: Options | None = None,
    calibration: Calibrated | None = None,
    memory: int | None = None,
    share: Share = ALONE,
) -> Report:
    """The report of a network on a split; ranking is filtered by the true atoms of all splits, as everybody does.

    `sample`: of a ranking, so many queries, drawn by `seed`. `forbidden`: its candidates that cannot be. `beside`:
    scores (`mirrors`) that are asked the same, and stand in the report with their metrics; beside an ensemble, its
    single networks too. `options`: those of the training, which say what `valid` was used for. `calibration`:
    probabilities are judged before and after it. `memory`: the bytes that work may take; rows of candidates are scored
    in parts that are a small part of it. `share`: which of these parts of a
    ranking are done in this process.
    """
    if split not in problem.queries:
        splits = ", ".join(problem.queries) or "none"
        raise ConfigError(f"the problem has no queries '{split}'", hint=f"it has: {splits}")
    base, filtered = problem.knowledge.base, Filter.of(problem)
    _ = logits.whole  # grounding and the pass are phases before this one
    progress("evaluate", 0, 0)
    report = partial(
        evaluate_scores,
        queries=problem.queries[split],
        base=base,
        filtered=filtered,
        split=split,
        sample=sample,
        seed=seed,
        forbidden=forbidden,
        memory=row_memory(memory),
        share=share,
    )
    own = report(logits, progress=progress, calibration=calibration)
    found = {name: report(scores) for name, scores in (beside or {}).items()}
    others = {name: part.metrics for name, part in found.items()}
    if beside is not None:
        others = single_networks(logits, problem, split, lambda scores: report(scores).metrics) | others
    said = (
        said_of(logits, calibration)
        | _harm(own, found.get(WITHOUT_REASONING))
        | selected_on(own, logits, problem, options, calibration)
    )
    return replace(own, beside=others, protocol={**own.protocol, **said})


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
    ways = dict.fromkeys(str(model.combination.chosen) for model in logits.models if model.combination is not None)
    combined, said = bool(ways) and logits.way is None and len(problem.valid) > 0, {}
    if ways and logits.way is None:
        by = f"the best of {len(WAYS)} on the validation queries" if combined else "nothing could choose another"
        said["combination"] = f"{'; '.join(ways)} ({by})"
    stopped = options is not None and options.training.patience is not None
    is_fitted = calibration is not None and calibration.on_validation and not calibration.is_as_trained
    uses = [
        *["early stopping"] * stopped,
        *["choosing the combination of network and rules"] * combined,
        *["the calibration"] * (is_fitted and own.calibrated is not None),
    ]
    if own.split == "valid" and len(problem.valid) and uses:
        said[NOT_HELD_OUT] = f"used for {' and for '.join(uses)}" + (
            "; in training its metric was filtered without the facts of other splits"
            if is_filtered_less(problem)
            else ""
        )
    return said


def is_filtered_less(problem: Problem) -> bool:
    """Whether the validation metric of a training has another filter than the report: facts of no other split."""
    return bool(problem.valid.truth.all()) and len(problem.queries) > 1
