"""A training is a folder: what it holds, what it refuses, that it is resumed and loaded again."""

import json
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree
from typing import Literal, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pytest
import torch
from pydantic import TypeAdapter
from torch import nn

import r2n
from r2n.data.knowledge_base import Evidence, reciprocal_codes
from r2n.data.problem import Problem, load_problem
from r2n.errors import CheckpointError, ConfigError, MemoryLimitError
from r2n.model.model import Model
from r2n.model.preflight import preflight_warnings
from r2n.model.run import Run, prepare_run
from r2n.model.training import check_folder, train_in
from r2n.options import OPTION_SECTIONS, OptionKeywords, Options
from r2n.store.checkpoint import read_checkpoint
from r2n.store.folder import CONFIG, PROBLEM, TRACE
from r2n.training.objective import BaseSoftmax
from tests.labelled_problems import table
from tests.toy_problem import write_toy_problem
from tests.unit.training.toy_training import step_of, steps_of


def test_the_keywords_of_train_are_the_options() -> None:
    fields = {name: field for section in OPTION_SECTIONS.values() for name, field in section.model_fields.items()}
    keywords = get_type_hints(OptionKeywords)
    assert keywords.keys() == fields.keys()
    for name, field in fields.items():
        kind, plain = keywords[name], (int, float, bool, str)
        assert kind == field.annotation or (field.annotation not in plain and get_origin(kind) is not Literal), name
        TypeAdapter(kind).validate_python(field.default)


def trained(
    folder: Path, problem: Problem, *, seed: int = 0, resume: bool = False, changes: tuple[str, ...] = ()
) -> Run:
    run = prepare_run(problem, problem.options.changed(changes), seed)
    for _ in train_in(folder, run, resume=resume, checkpoint_seconds=0.0):
        pass
    return run


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """A run of twelve epochs and its folder; the tables that it was read from are gone."""
    path = tmp_path_factory.mktemp("kept")
    run = trained(path / "run", load_problem(write_toy_problem(path / "towns", epochs=12)))
    rmtree(path / "towns")
    return run, path / "run"


@pytest.fixture
def folder(kept: tuple[Run, Path], tmp_path: Path) -> Path:
    """A copy of that folder."""
    return copytree(kept[1], tmp_path / "run")


def with_module(seed: int, size: int = 1) -> Run:
    """A run whose features go through a module of the caller, with the weights that a process happens to have."""
    theory = r2n.parse_theory("domain thing\npredicate p(thing, thing)\nrule one: p(x, y) -> p(y, x)")
    facts = [r2n.Table(pa.table({"x": ["a", "b"], "y": ["b", "c"], "label": [1, 0]}), predicate="p")]
    vectors = {"a": [0.0, 1.0], "b": [1.0, 0.0], "c": [1.0, 1.0]}
    problem = Problem.build("things", theory, facts, features={"thing": vectors})
    sections = {"model": {"input": "pair", "dim": 4, "layers": 1}, "training": {"epochs": 4}}
    torch.manual_seed(seed)
    encoders = {"thing": nn.Linear(2, 4)}
    return prepare_run(problem, Options.model_validate(sections), 0, size=size, encoders=encoders)


@pytest.mark.parametrize("epochs", [0, 2])
def test_before_the_first_checkpoint_the_weights_of_a_module_are_kept_too(epochs: int, tmp_path: Path) -> None:
    full = with_module(1)
    list(train_in(tmp_path / "whole", full))
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
    np.testing.assert_array_equal(full.logits()(full.problem.atoms), again.logits()(full.problem.atoms))
    traces = ((tmp_path / name / TRACE).read_text().splitlines() for name in ("whole", "cut"))
    first, second = ([json.loads(line)["loss"] for line in trace] for trace in traces)
    assert first == second


