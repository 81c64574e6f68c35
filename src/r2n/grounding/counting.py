"""Counts of the ground rules of each rule that conclude an atom, without the ground rules themselves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float64, Int, Int64
from scipy.sparse import csr_array

from r2n.data.herbrand import Codes, HerbrandBase, RowIndex, Side
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.store import Store
from r2n.grounding.substitutions import MAX_GROUNDINGS
from r2n.logic.formula import Atom, Variable
from r2n.logic.theory import Rule
from r2n.progress import Progress, no_progress

_NOTHING = np.zeros(0, np.int64)
MOST_STEPS_DISTINCT = 3
"""Steps of a path whose constants are distinct: beyond it, the walks to take away again are too many kinds."""


def path_counts(steps: Sequence[csr_array], distinct: bool) -> csr_array:
    """For each pair (x, y), how many paths x - z_1 - ... - y there are; `distinct`: over distinct constants only.

    `steps` holds a matrix (constants, constants) a step: the i-th is not zero at (a, b) where its predicate, read in
    its direction, leads from a to b. The counts, int64, have sorted indices and no stored zero. A first step of which
    only some rows are filled gives the counts of these rows: they depend on no other row of it.
    """
    if not steps:
        raise ValueError("a path has at least one step")
    if distinct and len(steps) > MOST_STEPS_DISTINCT:
        raise ValueError(f"paths over distinct constants have at most {MOST_STEPS_DISTINCT} steps, not {len(steps)}")
    counts = [csr_array(step, dtype=np.int64) for step in steps]
    if not distinct:
        found = counts[0]
        for step in counts[1:]:
            found = csr_array(found @ step)
        return _tidy(found.copy())
    return _tidy(_distinct_counts([without_diagonal(step) for step in counts]))


def path_counts_in_parts(steps: Sequence[csr_array], distinct: bool, most: int) -> Iterator[tuple[int, csr_array]]:
    """The same, for so many rows at a time that about `most` entries are made between, in the rows of one at least.

    Each part comes with the number of its first row.
    """
    for start, end in row_parts(reached_from(steps), most):
        yield start, path_counts([_only_rows(csr_array(steps[0]), start, end), *steps[1:]], distinct)[start:end]


def reached_from(steps: Sequence[csr_array]) -> np.ndarray:
    """For each constant, at most how many entries the products of the first 1, 2, ... steps have in its row."""
    size = len(steps[0].indptr) - 1
    total = np.zeros(size)
    for last in range(len(steps)):
        walks = np.diff(steps[last].indptr).astype(np.float64)
        for step in reversed(steps[:last]):
            walks = (step != 0) @ walks
        total += np.minimum(walks, size)
    return total


def row_parts(entries: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Rows, from the first to before the last, in parts of about `most` entries; no part where there is no row."""
    cuts = np.flatnonzero(np.diff(np.cumsum(entries) // max(1, most))) + 1
    bounds = [0, *cuts.tolist(), len(entries)]
    return list(pairwise(bounds))


def _only_rows(matrix: csr_array, start: int, end: int) -> csr_array:
    """The matrix with these rows alone filled."""
    first, last = int(matrix.indptr[start]), int(matrix.indptr[end])
    starts = np.clip(matrix.indptr, first, last) - first
    return csr_array((matrix.data[first:last], matrix.indices[first:last], starts), shape=matrix.shape)


def _distinct_counts(steps: Sequence[csr_array]) -> csr_array:
    """Paths over distinct constants, of steps without diagonals.

    Two steps A1, A2: the product without its diagonal (x != y). Three steps: (A1 A2 without its diagonal) A3 leaves
    x, z_1, z_2 and z_2, y distinct; the walks with z_1 = y, x != z_2 are taken away again: A1 D(A2 A3), less those
    with x = z_2, which are A1 * A2' * A3 elementwise; D(.) is the diagonal. At last x != y.
    """
    if len(steps) == 1:
        return steps[0]
    found = without_diagonal(csr_array(steps[0] @ steps[1]))
    if len(steps) == MOST_STEPS_DISTINCT:
        found = without_diagonal(csr_array(found @ steps[2] - returns_to_first_step(*steps)))
    return found


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
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=len(matrix.indptr) - 1))])
    return csr_array((matrix.data[kept], matrix.indices[kept], starts), shape=matrix.shape)


