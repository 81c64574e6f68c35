"""What each of many queries finds alone, by hand."""

import numpy as np
import pytest

import r2n
from r2n.errors import GroundingError
from tests.unit.grounding.small_knowledge import codes, knowledge, named

THEORY = """\
domain d = {a, b}
predicate p(d)
predicate q(d)
predicate r(d)
predicate s(d)
"""
CHAIN = "rule one: p(x) -> q(x)\nrule two: q(x) -> r(x)\nrule three: r(x) -> s(x)\n"


def own(grounder: r2n.BackwardGrounder, rules: str, facts: str, *queries: str, false: str = "") -> dict[str, list[str]]:
    """The ground rules of each query, as text."""
    kb = knowledge(rules, facts, false, theory=THEORY)
    asked = codes(kb, *queries)
    found = grounder.neighbourhoods(r2n.Store(kb), asked)
    texts = named(kb, found.grounding)
    result: dict[str, list[str]] = {name: [] for name in kb.base.names(asked)}
    for rows, pairs in zip(texts, found.members, strict=True):
        for query, row in pairs.tolist():
            result[kb.base.names(asked)[query]].append(rows[row])
    return result


def test_an_atom_that_is_a_query_itself_is_not_explored_deeper_for_others() -> None:
    found = own(r2n.BackwardGrounder(1, 2), CHAIN, "p(a)", "r(a)", "s(a)")
    assert found == {"r(a)": ["p(a) q(a)", "q(a) r(a)"], "s(a)": []}, "together both of s(a)'s steps are proved"


def test_the_last_step_has_its_own_width() -> None:
    narrow = own(r2n.BackwardGrounder(0, 2, last_width=1, prune=False), CHAIN, "", "r(a)")
    assert narrow == {"r(a)": []}
    wide = own(r2n.BackwardGrounder(1, 2, last_width=0, prune=False), CHAIN, "", "s(a)", "r(a)")
    assert wide == {"r(a)": ["q(a) r(a)"], "s(a)": ["r(a) s(a)"]}
    wider = own(r2n.BackwardGrounder(1, 2, last_width=2, prune=False), CHAIN, "", "s(a)", "r(a)")
    assert wider == {"r(a)": ["p(a) q(a)", "q(a) r(a)"], "s(a)": ["q(a) r(a)", "r(a) s(a)"]}


def test_a_ground_rule_with_two_heads_is_found_by_each_and_counted_once() -> None:
    found = own(r2n.BackwardGrounder(0, 1), "rule either: p(x) -> q(x) | r(x)\n", "p(a) p(b)", "q(a)", "r(a)", "r(b)")
    assert found == {"q(a)": ["p(a) q(a) r(a)"], "r(a)": ["p(a) q(a) r(a)"], "r(b)": ["p(b) q(b) r(b)"]}


def test_members_are_sorted_and_rows_are_shared() -> None:
    kb = knowledge("rule either: p(x) -> q(x) | r(x)\n", "p(a)", theory=THEORY)
    found = r2n.BackwardGrounder(0, 1).neighbourhoods(r2n.Store(kb), codes(kb, "q(a)", "r(a)"))
    assert len(found.grounding) == 1
    assert [pairs.tolist() for pairs in found.members] == [[[0, 0], [1, 0]]]


@pytest.mark.parametrize("rules", ["", CHAIN])
def test_nothing_is_legal(rules: str) -> None:
    kb = knowledge(rules, theory=THEORY)
    for asked in (np.zeros(0, np.int64), codes(kb, "p(a)")):
        found = r2n.BackwardGrounder().neighbourhoods(r2n.Store(kb), asked)
        assert len(found.grounding) == 0
        assert [pairs.shape for pairs in found.members] == [(0, 2)] * len(kb.theory.rules)


def test_pairs_keep_the_budget_too() -> None:
    rules = 'rule all: p(x) -> q("a") | q("b") | r(x)\n'
    kb = knowledge(rules, "p(a) p(b)", theory=THEORY)
    asked = codes(kb, "q(a)", "q(b)")
    for limit in (4, 3):
        grounder = r2n.BackwardGrounder(0, 1, max_groundings=limit)
        assert len(grounder.ground(r2n.Store(kb), asked)) == 2
        if limit == 4:
            assert len(grounder.neighbourhoods(r2n.Store(kb), asked).members[0]) == 4
        else:
            with pytest.raises(GroundingError, match="rule 'all' has about 4 groundings, more than max_groundings = 3"):
                grounder.neighbourhoods(r2n.Store(kb), asked)