def test_resume_with_anything_else_is_refused(kept: tuple[Run, Path], folder: Path) -> None:
    problem = kept[0].problem
    valid, more = Evidence(problem.valid.atoms, ~problem.valid.truth), problem.with_valid_as_evidence().knowledge
    for other, seed, changes, what in (
        (problem, 0, ("model.dim=9",), "options.model.dim: 8, now 9"),
        (problem, 1, (), "seed: 0, now 1"),
        (replace(problem, queries={**problem.queries, "valid": valid}), 0, (), "the queries"),
        (replace(problem, knowledge=more), 0, (), "the evidence"),
    ):
        with pytest.raises(CheckpointError, match=what):
            trained(folder, other, seed=seed, resume=True, changes=changes)


def test_with_valid_the_validation_queries_are_told_and_asked_no_more(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    run = trained(tmp_path / "run", problem, changes=("training.with_valid=true",))
    found = run.knowledge.evidence
    assert set(problem.valid.atoms.tolist()) <= set(found.atoms.tolist())
    assert len(found) == len(problem.train) + len(problem.valid)
    truth = dict(zip(found.atoms.tolist(), found.truth.tolist(), strict=True))
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
    full = trained(tmp_path / "whole", problem, changes=changes)
    assert len(steps_of(full.trainer)) == 2
    part = prepare_run(problem, problem.options.changed(changes), 0)
    for epoch in train_in(tmp_path / "part", part, checkpoint_seconds=0.0):
        if epoch.number == 5:
            break
    again = trained(tmp_path / "part", problem, resume=True, changes=changes)
    np.testing.assert_array_equal(full.logits()(problem.atoms), again.logits()(problem.atoms))


def test_a_training_that_ran_out_of_time_is_not_trained_on(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(0, 100_000, 10))
    monkeypatch.setattr("r2n.training.fit.perf_counter", lambda: float(next(now)))
    problem, changes = load_problem(toy_folder), ("training.minutes=1.5", "training.epochs=50")
    run = trained(tmp_path / "run", problem, changes=changes)
    assert 1 < run.trainer.epoch < 50
    resumed = trained(tmp_path / "run", problem, resume=True, changes=changes)
    assert (resumed.trainer.epoch, resumed.trainer.seconds) == (run.trainer.epoch, run.trainer.seconds)
    half = prepare_run(problem, problem.options.changed(changes))
    epochs = train_in(tmp_path / "half", half, checkpoint_seconds=0.0)
    next(epochs)
    epochs.close()
    assert trained(tmp_path / "half", problem, resume=True, changes=changes).trainer.epoch == run.trainer.epoch


def test_a_folder_that_cannot_be_made_is_a_clear_error(toy_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(ConfigError, match="cannot be made"):
            check_folder(path, resume=False)
        with pytest.raises(ConfigError, match="cannot be made"):
            trained(path, load_problem(toy_folder))


def test_what_is_left_of_a_run_without_configuration_is_not_taken_over(kept: tuple[Run, Path], folder: Path) -> None:
    problem = kept[0].problem
    (folder / CONFIG).unlink()
    steps = train_in(folder, prepare_run(problem, problem.options, 1), checkpoint_seconds=1e9)
    next(steps)
    steps.close()
    assert len((folder / TRACE).read_text().splitlines()) == 1
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        Model.load(folder)


def test_no_epoch_at_all_leaves_a_run_that_can_be_asked(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    run = trained(tmp_path / "run", problem, changes=("training.epochs=0", "training.device=cpu"))
    again = Model.load(tmp_path / "run")
    np.testing.assert_array_equal(run.logits()(problem.atoms), again.logits(problem.atoms))
    assert again.network.device.type in ("cpu", "cuda", "mps"), "on any device"
    with pytest.raises(ConfigError, match="there is no device 'tpu' here"):
        Model.load(tmp_path / "run", device="tpu")


def test_a_changed_checkpoint_trace_or_problem_is_not_resumed(
    kept: tuple[Run, Path], folder: Path, tmp_path: Path
) -> None:
    problem = kept[0].problem
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
    trained(tmp_path / "other", problem, seed=1)
    for path in (tmp_path / "other").glob("checkpoint*"):
        (folder / path.name).write_bytes(path.read_bytes())
    with pytest.raises(CheckpointError, match="is the checkpoint of another run"):
        Model.load(folder)
    with pytest.raises(CheckpointError, match="is the checkpoint of another run"):
        trained(folder, problem, resume=True)


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


def test_a_run_without_checkpoint_and_weights_that_do_not_fit(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="was trained with encoders of its own for no domain"):
        Model.load(folder, encoders={"town": nn.Linear(2, 2)})
    (folder / "checkpoint.json").unlink()
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        Model.load(folder)
    with pytest.raises(ConfigError, match="holds no run"):
        Model.load(tmp_path / "nothing")


def test_the_best_weights_are_loaded_and_not_the_last(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    changes = ("training.patience=4", "training.validate_every=1", "training.epochs=40")
    run = trained(tmp_path / "run", problem, changes=changes)
    assert run.trainer.best_epoch < run.trainer.epoch
    last, model = read_checkpoint(tmp_path / "run"), Model.load(tmp_path / "run")
    assert last is not None
    vectors = model.network.state_dict()["constants.vectors"]
    assert not torch.equal(vectors, last[0]["model.constants.vectors"])
    np.testing.assert_array_equal(model.scores(problem.atoms), run.logits()(problem.atoms))


def test_validation_chooses_and_needs_queries(toy: Problem) -> None:
    run = prepare_run(toy, toy.options.changed(["training.patience=20", "training.epochs=30"]), seed=0)
    records = list(run.trainer)
    assert [record.number for record in records if record.valid is not None] == [10, 20, 30][: len(records) // 10]
    assert run.trainer.best is not None
    blind = replace(toy, queries={})
    with pytest.raises(ConfigError, match="needs queries"):
        prepare_run(blind, toy.options.changed(["training.patience=20"]), seed=0)


def test_the_whole_base_is_the_graph_of_a_full_softmax() -> None:
    problem = r2n.load("nations")
    options = problem.options.changed(["training.epochs=1", "model.dim=4", "model.layers=1"])
    run = prepare_run(problem, options, seed=0)
    graph = step_of(run.trainer).graph
    assert len(graph.atoms) == 2 * len(problem.knowledge.base), "with reciprocals"
    assert graph.shapes == ((14, 14),)
    with pytest.raises(MemoryLimitError, match="full-softmax over the full Herbrand base, 21,560 atoms"):
        prepare_run(problem, options, seed=0, memory=1_000_000)


def test_held_out_facts_are_false_or_absent_for_all_that_training_sees() -> None:
    """Neither the softmax rows nor the reciprocals hold a fact of another split."""
    problem = r2n.load("nations")
    run = prepare_run(problem, problem.options.changed(["training.epochs=0", "model.dim=4"]), seed=0)
    held_out = np.concatenate([problem.valid.atoms, problem.test.atoms])
    reciprocal = reciprocal_codes(run.model.base, held_out)
    assert not np.isin(np.concatenate([held_out, reciprocal]), run.knowledge.evidence.atoms).any()
    loss = run.trainer.objective.loss
    assert isinstance(loss, BaseSoftmax)
    assert sum(len(facts[0]) for _, _, facts in loss.groups) == 2 * len(problem.train)


def test_queries_that_are_asked_as_false_are_told_whatever_their_truth(toy: Problem) -> None:
    """Corrupting the town of a fact makes atoms of the towns that are asked about."""
    note = "4 of 4 queries 'test' are asked as false in training"
    flipped = replace(toy, queries={name: Evidence(part.atoms, ~part.truth) for name, part in toy.queries.items()})
    for problem in (toy, flipped):
        every = prepare_run(problem, toy.options.changed(["training.corrupted_positions=[0, 1]"]), 0).notes()
        assert [text.split(",")[0] for text in every] == [note.replace("test", "valid"), note]
        assert prepare_run(problem, toy.options, 0).notes() == [], "there only the valley is corrupted"


LABEL = "label facts of p false, at least one to 10 true ones, and name p in training.labels_only: then only these"


@pytest.mark.parametrize(
    ("facts", "changes", "advice"),
    [
        ("many", [], "only the last constant of a fact excludes others: set training.corrupted_positions to [-1]"),
        ("many", ["training.corrupted_positions=[0, 1]"], "set training.corrupted_positions to [-1]"),
        ("many", ["training.corrupted_positions=[-1]"], LABEL),
        ("many", ["training.corrupted_positions=[1]"], LABEL),
        ("reversed", [], "only the first constant of a fact excludes others: set training.corrupted_positions to [-2]"),
        ("ring", [], LABEL),
        ("labelled", [], "to ask only labelled atoms of p, set training.labels_only to ['p']"),
        ("few labels", [], LABEL),
        ("labelled", ["training.loss=softmax"], None),
    ],
)
def test_the_way_out_of_corrupted_queries_fits_the_facts_and_what_is_set(
    facts: str, changes: list[str], advice: str | None
) -> None:
    """The advice was [-1] whatever was set, and labels_only with one false fact to many, or with a softmax.

    Of a ranking, whose queries are all true, a note is made only where something better can be set.
    """
    pairs = [(f"p{i}", f"c{i % 2}") for i in range(8)]
    pairs = {
        "reversed": [(b, a) for a, b in pairs],
        "ring": [(f"p{i}", f"p{(i + 1) % 8}") for i in range(8)],
        "few labels": [(f"p{i}", f"p{(i + 1) % 16}") for i in range(16)],
    }.get(facts, pairs)
    asked = (pairs[0][0], pairs[1][1]) if facts != "reversed" else (pairs[1][0], pairs[0][1])
    true = {"labelled": 4, "few labels": 15}.get(facts, len(pairs))
    found = [(*pair, int(i < true)) for i, pair in enumerate(pairs)]
    facts_given, queries = [table("p", found, labelled=True)], {"test": [table("p", [asked])]}
    problem = Problem.build("pairs", r2n.parse_theory("domain d\npredicate p(d, d)\n"), facts_given, queries)
    options = Options().changed(changes)
    ranked = prepare_run(problem, options, 0).notes()
    assert len(ranked) == (advice not in (None, LABEL))
    false = {"test": Evidence(problem.test.atoms, ~problem.test.truth)}
    notes = prepare_run(replace(problem, queries=false), options, 0).notes()
    assert len(notes) == (advice is not None)
    if advice is None:
        return
    (note,) = notes
    assert note.startswith("1 of 1 queries 'test' are asked as false in training, as corruptions of facts: ")
    assert advice in note


def test_a_training_that_asks_nothing_is_warned_of_once(toy: Problem) -> None:
    closed = toy.train.atoms[toy.train.atoms >= toy.knowledge.base.offsets[1]]
    knowledge = replace(toy.knowledge, evidence=Evidence(closed, np.ones(len(closed), bool)))
    problem = replace(toy, knowledge=knowledge)
    assert sum("r2n infer" in text for text in preflight_warnings(problem, toy.options)) == 1
    assert prepare_run(problem, toy.options, 0).notes() == []


def test_only_predicates_with_false_facts_are_named_for_labels_only() -> None:
    """It named all predicates that are asked, and of the others no negative could be drawn."""
    theory = r2n.parse_theory("domain d\npredicate p(d, d)\npredicate q(d, d)\n")
    ring = [(f"c{i}", f"c{(i + 1) % 8}") for i in range(8)]
    facts = [table("p", [(*pair, int(i < 6)) for i, pair in enumerate(ring)], labelled=True), table("q", ring)]
    asked = [table(name, [("c0", "c2")]) for name in ("p", "q")]
    (note,) = prepare_run(Problem.build("two", theory, facts, {"test": asked}), Options(), 0).notes()
    assert note.endswith(": to ask only labelled atoms of p, set training.labels_only to ['p']")
