"""What is not grounded because nothing that is asked depends on it; domains and strategies that nobody declared."""

from itertools import pairwise
from pathlib import Path

import pytest

from r2n.data.atom_text import facts_from_texts
from r2n.data.knowledge_base import KnowledgeBase
from r2n.data.problem import Problem, load_problem
from r2n.errors import DataError, TheoryError
from r2n.grounding.store import Store
from r2n.grounding.strategies import (
    MOST_OF_BELIEFS,
    chosen_strategy,
    expected_total,
    ground_rules_left_out,
    make_grounder,
)
from r2n.logic.parser import parse_theory
from r2n.model.choices import choose_options
from r2n.model.preflight import preflight_warnings
from r2n.model.run import prepare_run
from r2n.options import GroundingOptions, Options
from tests.mln_problem import CLOSED_CLAUSES, DECLARATIONS, UNTYPED, university

RULES = """
0.9	lives(X,Y) <= works(X,A), located(A,Y)
0.4	works(X,A) <= knows(X,Z), works(Z,A)
"""
FACTS = "head\trelation\ttail\nann\tworks\tacme\nacme\tlocated\trome\nann\tknows\tbob\nbob\tlives\tparis\n"
CHAIN = [*(("p", f"a{i}", f"a{i + 1}") for i in range(30)), ("q", "a1", "red")]
KNOWN_BODY = ["grounding.strategy=known-body", "model.dim=4", "model.layers=1", "training.threads=1"]


@pytest.fixture(scope="module")
def typed() -> Problem:
    return university()


def collated(problem: Problem, *changes: str) -> int:
    options = choose_options(problem, problem.options.changed([*KNOWN_BODY, *changes]))[0]
    return prepare_run(problem, options).trainer.batches.ground_rules


def test_clauses_of_closed_atoms_alone_are_not_grounded(typed: Problem) -> None:
    every = Store(typed.knowledge, asks_closed=True)
    total = expected_total(every, typed.knowledge.theory.rules, "known-body")
    assert (total.count, total.exact) == (53_177, True)
    assert collated(typed) == 4_837
    assert collated(typed, "training.ask_closed=true") == total.count  # then closed atoms are asked
    assert collated(typed, "training.regularisation=product") == total.count


@pytest.mark.parametrize("strategy", ["full", "known-body", "backward"])
def test_how_many_are_left_out_is_said(typed: Problem, strategy: str) -> None:
    store = Store(typed.knowledge)
    sentence = ground_rules_left_out(store, strategy)
    assert sentence is not None
    assert f"{CLOSED_CLAUSES.count('rule ')} rules (either, in_phase" in sentence
    assert sentence.startswith("48,340 ground rules of ")
    options = typed.options.changed([f"grounding.strategy={strategy}"])
    warnings = preflight_warnings(typed, options)
    assert sentence in warnings
    assert not any("no ground rule" in warning and "either" in warning for warning in warnings if warning != sentence)
    assert ground_rules_left_out(Store(typed.knowledge, asks_closed=True), strategy) is None


def test_ground_rules_beyond_the_layers_are_not_trained_on() -> None:
    """Of a long chain with one labelled link, one layer reads what this link is in."""
    names = [f"n{i}" for i in range(200)]
    theory = "domain n\npredicate next(n, n) closed\npredicate near(n, n)\n"
    theory += "rule step: next(x, y) & near(y, z) -> near(x, z)\nrule start: next(x, y) -> near(x, y)"
    facts = {"next": list(pairwise(names)), "near": [("n0", "n1")]}
    problem = Problem.from_facts([(name, *pair) for name, pairs in facts.items() for pair in pairs], theory)
    options = problem.options.changed(["model.layers=1", "training.corrupted_positions=[]", "grounding.strategy=full"])
    run = prepare_run(problem, options)
    graph = run.source.full_graph
    assert graph is not None
    assert run.trainer.batches.ground_rules < 10 < 200 < len(graph)


def test_untyped_clauses_have_the_domains_that_their_constants_show() -> None:
    problem = university(theory=UNTYPED)
    domains = {predicate.name: predicate.domains for predicate in problem.knowledge.theory.predicates}
    people, terms = domains["student"][0], domains["ta"][2]
    assert domains["advisedBy"] == (people, people)
    assert domains["taughtBy"] == domains["ta"] == (domains["ta"][0], people, terms)
    assert [len(problem.knowledge.language.members(domain)) for domain in (people, terms)] == [120, 6]
    assert any("advisedBy_1 (120 constants; 1 of advisedBy, 2 of advisedBy" in note for note in problem.report.notes)
    store = Store(problem.knowledge)
    assert len(make_grounder(GroundingOptions(strategy="known-body")).ground(store)) == 53_177


