"""Several networks of one problem: each is that of its seed alone, and nothing is grounded twice."""

import json
from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest
from torch import nn

from r2n.data.problem import Problem, load_problem
from r2n.errors import CheckpointError, ConfigError, MemoryLimitError
from r2n.model.model import Model
from r2n.model.run import MOST_NETWORKS, Run, prepare_run
from r2n.model.training import train_in, training_spec
from r2n.network.graph_sources import GroundedOnDemand
from r2n.options import Options
from r2n.store.folder import RunFolder
from tests.unit.model.test_training import with_module

DRAWN = ("training.negatives=1", "model.rule_dropout=0.2")
SETTINGS = {
    "listed": ("model.rule_dropout=0.2",),
    "drawn": DRAWN,
    "backward": ("grounding.strategy=backward", *DRAWN),
    "batches": ("training.batch_size=7", "model.constant_dropout=0.2"),
}


def same(options: Options) -> Options:
    return options


def ensemble_of(problem: Problem, *changes: str, size: int = 3, seed: int = 5) -> Run:
    return prepare_run(problem, problem.options.changed(["training.epochs=4", *changes]), seed, size=size)


def trained_in(folder: Path, run: Run, *, resume: bool = False) -> None:
    for _ in train_in(folder, run, resume=resume, checkpoint_seconds=0.0):
        pass


def checksums(folder: Path, seeds: range) -> list[str]:
    paths = [network.path / "checkpoint.json" for network in RunFolder(folder).networks(seeds)]
    return [json.loads(path.read_text())["sha256"] for path in paths]


@pytest.mark.parametrize("setting", SETTINGS)
def test_each_network_is_that_of_its_seed_alone(setting: str, toy: Problem, tmp_path: Path) -> None:
    ensemble = ensemble_of(toy, *SETTINGS[setting], size=2)
    assert ensemble.seeds == range(5, 7)
    trained_in(tmp_path / "all", ensemble)
    alone = []
    for seed in ensemble.seeds:
        run = prepare_run(toy, ensemble.options, seed)
        trained_in(tmp_path / str(seed), run)
        alone.append((run.logits()(toy.atoms), checksums(tmp_path / str(seed), run.seeds)[0]))
    assert checksums(tmp_path / "all", ensemble.seeds) == [checksum for _, checksum in alone]
    each = np.stack([logits for logits, _ in alone])
    np.testing.assert_allclose(ensemble.logits().each(toy.atoms), each, rtol=1e-6, atol=1e-6)
    loaded = Model.load(tmp_path / "all")
    np.testing.assert_array_equal(loaded.logits(toy.atoms), ensemble.logits()(toy.atoms))
    np.testing.assert_array_equal([part(toy.test.atoms) for part in loaded.members], loaded.scores.each(toy.test.atoms))
    assert len(loaded.members) == 2
    assert ensemble.epochs == 8


