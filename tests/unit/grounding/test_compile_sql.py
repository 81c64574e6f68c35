"""A rule as a query: its text, its answer and its estimate."""

import pytest

from r2n.grounding.compile_sql import TRUE, RuleQuery, Store
from r2n.grounding.known_body import known_body_query
from tests.unit.grounding.small_knowledge import knowledge

KB = knowledge("rule r: smokes(x) & knows(x, y) -> smokes(y)\n", "smokes(ann) smokes(bob) knows(ann,bob) knows(ann,cy)")


def test_variables_join_tables() -> None:
    query = known_body_query(Store(KB), KB.theory.rules[0])
    found = query.substitutions(["y", "x"], width=0, limit=10)
    names = KB.language.constants
    assert sorted((names[y], names[x]) for y, x in found.tolist()) == [("bob", "ann"), ("cy", "ann")]
    assert query.count() == 2
    assert len(query.substitutions(["x"], width=0, limit=1)) == 1


def test_the_estimate_comes_from_sizes_and_distinct_values() -> None:
    query = known_body_query(Store(KB), KB.theory.rules[0])
    assert query.estimate() == 4, "2 smokers times 2 pairs, over 1 distinct first constant"


def test_statistics_are_of_the_present_table() -> None:
    store = Store(KB)
    table = store.atoms_table(TRUE, "knows")
    assert (store.count(table), store.distinct(table, 0), store.distinct(table, 1)) == (2, 1, 2)
    store.load(table, KB.facts(KB.language.predicate("knows"))[:1])
    assert (store.count(table), store.distinct(table, 1)) == (1, 1)


def test_a_query_without_conditions_is_not_bound() -> None:
    assert not RuleQuery(Store(KB), KB.theory.rules[0]).is_bound


@pytest.mark.parametrize("constant", ["ann", "cy"])
def test_constants_are_compared(constant: str) -> None:
    kb = knowledge(f'rule r: smokes("{constant}") -> smokes(x)\n', "smokes(ann)")
    assert known_body_query(Store(kb), kb.theory.rules[0]).count() == (3 if constant == "ann" else 0)