def row_of_entries(matrix: csr_array) -> np.ndarray:
    """The row of every stored entry, in the order of `matrix.indices`."""
    return np.repeat(np.arange(len(matrix.indptr) - 1, dtype=matrix.indices.dtype), np.diff(matrix.indptr))


def _tidy(matrix: csr_array) -> csr_array:
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


MOST_ENTRIES = 2**23  # of products at a time: about half a gigabyte

Pairs = tuple[np.ndarray, np.ndarray]
"""Two columns of constants (ids), one pair a fact."""


@dataclass(frozen=True, slots=True)
class ChainStep:
    """A body atom between two neighbours of a chain, read from the one to the other."""

    predicate: str
    forward: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """A rule head(x, y) <- a chain of binary atoms from x to y; `distinct`: all its variables differ by guards.

    `is_reversed`: its first constant is the head's second.
    """

    head: str
    steps: tuple[ChainStep, ...]
    distinct: bool
    is_reversed: bool = False

    def backwards(self) -> "Chain":
        """The chain from y to x."""
        steps = tuple(ChainStep(step.predicate, not step.forward) for step in reversed(self.steps))
        return Chain(self.head, steps, self.distinct, not self.is_reversed)


def as_chain(knowledge: KnowledgeBase, rule: Rule) -> Chain | None:
    """The rule as a chain, where it is one: over binary atoms of variables, each held to its predicates' domains."""
    if not rule.body or len(rule.head_positions) != 1 or not all(literal.positive for literal in rule.body):
        return None
    head, body = rule.atoms[rule.head_positions[0]], [rule.atoms[literal.position] for literal in rule.body]
    ends, domains = _pair(head), dict(zip(rule.variables, knowledge.theory.variable_domains(rule), strict=True))
    is_free = all(  # no variable is held to less than the domains of its positions
        domains[term.name] == domain
        for atom in rule.atoms
        for term, domain in zip(atom.terms, knowledge.language.predicate(atom.predicate).domains, strict=True)
        if isinstance(term, Variable)
    )
    if ends is None or any(_pair(atom) is None for atom in body) or not is_free:
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

    @classmethod
    def within(cls, store: Store) -> "StepMatrices":
        """Products in parts that fit under the memory limit of a store."""
        return cls(store.knowledge, store.ceiling.fitting(BYTES_OF_PRODUCT, MOST_ENTRIES))

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
        atom that is f with c in place of its last constant (of its first one, where the chain is `is_reversed`).

        Shape (facts of the head, constants), a row a fact in the order of their codes, in parts, each with the number
        of its first fact.
        """
        starts, ends = self.pairs(chain.head)[:: -1 if chain.is_reversed else 1]
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
    if chain.steps[0] != ChainStep(chain.head, not chain.is_reversed) or len(matrices) == 1:
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
            is_onward = step.forward != chain.is_reversed
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


BYTES_OF_ENTRY = 160  # of a count: code, rule, number, where it stands; and the same by row for both positions
BYTES_OF_LEFT_OUT = 28  # of a count that is less while a fact is asked: fact, entry, number; and the last two in order
BYTES_OF_PRODUCT = 256  # of an entry of a product of matrices: four copies of it, and a quarter of what may be taken

FEWER_RULES = ("take fewer rules: r2n mine --max-rules, or a higher --min-support",)

_Through = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Facts by number, atoms (or entries) of their row, and the ground rules from the one to the other."""


def is_counted(rule: Rule) -> bool:
    """Whether a rule's ground rules can be counted: one that concludes one atom from a conjunction."""
    return rule.concludes_one_atom


