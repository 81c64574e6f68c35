"""The regression on features as input layer: fitted out of fold, exclusive values, no mask on what tells no label."""

from typing import Any
from zlib import crc32

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import r2n
from r2n.data.problem import Problem
from r2n.model.choices import choose_options
from r2n.model.run import prepare_run, valid_score
from r2n.network import regression
from r2n.network.regression import FOLDS, Regression

ITEMS = 60
VALUES = ("red", "green", "blue")
NAMES = [f"i{k}" for k in range(ITEMS)]
LABELLED = range(40)
STRENGTH = 0.5
ALONE = ["model.input=regression", "model.layers=0", "training.epochs=0", "training.corrupted_positions=[]"]


@pytest.fixture(autouse=True)
def one_strength(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regression, "STRENGTHS", [STRENGTH])
    monkeypatch.setattr(regression, "HALF_STEP", 1.0)


def features() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(ITEMS, 4)).astype(np.float32)


def truths(changed: int | None = None) -> np.ndarray:
    truth = features() @ [1.0, -1.0, 0.5, 0.0] + np.random.default_rng(1).logistic(size=ITEMS) > 0
    if changed is not None:
        truth[changed] = ~truth[changed]
    return truth


def unary(changed: int | None = None) -> Problem:
    facts = [("good", NAMES[i], bool(truths(changed)[i])) for i in LABELLED]
    given = {"item": dict(zip(NAMES, features(), strict=True))}
    valid = [("good", NAMES[i], bool(truths()[i])) for i in range(40, 50)]
    theory = "domain item\npredicate good(item)"
    return Problem.from_facts(facts, theory, {"valid": valid}, features=given, domains={"item": NAMES})


def logits(problem: Problem) -> np.ndarray:
    """Those of all atoms after no epoch: what the regression says."""
    run = prepare_run(problem, problem.options.changed(ALONE))
    assert isinstance(run.model.atom_embedding, Regression)
    return run.logits()(np.arange(problem.knowledge.base.size))


def standard() -> np.ndarray:
    known = features()[list(LABELLED)].astype(np.float64)
    return (features() - known.mean(0)) / known.std(0)


def test_a_training_atom_is_read_by_weights_that_never_saw_it_and_others_by_those_of_all() -> None:
    fold = np.array([crc32(name.encode()) % FOLDS for name in NAMES])
    labelled, truth, scores = np.arange(ITEMS) < len(LABELLED), truths(), np.zeros((ITEMS, FOLDS))
    for k in range(FOLDS):
        rest = labelled & (fold != k)
        model = LogisticRegression(C=STRENGTH, max_iter=200).fit(standard()[rest], truth[rest])
        scores[:, k] = model.decision_function(standard())
    of_all = LogisticRegression(C=STRENGTH, max_iter=200).fit(standard()[labelled], truth[labelled])
    expected = np.where(labelled, scores[np.arange(ITEMS), fold], of_all.decision_function(standard()))
    by_name = dict(zip(sorted(NAMES), logits(unary()), strict=True))
    np.testing.assert_allclose([by_name[name] for name in NAMES], expected, atol=1e-3)


def test_the_own_label_changes_nothing_of_an_atom() -> None:
    at = sorted(NAMES).index(NAMES[7])
    before, after = logits(unary()), logits(unary(changed=7))
    assert after[at] == pytest.approx(before[at], abs=1e-5)
    assert np.abs(after - before).max() > 1e-3


def test_of_positives_alone_every_item_is_read_by_weights_that_never_took_it_for_false() -> None:
    facts = [("good", NAMES[i]) for i in LABELLED if truths()[i]]
    given = {"item": dict(zip(NAMES, features(), strict=True))}
    made = Problem.from_facts(facts, "domain item\npredicate good(item)", features=given, domains={"item": NAMES})
    found = prepare_run(made, made.options.changed([*ALONE[:3]])).model.atom_embedding
    assert isinstance(found, Regression)
    assert sorted(found.fold_of.unique().tolist()) == list(range(FOLDS)), "no item is read by the fit on all"


