"""Tables, wherever they are: what makes a literal known."""

import pytest

from r2n.grounding.joins import Kind, Tables
from r2n.grounding.store import Store
from tests.unit.grounding.small_knowledge import knowledge

KB = knowledge("rule r: smokes(x) & !knows(x, y) & !takes(y, d) -> smokes(y)\n", "smokes(ann)")


@pytest.mark.parametrize(
    ("position", "kind", "is_in"), [(0, Kind.FACT, True), (1, Kind.FACT, False), (2, Kind.DENIED, True)]
)
def test_a_literal_is_known_by_a_fact_a_denied_atom_or_in_a_closed_world_by_no_fact(
    position: int, kind: Kind, is_in: bool
) -> None:
    tables: Tables = Store(KB)
    (rule,) = tables.theory.rules
    (relation, atom), found = tables.known_by(rule, rule.body[position])
    assert atom == rule.atoms[rule.body[position].position]
    assert relation is tables.relation(kind, atom.predicate)
    assert found == is_in


def test_variables_run_over_their_domains() -> None:
    tables: Tables = Store(KB)
    (rule,) = tables.theory.rules
    names = dict(zip(rule.variables, (domain.domains[0].name for domain in tables.domains(rule)), strict=True))
    assert names == {"x": "person", "y": "person", "d": "drug"}
    assert not tables.candidates
