"""Rules that share the networks of a layer: every grounding, in batches, resumed, loaded."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from r2n.data.problem import Problem, load_problem
from r2n.model.model import Model
from r2n.model.run import Run, prepare_run
from r2n.model.training import train_in
from r2n.options import Options

RULES = 100
SHARED = ("model.rule_network=shared", "model.dim=4", "model.layers=2", "training.epochs=4", "training.negatives=2")
GROUNDINGS = (
    ("grounding.strategy=full", "model.mlp=shallow", "training.hiding=0.0"),
    ("grounding.strategy=backward",),
    ("grounding.strategy=known-body", "training.batch_size=30"),
)


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A hundred rules of two atoms or three between ten predicates of a few constants."""
    folder, dice = tmp_path_factory.mktemp("many"), Random(0)
    names = [f"p{i}" for i in range(10)]
    lines = ["domain d", *(f"predicate {name}(d, d)" for name in names)]
    for j in range(RULES):
        first, second, third = (dice.choice(names) for _ in range(3))
        body = f"{first}(x, y)" if j % 2 else f"{first}(x, z) & {second}(z, y)"
        lines.append(f"rule r{j}: {body} -> {third}(y, x)")
    (folder / "theory.r2n").write_text("\n".join(lines) + "\n")
    facts = sorted({(f"c{dice.randrange(6)}", dice.choice(names), f"c{dice.randrange(6)}") for _ in range(60)})
    (folder / "train.tsv").write_text("".join("\t".join(fact) + "\n" for fact in facts[8:]))
    (folder / "test.tsv").write_text("".join("\t".join(fact) + "\n" for fact in facts[:8]))
    (folder / "problem.toml").write_text(
        'name = "many"\ntheory = "theory.r2n"\n[facts]\ntrain = "train.tsv"\n[queries]\ntest = "test.tsv"\n'
    )
    return load_problem(folder)


def trained(problem: Problem, changes: tuple[str, ...], path: Path, *, resume: bool = False) -> Run:
    run = prepare_run(problem, Options().changed([*SHARED, *changes]), 0)
    for _ in train_in(path, run, resume=resume, checkpoint_seconds=0.0):
        pass
    return run


@pytest.mark.parametrize("changes", GROUNDINGS, ids=" ".join)
def test_what_was_trained_is_loaded_and_answers_alike(
    problem: Problem, changes: tuple[str, ...], tmp_path: Path
) -> None:
    run = trained(problem, changes, tmp_path / "run")
    layer, _ = run.model.layers
    assert len(layer.parts()) == 2
    assert layer.rule_embedding is not None
    assert bool(layer.rule_embedding.shifts.any(dim=1).sum() > RULES // 2)
    again = Model.load(tmp_path / "run")
    np.testing.assert_array_equal(again.logits(problem.atoms), run.logits()(problem.atoms))


def test_a_training_that_is_resumed_ends_where_the_whole_one_does(problem: Problem, tmp_path: Path) -> None:
    whole = trained(problem, GROUNDINGS[-1], tmp_path / "whole")
    half = prepare_run(problem, Options().changed([*SHARED, *GROUNDINGS[-1]]), 0)
    training = train_in(tmp_path / "half", half, resume=False, checkpoint_seconds=0.0)
    for _ in range(2):
        next(training)
    training.close()
    resumed = trained(problem, GROUNDINGS[-1], tmp_path / "half", resume=True)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name
