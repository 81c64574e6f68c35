"""Are explanations right? Where it is known what makes an answer true, is it the first reason given?

    python experiments/explained.py truth
    python experiments/explained.py countries runs/countries-s2

`truth` makes data from two rules, with distractor rules beside them: their bodies have the same shape and are often
true where the answer is, but nothing follows from them. `countries` looks at the test countries of runs on Countries
S2: is the first reason a neighbour that lies in the region by the facts?
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

import r2n
from r2n.explanation.records import Reason
from r2n.model.run import prepare_run
from r2n.options import Options

THEORY = """
domain person, club, book, shop, town, topic
predicate likes(person, topic)
predicate member(person, club) closed
predicate covers(club, topic) closed
predicate reads(person, book) closed
predicate about(book, topic) closed
predicate buys(person, shop) closed
predicate sells(shop, topic) closed
predicate visits(person, town) closed
predicate hosts(town, topic) closed
predicate knows(person, person) closed
rule club: member(x, y) & covers(y, z) -> likes(x, z)
rule book: reads(x, y) & about(y, z) -> likes(x, z)
rule shop: buys(x, y) & sells(y, z) -> likes(x, z)
rule town: visits(x, y) & hosts(y, z) -> likes(x, z)
rule friend: knows(x, y) & likes(x, z) -> likes(y, z)
"""
GENERATING = ("club", "book")
LINKS = {
    "club": ("member", "covers"),
    "book": ("reads", "about"),
    "shop": ("buys", "sells"),
    "town": ("visits", "hosts"),
}
PERSONS, TOPICS, PLACES = 120, 6, 3  # clubs, books, shops and towns of each topic
ASKED_OF = 40  # persons of whom nothing is told but their clubs, books, shops, towns and friends
LIKES, TOGETHER, ALONE = 1.5, 0.7, 0.15  # topics a person; how often a distractor goes with one, and with no one
OPTIONS = (
    "grounding.strategy=full",
    "model.evidence_input=only",
    "model.layers=2",
    "model.dim=16",
    "training.hide_by=constant",
    "training.hiding=0.5",
    "training.corrupted_positions=[-1]",
    "training.epochs=150",
)
Fact = tuple[str, str, str]


@dataclass
class Made:
    """Facts made from the two generating rules, and from what goes along with them."""

    seed: int
    facts: set[Fact] = field(default_factory=set)
    likes: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Roll the dice."""
        dice = Random(self.seed)
        topics, persons = [f"t{i}" for i in range(TOPICS)], [f"p{i:03}" for i in range(PERSONS)]
        for rule, (_, to_topic) in LINKS.items():
            self.facts |= {(to_topic, f"{rule}_{z}_{i}", z) for z in topics for i in range(PLACES)}
        for x in persons:
            for z in topics:
                self._tell(dice, x, z)
        for x in persons:  # friends like the same more often than not
            others = [y for y in persons if y != x]
            alike = [y for y in others if any((x, z) in self.likes and (y, z) in self.likes for z in topics)]
            for y in dice.sample(alike, min(2, len(alike))) + dice.sample(others, 1):
                self.facts |= {("knows", x, y), ("knows", y, x)}

    def _tell(self, dice: Random, x: str, z: str) -> None:
        """Whether a person likes a topic, the club or book that it follows from, and the shop and town beside."""
        if dice.random() < LIKES / TOPICS:
            self.likes.add((x, z))
            for rule in dice.choice((("club",), ("book",), ("club", "book"))):
                self._link(dice, rule, x, z)
        for rule in ("shop", "town"):
            if dice.random() < (TOGETHER if (x, z) in self.likes else ALONE):
                self._link(dice, rule, x, z)

    def _link(self, dice: Random, rule: str, x: str, z: str) -> None:
        """A person's club, book, shop or town of a topic; now and then two."""
        for i in dice.sample(range(PLACES), dice.choice((1, 1, 1, 2))):
            self.facts.add((LINKS[rule][0], x, f"{rule}_{z}_{i}"))

    def problem(self, options: Sequence[str]) -> r2n.Problem:
        """What the last persons like is asked."""
        told = [("likes", x, z) for x, z in sorted(self.likes) if int(x[1:]) < PERSONS - ASKED_OF]
        asked = [("likes", x, z) for x, z in sorted(self.likes) if int(x[1:]) >= PERSONS - ASKED_OF]
        return r2n.Problem.build(
            "likes",
            r2n.parse_theory(THEORY),
            [table(told), table(sorted(self.facts))],
            {"test": [table(asked)]},
            options=Options().changed(options),
        )


