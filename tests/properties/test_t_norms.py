"""Fuzzy truth is what plain loops say, agrees with logic where it is crisp, and has the slopes it claims."""

from itertools import product
from random import Random

import pytest
import torch
from hypothesis import assume, given
from torch.autograd import gradcheck

from r2n.components import t_norms
from r2n.logic.formula import And, Atom, Constant, Formula, Iff, Implies, Not, Or, Variable, Xor
from r2n.training.objective import fuzzy_truth
from tests.examples import at_most
from tests.oracles import t_norms as oracle
from tests.theory_strategies import dice, make_formula

TERMS = (Variable("x"), Variable("y"), Constant("a"))
POOL = [Atom(name, (term,)) for name in ("p", "q") for term in TERMS]
STEP = 1e-6


def drawn(dice: Random) -> tuple[Formula, list[list[float]]]:
    """A formula, and truths of its atoms."""
    formula = make_formula(dice, dice.sample(POOL, 4))
    truths = [[dice.choice((0.0, 0.5, 1.0, dice.random(), dice.random())) for _ in formula.atoms()] for _ in range(5)]
    return formula, truths


DRAWN = dice().map(drawn)


@pytest.mark.parametrize("name", list(t_norms))
@at_most(40, "there are three t-norms, and formulas evaluated by loops")
@given(DRAWN)
def test_it_is_what_plain_loops_say_and_stays_within_0_and_1(
    name: str, case: tuple[Formula, list[list[float]]]
) -> None:
    formula, truths = case
    found = fuzzy_truth(formula, torch.tensor(truths, dtype=torch.float64), t_norms[name].load())
    expected = [oracle.fuzzy(name, formula, dict(zip(formula.atoms(), row, strict=True))) for row in truths]
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
    assert all(-1e-12 <= truth <= 1 + 1e-12 for truth in found.tolist())


@pytest.mark.parametrize("name", list(t_norms))
@at_most(40, "there are three t-norms, and formulas evaluated by loops")
@given(DRAWN)
def test_on_crisp_truths_it_is_the_truth(name: str, case: tuple[Formula, list[list[float]]]) -> None:
    formula, _ = case
    truths = torch.tensor(list(product([False, True], repeat=len(formula.atoms()))))
    found = fuzzy_truth(formula, truths.float(), t_norms[name].load())
    assert found.tolist() == formula.evaluate(truths).float().tolist(), "exactly, not nearly"


@pytest.mark.parametrize("name", list(t_norms))
@at_most(15, "there are three t-norms, and formulas evaluated by loops")
@given(DRAWN, DRAWN)
def test_equivalent_ways_to_write_a_formula_are_equally_true(
    name: str, one: tuple[Formula, list[list[float]]], other: tuple[Formula, list[list[float]]]
) -> None:
    left, right = one[0], other[0]
    pairs = [
        (Implies(left, right), Or((Not(left), right))),
        (Not(And((left, right))), Or((Not(left), Not(right)))),
        (Xor(left, right), Or((And((left, Not(right))), And((right, Not(left)))))),
        (Iff(left, right), Iff(right, left)),
    ]
    for first, second in pairs:
        positions = first.atoms()
        truths = torch.linspace(0.03, 0.97, 7 * len(positions), dtype=torch.float64).reshape(len(positions), 7).t()
        columns = [positions.index(atom) for atom in second.atoms()]
        found = fuzzy_truth(second, truths[:, columns], t_norms[name].load())
        assert torch.allclose(fuzzy_truth(first, truths, t_norms[name].load()), found, atol=1e-12)


@pytest.mark.parametrize("name", list(t_norms))
@at_most(25, "there are three t-norms, and formulas evaluated by loops")
@given(DRAWN)
def test_its_gradient_is_its_slope_away_from_kinks(name: str, case: tuple[Formula, list[list[float]]]) -> None:
    formula, _ = case
    dice = Random(str(formula))
    truths = torch.tensor([[dice.uniform(0.05, 0.95) for _ in formula.atoms()]], dtype=torch.float64)

    def truth(values: torch.Tensor) -> torch.Tensor:
        return fuzzy_truth(formula, values, t_norms[name].load())

    for step in torch.eye(truths.shape[1], dtype=torch.float64) * 10 * STEP:  # one slope on both sides: no kink
        up, here, down = (truth(truths + sign * step) for sign in (1, 0, -1))
        assume(bool(((up - here) - (here - down)).abs().max() < 1e-8))
    assert gradcheck(truth, truths.requires_grad_(), eps=STEP)
