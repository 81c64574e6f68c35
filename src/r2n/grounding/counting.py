"""Counts of the ground rules of each rule that conclude an atom, without the ground rules themselves."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float64, Int, Int64
from scipy.sparse import csr_array

from r2n.data.herbrand import Codes, HerbrandBase, QueryPattern, RowIndex, are_among, ranges
from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.joins import MAX_GROUNDINGS
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.store import Store
from r2n.logic.formula import Atom, Variable
from r2n.logic.theory import Rule
from r2n.progress import Progress, no_progress

MOST_STEPS_DISTINCT = 3  # steps of a path over distinct constants: beyond, too many kinds of walks are subtracted
MOST_ENTRIES = 2**23  # of products at a time: about half a gigabyte
BYTES_OF_ENTRY = 160  # of a count: code, rule, number, index; and the same by row for both positions
BYTES_OF_LEFT_OUT = 28  # of a count that is less while a fact is asked: fact, entry, number; and the last two in order
BYTES_OF_PRODUCT = 256  # of an entry of a product of matrices: four copies of it, and a quarter of what may be taken
FEWER_RULES = ("take fewer rules: r2n mine --max-rules, or a higher --min-support",)


def path_counts(steps: Sequence[csr_array], distinct: bool) -> csr_array:
    """For each pair (x, y), how many paths x - z_1 - ... - y there are; `distinct`: over distinct constants only.

    `steps` holds a matrix (constants, constants) per step: the i-th is not zero at (a, b) if its predicate, read in
    its direction, leads from a to b. The counts, int64, have sorted indices and no stored zero. A first step of which
    only some rows are filled gives the counts of these rows: they depend on no other row of it.

    Two distinct steps A1, A2 without diagonals: the product without its diagonal (x != y). Three: (A1 A2 without its
    diagonal) A3 leaves x, z_1, z_2 and z_2, y distinct; the walks with z_1 = y, x != z_2 are subtracted:
    A1 D(A2 A3), less those with x = z_2, which are A1 * A2' * A3 elementwise; D(.) is the diagonal. At last x != y.
    """
    first, *others = (csr_array(step, dtype=np.int64) for step in steps)
    if not distinct:
        found = first.copy()
        for step in others:
            found = csr_array(found @ step)
        return _tidy(found)
    first, *others = (without_diagonal(step) for step in (first, *others))
    found = without_diagonal(csr_array(first @ others[0])) if others else first
    if len(others) == 2:
        found = without_diagonal(csr_array(found @ others[1] - returns_to_first_step(first, *others)))
    return _tidy(found)


def path_counts_in_parts(steps: Sequence[csr_array], distinct: bool, most: int) -> Iterator[tuple[int, csr_array]]:
    """The same in parts of at least one row, with about `most` intermediate entries, each with its first row."""
    matrix = csr_array(steps[0])
    for start, end in row_parts(reached_from(steps), most):
        first, last = int(matrix.indptr[start]), int(matrix.indptr[end])
        starts = np.clip(matrix.indptr, first, last) - first
        filled = csr_array((matrix.data[first:last], matrix.indices[first:last], starts), shape=matrix.shape)
        yield start, path_counts([filled, *steps[1:]], distinct)[start:end]


def reached_from(steps: Sequence[csr_array]) -> np.ndarray:
    """For each constant, at most how many entries the products of the first 1, 2, ... steps have in its row."""
    size = len(steps[0].indptr) - 1
    total = np.zeros(size)
    for last in range(len(steps)):
        walks = np.diff(steps[last].indptr).astype(np.float64)
        for step in reversed(steps[:last]):
            walks = np.bincount(row_of_entries(step), walks[step.indices], minlength=size)
        total += np.minimum(walks, size)
    return total


def row_parts(entries: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Ranges of rows, each with about `most` entries; no part if there is no row."""
    cuts = np.flatnonzero(np.diff(np.cumsum(entries) // max(1, most))) + 1
    return list(pairwise([0, *cuts.tolist(), len(entries)]))


def returns_to_first_step(first: csr_array, second: csr_array, third: csr_array) -> csr_array:
    """Walks x - y - z - y of three steps without diagonals, z distinct from x and y: (constants, constants)."""
    back = second.multiply(third.T).sum(axis=1)  # D(A2 A3): from y to some z and back to y
    walks = csr_array(first, copy=True)
    walks.data = walks.data * np.asarray(back)[walks.indices]
    return csr_array(walks - first.multiply(second.T).multiply(third))


def without_diagonal(matrix: csr_array) -> csr_array:
    """The matrix without the entries (x, x)."""
    rows = row_of_entries(matrix)
    kept = matrix.indices != rows
    if kept.all():
        return matrix
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=len(matrix.indptr) - 1))])
    return csr_array((matrix.data[kept], matrix.indices[kept], starts), shape=matrix.shape)


