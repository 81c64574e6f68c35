"""Predicates of up to three positions, unions of domains, rules of any formula: `r2n infer` sums over all worlds."""

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


def write_problem(folder: Path, theory: str, facts: Facts, domains: Mapping[str, list[str]]) -> Path:
    """A theory, one CSV with the column `label` for each predicate, and a problem file."""
    (folder / "theory.r2n").write_text(theory)
    tables = []
    for name in sorted({terms(atom)[0] for atom in facts}):
        rows = [[*terms(atom)[1:], str(int(truth))] for atom, truth in facts.items() if terms(atom)[0] == name]
        header = [*(f"c{i}" for i in range(len(rows[0]) - 1)), "label"]
        (folder / f"{name}.csv").write_text("".join(",".join(row) + "\n" for row in [header, *rows]))
        tables.append(f'{{file = "{name}.csv", predicate = "{name}", header = true}}')
    members = "".join(f"{name} = {json.dumps(names)}\n" for name, names in domains.items())
    text = f'theory = "theory.r2n"\n[domains]\n{members}[facts]\ntrain = [{", ".join(tables)}]\n'
    (folder / "problem.toml").write_text(text)
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
    folder = write_problem(tmp_path, text, facts, members)
    for atom in asked:
        (found,) = document("infer", folder, atom, "--method", "sum-product", "--iterations", 12)["answers"]
        assert found["reached"]
        assert found["probability"] == pytest.approx(expected[terms(atom)], abs=1e-6), atom
    assert len({round(value, 3) for value in expected.values()}) > 1  # else the test would see nothing