def split_rules(knowledge: KnowledgeBase) -> tuple[KnowledgeBase, tuple[Rule, ...]]:
    """What is known with the rules that cannot be counted alone, and those that can."""
    theory = knowledge.theory
    others = tuple(rule for rule in theory.rules if not is_counted(rule))
    return replace(knowledge, theory=replace(theory, rules=others)), tuple(filter(is_counted, theory.rules))


@dataclass(frozen=True, eq=False)
class SideCounts:
    """The counts of one side, by row (`index`) and place.

    `order` holds where each entry stands among all entries of the predicate.
    """

    side: Side
    index: RowIndex
    places: Int64[np.ndarray, " entries"]
    rules: Int64[np.ndarray, " entries"]
    counts: Int64[np.ndarray, " entries"]
    is_fact: Bool[np.ndarray, " entries"]
    order: Int64[np.ndarray, " entries"]


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What is not counted while a fact is asked: the ground rules of its row that have the fact itself in their body.

    For the fact of number i among its predicate's, entries `entries[starts[i]:starts[i + 1]]` of the side's counts
    are less by `counts`.
    """

    starts: Int64[np.ndarray, " _"]
    entries: Int[np.ndarray, " _"]
    counts: Int64[np.ndarray, " _"]


@dataclass(frozen=True, eq=False)
class _RuleCount:
    """One rule: the codes (ascending) of what it concludes, with their numbers.

    Of one that was grounded, `through` holds for each position asked what is left out while a fact is asked.
    """

    codes: Codes
    counts: Int64[np.ndarray, " _"]
    through: tuple[_Through, ...] = ()


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
    _sides: dict[tuple[int, int], SideCounts] = field(default_factory=dict)
    _left_out: dict[tuple[int, int], LeftOut] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        store: Store,
        rules: Sequence[Rule],
        progress: Progress = no_progress,
        *,
        max_groundings: int = MAX_GROUNDINGS,
    ) -> "RuleCounts":
        """Count the ground rules of some rules in what is known; `max_groundings` of one that is no chain."""
        found = list(_counted(store, rules, KnownBodyGrounder(max_groundings), progress))
        codes = np.concatenate([np.zeros(0, np.int64), *(part.codes for part in found)])
        sizes = np.array([len(part.codes) for part in found], np.int64)
        order = np.argsort(codes, kind="stable")
        inverse = np.empty(len(order), np.int64)
        inverse[order] = np.arange(len(order))
        rule = np.repeat(np.arange(len(found)), sizes)[order]
        counts = np.concatenate([np.zeros(0, np.int64), *(part.counts for part in found)])[order]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        grounded = {j: part.through for j, part in enumerate(found) if part.through}
        return cls(store, tuple(rules), codes[order], rule, counts, inverse, starts, grounded)

    @property
    def base(self) -> HerbrandBase:
        """The Herbrand base of the atoms."""
        return self.store.base

    @cached_property
    def is_fact(self) -> Bool[np.ndarray, " entries"]:
        """Whether each entry's atom is known to be true."""
        return holds(self.store.knowledge.evidence, self.codes)

    @cached_property
    def confidences(self) -> Float64[np.ndarray, " rules"]:
        """The share of true atoms among those that each rule concludes, less where these are few."""
        concluded = np.bincount(self.rule, minlength=len(self.rules))
        return (np.bincount(self.rule, self.is_fact, minlength=len(self.rules)) + 0.1) / (concluded + 5.0)

    def side(self, predicate: int, position: int) -> SideCounts:
        """The counts of one side, made once."""
        if (predicate, position) in self._sides:
            return self._sides[predicate, position]
        side = Side.of(self.base, predicate, position)
        part = slice(*np.searchsorted(self.codes, self.base.offsets[side.predicate : side.predicate + 2]))
        rows, places = side.located(self.codes[part])
        order = np.argsort(rows, kind="stable")  # places ascend within a row already
        found = self._sides[predicate, position] = SideCounts(
            side,
            RowIndex.of(rows[order]),
            places[order],
            self.rule[part][order],
            self.counts[part][order],
            self.is_fact[part][order],
            order,
        )
        return found

    def left_out(self, predicate: int, position: int) -> LeftOut:
        """Leave-one-out: for each fact of a predicate, by number, what is not counted while it is asked at a position.

        The rest is exactly what grounding without the fact would count for its row.
        """
        if (predicate, position) not in self._left_out:
            self._left_out[predicate, position] = self._found_left_out(self.side(predicate, position))
        return self._left_out[predicate, position]

    def _found_left_out(self, side: SideCounts) -> LeftOut:
        predicate = self.base.language.predicates[side.side.predicate]
        facts = len(self.store.knowledge.known_codes(predicate, True))
        sizes, parts = np.zeros(facts, np.int64), list[_Through]()
        left_out = sum(len(part.entries) for part in self._left_out.values())
        for fact, entry, count in self._through(side):
            parts.append((fact, entry, count))
            sizes[fact[0] : fact[-1] + 1] += np.bincount(fact - fact[0])
            left_out += len(fact)
            what = f"what is left out of {len(self.codes):,} counts while a fact is asked, {left_out:,} numbers so far,"
            needed = len(self.codes) * BYTES_OF_ENTRY + left_out * BYTES_OF_LEFT_OUT
            self.store.ceiling.check(needed, what=what, ways_out=FEWER_RULES)
        starts = np.append(0, np.cumsum(sizes))
        entries, counts = np.empty(starts[-1], _smallest(len(side.order))), np.empty(starts[-1], np.int64)
        free = starts[:-1].copy()  # where the next one of each fact goes
        for fact, entry, count in parts:
            number = np.bincount(fact - fact[0])
            own = free[fact[0] : fact[-1] + 1]
            place = (own - (np.cumsum(number) - number))[fact - fact[0]] + np.arange(len(fact))
            entries[place], counts[place] = entry, count
            own += number
        return LeftOut(starts, entries, counts)

    def _through(self, side: SideCounts) -> Iterator[_Through]:
        """Facts by number (ascending), entries of their row, and the ground rules from the one to the other."""
        name = self.base.language.predicates[side.side.predicate].name
        begin = int(np.searchsorted(self.codes, side.side.bounds[0]))
        place = np.empty(len(side.order), _smallest(len(side.order)))
        place[side.order] = np.arange(len(side.order))
        for j, rule in enumerate(self.rules):
            own = self.inverse[self.starts[j] : self.starts[j + 1]]
            if not len(own) or rule.atoms[rule.head_positions[0]].predicate != name or not _in_body(rule, name):
                continue
            codes, chain = self.codes[own], as_chain(self.store.knowledge, rule)
            if chain is None:
                found = iter([self.grounded[j][side.side.position]])
            else:
                directed = chain if side.side.position == 1 else chain.backwards()
                found = _through_chain(self._matrices, directed, side.side)
            for fact, code, count in (part for part in found if len(part[0])):
                yield fact.astype(place.dtype), place[own[np.searchsorted(codes, code)] - begin], count

    @cached_property
    def _matrices(self) -> StepMatrices:
        return StepMatrices.within(self.store)


