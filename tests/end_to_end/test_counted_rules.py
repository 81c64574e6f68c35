"""Rules counted beside a network, from a problem in a folder to its answers: learned, resumed, loaded and changed."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from r2n.data.knowledge_base import Evidence
from r2n.data.problem import TRAIN, Problem, load_problem
from r2n.evaluation.evaluate import evaluate_each
from r2n.evaluation.ranking import Filter
from r2n.model.model import Model
from r2n.model.run import Run, evaluate_split, prepare_run
from r2n.model.training import train_in
from r2n.network.mixture import NETWORK_ALONE, WEIGHTINGS
from r2n.options import Options
from r2n.training.rows import RowBatches, RuleBatches
from tests.command_line import document

PEOPLE = [f"p{i}" for i in range(40)]
THEORY = """domain person
predicate parent(person, person)
predicate grand(person, person)
rule grand: parent(x, y) & parent(y, z) -> grand(x, z)
rule wrong: parent(x, y) -> grand(y, x)
"""
COUNTED = (
    "model.rules=counted",
    "model.reasoner=none",
    "model.dim=8",
    "grounding.reciprocal=true",
    "training.loss=full-softmax",
    "training.optimiser=adagrad",
    "training.learning_rate=0.1",
    "training.batch_size=20",
    "training.corrupted_positions=[-1]",
    "training.hiding=0.0",
    "training.epochs=8",
    "training.rule_epochs=6",
)
DRAWN = (*COUNTED, "training.loss=softmax", "training.negatives=10", "training.patience=4", "training.validate_every=2")
LAYERED = (
    *COUNTED,
    "model.reasoner=r2n",
    "model.layers=1",
    "training.loss=softmax",
    "training.negatives=3",
    "training.epochs=3",
    "training.batch_size=100",
    "grounding.reciprocal=false",
    "model.rule_network=shared",
)
IMPLICIT = "implicit both: [parent(x, y), grand(x, y)]\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everybody has two parents further on; of the grandparents some are known, and the others asked."""
    folder, dice = tmp_path_factory.mktemp("people"), Random(0)
    parents = {(x, y) for i, x in enumerate(PEOPLE[:36]) for y in dice.sample(PEOPLE[i + 1 :], 2)}
    grand = sorted({(x, z) for x, y in parents for other, z in parents if y == other})
    dice.shuffle(grand)
    splits = {"valid": grand[:12], "test": grand[12:30]}
    lines = [f"{x}\tparent\t{y}\n" for x, y in sorted(parents)] + [f"{x}\tgrand\t{y}\n" for x, y in grand[30:]]
    (folder / "train.tsv").write_text("".join(lines))
    for split, part in splits.items():
        (folder / f"{split}.tsv").write_text("".join(f"{x}\tgrand\t{y}\n" for x, y in part))
    (folder / "theory.r2n").write_text(THEORY)
    queries = '[queries]\nvalid = "valid.tsv"\ntest = "test.tsv"\n'
    (folder / "problem.toml").write_text(
        f'name = "people"\ntheory = "theory.r2n"\n[facts]\ntrain = "train.tsv"\n{queries}'
    )
    return folder


@pytest.fixture(scope="module")
def problem(folder: Path) -> Problem:
    return load_problem(folder)


def trained(path: Path, problem: Problem, changes: tuple[str, ...], *, resume: bool = False) -> Run:
    run = prepare_run(problem, Options().changed(changes), 0)
    for _ in train_in(path, run, resume=resume, checkpoint_seconds=0.0):
        pass
    return run


