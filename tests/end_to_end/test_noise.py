"""What a network is asked, and with which ground rules, does not depend on what is held out."""

from collections.abc import Iterable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from r2n.data.herbrand import closed_atoms
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.data.problem import Problem
from r2n.evaluation.metrics import average_precision
from r2n.model.run import Run, prepare_run
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.r2n import R2N
from r2n.scoring import AtomLogits
from r2n.training.fit import Epoch, fit
from tests.noise_problem import TAILS, noise_problem
from tests.one_way import STRATEGIES

Logits = NDArray[np.float64]
"""Of all p(head, tail): a row for each head, a column for each tail."""
Truth = dict[int, int]
"""Heads (rows) and the tail (column) of each that is true."""
SLACK = 0.01  # equal logits may differ in the last bit, and then do not tie
DRAWS = 100

# what chance gives: the same logits, with true tails that are drawn again and again


def truth_of(problem: Problem, split: Evidence) -> Truth:
    base, index = problem.knowledge.base, problem.knowledge.language.predicate_index("p")
    true = split.atoms[split.truth]
    codes = true[base.decode(true)[0] == index] - base.offsets[index]
    return dict(divmod(code, base.shapes[index][1]) for code in codes.tolist())


def mrr(logits: Logits, asked: Truth, filtered: Iterable[Truth]) -> float:
    """The mean reciprocal rank over heads and tails, ties in the middle; other true atoms are no rivals."""
    is_rival = np.ones(logits.shape, bool)
    for pairs in (asked, *filtered):
        is_rival[list(pairs), list(pairs.values())] = False
    heads, tails = np.array(list(asked.items())).T
    found = []
    for lines, rivals in ((logits[heads], is_rival[heads]), (logits[:, tails].T, is_rival[:, tails].T)):
        own = logits[heads, tails][:, None]
        better, equal = ((lines > own) & rivals).sum(1), ((lines == own) & rivals).sum(1)
        found.append(np.mean(1 / (1 + better + equal / 2)))
    return float(np.mean(found))


def chance(logits: Logits, asked: Truth, filtered: Iterable[Truth]) -> tuple[float, float]:
    """Mean and deviation of the MRR over drawn tails."""
    generator = np.random.default_rng(0)
    drawn = [generator.integers(logits.shape[1], size=len(asked)).tolist() for _ in range(DRAWS)]
    found = [mrr(logits, dict(zip(asked, tails, strict=True)), filtered) for tails in drawn]
    return float(np.mean(found)), float(np.std(found))


def chance_ap(own: Logits, other: Logits) -> float:
    """The mean AP if it is drawn which of a head's two atoms, with these logits, is the true one."""
    drawn = np.random.default_rng(0).random((DRAWS, len(own))) < 0.5
    both = np.concatenate([own, other])
    return float(np.mean([average_precision(both, np.concatenate([~swapped, swapped])) for swapped in drawn]))


@pytest.mark.parametrize(("lift", "is_honest"), [(0.0, True), (1.0, False), (-9.0, False)])
def test_the_yardstick_sees_a_leak(lift: float, is_honest: bool) -> None:
    problem = noise_problem("alike")
    train, valid, test = (truth_of(problem, part) for part in (problem.train, problem.valid, problem.test))
    logits = np.random.default_rng(1).normal(size=(len(train) + len(valid) + len(test), len(TAILS)))
    logits[list(test), list(test.values())] += lift
    mean, deviation = chance(logits, test, (train, valid))
    assert (abs(mrr(logits, test, (train, valid)) - mean) < 4 * deviation + SLACK) == is_honest
    rivals = len(TAILS), len(logits) * (1 - 1 / len(TAILS))  # of a tail's heads, one in twenty is another true one
    uniform = [np.mean([1 / rank for rank in range(1, round(number) + 1)]) for number in rivals]
    assert mean == pytest.approx(np.mean(uniform), rel=0.05)


