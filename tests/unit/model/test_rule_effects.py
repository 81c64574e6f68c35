"""What becomes of answers without a rule: the same as on a run whose theory never had it."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

import r2n
from r2n.data.problem import load_problem
from r2n.model.memory import make_source
from r2n.model.model import Model
from r2n.model.rule_report import RuleSwitches, rule_effects
from r2n.model.run import prepare_run
from r2n.scoring import AtomLogits
from tests.false_rule_problem import write_false_rule_problem
from tests.without_rules import knowledge_without, network_without

NAMES = ("neighbours", "pen pals")
STRATEGIES = {
    "full": ["grounding.strategy=full"],
    "known-body": ["grounding.strategy=known-body"],
    "backward": ["grounding.strategy=backward"],
    "two layers": ["model.layers=2", "model.evidence_input=add"],
    "shared": ["model.rule_network=shared"],
    "fgnn": ["model.reasoner=fgnn"],
    "reciprocal": ["grounding.reciprocal=true"],
}


def trained_on(folder: Path, *changes: str, epochs: int = 2) -> Model:
    problem = load_problem(write_false_rule_problem(folder, towns=24, epochs=epochs))
    run = prepare_run(problem, problem.options.changed(changes), seed=1)
    for _ in run.trainer:
        pass
    return Model.from_run(run)


@pytest.mark.parametrize("kind", STRATEGIES)
def test_without_a_rule_as_a_theory_that_never_had_it(kind: str, tmp_path: Path) -> None:
    trained = trained_on(tmp_path / "p", *STRATEGIES[kind])
    trained.network.double()
    switches = RuleSwitches(trained, "valid", trained.problem.valid)
    assert switches.names == NAMES
    atoms = trained.problem.valid.atoms
    np.testing.assert_allclose(switches.whole.logits, trained.scores(atoms), atol=1e-9)
    for out in NAMES:
        rest = knowledge_without(trained.knowledge, [out])
        network = network_without(trained.network, trained.knowledge, [out], trained.options.model)
        source = make_source(rest, trained.options)
        again = AtomLogits(network, source, rest.evidence)(atoms)
        np.testing.assert_allclose(switches.off(out).logits, again, atol=1e-6)
        change = list(switches.changes(NAMES))[NAMES.index(out)]
        np.testing.assert_allclose(change, switches.whole.logits - again, atol=1e-6)
        other = next(name for name in NAMES if name != out)
        np.testing.assert_allclose(switches.alone(other).logits, again, atol=1e-6)
        report = r2n.evaluate(network, source, trained.problem.valid, evidence=rest.evidence)
        assert switches.off(out).value == pytest.approx(report.metrics["ap"])


def test_the_numbers_are_means_over_the_queries(tmp_path: Path) -> None:
    trained = trained_on(tmp_path / "p")
    switches = RuleSwitches(trained, "valid", trained.problem.valid)
    effects, gains = rule_effects(switches, NAMES)
    assert set(effects) == set(gains) == set(NAMES)
    truth = trained.problem.valid.truth
    for name, effect in effects.items():
        off = trained.scores.without_rules([name])(trained.problem.valid.atoms)
        change = switches.whole.logits - off
        assert effect.effect == pytest.approx(float(np.abs(change).mean()), abs=1e-5)
        towards = np.where(truth, 1, -1) * (expit(switches.whole.logits) - expit(off))
        assert effect.gain == pytest.approx(float(towards.mean()), abs=1e-5)
        np.testing.assert_allclose(gains[name], towards, atol=1e-5)
        assert effect.metric == switches.whole.value
    assert list(effects) == sorted(NAMES, key=lambda name: -effects[name].effect)


def test_of_many_rules_those_with_the_largest_effect(tmp_path: Path) -> None:
    switches = RuleSwitches(trained := trained_on(tmp_path / "p"), "valid", trained.problem.valid)
    all_of_them = rule_effects(switches, NAMES)[0]
    seen: list[str] = []
    best = rule_effects(switches, NAMES, most=1, progress=lambda phase, done, total: seen.append(phase))[0]
    assert list(best.items()) == list(all_of_them.items())[:1]
    assert seen[0] == "which rules matter"


def test_a_rule_that_no_query_feels_has_no_effect_and_costs_no_pass(tmp_path: Path) -> None:
    folder = write_false_rule_problem(tmp_path / "p", towns=24, epochs=1)
    theory = (folder / "theory.r2n").read_text()
    (folder / "theory.r2n").write_text(theory + "rule idle: near(x, y) & writesTo(x, y) -> near(y, x)\n")
    problem = load_problem(folder)
    run = prepare_run(problem, problem.options.changed(["model.layers=1"]), seed=0)
    switches = RuleSwitches(Model.from_run(run), "valid", problem.valid)
    assert switches.felt == set(NAMES)
    assert switches.off("idle") is switches.whole
    assert switches.alone("idle") is switches.none
    effect = rule_effects(switches, ["idle"])[0]["idle"]
    assert (effect.effect, effect.gain, effect.felt) == (0.0, 0.0, 0)
    assert effect.without == effect.metric


@pytest.mark.parametrize("counted", [False, True])
def test_in_a_ranking_the_share_among_the_candidates_is_what_is_gained(counted: bool, tmp_path: Path) -> None:
    folder = write_false_rule_problem(tmp_path / "p", towns=24, epochs=1)
    rows = (folder / "valid.tsv").read_text().splitlines()
    (folder / "valid.tsv").write_text("".join(f"{row[:-2]}\n" for row in rows if row.endswith("\t1")))
    problem = load_problem(folder)
    options = problem.options.changed([f"model.rules={'counted' if counted else 'layers'}"])
    trained = Model.from_run(prepare_run(problem, options, seed=0))
    switches = RuleSwitches(trained, "valid", problem.valid)
    effect = rule_effects(switches, ["neighbours"])[0]["neighbours"]
    assert switches.whole.metric == "mrr"
    assert effect.metric == pytest.approx(trained.evaluate("valid").metrics["mrr"])
    base = problem.knowledge.base
    index, arguments = base.decode(problem.valid.atoms)
    shares = np.zeros(len(index))
    for i, (predicate, given) in enumerate(zip(index.tolist(), arguments, strict=True)):
        for position in (0, 1):
            row = trained.scores.rows(predicate, position, given[None])[0].astype(np.float64)
            members = base.language.members(base.language.predicates[predicate].domains[position])
            place = members.tolist().index(given[position])
            shares[i] += np.exp(row[place]) / np.exp(row).sum() / 2
    np.testing.assert_allclose(switches.whole.of_truth, shares, atol=1e-6)
