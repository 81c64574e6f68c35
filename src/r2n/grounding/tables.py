"""Rules -> ground rules: what queries need of the tables of a knowledge base, wherever these are."""

from abc import ABC, abstractmethod
from collections.abc import Collection

from r2n.grounding.relations import Kind, Relation
from r2n.grounding.rule_query import Match
from r2n.logic.formula import Atom
from r2n.logic.language import Domain
from r2n.logic.theory import Literal, Rule, Theory


class Tables(ABC):
    """A relation for each predicate and kind, and one for each domain."""

    @property
    @abstractmethod
    def theory(self) -> Theory:
        """The rules, and which predicates are closed."""

    @property
    @abstractmethod
    def candidates(self) -> Collection[str]:
        """The predicates of which ground rules hold candidates alone."""

    @abstractmethod
    def relation(self, kind: Kind, predicate: str) -> Relation:
        """The predicate's atoms of this kind, among facts, denied atoms and candidates."""

    @abstractmethod
    def domain(self, domain: Domain) -> Relation:
        """The constants of a domain."""

    def domains(self, rule: Rule) -> tuple[Relation, ...]:
        """The constants that each of the rule's variables runs over."""
        return tuple(map(self.domain, self.theory.variable_domains(rule)))

    def match(self, kind: Kind, atom: Atom) -> Match:
        """The atom, to be looked up among its predicate's atoms of this kind."""
        return self.relation(kind, atom.predicate), atom

    def known_by(self, rule: Rule, literal: Literal) -> tuple[Match, bool]:
        """What makes a body literal known: its atom is (True), or is not (False), in a relation.

        A positive literal is known by a fact, a negative one by a denied atom, or in a closed world by no fact.
        """
        atom = rule.atoms[literal.position]
        if literal.positive:
            return self.match(Kind.FACT, atom), True
        if self.theory.is_closed(rule, literal.position):
            return self.match(Kind.FACT, atom), False
        return self.match(Kind.DENIED, atom), True
