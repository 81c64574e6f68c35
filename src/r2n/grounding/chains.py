"""Rules -> numbers of ground rules: rules whose body is a chain x - z_1 - ... - y, counted without being grounded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from r2n.grounding.path_counts import (
    MOST_STEPS_DISTINCT,
    path_counts_in_parts,
    reached_from,
    row_of_entries,
    row_parts,
    without_diagonal,
)
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.logic.formula import Atom, Variable
from r2n.logic.theory import Rule

MOST_ENTRIES = 2**23  # of products at a time: about half a gigabyte

Pairs = tuple[np.ndarray, np.ndarray]
"""Two columns of constants (ids), one pair a fact."""


@dataclass(frozen=True, slots=True)
class ChainStep:
    """A body atom between two neighbours of a chain, read from the one to the other."""

    predicate: str
    forward: bool

    def turned(self) -> "ChainStep":
        """The same step the other way."""
        return ChainStep(self.predicate, not self.forward)


@dataclass(frozen=True, slots=True)
class Chain:
    """A rule head(x, y) <- a chain of binary atoms from x to y; `distinct`: all its variables differ by guards.

    `mirrored`: it was turned round, so that its first constant is the head's second.
    """

    head: str
    steps: tuple[ChainStep, ...]
    distinct: bool
    mirrored: bool = False

    def turned(self) -> "Chain":
        """The chain from y to x."""
        steps = tuple(step.turned() for step in reversed(self.steps))
        return Chain(self.head, steps, self.distinct, not self.mirrored)


def as_chain(knowledge: KnowledgeBase, rule: Rule) -> Chain | None:
    """The rule as a chain, where it is one: over binary atoms of variables, each held to its predicates' domains."""
    if not rule.body or len(rule.head_positions) != 1 or not all(literal.positive for literal in rule.body):
        return None
    head, body = rule.atoms[rule.head_positions[0]], [rule.atoms[literal.position] for literal in rule.body]
    ends = _pair(head)
    if ends is None or any(_pair(atom) is None for atom in body) or not _domains_are_free(knowledge, rule):
        return None
    steps = _steps(ends[0], ends[1], body)
    wanted = len(rule.variables) * (len(rule.variables) - 1) // 2
    pairs = {frozenset((guard.left, guard.right)) for guard in rule.guards}
    is_distinct = len(pairs) == wanted and all(isinstance(term, Variable) for pair in pairs for term in pair)
    if steps is None or (pairs and not is_distinct) or (is_distinct and len(steps) > MOST_STEPS_DISTINCT):
        return None
    return Chain(head.predicate, steps, is_distinct)


def _pair(atom: Atom) -> tuple[str, str] | None:
    """The two different variables of an atom."""
    names = [term.name for term in atom.terms if isinstance(term, Variable)]
    return (names[0], names[1]) if len(names) == len(atom.terms) == 2 and names[0] != names[1] else None


def _domains_are_free(knowledge: KnowledgeBase, rule: Rule) -> bool:
    """Whether no variable is held to less than the domains of the positions where it stands."""
    domains = dict(zip(rule.variables, knowledge.theory.variable_domains(rule), strict=True))
    return all(
        domains[term.name] == domain
        for atom in rule.atoms
        for term, domain in zip(atom.terms, knowledge.language.predicate(atom.predicate).domains, strict=True)
        if isinstance(term, Variable)
    )


def _steps(start: str, end: str, body: list[Atom]) -> tuple[ChainStep, ...] | None:
    """The body from one variable to the other, every atom once and no variable twice; None where that is no way."""
    left, here, seen, steps = list(body), start, {start}, list[ChainStep]()
    while left:
        touching = [atom for atom in left if here in (_pair(atom) or ())]
        if len(touching) != 1:
            return None
        left.remove(touching[0])
        first, second = _pair(touching[0]) or ("", "")
        steps.append(ChainStep(touching[0].predicate, first == here))
        here = second if first == here else first
        if here in seen:
            return None
        seen.add(here)
    return tuple(steps) if here == end else None


