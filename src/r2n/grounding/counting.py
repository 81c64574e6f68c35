"""Rules -> numbers of ground rules: n_j(a), how many ground rules of rule j with a known body conclude atom a.

Where a network reads of a ground rule only that its body is known, all ground rules of a rule that conclude an atom are
alike: their number is all there is to know. Chains are counted by products of sparse matrices, in parts, other rules by
grounding them one at a time, each once. No ground rule is kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int, Int64
from scipy.sparse import csr_array

from r2n.grounding.chains import MOST_ENTRIES, Chain, StepMatrices, as_chain
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.path_counts import row_of_entries
from r2n.grounding.store import Store
from r2n.grounding.substitutions import MAX_GROUNDINGS
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import Evidence, KnowledgeBase
from r2n.knowledge.sides import RowIndex, Side
from r2n.logic.theory import Rule
from r2n.progress import Progress, no_progress

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
        if (predicate, position) not in self._sides:
            self._sides[predicate, position] = self._made(Side.of(self.base, predicate, position))
        return self._sides[predicate, position]

    def _made(self, side: Side) -> SideCounts:
        part = slice(*np.searchsorted(self.codes, self.base.offsets[side.predicate : side.predicate + 2]))
        rows, places = side.located(self.codes[part])
        order = np.argsort(rows, kind="stable")  # places ascend within a row already
        return SideCounts(
            side,
            RowIndex.of(rows[order]),
            places[order],
            self.rule[part][order],
            self.counts[part][order],
            self.is_fact[part][order],
            order,
        )

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
                turned = chain if side.side.position == 1 else chain.turned()
                found = _through_chain(self._matrices, turned, side.side)
            for fact, code, count in (part for part in found if len(part[0])):
                yield fact.astype(place.dtype), place[own[np.searchsorted(codes, code)] - begin], count

    @cached_property
    def _matrices(self) -> StepMatrices:
        return _matrices(self.store)


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


def _matrices(store: Store) -> StepMatrices:
    return StepMatrices(store.knowledge, store.ceiling.fitting(BYTES_OF_PRODUCT, MOST_ENTRIES))


def _counted(
    store: Store, rules: Sequence[Rule], grounder: KnownBodyGrounder, progress: Progress
) -> Iterator[_RuleCount]:
    """The counts of each rule; refused where those of all rules so far need more than the ceiling of the store."""
    matrices, entries = _matrices(store), 0
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
        yield found[0] if len(found) == 1 else _joined(found)


def _joined(parts: Sequence[_RuleCount]) -> _RuleCount:
    """The parts of a chain, whose codes ascend from each to the next."""
    nothing = np.zeros(0, np.int64)
    codes, counts = ([part.codes for part in parts], [part.counts for part in parts])
    return _RuleCount(np.concatenate([nothing, *codes]), np.concatenate([nothing, *counts]))


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
            beside = side.located(fact)[0] == side.located(head)[0]
            pairs.append(np.stack([np.searchsorted(known, fact[beside]), np.flatnonzero(beside)]))
    found = np.unique(np.concatenate([np.zeros((2, 0), np.int64), *pairs], axis=1), axis=1)  # a ground rule once a fact
    through, counts = np.unique(np.stack([found[0], head[found[1]]]), axis=1, return_counts=True)
    return through[0], through[1], counts