def row_of_entries(matrix: csr_array) -> np.ndarray:
    """The row of every stored entry, in the order of `matrix.indices`."""
    return np.repeat(np.arange(len(matrix.indptr) - 1, dtype=matrix.indices.dtype), np.diff(matrix.indptr))


def _tidy(matrix: csr_array) -> csr_array:
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


@dataclass(frozen=True, slots=True)
class ChainStep:
    """A body atom between two neighbours of a chain, read from the one to the other."""

    predicate: str
    forward: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """A rule head(x, y) <- a chain of binary atoms from x to y."""

    head: str
    steps: tuple[ChainStep, ...]
    distinct: bool  # all its variables differ by guards
    is_reversed: bool = False  # its first constant is the head's second

    def backwards(self) -> "Chain":
        """The chain from y to x."""
        steps = tuple(ChainStep(step.predicate, not step.forward) for step in reversed(self.steps))
        return Chain(self.head, steps, self.distinct, not self.is_reversed)


def as_chain(knowledge: KnowledgeBase, rule: Rule) -> Chain | None:
    """The rule as a chain, if it is one: over binary atoms of variables, each over its predicates' domains."""
    if not rule.body or len(rule.head_positions) != 1 or not all(literal.positive for literal in rule.body):
        return None
    head, body = rule.atoms[rule.head_positions[0]], [rule.atoms[literal.position] for literal in rule.body]
    domains = dict(zip(rule.variables, knowledge.theory.variable_domains(rule), strict=True))
    is_free = all(  # no variable is restricted to less than the domains of its positions
        domains[term.name] == domain
        for atom in rule.atoms
        for term, domain in zip(atom.terms, knowledge.language.predicate(atom.predicate).domains, strict=True)
        if isinstance(term, Variable)
    )
    steps = _chain_steps(head, body) if is_free else None
    wanted = len(rule.variables) * (len(rule.variables) - 1) // 2
    pairs = {frozenset((guard.left, guard.right)) for guard in rule.guards}
    is_distinct = len(pairs) == wanted and all(isinstance(term, Variable) for pair in pairs for term in pair)
    if steps is None or (pairs and not is_distinct) or (is_distinct and len(steps) > MOST_STEPS_DISTINCT):
        return None
    return Chain(head.predicate, steps, is_distinct)


def _chain_steps(head: Atom, body: list[Atom]) -> tuple[ChainStep, ...] | None:
    """The body from the first variable of the head to the second, every atom once and no variable twice, or None."""
    if any(len(set(atom.terms)) != 2 or not all(isinstance(t, Variable) for t in atom.terms) for atom in (head, *body)):
        return None
    left, (here, end), steps = list(body), head.terms, list[ChainStep]()
    seen = {here}
    while left:
        touching = [atom for atom in left if here in atom.terms]
        if len(touching) != 1:
            return None
        left.remove(touching[0])
        first, second = touching[0].terms
        steps.append(ChainStep(touching[0].predicate, first == here))
        here = second if first == here else first
        if here in seen:
            return None
        seen.add(here)
    return tuple(steps) if here == end else None