class StepMatrices:
    """The facts of binary predicates as sparse matrices (constants, constants), in both directions, each made once."""

    def __init__(self, knowledge: KnowledgeBase, most: int = MOST_ENTRIES) -> None:
        """Nothing is made yet. Products are made in parts with about `most` entries at a time."""
        self.knowledge, self.most = knowledge, most
        self._made: dict[tuple[ChainStep, bool], csr_array] = {}

    def pairs(self, predicate: str) -> Pairs:
        """The predicate's true facts, in the order of their codes."""
        facts = self.knowledge.facts(self.knowledge.language.predicate(predicate))
        return facts[:, 0], facts[:, 1]

    def matrix(self, step: ChainStep, *, distinct: bool) -> csr_array:
        """One where the step leads from row to column; `distinct`: without its diagonal."""
        if (step, distinct) not in self._made:
            first, second = self.pairs(step.predicate)
            rows, columns = (first, second) if step.forward else (second, first)
            size = len(self.knowledge.language.constants)
            made = csr_array((np.ones(len(rows), np.int64), (rows, columns)), shape=(size, size))
            self._made[step, distinct] = without_diagonal(made) if distinct else made
        return self._made[step, distinct]

    def counts(self, chain: Chain) -> Iterator[tuple[int, csr_array]]:
        """For each pair (x, y), how many ground rules of the chain conclude head(x, y).

        In parts, each with the number of its first x.
        """
        matrices = [self.matrix(step, distinct=chain.distinct) for step in chain.steps]
        return path_counts_in_parts(matrices, chain.distinct, self.most)

    def through(self, chain: Chain) -> Iterator[tuple[int, csr_array]]:
        """For each fact f of the head and each constant c, the ground rules that have f in the body and conclude the
        atom that is f with c in place of its last constant (of its first one, where the chain is `mirrored`).

        Shape (facts of the head, constants), a row a fact in the order of their codes, in parts, each with the number
        of its first fact.
        """
        starts, ends = self.pairs(chain.head)[:: -1 if chain.mirrored else 1]
        matrices = [self.matrix(step, distinct=chain.distinct) for step in chain.steps]
        walk = _through_distinct if chain.distinct else _through
        for first, last in row_parts(reached_from(matrices)[starts], self.most):
            part = walk(chain, matrices, starts[first:last], ends[first:last])
            part.sum_duplicates()
            part.eliminate_zeros()
            yield first, part


def _through_distinct(chain: Chain, matrices: Sequence[csr_array], starts: np.ndarray, ends: np.ndarray) -> csr_array:
    """Over distinct constants, a fact that the path's first constant stands in can only be its first step."""
    facts, size = len(starts), len(matrices[0].indptr) - 1
    if chain.steps[0] != ChainStep(chain.head, not chain.mirrored) or len(matrices) == 1:
        return csr_array((facts, size), dtype=np.int64)
    is_step = (starts != ends).astype(np.int64)
    found = csr_array(_scaled(_chosen(ends, size), is_step) @ matrices[1])
    if len(matrices) == MOST_STEPS_DISTINCT:
        back = _entries(found, starts)
        found = csr_array(found @ matrices[2] - _scaled(csr_array(_chosen(starts, size) @ matrices[2]), back))
    return _without(_without(found, starts), ends)


def _through(chain: Chain, matrices: Sequence[csr_array], starts: np.ndarray, ends: np.ndarray) -> csr_array:
    """Walks may pass the fact again and again: those with it are those in all, less those that never take it.

    With D_i the walks of i steps that take the fact: D_i = D_{i-1} A_i + (walks of i - 1 steps without it that end
    where it begins) at where it ends.
    """
    facts, size = len(starts), len(matrices[0].indptr) - 1
    every = _chosen(starts, size)
    found = csr_array((facts, size), dtype=np.int64)
    for step, matrix in zip(chain.steps, matrices, strict=True):
        onward = csr_array(found @ matrix)
        if step.predicate == chain.head:
            is_onward = step.forward != chain.mirrored
            begins, arrives = (starts, ends) if is_onward else (ends, starts)
            without = _entries(every, begins) - _entries(found, begins)
            onward = csr_array(onward + _scaled(_chosen(arrives, size), without))
        found, every = onward, csr_array(every @ matrix)
    return found


def _chosen(columns: np.ndarray, size: int) -> csr_array:
    """A row a fact, one in the column of its constant."""
    return csr_array(
        (np.ones(len(columns), np.int64), columns, np.arange(len(columns) + 1)), shape=(len(columns), size)
    )


def _entries(matrix: csr_array, columns: np.ndarray) -> np.ndarray:
    """The entry of each row in its column."""
    rows = row_of_entries(matrix)
    hit = matrix.indices == columns[rows]
    return np.bincount(rows[hit], matrix.data[hit], minlength=len(columns)).astype(np.int64)


def _scaled(matrix: csr_array, by: np.ndarray) -> csr_array:
    """The matrix with each row multiplied by its number."""
    scaled = matrix.copy()
    scaled.data = scaled.data * by[row_of_entries(scaled)]
    return scaled


def _without(matrix: csr_array, columns: np.ndarray) -> csr_array:
    """The matrix with each row's entry in its column put to zero."""
    kept = matrix.copy()
    kept.data = np.where(kept.indices == columns[row_of_entries(kept)], 0, kept.data)
    return kept
