"""Networks that blend an input layer with what is read along paths."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, logsumexp

import r2n
from r2n.data.problem import TRAIN
from r2n.evaluation.evaluate import evaluate_each
from r2n.evaluation.ranking import Filter
from r2n.model.run import Run, prepare_run
from r2n.network.mixture import INPUT_ALONE, NETWORK_ALONE, PATHS_ALONE, RULES_ALONE, SHARES, WEIGHTINGS, Weighting
from r2n.options import Options
from r2n.store.checkpoint import restore_trainer, trained_weights, trainer_state, write_checkpoint

RULES = "\nrule back: q(y, x) -> p(x, y)\n"
BLENDED = (
    "grounding.strategy=paths",
    "grounding.reciprocal=true",
    "grounding.depth=2",
    "model.reasoner=paths",
    "model.layers=2",
    "model.dim=8",
    "model.rule_dim=6",
    "model.input_score=true",
    "model.init_scale=0.1",
    "training.optimiser=adagrad",
    "training.learning_rate=0.1",
    "training.loss=full-softmax",
    "training.batch_size=20",
    "training.corrupted_positions=[-1]",
    "training.hiding=0.0",
    "training.epochs=3",
)


def graph(*changes: str, rules: str = "", constants: int = 30, facts: int = 150, prefix: str = "c") -> r2n.Problem:
    """Random facts of q, and p where q leads back."""
    dice = np.random.default_rng(3)
    pairs = np.unique(dice.integers(constants, size=(facts, 2)), axis=0)
    atoms = [f"q({prefix}{a}, {prefix}{b})" for a, b in pairs.tolist()]
    back = [f"p({prefix}{b}, {prefix}{a})" for a, b in pairs.tolist()]
    theory = f"domain d\npredicate p(d, d)\npredicate q(d, d){rules}"
    queries = {"valid": back[::5], "test": back[1::5]}
    train = [fact for i, fact in enumerate(back) if i % 5 > 1]
    return r2n.Problem.from_facts([*atoms, *train], theory=theory, queries=queries, options=Options().changed(changes))


def trained(problem: r2n.Problem, seed: int = 0) -> Run:
    run = prepare_run(problem, problem.options, seed)
    for _ in run.trainer:
        pass
    return run


@pytest.mark.parametrize("rules", ["", RULES])
def test_both_parts_are_trained_apart_and_their_logs_are_weighed(rules: str) -> None:
    changes = ["model.rules=counted"] if rules else []
    problem = graph(*BLENDED, *changes, rules=rules)
    run = prepare_run(problem, problem.options)
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    states, trainer = list[dict[str, torch.Tensor]](), run.trainer
    while not trainer.is_done:
        trainer.step()
        states.append({name: value.clone() for name, value in run.model.state_dict().items()})
    assert len(states) == 6, "three epochs each"

    def changed(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> set[str]:
        return {name.split(".")[0] for name, value in one.items() if not torch.equal(value, other[name])}

    others = {"constants", "atom_embedding", *(["counted"] if rules else [])}
    assert changed(before, states[2]) == others, "first the input layer, and counted rules"
    assert changed(states[2], states[4]) == {"paths"}
    logits, base = run.logits(), run.model.base
    given = np.arange(5)[:, None].repeat(2, axis=1)
    index = base.language.predicate_index("p")
    own = [logits.network_rows(index, 1, given, along_paths=along_paths) for along_paths in (True, False)]
    facts = run.problem.train.facts
    known = np.array(
        [
            [base.encode(base.language.predicates[index], np.array([[g, c]]))[0] in facts for c in range(30)]
            for g in range(5)
        ]
    )
    logs = [part - logsumexp(np.where(known, -np.inf, part), axis=1, keepdims=True) for part in own]
    for share in (0.0, *SHARES):
        rows = logits.by(Weighting("mixture", 0.0, paths=share)).rows(index, 1, given)
        blended = share * logs[0] + (1 - share) * logs[1]
        expected = blended - logsumexp(np.where(known, -np.inf, blended), axis=1, keepdims=True)
        assert rows == pytest.approx(expected, abs=1e-5)
    assert run.model.combination is not None
    chosen = run.model.combination.chosen
    assert chosen.paths in SHARES
    assert rules or (chosen.kind, chosen.value) == ("mixture", 0.0), "there is nothing to mix in"
    assert np.array_equal(logits.rows(index, 1, given), logits.by(chosen).rows(index, 1, given))
    atoms = base.encode(base.language.predicates[index], np.stack([given[:, 0], np.arange(7, 12)], axis=1))
    single = logits.at_position(1)(atoms)
    row = logits.rows(index, 1, given)[np.arange(5), np.arange(7, 12)]
    assert single == pytest.approx(row - np.log(-np.expm1(np.minimum(row, -1e-6))), abs=1e-4)


def test_the_share_is_the_best_on_the_validation_queries() -> None:
    run = trained(graph(*BLENDED))
    logits, problem = run.logits(), run.problem
    known = Filter.from_problem(problem, (TRAIN, "valid"))
    some = [Weighting("mixture", 0.0, paths=share) for share in SHARES]
    reports = evaluate_each(
        [logits.by(one) for one in some], problem.valid, problem.knowledge.base, known, split="valid"
    )
    found = [report.metrics["mrr"] for report in reports]
    assert run.model.combination is not None
    assert int(run.model.combination.share) == int(np.argmax(found))
    alone = [logits.by(one) for one in (PATHS_ALONE, INPUT_ALONE)]
    each = [evaluate_each([one], problem.test, problem.knowledge.base, known, split="test")[0] for one in alone]
    both = evaluate_each(alone, problem.test, problem.knowledge.base, known, split="test")
    assert [one.metrics for one in each] == [one.metrics for one in both], "rows that are shared are the same"
    assert each[0].metrics != each[1].metrics


def test_the_input_layer_is_that_of_a_training_without_paths() -> None:
    changes = ("model.reasoner=none", "model.input_score=false", "grounding.strategy=full")
    problems = [graph(*BLENDED, *some) for some in (changes, ())]
    alone, both = (prepare_run(problem, problem.options) for problem in problems)
    for run in (alone, both):
        with torch.no_grad():
            generator = torch.Generator().manual_seed(0)
            for name, value in run.model.named_parameters():
                if not name.startswith("paths."):
                    value.copy_(torch.randn(value.shape, generator=generator) * 0.1)
        for _ in run.trainer:
            pass
    weights = both.model.state_dict()
    for name, value in alone.model.state_dict().items():
        assert torch.equal(value, weights[name]), name


@pytest.mark.parametrize("stop", [1, 3, 4, 5])
def test_a_training_goes_on_where_it_stopped(stop: int, tmp_path: Path) -> None:
    problem = graph(*BLENDED, "model.rules=counted", rules=RULES)
    whole, first = trained(problem).model.state_dict(), prepare_run(problem, problem.options)
    for _ in range(stop):
        first.trainer.step()
    kept = trainer_state(first.trainer)
    write_checkpoint(tmp_path, *kept, "run")
    assert trained_weights(tmp_path).keys() == whole.keys(), "it can be read, whichever part is being trained"
    second = prepare_run(problem, problem.options)
    torch.manual_seed(77)
    restore_trainer(second.trainer, *kept)
    assert second.trainer.epochs_done == stop
    for _ in second.trainer:
        pass
    assert second.trainer.epochs_done == 6
    for name, value in second.model.state_dict().items():
        assert torch.equal(value, whole[name]), name


def test_the_minutes_are_those_of_both() -> None:
    problem = graph(*BLENDED, "training.minutes=0.05", "training.epochs=2")
    run = prepare_run(problem, problem.options)
    before = run.trainer.before
    assert before is not None
    assert before.options.minutes == 0.025
    for _ in run.trainer:
        pass
    assert run.trainer.planned is not None
    assert run.trainer.planned > 2, "along paths, the minutes say when to stop"


def test_a_model_answers_for_new_constants_and_on_another_graph(tmp_path: Path) -> None:
    problem = graph(*BLENDED)
    model = r2n.train(problem, notify=lambda *_: None, out=tmp_path / "run")
    again = r2n.Model.load(tmp_path / "run")
    assert again.evaluate("test").metrics == model.evaluate("test").metrics
    said = str(model.evaluate("test").protocol["combination"])
    assert "along paths" in said
    assert f"the best of {len(SHARES)} on" in said, "without rules, nothing else is chosen"
    more = again.with_facts(["q(new, c1)", "q(c2, new)"])
    answers = more.predict("p(new, ?)", everything=True)
    assert len(answers) == 31
    assert np.isfinite(answers.logits).all()
    old = more.predict("p(c3, ?)", everything=True)
    assert "p(c3, new)" in [answer.atom for answer in old]
    other = again.on(graph(constants=12, facts=40, prefix="other"))
    alone = model.scores.by(PATHS_ALONE)
    assert not other.network.blends
    assert 0 < other.evaluate("test").metrics["mrr"] <= 1
    same = again.on(graph())
    index = same.base.language.predicate_index("p")
    given = np.arange(4)[:, None].repeat(2, axis=1)
    rows = log_softmax(same.scores.rows(index, 1, given), axis=1)
    assert np.argmax(rows, axis=1).tolist() == np.argmax(alone.rows(index, 1, given), axis=1).tolist()


def test_an_answer_is_explained_by_facts_and_names_the_other_parts() -> None:
    model = r2n.train(graph(*BLENDED, "training.epochs=30"), notify=lambda *_: None)
    answer = model.predict("p(c3, ?)", unknown=True)[0]
    found = model.explain(answer)
    assert found.reasons
    assert found.layers[-1].logit == pytest.approx(answer.logit, abs=1e-5)
    assert any("input layer" in note for note in found.notes)
    problem = graph(*BLENDED, "training.epochs=30", "model.rules=counted", rules=RULES)
    model = r2n.train(problem, notify=lambda *_: None)
    both = model.explain(model.base.names(problem.test.atoms)[0], top=None)
    assert "back" in {reason.rule for reason in both.reasons}, "the rule concludes every test query"
    assert len(both.reasons) > 1, "facts along paths are reasons too"
    values = [reason.effect for reason in both.reasons]
    assert values == sorted(values, key=lambda effect: (effect < 0, -abs(effect)))


def test_parts_are_baselines() -> None:
    model = r2n.train(graph(*BLENDED, "model.rules=counted", rules=RULES), notify=lambda *_: None)
    report = model.evaluate("test", baselines=True)
    assert list(report.baselines) == ["rules alone", "paths alone", "without reasoning", "without counted rules"]
    scores, base = model.scores, model.base
    known = Filter.from_problem(model.problem)
    for name, weighting in zip(report.baselines, (RULES_ALONE, PATHS_ALONE, INPUT_ALONE, NETWORK_ALONE), strict=True):
        own = evaluate_each([scores.by(weighting)], model.problem.test, base, known, split="test")[0]
        assert own.metrics == report.baselines[name]
    without = r2n.train(graph(*BLENDED), notify=lambda *_: None).evaluate("test", baselines=True)
    assert list(without.baselines) == ["paths alone", "without reasoning"]
    assert WEIGHTINGS[1] == NETWORK_ALONE