class StepMatrices:
    """The facts of binary predicates as sparse matrices (constants, constants); products have `most` entries a part."""

    def __init__(self, knowledge: KnowledgeBase, most: int = MOST_ENTRIES) -> None:
        """Nothing is made yet."""
        self.knowledge, self.most = knowledge, most
        self._made: dict[tuple[ChainStep, bool], csr_array] = {}

    @classmethod
    def within(cls, store: Store) -> "StepMatrices":
        """Products in parts that fit under the memory limit of a store."""
        return cls(store.knowledge, store.ceiling.fitting(BYTES_OF_PRODUCT, MOST_ENTRIES))

    def pairs(self, predicate: str) -> tuple[np.ndarray, np.ndarray]:
        """The two columns of the predicate's true facts (constant ids), in the order of their codes."""
        facts = self.knowledge.facts(self.knowledge.language.predicate(predicate))
        return facts[:, 0], facts[:, 1]

    def matrices(self, chain: Chain) -> list[csr_array]:
        """For each step, one if it leads from row to column; without diagonals if the chain is `distinct`."""
        for step in chain.steps:
            if (step, chain.distinct) not in self._made:
                rows, columns = self.pairs(step.predicate)[:: 1 if step.forward else -1]
                size = len(self.knowledge.language.constants)
                made = csr_array((np.ones(len(rows), np.int64), (rows, columns)), shape=(size, size))
                self._made[step, chain.distinct] = without_diagonal(made) if chain.distinct else made
        return [self._made[step, chain.distinct] for step in chain.steps]

    def counts(self, chain: Chain, starts: np.ndarray | None = None) -> Iterator[tuple[int, csr_array]]:
        """For each pair (x, y), how many ground rules of the chain conclude head(x, y); parts with their first x.

        With `starts` (ascending), only the rows of these x are counted; the others are empty.
        """
        first, *others = self.matrices(chain)
        if starts is not None:
            sizes = np.zeros(len(first.indptr) - 1, first.indptr.dtype)
            entries = ranges(first.indptr[starts], np.diff(first.indptr)[starts])[1]
            sizes[starts] = np.diff(first.indptr)[starts]
            filled = np.concatenate([[0], np.cumsum(sizes)])
            first = csr_array((first.data[entries], first.indices[entries], filled), shape=first.shape)
        return path_counts_in_parts([first, *others], chain.distinct, self.most)

    def joined(self, chain: Chain, most: int) -> tuple[int, int]:
        """How many pairs (x, y) of the head's domains a chain joins, and how many of them are facts of the head.

        A fact is joined without the ground rules that it is itself in. Only `most` x are counted from, drawn at random.
        """
        language, first = self.knowledge.language, np.flatnonzero(np.diff(self.matrices(chain)[0].indptr))
        heads, last = map(language.members, language.predicate(chain.head).domains)
        starts = np.sort(np.random.default_rng(0).permutation(np.intersect1d(first, heads))[:most])
        x, y = self.pairs(chain.head)
        some = np.flatnonzero(are_among(x, starts))
        x, y, pairs, (number, own) = x[some], y[some], 0, np.zeros((2, len(some)), np.int64)
        for begin, part in self.counts(chain, starts):
            inside = np.flatnonzero((x >= begin) & (x < begin + len(part.indptr) - 1))
            if len(inside):
                number[inside] = _entries(csr_array(part[x[inside] - begin]), y[inside])
            pairs += int(are_among(part.indices, last).sum())
        if any(step.predicate == chain.head for step in chain.steps):
            for begin, part in self.through(chain, some):
                inside = slice(begin, begin + len(part.indptr) - 1)
                own[inside] = _entries(part, y[inside])
        return pairs - int(((number > 0) & (number == own)).sum()), int((number > own).sum())

    def through(self, chain: Chain, some: np.ndarray | slice = slice(None)) -> Iterator[tuple[int, csr_array]]:
        """For each fact f of the head (in the order of codes) and each constant c, how many ground rules have f in the
        body and conclude f with c in place of its last constant (the first, if reversed); parts with their first fact.
        Or of `some` facts only.
        """
        starts, ends = (column[some] for column in self.pairs(chain.head)[:: -1 if chain.is_reversed else 1])
        matrices = self.matrices(chain)
        walk = _through_distinct if chain.distinct else _through
        for first, last in row_parts(reached_from(matrices)[starts], self.most):
            yield first, _tidy(walk(chain, matrices, starts[first:last], ends[first:last]))