@pytest.fixture(scope="module")
def finished(problem: Problem, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    path = tmp_path_factory.mktemp("run") / "run"
    return trained(path, problem, COUNTED), path


def test_the_planted_rule_is_learned_and_the_mixture_chosen_on_validation_queries(finished: tuple[Run, Path]) -> None:
    run, path = finished
    assert isinstance(run.trainer.batches, RowBatches)
    assert isinstance(run.trainer.rule_batches, RuleBatches)
    assert run.model.counted is not None
    assert run.model.combination is not None
    weights, names = run.model.counted.weights.tolist(), [rule.name for rule in run.model.counted.rules]
    planted, wrong = weights[names.index("grand")], weights[names.index("wrong")]
    assert min(planted) > max(wrong)
    alone = evaluate_split(run.logits().by(NETWORK_ALONE), run.problem, "test")
    assert run.evaluate("test").metrics["mrr"] > 0.6 > 0.3 > alone.metrics["mrr"]
    base, known = run.problem.knowledge.base, Filter.from_problem(run.problem, (TRAIN, "valid"))
    logits, valid = run.logits(), run.problem.valid
    reports = evaluate_each([logits.by(way) for way in WEIGHTINGS], valid, base, known, split="valid")
    found = [report.metrics["mrr"] for report in reports]
    assert int(run.model.combination.way) == found.index(max(found))
    trace = [json.loads(line) for line in (path / "trace.jsonl").read_text().splitlines()]
    losses = [record["rules"] for record in trace]
    assert losses[5] < losses[0]
    assert losses[6:] == [0.0, 0.0], "these epochs train the network alone"
    assert trace[-1]["loss"] < trace[0]["loss"]
    assert run.notes() == []


def test_without_validation_queries_the_first_way_is_taken(problem: Problem, tmp_path: Path) -> None:
    run = trained(tmp_path / "run", problem, (*COUNTED, "training.with_valid=true", "training.epochs=1"))
    assert run.trainer.finalize is None
    assert run.model.combination is not None
    assert run.model.combination.chosen == WEIGHTINGS[0]


def test_interrupted_and_resumed_is_uninterrupted(problem: Problem, tmp_path: Path) -> None:
    trained(tmp_path / "full", problem, DRAWN)
    steps = train_in(tmp_path / "cut", prepare_run(problem, Options().changed(DRAWN), 0), checkpoint_seconds=0.0)
    for _ in range(4):
        next(steps, None)
    steps.close()
    trained(tmp_path / "cut", problem, DRAWN, resume=True)
    checksums = [json.loads((tmp_path / name / "checkpoint.json").read_text())["sha256"] for name in ("full", "cut")]
    assert checksums[0] == checksums[1]


def logit(model: Model, atom: str) -> float:
    (answer,) = model.predict(atom)
    return answer.logit


def test_a_fact_after_the_training_is_counted(finished: tuple[Run, Path]) -> None:
    run, path = finished
    model, names = Model.from_run(run), run.problem.knowledge.language.constants
    pairs = run.problem.knowledge.facts(run.problem.knowledge.language.predicate("parent"))
    parents = {(names[a], names[b]) for a, b in pairs.tolist()}
    x, y = min(parents)
    z = next(z for z in names if z != x and not any((x, b) in parents and (b, z) in parents for b in names))
    atom, fact = f"grand({x}, {z})", f"parent({y}, {z})"
    before, after = logit(model, atom), logit(model.with_facts([fact]), atom)
    assert after > before + 1
    assert logit(model.with_facts([fact]).without_facts([fact]), atom) == before
    printed = document("predict", path, atom, "--with", fact)
    assert after == pytest.approx(printed["answers"][0]["logit"], abs=1e-4), printed


def test_rules_in_layers_and_rules_that_are_counted(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "people")
    (tmp_path / "people" / "theory.r2n").write_text(THEORY + IMPLICIT)
    problem = load_problem(tmp_path / "people")
    run = trained(tmp_path / "run", problem, LAYERED)
    assert len(run.model.layers) == 1
    assert run.model.counted is not None
    assert [rule.name for rule in run.model.counted.rules] == ["grand", "wrong"]
    graph = run.source.full_graph
    assert graph is not None
    assert [rule.name for rule in graph.rules] == ["both"]
    codes = np.arange(problem.knowledge.base.size)
    np.testing.assert_allclose(Model.from_run(run).logits(codes), run.logits()(codes))
    assert run.source.counts is not None
    assert Model.from_run(run).columns(codes).reached[run.source.counts.codes].all()
    assert run.evaluate("test").metrics["mrr"] > 0.4
    again = Model.load(tmp_path / "run")
    np.testing.assert_array_equal(again.logits(problem.atoms), run.logits()(problem.atoms))
    assert again.network.combination is not None
    assert run.model.combination is not None
    assert again.network.combination.chosen == run.model.combination.chosen
    assert again.evaluate("test").metrics == run.evaluate("test").metrics


def test_the_way_is_chosen_on_labelled_queries_too(problem: Problem) -> None:
    valid = problem.valid
    truth = np.arange(len(valid)) % 2 == 0
    labelled = replace(problem, queries={**problem.queries, "valid": Evidence(valid.atoms.copy(), truth)})
    run = prepare_run(labelled, Options().changed((*COUNTED, "training.epochs=1")), 0)
    assert len(list(run.trainer)) == 1
    assert run.model.combination is not None
    chosen = evaluate_split(run.logits(), labelled, "valid").metrics["ap"]
    each = [evaluate_split(run.logits().by(way), labelled, "valid").metrics["ap"] for way in WEIGHTINGS]
    assert chosen >= max(each) - 1e-9
