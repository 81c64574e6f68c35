"""Atoms of a grid by features and maps, against embeddings written out one by one."""

import torch

from r2n.network.grid import GridAtoms, InputAtoms, Places, row_dropout


def test_a_table_taken_whole_is_not_copied() -> None:
    table = torch.arange(12.0).view(4, 3)
    assert Places.of(range(4), 4).take(table) is table
    for places in ([0, 1, 2], [1, 0, 2, 3], [0, 0, 0, 0], [0, 1, 2, 3, 3]):
        assert Places.of(places, 4).take(table).tolist() == [table[i].tolist() for i in places]


def test_values_are_summed_at_their_places() -> None:
    values = torch.tensor([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    assert Places.of([0, 1, 2], 3).sum_at(values) is values
    assert Places.of([0, 1, 2], 4).sum_at(values).tolist() == [[1, 2], [10, 20], [100, 200], [0, 0]]
    assert Places.of([1, 0, 1], 3).sum_at(values).tolist() == [[10, 20], [101, 202], [0, 0]]


def test_the_maps_of_some_predicates_followed_by_columns() -> None:
    torch.manual_seed(0)
    atoms = GridAtoms(torch.randn(7, 4), torch.randn(3, 4, 2), torch.randn(3, 2))
    for places in ([0, 1, 2], [2, 0], [1, 1, 1]):
        columns = torch.randn(len(places), 5, 2)
        expected = sum(atoms.maps[place] @ column.t() for place, column in zip(places, columns, strict=True))
        torch.testing.assert_close(atoms.into(Places.of(places, 3), columns), expected)


def test_diagonals_are_maps_block_by_block() -> None:
    torch.manual_seed(0)
    atoms = InputAtoms(torch.randn(7, 4), torch.randn(3, 4), torch.randn(3, 2))
    for diagonal, written_out in zip(atoms.diagonals, atoms.maps, strict=True):
        assert torch.equal(written_out, torch.cat([torch.diag(diagonal[:2]), torch.diag(diagonal[2:])]))
    same = GridAtoms(atoms.features, atoms.maps, atoms.offsets)
    places, columns = Places.of([2, 0], 3), torch.randn(2, 5, 2)
    torch.testing.assert_close(atoms.into(places, columns), same.into(places, columns))


def test_rows_are_dropped_together() -> None:
    torch.manual_seed(0)
    dropped = row_dropout(torch.ones(50, 4, 6), 0.5)
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert bool((dropped == dropped[:, :1]).all()), "one mask for all points of a row"
    assert not bool((dropped == dropped[:1]).all()), "another one for the next row"
    assert 0.4 < float((dropped == 0).float().mean()) < 0.6
    points = torch.randn(2, 3, 4)
    assert row_dropout(points, 0.0) is points
