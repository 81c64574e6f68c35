"""Backward grounding: by hand, what each of many queries finds alone, the steps of a search and rounds of proof."""

import numpy as np
import pytest

from r2n.errors import GroundingError, R2NError
from r2n.grounding import backward
from r2n.grounding.backward import BackwardGrounder, Search
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from tests.oracles import grounding as oracle
from tests.oracles.grounding import GroundAtom, World, members_of
from tests.strategies import codes_of, knowledge_of
from tests.unit.grounding.small_knowledge import codes, knowledge, named

DECLARED = "domain d = {a, b, c}\npredicate p(d)\npredicate q(d)\npredicate r(d)\npredicate e(d, d)\n"


def atoms(text: str) -> list[GroundAtom]:
    """`p(a) e(a,b)` as names."""
    return [(atom[: atom.index("(")], *atom[atom.index("(") + 1 : -1].split(",")) for atom in text.split()]


def ground(rules: str, facts: str, asked: str, width: int, depth: int) -> list[list[str]]:
    """The ground rules of all rules as text; what plain loops find is asserted to be the same."""
    theory = parse_theory(DECLARED + rules)
    world = World(theory, members_of(theory.domains, {}), frozenset(atoms(facts)))
    known = knowledge_of(world)
    queries = codes_of(known.base, known.language, atoms(asked))
    grounding = BackwardGrounder(width, depth).ground(Store(known), queries)
    found = [[known.base.names(row) for row in part.atoms] for part in grounding.ground_rules]
    expected = oracle.rows(world, oracle.backward(world, atoms(asked), width, depth))
    assert found == [[[f"{p}({', '.join(c)})" for p, *c in row] for row in per_rule] for per_rule in expected]
    return [row for per_rule in found for row in per_rule]


QR, QS = "rule r: p(x) -> q(x)\n", "rule s: q(x) -> r(x)\n"
TRANSITIVE = "rule t: e(x, y) & e(y, z) -> e(x, z)\n"
NEGATED = f"{QR}rule s: p(x) & !q(x) -> r(x)\n"


@pytest.mark.parametrize(
    ("rules", "facts", "asked", "options", "expected"),
    [
        pytest.param(QR + QS, "p(a)", "r(a)", (1, 1), [], id="an unknown atom is asked in the next step"),
        pytest.param(QR + QS, "p(a)", "r(a)", (1, 2), ["p(a) q(a)", "q(a) r(a)"], id="and proved there"),
        pytest.param(QR + QS, "p(b)", "r(a)", (1, 2), [], id="what is not proved is pruned"),
        pytest.param(TRANSITIVE, "e(a,b) e(b,b)", "e(a,b)", (0, 1), ["e(a,b) e(b,b) e(a,b)"], id="the query as anchor"),
        pytest.param("implicit i: [p(x), q(y)]", "", "q(b)", (0, 1), [f"p({x}) q(b)" for x in "abc"], id="implicit"),
        pytest.param(NEGATED, "p(a)", "r(a) q(a)", (2, 2), ["p(a) q(a)"], id="a proof of a negative proves nothing"),
    ],
)
def test_by_hand(rules: str, facts: str, asked: str, options: tuple[int, int], expected: list[str]) -> None:
    found = [" ".join(atom.replace(", ", ",") for atom in row) for row in ground(rules, facts, asked, *options)]
    assert found == expected


def test_proofs_take_as_many_rounds_as_there_are_steps() -> None:
    rules, asked = f"{QR}{QS}rule t: r(x) -> e(x, x)", "q(a) r(a) e(a,a)"
    assert ground(rules, "p(a)", asked, width=1, depth=1) == [["p(a)", "q(a)"]]
    assert len(ground(rules, "p(a)", asked, width=1, depth=2)) == 3


def test_without_queries_there_is_nothing_to_ground_around() -> None:
    theory = parse_theory(DECLARED + "rule r: p(x) -> q(x)")
    known = knowledge_of(World(theory, members_of(theory.domains, {}), frozenset()))
    with pytest.raises(R2NError, match="quer"):
        BackwardGrounder().ground(Store(known))


def test_what_the_first_step_concludes_may_be_reached_however_many_are_asked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theory = parse_theory(DECLARED + "rule s: e(x, y) & p(x) -> q(y)\nrule t: e(x, y) & e(y, z) -> e(x, z)")
    known = knowledge_of(World(theory, members_of(theory.domains, {}), frozenset(atoms("e(a,b) e(b,c) p(a)"))))
    everything = np.arange(known.base.size)
    grounder = BackwardGrounder(0, 1)
    found = grounder.may_reach(Store(known), everything)
    assert set(known.base.names(everything[found])) == {"q(b)", "e(a, c)"}
    monkeypatch.setattr(backward, "QUERIES_AT_ONCE", 4)
    assert grounder.may_reach(Store(known), everything).tolist() == found.tolist()
    assert grounder.may_reach(Store(known), everything[:0]).tolist() == []


