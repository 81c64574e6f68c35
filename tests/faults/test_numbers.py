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
from tests.faults.killed_works import Given, of_training
from tests.faults.warm_process import WarmProcess, done
from tests.featured_problem import NUMBERS, featured_problem
from tests.toy_problem import write_toy_problem

SMALL = [
    "--no-report",
    "--no-baseline",
    "--set",
    "model.dim=4",
    "--set",
    "model.layers=1",
    "--set",
    "training.epochs=2",
]


def ran(*arguments: object) -> tuple[int, str]:
    """The exit code and what was said; an error that is no message of r2n is raised."""
    result = CliRunner().invoke(app, [str(part) for part in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def trains_and_answers(problem: Path, run: Path, question: str, *more: str) -> list[dict[str, object]]:
    """The answers to a question, once the problem is trained on and reported; each is a probability."""
    code, said = ran("train", problem, "--out", run, *SMALL, *more)
    assert code == 0, said
    code, said = ran("predict", run, question, "--all", "--top", 5, "--json")
    assert code == 0, said
    answers = json.loads(said[said.index("{") :])["answers"]
    assert answers
    assert all(isfinite(answer["logit"]) and 0 <= answer["probability"] <= 1 for answer in answers)
    return answers


# the same bits


def test_the_same_seed_gives_the_same_bits_in_every_process(warm: WarmProcess, given: Given, tmp_path: Path) -> None:
    found = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        done(warm, tmp_path / name, "train", given.toy, "run", 1)
        found.append(of_training(tmp_path / name))
    assert found[0] == found[1]
    assert sum(name.startswith("run/checkpoint-") for name in found[0]) == 1


@pytest.mark.slow
def test_nothing_depends_on_the_order_of_sets(given: Given, tmp_path: Path) -> None:
    found = []
    for seed in ("1", "77"):
        folder = tmp_path / seed
        folder.mkdir()
        commands = [["train", given.toy, "--out", "run", "--seed", 3], ["mine", given.toy, "--out", "mined.r2n"]]
        for arguments in commands:
            command = [sys.executable, "-m", "r2n", *map(str, arguments)]
            subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
        found.append(of_training(folder))
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["2", "3"])
def test_another_number_of_threads_gives_the_same_answers_to_rounding(
    threads: str, given: Given, tmp_path: Path
) -> None:
    found = []
    for count in ("1", threads):
        command = [sys.executable, "-m", "r2n", "predict", str(given.run), "liesIn(?, ?)", "--all", "--json"]
        env = {**os.environ, "OMP_NUM_THREADS": count}
        said = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
        found.append({answer["atom"]: answer["logit"] for answer in json.loads(said)["answers"]})
    assert found[0].keys() == found[1].keys()
    np.testing.assert_allclose(list(found[1].values()), [found[0][atom] for atom in found[1]], atol=1e-5)


# large and small numbers


@pytest.mark.parametrize("scale", [1e30, 10.0])
def test_metrics_look_at_the_order_of_scores_alone(scale: float) -> None:
    dice = np.random.default_rng(0)
    scores, truth = dice.normal(size=(40, 25)), dice.random(40) < 0.5
    rows, true = np.arange(40), dice.integers(0, 25, 40)
    found = [ranking_metrics(ranks(part.copy(), rows, true).realistic) for part in (scores, scores * scale)]
    assert found[0] == found[1]
    assert average_precision(scores[:, 0] * scale, truth) == average_precision(scores[:, 0], truth)


@pytest.mark.parametrize("scale", [1e-40, 1e-300])
def test_logits_without_any_size_are_equal(scale: float) -> None:
    dice = np.random.default_rng(0)
    scores, truth = scale * dice.normal(size=(40, 25)), dice.random(40) < 0.5
    assert set(ranks(scores.copy(), np.arange(40), dice.integers(0, 25, 40)).realistic) == {13.0}
    assert average_precision(scores[:, 0], truth) == truth.mean()


def scaled(toy: r2n.Problem, scale: float) -> Run:
    """A network whose last weights are so much larger, or smaller."""
    run = prepare_run(toy, toy.options, 0)
    with torch.no_grad():
        for name, weight in run.model.named_parameters():
            if name.startswith("atom_output.network.layers.1."):
                weight.mul_(scale)
    return run


def test_a_network_whose_scores_are_huge_answers(toy: r2n.Problem) -> None:
    run = scaled(toy, 1e30)
    assert np.isfinite(run.logits()(toy.test.atoms)).all()
    assert np.abs(run.logits()(toy.test.atoms)).max() > 1e27
    assert all(map(isfinite, run.evaluate("test").metrics.values()))
    with pytest.raises(r2n.R2NError, match=r"NaN|not a number"):
        scaled(toy, float("inf")).evaluate("test")


@pytest.mark.parametrize("scale", [1e-37, 1e-42])
def test_denormal_weights_are_as_good_as_zero(scale: float, toy: r2n.Problem) -> None:
    denormal, zero = (scaled(toy, factor).logits()(toy.test.atoms) for factor in (scale, 0.0))
    np.testing.assert_allclose(denormal, zero, atol=1e-6)


def with_feature(value: float) -> r2n.Problem:
    rows = pa.table({"id": list(NUMBERS), "x": [value, -value, value, 0.0], "y": [1.0, 2.0, 3.0, 4.0]})
    return featured_problem({"paper": FeatureTable(rows, vector=("x", "y"))})


def trained_logits(problem: r2n.Problem, *changes: str) -> np.ndarray:
    """What is said of the test queries after two epochs."""
    small = ["training.epochs=2", "model.dim=4", "model.input=mlp", *changes]
    run = prepare_run(problem, problem.options.changed(small), 0)
    while not run.trainer.is_done:
        run.trainer.step()
    metrics = run.evaluate("test").metrics.values()
    assert all(map(isfinite, metrics)) or len(problem.knowledge.language.constants) == 1, "nothing to be ranked among"
    return run.logits()(problem.test.atoms)


@pytest.mark.parametrize("value", [1e-310, 5e-324])
def test_denormal_features_are_as_good_as_zero(value: float) -> None:
    found = [trained_logits(with_feature(number)) for number in (value, 0.0)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


@pytest.mark.parametrize("value", [1e30, -1e30])
def test_huge_features_are_trained_on(value: float) -> None:
    assert np.isfinite(trained_logits(with_feature(value))).all()


@pytest.mark.parametrize("value", [1e300, np.inf, np.nan])
def test_features_beyond_what_a_network_holds_are_refused(value: float) -> None:
    with pytest.raises(r2n.R2NError, match="number"):
        with_feature(value)


# sizes


def changed(folder: Path, theory: Callable[[str], str], *more_facts: str) -> Path:
    toy = write_toy_problem(folder, epochs=2)
    (toy / "theory.r2n").write_text(theory((toy / "theory.r2n").read_text()))
    (toy / "train.tsv").write_text((toy / "train.tsv").read_text() + "".join(f"{fact}\n" for fact in more_facts))
    return toy


def test_a_domain_without_constants(tmp_path: Path) -> None:
    theory = "domain ghost\npredicate haunts(ghost, town)\nrule h: haunts(g, x) & near(x, y) -> haunts(g, y)\n"
    toy = changed(tmp_path / "toy", lambda text: text + theory)
    code, said = ran("check", toy)
    assert code == 0, said
    assert len(trains_and_answers(toy, tmp_path / "run", "liesIn(n5, ?)")) == 2
    code, said = ran("predict", tmp_path / "run", "haunts(?, n5)")
    assert code in (0, 2), said
    code, said = ran("ground", toy)
    assert code == 0, said


def test_domains_without_any_constant(tmp_path: Path) -> None:
    (tmp_path / "theory.r2n").write_text("domain d\npredicate p(d)\npredicate q(d)\nrule r: p(x) -> q(x)\n")
    (tmp_path / "facts.tsv").write_text("")
    (tmp_path / "problem.toml").write_text('name = "none"\ntheory = "theory.r2n"\n[facts]\ntrain = "facts.tsv"\n')
    for command in (["check"], ["ground"], ["mine"], ["infer"], ["train", "--out", tmp_path / "run"]):
        code, said = ran(command[0], tmp_path, *command[1:])
        assert code in (0, 2), said
        assert code == 0 or "error:" in said


def test_one_constant() -> None:
    theory = r2n.parse_theory(
        "domain d\npredicate p(d)\npredicate q(d, d)\nrule r: p(x) -> q(x, x)\nrule s: q(x, y) & q(y, z) -> q(x, z)\n"
    )
    known = r2n.Table(pa.table({"a": ["only"]}), predicate="p")
    asked = r2n.Table(pa.table({"a": ["only"], "b": ["only"]}), predicate="q")
    problem = r2n.Problem.build("one", theory, [known], {"test": [asked]})
    for strategy in ("full", "known-body", "backward"):
        assert np.isfinite(trained_logits(problem, f"grounding.strategy={strategy}")).all()


def test_a_predicate_of_arity_six() -> None:
    theory = r2n.parse_theory(
        "domain d\npredicate six(d, d, d, d, d, d)\npredicate two(d, d)\n"
        "rule r: six(a, b, c, d, e, f) -> two(a, f)\nrule s: six(a, b, c, d, e, f) -> six(f, e, d, c, b, a)\n"
    )
    dice = np.random.default_rng(0)
    rows = dice.integers(0, 8, (30, 6))
    names = [[f"c{value}" for value in row] for row in rows]
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
    code, said = ran("ground", toy)
    assert code == 0, said
    assert "64,064 ground rules over 64 atoms" in said


@pytest.mark.slow
def test_a_hundred_thousand_constants(tmp_path: Path) -> None:
    facts = [f"t{i}\tnear\tt{i + 1}" for i in range(100_000)] + [f"t{i}\tliesIn\tnorth" for i in range(0, 100_000, 50)]
    toy = changed(tmp_path / "toy", str, *facts)
    known_body = ["grounding.strategy=known-body", "model.layers=1", "model.input=distmult"]
    assert np.isfinite(trained_logits(load_problem(toy), *known_body)).all()
    code, said = ran("ground", toy, "--strategy", "full", "--max-groundings", 1_000)
    assert code == 2, said
    assert "max_groundings" in said
