"""Graphs that are streamed to Parquet: as many facts as wanted, the same for a seed, skewed, with rules that hold."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from r2n.data.problem import load_problem
from r2n.datasets import streamed
from r2n.datasets.streamed import StreamedGraph, StreamedOptions, write_streamed
from r2n.errors import ConfigError

SMALL = StreamedOptions(20_000, 6, 8, seed=3)


def test_there_are_as_many_facts_as_wanted_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for at_once in (20_000, 3_000):
        monkeypatch.setattr(streamed, "FACTS_AT_ONCE", at_once)
        facts = np.concatenate(list(StreamedGraph(SMALL).chunks()), axis=1)
        assert facts.shape == (3, SMALL.facts)
        assert np.unique(facts, axis=1).shape == facts.shape
        assert (facts[1] != facts[2]).all()
        assert facts[0].max() < SMALL.relations
        assert facts[1:].max() < SMALL.count
        assert facts.min() >= 0


def test_a_seed_is_a_graph(tmp_path: Path) -> None:
    files = []
    for name, seed in (("one", 3), ("again", 3), ("other", 4)):
        write_streamed(replace(SMALL, seed=seed), tmp_path / name)
        files.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir() if path.suffix != ".toml"})
    assert files[0] == files[1]
    assert files[0]["train.parquet"] != files[2]["train.parquet"]


def test_a_few_constants_are_in_very_many_facts() -> None:
    facts = np.concatenate(list(StreamedGraph(SMALL).chunks()), axis=1)
    for side in (1, 2):
        degrees = np.sort(np.bincount(facts[side], minlength=SMALL.count))[::-1]
        assert degrees[0] > 15 * degrees.mean()
        assert degrees[: SMALL.count // 10].sum() > 0.3 * degrees.sum()


def test_rules_hold_as_often_as_their_chance_says() -> None:
    graph = StreamedGraph(replace(SMALL, noise=0.0))
    facts = {tuple(fact) for fact in np.concatenate(list(graph.chunks()), axis=1).T.tolist()}
    alone = {rule.head: [other for other in graph.rules if other.head == rule.head] for rule in graph.rules}
    seen = 0
    for rule in graph.rules:
        constants = np.arange(SMALL.count)
        start, end = constants, constants
        for relation, _ in rule.body:
            place, end = graph.step(relation, end)
            start = start[place]
        pairs = {pair for pair in zip(start.tolist(), end.tolist(), strict=True) if pair[0] != pair[1]}
        share = np.mean([(rule.head, *pair) in facts for pair in pairs])
        tolerance = 4 * np.sqrt(0.25 / len(pairs))
        assert share > rule.chance - tolerance
        if len(alone[rule.head]) == 1:
            assert share < rule.chance + tolerance
            seen += 1
    assert seen or len(alone) < len(graph.rules)


def test_it_is_written_as_a_problem(tmp_path: Path) -> None:
    sizes = write_streamed(SMALL, tmp_path / "graph")
    problem = load_problem(tmp_path / "graph")
    assert sum(sizes.values()) == SMALL.facts
    assert {"train": len(problem.train), **{name: len(part) for name, part in problem.queries.items()}} == sizes
    assert len(problem.knowledge.theory.rules) == SMALL.rules
    assert pq.ParquetFile(tmp_path / "graph" / "train.parquet").schema.names == ["head", "relation", "tail"]
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]
    with pytest.raises(ConfigError, match="it is there"):
        write_streamed(SMALL, tmp_path / "graph")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"facts": 5}, "facts is 5"),
        ({"relations": 1}, "relations is 1"),
        ({"noise": 1.5}, "noise is 1.5"),
        ({"constants": 1}, "constants is 1"),
        ({"facts": 10**6, "constants": 100}, "are no graph"),
    ],
)
def test_what_cannot_be_made_is_refused(changes: dict[str, float], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        replace(SMALL, **changes)


def test_constants_beyond_32_bits_are_permuted_exactly() -> None:
    graph = StreamedGraph(StreamedOptions(10**12, 100, 0))
    numbers = np.array([0, 1, 2, graph.options.count - 1])
    found = graph._permuted(numbers, 5)
    assert len(set(found.tolist())) == 4
    assert ((found >= 0) & (found < graph.options.count)).all()
    assert (found[2] - found[1]) % graph.options.count == (found[1] - found[0]) % graph.options.count
