"""What is reported of rules: how often they hold, and the clauses that implicit ones have learned."""

import json
from random import Random

import numpy as np
import pytest

import r2n
from r2n.explanation.rules import (
    LEAST_AGREEMENT,
    LEAST_FIDELITY,
    LearnedClause,
    Occurrence,
    RuleAccount,
    RuleEffect,
    RuleReport,
    Truths,
    _Table,
    canonical,
    clause_rule,
    counted_occurrences,
    learned_clauses,
    occurrences,
)
from r2n.grounding.counting import RuleCounts, is_counted
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.logic.theory import Theory
from r2n.network.factor_graph import known_truths
from r2n.network.graph_sources import GroundedOnDemand
from tests.model_strategies import make_small_world
from tests.one_way import STRATEGIES
from tests.oracles import rules as oracle
from tests.strategies import knowledge_of

RULE = parse_theory("domain d\npredicate p(d)\npredicate q(d)\nrule one [0.5]: p(x) -> q(x)").rules[0]
KEYS = ("name", "text", "ground_rules", "satisfied", "out", "effect", "metric", "without", "alone")


def test_the_document_has_the_keys_that_others_rely_on() -> None:
    effect, clause = RuleEffect(0.5, 0.1, 4, 0.9, 0.8, float("nan")), LearnedClause(RULE, 4, 1.0, 0, None, 0.2)
    account = RuleAccount(RULE, "explicit", Occurrence(7, 3, 1.0, 0.9), effect, (clause,))
    report = RuleReport("toy", "valid", 10, "ap", 0.9, 0.3, (account,), left_out=2, notes=("look",))
    document = json.loads(json.dumps(report.to_dict()))
    assert (document["metric"], document["split"], document["left_out"]) == ("ap", "valid", 2)
    rule, text = document["rules"][0], "rule one [0.5]: p(x) -> q(x)"
    values = ("one", text, 7, 1.0, 0.9, 0.5, 0.9, 0.8, None)  # NaN is no JSON
    assert {key: rule[key] for key in KEYS} == dict(zip(KEYS, values, strict=True))
    assert rule["clauses"][0]["clause"] == "p(x) -> q(x)"
    bare = RuleAccount(RULE, "explicit").to_dict()
    assert all(bare[key] is None for key in KEYS[2:])
    assert bare["clauses"] == []
    assert clause.counts == "support 4, confidence nothing known, fidelity 1.000"
    assert "confidence 0.750 of 4 known" in LearnedClause(RULE, 1200, 1.0, 4, 0.75, 0.2).counts


SEEDS = range(8)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_as_plain_loops_count(strategy: str, seed: int) -> None:
    knowledge = knowledge_of(make_small_world(Random(seed)))
    source = GroundedOnDemand.from_knowledge(knowledge, STRATEGIES[strategy].grounder)
    graph = source.around(np.arange(knowledge.base.size))
    truths = known_truths(knowledge.base, graph.atoms.numpy(), knowledge.evidence)
    found = occurrences(graph, truths)
    for rule, rows in zip(graph.rules, graph.neighbours, strict=True):
        distinct = {tuple(graph.atoms[row].tolist()) for row in rows}
        expected = oracle.occurrence(rule, distinct, knowledge)
        assert (found[rule.name].ground_rules, found[rule.name].known) == expected[:2]
        assert found[rule.name].satisfied == pytest.approx(expected[2])


def test_out_is_a_mean_probability_and_none_where_there_is_nothing() -> None:
    knowledge = knowledge_of(make_small_world(Random(3)))
    graph = GroundedOnDemand.from_knowledge(knowledge, FullGrounder()).full_graph
    assert graph is not None
    truths = known_truths(knowledge.base, graph.atoms.numpy(), knowledge.evidence)
    outs = [np.zeros(len(part)) if j % 2 == 0 else None for j, part in enumerate(graph.neighbours)]
    found = occurrences(graph, truths, outs)
    for j, (rule, part) in enumerate(zip(graph.rules, graph.neighbours, strict=True)):
        assert found[rule.name].out == (0.5 if j % 2 == 0 and len(part) else None)


