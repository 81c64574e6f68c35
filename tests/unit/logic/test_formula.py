"""Formulas by hand: truth, positions, text."""

import numpy as np
import pytest
import torch

from r2n.logic.formula import And, Atom, Constant, Iff, Implies, Not, Or, Unequal, Variable, Xor

X = Variable("x")
P, Q, R = (Atom(name, (X,)) for name in "pqr")
BOTH = np.array([[False, False], [False, True], [True, False], [True, True]])


@pytest.mark.parametrize(
    ("formula", "truth"),
    [
        (And((P, Q)), [False, False, False, True]),
        (Or((P, Q)), [False, True, True, True]),
        (Implies(P, Q), [True, True, False, True]),
        (Iff(P, Q), [True, False, False, True]),
        (Xor(P, Q), [False, True, True, False]),
        (And((P, Not(Q))), [False, False, True, False]),
    ],
)
def test_connectives(formula: And, truth: list[bool]) -> None:
    assert formula.evaluate(BOTH).tolist() == truth
    assert formula.evaluate(torch.from_numpy(BOTH)).tolist() == truth
    assert formula.satisfying_assignments().tolist() == BOTH[truth].tolist()


def test_a_repeated_atom_is_one_position() -> None:
    formula = Implies(And((P, Q)), Or((R, P)))
    assert formula.atoms() == (P, Q, R)
    assert And((P, Not(P))).satisfying_assignments().shape == (0, 1)


def test_the_same_name_as_constant_and_as_variable_makes_two_atoms() -> None:
    assert And((P, Atom("p", (Constant("x"),)))).atoms() == (P, Atom("p", (Constant("x"),)))


def test_a_python_bool_has_no_inverse_here() -> None:
    with pytest.raises(TypeError, match="boolean array"):
        P.evaluate(True)
    with pytest.raises(TypeError, match="boolean array"):
        Not(P).evaluate(np.array([1]))


def test_text_has_the_parentheses_it_needs() -> None:
    assert str(Implies(And((P, Not(Q))), Or((Q, R)))) == "p(x) & !q(x) -> q(x) | r(x)"
    assert str(And((Or((P, Q)), R))) == "(p(x) | q(x)) & r(x)"
    assert str(Not(Iff(P, Q))) == "!(p(x) <-> q(x))"
    assert str(Atom("p", (X, Constant('a "b"\\')))) == 'p(x, "a \\"b\\"\\\\")'
    assert str(Unequal(X, Constant("a"))) == 'x != "a"'
