"""What each rule of a run does, what was learned for the implicit ones, and the theory that is exported."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit

import r2n
from r2n.data.problem import load_problem
from r2n.errors import ConfigError
from r2n.explanation.rules import LearnedClause, RuleAccount, RuleEffect, RuleReport
from r2n.logic.parser import parse_theory
from r2n.model.memory import make_source
from r2n.model.model import Model
from r2n.model.rule_report import (
    PlainRule,
    RuleSwitches,
    _telling,
    export_theory,
    ground_rules_of,
    held_back,
    helps,
    report_theory,
    rule_effects,
    rule_report,
    rule_truths,
)
from r2n.model.run import prepare_run
from r2n.scoring import AtomLogits
from tests.clause_problem import write_clause_problem
from tests.false_rule_problem import write_false_rule_problem
from tests.without_rules import knowledge_without, network_without


def trained_on(folder: Path, *changes: str, without: tuple[str, ...] = ()) -> Model:
    problem = load_problem(write_false_rule_problem(folder, towns=24, epochs=2))
    problem = replace(problem, queries={name: part for name, part in problem.queries.items() if name not in without})
    run = prepare_run(problem, problem.options.changed(changes), seed=1)
    for _ in run.trainer:
        pass
    return Model.from_run(run)


@pytest.mark.parametrize("strategy", ["full", "known-body", "backward"])
def test_every_strategy(strategy: str, tmp_path: Path) -> None:
    trained = trained_on(tmp_path / "p", f"grounding.strategy={strategy}")
    report = rule_report(trained)
    assert (report.split, report.metric, report.left_out) == ("valid", "ap", 0)
    assert report.value == pytest.approx(trained.evaluate("valid").metrics["ap"])
    by_name = {account.name: account for account in report.rules}
    assert set(by_name) == {"neighbours", "pen pals"}
    for account in report.rules:
        occurrence = account.occurrence
        assert occurrence is not None
        assert occurrence.ground_rules > 0
        assert occurrence.out is not None
        assert 0 < occurrence.out < 1
        assert account.effect is not None
        assert account.effect.effect > 0
    true, false = (by_name[name].occurrence for name in ("neighbours", "pen pals"))
    assert true is not None
    assert false is not None
    assert true.satisfied == 1.0
    assert false.satisfied is not None
    assert false.satisfied < 0.9
    assert any("known atoms" in note for note in report.notes) == (strategy == "backward")
    json.dumps(report.to_dict(), allow_nan=False)


def test_out_is_told_only_where_training_made_it_mean_something(tmp_path: Path) -> None:
    report = rule_report(trained_on(tmp_path / "p", "training.semantic_weight=0"))
    assert all(account.occurrence is not None and account.occurrence.out is None for account in report.rules)


def test_counted_rules(tmp_path: Path) -> None:
    report = rule_report(trained_on(tmp_path / "p", "model.rules=counted"))
    assert {account.kind for account in report.rules} == {"counted"}
    assert all(account.effect is not None and account.effect.without is not None for account in report.rules)


def test_a_split_may_be_chosen_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    trained = trained_on(tmp_path / "p")
    assert rule_report(trained, split="test").contexts_on == "test"
    with pytest.raises(ConfigError, match="no queries 'dev'") as error:
        rule_report(trained, split="dev")
    assert "valid, test" in str(error.value)


def test_without_validation_queries_contexts_are_sought_in_what_is_known(tmp_path: Path) -> None:
    report = rule_report(trained_on(tmp_path / "p", without=("valid",)))
    assert report.split == "test"
    assert report.contexts_on is not None
    assert "asked as if they were not known" in report.contexts_on


def test_without_any_queries_what_is_known_is_asked(tmp_path: Path) -> None:
    report = rule_report(trained_on(tmp_path / "p", without=("valid", "test")))
    assert report.metric == "ap"  # the facts of this problem are labelled
    assert any("there are no queries" in note for note in report.notes)
    assert all(account.effect is not None for account in report.rules)


def test_what_is_held_back_is_not_known_to_the_network(tmp_path: Path) -> None:
    trained = trained_on(tmp_path / "p")
    found = held_back(trained)
    assert found is not None
    rest = found.trained.knowledge.evidence.atoms
    assert len(np.intersect1d(rest, found.queries.atoms)) == 0
    assert len(rest) + len(found.queries) == len(trained.knowledge.evidence)


@pytest.mark.parametrize("changes", [("model.reasoner=none",), ("model.layers=0",)])
def test_a_network_that_reads_no_rules_says_so(changes: tuple[str, ...], tmp_path: Path) -> None:
    report = rule_report(trained_on(tmp_path / "p", *changes, "training.hiding=0.0"))
    assert "the network reads no rules" in report.notes[0]
    assert [account.effect for account in report.rules] == [None, None]


def test_a_theory_without_rules_says_so(tmp_path: Path) -> None:
    folder = write_false_rule_problem(tmp_path / "p", towns=24, epochs=1)
    theory = (folder / "theory.r2n").read_text().splitlines()
    (folder / "theory.r2n").write_text("".join(f"{line}\n" for line in theory if not line.startswith("rule")))
    report = rule_report(Model.from_run(prepare_run(load_problem(folder), seed=0)))
    assert report.rules == ()
    assert report.notes == ("the theory has no rules",)


def test_a_theory_of_200_rules_is_bounded_and_says_so(tmp_path: Path) -> None:
    folder = write_false_rule_problem(tmp_path / "p", towns=12, epochs=0)
    more = "".join(f"rule more{i}: near(x, y) & liesIn(y, z) -> liesIn(x, z)\n" for i in range(198))
    (folder / "theory.r2n").write_text((folder / "theory.r2n").read_text() + more)
    problem = load_problem(folder)
    run = prepare_run(problem, problem.options.changed(["model.rule_network=shared", "model.dim=2"]), seed=0)
    phases: dict[str, int] = {}
    report = rule_report(Model.from_run(run), most=3, progress=lambda phase, done, total: phases.update({phase: total}))
    assert len(report.rules) == 3
    assert report.left_out == 197
    assert "of 200 rules, the 30 with the most ground rules were tried" in report.notes
    assert phases["which rules matter"] == 30
    assert phases["without a rule, and with it alone"] == 3
    effects = [account.effect.effect for account in report.rules if account.effect is not None]
    assert effects == sorted(effects, reverse=True)


def test_queries_that_are_all_true_are_ranked_and_that_is_said(tmp_path: Path) -> None:
    folder = write_false_rule_problem(tmp_path / "p", towns=24, epochs=1)
    rows = (folder / "valid.tsv").read_text().splitlines()
    (folder / "valid.tsv").write_text("".join(f"{row[:-2]}\n" for row in rows if row.endswith("\t1")))
    report = rule_report(Model.from_run(prepare_run(load_problem(folder), seed=0)))
    assert report.metric == "mrr"
    assert "have no label" in report.notes[0]


def test_an_implicit_rule_has_clauses_and_no_share_that_is_satisfied(tmp_path: Path) -> None:
    problem = load_problem(write_clause_problem(tmp_path / "p", 0, items=60, epochs=3))
    trained = Model.from_run(prepare_run(problem, seed=0))
    account = rule_report(trained).rules[0]
    assert account.kind == "implicit"
    assert account.occurrence is not None
    assert account.occurrence.satisfied is None
    assert account.occurrence.known > 0
    assert rule_report(trained, clauses=False, contexts=False).rules[0].clauses == ()


def clauses_trained(folder: Path, *changes: str) -> Model:
    problem = load_problem(write_clause_problem(folder, 0, items=40, epochs=3))
    run = prepare_run(problem, problem.options.changed(changes), seed=0)
    for _ in run.trainer:
        pass
    return Model.from_run(run)


def test_known_as_known_and_others_as_answered(tmp_path: Path) -> None:
    trained = clauses_trained(tmp_path / "p")
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
    trained = clauses_trained(tmp_path / "p")
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
    trained = clauses_trained(tmp_path / "p", "training.hiding=0.0", "model.evidence_input=off")
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

    best = f1(_telling(logits, true))
    assert all(best >= f1(value) - 1e-12 for value in logits)
    assert best >= f1(float("-inf")) - 1e-12
    assert _telling(logits, np.zeros(30, bool)) == float("inf")


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


def seed_1_trained(folder: Path, *changes: str, epochs: int = 2) -> Model:
    problem = load_problem(write_false_rule_problem(folder, towns=24, epochs=epochs))
    run = prepare_run(problem, problem.options.changed(changes), seed=1)
    for _ in run.trainer:
        pass
    return Model.from_run(run)


@pytest.mark.parametrize("kind", STRATEGIES)
def test_without_a_rule_as_a_theory_that_never_had_it(kind: str, tmp_path: Path) -> None:
    trained = seed_1_trained(tmp_path / "p", *STRATEGIES[kind])
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
    trained = seed_1_trained(tmp_path / "p")
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
    switches = RuleSwitches(trained := seed_1_trained(tmp_path / "p"), "valid", trained.problem.valid)
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


THEORY = parse_theory(
    "domain d\ndomain e = {a, b}\npredicate p(d)\npredicate q(d, e) closed\n"
    "rule r [2.0]: p(x) -> q(x, y)\nrule s: q(x, y) -> p(x)\nimplicit i: [p(x), q(x, y)]"
)
CLAUSE = parse_theory("domain d\ndomain e\npredicate p(d)\npredicate q(d, e)\nrule i: !p(x) -> q(x, y)").rules[0]


def effect(metric: float | None, without: float | None, gain: float = 0.0) -> RuleEffect:
    return RuleEffect(1.0, gain, 3, metric, without, 0.2)


def report(*accounts: RuleAccount) -> RuleReport:
    return RuleReport("toy", "valid", 9, "ap", 0.9, 0.1, accounts)


def test_a_rule_helps_where_the_metric_falls_without_it_else_where_truth_is_more_probable() -> None:
    rule = THEORY.rules[0]
    assert helps(RuleAccount(rule, "explicit", effect=effect(0.9, 0.8, -1.0)))
    assert not helps(RuleAccount(rule, "explicit", effect=effect(0.8, 0.9, 1.0)))
    assert helps(RuleAccount(rule, "explicit", effect=effect(0.9, 0.9, 0.1)))
    assert not helps(RuleAccount(rule, "explicit", effect=effect(0.9, 0.9)))
    assert helps(RuleAccount(rule, "explicit", effect=effect(None, None, 0.1)))
    assert not helps(RuleAccount(rule, "explicit"))


def test_the_text_is_the_theory_with_other_rules() -> None:
    r, s, i = THEORY.rules
    clauses = (LearnedClause(CLAUSE, 9, 0.95, 5, 0.8, 0.1), LearnedClause(CLAUSE, 9, 0.91234, 0, None, 0.1))
    told = report(
        RuleAccount(r, "explicit", effect=effect(0.9, 0.5)),
        RuleAccount(s, "counted", effect=effect(0.9, 0.95)),
        RuleAccount(i, "implicit", effect=effect(0.9, 0.5), clauses=clauses),
    )
    whole, text = report_theory(told, THEORY)
    assert parse_theory(text) == whole
    assert (whole.domains, whole.predicates) == (THEORY.domains, THEORY.predicates)
    assert [(rule.name, rule.weight) for rule in whole.rules] == [("r", 2.0), ("i_1", 0.8), ("i_2", 0.9123)]
    assert "# ap 0.9000, without it 0.5000\nrule r [2.0]" in text
    assert "# learned by 'i': support 9, confidence 0.800 of 5 known, fidelity 0.950" in text


def test_names_that_are_taken_are_not_taken_twice() -> None:
    theory = parse_theory(
        "domain d, e\npredicate p(d)\npredicate q(d, e)\nrule i_1: p(x) -> q(x, y)\nimplicit i: [p(x), q(x, y)]"
    )
    told = report(RuleAccount(theory.rules[1], "implicit", clauses=(LearnedClause(CLAUSE, 9, 1.0, 0, None, 0.1),)))
    assert [rule.name for rule in report_theory(told, theory)[0].rules] == ["i_1_"]


def test_nothing_to_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to export"):
        report_theory(report(RuleAccount(THEORY.rules[0], "explicit", effect=effect(0.8, 0.9))), THEORY)
    helped = report(RuleAccount(THEORY.rules[0], "explicit", effect=effect(0.9, 0.8)))
    assert export_theory(helped, THEORY, tmp_path / "out.r2n").startswith("1 rule in")
    assert r2n.parse_theory((tmp_path / "out.r2n").read_text()).rules[0].name == "r"
    with pytest.raises(ConfigError, match="cannot be written"):
        export_theory(helped, THEORY, tmp_path / "nowhere" / "out.r2n")