def _through_distinct(chain: Chain, matrices: Sequence[csr_array], starts: np.ndarray, ends: np.ndarray) -> csr_array:
    """Over distinct constants, a fact with the path's first constant can only be its first step."""
    facts, size = len(starts), len(matrices[0].indptr) - 1
    if chain.steps[0] != ChainStep(chain.head, not chain.is_reversed) or len(matrices) == 1:
        return csr_array((facts, size), dtype=np.int64)
    is_step = (starts != ends).astype(np.int64)
    found = csr_array(_scaled(_one_hot(ends, size), is_step) @ matrices[1])
    if len(matrices) == MOST_STEPS_DISTINCT:
        back = _entries(found, starts)
        found = csr_array(found @ matrices[2] - _scaled(csr_array(_one_hot(starts, size) @ matrices[2]), back))
    rows = row_of_entries(found)
    found.data = np.where((found.indices == starts[rows]) | (found.indices == ends[rows]), 0, found.data)
    return found


def _through(chain: Chain, matrices: Sequence[csr_array], starts: np.ndarray, ends: np.ndarray) -> csr_array:
    """Walks may pass the fact several times: those with it are all of them, less those that never take it.

    With D_i the walks of i steps that take the fact: D_i = D_{i-1} A_i + (walks of i - 1 steps without it that end
    where it begins) at where it ends.
    """
    facts, size = len(starts), len(matrices[0].indptr) - 1
    every = _one_hot(starts, size)
    found = csr_array((facts, size), dtype=np.int64)
    for step, matrix in zip(chain.steps, matrices, strict=True):
        onward = csr_array(found @ matrix)
        if step.predicate == chain.head:
            begins, arrives = (starts, ends) if step.forward != chain.is_reversed else (ends, starts)
            without = _entries(every, begins) - _entries(found, begins)
            onward = csr_array(onward + _scaled(_one_hot(arrives, size), without))
        found, every = onward, csr_array(every @ matrix)
    return found


def _one_hot(columns: np.ndarray, size: int) -> csr_array:
    """A row per fact, one in the column of its constant."""
    count = len(columns)
    return csr_array((np.ones(count, np.int64), columns, np.arange(count + 1)), shape=(count, size))


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


_Through = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Facts by number, atoms (or entries) of their row, and the ground rules from the one to the other."""


def is_counted(rule: Rule) -> bool:
    """Whether a rule's ground rules can be counted: one that concludes one atom from a conjunction."""
    return rule.concludes_one_atom


def split_rules(knowledge: KnowledgeBase) -> tuple[KnowledgeBase, tuple[Rule, ...]]:
    """The knowledge base with only the rules that cannot be counted, and the rules that can."""
    theory = knowledge.theory
    others = tuple(rule for rule in theory.rules if not is_counted(rule))
    return replace(knowledge, theory=replace(theory, rules=others)), tuple(filter(is_counted, theory.rules))


