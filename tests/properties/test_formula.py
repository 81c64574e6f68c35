"""Formulas on arrays are what a truth table on Python values says."""

import numpy as np
import pytest
import torch
from hypothesis import given

from r2n.logic.formula import And, Atom, Constant, Formula, Iff, Not, Or, Variable, Xor
from tests.oracles import formula as oracle
from tests.theory_strategies import dice, make_formula

TERMS = (Variable("x"), Variable("y"), Constant("a"), Constant("x"))
POOL = [Atom(name, (term,)) for name in ("p", "q") for term in TERMS] + [Atom("p", (TERMS[0], TERMS[0]))]
FORMULAS = dice().map(lambda dice: make_formula(dice, dice.sample(POOL, 4)))


@given(FORMULAS)
def test_atoms_stand_in_order_of_first_occurrence(formula: Formula) -> None:
    assert list(formula.atoms()) == oracle.atoms(formula)


@given(FORMULAS)
def test_evaluate_is_the_truth_table_in_numpy_and_in_torch(formula: Formula) -> None:
    table = oracle.truth_table(formula)
    truths = np.array([row for row, _ in table], dtype=bool)
    expected = [truth for _, truth in table]
    assert formula.evaluate(truths).tolist() == expected
    assert formula.evaluate(torch.from_numpy(truths)).tolist() == expected


@given(FORMULAS)
def test_evaluate_keeps_leading_axes(formula: Formula) -> None:
    table = oracle.truth_table(formula)
    truths = np.array([row for row, _ in table], dtype=bool)
    stacked = np.stack([truths, ~truths])
    both = formula.evaluate(stacked)
    assert both.shape == stacked.shape[:-1]
    assert both[0].tolist() == [truth for _, truth in table]
    assert both[1].tolist() == formula.evaluate(~truths).tolist()
    assert np.shape(formula.evaluate(truths[0])) == ()


@given(FORMULAS)
def test_satisfying_assignments_are_the_true_rows_each_once(formula: Formula) -> None:
    found = formula.satisfying_assignments()
    expected = [row for row, truth in oracle.truth_table(formula) if truth]
    assert found.dtype == bool
    assert found.shape == (len(expected), len(oracle.atoms(formula)))
    assert sorted(map(tuple, found.tolist())) == sorted(expected)


def truth_by_atom(formula: Formula, positions: tuple[Atom, ...], truths: np.ndarray) -> list[bool]:
    columns = [positions.index(atom) for atom in formula.atoms()]
    return formula.evaluate(truths[:, columns]).tolist()


@given(FORMULAS, FORMULAS)
def test_de_morgan_and_the_two_sides_of_iff(left: Formula, right: Formula) -> None:
    positions = And((left, right)).atoms()
    if len(positions) > 8:
        return
    truths = np.array([row for row, _ in oracle.truth_table(And((left, right)))], dtype=bool)
    same = [
        (Not(And((left, right))), Or((Not(left), Not(right)))),
        (Not(Or((left, right))), And((Not(left), Not(right)))),
        (Not(Iff(left, right)), Xor(left, right)),
    ]
    for one, other in same:
        assert truth_by_atom(one, positions, truths) == truth_by_atom(other, positions, truths)


@pytest.mark.parametrize("truth", [True, False, [True], np.array([1]), np.array([0.5])])
def test_only_boolean_arrays_have_a_truth(truth: object) -> None:
    with pytest.raises((TypeError, Exception), match=r"bool|type"):
        Not(Atom("p", (Variable("x"),))).evaluate(truth)
