"""A trained toy run, shared by the tests of experiments/."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from r2n.data.problem import Problem, load_problem
from r2n.model.run import Run, prepare_run
from tests.toy_problem import write_toy_problem


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return load_problem(write_toy_problem(tmp_path_factory.mktemp("toy") / "towns"))


@pytest.fixture(scope="session")
def toy_run(toy: Problem) -> Run:
    run = prepare_run(toy, toy.options, seed=0)
    for _ in run.trainer:
        pass
    return run


@pytest.fixture
def toy_folder(tmp_path: Path) -> Path:
    return write_toy_problem(tmp_path / "towns", epochs=12)


@pytest.fixture
def threads() -> Iterator[None]:
    kept = torch.get_num_threads()
    yield
    torch.set_num_threads(kept)