def test_listed_domains_are_those_of_the_positions_that_share_their_constants() -> None:
    people = [*(f"s{i}" for i in range(90)), *(f"p{i}" for i in range(30))]
    problem = university(
        theory=UNTYPED, domains={"person": [*people, "nobody"], "phase": [f"phase{i}" for i in range(9)]}
    )
    domains = {predicate.name: predicate.domains for predicate in problem.knowledge.theory.predicates}
    assert [domain.name for domain in domains["inPhase"]] == ["person", "phase"]
    assert [domain.name for domain in domains["publication"]] == ["publication_1", "person"]
    assert len(problem.knowledge.language.members(domains["inPhase"][1])) == 9
    with pytest.raises(TheoryError, match="domains 'person' and 'staff' meet in positions"):
        university(theory=UNTYPED, domains={"person": people, "staff": ["p1"]})


def test_domains_of_a_problem_file_work_beside_horn_rules(tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("1\t1\t" + "\n1\t1\t".join(RULES.strip().splitlines()))
    (tmp_path / "facts.tsv").write_text(FACTS)
    problem = 'theory = "rules.txt"\n[facts]\ntrain = "facts.tsv"\n'
    (tmp_path / "problem.toml").write_text(problem + '[domains]\ncity = ["rome", "paris", "oslo"]\n')
    language = load_problem(tmp_path).knowledge.language
    assert [domain.name for domain in language.predicate("lives").domains] == ["knows_1", "city"]
    assert [domain.name for domain in language.predicate("located").domains] == ["located_1", "city"]
    assert len(language.members(language.predicate("lives").domains[1])) == 3
    (tmp_path / "problem.toml").write_text(problem + '[domains]\ncity = ["rome", "oslo"]\n')
    with pytest.raises(DataError, match="constant 'paris' is outside domain 'city'"):
        load_problem(tmp_path)


@pytest.mark.parametrize(
    ("facts", "rules", "domains"),
    [
        ([("likes", "ann", "tea"), ("knows", "ann", "bob")], "", {"constant"}),
        ([("likes", "ann", "tea")], "rule r: likes(x, y) -> wants(x, y)", {"likes_1", "likes_2"}),
        ([("likes", "ann", "tea")], "rule r: likes(x, y) -> likes(y, x)", {"constant"}),
        ([("likes", "ann", "tea")], 'rule r: likes(x, tea) -> likes(x, "ann")', {"constant"}),
        ([("likes", "ann", "tea")], "implicit all: *(x, y)", {"constant"}),
        (CHAIN, "rule r: p(x, y) -> p(y, x)", {"constant"}),  # and one of another kind
        ([], "rule r: likes(x, y) -> wants(x, y)", {"constant"}),
    ],
)  # fmt: skip
def test_one_kind_of_constants_is_one_domain(facts: list[tuple[str, ...]], rules: str, domains: set[str]) -> None:
    texts = [f"{name}({', '.join(rest)})" for name, *rest in facts]
    knowledge = KnowledgeBase.build(parse_theory(rules), facts_from_texts(texts))
    assert {domain.name for domain in knowledge.theory.domains} == domains


def strategy_of(problem: Problem, **options: object) -> tuple[str, str]:
    queries = problem.valid.atoms
    return chosen_strategy(Store(problem.knowledge), queries, GroundingOptions(**options), 1_350)  # type: ignore


def test_the_strategy_is_chosen_by_estimate(typed: Problem) -> None:
    strategy, reason = strategy_of(typed)
    assert strategy == "backward"
    assert reason.startswith("full grounding has 1,742,518 ground rules, known-body 4,837, which conclude")
    few = university(theory="rule joint: publication(t, x) & publication(t, y) -> advisedBy(x, y)")
    assert strategy_of(few)[0] == "known-body"  # advisedBy is in no body
    none = university(theory=f"{DECLARATIONS}\nrule advised: advisedBy(x, y) -> student(x)")
    assert strategy_of(none) == ("full", "full grounding has 14,400 ground rules")


def test_beliefs_of_features_are_passed_on_by_full_grounding() -> None:
    people = [f"p{i}" for i in range(150)]
    facts = [("friends", people[i], people[i + 1]) for i in range(149)]
    theory = """domain person
        predicate friends(person, person)
        predicate smokes(person)
        rule alike: friends(x, y) & smokes(x) -> smokes(y)"""
    problem = Problem.from_facts([*facts, ("smokes", "p0")], theory=theory, queries={"valid": ["smokes(p1)"]})
    store, options = Store(problem.knowledge), GroundingOptions()
    chosen = [chosen_strategy(store, problem.valid.atoms, options, 150, believes=b) for b in (False, True)]
    assert [strategy for strategy, _ in chosen] == ["known-body", "full"]
    assert expected_total(store, problem.knowledge.theory.rules, "full").count <= MOST_OF_BELIEFS


def test_a_strategy_that_is_set_stays(typed: Problem) -> None:
    def keys(options: Options) -> list[str]:
        return [choice.key for choice in choose_options(typed, options)[1]]

    layered = typed.options.changed(["model.input=complex"])  # else the regression counts the ground rules
    assert "grounding.strategy" in keys(layered)
    assert "grounding.strategy" not in keys(layered.changed(["grounding.strategy=full"]))
    assert "grounding.strategy" not in keys(layered.changed(["model.reasoner=none"]))