def table(facts: Sequence[Fact]) -> r2n.Table:
    """Facts of several predicates."""
    names = ("predicate", "first", "second")
    columns = {name: [fact[i] for fact in facts] for i, name in enumerate(names)}
    order = {"head": "first", "relation": "predicate", "tail": "second"}
    return r2n.Table(pa.table({name: columns[column] for name, column in order.items()}))


def trained(problem: r2n.Problem, seed: int) -> r2n.Model:
    """A network, trained."""
    run = prepare_run(problem, problem.options, seed=seed)
    for _ in run.trainer:
        pass
    return r2n.Model.from_run(run)


@dataclass
class Score:
    """How often the first ground rule is one of a generating rule's, and how often a random one would be."""

    explained: int = 0
    right: int = 0
    by_chance: float = 0.0
    first: Counter[str] = field(default_factory=Counter)

    def add(self, reasons: Sequence[Reason]) -> None:
        """The reasons of one answer."""
        self.explained += 1
        self.right += reasons[0].rule in GENERATING
        self.by_chance += sum(reason.rule in GENERATING for reason in reasons) / len(reasons)
        self.first[reasons[0].rule] += 1

    def __str__(self) -> str:
        """One line."""
        shares = f"{self.right / self.explained:.3f}, a random ranking {self.by_chance / self.explained:.3f}"
        return f"{self.explained} answers explained: {shares}; first reasons {dict(self.first)}"


def right_answers(predictor: r2n.Model) -> Iterator[tuple[str, tuple[Reason, ...]]]:
    """The test queries that are answered right, with all their ground rules."""
    test = predictor.problem.test
    logits = predictor.logits(test.atoms)
    for atom in predictor.base.names(test.atoms[test.truth & (logits > 0)]):
        yield atom, predictor.explain(atom, depth=1, top=None).reasons


def score(seed: int, options: Sequence[str] = OPTIONS) -> tuple[Score, float]:
    """The score of one seed, and the share of the test queries that are answered right."""
    predictor, found = trained(Made(seed).problem(options), seed), Score()
    for _, reasons in right_answers(predictor):
        found.add(reasons)
    return found, found.explained / len(predictor.problem.test)


app = typer.Typer(add_completion=False)


@app.command()
def truth(
    seeds: Annotated[int, typer.Option(help="data sets and trainings")] = 5,
    changes: Annotated[list[str] | None, typer.Option("--set", help="SECTION.KEY=VALUE")] = None,
) -> None:
    """Data from known rules with distractors: a line a seed, and one for all."""
    total = Score()
    for seed in range(seeds):
        found, recall = score(seed, [*OPTIONS, *(changes or [])])
        typer.echo(f"seed {seed}: recall {recall:.3f}, {found}")
        total.explained, total.right = total.explained + found.explained, total.right + found.right
        total.by_chance, total.first = total.by_chance + found.by_chance, total.first + found.first
    typer.echo(f"all: {total}")


@app.command()
def countries(folders: list[Path]) -> None:
    """Runs on Countries S2: a line each."""
    for folder in folders:
        found = neighbours(r2n.Model.load(folder))
        known, true = found["known"], found["known"] + found["inferred"]
        typer.echo(
            f"{folder.name}: {found.total()} of 24 countries answered right; the first reason is a neighbour that lies"
            f" there by the training facts for {known}, by these or in truth for {true}"
        )


def neighbours(predictor: r2n.Model) -> Counter[str]:
    """The first reasons of right answers: a neighbour whose region is `known`, or true and `inferred`, or `other`."""
    problem = predictor.problem
    train, asked = problem.train, (problem.test, problem.valid)
    known = set(predictor.base.names(train.atoms[train.truth]))
    true = {name for part in asked for name in predictor.base.names(part.atoms[part.truth])}
    logits, arguments = predictor.logits(problem.test.atoms), predictor.base.decode(problem.test.atoms)[1]
    found: Counter[str] = Counter()
    for country in np.unique(arguments[:, 0]):
        own = np.flatnonzero(arguments[:, 0] == country)
        best = own[logits[own].argmax()]
        if problem.test.truth[best]:
            atom = predictor.base.names(problem.test.atoms[[best]])[0]
            first = predictor.explain(atom, depth=1, top=1).reasons[0]
            others = {member.atom for member in first.because} if first.rule == "manifold" else set()
            found["known" if others & known - borders(others) else "inferred" if others & true else "other"] += 1
    return found


def borders(atoms: set[str]) -> set[str]:
    """Those of them that say who is whose neighbour."""
    return {atom for atom in atoms if atom.startswith("neighborOf")}


if __name__ == "__main__":
    app()
