"""The layout of atoms for the pair classifier: which terms there are, and who has them."""

import numpy as np
import torch
from scipy.sparse import csr_array

from r2n.data.features import bags_of_words
from r2n.network.pair_embedding import Term, collate_pairs, pair_counts, pair_of_bags, possible_terms

TEXTS = ("a b c", "b c d", "", "x")
BAGS = bags_of_words(TEXTS, np.array([True, True, True, False]))


def test_what_two_bags_have_apart_and_together() -> None:
    bags = csr_array(np.array([[1.0, 2, 0], [0, 2, 3]]))
    left, right = np.array([0, 0]), np.array([1, 0])
    both = pair_of_bags(bags, left, right, ("difference", "product"))
    assert both.toarray().tolist() == [[1, 0, 3, 0, 4, 0], [0, 0, 0, 1, 4, 0]]
    assert both.nnz == 5
    assert pair_of_bags(bags, left, right, ("product",)).toarray().tolist() == [[0, 4, 0], [1, 4, 0]]


def test_counts_of_words() -> None:
    found = pair_counts(BAGS, np.array([0, 0, 2, 3, 2]), np.array([1, 0, 2, 3, 3]))
    expected = [(2, 2, 0.5), (3, 0, 1), (0, 0, 0), (1, 0, 1), (0, 1, 0)]
    np.testing.assert_allclose(found[:, 2], [row[2] for row in expected], rtol=1e-6)
    np.testing.assert_allclose(np.expm1(found[:, :2]), [row[:2] for row in expected], rtol=1e-5, atol=1e-6)


def test_terms_that_may_occur() -> None:
    yes, no, mixed = [(True, False)], [(False, True)], [(True, True)]
    symmetric = {"paired": True, "each": False, "own": False}
    assert possible_terms([[yes]], **symmetric) == [Term(0, (0,))]
    assert possible_terms([[yes, yes]], **symmetric) == [Term(0, (0, 1))]
    assert possible_terms([[yes, no]], **symmetric) == [Term(0, (0,))]
    assert set(possible_terms([[mixed, yes]], **symmetric)) == {Term(0, (1,)), Term(0, (0, 1))}
    assert possible_terms([[yes, yes]], paired=False, each=True, own=True) == [Term(0, (0,), 0), Term(0, (1,), 0)]
    assert len(possible_terms([[yes, yes], [yes, yes]], paired=True, each=True, own=False)) == 3
    assert len(possible_terms([[yes, yes], [yes, yes]], paired=True, each=True, own=True)) == 6
    assert possible_terms([], **symmetric) == []


def test_atoms_have_the_terms_of_their_constants_and_rows_are_read_once() -> None:
    terms = [Term(0, (0,)), Term(0, (1,)), Term(0, (0, 1)), Term(0, (0, 2))]
    places = torch.tensor([[[7, 3], [-1, 3], [7, -1], [-1, -1]]])
    layout = collate_pairs({}, terms, ("product",), torch.tensor([0, 0, 1, 1]), places, pairs_only=True)
    assert [(block.term.positions, block.atoms.tolist()) for block in layout.blocks] == [
        ((0,), [2]),
        ((1,), [1]),
        ((0, 1), [0]),
    ]
    assert layout.used[0].tolist() == [3, 7]
    assert [block.rows.tolist() for block in layout.blocks] == [[[1]], [[0]], [[1, 0]]]
    assert [(index, rows.tolist()) for index, rows in layout.by_predicate] == [(0, [0, 1]), (1, [2, 3])]
    layout = collate_pairs({}, terms, ("product",), torch.tensor([0, 0, 1, 1]), places, pairs_only=False)
    assert [block.atoms.tolist() for block in layout.blocks] == [[0, 2], [0, 1], [0]]
    owned = collate_pairs({}, [Term(0, (0,), 1)], (), torch.tensor([0, 0, 1, 1]), places, pairs_only=False)
    assert [block.atoms.tolist() for block in owned.blocks] == [[2]]
