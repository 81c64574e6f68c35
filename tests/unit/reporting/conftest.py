"""Two small trainings on disk, shared by the tests of reporting/: one that is classified, one that is ranked."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import r2n
from r2n.evaluation.report import Report
from r2n.model.run import prepare_run
from r2n.model.trained import Trained
from r2n.model.training import train_in
from tests.toy_problem import write_toy_problem

QUICK = ("training.epochs=3", "model.dim=4", "model.layers=1")


@dataclass(frozen=True)
class Kept:
    """A run on disk, with what it was trained into and its reports; tests leave the folder as it is."""

    folder: Path
    trained: Trained
    reports: list[Report]


def kept(folder: Path, problem: r2n.Problem, seed: int = 0) -> Kept:
    run = prepare_run(problem, problem.options, seed)
    for _ in train_in(folder, run):
        pass
    trained = Trained.of(run)
    return Kept(folder, trained, [trained.evaluate(split, baselines=True) for split in problem.queries])


@pytest.fixture(scope="session")
def classified(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    folder = tmp_path_factory.mktemp("classified")
    return kept(folder / "run", r2n.load(str(write_toy_problem(folder / "towns", epochs=30))))


@pytest.fixture(scope="session")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    problem = r2n.load("nations")
    options = problem.options.changed(QUICK)
    return kept(tmp_path_factory.mktemp("ranked") / "run", replace(problem, options=options))
