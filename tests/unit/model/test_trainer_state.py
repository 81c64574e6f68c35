"""A trainer put where another one stopped."""

import pytest
import torch

from r2n.errors import CheckpointError
from r2n.store.checkpoint import restore_trainer, trainer_state
from r2n.training.fit import Trainer
from tests.unit.training.toy_training import GRAPH, KNOWN, network, same, weights


def trainer(dim: int = 6) -> Trainer:
    return Trainer.of(network(dim=dim, rule_dropout=0.2), GRAPH, KNOWN.evidence, epochs=9)


def test_a_trainer_goes_on_where_another_stopped_bit_for_bit() -> None:
    first = trainer()
    for _ in range(3):
        first.step()
    kept = trainer_state(first)
    rest = [first.step().loss for _ in range(3)]
    second = trainer()
    restore_trainer(second, *kept)
    assert second.epoch == 3
    assert [second.step().loss for _ in range(3)] == rest
    assert same(weights(first.model), weights(second.model))


def test_what_is_kept_does_not_change_with_the_trainer() -> None:
    first = trainer()
    kept = {name: value.clone() for name, value in trainer_state(first)[0].items()}
    tensors, _ = trainer_state(first)
    first.step()
    assert all(torch.equal(tensors[name], kept[name]) for name in kept)


def test_another_network_is_refused() -> None:
    with pytest.raises(CheckpointError, match="does not fit this network"):
        restore_trainer(trainer(dim=5), *trainer_state(trainer()))
