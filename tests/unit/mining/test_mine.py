"""Mining: counts are those of plain loops, planted rules are found; how rules are compared, cut and written."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import r2n
from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import ConfigError, DataError
from r2n.logic.language import Domain, Predicate
from r2n.mining import searches
from r2n.mining.mine import (
    Mining,
    MiningOptions,
    check_theory_path,
    mine_constraints,
    mine_rules,
    mined_theory,
    write_theory,
)
from r2n.mining.searches import Found, MinedRule, constant_rule, path_rule
from tests.examples import at_most
from tests.mining_problems import (
    THEORY,
    knowledge_bases,
    knowledge_of,
    noise_graph,
    planted_graph,
    random_knowledge,
)
from tests.oracles import mining as oracle

OWN = 'rule m0: u(x) -> p(x, x)\nrule c0: p(x, "a") -> !u(x)\n'
ALL = {"max_rules": 10**6, "min_support": 1, "min_confidence": 0.0}


def counts(mining: Mining) -> dict[str, tuple[int, int, int]]:
    """By the formula of the rule."""
    return {str(m.rule.formula): (m.support, m.body_pairs, m.pca_pairs) for m in mining.rules}


@at_most(10, because="the oracle tries every path of steps at every tuple of constants")
@given(knowledge_bases(), st.sampled_from([1, 2, 2]))
def test_counts_are_those_of_plain_loops(knowledge: KnowledgeBase, length: int) -> None:
    expected = {}
    for shorter in range(1, length + 1):
        expected |= oracle.path_rules(knowledge, shorter)
    assert counts(mine_rules(knowledge, MiningOptions(max_length=length, **ALL))) == expected


@pytest.mark.parametrize("seed", range(3))
def test_counts_of_three_atoms_are_those_of_plain_loops(seed: int) -> None:
    theory = "domain low = {a, b}\ndomain high = {c, d, e}\ndomain all = low | high\n"
    theory += "predicate p(all, all)\npredicate q(high, all)\n"
    knowledge = random_knowledge(seed, 0.4, theory)
    found = mine_rules(knowledge, MiningOptions(max_length=3, **ALL))
    of_three = {rule: part for rule, part in counts(found).items() if rule.count("&") == 2}
    assert of_three == oracle.path_rules(knowledge, 3)
    assert of_three


@at_most(6, because="the oracle tries every body with every constant")
@given(knowledge_bases())
def test_counts_with_constants_are_those_of_plain_loops(knowledge: KnowledgeBase) -> None:
    found = mine_rules(knowledge, MiningOptions(max_length=1, constants=True, **ALL))
    assert counts(found) == oracle.path_rules(knowledge, 1) | oracle.constant_rules(knowledge)


@pytest.mark.parametrize("seed", range(3))
def test_counts_of_longer_bodies_with_a_constant_are_those_of_plain_loops(seed: int) -> None:
    theory = "domain low = {a, b, c, d}\ndomain high = {d, e}\ndomain all = low | high\n"
    knowledge = random_knowledge(seed, 0.4, theory + "predicate p(all, all)\npredicate q(high, all)\n")
    found = mine_rules(knowledge, MiningOptions(max_length=1, constants=True, constant_length=2, **ALL))
    longer = {rule: part for rule, part in counts(found).items() if "&" in rule}
    assert longer == oracle.constant_rules(knowledge, 2)
    assert any(f'z, "{c}"' in rule and f'x, "{c}"' in rule for rule in longer for c in "abcde"), "c and d may be one"


def test_planted_rules_are_found_and_best_for_their_heads() -> None:
    best: dict[str, str] = {}
    for mined in mine_rules(planted_graph()).rules:
        head = str(mined.rule.formula).split(" -> ")[1][0]
        if mined.pca_confidence > 0.5:
            best.setdefault(head, str(mined.rule.formula))
    assert best["s"] == "b(y, x) -> s(x, y)"
    assert best["t"] == "c(x, z) & d(z, y) -> t(x, y)"
    assert best["v"] == "d(x, z) & e(y, z) -> v(x, y)"


def test_there_is_nothing_in_noise() -> None:
    found = mine_rules(noise_graph(), MiningOptions(max_length=2))
    assert not [mined for mined in found.rules if mined.support >= 10 and mined.pca_confidence >= 0.3]


def test_thresholds_hold() -> None:
    options = MiningOptions(max_length=2, max_rules=3, min_support=2, min_confidence=0.3)
    found = mine_rules(random_knowledge(0, 0.5), options).rules
    assert all(mined.support >= 2 and mined.confidence >= 0.3 for mined in found)
    of_head_and_length = [(mined.rule.atoms[-1].predicate, len(mined.rule.atoms)) for mined in found]
    assert max(map(of_head_and_length.count, of_head_and_length)) == 3


def test_queries_are_never_read() -> None:
    problem = r2n.load("kinship")
    assert len(problem.valid)
    bare = mine_rules(problem.knowledge, MiningOptions(max_length=1))
    facts = sum(len(problem.knowledge.facts(p)) for p in problem.knowledge.language.predicates)
    assert facts == len(problem.train)
    symmetric = next(m for m in bare.rules if str(m.rule.formula) == "term0(y, x) -> term0(x, y)")
    assert symmetric.body_pairs == len(problem.knowledge.facts(problem.knowledge.language.predicate("term0")))


PAIRS = np.array([[0, 1], [1, 2], [2, 0]])
P_TO_Q, Q_TO_P = "p(x, y) -> q(x, y), x != y", "q(x, y) -> p(x, y), x != y"


@pytest.mark.parametrize(
    ("closed", "own", "false", "expected"),
    [
        pytest.param("", "", "", [f"rule m0 [1.0]: {Q_TO_P}", f"rule m1 [1.0]: {P_TO_Q}"], id="true facts"),
        pytest.param("", "", "q", [], id="false facts support nothing"),
        pytest.param(" closed", "", "", [f"rule m0 [1.0]: {P_TO_Q}"], id="a closed predicate is no head, but a body"),
        pytest.param(
            "",
            "rule m0: p(x, y) -> p(y, x)\n",
            "",
            [f"rule m1 [1.0]: {Q_TO_P}", f"rule m2 [1.0]: {P_TO_Q}"],
            id="names of own rules are not taken again",
        ),
    ],
)
def test_rules_of_two_predicates(closed: str, own: str, false: str, expected: list[str]) -> None:
    theory = f"domain d = {{a, b, c}}\npredicate p(d, d){closed}\npredicate q(d, d)\n{own}"
    facts = {truth: {name: PAIRS for name in "pq" if (name in false) != truth} for truth in (True, False)}
    found = mine_rules(knowledge_of(theory, facts[True], facts[False]), MiningOptions(max_length=1))
    assert [str(mined.rule) for mined in found.rules] == expected


def test_rules_whose_variables_have_no_domain_are_left_out_and_counted() -> None:
    theory = """\
