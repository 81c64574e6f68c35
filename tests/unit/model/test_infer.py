"""A problem answered by its rules alone."""

import numpy as np
import pyarrow as pa
import pytest
import torch

import r2n
from r2n.data.candidates import Candidates
from r2n.data.problem import Problem
from r2n.errors import ConfigError
from r2n.logic.parser import parse_theory
from r2n.model.infer import believe
from r2n.model.model import Model
from r2n.model.run import Run
from tests.candidate_problem import things_problem

SMOKERS = """\
domain person = {ann, bob, cy}
predicate friends(person, person) closed
predicate smokes(person)
predicate cancer(person)
rule causes [1.5]: smokes(x) -> cancer(x)
rule peers: friends(x, y) & smokes(x) -> smokes(y)
"""


def smokers() -> Problem:
    """Ann, who smokes, is a friend of Bob; of Cy nothing is known."""
    facts = {"friends": [("ann", "bob")], "smokes": [("ann",)]}
    tables = [
        r2n.Table(pa.table({f"c{i}": list(column) for i, column in enumerate(zip(*rows, strict=True))}), name)
        for name, rows in facts.items()
    ]
    return Problem.build("smokers", parse_theory(SMOKERS), tables)


def probabilities(problem: Problem, predicate: str, **options: object) -> list[float]:
    base = problem.knowledge.base
    every = np.arange(base.size)
    asked = every[[name.startswith(f"{predicate}(") for name in base.names(every)]]
    return believe(problem, problem.options, asked, **options).probability.tolist()  # pyright: ignore


def test_certain_rules_and_weighted_ones() -> None:
    assert probabilities(smokers(), "smokes", method="sum-product") == pytest.approx([1.0, 1.0, 0.4], abs=0.05)
    ann, bob, cy = probabilities(smokers(), "cancer", method="sum-product")
    e = float(np.exp(1.5))
    assert ann == pytest.approx(e / (1 + e))
    assert bob == pytest.approx(e / (1 + e))
    assert cy == pytest.approx(2 * e / (3 * e + 1))


def test_a_prior_and_a_network_to_start_from(toy: Problem, toy_run: Run) -> None:
    low = probabilities(smokers(), "smokes", method="sum-product", prior=0.1)
    assert low[2] < 0.1 < low[1]
    asked = toy.test.atoms
    plain = believe(toy, toy.options, asked, method="sum-product", iterations=0, trained=Model.from_run(toy_run))
    expected = torch.sigmoid(torch.from_numpy(toy_run.logits()(asked))).numpy()
    np.testing.assert_allclose(plain.probability, expected)
    assert plain.reached.all()


def test_under_candidates_atoms_asked_together_are_answered_as_one_by_one() -> None:
    train = {("red_car", "red_bus"): True, ("red_bus", "tram"): True, ("tram", "red_car"): False}
    test = {("red_car", "tram"): True, ("tram", "blue_car"): False}
    problem = things_problem(train, test, Candidates())
    everything = np.arange(problem.knowledge.base.size)
    joint = believe(problem, problem.options, everything)
    alone = [believe(problem, problem.options, everything[i : i + 1]) for i in everything]
    np.testing.assert_allclose(joint.probability, [part.probability[0] for part in alone])
    np.testing.assert_array_equal(joint.reached, [part.reached[0] for part in alone])
    assert set(joint.atoms[joint.reached]) < set(problem.atoms)


def test_a_run_of_another_problem_is_refused(toy: Problem, toy_run: Run) -> None:
    other = r2n.load("countries-s1")
    with pytest.raises(ConfigError, match="the run is of another problem"):
        believe(other, other.options, other.train.atoms, trained=Model.from_run(toy_run))
