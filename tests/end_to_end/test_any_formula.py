"""Predicates of one, two and three positions, mixed domains and rules of any formula, from files to answers.

What `r2n infer` believes is compared with a sum over all worlds, and what a network answers with the truth that made
the data.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from r2n.logic.parser import parse_theory
from tests.command_line import document
from tests.oracles import grounding as oracle
from tests.oracles.grounding import World
from tests.oracles.worlds import marginals

Facts = Mapping[str, bool]
"""Atoms `p(a, b)` and whether they are true."""


def terms(atom: str) -> tuple[str, ...]:
    predicate, _, inner = atom.removesuffix(")").partition("(")
    return (predicate, *inner.split(", "))


def true(*atoms: str) -> dict[str, bool]:
    return dict.fromkeys(atoms, True)


def write_problem(folder: Path, theory: str, splits: Mapping[str, Facts], domains: object, options: str = "") -> Path:
    """A theory, one CSV with the column `label` for each predicate of each split, and a problem file."""
    (folder / "theory.r2n").write_text(theory)
    listed: dict[str, list[str]] = {split: [] for split in splits}
    for split, facts in splits.items():
        for name in sorted({terms(atom)[0] for atom in facts}):
            rows = [[*terms(atom)[1:], str(int(truth))] for atom, truth in facts.items() if terms(atom)[0] == name]
            header = [*(f"c{i}" for i in range(len(rows[0]) - 1)), "label"]
            (folder / f"{split}_{name}.csv").write_text("".join(",".join(row) + "\n" for row in [header, *rows]))
            listed[split].append(f'{{file = "{split}_{name}.csv", predicate = "{name}", header = true}}')
    tables = {split: f"[{', '.join(part)}]" for split, part in listed.items()}
    queries = "".join(f"{split} = {part}\n" for split, part in tables.items() if split != "train")
    members = "".join(f"{name} = {json.dumps(names)}\n" for name, names in dict(domains).items())  # pyright: ignore
    text = f'theory = "theory.r2n"\n[domains]\n{members}[facts]\ntrain = {tables["train"]}\n[queries]\n{queries}'
    (folder / "problem.toml").write_text(text + options)
    return folder


SMOKERS = """\
domain person
predicate friends(person, person) closed
predicate smokes(person)
predicate cancer(person)
rule peers [1.2]:  smokes(x) & friends(x, y) -> smokes(y)
rule causes [0.8]: smokes(x) -> cancer(x)
"""
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
MOODS = """\
domain person
domain drink = {"light beer", wine, tea}
predicate drinks(person, drink) closed
predicate rivals(person, person) closed
predicate sporty(person)
predicate happy(person)
rule mood [1.5]: rivals(x, y) & x != y -> (happy(x) <-> (!drinks(x, "light beer") | sporty(y)))
"""
FOUR = {"person": ["ann", "bob", "cy", "dan"]}
FEW = {"city": ["rome"], "island": ["malta"], "carrier": ["sky0", "sky1"]}
FRIENDS = true("friends(ann, bob)", "friends(bob, cy)", "friends(bob, dan)", "smokes(ann)")
FLOWN = true("partner(sky0, sky1)", "hub(rome, sky0)", "route(malta, rome, sky0)")
DRUNK = true(*(f"drinks({who})" for who in ("ann, light beer", "bob, tea", "cy, light beer", "dan, wine")))
RIVALS = true(*(f"rivals({who})" for who in ("ann, bob", "bob, cy", "ann, ann", "cy, dan")))
PAIRS = ("rome, malta", "rome, rome", "malta, malta")
TREES: dict[str, tuple[str, dict[str, list[str]], Facts, list[str]]] = {
    "smokers": (
        SMOKERS,
        FOUR,
        FRIENDS | {"cancer(dan)": False},
        ["smokes(bob)", "smokes(cy)", "smokes(dan)", "cancer(bob)", "cancer(cy)"],
    ),
    "routes": (
        ROUTES,
        FEW,
        FLOWN | {"route(malta, rome, sky1)": False},
        [f"route({pair}, sky{i})" for pair in PAIRS for i in (0, 1)],
    ),
    "moods": (
        MOODS,
        FOUR,
        DRUNK | RIVALS | {"happy(cy)": False},
        ["happy(ann)", "sporty(bob)", "happy(bob)", "sporty(dan)"],
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_infer_is_a_sum_over_all_worlds(name: str, tmp_path: Path) -> None:
    text, members, facts, asked = TREES[name]
    theory = parse_theory(text)
    known = {truth: frozenset(terms(atom) for atom in facts if facts[atom] is truth) for truth in (True, False)}
    world = World(theory, oracle.members_of(theory.domains, members), known[True], known[False])
    expected = marginals(world, map(terms, asked))
    folder = write_problem(tmp_path, text, {"train": facts}, members)
    for atom in asked:
        (found,) = document("infer", folder, atom, "--method", "sum-product", "--iterations", 12)["answers"]
        assert found["reached"]
        assert found["probability"] == pytest.approx(expected[terms(atom)], abs=1e-6), atom
    assert len({round(value, 3) for value in expected.values()}) > 1  # else the test would see nothing


PLACES = {"city": ["rome", "oslo", "bern", "kyiv"], "island": ["malta", "crete"]}
NETWORKS = {
    "sky": ("rome, oslo", "oslo, malta"),
    "star": ("bern, kyiv", "kyiv, crete"),
    "one": ("rome, bern", "bern, malta"),
}
OPTIONS = """
[model]
input = "distmult"
dim = 8
layers = 1
evidence_input = "add"
[training]
epochs = 40
hiding = 0.4
"""


def routes() -> dict[str, dict[str, bool]]:
    """Each alliance has a network, shared by its three carriers, and flown both ways."""
    splits: dict[str, dict[str, bool]] = {"train": {}, "test": {}}
    for alliance, flights in NETWORKS.items():
        splits["train"] |= true(f"hub({flights[1].split(', ')[0]}, {alliance}0)")
        for i in range(3):
            splits["train"] |= true(*(f"partner({alliance}{i}, {alliance}{j})" for j in range(3) if j != i))
            for flight in flights:
                back = ", ".join(flight.split(", ")[::-1])
                split = "test" if i == 2 and flight == flights[0] else "train"
                splits[split] |= true(f"route({flight}, {alliance}{i})", f"route({back}, {alliance}{i})")
    return splits


def test_routes_of_carriers_through_every_command(tmp_path: Path) -> None:
    folder = write_problem(tmp_path, ROUTES, routes(), PLACES, OPTIONS)
    said = document("check", folder)
    assert said["domains"] == {"city": 4, "island": 2, "carrier": 9, "place": 6}
    assert said["herbrand_base"] == 6 * 6 * 9 + 9 * 9 + 4 * 9
    rules = document("ground", folder, "--strategy", "full")["rules"]
    assert [rule["ground_rules"] for rule in rules] == [18 * 36, 30 * 9, 3 * 2]
    assert all(rule["estimate"] >= rule["ground_rules"] for rule in rules)
    trained = document("train", folder, "--out", folder / "run", "--no-baseline", "--no-report")
    (metrics,) = [report["metrics"] for report in trained["reports"] if report["split"] == "test"]
    assert metrics["mrr"] > 0.8  # at any of the three positions
    assert document("evaluate", folder / "run")["metrics"] == metrics
    asked = "route(rome, oslo, ?)"
    answers = document("predict", folder / "run", asked, "--all", "--top", 1000)["answers"]
    start = document("infer", folder, asked, "--beliefs", folder / "run", "--iterations", 0, "--top", 1000)["answers"]
    believed = {answer["atom"]: answer["probability"] for answer in start}
    assert len(answers) == 9
    for answer in answers:  # without an iteration, belief propagation starts from what the network says
        expected = answer["probability"] if answer["known"] is None else float(answer["known"])
        assert believed[answer["atom"]] == pytest.approx(expected, abs=1e-5)
