"""Generated graphs of any size with communities, planted rules and noise, streamed to a problem folder.

Nothing of the graph is held in memory: the partners of a constant follow from a hash of the seed, so that the body of a
rule can be followed from any constant at any time. All facts of a first constant are made together, some constants at a
time. As in real graphs a few constants are in very many facts: degrees fall as a power of the rank. Constants belong to
communities, and a relation links some communities to one other each. Some relations are stated, the others follow from
them by the planted rules, each with exceptions; noise is drawn without regard to anything.
"""

import errno
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq
from jaxtyping import Int64

from r2n.errors import ConfigError
from r2n.files import new_folder
from r2n.progress import Progress, no_progress

SKEW = 0.75  # the degree of the constant of rank k falls as k ** -SKEW
FACTS_A_CONSTANT = 10
FACTS_AT_ONCE = 1_000_000
MOST_STATED = 3  # times the wanted facts: tiny communities have no room for more
CONSTANTS_TRIED = 100_000  # to see how many facts there are before they are made
MOST_FACTS, MOST_RELATIONS, MOST_RULES = 10**10, 10**5, 10**5
SHARE_OF_STATED = 2 / 3  # of the relations; the others are concluded
SHARE_OF_FALSE_RULES = 0.2  # given like the others, but nothing follows from them
COMMUNITIES_A_RELATION = 0.5  # share of the communities that a relation links
MOST_QUERIES = 10_000
LENGTHS, SHARES_OF_LENGTHS = (1, 2, 3), (0.2, 0.6, 0.2)
PROBLEM = """name = "{name}"
theory = "theory.r2n"
[facts]
train = "train.{suffix}"
[queries]
valid = "valid.{suffix}"
test = "test.{suffix}"
"""

Facts = Int64[np.ndarray, "3 facts"]
"""Relation, first constant and second constant, in rows."""

_U = np.uint64


