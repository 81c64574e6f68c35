"""How far changes of a graph are felt, against plain loops over sets."""

from random import Random

import numpy as np
from hypothesis import given

from r2n.network.factor_graph import FactorGraph
from r2n.network.incremental import IncrementalForward, Step
from tests.examples import at_most
from tests.theory_strategies import dice
from tests.unit.network.test_factor_graph import built, make_graph

GroundRule = tuple[int, tuple[int, ...]]
"""Its number, and the rows of its atoms."""


def with_an_atom(dice: Random) -> FactorGraph:
    extra, per_rule = make_graph(dice)
    return built(([*extra, 0], per_rule))


def ground_rules(graph: FactorGraph) -> list[GroundRule]:
    rows = [tuple(row) for part in graph.neighbours for row in part.tolist()]
    return list(enumerate(rows))


def distances(rules: list[GroundRule], asked: set[int], atoms: int) -> list[float]:
    """Steps from the nearest asked atom, by walking."""
    found: list[float] = [0 if row in asked else float("inf") for row in range(atoms)]
    for _ in range(atoms):
        for _, rows in rules:
            nearest = min(found[row] for row in rows)
            for row in rows:
                found[row] = min(found[row], nearest + 1)
    return found


def reach(rules: list[GroundRule], gone: set[int], altered: set[int], away: list[float], layers: int) -> list[set[int]]:
    """For each layer, the atoms that may be otherwise in one change, and near enough to count."""
    changed, found = set(altered), []
    for layer in range(1, layers + 1):
        touched = set(changed)
        for number, rows in rules:
            carries = number in gone or changed & set(rows)
            if carries and min(away[row] for row in rows) <= layers - layer:
                touched |= set(rows)
        changed = {row for row in touched if away[row] <= layers - layer}
        found.append(changed)
    return found


def messages_of(step: Step, rows: int) -> dict[tuple[int, int], int]:
    keys = [divmod(key, rows) for key in step.outputs.tolist()]
    return dict(zip(keys, step.messages.tolist(), strict=True))


@at_most(60, because="each example walks over all pairs of atoms and ground rules")
@given(dice())
def test_what_is_computed_anew_is_what_can_be_felt(dice: Random) -> None:
    graph, layers, changes = with_an_atom(dice), dice.choice((1, 2, 3)), dice.choice((1, 2, 3))
    rules, atoms = ground_rules(graph), len(graph.atoms)
    asked = {dice.randrange(atoms) for _ in range(dice.choice((1, 2)))}
    gone = [{n for n, _ in rules if dice.random() < 0.3} for _ in range(changes)]
    altered = [{row for row in range(atoms) if dice.random() < 0.1} for _ in range(changes)]
    away = distances(rules, asked, atoms)
    spread = IncrementalForward(graph, np.array(sorted(asked), np.int64), layers)
    assert spread.steps_away.tolist() == [min(distance, layers + 1) for distance in away]
    pairs = [
        np.array([[k, i] for k, part in enumerate(p) for i in part], np.int64).reshape(-1, 2) for p in (gone, altered)
    ]
    expected = [reach(rules, gone[k], altered[k], away, layers) for k in range(changes)]
    for by_difference in (False, True):
        steps = list(spread.steps(*pairs, by_difference=by_difference))
        for layer, step in enumerate(steps):
            found = messages_of(step, atoms)
            assert set(found) == {(k, row) for k in range(changes) for row in expected[k][layer]}
            for (k, row), received in found.items():
                assert received == sum(rows.count(row) for n, rows in rules if n not in gone[k])
            assert step.graph.atoms.tolist() == graph.atoms[step.as_is].tolist()
