"""A seed -> a generated graph with planted rules, as a problem folder: something to try r2n on, of any size.

Constants belong to communities and are of unequal renown, as in real graphs; a relation links some communities to
others, and some relations allow a constant one partner only. Facts come from three sources: what communities hold of
each other, what planted rules conclude from the facts before them (each rule with exceptions of its own), and noise,
pairs of constants drawn without regard to anything.
"""

import errno
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64
from scipy.sparse import csr_array

from r2n.errors import ConfigError
from r2n.files import new_folder

MOST_WALKS = 5_000_000  # of a body: above, it is followed from some of its first constants only
LENGTHS, SHARES_OF_LENGTHS = (1, 2, 3), (0.2, 0.6, 0.2)
SHARE_OF_FALSE_RULES = 0.2  # given like the others, but nothing follows from them
COMMUNITIES_A_RELATION = 0.5  # share of the communities that a relation speaks of
RENOWN = 1.0  # the deviation of the log of a constant's renown

Pairs = Int64[np.ndarray, "pairs 2"]

MOST = 10_000_000  # of anything: more is made by no machine that this is tried on


@dataclass(frozen=True, slots=True)
class PlantedOptions:
    """How large a generated graph is, and what it is made of.

    `noise` is the share of facts that are noise; `by_rules` the share of the others that rules conclude.
    `queries` is the share of all facts that is kept back as validation queries, and again as test queries.
    """

    facts: int = 20_000
    constants: int = 3_000
    relations: int = 12
    rules: int = 100
    noise: float = 0.05
    by_rules: float = 0.5
    communities: int = 60
    queries: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be made."""
        least = {"facts": 10, "constants": 2, "relations": 1, "rules": 0, "communities": 1, "seed": 0}
        for name, smallest in least.items():
            if getattr(self, name) < smallest:
                raise ConfigError(f"{name} is {getattr(self, name)}", hint=f"give {smallest} or more")
            if name != "seed" and getattr(self, name) > MOST:
                raise ConfigError(f"{name} is {getattr(self, name)}", hint=f"give at most {MOST:,}")
        for name in ("noise", "by_rules"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} is {getattr(self, name)}", hint="give a share from 0 to 1")
        if not 0 < self.queries < 0.5:
            raise ConfigError(f"queries is {self.queries}", hint="give a share above 0 and below 0.5")
        if self.facts > self.relations * self.constants * (self.constants - 1) // 10:
            raise ConfigError(
                f"{self.facts:,} facts of {self.relations:,} relations among {self.constants:,} constants are no graph:"
                " more than a tenth of all pairs",
                hint="give more constants or relations, or fewer facts",
            )


@dataclass(frozen=True, slots=True)
class PlantedRule:
    """head(x_0, x_n) from a chain of relations between x_0, x_1, ..., x_n, each read forwards or backwards.

    `chance` is that of a conclusion to hold; nothing follows from a rule of chance 0.
    """

    head: int
    body: tuple[tuple[int, bool], ...]
    chance: float

    def __str__(self) -> str:
        """As a theory file states it."""
        atoms = [
            f"r{relation}(x{i}, x{i + 1})" if forward else f"r{relation}(x{i + 1}, x{i})"
            for i, (relation, forward) in enumerate(self.body)
        ]
        return f"{' & '.join(atoms)} -> r{self.head}(x0, x{len(self.body)})"


@dataclass(frozen=True, eq=False)
class Planted:
    """A generated graph: its rules, and its facts (relation, first constant, second constant) by split."""

    options: PlantedOptions
    rules: tuple[PlantedRule, ...]
    splits: dict[str, Int64[np.ndarray, "facts 3"]]

    def write(self, folder: Path) -> None:
        """A problem folder: three tables, the rules as theory, and the problem file."""
        texts = {"problem.toml": PROBLEM.format(folder.resolve().name)}
        for name, facts in self.splits.items():
            rows = (f"c{first}\tr{relation}\tc{second}\n" for relation, first, second in facts.tolist())
            texts[f"{name}.tsv"] = "".join(rows)
        names = "".join(f"predicate r{i}(constant, constant)\n" for i in range(self.options.relations))
        rules = "".join(f"rule p{i}: {rule}\n" for i, rule in enumerate(self.rules))
        texts["theory.r2n"] = f"domain constant\n{names}{rules}"
        with new_problem_folder(folder) as work:
            for name, text in texts.items():
                (work / name).write_text(text, "utf-8")


@contextmanager
def new_problem_folder(folder: Path) -> Iterator[Path]:
    """A folder to be filled, which appears when all is written; one that is there already is refused."""
    with ExitStack() as stack:
        try:
            if folder.exists():
                raise FileExistsError(errno.EEXIST, "it is there already")
            folder.parent.mkdir(parents=True, exist_ok=True)
            work = stack.enter_context(new_folder(folder))
        except OSError as error:
            raise ConfigError(
                f"the folder {str(folder)!r} cannot be made: {error.strerror}", hint="name one that is not there"
            ) from error
        yield work


PROBLEM = """name = "{}"
theory = "theory.r2n"
[facts]
train = "train.tsv"
[queries]
valid = "valid.tsv"
test = "test.tsv"
"""


def plant(options: PlantedOptions | None = None, **changes: Any) -> Planted:
    """Generate a graph; the same options give the same graph. `changes` are options by name."""
    wanted = replace(options or PlantedOptions(), **changes)
    graph = _Graph(wanted, np.random.default_rng(wanted.seed))
    graph.add_of_communities()
    rules = tuple(graph.add_by_rules())
    graph.add_noise()
    return Planted(wanted, rules, graph.split())


@dataclass(eq=False)
class _Graph:
    """A graph that grows: for each relation the codes first * constants + second of its pairs, ascending."""

    options: PlantedOptions
    dice: np.random.Generator
    codes: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = self.options.constants
        self.codes = [np.zeros(0, np.int64) for _ in range(self.options.relations)]
        sizes = self.dice.dirichlet(np.full(self.options.communities, 2.0))
        self.community = self.dice.choice(self.options.communities, size=count, p=sizes)
        self.renown = self.dice.lognormal(sigma=RENOWN, size=count)

    @property
    def size(self) -> int:
        """Facts so far."""
        return sum(map(len, self.codes))

    def add(self, relation: int, codes: np.ndarray) -> None:
        """Pairs of a relation, none of them of a constant with itself."""
        first, second = np.divmod(codes, self.options.constants)
        self.codes[relation] = np.union1d(self.codes[relation], codes[first != second])

    def add_of_communities(self) -> None:
        """What communities hold of each other."""
        rest = self.options.facts * (1 - self.options.noise)
        share = 1 - self.options.by_rules * (self.options.rules > 0)
        sizes = self.dice.multinomial(round(rest * share), self.dice.dirichlet(np.full(self.options.relations, 3.0)))
        for relation, size in enumerate(sizes.tolist()):
            self.add(relation, self._between_communities(size))

    def _between_communities(self, size: int) -> np.ndarray:
        """So many pairs (or what there is): each community that the relation speaks of is linked to one other."""
        dice, count = self.dice, self.options.communities
        speaks = dice.random(count) < COMMUNITIES_A_RELATION
        speaks[dice.integers(count)] = True
        linked, one_second, one_first = dice.permutation(count), dice.random() < 0.4, dice.random() < 0.2
        weights = self.renown * speaks[self.community]
        if not weights.any() or not size:
            return np.zeros(0, np.int64)
        found = np.zeros((0, 2), np.int64)
        for _ in range(10):
            first = dice.choice(len(weights), size=2 * size, p=weights / weights.sum())
            drawn = np.stack([first, self._members(linked[self.community[first]])], axis=1)
            found = np.concatenate([found, drawn[drawn[:, 1] >= 0]])
            for column, is_one in ((0, one_second), (1, one_first)):
                if is_one:
                    found = found[np.sort(np.unique(found[:, column], return_index=True)[1])]
            found = found[np.sort(np.unique(found @ [len(weights), 1], return_index=True)[1])]
            if len(found) >= size:
                break
        return found[:size] @ [len(weights), 1]

    def _members(self, communities: np.ndarray) -> np.ndarray:
        """A member of each community, by renown; -1 of one without members."""
        order = np.argsort(self.community, kind="stable")
        ends = np.concatenate([[0.0], np.cumsum(self.renown[order])])
        starts = np.searchsorted(self.community[order], np.arange(self.options.communities + 1))
        low, high = ends[starts[communities]], ends[starts[communities + 1]]
        drawn = low + self.dice.random(len(communities)) * (high - low)
        at = np.clip(np.searchsorted(ends, drawn, side="right") - 1, 0, len(order) - 1)
        return np.where(high > low, order[at], -1)

    def add_by_rules(self) -> Iterator[PlantedRule]:
        """What rules conclude, one after the other, from the facts there are when its turn comes."""
        budget = round(self.options.facts * (1 - self.options.noise)) - self.size
        shares = self.dice.lognormal(size=self.options.rules)
        for share, left in zip(shares, np.cumsum(shares[::-1])[::-1], strict=True):
            rule = self._rule()
            pairs = _conclusions(self, rule)
            room = budget * share / left
            chance = min(rule.chance, room / max(1, len(pairs)))
            before = self.size
            self.add(rule.head, pairs[self.dice.random(len(pairs)) < chance])
            budget -= self.size - before
            yield replace(rule, chance=chance)

    def _rule(self) -> PlantedRule:
        """A rule whose body is no copy of its head."""
        dice = self.dice
        while True:
            length = int(dice.choice(LENGTHS, p=SHARES_OF_LENGTHS))
            head = int(dice.integers(self.options.relations))
            body = tuple((int(dice.integers(self.options.relations)), bool(dice.random() < 0.7)) for _ in range(length))
            is_false = dice.random() < SHARE_OF_FALSE_RULES
            if body != ((head, True),):
                return PlantedRule(head, body, 0.0 if is_false else float(dice.uniform(0.2, 1.0)))

    def matrix(self, relation: int, forward: bool) -> csr_array:
        """A relation as a matrix of ones, from its first to its second constants or back."""
        count = self.options.constants
        first, second = np.divmod(self.codes[relation], count)
        at = (first, second) if forward else (second, first)
        return csr_array((np.ones(len(first), np.int64), at), shape=(count, count))

    def add_noise(self) -> None:
        """Pairs drawn at random, until there are as many facts as wanted."""
        count = self.options.constants
        while (missing := self.options.facts - self.size) > 0:
            relation = self.dice.integers(self.options.relations, size=missing)
            codes = self.dice.integers(count * count, size=missing)
            for i in np.unique(relation).tolist():
                self.add(i, codes[relation == i])

    def split(self) -> dict[str, np.ndarray]:
        """All facts, some of them kept back at random."""
        parts = [
            np.stack([np.full(len(codes), relation), *np.divmod(codes, self.options.constants)], axis=1)
            for relation, codes in enumerate(self.codes)
        ]
        facts = self.dice.permutation(np.concatenate(parts))
        size = max(1, round(len(facts) * self.options.queries))
        return {"train": facts[2 * size :], "valid": facts[:size], "test": facts[size : 2 * size]}


def _conclusions(graph: _Graph, rule: PlantedRule) -> np.ndarray:
    """The codes of the pairs that a rule's body reaches, without those of a constant with itself."""
    matrices = [graph.matrix(*step) for step in rule.body]
    walks = np.ones(graph.options.constants)
    for matrix in reversed(matrices):
        walks = matrix @ walks
    if walks.sum() > MOST_WALKS:
        kept = graph.dice.random(len(walks)) < MOST_WALKS / walks.sum()
        matrices[0] = csr_array(matrices[0].multiply(kept[:, None]))
    reached = matrices[0]
    for matrix in matrices[1:]:
        reached = csr_array(reached @ matrix)
    first, second = reached.tocoo().coords
    first, second = first[first != second], second[first != second]
    return np.unique(first.astype(np.int64) * graph.options.constants + second)