def test_where_even_a_few_queries_have_too_many_ground_rules_all_may_be_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theory = parse_theory(DECLARED + "rule s: e(x, y) & e(z, y) -> q(y)")
    facts = atoms("e(a,b) e(b,b) e(c,b) e(a,c)")
    known = knowledge_of(World(theory, members_of(theory.domains, {}), frozenset(facts)))
    queries = codes_of(known.base, known.language, atoms("q(a) q(b) q(c)"))
    monkeypatch.setattr(backward, "FEW_QUERIES", 1)
    narrow = BackwardGrounder(0, 1, max_groundings=5)
    assert narrow.may_reach(Store(known), queries).tolist() == [False, True, True]
    monkeypatch.setattr(backward, "FEW_QUERIES", 3)
    assert narrow.may_reach(Store(known), queries).tolist() == [True, True, True]


def test_which_rules_a_search_meets() -> None:
    """Also one whose ground rules are not proved; not one that concludes nothing that is asked."""
    theory = parse_theory(DECLARED + "rule one: p(x) -> q(x)\nrule two: q(x) -> r(x)\nrule three: e(x, y) -> p(x)\n")
    known = knowledge_of(World(theory, members_of(theory.domains, {}), frozenset(atoms("p(a)"))))
    store = Store(known)

    def met(asked: str, grounder: BackwardGrounder) -> list[bool]:
        return grounder.rules_met(store, codes_of(known.base, known.language, atoms(asked))).tolist()

    assert met("q(a) q(a)", BackwardGrounder(0, 1)) == [True, False, False]
    assert met("r(a)", BackwardGrounder(1, 2)) == [True, True, False]
    assert met("r(b)", BackwardGrounder(1, 2)) == [False, True, False]
    assert met("e(a,b)", BackwardGrounder(1, 2)) == [False, False, False]


FOUR = """\
domain d = {a, b}
predicate p(d)
predicate q(d)
predicate r(d)
predicate s(d)
"""
STEPS = "rule one: p(x) -> q(x)\nrule two: q(x) -> r(x)\nrule three: r(x) -> s(x)\n"


def own(grounder: BackwardGrounder, rules: str, facts: str, *queries: str, false: str = "") -> dict[str, list[str]]:
    """The ground rules of each query, as text."""
    kb = knowledge(rules, facts, false, theory=FOUR)
    asked = codes(kb, *queries)
    found = grounder.neighbourhoods(Store(kb), asked)
    texts = named(kb, found.grounding)
    result: dict[str, list[str]] = {name: [] for name in kb.base.names(asked)}
    for rows, pairs in zip(texts, found.members, strict=True):
        for query, row in pairs.tolist():
            result[kb.base.names(asked)[query]].append(rows[row])
    return result


def test_an_atom_that_is_a_query_itself_is_not_explored_deeper_for_others() -> None:
    found = own(BackwardGrounder(1, 2), STEPS, "p(a)", "r(a)", "s(a)")
    assert found == {"r(a)": ["p(a) q(a)", "q(a) r(a)"], "s(a)": []}, "together both of s(a)'s steps are proved"


def test_a_ground_rule_with_two_heads_is_found_by_each_and_counted_once() -> None:
    found = own(BackwardGrounder(0, 1), "rule either: p(x) -> q(x) | r(x)\n", "p(a) p(b)", "q(a)", "r(a)", "r(b)")
    assert found == {"q(a)": ["p(a) q(a) r(a)"], "r(a)": ["p(a) q(a) r(a)"], "r(b)": ["p(b) q(b) r(b)"]}


@pytest.mark.parametrize("rules", ["", STEPS])
def test_no_query_and_no_rule_are_legal(rules: str) -> None:
    kb = knowledge(rules, theory=FOUR)
    for asked in (np.zeros(0, np.int64), codes(kb, "p(a)")):
        found = BackwardGrounder().neighbourhoods(Store(kb), asked)
        assert len(found.grounding) == 0
        assert [pairs.shape for pairs in found.members] == [(0, 2)] * len(kb.theory.rules)


def test_pairs_keep_the_budget_too() -> None:
    rules = 'rule all: p(x) -> q("a") | q("b") | r(x)\n'
    kb = knowledge(rules, "p(a) p(b)", theory=FOUR)
    asked = codes(kb, "q(a)", "q(b)")
    for limit in (4, 3):
        grounder = BackwardGrounder(0, 1, max_groundings=limit)
        assert len(grounder.ground(Store(kb), asked)) == 2
        if limit == 4:
            assert len(grounder.neighbourhoods(Store(kb), asked).members[0]) == 4
        else:
            with pytest.raises(GroundingError, match="rule 'all' has about 4 groundings, more than max_groundings = 3"):
                grounder.neighbourhoods(Store(kb), asked)


CHAIN = "rule r: smokes(x) & knows(x, y) -> smokes(y)\n"
KB = knowledge(CHAIN, "knows(ann,bob) knows(bob,cy) knows(cy,ann)")


def test_a_search_ends_when_nothing_new_is_met() -> None:
    found: list[int] = []
    for depth, steps in ((2, 2), (10, 3), (1_000_000, 3)):
        search = Search(Store(KB), 100)
        found.clear()
        search.run(codes(KB, "smokes(cy)"), [1] * depth, lambda _, done, __: found.append(done))
        assert len(found) == steps
    knowledge_base = BackwardGrounder(1, 1_000_000).neighbourhoods(Store(KB), codes(KB, "smokes(cy)"))
    assert len(knowledge_base.grounding) == 0, "nothing is proved"
