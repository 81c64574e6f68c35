"""The training loop: its optimiser, and when it stops: divergence, patience, the best weights."""

from math import cos, nan, pi
from typing import Any

import pytest
import torch
from torch import Tensor

from r2n.grounding.store import Store
from r2n.network.graph_sources import Counted, Ungrounded
from r2n.network.r2n import R2N
from r2n.options import OptimisationOptions, TrainingOptions
from r2n.training.fit import DivergedError, Finalize, Trainer, batches_of, make_optimizer, set_learning_rates
from r2n.training.rows import RuleBatches
from tests.unit.training.toy_training import GRAPH, KNOWN, RULES, network, same, toy, trained, weights

# the optimiser


@pytest.mark.parametrize("own", [None, 0.001])
def test_rates_are_constant_or_fall_along_a_cosine_and_reasoning_layers_may_have_their_own(own: float | None) -> None:
    model = network()
    for schedule, shares in (
        ("constant", [1.0] * 8),
        ("cosine", [(1 + cos(pi * epoch / 8)) / 2 for epoch in range(8)]),
    ):
        given = {"epochs": 8, "learning_rate": 0.02, "rule_learning_rate": own, "schedule": schedule}
        options = TrainingOptions.model_validate(given)
        optimizer = make_optimizer(model, options)
        for epoch, share in enumerate(shares):
            set_learning_rates(optimizer, options, epoch)
            expected = [0.02 * share, (own or 0.02) * share]
            assert [group["lr"] for group in optimizer.param_groups] == pytest.approx(expected)
        assert any(model.constants.vectors is p for p in optimizer.param_groups[0]["params"])
        assert sum(len(group["params"]) for group in optimizer.param_groups) == len(list(model.parameters()))


def gradient_norm(model: R2N) -> float:
    squares = [float(p.grad.square().sum()) for p in model.parameters() if p.grad is not None]
    return sum(squares) ** 0.5


def test_gradients_are_clipped_together() -> None:
    free, clipped = network(), network()
    Trainer.from_source(free, GRAPH, KNOWN.evidence).step()
    Trainer.from_source(clipped, GRAPH, KNOWN.evidence, clip=0.01).step()
    assert gradient_norm(free) > 0.05
    assert gradient_norm(clipped) == pytest.approx(0.01, rel=1e-3)
    kept = [p.grad for p in clipped.parameters() if p.grad is not None]
    scale = 0.01 / gradient_norm(free)
    for ours, full in zip(kept, (p.grad for p in free.parameters() if p.grad is not None), strict=True):
        torch.testing.assert_close(ours, full * scale, rtol=1e-3, atol=1e-7)


