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
from r2n.errors import CheckpointError, ConfigError
from r2n.knowledge.problem import Problem, load_problem
from r2n.knowledge.problem_file import Options
from r2n.knowledge.reciprocal import reciprocal_codes
from r2n.runs import run as run_module
from r2n.runs.run import CONFIG, TRACE, Run, load_run, prepare_run, read_config, train_in


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
    again = load_run(tmp_path / "run")
    np.testing.assert_array_equal(run.scores()(problem.atoms), again.scores()(problem.atoms))


def test_the_rules_are_learned(toy_run: Run) -> None:
    report = toy_run.evaluate("test")
    assert report.metrics["ap"] == 1.0


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
        load_run(tmp_path / "cut", problem=whole.problem, encoders={"thing": nn.Linear(2, 4)})
    again = with_module(2)
    assert [epoch.number for epoch in train_in(tmp_path / "cut", again, resume=True)] == [1, 2, 3, 4]
    np.testing.assert_array_equal(whole.scores()(whole.problem.atoms), again.scores()(whole.problem.atoms))
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


@pytest.mark.parametrize(("changes", "seed", "what"), [(("model.dim=9",), 0, "options"), ((), 1, "seed")])
def test_resume_with_other_options_is_refused(
    changes: tuple[str, ...], seed: int, what: str, toy_folder: Path, tmp_path: Path
) -> None:
    problem = load_problem(toy_folder)
    trained(tmp_path / "run", problem)
    with pytest.raises(CheckpointError, match=f"another {what}"):
        trained(tmp_path / "run", problem, seed=seed, resume=True, changes=changes)


def test_a_changed_problem_is_refused(toy_folder: Path, tmp_path: Path) -> None:
    trained(tmp_path / "run", load_problem(toy_folder))
    with (toy_folder / "train.tsv").open("a") as file:
        file.write("n9\tliesIn\tnorth\n")
    with pytest.raises(CheckpointError, match="has changed"):
        load_run(tmp_path / "run")


def test_a_folder_without_run_and_a_damaged_config(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no run"):
        read_config(tmp_path)
    (tmp_path / CONFIG).write_text("{")
    with pytest.raises(CheckpointError, match="damaged"):
        read_config(tmp_path)


def test_a_run_without_checkpoint_says_so(toy_folder: Path, tmp_path: Path) -> None:
    trained(tmp_path / "run", load_problem(toy_folder))
    (tmp_path / "run" / "checkpoint.json").unlink()
    with pytest.raises(CheckpointError, match="no checkpoint"):
        load_run(tmp_path / "run")


def test_validation_chooses_and_needs_queries(toy: Problem) -> None:
    run = prepare_run(toy, toy.options.changed(["training.patience=20", "training.epochs=30"]), seed=0)
    records = list(run.trainer)
    assert [record.number for record in records if record.valid is not None] == [10, 20, 30][: len(records) // 10]
    assert run.trainer.best is not None
    blind = replace(toy, queries={})
    with pytest.raises(ConfigError, match="needs queries"):
        prepare_run(blind, toy.options.changed(["training.patience=20"]), seed=0)


def test_true_queries_are_ranked(toy: Problem, toy_run: Run) -> None:
    test = toy.test
    only_true = replace(toy, queries={"test": type(test)(test.atoms[test.truth], test.truth[test.truth])})
    report = replace(toy_run, problem=only_true).evaluate("test")
    assert report.metrics["mrr"] > 0.5
    with pytest.raises(ConfigError, match="no queries 'dev'"):
        toy_run.evaluate("dev")


def test_no_held_out_atom_has_a_label_or_a_part_in_selection(toy: Problem) -> None:
    """Held-out atoms are rows of the graph, but nothing that training reads says anything of them."""
    run = prepare_run(toy, toy.options.changed(["training.negatives=1"]), seed=0)
    shuffled = {split: type(part)(part.atoms, ~part.truth) for split, part in toy.queries.items()}
    other = prepare_run(replace(toy, queries=shuffled), toy.options.changed(["training.negatives=1"]), seed=0)
    for mine, theirs in zip(run.trainer, other.trainer, strict=True):
        assert (mine.loss, mine.supervised, mine.semantic) == (theirs.loss, theirs.supervised, theirs.semantic)


def test_the_whole_base_is_the_graph_of_a_full_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = r2n.load("nations")
    options = problem.options.changed(["training.epochs=1", "model.dim=4", "model.layers=1"])
    run = prepare_run(problem, options, seed=0)
    assert len(run.graph.atoms) == 2 * len(problem.knowledge.base), "with reciprocals"
    assert run.graph.shapes == ((14, 14),)
    monkeypatch.setattr(run_module, "LARGEST_WHOLE_BASE", 2 * len(problem.knowledge.base) - 1)
    with pytest.raises(ConfigError, match="needs the whole Herbrand base, and this one has 21,560 atoms"):
        prepare_run(problem, options, seed=0)


def test_held_out_facts_are_false_or_absent_for_all_that_training_sees() -> None:
    """Neither the softmax rows nor the reciprocals hold a fact of another split."""
    problem = r2n.load("nations")
    run = prepare_run(problem, problem.options.changed(["training.epochs=0", "model.dim=4"]), seed=0)
    held_out = np.concatenate([problem.valid.atoms, problem.test.atoms])
    mirrored = reciprocal_codes(run.model.base, held_out)
    assert not np.isin(np.concatenate([held_out, mirrored]), run.trainer.evidence.atoms).any()
    assert run.trainer.rows is not None
    assert sum(len(facts[0]) for _, _, facts in run.trainer.rows.groups) == 2 * len(problem.train)


def test_with_valid_the_validation_queries_are_told_and_asked_no_more(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    run = trained(tmp_path / "run", problem, changes=("training.with_valid=true",))
    told = run.trainer.evidence
    assert set(problem.valid.atoms.tolist()) <= set(told.atoms.tolist())
    assert len(told) == len(problem.train) + len(problem.valid)
    truth = dict(zip(told.atoms.tolist(), told.truth.tolist(), strict=True))
    assert [truth[atom] for atom in problem.valid.atoms.tolist()] == problem.valid.truth.tolist()
    assert set(run.problem.queries) == {"test"}
    with pytest.raises(ConfigError, match="the problem has no queries 'valid'"):
        run.evaluate("valid")
    again = load_run(tmp_path / "run")
    np.testing.assert_array_equal(run.scores()(problem.atoms), again.scores()(problem.atoms))
    with pytest.raises(ConfigError, match="cannot both be trained on and tell when to stop"):
        prepare_run(problem, problem.options.changed(["training.with_valid=true", "training.patience=5"]), 0)


def test_batches_are_kept_in_a_run_and_resumed(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    changes = ("training.batches=2", "model.rule_dropout=0.2")
    whole = trained(tmp_path / "whole", problem, changes=changes)
    assert len(whole.trainer.steps) == 2
    part = prepare_run(problem, problem.options.changed(changes), 0)
    for epoch in train_in(tmp_path / "part", part, checkpoint_seconds=0.0):
        if epoch.number == 5:
            break
    again = trained(tmp_path / "part", problem, resume=True, changes=changes)
    np.testing.assert_array_equal(whole.scores()(problem.atoms), again.scores()(problem.atoms))
