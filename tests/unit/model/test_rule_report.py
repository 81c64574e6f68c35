"""Reports on a run's rules: effects, what is believed of implicit rules, and what is exported."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
import torch
from scipy.special import expit

from r2n.data.knowledge_base import Evidence
from r2n.data.problem import Problem, load_problem
from r2n.errors import ConfigError
from r2n.evaluation.evaluate import evaluate
from r2n.explanation.rules import LearnedClause, RuleAccount, RuleEffect, RuleReport
from r2n.logic.parser import parse_theory
from r2n.model.memory import make_source
from r2n.model.model import Model
from r2n.model.rule_report import (
    RuleSwitches,
    best_threshold,
    export_theory,
    ground_rules_of,
    held_back,
    helps,
    plain_rule,
    rule_effects,
    rule_report,
    rule_truths,
)
from r2n.model.run import prepare_run
from r2n.scoring import AtomLogits
from tests.clause_problem import write_clause_problem
from tests.false_rule_problem import write_false_rule_problem
from tests.without_rules import knowledge_without, network_without

NAMES = ("neighbours", "pen pals")
NETWORKS = {
    "full": ["grounding.strategy=full"],
    "backward": ["grounding.strategy=backward"],
    "two layers": ["model.layers=2", "model.evidence_input=add"],
    "reciprocal": ["grounding.reciprocal=true"],
}


@cache
def towns(more: str = "", *, only_true: bool = False) -> Problem:
    """Towns with a rule that holds and one that does not; `more` rules; validation queries with or without labels."""
    folder = write_false_rule_problem(Path(mkdtemp()) / "p", towns=24, epochs=2)
    (folder / "theory.r2n").write_text((folder / "theory.r2n").read_text() + more)
    if only_true:
        rows = (folder / "valid.tsv").read_text().splitlines()
        (folder / "valid.tsv").write_text("".join(f"{row[:-2]}\n" for row in rows if row.endswith("\t1")))
    return load_problem(folder)


def trained_on(problem: Problem, *changes: str, epochs: bool = True) -> Model:
    run = prepare_run(problem, problem.options.changed(changes), seed=1)
    for _ in run.trainer if epochs else ():
        pass
    return Model.from_run(run)


@pytest.fixture(scope="module")
def trained() -> Model:
    return trained_on(towns())


@pytest.fixture(scope="module")
def clauses() -> Model:
    """A network that has learned an implicit rule with some atoms masked."""
    return trained_on(load_problem(write_clause_problem(Path(mkdtemp()) / "p", 0, items=40, epochs=3)))


@pytest.mark.parametrize("kind", NETWORKS)
def test_without_a_rule_as_a_theory_that_never_had_it(kind: str) -> None:
    trained = trained_on(towns(), *NETWORKS[kind])
    trained.network.double()
    switches = RuleSwitches(trained, "valid", trained.problem.valid)
    assert switches.names == NAMES
    atoms = trained.problem.valid.atoms
    np.testing.assert_allclose(switches.full.logits, trained.scores(atoms), atol=1e-9)
    for out, other in (NAMES, NAMES[::-1]):
        rest = knowledge_without(trained.knowledge, [out])
        network = network_without(trained.network, trained.knowledge, [out], trained.options.model)
        source = make_source(rest, trained.options)
        again = AtomLogits(network, source, rest.evidence)(atoms)
        np.testing.assert_allclose(switches.off(out).logits, again, atol=1e-6)
        np.testing.assert_allclose(switches.alone(other).logits, again, atol=1e-6)
        report = evaluate(network, source, trained.problem.valid, evidence=rest.evidence)
        assert switches.off(out).value == pytest.approx(report.metrics["ap"])


def test_the_numbers_are_means_over_the_queries_and_the_largest_come_first(trained: Model) -> None:
    switches = RuleSwitches(trained, "valid", trained.problem.valid)
    effects = rule_effects(switches, NAMES)
    truth = trained.problem.valid.truth
    for name, effect in effects.items():
        off = trained.scores.without_rules([name])(trained.problem.valid.atoms)
        assert effect.effect == pytest.approx(float(np.abs(switches.full.logits - off).mean()), abs=1e-5)
        towards = np.where(truth, 1, -1) * (expit(switches.full.logits) - expit(off))
        assert effect.gain == pytest.approx(float(towards.mean()), abs=1e-5)
        assert effect.metric == switches.full.value
    assert list(effects) == sorted(NAMES, key=lambda name: -effects[name].effect)
    seen: list[str] = []
    best = rule_effects(switches, NAMES, most=1, progress=lambda phase, done, total: seen.append(phase))
    assert list(best.items()) == list(effects.items())[:1]
    assert seen[0] == "which rules matter"


def test_a_rule_out_of_reach_of_the_queries_has_no_effect_and_costs_no_pass() -> None:
    problem = towns("rule idle: near(x, y) & writesTo(x, y) -> near(y, x)\n")
    switches = RuleSwitches(trained_on(problem, "model.layers=1", epochs=False), "valid", problem.valid)
    assert switches.reachable == set(NAMES)
    assert switches.off("idle") is switches.full
    assert switches.alone("idle") is switches.none
    effect = rule_effects(switches, ["idle"])["idle"]
    assert (effect.effect, effect.gain, effect.changed, effect.without) == (0.0, 0.0, 0, effect.metric)


@pytest.mark.parametrize("rules", ["layers", "counted"])
def test_in_a_ranking_the_share_among_the_candidates_is_what_is_gained(rules: str) -> None:
    problem = towns(only_true=True)
    trained = trained_on(problem, f"model.rules={rules}", epochs=False)
    switches = RuleSwitches(trained, "valid", problem.valid)
    effect = rule_effects(switches, ["neighbours"])["neighbours"]
    assert switches.full.metric == "mrr"
    assert effect.metric == pytest.approx(trained.evaluate("valid").metrics["mrr"])
    base = problem.knowledge.base
    index, arguments = base.decode(problem.valid.atoms)
    shares = np.zeros(len(index))
    for i, (predicate, given) in enumerate(zip(index.tolist(), arguments, strict=True)):
        for position in (0, 1):
            row = trained.scores.rows(predicate, position, given[None])[0].astype(np.float64)
            members = base.language.members(base.language.predicates[predicate].domains[position])
            shares[i] += np.exp(row[members.tolist().index(given[position])]) / np.exp(row).sum() / 2
    np.testing.assert_allclose(switches.full.of_truth, shares, atol=1e-6)
    report = rule_report(trained)
    assert report.metric == "mrr"
    assert "have no label" in report.notes[0]


@pytest.mark.parametrize("strategy", ["full", "known-body", "backward"])
def test_a_report_for_every_strategy(strategy: str) -> None:
    trained = trained_on(towns(), f"grounding.strategy={strategy}")
    report = rule_report(trained)
    assert (report.split, report.metric, report.left_out) == ("valid", "ap", 0)
    assert report.value == pytest.approx(trained.evaluate("valid").metrics["ap"])
    satisfied = {}
    for account in report.rules:
        assert account.occurrence is not None
        assert account.occurrence.ground_rules > 0
        assert 0 < (account.occurrence.out or 0) < 1
        assert account.effect is not None
        assert account.effect.effect > 0
        satisfied[account.name] = account.occurrence.satisfied or 0
    assert set(satisfied) == set(NAMES)
    assert satisfied["pen pals"] < 0.9 < satisfied["neighbours"] == 1.0
    assert any("known atoms" in note for note in report.notes) == (strategy == "backward")
    json.dumps(report.to_dict(), allow_nan=False)


def test_other_networks_and_theories(trained: Model) -> None:
    unweighted = rule_report(trained_on(towns(), "training.semantic_weight=0"))
    assert all(account.occurrence is not None and account.occurrence.out is None for account in unweighted.rules)
    counted = rule_report(trained_on(towns(), "model.rules=counted"))
    assert {account.kind for account in counted.rules} == {"counted"}
    assert all(account.effect is not None and account.effect.without is not None for account in counted.rules)
    for change in ("model.reasoner=none", "model.layers=0"):
        unread = rule_report(trained_on(towns(), change, "training.hiding=0.0", epochs=False))
        assert "the network reads no rules" in unread.notes[0]
        assert [account.effect for account in unread.rules] == [None, None]
    knowledge = replace(towns().knowledge, theory=replace(towns().knowledge.theory, rules=()))
    bare = rule_report(trained_on(replace(towns(), knowledge=knowledge), epochs=False))
    assert (bare.rules, bare.notes) == ((), ("the theory has no rules",))


def with_queries(model: Model, queries: Mapping[str, Evidence]) -> Model:
    problem = replace(model.problem, queries=queries)
    return replace(model, changed=replace(model.changed, problem=problem))


def test_which_queries_and_known_atoms_are_asked(trained: Model) -> None:
    assert rule_report(trained, split="test").split == "test"
    with pytest.raises(ConfigError, match=r"no queries 'dev'(.|\n)*valid, test"):
        rule_report(trained, split="dev")
    problem = trained.problem
    report = rule_report(with_queries(trained, {"test": problem.test}))
    assert report.split == "test"
    alone = rule_report(with_queries(trained, {}))
    assert alone.metric == "ap"  # the facts of this problem are labelled
    assert any("there are no queries" in note for note in alone.notes)
    assert "asked as if they were not known" in (alone.split or "")
    found = held_back(trained)
    assert found is not None
    rest = found.trained.knowledge.evidence.atoms
    assert len(np.intersect1d(rest, found.queries.atoms)) == 0
    assert len(rest) + len(found.queries) == len(trained.knowledge.evidence)


def test_a_theory_of_200_rules_is_bounded_and_says_so() -> None:
    problem = towns("".join(f"rule more{i}: near(x, y) & liesIn(y, z) -> liesIn(x, z)\n" for i in range(198)))
    trained = trained_on(problem, "model.rule_network=shared", "model.dim=2", epochs=False)
    phases: dict[str, int] = {}
    report = rule_report(trained, most=3, progress=lambda phase, done, total: phases.update({phase: total}))
    assert (len(report.rules), report.left_out) == (3, 197)
    assert "of 200 rules, the 30 with the most ground rules were tried" in report.notes
    assert (phases["which rules matter"], phases["without a rule, and with it alone"]) == (30, 3)
    effects = [account.effect.effect for account in report.rules if account.effect is not None]
    assert effects == sorted(effects, reverse=True)


def test_an_implicit_rule_has_clauses_and_no_share_that_is_satisfied(clauses: Model) -> None:
    account = rule_report(clauses).rules[0]
    assert account.kind == "implicit"
    assert account.occurrence is not None
    assert account.occurrence.satisfied is None
    assert account.occurrence.known > 0


def test_known_as_known_others_as_answered_and_heads_as_if_masked(clauses: Model) -> None:
    full = clauses.scores.full_pass
    assert full is not None
    positions = plain_rule(clauses.knowledge.theory.rules[0], clauses.network.base)[1]
    codes = ground_rules_of(full.graph, "related")
    truths = rule_truths(clauses, positions, codes)
    stated = dict(zip(clauses.problem.train.atoms.tolist(), clauses.problem.train.truth.tolist(), strict=True))
    answers = dict(zip(codes.ravel().tolist(), (clauses.logits(codes.ravel()) > 0).tolist(), strict=True))
    for row, known, believed in zip(codes.tolist(), truths.known, truths.believed, strict=True):
        assert known.tolist() == [int(stated[code]) if code in stated else -1 for code in row]
        assert believed.tolist() == [stated.get(code, answers[code]) for code in row]
    for position in range(codes.shape[1]):
        hidden = torch.zeros(len(full.graph.atoms), dtype=torch.bool)
        rows = torch.from_numpy(full.rows(codes[:, position].copy()))
        hidden[rows] = True
        with torch.no_grad():
            out = clauses.network.eval()(full.batch, hidden=hidden, known=full.known).atoms
        assert truths.says[:, position].tolist() == (out[rows] > 0).tolist()
    unmasked = trained_on(clauses.problem, "training.hiding=0.0", "model.evidence_input=off")
    says = rule_truths(unmasked, positions, codes).says
    assert says.tolist() == (unmasked.logits(codes.ravel()) > 0).reshape(codes.shape).tolist()


def test_reciprocals_are_said_without_them(tmp_path: Path) -> None:
    theory = "domain d\npredicate p(d, d)\npredicate q(d, d)\nimplicit i: [p(x, y), q(x, y)]\n"
    (tmp_path / "theory.r2n").write_text(theory)
    (tmp_path / "train.tsv").write_text("".join(f"c{i}\tp\tc{(i * 2) % 6}\n" for i in range(6)) + "c1\tq\tc0\n")
    (tmp_path / "problem.toml").write_text(
        'name = "r"\ntheory = "theory.r2n"\n[facts]\ntrain = "train.tsv"\n[grounding]\nreciprocal = true\n'
        "[model]\ndim = 4\nlayers = 1\n[training]\nepochs = 1\n"
    )
    trained = trained_on(load_problem(tmp_path), epochs=False)
    plain, positions = plain_rule(trained.knowledge.theory.rules[0], trained.network.base)
    assert [str(atom) for atom in plain.atoms] == ["p(x, y)", "q(x, y)", "p(y, x)", "q(y, x)"]
    graph = trained.source.full_graph
    assert graph is not None
    codes = ground_rules_of(graph, "i")
    truths = rule_truths(trained, positions, codes)
    assert len(codes) == 36
    assert len(truths.known) == 30  # not those of x = y, where two positions have one atom
    assert (truths.known[:, 0] == 1).sum() == (truths.known[:, 2] == 1).sum() == 5


@pytest.mark.parametrize("seed", range(5))
def test_no_other_threshold_has_a_better_f1(seed: int) -> None:
    dice = np.random.default_rng(seed)
    true = dice.random(30) < 0.3
    logits = dice.normal(size=30) + true

    def f1(threshold: float) -> float:
        said = logits > threshold
        return 2 * (said & true).sum() / (said.sum() + true.sum())

    best = f1(best_threshold(logits, true))
    assert all(best >= f1(value) - 1e-12 for value in (*logits, float("-inf")))
    assert best_threshold(logits, np.zeros(30, bool)) == float("inf")


THEORY = parse_theory(
    "domain d\ndomain e = {a, b}\npredicate p(d)\npredicate q(d, e) closed\nrule i_1: q(x, y) -> p(x)\n"
    "rule r [2.0]: p(x) -> q(x, y)\nrule s: q(x, y) -> p(x)\nimplicit i: [p(x), q(x, y)]"
)
CLAUSE = parse_theory("domain d\ndomain e\npredicate p(d)\npredicate q(d, e)\nrule i: !p(x) -> q(x, y)").rules[0]


def account(number: int, metric: float | None, without: float | None, gain: float = 0.0) -> RuleAccount:
    return RuleAccount(THEORY.rules[number], "explicit", effect=RuleEffect(1.0, gain, 3, metric, without, 0.2))


def test_a_rule_helps_where_the_metric_falls_without_it_else_where_truth_is_more_probable() -> None:
    assert helps(account(1, 0.9, 0.8, -1.0))
    assert not helps(account(1, 0.8, 0.9, 1.0))
    assert helps(account(1, 0.9, 0.9, 0.1))
    assert not helps(account(1, 0.9, 0.9))
    assert helps(account(1, None, None, 0.1))
    assert not helps(RuleAccount(THEORY.rules[1], "explicit"))


def test_rules_that_help_and_clauses_are_exported_as_a_theory(tmp_path: Path) -> None:
    clauses = (LearnedClause(CLAUSE, 9, 0.95, 5, 0.8, 0.1), LearnedClause(CLAUSE, 9, 0.91234, 0, None, 0.1))
    implicit = RuleAccount(THEORY.rules[3], "implicit", clauses=clauses)
    found = RuleReport("toy", "valid", 9, "ap", 0.9, 0.1, (account(1, 0.9, 0.5), account(2, 0.9, 0.95), implicit))
    out = tmp_path / "out.r2n"
    assert export_theory(found, THEORY, out).startswith("3 rules in")
    full = parse_theory(text := out.read_text())
    assert (full.domains, full.predicates) == (THEORY.domains, THEORY.predicates)
    named = [(rule.name, rule.weight) for rule in full.rules]
    assert named == [("r", 2.0), ("i_1_", 0.8), ("i_2", 0.9123)], "a name that is taken is not taken twice"
    assert "# ap 0.9000, without it 0.5000\nrule r [2.0]" in text
    assert "# learned by 'i': support 9, confidence 0.800 of 5 known, fidelity 0.950" in text
    with pytest.raises(ConfigError, match="cannot be written"):
        export_theory(found, THEORY, tmp_path / "nowhere" / "out.r2n")
    with pytest.raises(ConfigError, match="nothing to export"):
        export_theory(replace(found, rules=(account(1, 0.8, 0.9),)), THEORY, out)