def holds(evidence: Evidence, codes: Codes) -> Bool[np.ndarray, " _"]:
    """Whether each atom is known to be true."""
    true = evidence.atoms[evidence.truth]
    place = np.searchsorted(true, codes)
    found = place < len(true)
    found[found] = true[place[found]] == codes[found]
    return found


def _smallest(count: int) -> type[np.integer]:
    """The type of integers that can number so many things in as little memory as there is."""
    return np.int32 if count < 2**31 else np.int64


def _in_body(rule: Rule, predicate: str) -> bool:
    return any(rule.atoms[literal.position].predicate == predicate for literal in rule.body)


def _counted(
    store: Store, rules: Sequence[Rule], grounder: KnownBodyGrounder, progress: Progress
) -> Iterator[_RuleCount]:
    """The counts of each rule; refused where those of all rules so far need more than the ceiling of the store."""
    matrices, entries = StepMatrices.within(store), 0
    for done, rule in enumerate(rules):
        progress("count", done, len(rules))
        chain = as_chain(store.knowledge, rule)
        if chain is None:
            parts = iter([_count_of_grounded(store, rule, grounder)])
        else:
            parts = (_coded(store.base, chain, *part) for part in matrices.counts(chain))
        found: list[_RuleCount] = []
        for part in parts:
            found.append(part)
            entries += len(part.codes)
            what = f"{entries:,} atoms that {done + 1:,} of {len(rules):,} counted rules conclude"
            store.ceiling.check(entries * BYTES_OF_ENTRY, what=what, ways_out=FEWER_RULES)
        if len(found) == 1:
            yield found[0]
        else:  # the parts of a chain, whose codes ascend from each to the next
            codes = np.concatenate([_NOTHING, *(part.codes for part in found)])
            yield _RuleCount(codes, np.concatenate([_NOTHING, *(part.counts for part in found)]))