def all_negatives(knowledge: KnowledgeBase) -> np.ndarray:
    """The atoms of open predicates that differ from a fact in the last position alone, and are no facts themselves."""
    found = [np.zeros(0, np.int64)]
    for predicate in knowledge.language.predicates:
        if not predicate.closed:
            columns = list(knowledge.facts(predicate).T[:, :, None])
            columns[-1] = knowledge.language.members(predicate.domains[-1])[None, :]
            found.append(knowledge.base.encode_columns(predicate, columns).ravel())
    return np.setdiff1d(np.concatenate(found), knowledge.evidence.atoms[knowledge.evidence.truth])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["alike", "silent", "telling"])
def test_training_asks_each_atom_with_the_ground_rules_that_are_its_own(kind: str, strategy: str) -> None:
    """The first loss is that of the logits which evaluation and prediction get, over facts and all negatives."""
    problem = noise_problem(kind)
    source, evidence = GroundedOnDemand.from_knowledge(problem.knowledge, STRATEGIES[strategy].grounder), problem.train
    torch.manual_seed(1)
    model = R2N.build(problem.knowledge, dim=4, layers=2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.7)  # logits far enough from 0 to tell atoms apart
    logits = AtomLogits(model, source, evidence)
    facts = evidence.atoms[evidence.truth & ~closed_atoms(model.base, evidence.atoms)]
    parts = [np.logaddexp(0, -logits(facts)), np.logaddexp(0, logits(all_negatives(problem.knowledge)))]
    epochs = fit(model, source, evidence, epochs=1, corrupted_positions=[-1], hiding=0.0)
    assert next(iter(epochs)).supervised == pytest.approx(np.concatenate(parts).mean(), rel=1e-5)


# rankings

STOPPING = {"to the end": (), "stopped early": ("training.patience=12", "training.validate_every=4")}


def trained(problem: Problem, seed: int = 0) -> tuple[Run, list[Epoch]]:
    run = prepare_run(problem, problem.options, seed)
    return run, list(run.trainer)


def all_logits(run: Run, logits: AtomLogits) -> Logits:
    """The logits of all atoms of p, whether anybody asks for them or not."""
    base, index = run.problem.knowledge.base, run.problem.knowledge.language.predicate_index("p")
    return logits(np.arange(base.offsets[index], base.offsets[index + 1])).reshape(-1, base.shapes[index][1])


@pytest.mark.parametrize(
    ("kind", "strategy", "reads", "stopping"),
    [
        ("alike", "full", "off", "stopped early"),
        ("alike", "known-body", "only", "to the end"),
        ("alike", "backward(0,1)", "only", "stopped early"),
        ("alike", "backward(1,2)", "off", "to the end"),
        ("silent", "full", "only", "stopped early"),
    ],
)
def test_what_the_rules_do_not_determine_is_at_chance(kind: str, strategy: str, reads: str, stopping: str) -> None:
    chosen = STRATEGIES[strategy]
    problem = noise_problem(kind, *chosen.options, f"model.evidence_input={reads}", *STOPPING[stopping])
    run, epochs = trained(problem)
    source = GroundedOnDemand.from_knowledge(problem.knowledge, chosen.grounder)
    logits = all_logits(run, AtomLogits(run.model, source, problem.knowledge.evidence))
    train, valid, test = (truth_of(problem, part) for part in (problem.train, problem.valid, problem.test))
    for split, asked, filtered in (("test", test, (train, valid)), ("valid", valid, (train, test))):
        found = run.evaluate(split).metrics["mrr"]
        mean, deviation = chance(logits, asked, filtered)
        assert found == pytest.approx(mean, abs=4 * deviation + SLACK)
        assert found == pytest.approx(mrr(logits, asked, filtered), abs=SLACK), "ranked by everybody's logits"
    if stopping == "stopped early":
        best = max(epoch.valid for epoch in epochs if epoch.valid is not None)
        assert best == pytest.approx(mrr(logits, valid, (train,)), abs=SLACK), "chosen by everybody's logits"


@pytest.mark.parametrize(
    ("strategy", "reads"),
    [("full", "only"), ("known-body", "off"), ("backward(0,1)", "off"), ("backward(1,2)", "only")],
)
def test_what_the_rules_determine_is_found(strategy: str, reads: str) -> None:
    run, _ = trained(noise_problem("telling", *STRATEGIES[strategy].options, f"model.evidence_input={reads}"))
    assert run.evaluate("test").metrics["mrr"] > 0.9


