"""A trained network, loaded from its folder alone and without side effects."""

from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest
import torch
from torch import nn

from r2n.data.problem import load_problem
from r2n.errors import CheckpointError, ConfigError
from r2n.model.model import Model
from r2n.model.run import Run, prepare_run
from r2n.model.training import train_in
from r2n.store.checkpoint import read_checkpoint


@pytest.fixture
def run(toy_folder: Path, tmp_path: Path) -> Run:
    problem = load_problem(toy_folder)
    run = prepare_run(problem, problem.options, seed=0)
    for _ in train_in(tmp_path / "run", run):
        pass
    rmtree(toy_folder)
    return run


def test_it_answers_as_the_run_did_without_the_tables(run: Run, tmp_path: Path) -> None:
    trained = Model.load(tmp_path / "run")
    np.testing.assert_array_equal(trained.scores(run.problem.atoms), run.logits()(run.problem.atoms))
    assert trained.evaluate("test").metrics == run.evaluate("test").metrics
    assert trained.problem.name == "towns"


def test_loading_changes_nothing_outside(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("draw_negatives", "corruptions"):
        monkeypatch.setattr(f"r2n.training.negatives.{name}", lambda *_, **__: pytest.fail("negatives drawn"))
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    Model.load(tmp_path / "run").logits(run.problem.test.atoms)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_a_run_without_checkpoint_and_weights_that_do_not_fit(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(ConfigError, match="was trained with encoders of its own for no domain"):
        Model.load(folder, encoders={"town": nn.Linear(2, 2)})
    (folder / "checkpoint.json").unlink()
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        Model.load(folder)
    with pytest.raises(ConfigError, match="holds no run"):
        Model.load(tmp_path / "nothing")


def test_the_best_weights_are_loaded_and_not_the_last(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    options = problem.options.changed(["training.patience=4", "training.validate_every=1", "training.epochs=40"])
    run = prepare_run(problem, options, seed=0)
    for _ in train_in(tmp_path / "run", run):
        pass
    assert run.trainer.best_epoch < run.trainer.epoch
    last, trained = read_checkpoint(tmp_path / "run"), Model.load(tmp_path / "run")
    assert last is not None
    vectors = trained.network.state_dict()["constants.vectors"]
    assert not torch.equal(vectors, last[0]["model.constants.vectors"])
    np.testing.assert_array_equal(trained.scores(problem.atoms), run.logits()(problem.atoms))


def test_one_network_is_one_member(run: Run) -> None:
    trained = Model.from_run(run)
    assert trained.members == (trained.scores,)