@dataclass(frozen=True, eq=False)
class PatternCounts:
    """The counts of one query pattern, by row (`index`) and candidate (by number); `order`: among the predicate's."""

    pattern: QueryPattern
    index: RowIndex
    candidates: Int64[np.ndarray, " entries"]
    rules: Int64[np.ndarray, " entries"]
    counts: Int64[np.ndarray, " entries"]
    is_fact: Bool[np.ndarray, " entries"]
    order: Int64[np.ndarray, " entries"]


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Leave-one-out: while the i-th fact of its predicate is asked, the entries `entries[starts[i]:starts[i + 1]]` of
    the `PatternCounts` are less by `counts`: the ground rules of its row that have the fact itself in their body.
    """

    starts: Int64[np.ndarray, " _"]
    entries: Int[np.ndarray, " _"]
    counts: Int64[np.ndarray, " _"]


@dataclass(frozen=True, eq=False)
class RuleCounts:
    """n_j(a) for all rules j and all atoms a that one of them concludes: entries ascend with the code, then the rule.

    `inverse[starts[j] + i]` is the entry of the i-th atom that rule j concludes. `grounded[j][i]` is kept of a rule
    that is no chain and has its head's predicate in its body: what is left out while a fact is asked at position i.
    """

    store: Store
    rules: tuple[Rule, ...]
    codes: Codes
    rule: Int64[np.ndarray, " entries"]
    counts: Int64[np.ndarray, " entries"]
    inverse: Int64[np.ndarray, " entries"]
    starts: Int64[np.ndarray, " _"]
    grounded: Mapping[int, tuple[_Through, ...]] = field(default_factory=dict)
    _by_pattern: dict[tuple[int, int], PatternCounts] = field(default_factory=dict)
    _left_out: dict[tuple[int, int], LeftOut] = field(default_factory=dict)

    @classmethod
    def from_store(
        cls, store: Store, rules: Sequence[Rule], progress: Progress = no_progress, max_groundings: int = MAX_GROUNDINGS
    ) -> "RuleCounts":
        """Count the ground rules of some rules in what is known; `max_groundings` of one that is no chain."""
        grounder, matrices = KnownBodyGrounder(max_groundings), StepMatrices.within(store)
        found = list(_rule_counts(store, rules, grounder, matrices, progress))
        codes, counts = (np.concatenate([np.zeros(0, np.int64), *(part[i] for part in found)]) for i in (0, 1))
        sizes = np.array([len(own) for own, _, _ in found], np.int64)
        order = np.argsort(codes, kind="stable")
        inverse = np.empty(len(order), np.int64)
        inverse[order] = np.arange(len(order))
        rule = np.repeat(np.arange(len(found)), sizes)[order]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        grounded = {j: through for j, (_, _, through) in enumerate(found) if through}
        return cls(store, tuple(rules), codes[order], rule, counts[order], inverse, starts, grounded)

    def without_rules(self, names: Collection[str]) -> "RuleCounts":
        """The counts with nothing of the rules of these names; the others keep their numbers."""
        out = np.array([rule.name in names for rule in self.rules], bool)
        kept = np.flatnonzero(~out[self.rule])
        index = np.full(len(self.codes), -1, np.int64)
        index[kept] = np.arange(len(kept))
        inverse = index[self.inverse]
        sizes = np.where(out, 0, np.diff(self.starts))
        heads = {rule.atoms[rule.head_positions[0]].predicate for rule in self.rules if rule.name in names}
        changed = {self.base.language.predicate_index(head) for head in heads}
        return replace(
            self,
            codes=self.codes[kept],
            rule=self.rule[kept],
            counts=self.counts[kept],
            inverse=inverse[inverse >= 0],
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            grounded={j: part for j, part in self.grounded.items() if not out[j]},
            _by_pattern={key: found for key, found in self._by_pattern.items() if key[0] not in changed},
        )

    @property
    def base(self) -> HerbrandBase:
        """The Herbrand base of the atoms."""
        return self.store.base

    @cached_property
    def is_fact(self) -> Bool[np.ndarray, " entries"]:
        """Whether each entry's atom is known to be true."""
        evidence = self.store.knowledge.evidence
        return are_among(self.codes, evidence.facts)

    @cached_property
    def confidences(self) -> Float64[np.ndarray, " rules"]:
        """The share of true atoms among those that each rule concludes, less where these are few."""
        concluded = np.bincount(self.rule, minlength=len(self.rules))
        return (np.bincount(self.rule, self.is_fact, minlength=len(self.rules)) + 0.1) / (concluded + 5.0)

    def by_pattern(self, predicate: int, position: int) -> PatternCounts:
        """The counts of one query pattern, made once."""
        if (predicate, position) in self._by_pattern:
            return self._by_pattern[predicate, position]
        pattern = QueryPattern.from_base(self.base, predicate, position)
        part = slice(*np.searchsorted(self.codes, self.base.offsets[pattern.predicate : pattern.predicate + 2]))
        columns = self.rule[part], self.counts[part], self.is_fact[part]
        found = _pattern_counts(pattern, *pattern.located(self.codes[part]), *columns)
        self._by_pattern[predicate, position] = found
        return found

    def left_out(self, predicate: int, position: int) -> LeftOut:
        """For each fact of a predicate, what is not counted while it is asked at a position: the rest is exactly what
        grounding without the fact would count for its row.
        """
        if (predicate, position) in self._left_out:
            return self._left_out[predicate, position]
        of_pattern, declared = self.by_pattern(predicate, position), self.base.language.predicates[predicate]
        sizes = np.zeros(len(self.store.knowledge.known_codes(declared, True)), np.int64)
        left_out, parts = sum(len(part.entries) for part in self._left_out.values()), list[_Through]()
        for fact, entry, count in self._through(of_pattern):
            parts.append((fact, entry, count))
            sizes[fact[0] : fact[-1] + 1] += np.bincount(fact - fact[0])
            left_out += len(fact)
            what = f"what is left out of {len(self.codes):,} counts while a fact is asked, {left_out:,} numbers so far,"
            needed = len(self.codes) * BYTES_OF_ENTRY + left_out * BYTES_OF_LEFT_OUT
            self.store.ceiling.check(needed, what=what, hints=FEWER_RULES)
        starts = np.append(0, np.cumsum(sizes))
        entries, counts = np.empty(starts[-1], _smallest(len(of_pattern.order))), np.empty(starts[-1], np.int64)
        free = starts[:-1].copy()  # where the next one of each fact goes
        for fact, entry, count in parts:
            number = np.bincount(fact - fact[0])
            own = free[fact[0] : fact[-1] + 1]
            to = (own - (np.cumsum(number) - number))[fact - fact[0]] + np.arange(len(fact))
            entries[to], counts[to] = entry, count
            own += number
        found = self._left_out[predicate, position] = LeftOut(starts, entries, counts)
        return found

    def _through(self, counts: PatternCounts) -> Iterator[_Through]:
        """Facts by number (ascending), entries of their row, and the ground rules from the one to the other."""
        name, position = self.base.language.predicates[counts.pattern.predicate].name, counts.pattern.position
        begin = int(np.searchsorted(self.codes, counts.pattern.bounds[0]))
        row = np.empty(len(counts.order), _smallest(len(counts.order)))
        row[counts.order] = np.arange(len(counts.order))
        for j, rule in enumerate(self.rules):
            own = self.inverse[self.starts[j] : self.starts[j + 1]]
            if not len(own) or rule.atoms[rule.head_positions[0]].predicate != name or name not in rule.body_predicates:
                continue
            codes, chain = self.codes[own], as_chain(self.store.knowledge, rule)
            found = iter([self.grounded[j][position]]) if chain is None else self._through_chain(chain, position)
            for fact, code, count in (part for part in found if len(part[0])):
                yield fact.astype(row.dtype), row[own[np.searchsorted(codes, code)] - begin], count

    def _through_chain(self, chain: Chain, position: int) -> Iterator[_Through]:
        pairs = self._matrices.pairs(chain.head)
        for first, part in self._matrices.through(chain if position == 1 else chain.backwards()):
            fact = row_of_entries(part) + np.int64(first)
            columns = [column[fact] for column in pairs]
            columns[position] = part.indices
            yield _coded(self.base, chain.head, columns, fact, part.data)

    @cached_property
    def _matrices(self) -> StepMatrices:
        return StepMatrices.within(self.store)


