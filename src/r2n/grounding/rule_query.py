"""Rules -> ground rules: which substitutions of a rule are sought, said once for joins in memory and for an engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from r2n.grounding.relations import Relation
from r2n.knowledge.conjunctive import AtomTable, ConjunctiveSelect, Expression
from r2n.logic.formula import Atom, Term, Variable
from r2n.logic.theory import Rule

Match = tuple[Relation, Atom]
"""An atom of a rule, and the relation that it is looked up in."""


@dataclass(frozen=True, eq=False)
class RuleQuery:
    """The substitutions of a rule's `variables` over their `domains` that meet the rule's guards and these conditions.

    Every `joined` atom is one of its relation, no `absent` atom is, at most `width` of the `counted` atoms are not,
    and the atoms of no pair in `apart` are the same. Every variable of a condition is among the `variables`.
    """

    rule: Rule
    variables: tuple[str, ...]
    domains: tuple[Relation, ...]
    joined: tuple[Match, ...] = ()
    absent: tuple[Match, ...] = ()
    counted: tuple[Match, ...] = ()
    width: int = 0
    apart: tuple[tuple[Atom, Atom], ...] = ()
    ranging: tuple[Match, ...] = field(init=False)
    """The variables that no joined atom binds, or holds to just their domain, as atoms of their domains' relations."""

    def __post_init__(self) -> None:
        """Find out which variables have to be looked up in their domains."""
        held = {
            (term.name, domain.name)
            for relation, atom in self.joined
            for term, domain in zip(atom.terms, relation.domains, strict=True)
            if isinstance(term, Variable)
        }
        ranging = tuple(
            (domain, Atom(domain.name, (Variable(name),)))
            for name, domain in zip(self.variables, self.domains, strict=True)
            if (name, domain.domains[0].name) not in held
        )
        object.__setattr__(self, "ranging", ranging)

    @property
    def is_free(self) -> bool:
        """Whether there is no condition at all, and nothing is sought."""
        return not (self.variables or self.joined or self.absent)

    def estimate(self) -> int:
        """About how many substitutions there are if nothing is counted, from sizes and distinct values alone."""
        size, bound = 1.0, set[str]()
        for relation, atom in (*self.joined, *self.ranging):
            size *= len(relation)
            for i, term in enumerate(atom.terms):
                if isinstance(term, Variable) and term.name not in bound:
                    bound.add(term.name)
                else:
                    size /= max(1, relation.distinct(i))
        return round(min(size, 1e18))

    def compiled(
        self,
        constant: Callable[[str], Expression],
        instead: Mapping[int, tuple[AtomTable, tuple[Term, ...]]] | None = None,
    ) -> ConjunctiveSelect:
        """The conditions as SQL over the relations' tables; `constant` writes a constant, given by name.

        `instead` names, for some joined atoms by their number, a table that does the same, and its terms.
        """
        select = ConjunctiveSelect(constant)
        for number, (relation, atom) in enumerate((*self.joined, *self.ranging)):
            select.join(*(instead or {}).get(number, (relation.table, atom.terms)))
        for relation, atom in self.absent:
            select.forbid(relation.table, atom.terms)
        for relation, atom in self.counted:
            select.count_missing(relation.table, atom.terms)
        for guard in self.rule.guards:
            select.differ((guard.left,), (guard.right,))
        for some, other in self.apart:
            select.differ(some.terms, other.terms)
        return select
