"""Three problems of any formula, as theories and labelled facts, and how a problem is written as files.

Smokers and friends: predicates of one and two positions. Routes of carriers: three positions over two domains, one of
them a union. Moods: one rule with disjunction, negation, a constant and a guard.
"""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

Fact = tuple[str, ...]
"""The predicate and its constants."""


def write_problem(
    folder: Path,
    theory: str,
    options: str,
    splits: Mapping[str, Mapping[Fact, bool]],
    domains: Mapping[str, Sequence[str]] | None = None,
) -> Path:
    """A folder with a theory, one CSV a predicate and split with a column `label`, and a problem file."""
    folder.mkdir(exist_ok=True)
    (folder / "theory.r2n").write_text(theory)
    listed = {split: _write_tables(folder, split, facts) for split, facts in splits.items()}
    queries = "".join(f"{split} = {tables}\n" for split, tables in listed.items() if split != "train")
    listed_domains = "".join(f"{name} = {json.dumps(list(names))}\n" for name, names in (domains or {}).items())
    facts = f"[facts]\ntrain = {listed['train']}\n[queries]\n{queries}"
    (folder / "problem.toml").write_text(f'theory = "theory.r2n"\n[domains]\n{listed_domains}{facts}{options}')
    return folder


def _write_tables(folder: Path, split: str, facts: Mapping[Fact, bool]) -> str:
    names = sorted({fact[0] for fact in facts})
    for name in names:
        rows = [[*fact[1:], int(truth)] for fact, truth in facts.items() if fact[0] == name]
        with (folder / f"{split}_{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*(f"c{i}" for i in range(len(rows[0]) - 1)), "label"])
            writer.writerows(rows)
    tables = [f'{{file = "{split}_{name}.csv", predicate = "{name}", header = true}}' for name in names]
    return f"[{', '.join(tables)}]"


def known(facts: Iterable[Fact]) -> dict[Fact, bool]:
    """These facts, all true."""
    return dict.fromkeys(facts, True)


# smokers and friends

SMOKERS = """\
domain person
predicate friends(person, person) closed
predicate smokes(person)
predicate cancer(person)
rule peers [1.2]:  smokes(x) & friends(x, y) -> smokes(y)
rule causes [0.8]: smokes(x) -> cancer(x)
"""
SMOKERS_OPTIONS = """
[model]
dim = 8
layers = 2
[training]
epochs = 80
corrupted_positions = []
"""
GROUPS = [[f"{group}{i}" for i in range(5)] for group in "abcdef"]


def smokers() -> dict[str, dict[Fact, bool]]:
    """Friends in rings of five; the rings smoke in turn, and who smokes has cancer. One of each ring is asked about."""
    splits: dict[str, dict[Fact, bool]] = {"train": {}, "test": {}}
    for number, ring in enumerate(GROUPS):
        for i, person in enumerate(ring):
            splits["train"] |= known([("friends", ring[i - 1], person), ("friends", person, ring[i - 1])])
            split = splits["test" if i == 4 else "train"]
            split |= {("smokes", person): number % 2 == 0, ("cancer", person): number % 2 == 0}
    return splits


# routes of carriers

ROUTES = """\
domain city, island, carrier
domain place = city | island
predicate route(place, place, carrier)
predicate partner(carrier, carrier) closed
predicate hub(city, carrier) closed
rule shared [1.5]: partner(c, d) & route(x, y, c) -> route(x, y, d)
rule back [2]:     route(x, y, c) -> route(y, x, c), x != y
rule hubs [0.5]:   hub(x, c) -> route(x, y: island, c)
"""
ROUTES_OPTIONS = """
[model]
input = "{input}"
dim = 8
layers = 1
evidence_input = "add"
[training]
epochs = 40
hiding = 0.4
"""
CITIES, ISLANDS = ["rome", "oslo", "bern", "kyiv"], ["malta", "crete"]
PLACES = {"city": CITIES, "island": ISLANDS}  # listed: what stands in a union may be in either part
CARRIERS = [f"{alliance}{i}" for alliance in ("sky", "star", "one") for i in range(3)]


def routes() -> dict[str, dict[Fact, bool]]:
    """Each alliance has a network of its own, shared by its carriers, and flown both ways."""
    networks = {"sky": [("rome", "oslo"), ("oslo", "malta")], "star": [("bern", "kyiv"), ("kyiv", "crete")]}
    networks["one"] = [("rome", "bern"), ("bern", "malta")]
    splits: dict[str, dict[Fact, bool]] = {"train": {}, "test": {}}
    for carrier in CARRIERS:
        alliance = carrier[:-1]
        others = [f"{alliance}{i}" for i in range(3) if f"{alliance}{i}" != carrier]
        splits["train"] |= known(("partner", carrier, other) for other in others)
        if carrier.endswith("0"):
            splits["train"][("hub", networks[alliance][1][0], carrier)] = True
        for x, y in networks[alliance]:
            asked = carrier.endswith("2") and (x, y) == networks[alliance][0]
            flights = [("route", x, y, carrier), ("route", y, x, carrier)]
            splits["train" if not asked else "test"] |= known(flights[:1])
            splits["train" if not asked else "test"] |= known(flights[1:])
    return splits


# moods

MOODS = """\
domain person
domain drink = {"light beer", wine, tea}
predicate drinks(person, drink) closed
predicate rivals(person, person) closed
predicate sporty(person) closed
predicate happy(person)
rule mood [1.5]: rivals(x, y) & x != y -> (happy(x) <-> (!drinks(x, "light beer") | sporty(y)))
"""
MOODS_OPTIONS = """
[model]
dim = 12
layers = 1
evidence_input = "only"
[training]
epochs = 200
hiding = 0.5
corrupted_positions = []
"""
PEOPLE = [f"p{i:02}" for i in range(60)]


def moods() -> dict[str, dict[Fact, bool]]:
    """Each has the next as a rival. All are rivals of themselves too, which the guard leaves out."""
    splits: dict[str, dict[Fact, bool]] = {"train": {}, "test": {}}
    drinkers = {person for i, person in enumerate(PEOPLE) if i % 3 < 2}
    athletes = {person for i, person in enumerate(PEOPLE) if i % 4 < 2}
    train = splits["train"]
    train |= known(("drinks", person, "light beer" if person in drinkers else "tea") for person in PEOPLE)
    train |= known(("sporty", person) for person in athletes)
    train |= known(("rivals", person, person) for person in PEOPLE)
    for i, (person, rival) in enumerate(pairwise([*PEOPLE, PEOPLE[0]])):
        train[("rivals", person, rival)] = True
        splits["test" if i >= 48 else "train"][("happy", person)] = person not in drinkers or rival in athletes
    return splits
