"""Which atoms the rules tell something about."""

import torch

from r2n.model.model import supported
from r2n.network.factor_graph import FactorGraph


def marks(count: int, *rows: int) -> torch.Tensor:
    found = torch.zeros(count, dtype=torch.bool)
    found[list(rows)] = True
    return found


def graph(*parts: list[list[int]]) -> FactorGraph:
    return FactorGraph(torch.arange(9), tuple(torch.tensor(part) for part in parts), (), (None,) * len(parts))


def test_a_source_is_felt_as_far_as_there_are_layers() -> None:
    chain = graph([[0, 1], [1, 2], [3, 2]], [[3, 4, 5]])
    nothing = marks(9)
    for steps, expected in [(0, [0]), (1, [0, 1]), (2, [0, 1, 2]), (3, [0, 1, 2, 3]), (4, [0, 1, 2, 3, 4, 5])]:
        assert supported(chain, marks(9, 0), nothing, steps).nonzero().flatten().tolist() == expected


def test_a_ground_rule_that_misses_one_atom_supports_it() -> None:
    rules = graph([[0, 1, 2], [1, 3, 4]])
    assert supported(rules, marks(9), marks(9, 0, 1), 1).nonzero().flatten().tolist() == [2]
    assert supported(rules, marks(9), marks(9, 0), 3).nonzero().flatten().tolist() == []


def test_an_atom_at_two_positions_of_a_ground_rule_is_missed_once() -> None:
    rules = graph([[2, 0, 2], [3, 3, 4], [0, 5, 5]])
    assert supported(rules, marks(9), marks(9, 0), 1).nonzero().flatten().tolist() == [2, 5]


def test_without_rules_there_are_only_the_sources() -> None:
    assert supported(graph(), marks(9, 4), marks(9, 5), 3).nonzero().flatten().tolist() == [4]