def _count_of_grounded(store: Store, rule: Rule, grounder: KnownBodyGrounder) -> _RuleCount:
    atoms, head = grounder.ground_rule(store, rule).atoms, rule.atoms[rule.head_positions[0]]
    codes, counts = np.unique(atoms[:, rule.head_positions[0]], return_counts=True)
    if not _in_body(rule, head.predicate):
        return _RuleCount(codes, counts)
    predicate = store.language.predicate_index(head.predicate)
    sides = [Side.of(store.base, predicate, position) for position in range(len(head.terms))]
    return _RuleCount(codes, counts, tuple(_through_grounded(store, rule, atoms, side) for side in sides))


def _coded(base: HerbrandBase, chain: Chain, first: int, pairs: csr_array) -> _RuleCount:
    predicate = base.language.predicate(chain.head)
    rows = row_of_entries(pairs).astype(np.int64) + first
    codes = base.encode_columns(predicate, [rows, pairs.indices.astype(np.int64)])
    inside = codes >= 0
    return _RuleCount(codes[inside], pairs.data[inside])


def _through_chain(matrices: StepMatrices, chain: Chain, side: Side) -> Iterator[_Through]:
    base, pairs = matrices.knowledge.base, matrices.pairs(chain.head)
    for first, found in matrices.through(chain):
        fact = row_of_entries(found).astype(np.int64) + first
        columns = [column[fact] for column in pairs]
        columns[side.position] = found.indices.astype(np.int64)
        codes = base.encode_columns(base.language.predicate(chain.head), columns)
        inside = codes >= 0
        yield fact[inside], codes[inside], found.data[inside]


def _through_grounded(store: Store, rule: Rule, atoms: np.ndarray, side: Side) -> _Through:
    """By the ground rules one by one: body atoms of the head's predicate that lie in the head's row."""
    head = atoms[:, rule.head_positions[0]]
    name = rule.atoms[rule.head_positions[0]].predicate
    known = store.knowledge.known_codes(store.language.predicate(name), True)
    pairs = []
    for literal in rule.body:
        if literal.positive and rule.atoms[literal.position].predicate == name:
            fact = atoms[:, literal.position]
            in_row = side.located(fact)[0] == side.located(head)[0]
            pairs.append(np.stack([np.searchsorted(known, fact[in_row]), np.flatnonzero(in_row)]))
    found = np.unique(np.concatenate([np.zeros((2, 0), np.int64), *pairs], axis=1), axis=1)  # a ground rule once a fact
    through, counts = np.unique(np.stack([found[0], head[found[1]]]), axis=1, return_counts=True)
    return through[0], through[1], counts