@dataclass(frozen=True, eq=False)
class RowCounts:
    """The counts of the rows that are asked for, counted when they are; `full` has those of all rows.

    The numbers are the same. `without` are the names of rules that count nothing.
    """

    store: Store
    rules: tuple[Rule, ...]
    progress: Progress = no_progress
    max_groundings: int = MAX_GROUNDINGS
    without: frozenset[str] = frozenset()
    source: "RowCounts | None" = None
    _rows: dict[tuple[int, int], tuple[int, Codes, PatternCounts]] = field(default_factory=dict)

    @cached_property
    def full(self) -> RuleCounts:
        """The counts of all atoms."""
        if self.source is not None:
            return self.source.full.without_rules(self.without)
        return RuleCounts.from_store(self.store, self.rules, self.progress, self.max_groundings)

    def without_rules(self, names: frozenset[str]) -> "RowCounts":
        """The same with nothing of the rules of these names."""
        return replace(self, without=names, source=self, _rows={})

    def at(self, predicate: int, position: int, rows: Codes) -> PatternCounts:
        """The counts of a query pattern, at least those of some rows."""
        if "full" in (self.source or self).__dict__:
            return self.full.by_pattern(predicate, position)
        pattern = QueryPattern.from_base(self.store.base, predicate, position)
        asked, known, found = self._rows.get((predicate, position)) or (0, np.zeros(0, np.int64), None)
        rows = np.unique(rows[rows >= 0])
        new = rows[~are_among(rows, known)]
        if found is not None and not len(new):
            return found
        if asked == MOST_ASKED_ROWS or len(new) > pattern.rows_in_all // 2:  # one by one would take longer
            new = np.setdiff1d(pattern.all_rows, known, assume_unique=True)
        counted = self._counted(pattern, new)
        if found is not None:
            columns = (np.concatenate([getattr(part, name) for part in (found, counted)]) for name in COLUMNS)
            every = [np.repeat(part.index.rows, np.diff(part.index.starts)) for part in (found, counted)]
            counted = _pattern_counts(pattern, np.concatenate(every), *columns)
        self._rows[predicate, position] = asked + 1, np.union1d(known, new), counted
        return counted

    def _counted(self, pattern: QueryPattern, rows: Codes) -> PatternCounts:
        if self.source is not None:
            found = self.source.at(pattern.predicate, pattern.position, rows)
            out = np.array([rule.name in self.without for rule in self.rules], bool)
            owner, entries = found.index.entries(rows)
            kept = ~out[found.rules[entries]]
            owner, entries = owner[kept], entries[kept]
            return _pattern_counts(pattern, rows[owner], *(getattr(found, name)[entries] for name in COLUMNS))
        numbers = self._numbers.get(self.store.language.predicates[pattern.predicate].name, [])
        rules, grounder = [self.rules[j] for j in numbers], KnownBodyGrounder(self.max_groundings)
        parts = list(_rule_counts(self.store, rules, grounder, self._matrices, no_progress, (pattern, rows)))
        codes, counts = (np.concatenate([np.zeros(0, np.int64), *(part[i] for part in parts)]) for i in (0, 1))
        rule = np.repeat(np.array(numbers, np.int64), [len(own) for own, _, _ in parts])
        evidence = self.store.knowledge.evidence
        is_fact = are_among(codes, evidence.facts)
        return _pattern_counts(pattern, *pattern.located(codes), rule, counts, is_fact)

    @cached_property
    def _matrices(self) -> StepMatrices:
        return StepMatrices.within(self.store)

    @cached_property
    def _numbers(self) -> dict[str, list[int]]:
        """The rules (by number) that conclude atoms of each predicate."""
        found = dict[str, list[int]]()
        for j, rule in enumerate(self.rules):
            found.setdefault(rule.atoms[rule.head_positions[0]].predicate, []).append(j)
        return found

    def conclude(self, codes: Codes, position: int = -1) -> Bool[np.ndarray, " atoms"]:
        """Whether a rule concludes each atom; its row at `position` is counted."""
        index, found = self.store.base.decode(codes)[0], np.zeros(len(codes), bool)
        for predicate in np.unique(index).tolist():
            own = np.flatnonzero(index == predicate)
            rows = QueryPattern.from_base(self.store.base, predicate, position % len(self.store.base.shapes[predicate]))
            counts = self.at(predicate, rows.position, rows.located(codes[own])[0])
            held = np.repeat(counts.index.rows, np.diff(counts.index.starts)) + rows.stride * counts.candidates
            found[own] = np.isin(codes[own], held)
        return found


