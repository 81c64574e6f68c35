"""Predicates of one, two and three positions, mixed domains and rules of any formula, from files to answers.

Each problem is written as files, and taken through every command: check, ground, train, evaluate, predict, infer. What
`r2n infer` believes is compared with a sum over all worlds, and what the network answers with the truth that made the
data.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from r2n.logic.parser import parse_theory
from tests.command_line import document, run
from tests.formula_problems import (
    MOODS,
    MOODS_OPTIONS,
    PLACES,
    ROUTES,
    ROUTES_OPTIONS,
    SMOKERS,
    SMOKERS_OPTIONS,
    Fact,
    known,
    moods,
    routes,
    smokers,
    write_problem,
)
from tests.oracles import grounding as oracle
from tests.oracles.grounding import World
from tests.oracles.worlds import marginals


def ground_counts(folder: Path) -> list[int]:
    said = document("ground", folder, "--strategy", "full")
    return [rule["ground_rules"] for rule in said["rules"]]


def probabilities(answers: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    return {answer["atom"]: answer["probability"] for answer in answers}


def spelled(fact: Fact) -> str:
    return f"{fact[0]}({', '.join(fact[1:])})"


def all_commands(folder: Path, question: str, *more: object) -> dict[str, float]:
    """Train, evaluate, and ask; the metrics of the test split, after each command said the same as the others."""
    runs = folder / "run"
    trained = document("train", folder, "--out", runs, "--no-baseline", "--no-report", *more)
    reports = {report["split"]: report["metrics"] for report in trained["reports"]}
    assert document("evaluate", runs)["metrics"] == reports["test"]
    answers = document("predict", runs, question, "--all", "--top", 1000)["answers"]
    assert all(0 <= answer["probability"] <= 1 for answer in answers)
    asked = document("infer", folder, question, "--beliefs", runs, "--iterations", 0, "--top", 1000)["answers"]
    believed = probabilities(asked)
    for answer in answers:  # without an iteration, belief propagation starts from what the network says
        expected = answer["probability"] if answer["known"] is None else float(answer["known"])
        assert believed[answer["atom"]] == pytest.approx(expected, abs=1e-5)
    return reports["test"]


def infers_as_all_worlds_do(folder: Path, theory: str, members: Mapping[str, Sequence[str]], asked: list[Fact]) -> None:
    """`r2n infer` on a small problem whose unknown atoms form a tree, against a sum over all worlds."""
    parsed = parse_theory(theory)
    facts = read_facts(folder)
    world = World(parsed, oracle.members_of(parsed.domains, members), facts[True], facts[False])
    expected = marginals(world, asked)
    for fact in asked:
        said = document("infer", folder, spelled(fact), "--method", "sum-product", "--iterations", 12)["answers"]
        assert said[0]["reached"]
        assert said[0]["probability"] == pytest.approx(expected[fact], abs=1e-6), fact
    assert len({round(value, 3) for value in expected.values()}) > 1  # else the test would see nothing


def read_facts(folder: Path) -> dict[bool, frozenset[Fact]]:
    rows = []
    for path in folder.glob("train_*.csv"):
        with path.open(newline="") as file:
            rows += [(path.stem.removeprefix("train_"), *row) for row in list(csv.reader(file))[1:]]
    return {truth: frozenset(row[:-1] for row in rows if row[-1] == str(int(truth))) for truth in (True, False)}


# smokers and friends: a unary and a binary predicate


def test_smokers_and_friends(tmp_path: Path) -> None:
    splits = smokers()
    folder = write_problem(tmp_path / "smokers", SMOKERS, SMOKERS_OPTIONS, splits)
    said = document("check", folder)
    assert said["herbrand_base"] == 30 * 30 + 30 + 30
    assert said["predicates"] == {
        "friends(person, person) closed": "60 / 0",
        "smokes(person)": "12 / 12",
        "cancer(person)": "12 / 12",
    }
    assert ground_counts(folder) == [60, 30]
    metrics = all_commands(folder, "smokes(?)")
    assert metrics["ap"] == 1.0
    assert metrics["accuracy"] == 1.0


def test_smokers_are_inferred_without_training(tmp_path: Path) -> None:
    facts = known([("friends", "ann", "bob"), ("friends", "bob", "cy"), ("friends", "bob", "dan"), ("smokes", "ann")])
    facts[("cancer", "dan")] = False
    folder = write_problem(tmp_path / "chain", SMOKERS, "", {"train": facts})
    asked = [("smokes", "bob"), ("smokes", "cy"), ("smokes", "dan"), ("cancer", "bob"), ("cancer", "cy")]
    infers_as_all_worlds_do(folder, SMOKERS, {"person": ["ann", "bob", "cy", "dan"]}, asked)


# three positions over two domains, one of them a union


@pytest.mark.parametrize("input_layer", ["distmult", "mlp"])
def test_routes_of_carriers(tmp_path: Path, input_layer: str) -> None:
    splits = routes()
    folder = write_problem(tmp_path / "routes", ROUTES, ROUTES_OPTIONS.format(input=input_layer), splits, PLACES)
    said = document("check", folder)
    assert said["domains"] == {"city": 4, "island": 2, "carrier": 9, "place": 6}
    assert said["herbrand_base"] == 6 * 6 * 9 + 9 * 9 + 4 * 9
    assert ground_counts(folder) == [18 * 36, 30 * 9, 3 * 2]
    metrics = all_commands(folder, "route(rome, oslo, ?)")
    assert metrics["mrr"] > 0.8  # at any of the three positions
    assert "hits@10" in metrics


def test_routes_are_inferred_without_training(tmp_path: Path) -> None:
    facts = known([("partner", "sky0", "sky1"), ("hub", "rome", "sky0"), ("route", "malta", "rome", "sky0")])
    facts[("route", "malta", "rome", "sky1")] = False  # both ways unknown would be a loop
    places = {"city": ["rome"], "island": ["malta"]}
    folder = write_problem(tmp_path / "few", ROUTES, "", {"train": facts}, places)
    pairs = (("rome", "malta"), ("rome", "rome"), ("malta", "malta"))
    asked = [("route", *pair, carrier) for pair in pairs for carrier in ("sky0", "sky1")]
    infers_as_all_worlds_do(folder, ROUTES, places | {"carrier": ["sky0", "sky1"]}, asked)


# one rule with disjunction, negation, a constant and a guard


def test_a_rule_of_any_formula(tmp_path: Path) -> None:
    splits = moods()
    folder = write_problem(tmp_path / "moods", MOODS, MOODS_OPTIONS, splits)
    assert 'drinks(x, "light beer")' in run("check", folder)
    assert ground_counts(folder) == [60]
    metrics = all_commands(folder, "happy(?)")
    assert metrics["accuracy"] == 1.0
    assert metrics["ap"] == 1.0


def test_a_rule_of_any_formula_is_inferred_without_training(tmp_path: Path) -> None:
    theory = MOODS.replace("predicate sporty(person) closed", "predicate sporty(person)")
    facts = known([("drinks", "ann", "light beer"), ("drinks", "bob", "tea"), ("rivals", "ann", "bob")])
    facts |= known([("rivals", "bob", "cy"), ("rivals", "ann", "ann"), ("drinks", "cy", "light beer")])
    facts |= {("rivals", "cy", "dan"): True, ("happy", "cy"): False, ("drinks", "dan", "wine"): True}
    folder = write_problem(tmp_path / "few", theory, "", {"train": facts})
    asked = [("happy", "ann"), ("sporty", "bob"), ("happy", "bob"), ("sporty", "dan")]
    infers_as_all_worlds_do(folder, theory, {"person": ["ann", "bob", "cy", "dan"]}, asked)