def functional() -> Problem:
    values = np.argmax(features()[:, :3] + np.random.default_rng(2).normal(size=(ITEMS, 3)) / 2, axis=1)
    facts = [("colour", NAMES[i], VALUES[values[i]]) for i in LABELLED]
    given = {"item": dict(zip(NAMES, features(), strict=True))}
    theory = "domain item\ndomain value\npredicate colour(item, value) functional"
    return Problem.from_facts(facts, theory, features=given, domains={"item": NAMES, "value": VALUES})


def test_the_values_of_a_functional_predicate_exclude_each_other() -> None:
    problem = functional()
    probabilities = 1 / (1 + np.exp(-logits(problem).reshape(ITEMS, len(VALUES))))
    in_one_fold = np.isin(sorted(NAMES), [NAMES[i] for i in LABELLED])
    np.testing.assert_allclose(probabilities[in_one_fold].sum(1), 1.0, atol=1e-4)
    facts = problem.knowledge.base.decode(problem.train.atoms)[1]
    first, members = np.unique(facts[:, 0], return_index=True)
    values = problem.knowledge.language.members(problem.knowledge.language.predicate("colour").domains[1])
    best = np.sort(values)[probabilities[in_one_fold].argmax(1)]
    assert np.mean(best == facts[members, 1]) > 0.6, first


def test_a_hidden_label_hides_no_feature() -> None:
    run = prepare_run(unary(), unary().options.changed(ALONE))
    embedding = torch.ones(ITEMS, run.model.atom_embedding.dim)
    batch = run.model.collate(run.source.around(np.arange(ITEMS)))
    hidden = torch.ones(ITEMS, dtype=torch.bool)
    assert torch.equal(run.model._read(batch, embedding, hidden, None), embedding)


def test_training_begins_with_the_regression_and_never_ends_below_it() -> None:
    problem = unary()
    changes = [
        *ALONE,
        "training.labels_only=['good']",
        "training.patience=5",
        "training.validate_every=5",
        "training.epochs=20",
    ]
    run = prepare_run(problem, problem.options.changed(changes))
    assert run.trainer.best is not None
    at_first = run.trainer.best
    list(run.trainer)
    assert valid_score(run) >= at_first


def test_attributes_are_read_off_features_by_default() -> None:
    model = r2n.train(unary(), baseline=False, progress=lambda *_: None, notify=lambda *_: None)
    assert model.chosen is not None
    assert model.options.model.input == "regression"
    assert "attributes" in model.chosen["model.input"]


def test_clauses_count_without_some_labels_as_far_as_queries_are_of_other_constants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """How much each way to count a training atom weighs is read off the queries' constants.

    On a fold of Cora, whose queries are of constants without any label, AP was 0.918 with the labels of others.
    """
    people = [f"p{i}" for i in range(12)]
    labels = [
        ("likes", a, b, (i + j) % 3 == 0) for i, a in enumerate(people[:8]) for j, b in enumerate(people) if i != j
    ]
    theory = "domain person\npredicate likes(person, person)\nrule back: likes(x, y) -> likes(y, x)"
    asked = [("likes", "p1", "p1", True), ("likes", "p9", "p2", True), ("likes", "p9", "p3", False)]
    seen, made = list[tuple[np.ndarray, np.ndarray]](), regression._fitted

    def fitted(*given: Any) -> tuple[np.ndarray, np.ndarray]:
        ways = given[0].toarray().reshape(-1, len(labels), given[0].shape[1])
        seen.append((given[3].reshape(len(ways), -1).mean(1), ways.any(axis=(1, 2))))
        return made(*given)

    monkeypatch.setattr(regression, "_fitted", fitted)
    for others in ([], [("likes", "q1", "q2", True)]):
        problem = Problem.from_facts(labels, theory=theory, queries={"test": [*asked, *others]})
        prepare_run(problem, choose_options(problem, problem.options)[0])
    np.testing.assert_allclose(seen[0][0], [1 / 3, 2 / 3])
    np.testing.assert_allclose(seen[1][0], [1 / 4, 2 / 4, 1 / 4])
    assert seen[1][1].tolist() == [True, True, False], "without any label, nothing is counted"
