"""Formulas on arrays are what a truth table says, and their fuzzy truth what plain loops say, with its slopes."""

from itertools import product
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from torch.autograd import gradcheck

from r2n.components import t_norms
from r2n.logic.formula import Atom, Constant, Formula, Not, Variable
from r2n.logic.theory import Rule
from r2n.network.belief_propagation import satisfying
from r2n.training.objective import fuzzy_truth
from tests.examples import at_most
from tests.oracles import formula as oracle
from tests.oracles import t_norms as fuzzy_oracle
from tests.theory_strategies import dice, make_formula

TERMS = (Variable("x"), Variable("y"), Constant("a"), Constant("x"))
POOL = [Atom(name, (term,)) for name in ("p", "q") for term in TERMS] + [Atom("p", (TERMS[0], TERMS[0]))]
FORMULAS = dice().map(lambda dice: make_formula(dice, dice.sample(POOL, 4)))


@given(FORMULAS)
def test_atoms_truths_and_satisfying_assignments_are_those_of_the_truth_table(formula: Formula) -> None:
    """Atoms in order of first occurrence; truths in numpy and in torch, with any leading axes."""
    assert list(formula.atoms()) == oracle.atoms(formula)
    table = oracle.truth_table(formula)
    truths, expected = np.array([row for row, _ in table], dtype=bool), [truth for _, truth in table]
    assert formula.evaluate(truths).tolist() == expected
    assert formula.evaluate(torch.from_numpy(truths)).tolist() == expected
    stacked = np.stack([truths, ~truths])
    both = formula.evaluate(stacked)
    assert both.shape == stacked.shape[:-1]
    assert both.tolist() == [expected, formula.evaluate(~truths).tolist()]
    assert np.shape(formula.evaluate(truths[0])) == ()
    found = satisfying(Rule.explicit("r", formula))
    assert sorted(map(tuple, found)) == sorted(row for row, truth in table if truth)


@pytest.mark.parametrize("truth", [True, False, [True], np.array([1]), np.array([0.5])])
def test_only_boolean_arrays_have_a_truth(truth: object) -> None:
    with pytest.raises((TypeError, Exception), match=r"bool|type"):
        Not(Atom("p", (Variable("x"),))).evaluate(truth)


FUZZY_POOL = [Atom(name, (term,)) for name in ("p", "q") for term in (Variable("x"), Variable("y"), Constant("a"))]
SMALL_FORMULAS = dice().map(lambda dice: make_formula(dice, dice.sample(FUZZY_POOL, 4)))
STEP = 1e-6


@pytest.mark.parametrize("name", list(t_norms))
@at_most(80, "there are three t-norms, and formulas evaluated by loops")
@given(SMALL_FORMULAS, dice())
def test_it_is_what_plain_loops_say_within_0_and_1_and_on_crisp_truths_the_truth(
    name: str, formula: Formula, dice: Random
) -> None:
    norm, atoms = t_norms[name].load(), formula.atoms()
    truths = [[dice.choice((0.0, 0.5, 1.0, dice.random(), dice.random())) for _ in atoms] for _ in range(5)]
    found = fuzzy_truth(formula, torch.tensor(truths, dtype=torch.float64), norm)
    expected = [fuzzy_oracle.fuzzy(name, formula, dict(zip(atoms, row, strict=True))) for row in truths]
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
    assert all(-1e-12 <= truth <= 1 + 1e-12 for truth in found.tolist())
    crisp = torch.tensor(list(product([False, True], repeat=len(atoms))))
    found = fuzzy_truth(formula, crisp.float(), norm)
    assert found.tolist() == formula.evaluate(crisp).float().tolist(), "exactly, not nearly"


@pytest.mark.parametrize("name", list(t_norms))
@at_most(25, "there are three t-norms, and formulas evaluated by loops")
@given(SMALL_FORMULAS)
def test_its_gradient_is_its_slope_away_from_kinks(name: str, formula: Formula) -> None:
    dice = Random(str(formula))
    truths = torch.tensor([[dice.uniform(0.05, 0.95) for _ in formula.atoms()]], dtype=torch.float64)

    def truth(values: torch.Tensor) -> torch.Tensor:
        return fuzzy_truth(formula, values, t_norms[name].load())

    for step in torch.eye(truths.shape[1], dtype=torch.float64) * 10 * STEP:  # one slope on both sides: no kink
        up, here, down = (truth(truths + sign * step) for sign in (1, 0, -1))
        assume(bool(((up - here) - (here - down)).abs().max() < 1e-8))
    assert gradcheck(truth, truths.requires_grad_(), eps=STEP)
