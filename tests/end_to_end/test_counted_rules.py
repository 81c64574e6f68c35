"""Rules counted beside a network, from a problem in a folder to its answers: learned, resumed, loaded and changed."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from r2n.data.knowledge_base import Evidence
from r2n.data.problem import TRAIN, Problem, load_problem
from r2n.evaluation.evaluate import evaluate_scores
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


def test_the_planted_rule_is_learned_and_the_way_chosen_on_the_validation_queries(finished: tuple[Run, Path]) -> None:
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
    base, known = run.problem.knowledge.base, Filter.of(run.problem, (TRAIN, "valid"))
    logits, valid = run.logits(), run.problem.valid
    found = [evaluate_scores(logits.by(way), valid, base, known, split="valid").metrics["mrr"] for way in WEIGHTINGS]
    assert int(run.model.combination.way) == found.index(max(found))
    trace = [json.loads(line) for line in (path / "trace.jsonl").read_text().splitlines()]
    losses = [record["rules"] for record in trace]
    assert losses[5] < losses[0]
    assert losses[6:] == [0.0, 0.0], "these epochs train the network alone"
    assert trace[-1]["loss"] < trace[0]["loss"]
    assert run.notes() == []


def test_the_test_queries_have_no_part_in_it(finished: tuple[Run, Path], tmp_path: Path) -> None:
    run, _ = finished
    blind = replace(run.problem, queries={"valid": run.problem.valid})
    other = trained(tmp_path / "blind", blind, COUNTED)
    torch.testing.assert_close(other.model.state_dict(), run.model.state_dict(), rtol=0, atol=0)


def test_without_validation_queries_the_first_way_is_taken(problem: Problem, tmp_path: Path) -> None:
    run = trained(tmp_path / "run", problem, (*COUNTED, "training.with_valid=true", "training.epochs=1"))
    assert run.trainer.finalize is None
    assert run.model.combination is not None
    assert run.model.combination.chosen == WEIGHTINGS[0]


@pytest.mark.parametrize(("cut", "changes"), [(3, COUNTED), (7, DRAWN)], ids=["all", "drawn"])
def test_interrupted_and_resumed_is_uninterrupted(
    cut: int, changes: tuple[str, ...], problem: Problem, tmp_path: Path
) -> None:
    trained(tmp_path / "whole", problem, changes)
    steps = train_in(tmp_path / "cut", prepare_run(problem, Options().changed(changes), 0), checkpoint_seconds=0.0)
    for _ in range(cut):
        next(steps, None)
    steps.close()
    trained(tmp_path / "cut", problem, changes, resume=True)
    whole, again = (json.loads((tmp_path / name / "checkpoint.json").read_text()) for name in ("whole", "cut"))
    assert whole["sha256"] == again["sha256"]


def unconcluded(run: Run) -> tuple[str, str]:
    """A person, and another who is no parent's parent of hers nor known to be one."""
    parents = {tuple(pair) for pair in run.problem.knowledge.facts(run.problem.knowledge.language.predicate("parent"))}
    names = run.problem.knowledge.language.constants
    for x, z in ((0, z) for z in range(len(names))):
        if not any((x, y) in parents and (y, z) in parents for y in range(len(names))) and x != z:
            return names[x], names[z]
    raise AssertionError


def test_a_fact_after_the_training_is_counted(finished: tuple[Run, Path]) -> None:
    run, path = finished
    predictor, (x, z) = Model.from_run(run), unconcluded(run)
    names = run.problem.knowledge.language.constants
    parents = run.problem.knowledge.facts(run.problem.knowledge.language.predicate("parent"))
    y = names[int(next(b for a, b in parents if names[a] == x))]
    atom = f"grand({x}, {z})"
    before = logit(predictor, atom)
    after = logit(predictor.with_facts([f"parent({y}, {z})"]), atom)
    assert after > before + 1
    assert logit(predictor.with_facts([f"parent({y}, {z})"]).without_facts([f"parent({y}, {z})"]), atom) == before
    printed = document("predict", path, atom, "--with", f"parent({y}, {z})")
    assert after == pytest.approx(printed["answers"][0]["logit"], abs=1e-4), printed


def logit(predictor: Model, atom: str) -> float:
    (answer,) = predictor.predict(atom)
    return answer.logit


def test_rules_in_layers_and_rules_that_are_counted(folder: Path, tmp_path: Path) -> None:
    theory = folder / "theory.r2n"
    theory.write_text(THEORY + IMPLICIT)
    try:
        problem = load_problem(folder)
    finally:
        theory.write_text(THEORY)
    run = trained(tmp_path / "run", problem, LAYERED)
    assert len(run.model.layers) == 1
    assert run.model.counted is not None
    assert [rule.name for rule in run.model.counted.rules] == ["grand", "wrong"]
    graph = run.source.whole
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
