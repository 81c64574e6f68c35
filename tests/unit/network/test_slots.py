"""The ways between slots and ground rules on a small graph, by index and by broadcasting, whole and in parts."""

import pytest
import torch

from r2n.network import scatter as module
from r2n.network.scatter import Box, GatherScatter, Incidence
from tests.unit.network.test_incidence import RULE, graph_of

BOTH = pytest.mark.parametrize("dense", [True, False])
SLOTS = torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [10.0], [20.0], [30.0]])
MESSAGES = torch.arange(12.0).reshape(6, 2, 1)  # ground rule g sends 2g to its first atom, 2g + 1 to its second


def ways_of(rules: str, *, dense: bool) -> GatherScatter:
    return Incidence.of(graph_of(rules), dense=dense).rules[0].index


@BOTH
def test_the_ways_to_the_ground_rules(dense: bool) -> None:
    ways = ways_of(RULE, dense=dense)
    assert ways.sum_at_rules(SLOTS).flatten().tolist() == [10, 21, 32, 13, 24, 35]
    assert ways.at_rules(SLOTS).squeeze(2).tolist() == [[0, 10], [1, 20], [2, 30], [3, 10], [4, 20], [5, 30]]


@BOTH
def test_the_ways_back_to_the_atoms(dense: bool) -> None:
    ways = ways_of(RULE, dense=dense)
    assert ways.sum_at_atoms(MESSAGES).flatten().tolist() == [0, 2, 4, 6, 8, 10, 1 + 7, 3 + 9, 5 + 11]
    assert [places.tolist() for places in ways.targets()] == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 2]]


@BOTH
def test_messages_are_added_to_what_the_slots_hold(dense: bool) -> None:
    slots = torch.full((9, 1), 100.0)
    ways_of(RULE, dense=dense).add_at_atoms(MESSAGES, slots)
    assert slots.flatten().tolist() == [100, 102, 104, 106, 108, 110, 108, 112, 116]


@BOTH
def test_one_message_can_go_to_all_positions(dense: bool) -> None:
    slots = torch.zeros(9, 1)
    ways_of(RULE, dense=dense).add_at_atoms(MESSAGES[:, :1], slots)
    assert slots.flatten().tolist() == [0, 2, 4, 6, 8, 10, 0 + 6, 2 + 8, 4 + 10]


@BOTH
@pytest.mark.parametrize(("part", "count"), [(12, 1), (11, 2), (4, 3), (1, 0)])
def test_the_parts_are_the_whole(dense: bool, part: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART", part)
    ways = ways_of(RULE, dense=dense)
    parts = ways.parts
    assert len(parts) == (count or (3 if dense else 6))  # a box is never cut thinner than one slice
    torch.testing.assert_close(torch.cat([p.sum_at_rules(SLOTS) for p in parts]).sum(), ways.sum_at_rules(SLOTS).sum())
    slots, start = torch.zeros(9, 1), 0
    for p in parts:
        rows = len(p.sum_at_rules(SLOTS))
        p.add_at_atoms(torch.ones(rows, 2, 1), slots)
        start += rows
    assert start == 6
    assert slots.flatten().tolist() == [1] * 6 + [2] * 3


@BOTH
def test_variables_in_another_order_than_the_rule_names_them(dense: bool) -> None:
    """q(y) names y first, so y is the first axis; p(x, y) has its axes the other way round."""
    graph = graph_of("rule r: q(y) -> p(x, y)")
    (rule,) = Incidence.of(graph, dense=dense).rules
    rows = graph.neighbours[0]
    for i, (table, target) in enumerate(zip(rule.tables, rule.index.targets(), strict=True)):
        assert table[target].tolist() == rows[:, i].tolist()


@pytest.mark.parametrize("part", [1, 6, 12, 13, 18, 20])
def test_slices_of_a_box_cover_its_longest_axis(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the last slice is shorter than the others."""
    box = Box((2, 5), ((0, 1), (1,)))
    monkeypatch.setattr(module, "PART", part)
    slots = torch.zeros(15, 1)
    for slice_ in box.parts:
        rows = len(slice_.sum_at_rules(slots))
        slice_.add_at_atoms(torch.ones(rows, 2, 1), slots)
    assert slots.flatten().tolist() == [1] * 10 + [2] * 5
