"""Numbers and sizes at the edge of what there is: an answer that is right, or a clear refusal; and the same bits."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from math import isfinite
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from typer.testing import CliRunner

import r2n
from r2n.cli import app
from r2n.data.features import FeatureTable
from r2n.data.problem import load_problem
from r2n.evaluation.metrics import average_precision, ranking_metrics, ranks
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.model.run import Run, prepare_run
from tests.faults.killed_works import Given, Trial, of_training
from tests.featured_problem import NUMBERS, featured_problem
from tests.toy_problem import write_toy_problem

SMALL = (
    "--no-report",
    "--no-baseline",
    *(f"--set={option}" for option in ("model.dim=4", "model.layers=1", "training.epochs=2")),
)


def ran(*arguments: object, codes: tuple[int, ...] = (0,)) -> str:
    """What was said, with one of these exit codes; an error that is no message of r2n is raised."""
    result = CliRunner().invoke(app, [str(part) for part in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in codes, result.output
    assert result.exit_code == 0 or "rror" in result.output
    return result.output


def trains_and_answers(problem: Path, run: Path, question: str, *more: str) -> list[dict[str, object]]:
    """The answers to a question, once the problem is trained on and reported; each is a probability."""
    ran("train", problem, "--out", run, *SMALL, *more)
    said = ran("predict", run, question, "--all", "--top", 5, "--json")
    answers = json.loads(said[said.index("{") :])["answers"]
    assert answers
    assert all(isfinite(answer["logit"]) and 0 <= answer["probability"] <= 1 for answer in answers)
    return answers


def test_the_same_seed_gives_the_same_bits_in_every_process(trial: Trial) -> None:
    for name in ("first", "second"):
        trial.done("train", trial.given.toy, "run", 1, at=name)
    first, second = of_training(trial.folder / "first"), of_training(trial.folder / "second")
    assert first == second
    assert sum(name.startswith("run/checkpoint-") for name in first) == 1


def in_process(*arguments: object, folder: Path, **environment: str) -> str:
    command = [sys.executable, "-m", "r2n", *map(str, arguments)]
    env = {**os.environ, **environment}
    return subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_nothing_depends_on_the_order_of_sets(given: Given, tmp_path: Path) -> None:
    found = []
    for seed in ("1", "77"):
        (tmp_path / seed).mkdir()
        for arguments in (["train", given.toy, "--out", "run", "--seed", 3], ["mine", given.toy, "--out", "mined.r2n"]):
            in_process(*arguments, folder=tmp_path / seed, PYTHONHASHSEED=seed)
        found.append(of_training(tmp_path / seed))
    assert found[0] == found[1]


@pytest.mark.slow
def test_another_number_of_threads_gives_the_same_answers_to_rounding(given: Given, tmp_path: Path) -> None:
    found = []
    for threads in ("1", "2", "3"):
        arguments = ["predict", given.run, "liesIn(?, ?)", "--all", "--json"]
        said = in_process(*arguments, folder=tmp_path, OMP_NUM_THREADS=threads)
        found.append({answer["atom"]: answer["logit"] for answer in json.loads(said)["answers"]})
    for other in found[1:]:
        assert other == pytest.approx(found[0], abs=1e-5)


@pytest.mark.parametrize("scale", [1e30, 10.0, 1e-40, 1e-300])
def test_metrics_depend_on_the_order_of_scores_alone_and_logits_without_any_size_are_equal(scale: float) -> None:
    dice = np.random.default_rng(0)
    scores, truth = dice.normal(size=(40, 25)), dice.random(40) < 0.5
    rows, true = np.arange(40), dice.integers(0, 25, 40)
    found, precision = ranks(scores * scale, rows, true).realistic, average_precision(scores[:, 0] * scale, truth)
    if scale < 1:
        assert (set(found), precision) == ({13.0}, truth.mean())
    else:
        assert ranking_metrics(found) == ranking_metrics(ranks(scores.copy(), rows, true).realistic)
        assert precision == average_precision(scores[:, 0], truth)


def scaled(toy: r2n.Problem, scale: float) -> Run:
    """A network whose last weights are so much larger, or smaller."""
    run = prepare_run(toy, toy.options, 0)
    with torch.no_grad():
        for name, weight in run.model.named_parameters():
            if name.startswith("atom_output.network.layers.1."):
                weight.mul_(scale)
    return run


def test_weights_that_are_huge_or_denormal(toy: r2n.Problem) -> None:
    run = scaled(toy, 1e30)
    assert np.isfinite(run.logits()(toy.test.atoms)).all()
    assert np.abs(run.logits()(toy.test.atoms)).max() > 1e27
    assert all(map(isfinite, run.evaluate("test").metrics.values()))
    with pytest.raises(r2n.R2NError, match=r"NaN|not a number"):
        scaled(toy, float("inf")).evaluate("test")
    zero, *denormal = (scaled(toy, factor).logits()(toy.test.atoms) for factor in (0.0, 1e-37, 1e-42))
    for logits in denormal:
        np.testing.assert_allclose(logits, zero, atol=1e-6)


def with_feature(value: float) -> r2n.Problem:
    rows = pa.table({"id": list(NUMBERS), "x": [value, -value, value, 0.0], "y": [1.0, 2.0, 3.0, 4.0]})
    return featured_problem({"paper": FeatureTable(rows, vector=("x", "y"))})


def trained_logits(problem: r2n.Problem, *changes: str) -> np.ndarray:
    small = ["training.epochs=2", "model.dim=4", "model.input=mlp", *changes]
    run = prepare_run(problem, problem.options.changed(small), 0)
    while not run.trainer.is_done:
        run.trainer.step()
    assert all(map(isfinite, run.evaluate("test").metrics.values()))
    return run.logits()(problem.test.atoms)


def test_features_at_the_edge_of_numbers() -> None:
    zero = trained_logits(with_feature(0.0))
    for value in (1e-310, 5e-324):
        np.testing.assert_allclose(trained_logits(with_feature(value)), zero, atol=1e-6)
    for value in (1e30, -1e30):
        assert np.isfinite(trained_logits(with_feature(value))).all()
    for value in (1e300, np.inf, np.nan):
        with pytest.raises(r2n.R2NError, match="number"):
            with_feature(value)


def changed(folder: Path, theory: Callable[[str], str], *more_facts: str) -> Path:
    toy = write_toy_problem(folder, epochs=2)
    (toy / "theory.r2n").write_text(theory((toy / "theory.r2n").read_text()))
    (toy / "train.tsv").write_text((toy / "train.tsv").read_text() + "".join(f"{fact}\n" for fact in more_facts))
    return toy


def test_a_domain_without_constants(tmp_path: Path) -> None:
    theory = "domain ghost\npredicate haunts(ghost, town)\nrule h: haunts(g, x) & near(x, y) -> haunts(g, y)\n"
    toy = changed(tmp_path / "toy", lambda text: text + theory)
    ran("check", toy)
    assert len(trains_and_answers(toy, tmp_path / "run", "liesIn(n5, ?)")) == 2
    ran("predict", tmp_path / "run", "haunts(?, n5)", codes=(0, 2))
    ran("ground", toy)


def test_domains_without_any_constant(tmp_path: Path) -> None:
    (tmp_path / "theory.r2n").write_text("domain d\npredicate p(d)\npredicate q(d)\nrule r: p(x) -> q(x)\n")
    (tmp_path / "facts.tsv").write_text("")
    (tmp_path / "problem.toml").write_text('name = "none"\ntheory = "theory.r2n"\n[facts]\ntrain = "facts.tsv"\n')
    for command in (["check"], ["ground"], ["mine"], ["infer"], ["train", "--out", tmp_path / "run"]):
        ran(command[0], tmp_path, *command[1:], codes=(0, 2))


def test_a_predicate_of_arity_six() -> None:
    theory = r2n.parse_theory(
        "domain d\npredicate six(d, d, d, d, d, d)\npredicate two(d, d)\n"
        "rule r: six(a, b, c, d, e, f) -> two(a, f)\nrule s: six(a, b, c, d, e, f) -> six(f, e, d, c, b, a)\n"
    )
    names = [[f"c{value}" for value in row] for row in np.random.default_rng(0).integers(0, 8, (30, 6))]
    six = r2n.Table(pa.table({f"a{i}": [row[i] for row in names] for i in range(6)}), predicate="six")
    asked = r2n.Table(pa.table({f"a{i}": [row[5 - i] for row in names[:5]] for i in range(6)}), predicate="six")
    problem = r2n.Problem.build("six", theory, [six], {"test": [asked]})
    assert np.isfinite(trained_logits(problem, "grounding.strategy=known-body")).all()
    with pytest.raises(r2n.R2NError, match="max_groundings"):
        FullGrounder(max_groundings=1_000).ground(Store(problem.knowledge))
    with pytest.raises(r2n.R2NError, match="six has 6"):
        trained_logits(problem, "model.input=complex")


@pytest.mark.slow
def test_a_thousand_rules(tmp_path: Path) -> None:
    rules = "".join(f"rule more{i}: near(x, y) & liesIn(y, z) -> liesIn(x, z)\n" for i in range(1_000))
    toy = changed(tmp_path / "toy", lambda text: text + rules)
    assert np.isfinite(trained_logits(load_problem(toy), "model.layers=1")).all()
    assert "64,064 ground rules over 64 atoms" in ran("ground", toy)


@pytest.mark.slow
def test_a_hundred_thousand_constants(tmp_path: Path) -> None:
    facts = [f"t{i}\tnear\tt{i + 1}" for i in range(100_000)] + [f"t{i}\tliesIn\tnorth" for i in range(0, 100_000, 50)]
    toy = changed(tmp_path / "toy", str, *facts)
    known_body = ["grounding.strategy=known-body", "model.layers=1", "model.input=distmult"]
    assert np.isfinite(trained_logits(load_problem(toy), *known_body)).all()
    assert "max_groundings" in ran("ground", toy, "--strategy", "full", "--max-groundings", 1_000, codes=(2,))
