"""The optimiser of a network: which it is, and the rates of an epoch; test_fit_optimising.py has it at work."""

import pytest
import torch

from r2n.model.run import Run
from r2n.options import TrainingOptions
from r2n.training.fit import make_optimizer, set_learning_rates


@pytest.mark.parametrize(("name", "kind"), [("adam", torch.optim.Adam), ("adagrad", torch.optim.Adagrad)])
def test_input_layer_and_others_have_a_decay_of_their_own(name: str, kind: type, toy_run: Run) -> None:
    options = TrainingOptions(optimiser=name, weight_decay=0.1, input_weight_decay=0.2)  # pyright: ignore[reportArgumentType]
    made = make_optimizer(toy_run.model, options)
    assert isinstance(made, kind)
    assert [group["weight_decay"] for group in made.param_groups] == [0.2, 0.1]
    held = {id(parameter) for group in made.param_groups for parameter in group["params"]}
    assert held == {id(parameter) for parameter in toy_run.model.parameters()}


def test_rates_follow_the_schedule(toy_run: Run) -> None:
    options = TrainingOptions(epochs=4, learning_rate=0.2, rule_learning_rate=0.1, schedule="cosine")
    made = make_optimizer(toy_run.model, options)
    rates = []
    for epoch in (0, 2, 4):
        set_learning_rates(made, options, epoch)
        rates.append([group["lr"] for group in made.param_groups])
    assert rates == [pytest.approx([0.2, 0.1]), pytest.approx([0.1, 0.05]), pytest.approx([0.0, 0.0])]
