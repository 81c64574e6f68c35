"""A graph to try r2n on: generated genealogies, twelve relations among about 3,000 people, split into three tables.

    python experiments/genealogies.py kin
    r2n mine kin --max-rules 5 --out kin/theory.r2n
    r2n train kin

Every fact follows from who married whom and whose child is whose; a tenth of the facts is kept back as queries.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

PEOPLE, SHARE_KEPT_BACK = 3000, 20  # one in so many is a validation query, one in so many a test query
PROBLEM = """name = "kin"
{}[facts]
train = "train.tsv"
[queries]
valid = "valid.tsv"
test = "test.tsv"
"""
Fact = tuple[str, str, str]


@dataclass
class Genealogy:
    """Who there is: sex, parents and spouse of each, by number."""

    dice: np.random.Generator
    male: list[bool] = field(default_factory=list)
    parents: dict[int, tuple[int, int]] = field(default_factory=dict)
    spouse: dict[int, int] = field(default_factory=dict)

    def couple(self, one: int | None = None) -> tuple[int, int]:
        """A new couple, husband first, or a new spouse for somebody."""
        one = self.born(True) if one is None else one
        other = self.born(not self.male[one])
        self.spouse |= {one: other, other: one}
        return (one, other) if self.male[one] else (other, one)

    def born(self, male: bool) -> int:
        """One more person."""
        self.male.append(male)
        return len(self.male) - 1

    def grow(self, couple: tuple[int, int], generations: int) -> None:
        """Children of a couple, most of whom marry and have children in their turn."""
        children = [self.born(bool(self.dice.random() < 0.5)) for _ in range(self.dice.integers(1, 4))]
        self.parents |= dict.fromkeys(children, couple)
        for child in children if generations else ():
            if self.dice.random() < 0.8:
                self.grow(self.couple(child), generations - 1)

    def siblings(self, person: int) -> list[int]:
        """The other children of somebody's parents."""
        own = self.parents.get(person)
        return [other for other, pair in self.parents.items() if pair == own and other != person] if own else []

    def facts(self) -> set[Fact]:
        """All that follows."""
        found: set[Fact] = set()

        def add(some: int, names: tuple[str, str], other: int) -> None:
            found.add((f"p{some}", names[0] if self.male[some] else names[1], f"p{other}"))

        for some, other in self.spouse.items():
            add(some, ("husband", "wife"), other)
        for child, pair in self.parents.items():
            for other in self.siblings(child):
                add(child, ("brother", "sister"), other)
            for parent in pair:
                add(parent, ("father", "mother"), child)
                add(child, ("son", "daughter"), parent)
                for sibling in self.siblings(parent):
                    for uncle in (sibling, *([self.spouse[sibling]] if sibling in self.spouse else [])):
                        add(uncle, ("uncle", "aunt"), child)
                        add(child, ("nephew", "niece"), uncle)
        return found


def main(folder: Path) -> None:
    """Write the tables and the problem file."""
    dice = np.random.default_rng(7)
    made = Genealogy(dice)
    while len(made.male) < PEOPLE:
        made.grow(made.couple(), 2)
    facts = sorted(made.facts())
    dice.shuffle(facts)
    size = len(facts) // SHARE_KEPT_BACK
    folder.mkdir(parents=True, exist_ok=True)
    splits = {"valid": facts[:size], "test": facts[size : 2 * size], "train": facts[2 * size :]}
    for name, part in splits.items():
        (folder / f"{name}.tsv").write_text("".join("\t".join(fact) + "\n" for fact in part), "utf-8")
    has_theory = (folder / "theory.r2n").exists()
    (folder / "problem.toml").write_text(PROBLEM.format('theory = "theory.r2n"\n' * has_theory), "utf-8")
    sys.stdout.write(f"{len(made.male):,} people, {len(facts):,} facts, in {folder}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
