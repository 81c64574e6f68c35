"""What stands beside a network: the same queries, asked of its parts."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from r2n.cli.screen import notes_beside
from r2n.data.problem import Problem, load_problem
from r2n.evaluation.evaluate import RulesAlone, evaluate_scores
from r2n.evaluation.ranking import EvaluationOptions, Filter
from r2n.evaluation.report import Report, classify
from r2n.model import evaluation
from r2n.model.evaluation import baseline_scores
from r2n.model.model import Model
from r2n.model.run import Run, prepare_run
from r2n.model.training import train_in, train_without_reasoning
from r2n.network.mixture import NETWORK_ALONE, RULES_ALONE
from tests.command_line import invoke
from tests.ordered_problem import write_ordered_problem


def road(folder: Path, *settings: str) -> Problem:
    return load_problem(write_ordered_problem(folder, *settings))


def prepared(problem: Problem, *changes: str) -> Run:
    return prepare_run(problem, problem.options.changed(changes), seed=0)


def test_rules_are_counted_beside_reasoning_layers(toy: Problem, toy_run: Run) -> None:
    trained = Model.from_run(toy_run)
    reports = [trained.evaluate(split, baselines=True) for split in toy.queries]
    alone = RulesAlone.of(toy.knowledge)
    assert alone is not None
    for report, split in zip(reports, toy.queries, strict=True):
        expected = classify(alone, toy.queries[split], toy.knowledge.base).metrics
        assert report.baselines == {"rules alone": expected}
        assert report.metrics == toy_run.evaluate(split).metrics, "the report itself is not touched"
    assert toy_run.evaluate("test").baselines == {}


def test_counted_rules_are_shown_with_their_learned_weights(tmp_path: Path) -> None:
    run = prepared(road(tmp_path, 'rules = "counted"'))
    for _ in run.trainer:
        pass
    problem, logits = run.problem, run.logits()
    base, filtered = problem.knowledge.base, Filter.of(problem)
    report = Model.from_run(run).evaluate("test", baselines=True)
    for name, way in (("rules alone", RULES_ALONE), ("without reasoning", NETWORK_ALONE)):
        expected = evaluate_scores(logits.by(way), problem.test, base, filtered, split="test").metrics
        assert report.baselines[name] == expected
    assert list(report.baselines) == ["rules alone", "without reasoning"]
    sample = Model.from_run(run).evaluate("test", options=EvaluationOptions(sample=4, seed=2), baselines=True)
    expected = evaluate_scores(
        logits.by(RULES_ALONE), problem.test, base, filtered, EvaluationOptions(sample=4, seed=2), split="test"
    )
    assert sample.baselines["rules alone"] == expected.metrics


@pytest.mark.parametrize("reciprocal", ["false", "true"])
def test_the_score_that_is_added_is_shown_alone(tmp_path: Path, reciprocal: str) -> None:
    """As a network without layers that has the same vectors says it."""
    problem = road(tmp_path)
    changes = ("model.input_score=true", f"grounding.reciprocal={reciprocal}", "model.constant_dropout=0.5")
    run = prepared(problem, *changes)
    bare = prepared(problem, *changes, "model.reasoner=none", "model.input_score=false")
    for part in ("constants", "atom_embedding"):
        getattr(bare.model, part).load_state_dict(getattr(run.model, part).state_dict())
    run.model.eval()
    beside = baseline_scores(run.logits(), problem)
    assert list(beside) == ["rules alone", "input layer alone"]
    codes = np.arange(problem.knowledge.base.size)
    np.testing.assert_allclose(beside["input layer alone"](codes), bare.logits()(codes), atol=1e-6)
    assert not run.model.constants.training, "asking changes nothing"
    assert "input layer alone" not in baseline_scores(prepared(problem).logits(), problem)


def test_what_is_not_cheap_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = road(tmp_path)
    layered, counted = prepared(problem), prepared(problem, "model.rules=counted")
    asked = max(sum(2 * 14 if a < 2 * 14**2 else 14 for a in part.atoms) for part in problem.queries.values())
    monkeypatch.setattr(evaluation, "MOST_CANDIDATES", asked)
    assert list(baseline_scores(layered.logits(), problem)) == ["rules alone"]
    assert len(baseline_scores(counted.logits(), problem)) == 2
    monkeypatch.setattr(evaluation, "MOST_CANDIDATES", asked - 1)
    assert baseline_scores(layered.logits(), problem) == {}
    assert baseline_scores(counted.logits(), problem) == {}
    assert baseline_scores(layered.logits(), replace(problem, queries={})) != {}


def linked_items(folder: Path, *, alike: bool, items: int = 100) -> Problem:
    """Items that are good or not, told by their numbers or (`alike`) better by those that they are linked with."""
    dice = np.random.default_rng(0)
    good = dice.permutation(np.arange(items) % 2).astype(bool)
    numbers = np.where(good, 1, -1)[:, None] + (3.0 if alike else 0.8) * dice.normal(size=(items, 4))
    others = [np.flatnonzero((good == good[i]) | (not alike)) for i in range(items)]
    links = [(i, j) for i in range(items) for j in dice.choice(others[i], 3).tolist() if i != j]
    rows = [f"i{i}\t{int(good[i])}\n" for i in dice.permutation(items).tolist()]
    files = {
        "links.tsv": "".join(f"i{i}\tlinked\ti{j}\n" for i, j in links),
        "train.tsv": "".join(["item\ttruth\n", *rows[: items // 4]]),
        "test.tsv": "".join(["item\ttruth\n", *rows[items // 4 :]]),
        "items.csv": "id,a,b,c,d\n" + "".join(f"i{i},{','.join(map(str, row))}\n" for i, row in enumerate(numbers)),
        "theory.r2n": """\
