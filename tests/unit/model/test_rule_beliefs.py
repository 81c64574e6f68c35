"""What is held of an implicit rule's atoms: known as known, others as answered, heads as if they were not known."""

from pathlib import Path

import numpy as np
import pytest
import torch

from r2n.data.problem import load_problem
from r2n.model.rule_report import PlainRule, best_threshold, ground_rules_of, rule_truths
from r2n.model.run import prepare_run
from tests.clause_problem import write_clause_problem


def trained_on(folder: Path, *changes: str) -> Model:
    problem = load_problem(write_clause_problem(folder, 0, items=40, epochs=3))
    run = prepare_run(problem, problem.options.changed(changes), seed=0)
    for _ in run.trainer:
        pass
    return Model.from_run(run)


def test_known_as_known_and_others_as_answered(tmp_path: Path) -> None:
    trained = trained_on(tmp_path / "p")
    graph = trained.source.whole
    assert graph is not None
    plain = PlainRule.of(trained.knowledge.theory.rules[0], trained.network.base)
    codes = ground_rules_of(graph, "related")
    truths = rule_truths(trained, plain, codes)
    stated = dict(zip(trained.problem.train.atoms.tolist(), trained.problem.train.truth.tolist(), strict=True))
    answers = dict(zip(codes.ravel().tolist(), (trained.scores(codes.ravel()) > 0).tolist(), strict=True))
    for row, known, believed in zip(codes.tolist(), truths.known, truths.believed, strict=True):
        assert known.tolist() == [int(stated[code]) if code in stated else -1 for code in row]
        assert believed.tolist() == [stated.get(code, answers[code]) for code in row]


def test_heads_are_asked_as_if_they_were_not_known(tmp_path: Path) -> None:
    trained = trained_on(tmp_path / "p")
    whole = trained.scores.whole
    assert whole is not None
    plain = PlainRule.of(trained.knowledge.theory.rules[0], trained.network.base)
    codes = ground_rules_of(whole.graph, "related")
    says = rule_truths(trained, plain, codes).says
    for position in range(codes.shape[1]):
        hidden = torch.zeros(len(whole.graph.atoms), dtype=torch.bool)
        rows = torch.from_numpy(whole.rows(codes[:, position].copy()))
        hidden[rows] = True
        with torch.no_grad():
            out = trained.network.eval()(whole.layout, hidden=hidden, known=whole.known).atoms
        assert says[:, position].tolist() == (out[rows] > 0).tolist()


def test_without_hiding_in_training_the_answers_are_what_the_network_says(tmp_path: Path) -> None:
    trained = trained_on(tmp_path / "p", "training.hiding=0.0", "model.evidence_input=off")
    graph = trained.source.whole
    assert graph is not None
    codes = ground_rules_of(graph, "related")
    plain = PlainRule.of(trained.knowledge.theory.rules[0], trained.network.base)
    assert (
        rule_truths(trained, plain, codes).says.tolist()
        == (trained.scores(codes.ravel()) > 0).reshape(codes.shape).tolist()
    )


def test_reciprocals_are_said_without_them(tmp_path: Path) -> None:
    (tmp_path / "theory.r2n").write_text(
        "domain d\npredicate p(d, d)\npredicate q(d, d)\nimplicit i: [p(x, y), q(x, y)]\n"
    )
    (tmp_path / "train.tsv").write_text("".join(f"c{i}\tp\tc{(i * 2) % 6}\n" for i in range(6)) + "c1\tq\tc0\n")
    (tmp_path / "problem.toml").write_text(
        'name = "r"\ntheory = "theory.r2n"\n[facts]\ntrain = "train.tsv"\n[grounding]\nreciprocal = true\n'
        "[model]\ndim = 4\nlayers = 1\n[training]\nepochs = 1\n"
    )
    problem = load_problem(tmp_path)
    trained = Model.from_run(prepare_run(problem, seed=0))
    plain = PlainRule.of(trained.knowledge.theory.rules[0], trained.network.base)
    assert [str(atom) for atom in plain.rule.atoms] == ["p(x, y)", "q(x, y)", "p(y, x)", "q(y, x)"]
    graph = trained.source.whole
    assert graph is not None
    codes = ground_rules_of(graph, "i")
    truths = rule_truths(trained, plain, codes)
    assert len(codes) == 36
    assert len(truths.known) == 30  # not those of x = y, where two positions have one atom
    assert (truths.known[:, 0] == 1).sum() == (truths.known[:, 2] == 1).sum() == 5


@pytest.mark.parametrize("seed", range(5))
def test_the_number_that_tells_facts_from_other_atoms_best(seed: int) -> None:
    """No other one has a better F1."""
    dice = np.random.default_rng(seed)
    true = dice.random(30) < 0.3
    logits = dice.normal(size=30) + true

    def f1(threshold: float) -> float:
        said = logits > threshold
        return 2 * (said & true).sum() / (said.sum() + true.sum())

    best = f1(best_threshold(logits, true))
    assert all(best >= f1(value) - 1e-12 for value in logits)
    assert best >= f1(float("-inf")) - 1e-12
    assert best_threshold(logits, np.zeros(30, bool)) == float("inf")
