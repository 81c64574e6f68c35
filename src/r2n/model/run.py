"""A problem with its options and seed, and the networks in training; how good networks are, and their baselines."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import nn

from r2n.data.herbrand import closed_atoms
from r2n.data.knowledge_base import KnowledgeBase, as_trained
from r2n.data.problem import TRAIN, Problem
from r2n.data.validation import check_valid_is_free, contradictions
from r2n.errors import ConfigError
from r2n.evaluation.by_query import compare_queries
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.evaluate import RulesAlone, evaluate_each
from r2n.evaluation.ranking import DEFAULT_OPTIONS, EvaluationOptions, Filter, row_memory
from r2n.evaluation.report import NOT_HELD_OUT, REASONING_HARMS, Report, Score
from r2n.logic.language import Predicate
from r2n.model.choices import FEW_LABELS, choose_options, corrupted_positions, labelled_predicates
from r2n.model.memory import check_graph, check_memory, check_training, make_device, make_source
from r2n.network.graph_sources import GraphSource, Ungrounded
from r2n.network.mixture import INPUT_ALONE, NETWORK_ALONE, PATHS_ALONE, RULES_ALONE, SHARES, WEIGHTINGS, Weighting
from r2n.network.r2n import R2N
from r2n.network.regression import Regression
from r2n.options import MOST_WHOLE, Options, TrainingOptions
from r2n.progress import Progress, no_progress
from r2n.scoring import AtomLogits
from r2n.training.batches import Batches, FixedBatches, draws
from r2n.training.fit import Trainer, Validate, batches_of
from r2n.training.paths import PathBatches, after_input_layer
from r2n.training.rows import RuleBatches, start_at_confidence

RULES, INPUT, PATHS, NETWORK = "rules alone", "input layer alone", "paths alone", "without counted rules"
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
    found |= {RULES: logits.by(RULES_ALONE)} if model.counted.rules else {}
    if model.blends:
        found |= {PATHS: logits.by(PATHS_ALONE), WITHOUT_REASONING: logits.by(INPUT_ALONE)}
    if not model.blends or model.counted.rules:
        network = NETWORK if model.depth else WITHOUT_REASONING  # counted rules do not train the input layer
        found[network] = logits.by(NETWORK_ALONE)
    return found


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
    report = partial(evaluate_each, queries=queries, base=base, filtered=filtered, split=split)
    options, others = replace(options, ask=problem.ask), dict(baselines or {})
    calibration, plain = options.calibration, replace(options, calibration=None)
    if queries.truth.all():  # a ranking reads no calibration
        own, *parts = report([logits, *others.values()], options=plain, progress=progress)
    else:
        (own,) = report([logits], options=replace(options, known=problem.train.facts), progress=progress)
        parts = report(list(others.values()), options=plain)
    found = dict(zip(others, parts, strict=True))
    others = {name: part.metrics for name, part in found.items()}
    if baselines is not None:
        others = single_networks(logits, problem, split, lambda one: report([one], options=plain)[0].metrics) | others
    said: dict[str, str | int] = {"calibration": "none" if calibration is None else str(calibration)}
    if logits.others:
        said["ensemble"] = f"ensemble of {len(logits.models)}: the mean of the logits of as many networks"
    if not problem.ask and queries.truth.all() and (suggested := suggested_position(problem)):
        said["suggested"] = suggested
    said |= _harm(own, found.get(WITHOUT_REASONING)) | selected_on(own, logits, problem, training, calibration)
    return replace(own, baselines=others, protocol={**own.protocol, **said})


def suggested_position(problem: Problem) -> str:
    """Which position seems to be asked, in a sentence; empty where domains or facts do not tell them apart."""
    domains = {predicate.domains for predicate in problem.asked_predicates}
    positions = corrupted_positions(problem.knowledge) or ()
    if len(domains) != 1 or len(positions) != 1 or len(set(both := domains.pop())) != 2:
        return ""
    given, name = both[-3 - positions[0]].name, both[positions[0]].name
    ask = f'queries.ask = ["{name}"] makes the metrics of that position the main ones'
    return f"{name} seems to be asked (a {given} has fewer facts than a {name}): {ask}"


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
        has_rules = logits.model.counted is not None and bool(logits.model.counted.rules)
        tried = [len(SHARES)] * logits.model.blends + [len(WEIGHTINGS)] * has_rules
        best = f"the best of {' and then of '.join(map(str, tried))} on the validation queries"
        by = best if combined and tried else "nothing could choose another"
        said["combination"] = f"{'; '.join(chosen)} ({by})"
    stopped = options is not None and options.training.patience is not None
    is_fitted = calibration is not None and calibration.on_validation and not calibration.is_as_trained
    uses = [
        *["early stopping"] * stopped,
        *["choosing the combination of network and rules"] * combined,
        *["the calibration"] * (is_fitted and own.calibrated is not None),
    ]
    if own.split == "valid" and len(problem.valid) and uses:
        said[NOT_HELD_OUT] = f"used for {' and for '.join(uses)}"
    if own.split == "valid" and options is not None and has_weaker_filter(problem):
        said["in_training"] = "the same queries, but facts of other splits were not filtered: its metric was another"
    return said


def has_weaker_filter(problem: Problem) -> bool:
    """Whether the validation metric of a training has another filter than the report: facts of no other split."""
    return bool(problem.valid.truth.all()) and len(problem.queries) > 1


QUERIES_TO_CHOOSE_BY = 10_000
QUERIES_TO_BLEND_BY = 1_000  # the same, along paths
QUERIES_TO_STOP_BY = 300  # along paths, where a row takes milliseconds
MOST_NETWORKS = 100
SMALL_GRAPH = 50_000  # ground rules: below, a second thread costs more than it gives

Encoders = Mapping[str, nn.Module]
_Made = tuple[Problem, Options, KnowledgeBase, GraphSource, int | None]
"""What the runs of all seeds share: the last is the memory that they may take."""


@dataclass(frozen=True, eq=False)
class Run:
    """A problem, its options and seed, the source of its graphs, and `size` networks in training.

    The problem is grounded once; `trainer` trains the first network. Each network is built just before it is trained,
    because the seed is global. `knowledge` is in the language of the training. `given` are the caller's modules for the
    features of domains, as they were before the training (of a single network: those that are trained). `trained` are
    the runs of the networks that are trained so far.
    """

    problem: Problem
    options: Options
    seed: int
    knowledge: KnowledgeBase
    source: GraphSource
    trainer: Trainer
    given: Encoders
    memory: int | None = None
    size: int = 1
    trained: list["Run"] = field(default_factory=list)

    def __repr__(self) -> str:
        done = f"seed {self.seed}, epoch {self.trainer.epoch:,} of {self.trainer.epochs:,}"
        if self.size > 1:
            done = f"seeds from {self.seed}, {len(self.trained)} of {self.size} networks"
        return f"Run('{self.problem.name}', {done})"

    @property
    def model(self) -> R2N:
        """The (first) network."""
        return self.trainer.model

    @property
    def encoders(self) -> tuple[str, ...]:
        """The domains whose features go through modules of the caller."""
        return tuple(sorted(self.given))

    @property
    def seeds(self) -> range:
        """The seed of each network."""
        return range(self.seed, self.seed + self.size)

    @property
    def epochs(self) -> int:
        """The epochs that were trained, of all networks."""
        return self.trainer.epoch if self.size == 1 else sum(run.trainer.epoch for run in self.trained)

    def members(self, progress: Progress = no_progress) -> Iterator["Run"]:
        """A run for each network, to be trained before the next; what no seed changes is shared."""
        self.trained.clear()
        batches = self.trainer.batches
        shared = batches if isinstance(batches, FixedBatches) and not draws(self.options.training) else None
        for seed in self.seeds:
            is_first = seed == self.seed
            made = self if is_first else self.with_seed(seed, deepcopy(dict(self.given)), progress, shared)
            yield made
            self.trained.append(made)

    def with_seed(
        self, seed: int, given: Encoders | None = None, progress: Progress = no_progress, batches: Batches | None = None
    ) -> "Run":
        """The same run with another seed, of one network, which begins here."""
        made = self.problem, self.options, self.knowledge, self.source, self.memory
        return _run_of_seed(made, seed, given or {}, progress, batches)

    def logits(self) -> AtomLogits:
        """The logits for any atoms, with the weights as they are now; of several networks, the means."""
        if self.size > 1 and len(self.trained) < self.size:
            what = f"{len(self.trained)} of {self.size} networks are trained"
            raise ConfigError(what, hint="train them all: train_in(folder, run)")
        first, *others = (run.model for run in (self.trained if self.size > 1 else [self]))
        return AtomLogits(first, self.source, self.knowledge.evidence, others=tuple(others))

    def evaluate(
        self, split: str, progress: Progress = no_progress, *, calibration: Calibrated | None = None
    ) -> Report:
        """The report on a split: ranking if all its queries are true, else classification."""
        options = EvaluationOptions(calibration=calibration, memory=row_memory(self.memory))
        return evaluate_split(self.logits(), self.problem, split, progress, options=options, training=self.options)

    def notes(self) -> list[str]:
        """Which queries this training asks as false, if something can be set or labelled instead.

        A softmax only compares, and `assumed_false` warns of unary predicates. Of the truth of queries, only whether
        all of a split are true is looked at.
        """
        knowledge = self.problem.knowledge
        if self.options.training.compares_facts:
            return []
        false = np.setdiff1d(self.trainer.batches.asked(torch.Generator())[1], knowledge.evidence.atoms)
        found = []
        for split, queries in self.problem.queries.items():
            asked = queries.atoms[np.isin(queries.atoms, false) & ~closed_atoms(knowledge.base, queries.atoms)]
            predicates = knowledge.base.predicates(asked)
            advice = self._fewer_corruptions(predicates, is_ranking=bool(queries.truth.all()))
            if advice:
                found.append(
                    f"{len(asked):,} of {len(queries):,} queries '{split}' are asked as false in training, as"
                    f" corruptions of facts: {advice}"
                )
        return found

    def _fewer_corruptions(self, predicates: Sequence[Predicate], *, is_ranking: bool) -> str:
        """What to set or to label so that fewer queries of some predicates are asked as false; "" for nothing."""
        knowledge, training = self.problem.knowledge, self.options.training
        labels, advice = labelled_predicates(knowledge), list[str]()
        labelled = [predicate.name for predicate in predicates if predicate.name in labels]
        others = [predicate for predicate in predicates if predicate.name not in labels and predicate.arity > 1]
        only, now = [*training.labels_only, *labelled], training.corrupted_positions
        if labelled:
            advice.append(f"to ask only labelled atoms of {', '.join(labelled)}, set training.labels_only to {only}")
        positions = corrupted_positions(knowledge, only)
        is_set = now is not None and positions == tuple(sorted({p % 2 - 2 for p in now if -2 <= p < 2}))
        is_pair = any(predicate.arity == 2 for predicate in others)
        if is_pair and positions and not self.options.grounding.reciprocal and not is_set:
            excludes = f"only the {'last' if positions == (-1,) else 'first'} constant of a fact excludes others"
            advice.append(f"{excludes}: set training.corrupted_positions to {[*positions]}")
        elif others and not is_ranking:
            names = ", ".join(predicate.name for predicate in others)
            advice.append(
                f"label facts of {names} false, at least one to {FEW_LABELS} true ones, and name {names} in"
                " training.labels_only: then only these are asked as false"
            )
        return "; ".join(advice)


def prepare_run(
    problem: Problem,
    options: Options | None = None,
    seed: int = 0,
    *,
    size: int = 1,
    encoders: Encoders | None = None,
    memory: int | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Build graphs, trainer and the first of `size` networks.

    Without `options`, those of the problem, with what it leaves open chosen as `r2n train` does. `encoders` are modules
    of the caller for the features of domains. What would need more than `memory` bytes (by default a share of what is
    free) is an error before it is made.
    """
    if not 1 <= size <= MOST_NETWORKS:
        hint = f"take 1 to {MOST_NETWORKS}; of more than 10, each adds little"
        raise ConfigError(f"an ensemble of {size:,} networks cannot be trained", hint=hint)
    if seed < 0 or seed + size - 1 > MOST_WHOLE:
        hint = f"give a whole number from 0 to {MOST_WHOLE:,}"
        raise ConfigError(f"the seed is {seed if seed < 0 else seed + size - 1}", hint=hint)
    if options is None:
        options = choose_options(problem, problem.options)[0]
    if options.training.with_valid:
        check_valid_is_free(options.training)
        problem = problem.with_valid_as_evidence()
    for error in contradictions(problem, options):
        raise error
    knowledge = as_trained(problem.knowledge, options.grounding)
    check_training(knowledge, options, memory)
    source = make_source(knowledge, options, progress, to_train=True, memory=memory)
    given = deepcopy(dict(encoders or {})) if size > 1 else encoders or {}
    first = _run_of_seed((problem, options, knowledge, source, memory), seed, encoders or {}, progress)
    if size > 1:
        weights = sum(part.numel() * part.element_size() for part in first.model.state_dict().values())
        check_memory(4 * size * weights, memory, what=f"{size:,} networks", hints=["train fewer: --ensemble"])
    return replace(first, size=size, given=given)


