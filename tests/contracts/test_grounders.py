"""What every grounder promises, whatever its strategy: one suite over the table of strategies."""

from collections.abc import Callable

import numpy as np
import pytest

from r2n.components import strategies
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.errors import GroundingError
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.cache import fingerprint
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Grounder, Grounding
from r2n.grounding.store import Store
from r2n.grounding.strategies import make_grounder
from r2n.logic.parser import parse_theory
from r2n.options import GroundingOptions
from tests.oracles.grounding import World, members_of
from tests.strategies import knowledge_of

GROUNDERS: dict[str, Callable[[int], Grounder]] = {
    "full": lambda limit: FullGrounder(max_groundings=limit),
    "known-body": lambda limit: KnownBodyGrounder(max_groundings=limit),
    "backward": lambda limit: BackwardGrounder(width=1, depth=2, max_groundings=limit),
}
THEORY = """
domain d = {a, b, c}
predicate p(d, d)
predicate q(d) closed
rule chain: p(x, y) & p(y, z) -> p(x, z)
rule marked: q(x) & p(x, y) -> p(y, x)
rule off_diagonal: p(x, y) & q(x) -> q(y), x != y
implicit pair: [p(x, y), p(y, x)]
"""
FACTS = [("p", "a", "b"), ("p", "b", "c"), ("q", "a")]


@pytest.fixture(params=GROUNDERS)
def make(request: pytest.FixtureRequest) -> Callable[[int], Grounder]:
    return GROUNDERS[request.param]


def knowledge(text: str = THEORY, facts: list[tuple[str, ...]] | None = None) -> KnowledgeBase:
    theory = parse_theory(text)
    known = FACTS if facts is None else facts
    return knowledge_of(World(theory, members_of(theory.domains, {}), frozenset(known)))


def everything(known: KnowledgeBase) -> np.ndarray:
    return np.arange(known.base.size, dtype=np.int64)


def rows(grounding: Grounding) -> list[list[list[int]]]:
    return [part.atoms.tolist() for part in grounding.ground_rules]


def test_the_table_of_strategies_is_the_one_tested_here() -> None:
    assert set(GROUNDERS) == set(strategies) - {"paths"}, "paths are grounded for queries, not for a theory"
    for name, grounder in GROUNDERS.items():
        assert type(make_grounder(GroundingOptions.model_validate({"strategy": name}))) is type(grounder(1))
        assert isinstance(grounder(1), Grounder)


def test_one_entry_per_rule_in_order_with_positions_as_columns(make: Callable[[int], Grounder]) -> None:
    known = knowledge()
    grounding = make(1000).ground(Store(known), everything(known))
    assert [part.rule for part in grounding.ground_rules] == list(known.theory.rules)
    for part in grounding.ground_rules:
        assert part.atoms.dtype == np.int64
        assert part.atoms.shape == (len(part), len(part.rule.atoms))
        assert part.seconds >= 0
        assert len(part) > 0


def test_rows_ascend_with_the_substitution_and_are_distinct(make: Callable[[int], Grounder]) -> None:
    known = knowledge()
    for part in make(1000).ground(Store(known), everything(known)).ground_rules:
        place = {name: position for position, name in enumerate(part.rule.variables)}
        found = np.full((len(part), len(place)), -1)
        for i, atom in enumerate(part.rule.atoms):
            _, arguments = known.base.decode(part.atoms[:, i])
            for k, term in enumerate(atom.terms):
                found[:, place[term.name]] = arguments[:, k]
        listed = [tuple(row) for row in found.tolist()]
        assert listed == sorted(set(listed))


def test_no_rule_no_fact_no_query_no_constant_is_legal(make: Callable[[int], Grounder]) -> None:
    none = np.zeros(0, dtype=np.int64)
    for text in ("", "domain d\npredicate p(d)", "domain d\npredicate p(d)\nrule r: p(x) -> p(y)"):
        grounding = make(1000).ground(Store(knowledge(text, [])), none)
        assert len(grounding) == 0
        assert grounding.atoms.tolist() == []
        assert all(part.atoms.shape == (0, len(part.rule.atoms)) for part in grounding.ground_rules)


