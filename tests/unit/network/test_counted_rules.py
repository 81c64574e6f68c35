"""Weights of counted rules, and sums in the log, against loops."""

from math import exp, log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from r2n.logic.parser import parse_theory
from r2n.network.mixture import CountedRules, log_sum
from tests.examples import at_most

THEORY = parse_theory("domain d\npredicate p(d, d)\nrule one: p(x, y) -> p(y, x)\nrule two: p(x, x) -> p(x, y)\n")


def test_each_rule_and_position_has_its_own_weight_and_power() -> None:
    counted = CountedRules(THEORY.rules, predicates=3, positions=2)
    assert counted.weights.shape == counted.powers.shape == (2, 2)
    assert counted.rest.shape == (3, 2)
    with torch.no_grad():
        counted.weights.copy_(torch.tensor([[0.1, 0.2], [0.3, 0.4]]))
        counted.powers.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    for position in range(2):
        for rule in range(2):
            for count in (1, 5):
                found = counted.masses(position, torch.tensor([rule]), torch.tensor([log(count)]))
                weight, power = counted.weights[rule, position].item(), counted.powers[rule, position].item()
                assert exp(found.item()) == pytest.approx(exp(weight) * count**power, rel=1e-5)


@at_most(50, because="a sum has few cases")
@given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.integers(1, 5), st.sampled_from([1.0, 60.0]))
def test_sums_of_exponentials_by_group(seed: int, size: int, count: int, scale: float) -> None:
    dice = np.random.default_rng(seed)
    values = torch.tensor(dice.normal(size=size) * scale, dtype=torch.float64, requires_grad=True)
    groups = torch.from_numpy(dice.integers(0, count, size))
    found = log_sum(values, groups, count)
    for group in range(count):
        own = [value for value, g in zip(values.tolist(), groups.tolist(), strict=True) if g == group]
        if own:
            assert found[group].item() == pytest.approx(log(sum(map(exp, own))))
        else:
            assert found[group].item() < -1e29
    if size:
        found[groups.unique()].sum().backward()
        assert values.grad is not None
        shares = torch.exp(values.detach() - found.detach()[groups])
        torch.testing.assert_close(values.grad, shares)