@dataclass(frozen=True)
class GraphOptions:
    """The size of a generated graph, and what it is made of.

    `constants` is a tenth of the facts unless given; `noise` and `queries` (valid, and again test) are shares of facts.
    """

    facts: int = 20_000
    constants: int | None = 3_000
    relations: int = 12
    rules: int = 100
    noise: float = 0.05
    communities: int = 60
    queries: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        """Check that there is such a graph."""
        bounds = {
            "facts": (100, MOST_FACTS),
            "count": (2, 2**31),  # products of two fit 64 bits
            "relations": (2, MOST_RELATIONS),
            "rules": (0, MOST_RULES),
            "communities": (1, MOST_FACTS),
            "seed": (0, 2**63 - 1),
            "noise": (0, 1),
        }
        for name, (least, most) in bounds.items():
            if not least <= getattr(self, name) <= most:
                name, value = name.replace("count", "constants"), getattr(self, name)
                raise ConfigError(f"{name} is {value}", hint=f"give {least:,} to {most:,}")
        if not 0 < self.queries < 0.5:
            raise ConfigError(f"queries is {self.queries}", hint="give a share above 0 and below 0.5")
        if self.facts > self.relations * self.count * (self.count - 1) // 10:
            raise ConfigError(
                f"{self.facts:,} facts of {self.relations:,} relations among {self.count:,} constants are no graph:"
                " more than a tenth of all pairs",
                hint="give more constants or relations, or fewer facts",
            )

    @property
    def count(self) -> int:
        """The number of constants."""
        return max(50, self.facts // FACTS_A_CONSTANT) if self.constants is None else self.constants


LARGE = GraphOptions(facts=1_000_000, constants=None, rules=20, communities=1)
"""What `r2n datasets generate --out` makes."""


@dataclass(frozen=True, slots=True)
class PlantedRule:
    """head(x_0, x_n) from a chain of relations between x_0, x_1, ..., x_n; a conclusion holds with this chance."""

    head: int
    body: tuple[int, ...]
    chance: float

    def __str__(self) -> str:
        """As a theory file states it."""
        atoms = [f"r{relation}(x{i}, x{i + 1})" for i, relation in enumerate(self.body)]
        return f"{' & '.join(atoms)} -> r{self.head}(x0, x{len(self.body)})"


class GeneratedGraph:
    """The rules of a generated graph, and its facts by first constant; `sizes`: about how many each relation has."""

    def __init__(self, options: GraphOptions) -> None:
        """Plant the rules, and find how many facts are stated: with what rules conclude, all that is no noise."""
        self.options = options
        dice = np.random.default_rng([options.seed, 1])
        rules = []
        for _ in range(options.rules):
            length = int(dice.choice(LENGTHS, p=SHARES_OF_LENGTHS))
            head = int(dice.integers(self.stated, options.relations))
            body = tuple(dice.integers(self.stated, size=length).tolist())
            is_false = dice.random() < SHARE_OF_FALSE_RULES
            rules.append(PlantedRule(head, body, 0.0 if is_false else float(dice.uniform(0.2, 1.0))))
        self.rules = tuple(rules)
        wanted = (1 - options.noise) * options.facts
        self.sizes = self._sizes_for(wanted)
        if self.communities > 1 and wanted:  # within communities many walks end alike
            tried, estimate = min(options.count, CONSTANTS_TRIED), wanted
            for _ in range(4):
                found = self.facts_of(0, tried).shape[1] * options.count / tried
                estimate = min(estimate * wanted / max(found, 1), MOST_STATED * wanted)
                self.sizes = self._sizes_for(estimate)

    @property
    def stated(self) -> int:
        """The number of relations that are stated: the first ones."""
        return min(self.options.relations - 1, max(1, round(self.options.relations * SHARE_OF_STATED)))

    @property
    def communities(self) -> int:
        """How many communities have a member."""
        return min(self.options.communities, self.options.count)

    def _sizes_for(self, wanted: float) -> np.ndarray:
        """The sizes with which so many facts are stated or concluded, if degrees were all alike and no walks met."""
        shares = np.random.default_rng([self.options.seed, 2]).dirichlet(np.full(self.stated, 3.0))
        means = shares / self.options.count
        low, high = 0.0, max(wanted, float(self.options.facts))
        for _ in range(60):
            middle = (low + high) / 2
            walks = (
                rule.chance * self.options.count * float(np.prod([middle * means[relation] for relation in rule.body]))
                for rule in self.rules
            )
            low, high = (middle, high) if middle + sum(walks) < wanted else (low, middle)
        return shares * low

    def step(self, relation: int, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All facts of a stated relation from these constants: the index of the first among them, and the second."""
        count, communities = self.options.count, self.communities
        dice = np.random.default_rng([self.options.seed, 10, relation])
        leads = dice.random(communities) < COMMUNITIES_A_RELATION
        leads[dice.integers(communities)] = True
        linked = dice.permutation(communities)
        rank, power = self._permuted(constants, 2 * relation, count), 1 - SKEW
        share = ((rank + 1.0) ** power - np.asarray(rank, float) ** power) / float(count) ** power
        expected = self.sizes[relation] * share * (leads / leads.mean())[constants % communities]
        degrees = np.floor(expected + self._random(3, relation, constants)).astype(np.int64)
        index = np.repeat(np.arange(len(constants)), degrees)
        number = np.arange(len(index)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
        drawn = self._random(4, relation, constants[index], number)
        members = -(-count // communities)  # of a community; the last one may be missing
        rank = np.minimum((drawn ** (1 / power) * members).astype(np.int64), members - 1)
        member = self._permuted(rank, 2 * relation + 1, members)
        second = linked[constants[index] % communities] + communities * member
        return index, second - communities * (second >= count)

    def facts_of(self, first: int, end: int) -> Facts:
        """The facts without noise whose first constant is from `first` to `end`."""
        constants = np.arange(first, end)
        parts = []
        for relation in range(self.stated):
            index, second = self.step(relation, constants)
            parts.append(np.stack([np.full(len(index), relation), constants[index], second]))
        for number, rule in enumerate(self.rules):
            if rule.chance:
                start, end_of = constants, constants
                for relation in rule.body:
                    index, end_of = self.step(relation, end_of)
                    start = start[index]
                holds = self._random(5, number, start, end_of) < rule.chance
                parts.append(np.stack([np.full(int(holds.sum()), rule.head), start[holds], end_of[holds]]))
        return _distinct(np.concatenate(parts, axis=1))

    def chunks(self) -> Iterator[Facts]:
        """All facts, as many as wanted; those of a first constant are in one chunk, each once."""
        facts, count = self.options.facts, self.options.count
        number = -(-facts // FACTS_AT_ONCE)
        bounds = np.linspace(0, count, number + 1).astype(np.int64)
        made = 0
        for i, (first, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
            due = facts * (i + 1) // number - made
            found = self.facts_of(first, end)
            while found.shape[1] < due and first < end:
                missing = due - found.shape[1]
                dice, size = np.random.default_rng([self.options.seed, 6, first]), 2 * missing + 10
                ranges = (0, self.options.relations), (first, end), (0, count)
                more = np.stack([dice.integers(*limits, size=size) for limits in ranges])
                keys = [
                    ((part[1] - first) * self.options.relations + part[0]) * count + part[2] for part in (more, found)
                ]
                is_there = np.isin(*keys)
                found = np.concatenate([found, self._some(_distinct(more[:, ~is_there]), missing)], axis=1)
            if i == number - 1:
                found = self._some(found, max(0, facts - made))
            made += found.shape[1]
            yield found

    def _some(self, facts: Facts, number: int) -> Int64[np.ndarray, "3 chosen"]:
        """So many of the facts (or all), by chance, in their order."""
        return facts[:, np.sort(np.argsort(self._random(7, *facts), kind="stable")[:number])]

    def split_of(self, facts: Facts) -> Int64[np.ndarray, " facts"]:
        """The split of each fact: 0 train, 1 valid, 2 test."""
        share = min(self.options.queries, MOST_QUERIES / self.options.facts)
        drawn = self._random(8, *facts)
        return np.where(drawn < share, 1, np.where(drawn < 2 * share, 2, 0))

    def _random(self, *parts: int | np.ndarray) -> np.ndarray:
        """A number from 0 to 1 that follows from seed and parts."""
        found = _mixed(np.array([self.options.seed], _U))
        for part in parts:
            found = _mixed(found ^ np.asarray(part).astype(_U))
        return (found >> _U(11)).astype(np.float64) * 2.0**-53

    def _permuted(self, numbers: np.ndarray, which: int, count: int) -> np.ndarray:
        """Another number below `count` for each, by one of many permutations: each relation has its own hubs."""
        dice = np.random.default_rng([self.options.seed, 9, which])
        factor, shift = int(dice.integers(1, max(count, 2))), int(dice.integers(count))
        while gcd(factor, count) != 1:
            factor = factor % (count - 1) + 1
        return (numbers * factor + shift) % count


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Bits stirred so that close numbers are far apart (splitmix64)."""
    with np.errstate(over="ignore"):
        found = numbers + _U(0x9E3779B97F4A7C15)
        found = (found ^ (found >> _U(30))) * _U(0xBF58476D1CE4E5B9)
        found = (found ^ (found >> _U(27))) * _U(0x94D049BB133111EB)
    return found ^ (found >> _U(31))


def _distinct(facts: Facts) -> Int64[np.ndarray, "3 distinct"]:
    """Each fact once, none of a constant with itself, by first constant, relation and second."""
    facts = facts[:, facts[1] != facts[2]]
    facts = facts[:, np.lexsort((facts[2], facts[0], facts[1]))]
    is_new = np.ones(facts.shape[1], bool)
    is_new[1:] = (facts[:, 1:] != facts[:, :-1]).any(axis=0)
    return facts[:, is_new]


def generate(
    options: GraphOptions, folder: Path, suffix: Literal["tsv", "parquet"] = "tsv", progress: Progress = no_progress
) -> dict[str, int]:
    """Generate a graph into a new folder, which appears when all is written; how many facts each split has."""
    with ExitStack() as stack:
        try:
            if folder.exists():
                raise FileExistsError(errno.EEXIST, "it is there already")
            folder.parent.mkdir(parents=True, exist_ok=True)
            work = stack.enter_context(new_folder(folder))
        except OSError as error:
            hint = "name one that is not there"
            raise ConfigError(f"the folder {str(folder)!r} cannot be made: {error.strerror}", hint=hint) from error
        graph = GeneratedGraph(options)
        predicates = "".join(f"predicate r{i}(constant, constant)\n" for i in range(options.relations))
        rules = "".join(f"rule p{i}: {rule}\n" for i, rule in enumerate(graph.rules))
        (work / "theory.r2n").write_text(f"domain constant\n{predicates}{rules}", "utf-8")
        (work / "problem.toml").write_text(PROBLEM.format(name=folder.resolve().name, suffix=suffix), "utf-8")
        return _write_facts(graph, work, suffix, progress)


def _write_facts(graph: GeneratedGraph, folder: Path, suffix: str, progress: Progress) -> dict[str, int]:
    schema = pa.schema([(column, pa.string()) for column in ("head", "relation", "tail")])
    text = pv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    splits = ("train", "valid", "test")
    writers = [
        pq.ParquetWriter(folder / f"{split}.{suffix}", schema, compression="zstd")
        if suffix == "parquet"
        else pv.CSVWriter(folder / f"{split}.{suffix}", schema, write_options=text)
        for split in splits
    ]
    sizes = [0, 0, 0]
    try:
        for facts in graph.chunks():
            progress("generate", sum(sizes), graph.options.facts)
            split = graph.split_of(facts)
            for i, writer in enumerate(writers):
                own = facts[:, split == i]
                columns = [
                    pc.binary_join_element_wise(letter, pa.array(own[row]).cast(pa.string()), "")
                    for letter, row in zip("crc", (1, 0, 2), strict=True)
                ]
                writer.write_table(pa.table(columns, schema=schema))
                sizes[i] += own.shape[1]
        for writer in writers:
            writer.close()
    except OSError:
        for writer in writers:
            if isinstance(writer, pq.ParquetWriter):
                writer.is_open = False  # its own end would try to write once more, and complain
        raise
    return dict(zip(splits, sizes, strict=True))