def test_a_rule_without_variables_has_one_ground_rule(make: Callable[[int], Grounder]) -> None:
    known = knowledge('domain d = {a, b}\npredicate p(d)\nrule r: p("a") -> p("b")', [("p", "a")])
    grounding = make(1000).ground(Store(known), everything(known))
    assert [known.base.names(row) for part in grounding.ground_rules for row in part.atoms] == [["p(a)", "p(b)"]]


def test_rules_that_differ_only_in_types_guards_or_heads_are_grounded_apart(make: Callable[[int], Grounder]) -> None:
    text = (
        "domain d = {a}\ndomain e = {b}\ndomain u = d | e\npredicate p(u)\npredicate q(u)\npredicate r(u, u)\n"
        "rule any: p(x) -> q(x)\nrule typed: p(x: d) -> q(x)\nrule other: p(y: e) -> q(y)\n"
        'rule guarded: p(x) -> q(x), x != "a"\nrule wide: p(x) -> r(x, y)\nrule narrow: p(x) -> r(x, y: d)\n'
    )
    known = knowledge(text, [("p", "a"), ("p", "b")])
    grounding = make(1000).ground(Store(known), everything(known))
    assert [len(part) for part in grounding.ground_rules] == [2, 1, 1, 1, 4, 2]


def test_a_grounding_beyond_the_budget_names_rule_number_and_ways_out(make: Callable[[int], Grounder]) -> None:
    domain = ", ".join(f"c{i}" for i in range(30))
    text = f"domain d = {{{domain}}}\npredicate p(d, d)\nrule big: p(x, y) & p(y, z) -> p(x, z)"
    facts = [("p", f"c{i}", f"c{j}") for i in range(30) for j in range(30)]
    known = knowledge(text, facts)
    with pytest.raises(GroundingError) as caught:
        make(1000).ground(Store(known), everything(known))
    message = str(caught.value)
    assert "rule 'big'" in message
    assert "27,000" in message or "groundings" in message
    assert "1,000" in message
    assert "domain" in message
    assert "clos" in message
    assert 1000 < len(make(27_000_000).ground(Store(known), everything(known)).ground_rules[0]) <= 27_000


def test_exactly_the_budget_is_allowed_in_full() -> None:
    known = knowledge("domain d = {a, b, c}\npredicate p(d)\nrule r: p(x) & p(y) -> p(z)", [])
    assert len(FullGrounder(max_groundings=27).ground(Store(known))) == 27
    with pytest.raises(GroundingError, match="27"):
        FullGrounder(max_groundings=26).ground(Store(known))


def test_the_fingerprint_tells_everything_apart_that_changes_a_grounding(make: Callable[[int], Grounder]) -> None:
    known, asked = knowledge(), np.array([0, 1], dtype=np.int64)
    flipped = KnowledgeBase(known.theory, known.language, Evidence(known.evidence.atoms.copy(), ~known.evidence.truth))
    keys = [
        fingerprint(known, make(1000), asked),
        fingerprint(knowledge(facts=FACTS[:2]), make(1000), asked),
        fingerprint(flipped, make(1000), asked),
        fingerprint(knowledge(THEORY.replace("x != y", "y != x")), make(1000), asked),
        fingerprint(knowledge(THEORY.replace(" closed", "")), make(1000), asked),
        fingerprint(knowledge(THEORY.replace("{a, b, c}", "{a, b, c, e}")), make(1000), asked),
        fingerprint(known, make(1000), asked[:1]),
        fingerprint(known, BackwardGrounder(width=2, depth=3), asked),
        fingerprint(known, BackwardGrounder(width=2, depth=2), asked),
    ]
    assert len(set(keys)) == len(keys)
    assert fingerprint(knowledge(), make(1000), asked) == keys[0]