@pytest.mark.parametrize("seed", SEEDS)
def test_counted_rules_as_the_ground_rules_with_a_known_body(seed: int) -> None:
    knowledge = knowledge_of(make_small_world(Random(seed)))
    rules = tuple(rule for rule in knowledge.theory.rules if is_counted(rule))
    found = counted_occurrences(RuleCounts.from_store(Store(knowledge), rules), knowledge.evidence)
    grounding = KnownBodyGrounder().ground(Store(knowledge, asks_closed=True))
    for part in grounding.ground_rules:
        if is_counted(part.rule):
            head = part.rule.head_positions[0]
            truths = known_truths(knowledge.base, part.atoms[:, head], knowledge.evidence)
            assert found[part.rule.name].ground_rules == len(part)
            assert found[part.rule.name].known == int((truths >= 0).sum())
            expected = float((truths == 1).sum() / (truths >= 0).sum()) if (truths >= 0).any() else None
            assert found[part.rule.name].satisfied == expected


PLACES = parse_theory(
    """
    domain country, region
    domain place = country | region
    predicate in(place, place)
    predicate near(country, country)
    predicate big(place)
    implicit one: [in(x: country, y), near(x, z), in(z, y: region), big(y)], x != z
    """
)
ONE = PLACES.rules[0]


@pytest.mark.parametrize(
    ("body", "head", "text"),
    [
        ([(0, True), (1, True)], (2, True), "in(x, y: region) & near(x, z) -> in(z, y), x != z"),
        ([(0, True)], (3, True), "in(x: country, y: region) -> big(y)"),  # `x` alone would be any place
        ([(0, True)], (3, False), "in(x: country, y: region) -> !big(y)"),
    ],
)
def test_a_clause_keeps_the_domains_of_its_variables_and_their_guards(
    body: list[tuple[int, bool]], head: tuple[int, bool], text: str
) -> None:
    rule = clause_rule(ONE, body, head, PLACES)
    assert str(rule).partition(": ")[2] == text
    theory = r2n.Theory(PLACES.domains, PLACES.predicates, (rule,))
    assert parse_theory(str(theory)) == theory
    assert [domain.name for domain in theory.variable_domains(rule)][:2] == ["country", "region"]


def test_clauses_are_equal_up_to_the_names_of_variables() -> None:
    theory = parse_theory(
        "domain d\npredicate p(d, d)\npredicate q(d, d)\nimplicit i: [p(x, y), q(x, y), p(y, x), q(y, x)]"
    )
    rule = theory.rules[0]
    assert canonical(rule, [(0, False), (1, True)], theory) == canonical(rule, [(3, True), (2, False)], theory)
    assert canonical(rule, [(0, False), (1, True)], theory) != canonical(rule, [(0, False), (3, True)], theory)
    assert canonical(rule, [(0, False), (1, True)], theory) != canonical(rule, [(0, True), (1, False)], theory)
    theory = parse_theory("domain d, e\ndomain f = d | e\npredicate p(f)\nimplicit i: [p(x: d), p(y: e)]")
    assert canonical(theory.rules[0], [(0, True)], theory) != canonical(theory.rules[0], [(1, True)], theory)


THEORY = r2n.parse_theory(
    "domain item\n"
    + "".join(f"predicate {name}(item)\n" for name in "abcdeg")
    + "implicit related: [a(x), b(x), c(x), d(x), e(x), g(x)]\n"
)


def truths_of(believed: np.ndarray, known: np.ndarray | None = None, says: np.ndarray | None = None) -> Truths:
    known = believed.astype(np.int64) if known is None else known
    return Truths(known, believed, believed if says is None else says)


def planted(seed: int, rows: int = 300) -> np.ndarray:
    """a & b -> e, c & !d -> g, both now and then without a reason."""
    dice = np.random.default_rng(seed)
    a, b, c, d = dice.random((4, rows)) < 0.5
    chance = dice.random((2, rows)) < 0.05
    return np.stack([a, b, c, d, (a & b) | chance[0], (c & ~d) | chance[1]], axis=1)


def clauses(truths: Truths, theory: Theory = THEORY, most: int = 10) -> list[str]:
    return [str(clause) for clause in learned_clauses(theory.rules[0], truths, theory, most=most)]


