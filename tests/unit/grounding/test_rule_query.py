"""A rule's query: what it ranges over, its SQL and its estimate."""

import pytest
from sqlglot import exp

import r2n
from r2n.grounding.joins import Kind, RuleQuery
from r2n.grounding.known_body import known_body_query
from tests.unit.grounding.small_knowledge import knowledge

KB = knowledge("rule r: smokes(x) & knows(x, y) -> smokes(y)\n", "smokes(ann) smokes(bob) knows(ann,bob) knows(ann,cy)")
TYPED = "domain town = {a, b}\ndomain land = {l}\ndomain place = town | land\npredicate p(place)\npredicate q(town)\n"


def query(kb: r2n.KnowledgeBase) -> RuleQuery:
    return known_body_query(r2n.Store(kb), kb.theory.rules[0])


def ranging(kb: r2n.KnowledgeBase) -> list[str]:
    return [str(atom.terms[0]) for _, atom in query(kb).ranging]


def test_the_estimate_comes_from_sizes_and_distinct_values() -> None:
    assert query(KB).estimate() == 4, "2 smokers times 2 pairs, over 1 distinct first constant"


def test_variables_range_over_their_domains_unless_a_joined_atom_holds_them_there() -> None:
    assert ranging(knowledge("rule r: p(x) -> p(y)", theory=TYPED)) == ["y"]
    assert ranging(knowledge("rule r: p(x: town) -> p(x)", theory=TYPED)) == ["x"], "p holds it to places only"
    assert ranging(knowledge("rule r: p(x) & q(x) -> p(x)", theory=TYPED)) == []


def test_a_query_that_seeks_nothing_is_free() -> None:
    store, (rule,) = r2n.Store(KB), KB.theory.rules
    assert RuleQuery(rule, (), ()).is_free
    assert not RuleQuery(rule, ("x",), store.domains(rule)[:1]).is_free
    assert not RuleQuery(rule, (), (), absent=(store.match(Kind.FACT, rule.atoms[0]),)).is_free


@pytest.mark.parametrize(
    ("rule", "where"),
    [
        ("smokes(x) & knows(x, y) -> smokes(y), x != y", "t1.a0 = t0.a0 AND NOT (t0.a0 = t1.a1)"),
        ('!knows("ann", x) & smokes(x) -> smokes(x)', "NOT EXISTS("),
    ],
)
def test_every_condition_stands_in_the_sql(rule: str, where: str) -> None:
    compiled = query(knowledge(f"rule r: {rule}\n")).compiled(exp.Literal.string)
    assert where in compiled.select([exp.Star()]).sql("duckdb")