# many seeds, other reasoners, samples and batches

HEADS = {"train": 15, "test": 20, "mixed": 20}
EIGHT = tuple(f"t{i}" for i in range(8))
GROUNDED = ("full", "known-body", "backward(1,2)")
NETWORKS = {
    "r2n": (),
    "r2n that reads evidence too": ("model.evidence_input=add",),
    "r2n that reads evidence only": ("model.evidence_input=only",),
    "fgnn": ("model.reasoner=fgnn",),
    "mean-field": ("model.reasoner=mean-field", "model.evidence_input=add"),
    "none": ("model.reasoner=none",),
}
SAMPLING = {
    "all corruptions": (),
    "3 corruptions": ("training.negatives=3",),
    "batches": ("training.batch_size=4", "training.negatives=3", "training.loss=softmax"),
}
SMALL = ("model.dim=4", "training.epochs=5", "training.learning_rate=0.05")


def above_chance(strategy: str, network: str, sampling: str, seed: int) -> tuple[float, float]:
    """How far MRR and AP are above chance on noise, asked in a body of a rule and in a head."""
    changes = (*STRATEGIES[strategy].options, *NETWORKS[network], *SAMPLING[sampling], *SMALL)
    problem = noise_problem("spread", *changes, seed=seed, heads=HEADS, tails=EIGHT)
    run, _ = trained(problem, seed + 1000)  # what the network draws is not what the problem draws
    mixed = problem.queries["mixed"]
    train, test, others = (truth_of(problem, part) for part in (problem.train, problem.test, mixed))
    by_head = np.lexsort((~mixed.truth, problem.knowledge.base.decode(mixed.atoms)[1][:, 0]))
    own, other = run.logits()(mixed.atoms[by_head]).reshape(-1, 2).T
    ranked = run.evaluate("test").metrics["mrr"] - chance(all_logits(run, run.logits()), test, (train, others))[0]
    return ranked, run.evaluate("mixed").metrics["ap"] - chance_ap(own, other)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "network"),
    [(strategy, network) for strategy in GROUNDED for network in NETWORKS if network != "none" or strategy == "full"],
)
def test_noise_is_at_chance(strategy: str, network: str) -> None:
    """Over 20 seeds a standard error is about 0.01; of 78 numbers hardly ever one is beyond four by chance itself."""
    for sampling in SAMPLING:
        found = np.array([above_chance(strategy, network, sampling, seed) for seed in range(20)])
        errors = found.mean(0) / (found.std(0, ddof=1) / np.sqrt(len(found)))
        assert np.abs(errors).max() < 4, (sampling, errors)


def test_noise_is_near_chance_in_batches() -> None:
    """Two seeds: a leak would be worth several tenths."""
    found = [above_chance("backward(1,2)", "r2n", "batches", seed) for seed in range(2)]
    ranked, classified = np.mean(found, axis=0)
    assert abs(ranked) < 0.15
    assert abs(classified) < 0.25


def test_leave_one_out_keeps_the_network_from_learning_that_facts_are_known() -> None:
    """Every true fact of the training, and no other atom, stands in the body of a rule that means nothing."""
    found = {}
    for leave_one_out in ("false", "true"):
        options = (
            "grounding.strategy=known-body",
            "model.evidence_input=only",
            "training.batch_size=20",
            "training.epochs=20",
            "training.learning_rate=0.05",
            f"training.leave_one_out={leave_one_out}",
        )
        problem = noise_problem("hinted", *options, heads={"train": 60, "test": 1, "mixed": 30}, tails=EIGHT[:6])
        run, epochs = trained(problem)
        found[leave_one_out] = epochs[-1].supervised, run.evaluate("mixed").metrics["ap"]
    (leaking, chance_or_less), (loss, good) = found["false"], found["true"]
    assert leaking < 0.01 < 0.1 < loss
    assert chance_or_less < 0.55
    assert good > 0.7
