"""What a network is asked, and with which ground rules, never depends on what is held out.

Negatives are drawn once, before the graph, and all of them are asked. Where the rules speak of the true tail of a head
as of every other, no ranking is better or worse than chance.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import r2n
from r2n.data.herbrand import closed_atoms
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.errors import DataError
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.model.run import Run, prepare_run
from r2n.network.factor_graph import FactorGraph
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.r2n import R2N
from r2n.scoring import AtomLogits
from r2n.training.fit import Epoch, fit
from tests.noise_chance import SLACK, Logits, chance, mrr, truth_of
from tests.noise_problem import TAILS, noise_problem
from tests.one_way import STRATEGIES

STOPPING = {"to the end": (), "stopped early": ("training.patience=12", "training.validate_every=4")}

# negatives


def without_rules(knowledge: KnowledgeBase) -> KnowledgeBase:
    return replace(knowledge, theory=replace(knowledge.theory, rules=()))


def all_negatives(knowledge: KnowledgeBase, position: int) -> np.ndarray:
    """The atoms of open predicates that differ from a fact in this position alone, and are no facts themselves."""
    found = [np.zeros(0, np.int64)]
    for predicate in knowledge.language.predicates:
        if not predicate.closed:
            columns = list(knowledge.facts(predicate).T[:, :, None])
            columns[position] = knowledge.language.members(predicate.domains[position])[None, :]
            found.append(knowledge.base.encode_columns(predicate, columns).ravel())
    return np.setdiff1d(np.concatenate(found), knowledge.evidence.atoms[knowledge.evidence.truth])


def expected_loss(logits: AtomLogits, evidence: Evidence, negatives: np.ndarray) -> float:
    """The mean cross-entropy over the facts of open predicates and these negatives."""
    facts = evidence.atoms[evidence.truth & ~closed_atoms(logits.model.base, evidence.atoms)]
    parts = [np.logaddexp(0, -logits(facts)), np.logaddexp(0, logits(negatives))]
    return float(np.concatenate(parts).mean())


def outspoken(model: R2N) -> R2N:
    """The untrained network with logits far enough from 0 to tell atoms apart."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.7)
    return model


def first_loss(model: R2N, given: Any, evidence: Evidence, position: int) -> float:
    """The supervised loss that training finds before its first step."""
    epochs = fit(model, given, evidence, epochs=1, corrupted_positions=[position], hiding=0.0)
    return next(iter(epochs)).supervised


def test_negatives_outside_the_graph_are_an_error() -> None:
    """Left out in silence, all 1,312 atoms that this training asks as false would be held-out facts."""
    problem = r2n.load("umls")
    knowledge = without_rules(problem.knowledge)
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(knowledge)), atoms=problem.atoms)
    model = R2N.build(knowledge, dim=4, layers=0)
    with pytest.raises(DataError, match="graph"):
        first_loss(model, graph, problem.train, -1)


def test_training_asks_as_false_what_was_drawn_and_nothing_else() -> None:
    problem = r2n.load("umls")
    knowledge = without_rules(problem.knowledge)
    source = GroundedOnDemand.of(knowledge, FullGrounder())
    torch.manual_seed(0)
    model = outspoken(R2N.build(knowledge, dim=4, layers=0))
    negatives, held_out = all_negatives(knowledge, -1), np.concatenate([problem.valid.atoms, problem.test.atoms])
    assert 0 < np.isin(negatives, held_out).sum() < len(held_out), "drawn without a look at what is held out"
    logits = AtomLogits(model, source, problem.train)
    expected = expected_loss(logits, problem.train, negatives)
    leaking = expected_loss(logits, problem.train, np.intersect1d(negatives, held_out))
    assert leaking != pytest.approx(expected, rel=1e-3), "the loss tells which atoms are asked"
    assert first_loss(model, source, problem.train, -1) == pytest.approx(expected, rel=1e-5)


def test_a_graph_that_holds_all_negatives_trains_as_its_source_does() -> None:
    problem = noise_problem("alike")
    knowledge = problem.knowledge
    atoms = np.union1d(problem.train.atoms, all_negatives(knowledge, -1))
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(knowledge)), atoms=atoms)
    losses = []
    for given in (graph, GroundedOnDemand.of(knowledge, FullGrounder())):
        torch.manual_seed(0)
        model = R2N.build(knowledge, dim=4, layers=1)
        epochs = fit(model, given, problem.train, epochs=3, corrupted_positions=[-1], hiding=0.0)
        losses.append([epoch.loss for epoch in epochs])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["alike", "silent", "telling"])
def test_training_asks_each_atom_with_the_ground_rules_that_are_its_own(kind: str, strategy: str) -> None:
    """The first loss is that of the logits which evaluation and prediction get."""
    problem = noise_problem(kind)
    source = GroundedOnDemand.of(problem.knowledge, STRATEGIES[strategy].grounder)
    torch.manual_seed(1)
    model = outspoken(R2N.build(problem.knowledge, dim=4, layers=2))
    logits = AtomLogits(model, source, problem.train)
    expected = expected_loss(logits, problem.train, all_negatives(problem.knowledge, -1))
    assert first_loss(model, source, problem.train, -1) == pytest.approx(expected, rel=1e-5)


# ranking


def logits_of(run: Run, strategy: str) -> Logits:
    """The logits of all atoms of p, whether anybody asks for them or not."""
    knowledge = run.problem.knowledge
    index = knowledge.language.predicate_index("p")
    source = GroundedOnDemand.of(knowledge, STRATEGIES[strategy].grounder)
    codes = np.arange(knowledge.base.offsets[index], knowledge.base.offsets[index + 1])
    return AtomLogits(run.model, source, knowledge.evidence)(codes).reshape(-1, len(TAILS))


def trained(kind: str, strategy: str, *changes: str) -> tuple[Run, list[Epoch]]:
    problem = noise_problem(kind, *STRATEGIES[strategy].options, *changes)
    run = prepare_run(problem, problem.options, 0)
    return run, list(run.trainer)


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
def test_what_the_rules_do_not_tell_is_at_chance(kind: str, strategy: str, reads: str, stopping: str) -> None:
    run, epochs = trained(kind, strategy, f"model.evidence_input={reads}", *STOPPING[stopping])
    logits, problem = logits_of(run, strategy), run.problem
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
def test_what_the_rules_tell_is_found(strategy: str, reads: str) -> None:
    run, _ = trained("telling", strategy, f"model.evidence_input={reads}")
    assert run.evaluate("test").metrics["mrr"] > 0.9
