"""A run is a folder: what it holds, what it refuses, and that it can be loaded again."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn

import r2n
from r2n.data.knowledge_base import Evidence
from r2n.data.problem import Problem, load_problem
from r2n.errors import CheckpointError, ConfigError
from r2n.model.model import Model
from r2n.model.run import Run, prepare_run
from r2n.model.training import check_folder, train_in
from r2n.options import Options
from r2n.store.folder import CONFIG, PROBLEM, TRACE
from tests.unit.training.toy_training import steps_of


def trained(
    folder: Path, problem: Problem, *, seed: int = 0, resume: bool = False, changes: tuple[str, ...] = ()
) -> Run:
    run = prepare_run(problem, problem.options.changed(changes), seed)
    for _ in train_in(folder, run, resume=resume, checkpoint_seconds=0.0):
        pass
    return run


def test_the_folder_holds_config_trace_and_checkpoint(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    trained(tmp_path / "run", problem)
    config = json.loads((tmp_path / "run" / CONFIG).read_text())
    assert config["seed"] == 0
    assert config["options"]["model"]["dim"] == 8
    assert set(config["versions"]) == {"r2n", "torch", "python"}
    numbers = [json.loads(line)["number"] for line in (tmp_path / "run" / TRACE).read_text().splitlines()]
    assert numbers == list(range(1, 13))
    assert len(list((tmp_path / "run").glob("checkpoint-*.safetensors"))) == 1


def test_a_loaded_run_answers_as_the_trained_one(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    run = trained(tmp_path / "run", problem)
    again = Model.load(tmp_path / "run")
    np.testing.assert_array_equal(run.logits()(problem.atoms), again.logits(problem.atoms))


def test_interrupted_and_resumed_is_uninterrupted(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    trained(tmp_path / "whole", problem)
    run = prepare_run(problem, problem.options, seed=0)
    steps = train_in(tmp_path / "cut", run, checkpoint_seconds=0.0)
    for _ in range(5):
        next(steps)
    steps.close()
    trained(tmp_path / "cut", problem, resume=True)
    whole, cut = (json.loads((tmp_path / name / "checkpoint.json").read_text()) for name in ("whole", "cut"))
    assert whole["sha256"] == cut["sha256"]


def with_module(seed: int) -> Run:
    """A run whose features go through a module of the caller, with the weights that a process happens to have."""
    theory = r2n.parse_theory("domain thing\npredicate p(thing, thing)\nrule one: p(x, y) -> p(y, x)")
    facts = [r2n.Table(pa.table({"x": ["a", "b"], "y": ["b", "c"], "label": [1, 0]}), predicate="p")]
    vectors = {"a": [0.0, 1.0], "b": [1.0, 0.0], "c": [1.0, 1.0]}
    problem = Problem.build("things", theory, facts, features={"thing": vectors})
    sections = {"model": {"input": "pair", "dim": 4, "layers": 1}, "training": {"epochs": 4}}
    torch.manual_seed(seed)
    return prepare_run(problem, Options.model_validate(sections), 0, encoders={"thing": nn.Linear(2, 4)})


@pytest.mark.parametrize("epochs", [0, 2])
def test_before_the_first_checkpoint_the_weights_of_a_module_are_kept_too(epochs: int, tmp_path: Path) -> None:
    whole = with_module(1)
    list(train_in(tmp_path / "whole", whole))
    steps = train_in(tmp_path / "cut", with_module(1), checkpoint_seconds=1e9)
    for _ in range(max(epochs, 1)):
        next(steps)
    steps.close()
    if not epochs:
        (tmp_path / "cut" / TRACE).unlink()
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        Model.load(tmp_path / "cut", encoders={"thing": nn.Linear(2, 4)})
    again = with_module(2)
    assert [epoch.number for epoch in train_in(tmp_path / "cut", again, resume=True)] == [1, 2, 3, 4]
    np.testing.assert_array_equal(whole.logits()(whole.problem.atoms), again.logits()(whole.problem.atoms))
    traces = [
        [json.loads(line)["loss"] for line in (tmp_path / name / TRACE).read_text().splitlines()]
        for name in ("whole", "cut")
    ]
    assert traces[0] == traces[1]


def test_resuming_nothing_begins(toy_folder: Path, tmp_path: Path) -> None:
    trained(tmp_path / "run", load_problem(toy_folder), resume=True)
    assert (tmp_path / "run" / CONFIG).exists()


def test_a_folder_with_a_run_is_not_overwritten(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    trained(tmp_path / "run", problem)
    with pytest.raises(ConfigError, match="already holds a run"):
        trained(tmp_path / "run", problem)


@pytest.mark.parametrize(
    ("changes", "seed", "what"), [(("model.dim=9",), 0, "options.model.dim: 8, now 9"), ((), 1, "seed: 0, now 1")]
)
def test_resume_with_other_options_is_refused(
    changes: tuple[str, ...], seed: int, what: str, toy_folder: Path, tmp_path: Path
) -> None:
    problem = load_problem(toy_folder)
    trained(tmp_path / "run", problem)
    with pytest.raises(CheckpointError, match=what):
        trained(tmp_path / "run", problem, seed=seed, resume=True, changes=changes)


def test_a_changed_problem_is_not_resumed_but_answered_as_it_was(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    run = trained(tmp_path / "run", problem)
    with (toy_folder / "train.tsv").open("a") as file:
        file.write("n9\tliesIn\tnorth\n")
    with pytest.raises(CheckpointError, match="the evidence"):
        trained(tmp_path / "run", load_problem(toy_folder), resume=True)
    answered = Model.load(tmp_path / "run").logits(problem.atoms)
    np.testing.assert_array_equal(answered, run.logits()(problem.atoms))


def test_flipped_validation_labels_are_not_resumed(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    trained(tmp_path / "run", problem)
    valid = Evidence(problem.valid.atoms, ~problem.valid.truth)
    flipped = replace(problem, queries={**problem.queries, "valid": valid})
    with pytest.raises(CheckpointError, match="the queries"):
        trained(tmp_path / "run", flipped, resume=True)


def test_a_run_without_checkpoint_says_so(toy_folder: Path, tmp_path: Path) -> None:
    trained(tmp_path / "run", load_problem(toy_folder))
    (tmp_path / "run" / "checkpoint.json").unlink()
    with pytest.raises(CheckpointError, match="no checkpoint"):
        Model.load(tmp_path / "run")


def test_with_valid_the_validation_queries_are_told_and_asked_no_more(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    run = trained(tmp_path / "run", problem, changes=("training.with_valid=true",))
    told = run.knowledge.evidence
    assert set(problem.valid.atoms.tolist()) <= set(told.atoms.tolist())
    assert len(told) == len(problem.train) + len(problem.valid)
    truth = dict(zip(told.atoms.tolist(), told.truth.tolist(), strict=True))
    assert [truth[atom] for atom in problem.valid.atoms.tolist()] == problem.valid.truth.tolist()
    assert set(run.problem.queries) == {"test"}
    with pytest.raises(ConfigError, match="the problem has no queries 'valid'"):
        run.evaluate("valid")
    again = Model.load(tmp_path / "run")
    np.testing.assert_array_equal(run.logits()(problem.atoms), again.logits(problem.atoms))
    with pytest.raises(ConfigError, match="cannot both be trained on and tell when to stop"):
        prepare_run(problem, problem.options.changed(["training.with_valid=true", "training.patience=5"]), 0)


def test_batches_are_kept_in_a_run_and_resumed(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    changes = ("training.batches=2", "model.rule_dropout=0.2")
    whole = trained(tmp_path / "whole", problem, changes=changes)
    assert len(steps_of(whole.trainer)) == 2
    part = prepare_run(problem, problem.options.changed(changes), 0)
    for epoch in train_in(tmp_path / "part", part, checkpoint_seconds=0.0):
        if epoch.number == 5:
            break
    again = trained(tmp_path / "part", problem, resume=True, changes=changes)
    np.testing.assert_array_equal(whole.logits()(problem.atoms), again.logits()(problem.atoms))


def test_a_folder_that_cannot_be_made_is_a_clear_error(toy_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(ConfigError, match="cannot be made"):
            check_folder(path, resume=False)
        with pytest.raises(ConfigError, match="cannot be made"):
            trained(path, load_problem(toy_folder))


def test_what_is_left_of_a_run_without_configuration_is_not_taken_over(toy_folder: Path, tmp_path: Path) -> None:
    problem, folder = load_problem(toy_folder), tmp_path / "run"
    trained(folder, problem)
    (folder / CONFIG).unlink()
    steps = train_in(folder, prepare_run(problem, problem.options, 1), checkpoint_seconds=1e9)
    next(steps)
    steps.close()
    assert len((folder / TRACE).read_text().splitlines()) == 1
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        Model.load(folder)


def test_no_epoch_at_all_leaves_a_run_that_can_be_asked(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    run = trained(tmp_path / "run", problem, changes=("training.epochs=0",))
    again = Model.load(tmp_path / "run")
    np.testing.assert_array_equal(run.logits()(problem.atoms), again.logits(problem.atoms))


def test_a_run_from_another_device_is_asked_where_it_is(toy_folder: Path, tmp_path: Path) -> None:
    trained(tmp_path / "run", load_problem(toy_folder), changes=("training.device=cpu",))
    assert Model.load(tmp_path / "run").network.device.type in ("cpu", "cuda", "mps")
    with pytest.raises(ConfigError, match="there is no device 'tpu' here"):
        Model.load(tmp_path / "run", device="tpu")


def test_the_checkpoint_of_another_run_is_refused(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    for name, seed in (("run", 0), ("other", 1)):
        trained(tmp_path / name, problem, seed=seed)
    for path in (tmp_path / "other").glob("checkpoint*"):
        (tmp_path / "run" / path.name).write_bytes(path.read_bytes())
    with pytest.raises(CheckpointError, match="is the checkpoint of another run"):
        Model.load(tmp_path / "run")
    with pytest.raises(CheckpointError, match="is the checkpoint of another run"):
        trained(tmp_path / "run", problem, resume=True)


def test_a_changed_trace_or_problem_is_not_resumed(toy_folder: Path, tmp_path: Path) -> None:
    problem, folder = load_problem(toy_folder), tmp_path / "run"
    trained(folder, problem)
    trace, stored = (folder / TRACE).read_bytes(), (folder / PROBLEM).read_bytes()
    (folder / TRACE).write_bytes(trace.replace(b'"loss": 0', b'"loss": 1', 1))
    with pytest.raises(CheckpointError, match=r"trace\.jsonl was changed"):
        trained(folder, problem, resume=True)
    (folder / TRACE).write_bytes(trace)
    (folder / PROBLEM).write_bytes(stored[:-1] + b"x")
    with pytest.raises(CheckpointError, match=r"problem\.safetensors is damaged"):
        trained(folder, problem, resume=True)
    (folder / PROBLEM).write_bytes(stored)
    trained(folder, problem, resume=True)
    assert (folder / TRACE).read_bytes() == trace


def test_one_training_at_a_time_and_nothing_temporary_is_left(toy_folder: Path, tmp_path: Path) -> None:
    problem, folder = load_problem(toy_folder), tmp_path / "run"
    steps = train_in(folder, prepare_run(problem, problem.options, 0), checkpoint_seconds=0.0)
    next(steps)
    for resume in (False, True):
        with pytest.raises(ConfigError, match=r"another process .* is at work in"):
            trained(folder, problem, resume=resume)
    steps.close()
    for name in (".config.json.99.tmp", ".training.png.0ab12c.tmp", ".lock"):
        (folder / name).write_text("half")
    trained(folder, problem, resume=True)
    assert len((folder / TRACE).read_text().splitlines()) == 12
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    (folder / "checkpoint-0000000000000000.safetensors").write_text("of the epoch before the last")
    trained(folder, problem, resume=True)  # it is over, and writes no checkpoint
    assert len(list(folder.glob("checkpoint-*.safetensors"))) == 1


def test_a_run_is_resumed_with_its_own_number_of_threads(toy_folder: Path, tmp_path: Path) -> None:
    problem, before = load_problem(toy_folder), torch.get_num_threads()
    try:
        steps = train_in(tmp_path / "run", prepare_run(problem, problem.options, 0), checkpoint_seconds=0.0)
        next(steps)
        steps.close()
        run = prepare_run(problem, problem.options, 0)
        torch.set_num_threads(2)  # as on a machine with other cores
        for _ in train_in(tmp_path / "run", run, resume=True):
            assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