def decayed(**decays: float) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The weights before and after steps that no loss has a part in."""
    model, options = network(), OptimisationOptions.model_validate(decays)
    before, optimizer = weights(model), make_optimizer(model, options)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for epoch in range(5):
        set_learning_rates(optimizer, options, epoch)
        optimizer.step()
    return before, weights(model)


@pytest.mark.parametrize("of_input", [True, False])
def test_weight_decay_pulls_the_input_layer_or_all_others_towards_zero(of_input: bool) -> None:
    before, after = decayed(**{"input_weight_decay" if of_input else "weight_decay": 0.1})
    pulled = {name for name in before if name.startswith(("constants.", "atom_embedding.")) == of_input}
    assert len(pulled) >= 2
    for name in before:
        if name not in pulled:
            assert torch.equal(after[name], before[name]), name
        elif bool(before[name].any()):  # biases begin with zero
            assert float(after[name].abs().mean()) < float(before[name].abs().mean()), name


# divergence


@pytest.mark.parametrize("name", ["constants.vectors", "layers.0.update_rule.0.layers.0.bias"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_with_the_epoch_and_the_largest_parameters(value: float, name: str) -> None:
    model = network()
    trainer = Trainer.from_source(model, GRAPH, KNOWN.evidence)
    trainer.step()
    trainer.step()
    with torch.no_grad():
        model.get_parameter(name).view(-1)[0] = value
    with pytest.raises(DivergedError) as caught:
        trainer.step()
    text = str(caught.value)
    assert f" in epoch 3; the largest parameters are {name} ({value}), " in text
    assert "lower training.learning_rate, set training.clip, or choose another aggregation" in text


def test_an_infinite_gradient_of_a_finite_loss_never_reaches_the_weights() -> None:
    model = network()
    trainer = Trainer.from_source(model, GRAPH, KNOWN.evidence)
    next(model.parameters()).register_hook(lambda grad: grad * torch.inf)
    kept = weights(model)
    with pytest.raises(DivergedError, match=r"the gradient is (nan|inf) in epoch 1"):
        trainer.step()
    assert same(kept, weights(model))


# early stopping


def test_a_first_validation_that_is_no_number_does_not_stand_in_the_way() -> None:
    model = network()
    trainer = Trainer.from_source(
        model, GRAPH, KNOWN.evidence, epochs=3, validate=Scripted(nan, 0.5, 0.4), validate_every=1, patience=3
    )
    list(trainer)
    assert (trainer.best, trainer.best_epoch) == (0.5, 2)


class Scripted:
    """A validation that says what it is told, and remembers the weights it saw."""

    def __init__(self, *values: float) -> None:
        self.values, self.seen = list(values), []

    def __call__(self, model: R2N) -> float:
        assert not model.training
        assert not torch.is_grad_enabled()
        self.seen.append(weights(model))
        return self.values[min(len(self.seen), len(self.values)) - 1]


def test_training_stops_when_the_metric_has_not_risen_for_patience_epochs_and_the_best_weights_come_back() -> None:
    validate, model = Scripted(0.1, 0.5, 0.5, 0.4, 0.3), network()  # an equal value is no rise
    epochs = trained(model, epochs=50, validate=validate, validate_every=1, patience=3)
    assert [epoch.number for epoch in epochs] == [1, 2, 3, 4, 5]
    assert [epoch.valid for epoch in epochs] == [0.1, 0.5, 0.5, 0.4, 0.3]
    assert same(weights(model), validate.seen[1])
    assert not same(weights(model), validate.seen[-1])
    assert not model.training


def test_the_metric_is_measured_every_so_many_epochs_and_at_the_last_and_patience_counts_epochs() -> None:
    epochs = trained(network(), epochs=7, validate=Scripted(0.1, 0.2, 0.3), validate_every=3, patience=100)
    assert [epoch.valid for epoch in epochs] == [None, None, 0.1, None, None, 0.2, 0.3]
    assert len(trained(network(), epochs=50, validate=Scripted(0.5, 0.4), validate_every=2, patience=4)) == 6


def test_validation_does_not_change_the_training() -> None:
    with_it, without = network(), network()
    trained(with_it, epochs=6, validate=Scripted(0.1, 0.2, 0.3, 0.4, 0.5, 0.6), validate_every=1, patience=50)
    trained(without, epochs=6)
    assert same(weights(with_it), weights(without))


def counted_training(finalize: Finalize | None = None, **options: Any) -> Trainer:
    """A network whose rule is counted, over the toy."""
    known, _ = toy(rules=RULES.split("implicit")[0])
    model = network(known=known, rules="counted")
    source = Counted(Ungrounded(), Store(known), known.theory.rules)
    wanted = TrainingOptions(**{"epochs": 4, "rule_epochs": 2, "hiding": 0.0, **options})
    batches = batches_of(model, source, known.evidence, wanted)
    assert source.counts is not None
    rules = RuleBatches(source.counts, wanted)
    return Trainer(model, batches, known.evidence, wanted, rule_batches=rules, finalize=finalize, seed=0)


def test_counted_rules_are_trained_in_their_epochs_alone() -> None:
    trainer = counted_training()
    assert trainer.model.counted is not None
    before, moved = trainer.model.counted.weights.tolist(), []
    for record in trainer:
        after = trainer.model.counted.weights.tolist()
        moved.append(after != before)
        before = after
        assert (record.rules > 0) == moved[-1]
    assert moved == [True, True, False, False]


def test_counted_rules_have_a_rate_of_their_own_and_no_decay() -> None:
    for own, expected in ((0.2, 0.2), (None, 0.001)):
        trainer = counted_training(rule_learning_rate=0.001, counted_learning_rate=own, weight_decay=0.5)
        counted = trainer.model.counted
        assert counted is not None
        trainer.step()
        groups = trainer.optimizer.param_groups
        assert [(group["lr"], group["weight_decay"]) for group in groups] == [(0.01, 0), (0.001, 0.5), (expected, 0)]
        grouped = [id(parameter) for group in groups for parameter in group["params"]]
        assert sorted(grouped) == sorted(map(id, trainer.model.parameters()))
        assert set(map(id, counted.parameters())) == set(map(id, groups[2]["params"]))


def test_the_last_choices_are_made_once_on_the_weights_that_stay() -> None:
    seen: list[dict[str, Tensor]] = []

    def finalize(model: R2N) -> None:
        assert not model.training
        assert model.combination is not None
        seen.append(weights(model))
        model.combination.way.fill_(3)

    metrics = iter([0.1, 0.9, 0.3, 0.2])
    kept: list[dict[str, Tensor]] = []
    trainer = counted_training(finalize, patience=10, validate_every=1)
    trainer.validate = lambda model: kept.append(weights(model)) or next(metrics)
    list(trainer)
    assert len(seen) == 1
    assert same(seen[0], kept[1]), "the best ones"
    expected = {**kept[1], "combination.way": torch.tensor(3)}
    assert same(weights(trainer.model), expected)


def _make_infinite(model: R2N) -> None:
    for parameter in model.parameters():
        parameter.data.fill_(torch.inf)


def test_weights_that_are_infinite_after_the_last_step_are_refused() -> None:
    model = network()
    trainer = Trainer.from_source(model, GRAPH, KNOWN.evidence, epochs=1, learning_rate=1e30)
    trainer.optimizer.register_step_post_hook(lambda *_: _make_infinite(model))
    with pytest.raises(DivergedError, match="a weight is not finite after epoch 1; the largest parameters are"):
        trainer.step()