COLUMNS = ("candidates", "rules", "counts", "is_fact")
MOST_ASKED_ROWS = 3  # times that some rows of a pattern are counted; then all are


def _pattern_counts(
    pattern: QueryPattern,
    rows: Codes,
    candidates: np.ndarray,
    rules: np.ndarray,
    counts: np.ndarray,
    is_fact: np.ndarray,
) -> PatternCounts:
    """Counts in the order of their rows, candidates and rules."""
    order = np.lexsort((rules, candidates, rows))
    columns = (column[order] for column in (candidates, rules, counts, is_fact))
    return PatternCounts(pattern, RowIndex.from_rows(rows[order]), *columns, order=order)


def _smallest(count: int) -> type[np.integer]:
    """The smallest integer type that can number so many items."""
    return np.int32 if count < 2**31 else np.int64


def _coded(base: HerbrandBase, name: str, columns: list[np.ndarray], rows: np.ndarray, counts: np.ndarray) -> _Through:
    """The codes of the atoms of a predicate with these columns, those that exist, between their rows and counts."""
    codes = base.encode_columns(base.language.predicate(name), columns)
    inside = codes >= 0
    return rows[inside], codes[inside], counts[inside]


def _rule_counts(
    store: Store,
    rules: Sequence[Rule],
    grounder: KnownBodyGrounder,
    matrices: StepMatrices,
    progress: Progress,
    some: tuple[QueryPattern, Codes] | None = None,
) -> Iterator[tuple[Codes, Int64[np.ndarray, " _"], tuple[_Through, ...]]]:
    """The codes (ascending) that each rule concludes, their counts, and of a grounded rule what is left out of them.

    With `some` rows of a query pattern, only the codes in these, in any order, and nothing that is left out.
    """
    entries, base = 0, store.base
    given = None if some is None else np.unique(some[0].given(some[1])[:, some[0].position - 1])  # of pairs, the other
    for done, rule in enumerate(rules):
        progress("count", done, len(rules))
        chain, through = as_chain(store.knowledge, rule), ()
        if chain is None:
            position = rule.head_positions[0]
            atoms, head = grounder.ground_rule(store, rule).atoms, rule.atoms[position]
            concluded, number = np.unique(atoms[:, position], return_counts=True)
            inside = slice(None) if some is None else are_among(some[0].located(concluded)[0], some[1])
            parts: Iterator[tuple[np.ndarray, ...]] = iter([(concluded[inside], number[inside])])
            if some is None and head.predicate in rule.body_predicates:
                predicate = store.language.predicate_index(head.predicate)
                patterns = [QueryPattern.from_base(base, predicate, i) for i in range(len(head.terms))]
                through = tuple(_through_grounded(store, rule, atoms, pattern) for pattern in patterns)
        else:
            chain = chain.backwards() if some is not None and some[0].position == 0 else chain
            rows = ((row_of_entries(part) + np.int64(first), part) for first, part in matrices.counts(chain, given))
            order = -1 if chain.is_reversed else 1
            parts = (_coded(base, chain.head, [own, part.indices][::order], own, part.data)[1:] for own, part in rows)
        found: list[tuple[np.ndarray, ...]] = [(np.zeros(0, np.int64),) * 2]
        for part in parts:  # the codes ascend from each part of a chain to the next
            found.append(part)
            entries += len(part[0])
            what = f"{entries:,} atoms that {done + 1:,} of {len(rules):,} counted rules conclude"
            store.ceiling.check(entries * BYTES_OF_ENTRY, what=what, hints=FEWER_RULES)
        codes, counts = map(np.concatenate, zip(*found, strict=True))
        yield codes, counts, through


def _through_grounded(store: Store, rule: Rule, atoms: np.ndarray, pattern: QueryPattern) -> _Through:
    """By the ground rules one by one: body atoms of the head's predicate that lie in the head's row."""
    head = atoms[:, rule.head_positions[0]]
    name = rule.atoms[rule.head_positions[0]].predicate
    known = store.knowledge.known_codes(store.language.predicate(name), True)
    pairs = []
    for literal in rule.body:
        if literal.positive and rule.atoms[literal.position].predicate == name:
            fact = atoms[:, literal.position]
            in_row = pattern.located(fact)[0] == pattern.located(head)[0]
            pairs.append(np.stack([np.searchsorted(known, fact[in_row]), np.flatnonzero(in_row)]))
    found = np.unique(np.concatenate([np.zeros((2, 0), np.int64), *pairs], axis=1), axis=1)  # a ground rule once a fact
    through, counts = np.unique(np.stack([found[0], head[found[1]]]), axis=1, return_counts=True)
    return through[0], through[1], counts