def test_rules_are_grounded_once(toy: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    plain = GroundedOnDemand.around

    def around(self: GroundedOnDemand, atoms: np.ndarray, **options: object) -> object:
        asked.append(atoms.tobytes())
        return plain(self, atoms, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(GroundedOnDemand, "around", around)
    trained_in(tmp_path / "run", ensemble_of(toy, "grounding.strategy=backward"))
    assert len(asked) == 2, "once for the training of all, once for the validation queries of all"


@pytest.mark.parametrize(("stop", "setting"), [(1, "drawn"), (6, "batches"), (11, "drawn")])
def test_cut_anywhere_and_resumed_it_ends_where_it_would_have(
    stop: int, setting: str, toy: Problem, tmp_path: Path
) -> None:
    full = ensemble_of(toy, *SETTINGS[setting])
    trained_in(tmp_path / "whole", full)
    steps = train_in(tmp_path / "cut", ensemble_of(toy, *SETTINGS[setting]), checkpoint_seconds=0.0)
    for _ in range(stop):
        next(steps)
    steps.close()
    if stop <= 8:  # the last network has not begun
        with pytest.raises(CheckpointError, match="has no checkpoint yet"):
            Model.load(tmp_path / "cut")
    again = ensemble_of(toy, *SETTINGS[setting])
    trained_in(tmp_path / "cut", again, resume=True)
    assert checksums(tmp_path / "whole", full.seeds) == checksums(tmp_path / "cut", full.seeds)
    paths = [tmp_path / name / "calibration.json" for name in ("whole", "cut")]
    kept = [path.read_text() if path.exists() else None for path in paths]
    assert kept[0] == kept[1]
    np.testing.assert_array_equal(full.logits()(toy.atoms), again.logits()(toy.atoms))
    lines = [len(trace.read_text().splitlines()) for trace in RunFolder(tmp_path / "cut").traces]
    assert lines == [4, 4, 4]


def test_another_number_of_networks_or_a_damaged_one_is_refused(toy: Problem, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    trained_in(folder, ensemble_of(toy))
    for size in (1, 2, 4):
        with pytest.raises(CheckpointError, match=f"ensemble = 3, and goes on with that; now it is to be {size}"):
            training_spec(folder, toy.options, same, ensemble=size, resume=True)
        other = prepare_run(toy, toy.options.changed(["training.epochs=4"]), 5, size=size)
        with pytest.raises(CheckpointError, match=f"ensemble: 3, now {size}"):
            trained_in(folder, other, resume=True)
    assert training_spec(folder, toy.options, same, resume=True).ensemble == 3
    weights = next((folder / "seed-6").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1])
    for load in (Model.load, lambda path: trained_in(path, ensemble_of(toy), resume=True)):
        with pytest.raises(CheckpointError, match=r"seed-6.* is damaged"):
            load(folder)
    rmtree(folder / "seed-6")
    with pytest.raises(CheckpointError, match="seed-6 has no checkpoint yet"):
        Model.load(folder)
    full = ensemble_of(toy)
    trained_in(folder, full, resume=True)
    np.testing.assert_array_equal(Model.load(folder).logits(toy.atoms), full.logits()(toy.atoms))


def test_what_cannot_be_trained_or_asked_is_refused(toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (0, -1, MOST_NETWORKS + 1, 10**9):
        with pytest.raises(ConfigError, match=rf"an ensemble of {size:,} networks cannot be trained"):
            prepare_run(toy, size=size)
    ensemble = ensemble_of(toy)
    assert repr(ensemble) == "Run('towns', seeds from 5, 0 of 3 networks)"
    with pytest.raises(ConfigError, match="0 of 3 networks are trained"):
        ensemble.logits()
    monkeypatch.setattr("r2n.model.memory.available_bytes", lambda: 10**12)
    with pytest.raises(MemoryLimitError, match=r"(?s)100 networks needs about .* train fewer"):
        prepare_run(toy, toy.options.changed(["model.dim=300"]), size=100, memory=300 * 2**20)


def test_one_network_is_a_run_and_its_folder_says_nothing_of_ensembles(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    run = prepare_run(problem, problem.options, 3, size=1)
    assert isinstance(run, Run)
    trained_in(tmp_path / "run", run)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["seed"] == 3
    assert not {"ensemble", "seeds"} & config.keys()
    assert (tmp_path / "run" / "checkpoint.json").exists()
    assert not list((tmp_path / "run").glob("seed-*"))


def test_all_networks_begin_with_the_module_of_the_caller_and_each_learns_its_own(tmp_path: Path) -> None:
    full = with_module(1, size=2)
    trained_in(tmp_path / "whole", full)
    steps = train_in(tmp_path / "cut", with_module(1, size=2), checkpoint_seconds=1e9)
    next(steps)
    steps.close()
    again = with_module(2, size=2)
    trained_in(tmp_path / "cut", again, resume=True)
    each = full.logits().each(full.problem.atoms)
    np.testing.assert_array_equal(again.logits().each(full.problem.atoms), each)
    assert not np.allclose(each[0], each[1])
    loaded = Model.load(tmp_path / "cut", encoders={"thing": nn.Linear(2, 4)})
    np.testing.assert_array_equal(loaded.scores.each(full.problem.atoms), each)
