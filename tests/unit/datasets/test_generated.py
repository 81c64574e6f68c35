"""Generated graphs: as many facts as wanted, the same for a seed, skewed, with rules that hold as often as they say."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from r2n.data.problem import load_problem
from r2n.datasets import generated
from r2n.datasets.generated import LARGE, GeneratedGraph, GraphOptions, PlantedRule, generate
from r2n.errors import ConfigError
from tests.examples import first_of

ONE = GraphOptions(20_000, None, 6, 8, communities=1, seed=3)
SMALL = GraphOptions(600, 80, 5, 20, communities=6)
both = pytest.mark.parametrize("options", [ONE, SMALL], ids=["one community", "communities"])


def facts_of(options: GraphOptions) -> np.ndarray:
    return np.concatenate(list(GeneratedGraph(options).chunks()), axis=1)


@both
@pytest.mark.parametrize("at_once", [20_000, 300])
def test_there_are_as_many_facts_as_wanted_each_once(
    options: GraphOptions, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generated, "FACTS_AT_ONCE", at_once)
    facts = facts_of(options)
    assert facts.shape == np.unique(facts, axis=1).shape == (3, options.facts)
    assert (facts[1] != facts[2]).all()
    assert facts[0].max() < options.relations
    assert facts[1:].max() < options.count
    assert facts.min() >= 0


@pytest.mark.parametrize("seed", first_of(range(3), 1))
def test_as_many_facts_are_noise_as_wanted(seed: int) -> None:
    """Where walks of rules end alike, more is stated."""
    options = GraphOptions(seed=seed)
    found = GeneratedGraph(options).facts_of(0, options.count)
    assert 0.93 < found.shape[1] / options.facts < 0.97
    assert GeneratedGraph(replace(options, noise=1.0)).facts_of(0, options.count).shape[1] == 0


def test_a_few_constants_are_in_very_many_facts_but_not_by_noise() -> None:
    skewed, noise_facts = facts_of(ONE), facts_of(replace(ONE, noise=1.0))
    for row in (1, 2):
        degrees = np.sort(np.bincount(skewed[row], minlength=ONE.count))[::-1]
        assert degrees[0] > 15 * degrees.mean()
        assert degrees[: ONE.count // 10].sum() > 0.3 * degrees.sum()
        noise = np.bincount(noise_facts[row], minlength=ONE.count)
        assert noise.max() < 3 * noise.mean()


def test_a_stated_relation_links_a_community_to_one_other() -> None:
    graph = GeneratedGraph(GraphOptions(noise=0.0))
    facts = graph.facts_of(0, graph.options.count)
    for relation in range(graph.stated):
        first, second = facts[1:, facts[0] == relation] % graph.options.communities
        pairs = {(int(one), int(other)) for one, other in zip(first, second, strict=True)}
        assert len(pairs) == len(dict(pairs))
        assert 5 < len(pairs) < graph.options.communities


@both
def test_rules_hold_as_often_as_their_chance_says(options: GraphOptions) -> None:
    graph = GeneratedGraph(replace(options, noise=0.0))
    made = graph.facts_of(0, options.count)
    facts = set(map(tuple, made.T.tolist()))
    partners: dict[tuple[int, int], list[int]] = {}
    for relation, first, second in made.T.tolist():
        partners.setdefault((relation, first), []).append(second)
    heads = [rule.head for rule in graph.rules if rule.chance]
    for rule in graph.rules:
        walks = {(constant, constant) for constant in range(options.count)}
        for relation in rule.body:
            walks = {(x, z) for x, y in walks for z in partners.get((relation, y), [])}
        held = [(rule.head, x, y) in facts for x, y in walks if x != y]
        tolerance = 4 * np.sqrt(0.25 / max(1, len(held)))
        assert not held or np.mean(held) > rule.chance - tolerance
        if held and heads.count(rule.head) <= (rule.chance > 0):
            assert np.mean(held) < rule.chance + tolerance
    assert 0 < sum(rule.chance == 0 for rule in graph.rules) < len(graph.rules) / 2


@pytest.mark.parametrize(("options", "suffix"), [(replace(LARGE, facts=2000), "parquet"), (SMALL, "tsv")])
def test_a_seed_is_a_problem_folder(options: GraphOptions, suffix: Literal["tsv", "parquet"], tmp_path: Path) -> None:
    files = []
    for name, seed in (("one", 3), ("again", 3), ("other", 4)):
        sizes = generate(replace(options, seed=seed), tmp_path / name, suffix)
        files.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir() if path.suffix != ".toml"})
    assert files[0] == files[1]
    assert all(files[0][name] != files[2][name] for name in files[0])
    problem = load_problem(tmp_path / "other")
    assert problem.name == "other"
    assert {name: len(part) for name, part in {"train": problem.train, **problem.queries}.items()} == sizes
    assert sum(sizes.values()) == options.facts
    assert min(sizes.values()) > 0.02 * options.facts
    assert len(problem.knowledge.theory.rules) == options.rules
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "one", "other"]
    with pytest.raises(ConfigError, match="it is there already"):
        generate(options, tmp_path / "one", suffix)


def test_a_rule_is_written_as_a_chain() -> None:
    assert str(PlantedRule(2, (0, 1), 0.5)) == "r0(x0, x1) & r1(x1, x2) -> r2(x0, x2)"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"facts": 5}, "facts is 5"),
        ({"relations": 1}, "relations is 1"),
        ({"noise": 1.5}, "noise is 1.5"),
        ({"queries": 0.5}, "queries is 0.5"),
        ({"constants": 1}, "constants is 1"),
        ({"communities": 0}, "communities is 0"),
        ({"facts": 10**6, "constants": 100}, "are no graph"),
    ],
)
def test_what_cannot_be_made_is_refused(changes: dict[str, float], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        replace(SMALL, **changes)
