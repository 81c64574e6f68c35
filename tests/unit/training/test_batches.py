"""An epoch in parts: what each step sees, and that together they ask what the whole graph asks."""

import pytest
import torch

from r2n.errors import ConfigError
from r2n.training.batches import Step, steps_of
from r2n.training.checkpoint import restore_trainer, trainer_state
from r2n.training.fit import Trainer
from tests.unit.training.toy_training import GRAPH, KNOWN, network, same, toy, weights

APART = {"semantic_weight": 0.5, "hiding": 0.0, "corrupted_positions": ()}


def whole(trainer: Trainer) -> Step:
    return Step(trainer.graph, trainer.questions, trainer.known)


def gradients(trainer: Trainer, step: Step) -> list[torch.Tensor]:
    """The gradients of a step, without taking it."""
    trainer.model.zero_grad()
    predictions = trainer.model(step.graph, known=step.known)
    supervised = step.supervised * trainer._supervised(step.questions, predictions, None)
    (supervised + 0.5 * step.semantic * trainer._semantic(step.questions, predictions)).backward()
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in trainer.model.parameters()]


def test_the_mean_gradient_of_the_parts_is_that_of_the_whole_graph() -> None:
    trainer = Trainer(network(), GRAPH, KNOWN.evidence, **APART)  # pyright: ignore[reportArgumentType]
    parts = steps_of(whole(trainer), 3)
    assert len(parts) > 1
    assert sum(len(part.graph) for part in parts) <= len(GRAPH)
    assert sum(len(part.questions.asked) for part in parts) == len(trainer.questions.asked)
    expected = gradients(trainer, whole(trainer))
    found = [gradients(trainer, part) for part in parts]
    for i, of_whole in enumerate(expected):
        mean = sum((grads[i] for grads in found), torch.zeros_like(of_whole)) / len(parts)
        torch.testing.assert_close(mean, of_whole, rtol=1e-5, atol=1e-7)
    assert any(bool(grad.abs().max() > 1e-3) for grad in expected)


def test_without_batches_a_step_is_the_whole_graph() -> None:
    trainer = Trainer(network(), GRAPH, KNOWN.evidence, **APART)  # pyright: ignore[reportArgumentType]
    step = whole(trainer)
    assert steps_of(step, None) == [step]
    assert [s.graph for s in trainer.steps] == [GRAPH]


def test_an_epoch_tells_the_losses_of_all_parts_and_goes_on_after_a_checkpoint() -> None:
    options = {**APART, "hiding": 0.3, "batches": 2, "epochs": 6}
    first = Trainer(network(), GRAPH, KNOWN.evidence, **options)  # pyright: ignore[reportArgumentType]
    epochs = [first.step() for _ in range(3)]
    kept = trainer_state(first)
    rest = [first.step().loss for _ in range(3)]
    second = Trainer(network(), GRAPH, KNOWN.evidence, **options)  # pyright: ignore[reportArgumentType]
    restore_trainer(second, *kept)
    assert [second.step().loss for _ in range(3)] == rest
    assert same(weights(first.model), weights(second.model))
    assert all(epoch.loss == pytest.approx(epoch.supervised + 0.5 * epoch.semantic) for epoch in epochs)
    again = Trainer(network(), GRAPH, KNOWN.evidence, **options)  # pyright: ignore[reportArgumentType]
    assert [again.step().loss for _ in range(3)] == [epoch.loss for epoch in epochs]


def test_nothing_asked_is_one_step_over_the_graph() -> None:
    known, graph = toy(rules="")
    trainer = Trainer(network(known=known), graph, type(known.evidence).empty(), batches=4, hiding=0.0)
    assert [step.graph for step in trainer.steps] == [graph]


@pytest.mark.parametrize("loss", ["softmax", "full-softmax"])
def test_losses_over_rows_of_the_base_are_not_cut(loss: str) -> None:
    with pytest.raises(ConfigError, match=f"loss = '{loss}' compares atoms of the whole graph"):
        Trainer(network(), GRAPH, KNOWN.evidence, loss=loss, batches=2)  # pyright: ignore[reportArgumentType]
