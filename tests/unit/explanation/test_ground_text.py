"""Ground rules as text."""

import pytest

from r2n.explanation.reasons import ground_text
from r2n.logic.parser import parse_theory

THEORY = """
domain thing
predicate p(thing)
predicate q(thing, thing)
rule horn: p(x) & q(x, y) -> p(y)
rule nested: (p(x) | !q(x, y)) & p(y) <-> q(y, x)
rule other: p(x) xor !p(y)
implicit related: [p(x), q(x, y)]
"""


@pytest.mark.parametrize(
    ("rule", "names", "text"),
    [
        ("horn", ["p(a)", "q(a, b)", "p(b)"], "p(a) & q(a, b) -> p(b)"),
        ("nested", ["p(a)", "q(a, b)", "p(b)", "q(b, a)"], "((p(a) | !q(a, b)) & p(b)) <-> q(b, a)"),
        ("other", ["p(a)", "p([/])"], "p(a) xor !p([/])"),
        ("related", ["p(a)", "q(a, b)"], "[p(a), q(a, b)]"),
    ],
)
def test_a_ground_rule_reads_as_its_rule_with_the_names_of_its_atoms(rule: str, names: list[str], text: str) -> None:
    (found,) = (found for found in parse_theory(THEORY).rules if found.name == rule)
    assert ground_text(found, names) == text
