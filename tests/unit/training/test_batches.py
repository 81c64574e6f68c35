"""An epoch in parts: what each step sees, and that together they ask what the whole graph asks."""

from typing import Any

import numpy as np
import torch

from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.network.graph_sources import FullGraph, GroundedOnDemand
from r2n.options import TrainingOptions
from r2n.training.batches import FixedBatches, Step, make_batches
from r2n.training.fit import Trainer
from r2n.training.negatives import draw_negatives
from tests.unit.grounding.small_knowledge import knowledge
from tests.unit.training.toy_training import GRAPH, KNOWN, THEORY, network, step_of

APART: dict[str, Any] = {"semantic_weight": 0.5, "hiding": 0.0, "corrupted_positions": ()}


def gradients(trainer: Trainer, step: Step) -> list[torch.Tensor]:
    """The gradients of a step, without taking it."""
    trainer.model.zero_grad()
    trainer.objective.losses(step, trainer.model(step.batch, known=step.known), None).total.backward()
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in trainer.model.parameters()]


def test_the_mean_gradient_of_the_parts_is_that_of_the_whole_graph() -> None:
    trainer = Trainer.from_source(network(), GRAPH, KNOWN.evidence, **APART)
    parts = make_batches(trainer.model, FullGraph(GRAPH), KNOWN.evidence, TrainingOptions(**APART, batches=3)).steps
    assert len(parts) > 1
    assert sum(len(part.graph) for part in parts) <= len(GRAPH)
    assert sum(len(part.targets.asked) for part in parts) == len(step_of(trainer).targets.asked)
    expected = gradients(trainer, step_of(trainer))
    found = [gradients(trainer, part) for part in parts]
    for i, of_whole in enumerate(expected):
        mean = sum((grads[i] for grads in found), torch.zeros_like(of_whole)) / len(parts)
        torch.testing.assert_close(mean, of_whole, rtol=1e-5, atol=1e-7)
    assert any(bool(grad.abs().max() > 1e-3) for grad in expected)


def test_an_epoch_has_each_step_once_in_an_order_that_is_drawn() -> None:
    steps = make_batches(network(), FullGraph(GRAPH), KNOWN.evidence, TrainingOptions(**APART, batches=3)).steps
    batches, generator = FixedBatches(steps), torch.Generator().manual_seed(0)
    orders = [[steps.index(step) for step in batches.epoch(generator)] for _ in range(8)]
    assert all(sorted(order) == list(range(len(steps))) for order in orders)
    assert len({tuple(order) for order in orders}) > 1


def test_the_graph_is_that_around_evidence_and_negatives() -> None:
    """All of these are in it, and nothing that they cannot feel."""
    source = GroundedOnDemand.from_knowledge(KNOWN, FullGrounder())
    (step,) = make_batches(network(), source, KNOWN.evidence, TrainingOptions()).steps
    drawn = draw_negatives(KNOWN.base, KNOWN.evidence, TrainingOptions(), np.random.default_rng(0))
    false = {int(code) for code in step.graph.atoms[step.targets.asked[step.targets.labels[step.targets.asked] == 0]]}
    assert false == set(drawn.codes.tolist())
    assert len(step.graph.atoms) < KNOWN.base.size


def test_ground_rules_of_closed_atoms_alone_that_are_kept_count_in_the_semantic_loss() -> None:
    known = knowledge(
        "rule back: near(x, y) -> near(y, x)\n", "near(n0,n1) near(n1,n2) liesIn(n0,north)", theory=THEORY
    )
    for asks_closed, expected in ((True, 2), (False, 0)):
        source = GroundedOnDemand(Store(known, asks_closed=asks_closed), FullGrounder())
        (step,) = make_batches(network(known=known), source, known.evidence, TrainingOptions()).steps
        assert sum(len(rows) for rows, _ in step.targets.rules) == len(step.graph) == expected


def test_what_would_not_fit_is_measured_part_by_part() -> None:
    seen: list[int] = []
    for batches in (None, 3):
        options = TrainingOptions(**APART, batches=batches)
        source = FullGraph(GRAPH)
        make_batches(network(), source, KNOWN.evidence, options, check=lambda graph: seen.append(len(graph.atoms)))
    assert seen[1] < seen[0]
