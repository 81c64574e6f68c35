"""Backward grounding by hand: BC_{w,d} in cases small enough to follow."""

import numpy as np
import pytest

from r2n.errors import R2NError
from r2n.grounding import backward
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from tests.oracles import grounding as oracle
from tests.oracles.grounding import GroundAtom, World, members_of
from tests.strategies import codes_of, knowledge_of

DECLARED = "domain d = {a, b, c}\npredicate p(d)\npredicate q(d)\npredicate r(d)\npredicate e(d, d)\n"


def atoms(text: str) -> list[GroundAtom]:
    """`p(a) e(a,b)` as names."""
    return [(atom[: atom.index("(")], *atom[atom.index("(") + 1 : -1].split(",")) for atom in text.split()]


def ground(
    rules: str, facts: str, asked: str, width: int, depth: int, last_width: int = 0, prune: bool = True
) -> list[list[str]]:
    """The ground rules of all rules as text; what plain loops find is asserted to be the same."""
    theory = parse_theory(DECLARED + rules)
    world = World(theory, members_of(theory.domains, {}), frozenset(atoms(facts)))
    known = knowledge_of(world)
    queries = codes_of(known.base, known.language, atoms(asked))
    grounding = BackwardGrounder(width, depth, last_width, prune).ground(Store(known), queries)
    found = [[known.base.names(row) for row in part.atoms] for part in grounding.ground_rules]
    expected = oracle.rows(world, oracle.backward(world, atoms(asked), width, depth, last_width, prune))
    assert found == [[[f"{p}({', '.join(c)})" for p, *c in row] for row in per_rule] for per_rule in expected]
    return [row for per_rule in found for row in per_rule]


def test_a_known_body_proves_the_query() -> None:
    assert ground("rule r: p(x) -> q(x)", "p(a) p(b)", "q(a) q(c)", width=0, depth=1) == [["p(a)", "q(a)"]]


def test_an_unknown_atom_is_asked_in_the_next_step_and_proved() -> None:
    rules = "rule r: p(x) -> q(x)\nrule s: q(x) -> r(x)"
    assert ground(rules, "p(a)", "r(a)", width=1, depth=1) == []
    assert ground(rules, "p(a)", "r(a)", width=1, depth=2) == [["p(a)", "q(a)"], ["q(a)", "r(a)"]]


def test_what_is_not_proved_is_pruned_unless_asked_to_stay() -> None:
    rules = "rule r: p(x) -> q(x)\nrule s: q(x) -> r(x)"
    assert ground(rules, "p(b)", "r(a)", width=1, depth=2) == []
    assert ground(rules, "p(b)", "r(a)", width=1, depth=2, prune=False) == [["q(a)", "r(a)"]]


def test_the_last_step_has_its_own_width() -> None:
    rules = "rule s: q(x) -> r(x)"
    assert ground(rules, "", "r(a)", width=1, depth=1, prune=False) == []
    assert ground(rules, "", "r(a)", width=0, depth=1, last_width=1, prune=False) == [["q(a)", "r(a)"]]


def test_the_query_does_not_prove_itself_beside_an_anchor() -> None:
    rules = "rule t: e(x, y) & e(y, z) -> e(x, z)"
    assert ground(rules, "e(a,a)", "e(a,b)", width=1, depth=1, last_width=1, prune=False) == []
    assert ground(rules, "e(a,c) e(c,b)", "e(a,b)", width=0, depth=1) == [["e(a, c)", "e(c, b)", "e(a, b)"]]


def test_an_anchor_may_be_the_query_itself() -> None:
    rules = "rule t: e(x, y) & e(y, z) -> e(x, z)"
    assert ground(rules, "e(a,b) e(b,b)", "e(a,b)", width=0, depth=1) == [["e(a, b)", "e(b, b)", "e(a, b)"]]


def test_a_query_matches_any_atom_of_the_consequent() -> None:
    rules = "rule d: p(x) -> q(x) | e(x, y)"
    assert ground(rules, "p(a)", "e(a,c)", width=0, depth=1) == [["p(a)", "q(a)", "e(a, c)"]]
    assert len(ground(rules, "p(a)", "q(a)", width=0, depth=1)) == 3


def test_constants_and_repeated_variables_are_respected() -> None:
    rules = 'rule c: p(x) -> e(x, "b")\nrule s: p(x) -> e(x, x)'
    assert ground(rules, "p(a)", "e(a,b) e(a,a) e(a,c)", width=0, depth=1) == [["p(a)", "e(a, b)"], ["p(a)", "e(a, a)"]]


def test_an_implicit_rule_is_found_by_each_of_its_atoms() -> None:
    assert ground("implicit i: [p(x), q(y)]", "", "q(b)", width=0, depth=1) == [[f"p({x})", "q(b)"] for x in "abc"]


def test_an_unprovable_atom_beside_an_asked_one_does_not_stop_the_asking() -> None:
    """Step 4 comes before step 5: q(a) is asked and answered, though r(a), which heads no rule, is never proved."""
    rules = "rule r: p(x) -> q(x)\nrule s: q(x) & r(x) -> e(x, x)"
    assert ground(rules, "p(a)", "e(a,a)", width=2, depth=2) == [["p(a)", "q(a)"]]


def test_an_unknown_denied_literal_beside_an_asked_one_does_not_stop_the_asking() -> None:
    rules = "rule r: p(x) -> q(x)\nrule s: q(x) & !r(x) -> e(x, x)"
    assert ground(rules, "p(a)", "e(a,a)", width=2, depth=2) == [["p(a)", "q(a)"]]


def test_a_denied_anchor_counts_as_unknown() -> None:
    rules = "rule s: p(x) & !p(x) -> q(y)"
    assert ground(rules, "p(a)", "q(b)", width=0, depth=1, prune=False) == []
    assert ground(rules, "p(a)", "q(b)", width=1, depth=1, last_width=1, prune=False) == [["p(a)", "q(b)"]]


def test_two_positions_that_are_one_atom_count_twice() -> None:
    rules = "rule s: e(x, y) & e(y, x) -> p(x)"
    assert ground(rules, "", "p(a)", width=0, depth=1, last_width=1, prune=False) == []


def test_denied_atoms_are_never_asked() -> None:
    rules = "rule r: p(x) -> q(x)\nrule s: p(x) & !q(x) -> r(x)"
    assert ground(rules, "p(a)", "r(a)", width=2, depth=2, prune=False) == [["p(a)", "q(a)", "r(a)"]]


def test_a_proof_of_a_denied_atom_proves_nothing() -> None:
    rules = "rule r: p(x) -> q(x)\nrule s: p(x) & !q(x) -> r(x)"
    assert ground(rules, "p(a)", "r(a) q(a)", width=2, depth=2) == [["p(a)", "q(a)"]]


def test_proofs_take_as_many_rounds_as_there_are_steps() -> None:
    rules = "rule r: p(x) -> q(x)\nrule s: q(x) -> r(x)\nrule t: r(x) -> e(x, x)"
    asked = "q(a) r(a) e(a,a)"
    once = ground(rules, "p(a)", asked, width=0, depth=1, last_width=1)
    assert once == [["p(a)", "q(a)"], ["q(a)", "r(a)"]]  # r(a) would be proved in the second round
    assert len(ground(rules, "p(a)", asked, width=1, depth=2)) == 3


def test_every_atom_of_the_consequent_is_proved() -> None:
    rules = "rule d: p(x) -> q(x) | r(x)\nrule t: r(x) -> e(x, x)"
    assert len(ground(rules, "p(a)", "e(a,a)", width=1, depth=2)) == 2


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