def _run_of_seed(made: _Made, seed: int, encoders: Encoders, progress: Progress, batches: Batches | None = None) -> Run:
    """The run of one network; the only place where the global seed and the threads are set."""
    problem, options, knowledge, source, memory = made
    training, evidence = options.training, knowledge.evidence
    torch.manual_seed(seed)
    model = R2N.build(knowledge, options.model, encoders=encoders).to(make_device(training.device))
    if batches is None:
        check = partial(check_graph, options, memory)
        batches = batches_of(model, source, evidence, training, seed=seed, check=check, progress=progress)
    torch.set_num_threads(threads_for(training, batches.ground_rules))
    embedding = model.atom_embedding
    if isinstance(embedding, Regression):
        progress("fit features", 0, 0)
        queries = np.concatenate([np.zeros(0, np.int64), *(part.atoms for part in problem.queries.values())])
        embedding.fit(model.base, *batches.asked(torch.Generator().manual_seed(seed)), queries)
    is_free = "valid" in problem.queries and not training.with_valid
    rule_batches = finalize = None
    if model.counted is not None and source.counts is not None:
        progress("count", 0, 0)
        start_at_confidence(model.counted, source.counts)
        rule_batches = RuleBatches(source.counts, training)
        if is_free:
            finalize = partial(choose_weighting, problem, AtomLogits(model, source, evidence))
    is_planned = training.minutes is not None and training.schedule == "linear"
    is_validated = training.patience is not None or (is_planned and is_free)
    own = after_input_layer(training) if model.blends else None
    if own is not None and training.minutes is not None:
        training = training.model_copy(update={"minutes": training.minutes / 2})
    validate = validation(problem, model, source, knowledge, INPUT_ALONE) if is_validated else None
    last = {"finalize": finalize, "seed": seed}
    given = {"rule_batches": rule_batches, "validate": validate, **({"seed": seed} if own else last)}
    trainer = Trainer(model, batches, evidence, training, **given)
    if own is not None:
        assert source.paths is not None
        validate = validation(problem, model, source, knowledge, PATHS_ALONE) if is_free else None
        along_paths = PathBatches(model, source.paths, evidence, own)
        trainer = Trainer(model, along_paths, evidence, own, validate=validate, before=trainer, **last)
    if isinstance(embedding, Regression):
        trainer.validated()  # its input layer is fitted: untrained, it may be the best
    return Run(problem, options, seed, knowledge, source, trainer, encoders, memory)


