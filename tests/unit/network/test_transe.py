"""TransE by hand: the nearer a moved constant is to another, the higher the score."""

import torch

from r2n.logic.language import Domain, Predicate
from r2n.network.input_layers import TransE

D = Domain("d")


def test_the_score_is_the_margin_minus_the_distance() -> None:
    layer = TransE([Predicate("p", (D, D)), Predicate("u", (D,))], 2)
    with torch.no_grad():
        layer.vectors.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
    pairs = torch.tensor([[[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [1.0, 3.0]]])
    both = torch.zeros(2, dtype=torch.int64)
    assert torch.allclose(layer.score(layer.formula(both, pairs), both), torch.tensor([1.0, -2.0]), atol=1e-5)
    alone = layer.formula(torch.ones(1, dtype=torch.int64), torch.tensor([[[3.0, 0.0]]]))
    assert alone.tolist() == [[3.0, 2.0]]


def test_a_row_is_scored_as_its_atoms_are() -> None:
    torch.manual_seed(0)
    layer, vectors = TransE([Predicate("p", (D, D))], 3), torch.randn(4, 3)
    given, index = torch.stack([vectors[:2], vectors[2:]], dim=1), torch.zeros(2, dtype=torch.int64)
    for position in (0, 1):
        rows = layer.row_scores(index, position, given, vectors)
        for row in range(2):
            for place in range(4):
                atom = given[row].clone()
                atom[position] = vectors[place]
                one = layer.score(layer.formula(index[:1], atom.unsqueeze(0)), index[:1])
                assert torch.allclose(rows[row, place], one[0], atol=1e-5)
