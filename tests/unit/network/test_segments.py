"""Sums over an incidence, by hand."""

import torch

from r2n.network.scatter import by_segment, gather_sum, segment_sum


def test_rows_are_ordered_by_segment_and_keep_their_order_within() -> None:
    order, offsets = by_segment(torch.tensor([2, 0, 2, 0]), 4)
    assert order.tolist() == [1, 3, 0, 2]
    assert offsets.tolist() == [0, 2, 2, 4]  # segments 1 and 3 are empty


def test_nothing_has_no_order_but_its_segments_begin_somewhere() -> None:
    order, offsets = by_segment(torch.zeros(0, dtype=torch.int64), 2)
    assert order.tolist() == []
    assert offsets.tolist() == [0, 0]


def test_gather_sum_adds_the_rows_of_each_ground_rule() -> None:
    table = torch.tensor([[1.0], [10.0], [100.0]], requires_grad=True)
    slots = torch.tensor([[0, 1], [2, 2]])
    order, offsets = by_segment(slots.flatten(), 3)
    found = gather_sum(table, slots, order // 2, offsets)
    assert found.tolist() == [[11.0], [200.0]]
    found.backward(torch.tensor([[1.0], [5.0]]))
    assert table.grad is not None
    assert table.grad.tolist() == [[1.0], [1.0], [10.0]]


def test_segment_sum_adds_the_rows_of_each_segment_and_nothing_is_zero() -> None:
    rows = torch.tensor([[1.0], [2.0], [4.0]], requires_grad=True)
    segment = torch.tensor([2, 0, 2])
    order, offsets = by_segment(segment, 3)
    found = segment_sum(rows, order, offsets, segment)
    assert found.tolist() == [[2.0], [0.0], [5.0]]
    found.backward(torch.tensor([[3.0], [7.0], [9.0]]))
    assert rows.grad is not None
    assert rows.grad.tolist() == [[9.0], [3.0], [9.0]]


def test_no_rows_sum_to_zero_in_every_segment() -> None:
    nothing = torch.zeros(0, dtype=torch.int64)
    order, offsets = by_segment(nothing, 2)
    assert segment_sum(torch.zeros(0, 3), order, offsets, nothing).tolist() == [[0.0] * 3] * 2
    slots = torch.zeros(0, 2, dtype=torch.int64)
    assert gather_sum(torch.ones(1, 3), slots, nothing, torch.tensor([0])).shape == (0, 3)
