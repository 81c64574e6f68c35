"""The parts of a step: together they ask what the whole asks, and every ground rule counts for one."""

import numpy as np
import pytest
import torch

from r2n.data.problem import Problem
from r2n.model.run import prepare_run
from r2n.network.factor_graph import FactorGraph
from r2n.training.batches import SINGLE, Part, QueryBatches, SingleProcess, own_ground_rules, owned, part_of
from r2n.training.negatives import Negatives

FACTS = np.array([4, 8, 15, 16])
NEGATIVES = np.array([[5, -1], [9, 10], [9, 17], [18, 19]])
WHOLE = Part(np.union1d(FACTS, NEGATIVES[NEGATIVES >= 0]), Negatives(FACTS, NEGATIVES), np.array([1, 2, 3]))


def members(count: int) -> list[SingleProcess]:
    return [SingleProcess(rank, count) for rank in range(count)]


def test_who_is_alone_asks_the_whole() -> None:
    assert part_of(WHOLE, SINGLE, by_fact=True) is WHOLE


@pytest.mark.parametrize("count", [2, 3, 20])
def test_atoms_are_dealt_out_once_each(count: int) -> None:
    parts = [part_of(WHOLE, team, by_fact=False) for team in members(count)]
    assert sorted(np.concatenate([part.asked for part in parts]).tolist()) == WHOLE.asked.tolist()
    assert sorted(np.concatenate([part.beside for part in parts]).tolist()) == WHOLE.beside.tolist()
    assert all(len(part.negatives.facts) == 0 for part in parts)


@pytest.mark.parametrize("count", [2, 3, 20])
def test_a_fact_goes_with_its_negatives(count: int) -> None:
    parts = [part_of(WHOLE, team, by_fact=True) for team in members(count)]
    rows = [
        (fact, *row) for part in parts for fact, row in zip(part.negatives.facts, part.negatives.atoms, strict=True)
    ]
    assert sorted(rows) == sorted((fact, *row) for fact, row in zip(FACTS, NEGATIVES, strict=True))
    for part in parts:
        assert np.isin(np.union1d(part.negatives.facts, part.negatives.codes), part.asked).all()


@pytest.mark.parametrize("count", [2, 3])
def test_every_ground_rule_of_a_step_is_owned_once(count: int, toy: Problem) -> None:
    batches = prepare_run(toy, toy.options.changed(["training.batch_size=5"]), seed=1).trainer.batches
    assert isinstance(batches, QueryBatches)
    drawn = next(batches.drawn(torch.Generator().manual_seed(0)))
    graph = batches.graph(drawn)
    everybody = [{tuple(row) for row in graph.atoms[rows[own]].tolist()} for rows, own in _own(graph)]
    found: list[list[tuple[int, ...]]] = [[] for _ in everybody]
    for team in members(count):
        batches.team = team
        part = batches.graph(drawn)
        kept = owned(part, own_ground_rules(part), drawn.whole, team)
        for some, rows, own in zip(found, part.neighbours, kept, strict=True):
            some += [tuple(row) for row in part.atoms[rows[own]].tolist()]
    assert [len(some) for some in found] == [len(some) for some in everybody]
    assert [set(some) for some in found] == everybody
    assert sum(map(len, everybody)) > count


def _own(graph: FactorGraph) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return list(zip(graph.neighbours, own_ground_rules(graph), strict=True))
