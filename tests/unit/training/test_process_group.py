"""One training by several processes."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
import torch

from r2n.data.problem import Problem, load_problem
from r2n.errors import ConfigError
from r2n.model.run import prepare_run
from r2n.training.batches import SINGLE, ProcessGroup
from r2n.training.fit import Trainer
from tests.path_problems import chained
from tests.thread_group import ThreadGroup, together
from tests.toy_problem import write_toy_problem

EQUAL = 1e-6
KINDS = {
    "bce": ["training.batch_size=5"],
    "reads": ["training.batch_size=5", "model.evidence_input=add", "training.leave_one_out=false"],
    "reads, softmax": [
        "training.batch_size=5", "model.evidence_input=add", "training.leave_one_out=false", "training.loss=softmax",
    ],
    "hidden by constant": ["training.batch_size=5", "training.hide_by=constant"],
    "leave one out": ["training.batch_size=4", "model.evidence_input=add", "training.leave_one_out=true"],
    "softmax": ["training.batch_size=5", "training.loss=softmax", "training.semantic_weight=0.5"],
    "rules": [
        "training.batch_size=5", "training.semantic_weight=0.5", "training.n3=0.1", "training.regularisation=product",
    ],
    "known bodies": ["training.batch_size=5", "grounding.strategy=known-body", "training.semantic_weight=0.5"],
    "backward": ["training.batch_size=5", "grounding.strategy=backward", "training.semantic_weight=0.5"],
    "rows": ["training.batch_size=2", "training.loss=full-softmax", "model.reasoner=none", "model.input=distmult"],
    "sparse rows": [
        "training.batch_size=2", "training.loss=softmax", "training.negatives=3", "training.optimiser=adagrad",
        "model.reasoner=none", "model.input=complex", "training.n3=0.1",
    ],
    "counted": ["training.batch_size=5", "model.rules=counted", "training.rule_epochs=2", "training.loss=full-softmax",
                "model.input=distmult"],
}  # fmt: skip


@cache
def toy() -> Problem:
    return load_problem(write_toy_problem(Path(mkdtemp()) / "towns", epochs=2))


def trainers(kind: str, count: int) -> list[Trainer]:
    """As many equal trainers, made one after the other: the seed is the process's."""
    problem = toy()
    options = problem.options.changed(KINDS[kind])
    return [prepare_run(problem, options, seed=3).trainer for _ in range(count)]


def one_step(trainer: Trainer, group: ProcessGroup) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """The gradients of the first step, and its losses."""
    trainer.join(group)
    losses = trainer._descend(next(iter(trainer.batches.epoch(trainer.generator))))
    named = dict(trainer.model.named_parameters())
    return {name: p.grad.to_dense().clone() for name, p in named.items() if p.grad is not None}, losses


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_three_are_those_of_one(kind: str) -> None:
    alone, *others = trainers(kind, 4)
    expected, loss = one_step(alone, SINGLE)
    found = together(3, lambda group: one_step(others[group.rank], group))
    for gradients, losses in found:
        assert torch.allclose(losses, loss, atol=EQUAL, rtol=EQUAL)
        assert gradients.keys() == expected.keys()
        for name, gradient in expected.items():
            assert torch.allclose(gradients[name], gradient, atol=EQUAL, rtol=EQUAL), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_of_two_ends_where_that_of_one_does(kind: str) -> None:
    alone, *others = trainers(kind, 3)
    expected = list(alone)

    def train(group: ThreadGroup) -> list[float]:
        others[group.rank].join(group)
        return [epoch.loss for epoch in others[group.rank]]

    for losses in together(2, train):
        assert losses == pytest.approx([epoch.loss for epoch in expected], rel=1e-4)
    first, second = (trainer.model.state_dict() for trainer in others)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert torch.equal(others[0].generator.get_state(), alone.generator.get_state())


def test_processes_spend_the_same_minutes() -> None:
    made = trainers("bce", 2)
    for trainer in made:
        trainer.options = trainer.options.model_copy(update={"minutes": 1e-6})

    def trained(group: ThreadGroup) -> tuple[int, float]:
        trainer = made[group.rank]
        trainer.join(group)
        for _ in trainer:
            pass
        return trainer.epoch, trainer.seconds

    (epoch, seconds), other = together(2, trained)
    assert (epoch, seconds) == other
    assert (epoch, seconds > 0) == (1, True)


def test_a_training_along_paths_has_one_process() -> None:
    trainer = prepare_run(chained(2, "training.epochs=1", "grounding.depth=2")).trainer
    with pytest.raises(ConfigError, match="a training along paths has one process"):
        trainer.join(ProcessGroup(0, 2))