domain item
predicate good(item)
predicate linked(item, item) closed
rule alike: linked(x, y) & good(x) -> good(y)
rule unlike: linked(x, y) & !good(x) -> !good(y)
""",
        "problem.toml": """\
name = "items"
theory = "theory.r2n"
[facts]
train = ["links.tsv", {file = "train.tsv", predicate = "good", columns = ["item"], label = "truth"}]
[queries]
test = {file = "test.tsv", predicate = "good", columns = ["item"], label = "truth"}
[features.item]
table = "items.csv"
vector = ["a", "b", "c", "d"]
[model]
input = "pair"
dim = 8
layers = 2
[training]
epochs = 40
corrupted_positions = []
""",
    }
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return load_problem(folder)


def compared(problem: Problem, folder: Path, *changes: str) -> Report:
    run = prepared(problem, *changes)
    for _ in train_in(folder, run):
        pass
    assert train_without_reasoning(folder, run, problem) is None
    report = Model.load(folder).evaluate("test", baselines=True)
    assert report.baselines["without reasoning"] == Model.load(folder / "without-reasoning").evaluate("test").metrics
    return report


def test_rules_that_hurt_are_told_and_those_that_help_are_not(tmp_path: Path) -> None:
    noise, alike = (linked_items(tmp_path / str(kind), alike=kind) for kind in (False, True))
    hurt = compared(noise, tmp_path / "hurt", "model.evidence_input=only")  # the links alone, and they say nothing
    assert hurt.baselines["without reasoning"]["ap"] > hurt.metrics["ap"] + 0.1
    note, *others = notes_beside(hurt.to_dict())
    assert note.startswith("test: reasoning makes it worse: ap 0.")
    assert f"{hurt.baselines['without reasoning']['ap']:.3f} without reasoning (difference -0." in note
    chance = compared(noise, tmp_path / "chance")
    helped = compared(alike, tmp_path / "helped")
    assert helped.metrics["ap"] > helped.baselines["without reasoning"]["ap"] + 0.05
    assert not any("worse" in note for report in (chance, helped) for note in notes_beside(report.to_dict()))
    assert not any("worse" in note for note in others), "once"


def test_without_layers_there_is_nothing_to_leave_out(tmp_path: Path) -> None:
    problem = road(tmp_path / "road")
    run = prepared(problem, "model.reasoner=none", "training.epochs=1")
    for _ in train_in(tmp_path / "run", run):
        pass
    assert train_without_reasoning(tmp_path / "run", run, problem) is None
    assert not (tmp_path / "run" / "without-reasoning").exists()


def test_what_takes_longer_than_the_training_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = linked_items(tmp_path / "items", alike=True, items=20)
    run = prepared(problem, "training.epochs=1")
    for _ in train_in(tmp_path / "run", run):
        pass
    monkeypatch.setattr("r2n.model.training.FREE_SECONDS", 0.0)
    monkeypatch.setattr("r2n.model.training.read_trace", lambda _: [])
    assert train_without_reasoning(tmp_path / "run", run, problem) == "it takes longer than the training itself (0 s)"
    assert not list((tmp_path / "run").glob("without*"))


def test_a_damaged_comparison_is_left_out_and_the_run_is_evaluated(tmp_path: Path) -> None:
    problem, folder = linked_items(tmp_path / "items", alike=True, items=20), tmp_path / "run"
    sound = compared(problem, folder, "training.epochs=1")
    config = folder / "without-reasoning" / "config.json"
    config.unlink()
    os.mkfifo(config)
    found = json.loads(invoke("evaluate", str(folder), "--json"))
    assert found["metrics"] == sound.to_dict()["metrics"]
    assert set(found["beside"]) == set(sound.baselines) - {"without reasoning"}
    why = f"with 'without reasoning': {config} cannot be read: it is a pipe, not a regular file; delete {config.parent}"
    assert found["protocol"]["not_compared"].startswith(why)
    assert "not compared with 'without reasoning'" in invoke("evaluate", str(folder))
    assert "not_compared" not in sound.protocol


def test_the_comparison_is_not_calibrated(tmp_path: Path) -> None:
    problem, folder = linked_items(tmp_path / "items", alike=True, items=60), tmp_path / "run"
    compared(replace(problem, queries={"valid": problem.test, "test": problem.test}), folder, "training.epochs=1")
    assert [path.parent.name for path in folder.rglob("calibration.json")] == ["run"]