def choose_weighting(problem: Problem, logits: AtomLogits, model: R2N) -> None:
    """Combine network and counted rules by the weighting that is best on (a sample of) the validation queries."""
    combination, logits = model.combination, logits.again()
    assert combination is not None
    assert model.counted is not None
    most = QUERIES_TO_BLEND_BY if model.blends else QUERIES_TO_CHOOSE_BY
    sample = most if problem.valid.truth.all() else None  # only a ranking is sampled

    def best(weightings: Sequence[Weighting]) -> int:
        found = np.nan_to_num(_valid_scores(problem, [logits.by(some) for some in weightings], sample), nan=-1.0)
        return int(found.argmax())  # the first of equals

    if model.blends:
        combination.share.fill_(best([replace(NETWORK_ALONE, paths=share) for share in SHARES]))
    combination.way.fill_(best(WEIGHTINGS) if model.counted.rules else WEIGHTINGS.index(NETWORK_ALONE))


def _valid_scores(problem: Problem, logits: Sequence[AtomLogits], sample: int | None = None) -> list[float]:
    options = EvaluationOptions(ask=problem.ask, sample=sample)
    filtered, base = Filter.from_problem(problem, (TRAIN, "valid")), problem.knowledge.base  # neither knows the test
    reports = evaluate_each(logits, problem.valid, base, filtered, options, split="valid")
    return [report.main[1] for report in reports]


def valid_score(run: Run) -> float:
    """The metric of a trained run on the validation queries, filtered without the test's facts."""
    return _valid_scores(run.problem, [run.logits()])[0]


def threads_for(options: TrainingOptions, ground_rules: int) -> int:
    """The number of threads for a number of ground rules."""
    return options.threads or (1 if ground_rules < SMALL_GRAPH else os.cpu_count() or 1)


def validation(
    problem: Problem, model: R2N, source: GraphSource, knowledge: KnowledgeBase, weighting: Weighting | None = None
) -> Validate:
    """The metric that chooses the best weights: average precision, or the mean reciprocal rank, of `valid` alone.

    Of a network that blends two parts: by the `weighting` that has one of them alone.
    """
    is_slow = model.paths is not None and weighting != INPUT_ALONE and problem.valid.truth.all()
    sample = QUERIES_TO_STOP_BY if is_slow else None
    logits = AtomLogits(model, source, knowledge.evidence, weighting=weighting if model.blends else None)

    def validate(_: R2N) -> float:
        nonlocal logits
        logits = logits.again()
        return _valid_scores(problem, [logits], sample)[0]

    return validate
