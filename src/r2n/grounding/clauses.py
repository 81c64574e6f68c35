"""How often the rules decide an atom, by what is known of the other atoms of their clauses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count, product

import numpy as np
from jaxtyping import Float, Int64

from r2n.data.herbrand import Codes
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.grounding.full import KnownBodyGrounder
from r2n.grounding.joins import (
    MAX_GROUNDINGS,
    Substitutions,
    TooManyRowsError,
    budget_error,
    encode_atom,
    encode_substitutions,
    joined,
)
from r2n.grounding.store import Store
from r2n.logic.formula import And, Atom, Formula, Iff, Implies, Not, Term, Unequal, Variable, Xor
from r2n.logic.language import Predicate
from r2n.logic.theory import Rule, Theory

Signed = tuple[Atom, bool]
"""A literal: an atom, and whether it is not negated."""

MOST_COUNTS = 40  # of a predicate, in the order of the rules; those that chain two rules come last
MOST_ATOMS = 4096  # whose ground clauses are listed at a time


def clauses_of(formula: Formula, *, positive: bool = True) -> list[tuple[Signed, ...]]:
    """The formula (or its negation) as a conjunction of clauses."""
    if isinstance(formula, Atom):
        return [((formula, positive),)]
    if isinstance(formula, Not):
        return clauses_of(formula.part, positive=not positive)
    if isinstance(formula, Iff | Xor):
        one, other = formula.operands()
        other = other if isinstance(formula, Iff) else Not(other)
        formula = And((Implies(one, other), Implies(other, one)))
    parts = (Not(formula.body), formula.head) if isinstance(formula, Implies) else formula.operands()
    each = [clauses_of(part, positive=positive) for part in parts]
    if isinstance(formula, And) == positive:
        return [clause for found in each for clause in found]
    return [tuple(literal for part in some for literal in part) for some in product(*each)]


def deciding_rules(theory: Theory, predicate: str) -> list[Rule]:
    """The rules' clauses, each once for every literal of a predicate that it decides if all others are false.

    For the rule `a(x, y) & b(y) -> c(x)` and the predicate a they are `!c(x) & b(y) -> !a(x, y)`.
    """
    found = list[Rule]()
    for rule in theory.rules:
        clauses = [] if rule.formula is None else clauses_of(rule.formula)
        for clause in clauses:
            for i, (head, is_true) in enumerate(clause):
                others = tuple((atom, not positive) for atom, positive in clause[:i] + clause[i + 1 :])
                if head.predicate == predicate and others:
                    found += _made(rule, others, (head, is_true), rule.guards)
    return found


def _made(rule: Rule, body: Sequence[Signed], head: Signed, guards: tuple[Unequal, ...]) -> list[Rule]:
    """The rule from a body to a literal; none if the body has its atom."""
    body = tuple(dict.fromkeys(body))
    if head[0] in {atom for atom, _ in body}:
        return []
    parts = tuple(atom if positive else Not(atom) for atom, positive in body)
    formula = Implies(parts[0] if len(parts) == 1 else And(parts), head[0] if head[1] else Not(head[0]))
    names = {term.name for atom in formula.atoms() for term in atom.terms if isinstance(term, Variable)}
    kept = tuple(g for g in guards if all(t.name in names for t in (g.left, g.right) if isinstance(t, Variable)))
    types = tuple(pair for pair in rule.types if pair[0] in names)
    return [Rule.explicit(rule.name, formula, kept, types, rule.weight)]


def chained(rule: Rule, others: Sequence[Rule]) -> Iterator[Rule]:
    """The rule with one literal of its body replaced by the body of another rule that concludes this literal."""
    body, head = [(rule.atoms[part.position], part.positive) for part in rule.body], _head(rule)
    for i, (atom, positive) in enumerate(body):
        for other in others:
            concluded, is_true = _head(other)
            given = [term.name for term in concluded.terms if isinstance(term, Variable)]
            if concluded.predicate != atom.predicate or is_true != positive or len(set(given)) < len(concluded.terms):
                continue
            taken, names = set(rule.variables), dict[str, Term](zip(given, atom.terms, strict=True))
            fresh = (Variable(f"v{k}") for k in count() if f"v{k}" not in taken)
            names |= {name: next(fresh) for name in other.variables if name not in names}
            parts = [(other.atoms[part.position], part.positive) for part in other.body]
            inner = [(Atom(a.predicate, tuple(_of(term, names) for term in a.terms)), sign) for a, sign in parts]
            guards = (*rule.guards, *(Unequal(*(_of(t, names) for t in (g.left, g.right))) for g in other.guards))
            made = _made(rule, (*body[:i], *inner, *body[i + 1 :]), head, guards)
            yield from (replace(new, name=f"{rule.name}, {other.name}") for new in made)


def _head(rule: Rule) -> Signed:
    assert isinstance(rule.formula, Implies)
    head = rule.formula.head
    return (head.part, False) if isinstance(head, Not) else (head, True)  # type: ignore[return-value]


def _of(term: Term, names: Mapping[str, Term]) -> Term:
    return names[term.name] if isinstance(term, Variable) else term


def is_mirror(rule: Rule) -> bool:
    """Whether it says that a predicate of two positions is symmetric: p(x, y) -> p(y, x), or from !p to !p."""
    (head, is_true), body = _head(rule), rule.body
    atom = rule.atoms[body[0].position]
    is_same = atom.predicate == head.predicate and body[0].positive == is_true and atom.terms == head.terms[::-1]
    return len(body) == 1 and is_same and len(rule.variables) == len(head.terms) == 2 and not rule.guards


def _shape(rule: Rule) -> tuple[object, ...]:
    """What is equal for rules that differ in the names of variables and the order of the body."""
    head, names = _head(rule), dict[Term, object]()
    for term in head[0].terms:
        names.setdefault(term, f"#{len(names)}" if isinstance(term, Variable) else term)
    parts = [(rule.atoms[part.position], part.positive) for part in rule.body]
    uses: dict[Term, list[tuple[str, bool, int]]] = {}
    for atom, positive in parts:
        for i, term in enumerate(atom.terms):
            uses.setdefault(term, []).append((atom.predicate, positive, i))
    for term, where in uses.items():
        names.setdefault(term, str(sorted(where)) if isinstance(term, Variable) else term)
    body = sorted((atom.predicate, positive, str([names[t] for t in atom.terms])) for atom, positive in parts)
    return head[1], str([names[t] for t in head[0].terms]), tuple(body), len(rule.guards)


class DecidedAtoms:
    """For the atoms of a predicate, how many ground clauses of each rule decide them: all their other atoms are known,
    and none fulfils the clause. What an atom is known to be itself is never read.

    Rules that conclude what others need are chained once. If a rule says that a predicate is symmetric, the others
    read its facts in both directions, but for those of the pair that is asked.
    """

    def __init__(self, knowledge: KnowledgeBase, predicate: Predicate) -> None:
        """Nothing is counted yet."""
        theory, self.knowledge, self.predicate = knowledge.theory, knowledge, predicate
        own = deciding_rules(theory, predicate.name)
        mirrors = [rule for rule in own if is_mirror(rule)]
        by_predicate = {p.name: deciding_rules(theory, p.name) for p in theory.predicates if not p.closed}
        others = [rule for rules in by_predicate.values() for rule in rules if not is_mirror(rule)]
        self.is_symmetric = bool(mirrors)
        more = [new for rule in own if not is_mirror(rule) for new in chained(rule, others)]
        self.rules = tuple({_shape(rule): rule for rule in reversed([*own, *more][:MOST_COUNTS])}.values())[::-1]

    def __deepcopy__(self, _: dict[int, object]) -> "DecidedAtoms":
        return self

    def counts(self, codes: Codes) -> Float[np.ndarray, "atoms rules"]:
        """log(1 + n) of each atom and rule; an atom may be given more than once."""
        distinct, back = np.unique(codes, return_inverse=True)
        found = np.zeros((len(distinct), len(self.rules)), np.float32)
        for start in range(0, len(distinct), MOST_ATOMS):
            some = distinct[start : start + MOST_ATOMS]
            for j, rule in enumerate(self.rules):
                found[start : start + len(some), j] = self._counted(rule, some)
        return np.log1p(found)[back.reshape(-1)]

    @cached_property
    def _stores(self) -> tuple[Store, Store]:
        """What is known, and the same with the facts of the predicate in both directions."""
        store = Store(self.knowledge)
        if not self.is_symmetric:
            return store, store
        base, evidence = self.knowledge.base, self.knowledge.evidence
        index = base.language.predicate_index(self.predicate.name)
        part = slice(*np.searchsorted(evidence.atoms, base.offsets[index : index + 2]))
        own = base.decode(evidence.atoms[part])[1][:, :2]
        mirrored = base.encode(self.predicate, own[:, ::-1])
        new = (mirrored >= 0) & ~np.isin(mirrored, evidence.atoms)
        atoms = np.concatenate([evidence.atoms, mirrored[new]])
        truth = np.concatenate([evidence.truth, evidence.truth[part][new]])
        order = np.argsort(atoms)
        both = replace(self.knowledge, evidence=Evidence(atoms[order], truth[order]))
        return store, Store(both)

    def _counted(self, rule: Rule, atoms: Codes) -> Float[np.ndarray, " atoms"]:
        """The number of ground clauses of one rule that decide each of some distinct atoms (ascending)."""
        base = self.knowledge.base
        try:
            found = self._substitutions(rule, atoms)
        except TooManyRowsError as error:
            if len(atoms) == 1:
                raise budget_error(rule, MAX_GROUNDINGS, MAX_GROUNDINGS, exact=False) from error
            return np.concatenate([self._counted(rule, half) for half in np.array_split(atoms, 2)])
        codes = encode_atom(base, _head(rule)[0], dict(zip(rule.variables, found.T, strict=True)))
        return np.bincount(np.searchsorted(atoms, codes), minlength=len(atoms)).astype(np.float32)

    def ground_clauses(self, code: int) -> list[Int64[np.ndarray, "ground_rules positions"]]:
        """The atoms of the ground clauses of each rule that decide an atom."""
        found = (self._substitutions(rule, np.array([code])) for rule in self.rules)
        return [encode_substitutions(self.knowledge.base, *pair) for pair in zip(self.rules, found, strict=True)]

    def _substitutions(self, rule: Rule, atoms: Codes) -> Substitutions:
        is_plain = not self.is_symmetric or is_mirror(rule)
        store = self._stores[0 if is_plain else 1]
        (asked,), (head, _) = store.asked(atoms).values(), _head(rule)
        query = KnownBodyGrounder().query(store, rule)
        same = [rule.atoms[p.position] for p in rule.body if rule.atoms[p.position].predicate == head.predicate]
        heads = [head] if is_plain else [head, Atom(head.predicate, head.terms[::-1])]
        apart = tuple((one, other) for one in heads for other in same)
        query = replace(query, joined=((asked, head), *query.joined), apart=apart)
        return joined(query, store.language, MAX_GROUNDINGS)
