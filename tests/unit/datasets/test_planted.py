"""Generated graphs: their sizes, and rules that conclude what they say, by plain loops."""

from pathlib import Path

import numpy as np
import pytest

import r2n
from r2n.datasets.planted import Planted, PlantedOptions, PlantedRule, plant
from r2n.errors import ConfigError

SMALL = PlantedOptions(facts=600, constants=80, relations=5, rules=20, communities=6)
Facts = set[tuple[int, int, int]]


def all_facts(planted: Planted) -> Facts:
    return {tuple(row) for part in planted.splits.values() for row in part.tolist()}


def concluded(rule: PlantedRule, facts: Facts, constants: int) -> set[tuple[int, int]]:
    """The pairs that a rule's body reaches, walk by walk."""
    found = set()
    for first in range(constants):
        ends = {first}
        for relation, forward in rule.body:
            ends = {
                (second if forward else one)
                for r, one, second in facts
                if r == relation and (one if forward else second) in ends
            }
        found |= {(first, end) for end in ends if end != first}
    return found


@pytest.mark.parametrize("seed", range(3))
def test_as_many_facts_as_wanted_each_once_and_none_of_a_constant_with_itself(seed: int) -> None:
    planted = plant(SMALL, seed=seed)
    facts = all_facts(planted)
    assert len(facts) == sum(map(len, planted.splits.values())) == 600
    assert {name: len(part) for name, part in planted.splits.items()} == {"train": 540, "valid": 30, "test": 30}
    assert all(0 <= r < 5 and 0 <= one < 80 and 0 <= other < 80 and one != other for r, one, other in facts)
    assert len(planted.rules) == 20
    assert {len(rule.body) for rule in planted.rules} == {1, 2, 3}


def test_a_seed_is_a_graph() -> None:
    assert all_facts(plant(SMALL)) == all_facts(plant(SMALL)) != all_facts(plant(SMALL, seed=1))


def test_what_certain_rules_conclude_is_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """An inverse, a chain that stands on its conclusions, and a false rule that adds nothing."""
    rules = [
        PlantedRule(1, ((0, False),), 1.0),
        PlantedRule(2, ((0, True), (1, False)), 1.0),
        PlantedRule(3, ((0, True),), 0.0),
    ]
    drawn = iter(rules)
    monkeypatch.setattr("r2n.datasets.planted._Graph._rule", lambda _: next(drawn))
    monkeypatch.setattr("r2n.datasets.planted._Graph.add_noise", lambda _: None)
    planted = plant(facts=2000, constants=100, relations=4, rules=3, by_rules=0.9, communities=1, seed=2)
    facts = all_facts(planted)
    assert [rule.chance for rule in planted.rules] == [1.0, 1.0, 0.0]
    for rule in rules[:2]:
        reached = concluded(rule, facts, 100)
        assert reached
        assert reached <= {(one, other) for r, one, other in facts if r == rule.head}
    assert not concluded(rules[2], facts, 100) <= {(one, other) for r, one, other in facts if r == 3}


def test_planted_rules_hold_more_often_than_false_ones() -> None:
    planted = plant(SMALL)
    facts = all_facts(planted)
    held: dict[bool, list[float]] = {True: [], False: []}
    for rule in planted.rules:
        reached = concluded(rule, facts, 80)
        if reached:
            true = sum((rule.head, *pair) in facts for pair in reached)
            held[rule.chance > 0].append(true / len(reached))
    assert np.mean(held[True]) > 2 * np.mean(held[False])


def test_degrees_are_unequal_and_noise_is_not() -> None:
    def most(planted: Planted) -> float:
        degrees = np.bincount(np.array(sorted(all_facts(planted)))[:, 1:].ravel(), minlength=300)
        return degrees.max() / degrees.mean()

    options = PlantedOptions(facts=3000, constants=300, relations=5, rules=10)
    assert most(plant(options)) > 2.5
    assert most(plant(options, noise=1.0, rules=0)) < 2


def test_it_is_written_as_a_problem(tmp_path: Path) -> None:
    planted = plant(SMALL)
    planted.write(tmp_path / "made")
    problem = r2n.load(tmp_path / "made")
    assert problem.name == "made"
    assert (len(problem.train), len(problem.valid), len(problem.test)) == (540, 30, 30)
    assert len(problem.knowledge.theory.rules) == 20
    assert str(PlantedRule(2, ((0, True), (1, False)), 0.5)) == "r0(x0, x1) & r1(x2, x1) -> r2(x0, x2)"
    with pytest.raises(ConfigError, match="cannot be made"):
        planted.write(tmp_path / "made")


@pytest.mark.parametrize(
    "change", [{"facts": 1}, {"noise": -0.1}, {"queries": 0.5}, {"facts": 100_000}, {"relations": 0}]
)
def test_what_cannot_be_made_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        plant(SMALL, **change)
