"""Horn rules applied by plain loops, again and again until nothing new follows."""

from itertools import product

from r2n.logic.formula import Term, Variable
from r2n.logic.theory import Rule

GroundAtom = tuple[str, ...]


def closure(rules: list[Rule], facts: set[GroundAtom]) -> set[GroundAtom]:
    """All that follows from the facts, with the facts; what is denied must be no fact at the start."""
    stated, known = set(facts), set(facts)
    constants = sorted({name for fact in facts for name in fact[1:]})
    while True:
        found = {head for rule in rules for head in _heads(rule, stated, known, constants)}
        if found <= known:
            return known
        known |= found


def _heads(rule: Rule, stated: set[GroundAtom], known: set[GroundAtom], constants: list[str]) -> set[GroundAtom]:
    heads = set()
    for chosen in product(constants, repeat=len(rule.variables)):
        value = dict(zip(rule.variables, chosen, strict=True))

        def name(term: Term, value: dict[str, str] = value) -> str:
            return value[term.name] if isinstance(term, Variable) else term.name

        atoms = [(atom.predicate, *map(name, atom.terms)) for atom in rule.atoms]
        body = all(
            atoms[literal.position] in known if literal.positive else atoms[literal.position] not in stated
            for literal in rule.body
        )
        if body and all(name(guard.left) != name(guard.right) for guard in rule.guards):
            heads.add(atoms[rule.head_positions[0]])
    return heads