domain a = {k0}
domain b = {k1, k2, k3}
domain c = {k4}
domain ab = a | b
domain bc = b | c
predicate p(ab, ab)
predicate q(bc, bc)
"""
    facts = {"p": PAIRS + 1, "q": PAIRS + 1}
    found = mine_rules(knowledge_of(theory, facts), MiningOptions(max_length=1))
    assert (found.rules, found.unwritable) == ((), 2)


def test_paths_of_many_walks_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    knowledge = random_knowledge(1, 0.5)
    every = counts(mine_rules(knowledge, MiningOptions(**ALL)))
    monkeypatch.setattr(searches, "MOST_WALKS", 4)
    found = mine_rules(knowledge, MiningOptions(**ALL))
    assert found.left_out > 0
    assert counts(found).items() < every.items()
    assert {rule for rule in every if "&" not in rule} < set(counts(found)), "single steps are counted"


def test_time_that_is_over_is_said() -> None:
    found = mine_rules(planted_graph(), MiningOptions(seconds=1e-9))
    assert (found.rules, found.stopped) == ((), "bodies of length 1, after 0 of 16 parts of the search")


def test_progress_is_told() -> None:
    found: list[tuple[str, int, int]] = []
    mine_rules(random_knowledge(0, 0.5), MiningOptions(constants=True), lambda *step: found.append(step))
    assert {phase for phase, _, _ in found} == {"mine"}
    assert [done for _, done, _ in found] == sorted(done for _, done, _ in found)
    assert all(done <= total for _, done, total in found)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"max_length": 4}, "bodies of 4 atoms"),
        ({"max_length": 0}, "bodies of 0 atoms"),
        ({"max_rules": 0}, "max_rules is 0"),
        ({"constant_length": 3}, "bodies of 3 atoms with a constant at the end cannot be mined"),
        ({"min_support": 0}, "min_support is 0"),
        ({"min_confidence": 1.5}, "min_confidence is 1.5"),
        ({"seconds": 0.0}, "seconds is 0"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, float], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        MiningOptions(**options)  # pyright: ignore[reportArgumentType]


def test_a_problem_without_binary_predicates_is_refused() -> None:
    with pytest.raises(DataError, match="no binary predicate"):
        mine_rules(knowledge_of("domain d = {a}\npredicate p(d)\n", {"p": np.array([[0]])}))


def test_the_text_states_the_theory() -> None:
    knowledge = random_knowledge(0, 0.4, THEORY + OWN)
    rules = mine_rules(knowledge, MiningOptions(constants=True)).rules
    constraints = mine_constraints(knowledge, max_exceptions=0.5)
    assert rules
    assert constraints
    for fresh, own in ((False, 2), (True, 0)):
        theory, text = mined_theory(knowledge.theory, rules, constraints, fresh=fresh)
        assert r2n.parse_theory(text) == theory
        assert len(theory.rules) == own + len(rules) + len(constraints)
        assert text.count("# support") == len(rules)
        for mined in rules:
            assert f"# {mined}\n{mined.rule}\n" in text


def test_names_that_break_lines_stay_in_their_comment() -> None:
    name = "p\nq"
    theory = 'domain d = {a, b, c}\npredicate "p\\nq"(d, d)\n'
    knowledge = knowledge_of(theory, {name: np.array([[0, 1], [1, 2], [2, 0]])})
    full, text = mined_theory(knowledge.theory, (), mine_constraints(knowledge))
    assert r2n.parse_theory(text) == full
    assert len(full.rules) == 4


def test_a_file_is_written_whole_and_nothing_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "mined.r2n"
    write_theory(path, "domain d\n")
    write_theory(path, "domain é\n")
    assert path.read_text("utf-8") == "domain é\n"
    assert [file.name for file in tmp_path.iterdir()] == ["mined.r2n"]
    with pytest.raises(ConfigError, match="cannot be written"):
        write_theory(tmp_path / "nowhere" / "mined.r2n", "")


@pytest.mark.parametrize("name", ["mined.txt", "mined", "nowhere/mined.r2n"])
def test_a_file_that_cannot_be_is_refused_before_the_work(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        check_theory_path(tmp_path / name)


D = Domain("d")
PREDICATES = (Predicate("p", (D, D)), Predicate("q", (D, D)))


def found(predicates: list[int], support: list[int], pairs: list[int], bodies: list[int] | None = None) -> Found:
    number = len(predicates)
    head = np.array([[2 * p, -1] for p in predicates], np.int64).reshape(-1, 2)
    body = np.array([[b] for b in (bodies or range(number))], np.int64).reshape(-1, 1)
    counts = (np.array(given, np.int64) for given in (support, pairs, pairs))
    return Found(head, body, *counts)


def test_confidences_are_shares_of_pairs() -> None:
    rule = path_rule(PREDICATES, [0, -1], [2])
    mined = MinedRule(rule, 3, 12, 4)
    assert (mined.confidence, mined.pca_confidence) == (0.25, 0.75)
    assert str(mined) == "support 3 of 12 pairs, confidence 0.2500, PCA confidence 0.7500"


def test_a_few_hits_are_worth_less_than_many() -> None:
    best = found([0, 0, 0], [3, 80, 40], [3, 100, 200]).best(2)
    assert best.support.tolist() == [80, 3]


def test_each_head_has_its_best_and_equals_have_an_order() -> None:
    best = found([1, 0, 1, 0, 0], [5, 5, 5, 5, 4], [9, 9, 9, 9, 9], [4, 3, 2, 1, 0]).best(2)
    assert best.predicate.tolist() == [0, 0, 1, 1]
    assert best.body[:, 0].tolist() == [1, 3, 2, 4]
    assert len(found([], [], []).best(2)) == 0


def test_paths_are_written_over_distinct_variables() -> None:
    texts = [str(path_rule(PREDICATES, [2, -1], steps)) for steps in ([0], [1], [0, 3], [0, 2, 1])]
    assert texts == [
        "rule mined: p(x, y) -> q(x, y), x != y",
        "rule mined: p(y, x) -> q(x, y), x != y",
        "rule mined: p(x, z) & q(y, z) -> q(x, y), x != y, x != z, y != z",
        "rule mined: p(x, z) & q(z, w) & p(y, w) -> q(x, y), x != y, x != z, x != w, y != z, y != w, z != w",
    ]


def test_constants_are_written_with_guards_too() -> None:
    given = (([0, 1], [2, 0]), ([1, 1], [3, 1]), ([0, 1], [3, -1]))
    assert [str(constant_rule(PREDICATES, ("a", "b"), head, body)) for head, body in given] == [
        'rule mined: q(x, "a") -> p(x, "b"), x != "b", x != "a"',
        'rule mined: q("b", y) -> p("b", y), y != "b"',
        'rule mined: q(z, x) -> p(x, "b"), x != z, x != "b", z != "b"',
    ]