@pytest.mark.parametrize("seed", range(5))
def test_the_clauses_that_made_the_data_come_first(seed: int) -> None:
    found = learned_clauses(THEORY.rules[0], truths_of(planted(seed)), THEORY)
    assert {str(clause) for clause in found[:2]} == {"a(x) & b(x) -> e(x)", "c(x) & !d(x) -> g(x)"}
    for clause in found:
        assert clause.support >= 5
        assert clause.fidelity >= LEAST_FIDELITY
        assert clause.confidence is None or clause.confidence >= LEAST_AGREEMENT
        assert clause.score > 0


def test_a_clause_is_listed_in_one_direction_and_without_needless_literals() -> None:
    """a -> b, b random otherwise; c is noise: not also !b -> !a, nor a & c -> b."""
    dice = np.random.default_rng(0)
    theory = r2n.parse_theory(
        "domain item\npredicate a(item)\npredicate b(item)\npredicate c(item)\nimplicit i: [a(x), b(x), c(x)]"
    )
    a, c = dice.random((2, 400)) < 0.5
    believed = np.stack([a, a | (dice.random(400) < 0.5), c], axis=1)
    assert clauses(truths_of(believed), theory) == ["a(x) -> b(x)"]


def test_noise_and_nothing_teach_nothing() -> None:
    dice = np.random.default_rng(2)
    assert clauses(truths_of(dice.random((500, 6)) < 0.5)) == []
    assert clauses(truths_of(np.zeros((0, 6), bool))) == []
    assert clauses(truths_of(np.ones((50, 6), bool))) == []
    alone = r2n.parse_theory("domain d\npredicate p(d)\nimplicit i: [p(x)]")
    assert clauses(truths_of(np.ones((9, 1), bool)), alone) == []


def test_what_the_network_does_not_say_or_labels_contradict_is_not_listed() -> None:
    believed = planted(3)
    unsaid = believed.copy()
    unsaid[:, 4] = False
    assert "a(x) & b(x) -> e(x)" not in clauses(truths_of(believed, says=unsaid))
    known = believed.astype(np.int64)
    wrong = np.flatnonzero(believed[:, 0] & believed[:, 1])[::2]
    known[wrong, 4] = 0
    assert "a(x) & b(x) -> e(x)" not in clauses(truths_of(believed, known=known))


def test_at_most_a_number_and_only_of_the_wanted_heads() -> None:
    believed = planted(4)
    assert len(clauses(truths_of(believed), most=1)) == 1
    assert _Table.from_truths(truths_of(believed), most=100).weights.sum() == 100
    found = learned_clauses(THEORY.rules[0], truths_of(believed), THEORY, targets=[5])
    assert found
    assert all("-> g(x)" in str(clause) or "-> !g(x)" in str(clause) for clause in found)


@pytest.mark.parametrize("seed", range(20))
def test_the_counts_are_those_of_plain_loops(seed: int) -> None:
    dice, random = np.random.default_rng(seed), Random(seed)
    rows, positions = random.randint(1, 40), random.randint(2, 5)
    known = dice.integers(-1, 2, (rows, positions))
    known[:, 0] = np.maximum(known[:, 0] * 2 - 1, -1) if seed % 2 else known[:, 0]  # a position without labels
    believed = np.where(known >= 0, known == 1, dice.random((rows, positions)) < 0.5)
    says = dice.random((rows, positions)) < 0.7
    table = _Table.from_truths(Truths(known, believed, says))
    head = (random.randrange(positions), random.random() < 0.5)
    others = [i for i in range(positions) if i != head[0]]
    body = tuple((i, random.random() < 0.5) for i in random.sample(others, random.randint(1, len(others))))
    found = table._counted(body, head)
    support, agreement, fidelity, judged, confidence = oracle.clause_counts(
        body, head, known.tolist(), believed.tolist(), says.tolist()
    )
    assert (found.support, found.known) == (support, judged)
    assert (found.agreement, found.fidelity) == pytest.approx((agreement, fidelity))
    assert found.confidence == (pytest.approx(confidence) if judged >= 5 else None)
