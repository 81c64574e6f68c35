"""A seed -> a generated graph of any size with planted rules, streamed to Parquet as a problem folder.

Nothing of the graph is held: who a constant points to follows from a hash of the seed, so that a rule's body can be
followed from any constant at any time. All facts of a first constant are made together, some constants at a time. As in
real graphs a few constants are in very many facts: by rank, degrees fall as a power. Some relations are stated, the
others are concluded from them by the planted rules, each with exceptions of its own; noise is drawn without regard to
anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from r2n.datasets.planted import PROBLEM, SHARE_OF_FALSE_RULES, PlantedRule, new_problem_folder
from r2n.errors import ConfigError
from r2n.progress import Progress, no_progress

SKEW = 0.75  # the degree of the constant of rank k falls as k ** -SKEW
FACTS_A_CONSTANT = 10
FACTS_AT_ONCE = 1_000_000
MOST_FACTS, MOST_RELATIONS, MOST_RULES = 10**12, 10**5, 10**5
SHARE_OF_STATED = 2 / 3  # of the relations; the others are concluded
MOST_QUERIES, SHARE_OF_QUERIES = 10_000, 0.05
LENGTHS, SHARES_OF_LENGTHS = (1, 2, 3), (0.2, 0.6, 0.2)

_U = np.uint64


@dataclass(frozen=True)
class StreamedOptions:
    """How large a graph is, queries included; `noise` is the share of facts that are noise."""

    facts: int = 1_000_000
    relations: int = 12
    rules: int = 20
    noise: float = 0.05
    constants: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be made."""
        bounds = {"facts": (100, MOST_FACTS), "relations": (2, MOST_RELATIONS), "rules": (0, MOST_RULES)}
        for name, (least, most) in {**bounds, "seed": (0, 2**63 - 1)}.items():
            if not least <= getattr(self, name) <= most:
                raise ConfigError(f"{name} is {getattr(self, name)}", hint=f"give {least:,} to {most:,}")
        if not 0 <= self.noise <= 1:
            raise ConfigError(f"noise is {self.noise}", hint="give a share from 0 to 1")
        if self.constants is not None and not 2 <= self.constants <= MOST_FACTS:
            raise ConfigError(f"constants is {self.constants}", hint=f"give 2 to {MOST_FACTS:,}")
        if self.facts > self.relations * self.count * (self.count - 1) // 10:
            raise ConfigError(
                f"{self.facts:,} facts of {self.relations:,} relations among {self.count:,} constants are no graph:"
                " more than a tenth of all pairs",
                hint="give more constants or relations, or fewer facts",
            )

    @property
    def count(self) -> int:
        """The number of constants."""
        return self.constants or max(50, self.facts // FACTS_A_CONSTANT)


@dataclass(frozen=True, eq=False)
class StreamedGraph:
    """The graph: rules, and facts by first constant."""

    options: StreamedOptions
    rules: tuple[PlantedRule, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Plant the rules."""
        object.__setattr__(self, "rules", tuple(self._planted()))

    @property
    def stated(self) -> int:
        """The number of relations that are stated: the first ones."""
        return min(self.options.relations - 1, max(1, round(self.options.relations * SHARE_OF_STATED)))

    def _planted(self) -> Iterator[PlantedRule]:
        dice = np.random.default_rng([self.options.seed, 1])
        for _ in range(self.options.rules):
            length = int(dice.choice(LENGTHS, p=SHARES_OF_LENGTHS))
            head = int(dice.integers(self.stated, self.options.relations))
            body = tuple((int(relation), True) for relation in dice.integers(self.stated, size=length))
            is_false = dice.random() < SHARE_OF_FALSE_RULES
            yield PlantedRule(head, body, 0.0 if is_false else float(dice.uniform(0.2, 1.0)))

    @cached_property
    def sizes(self) -> np.ndarray:
        """How many facts each stated relation has, about: together with what rules conclude, all that is no noise."""
        shares = np.random.default_rng([self.options.seed, 2]).dirichlet(np.full(self.stated, 3.0))
        wanted, low, high = (1 - self.options.noise) * self.options.facts, 0.0, float(self.options.facts)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if middle + self._concluded(shares * middle) < wanted else (low, middle)
        return shares * low

    def _concluded(self, sizes: np.ndarray) -> float:
        """How many facts the rules conclude, about: their walks are as many as if degrees were all alike."""
        means = sizes / self.options.count
        return sum(
            rule.chance * self.options.count * float(np.prod([means[relation] for relation, _ in rule.body]))
            for rule in self.rules
        )

    def degrees(self, relation: int, constants: np.ndarray) -> np.ndarray:
        """How many facts of a relation each constant is first in."""
        rank = self._permuted(constants, 2 * relation)
        expected = self.sizes[relation] * _share_of_rank(rank, self.options.count)
        return np.floor(expected + self._random(3, relation, constants)).astype(np.int64)

    def step(self, relation: int, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All facts of a relation from these constants: the place of the first among them, and the second."""
        degrees = self.degrees(relation, constants)
        place = np.repeat(np.arange(len(constants)), degrees)
        number = np.arange(len(place)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
        drawn = self._random(4, relation, constants[place], number)
        return place, self._permuted(_rank_of(drawn, self.options.count), 2 * relation + 1)

    def facts_of(self, first: int, end: int) -> np.ndarray:
        """The facts without noise whose first constant is from `first` to `end`: (relation, first, second)."""
        constants = np.arange(first, end)
        parts = []
        for relation in range(self.stated):
            place, second = self.step(relation, constants)
            parts.append(np.stack([np.full(len(place), relation), constants[place], second]))
        for number, rule in enumerate(self.rules):
            if rule.chance:
                start, end_of = constants, constants
                for relation, _ in rule.body:
                    place, end_of = self.step(relation, end_of)
                    start = start[place]
                holds = self._random(5, number, start, end_of) < rule.chance
                parts.append(np.stack([np.full(int(holds.sum()), rule.head), start[holds], end_of[holds]]))
        return _distinct(np.concatenate(parts, axis=1))

    def noise_of(self, first: int, end: int, size: int) -> np.ndarray:
        """So many facts that are noise, with such first constants."""
        dice = np.random.default_rng([self.options.seed, 6, first])
        count = self.options.count
        drawn = [dice.integers(self.options.relations, size=size), dice.integers(first, end, size=size)]
        return np.stack([*drawn, dice.integers(count, size=size)])

    def chunks(self) -> Iterator[np.ndarray]:
        """All facts, as many as wanted; those of a first constant are in one chunk, each once."""
        facts, count = self.options.facts, self.options.count
        number = -(-facts // FACTS_AT_ONCE)
        bounds = np.linspace(0, count, number + 1).astype(np.int64)
        made = 0
        for i, (first, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
            due = facts * (i + 1) // number - made
            found = self.facts_of(first, end)
            while found.shape[1] < due and first < end:
                more = self.noise_of(first, end, 2 * (due - found.shape[1]) + 10)
                is_there = np.isin(self._keys(more, first), self._keys(found, first))
                found = np.concatenate([found, self._some(_distinct(more[:, ~is_there]), due - found.shape[1])], axis=1)
            if i == number - 1:
                found = found[:, : max(0, facts - made)]
            made += found.shape[1]
            yield found

    def _keys(self, facts: np.ndarray, first: int) -> np.ndarray:
        """One number a fact, for facts of one chunk."""
        return ((facts[1] - first) * self.options.relations + facts[0]) * self.options.count + facts[2]

    def _some(self, facts: np.ndarray, number: int) -> np.ndarray:
        """So many of the facts (or all), by chance."""
        return facts[:, np.sort(np.argsort(self._random(7, *facts), kind="stable")[:number])]

    def split_of(self, facts: np.ndarray) -> np.ndarray:
        """The split of each fact: 0 train, 1 valid, 2 test."""
        share = min(SHARE_OF_QUERIES, MOST_QUERIES / self.options.facts)
        drawn = self._random(8, *facts)
        return np.where(drawn < share, 1, np.where(drawn < 2 * share, 2, 0))

    def _random(self, *parts: int | np.ndarray) -> np.ndarray:
        """A number from 0 to 1 that follows from seed and parts."""
        found = _mixed(np.array([self.options.seed], _U))
        for part in parts:
            found = _mixed(found ^ np.asarray(part).astype(_U))
        return (found >> _U(11)).astype(np.float64) * 2.0**-53

    def _permuted(self, numbers: np.ndarray, which: int) -> np.ndarray:
        """Another constant for each, by one of many permutations: who is well known differs by relation and side."""
        count = self.options.count
        dice = np.random.default_rng([self.options.seed, 9, which])
        factor, shift = int(dice.integers(1, count)), int(dice.integers(count))
        while gcd(factor, count) != 1:
            factor = factor % (count - 1) + 1
        if count < 2**31:
            return (numbers * factor + shift) % count
        return ((numbers.astype(object) * factor + shift) % count).astype(np.int64)  # products beyond 64 bits


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Bits stirred so that close numbers are far apart (splitmix64)."""
    with np.errstate(over="ignore"):
        found = numbers + _U(0x9E3779B97F4A7C15)
        found = (found ^ (found >> _U(30))) * _U(0xBF58476D1CE4E5B9)
        found = (found ^ (found >> _U(27))) * _U(0x94D049BB133111EB)
    return found ^ (found >> _U(31))


def _share_of_rank(rank: np.ndarray, count: int) -> np.ndarray:
    """The share of all facts that the constant of a rank (from 0) has."""
    power = 1 - SKEW
    return ((rank + 1.0) ** power - np.asarray(rank, float) ** power) / float(count) ** power


def _rank_of(drawn: np.ndarray, count: int) -> np.ndarray:
    """The rank that a number from 0 to 1 falls on, as often as its share says."""
    return np.minimum((drawn ** (1 / (1 - SKEW)) * count).astype(np.int64), count - 1)


def _distinct(facts: np.ndarray) -> np.ndarray:
    """Each fact once, none of a constant with itself, by first constant, relation and second."""
    facts = facts[:, facts[1] != facts[2]]
    order = np.lexsort((facts[2], facts[0], facts[1]))
    facts = facts[:, order]
    is_new = np.ones(facts.shape[1], bool)
    is_new[1:] = (facts[:, 1:] != facts[:, :-1]).any(axis=0)
    return facts[:, is_new]


def write_streamed(options: StreamedOptions, folder: Path, progress: Progress = no_progress) -> dict[str, int]:
    """Generate a graph into a new folder, which appears when all is written; how many facts each split has."""
    with new_problem_folder(folder) as work:
        return _write(StreamedGraph(options), work, folder.resolve().name, progress)


def _write(graph: StreamedGraph, folder: Path, name: str, progress: Progress) -> dict[str, int]:
    splits = ("train", "valid", "test")
    schema = pa.schema([(column, pa.string()) for column in ("head", "relation", "tail")])
    writers = [pq.ParquetWriter(folder / f"{split}.parquet", schema, compression="zstd") for split in splits]
    sizes, made = [0, 0, 0], 0
    try:
        for facts in graph.chunks():
            progress("generate", made, graph.options.facts)
            split = graph.split_of(facts)
            for i, writer in enumerate(writers):
                own = facts[:, split == i]
                columns = [_named("c", own[1]), _named("r", own[0]), _named("c", own[2])]
                writer.write_table(pa.table(columns, schema=schema))
                sizes[i] += own.shape[1]
            made += facts.shape[1]
        for writer in writers:
            writer.close()
    except OSError:
        for writer in writers:
            writer.is_open = False  # its own end would try to write once more, and complain
        raise
    predicates = "".join(f"predicate r{i}(constant, constant)\n" for i in range(graph.options.relations))
    rules = "".join(f"rule p{i}: {rule}\n" for i, rule in enumerate(graph.rules))
    (folder / "theory.r2n").write_text(f"domain constant\n{predicates}{rules}", "utf-8")
    (folder / "problem.toml").write_text(PROBLEM.format(name).replace(".tsv", ".parquet"), "utf-8")
    return dict(zip(splits, sizes, strict=True))


def _named(letter: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(letter, pa.array(numbers).cast(pa.string()), "")
