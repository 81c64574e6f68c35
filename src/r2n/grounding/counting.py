"""Rules -> numbers of ground rules: n_j(a), how many ground rules of rule j with a known body conclude atom a.

Where a network reads of a ground rule only that its body is known, all ground rules of a rule that conclude an atom are
alike: their number is all there is to know. Chains are counted by products of sparse matrices, in parts, other rules by
grounding them one at a time, each once. No ground rule is kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int64
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
BYTES_OF_PRODUCT = 256  # of an entry of a product of matrices: four copies of it, and a quarter of what may be taken

_Through = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Facts by number, atoms of their row, and the ground rules from the one to the other."""


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
    entries: Int64[np.ndarray, " _"]
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
        side = self.side(predicate, position)
        name = self.base.language.predicates[predicate].name
        concluding = [j for j, rule in enumerate(self.rules) if rule.atoms[rule.head_positions[0]].predicate == name]
        concluding = [j for j in concluding if self.starts[j] < self.starts[j + 1] and _in_body(self.rules[j], name)]
        found = [self._through(j, side.side) for j in concluding]
        fact, code, rule, count = (
            np.concatenate([np.zeros(0, np.int64), *(part[i] for part in found)]) for i in range(4)
        )
        entry = self._entries(code, rule)
        begin = int(np.searchsorted(self.codes, self.base.offsets[predicate]))
        inverse = np.empty(len(side.order), np.int64)
        inverse[side.order] = np.arange(len(side.order))
        order = np.argsort(fact, kind="stable")
        known = self.store.knowledge.known_codes(self.base.language.predicates[predicate], True)
        starts = np.searchsorted(fact[order], np.arange(len(known) + 1))
        return LeftOut(starts, inverse[entry[order] - begin], count[order])

    def _entries(self, codes: Codes, rules: np.ndarray) -> np.ndarray:
        """The entry of each atom and rule; every one is there."""
        entries = np.empty(len(codes), np.int64)
        for j in np.unique(rules):
            own = self.codes[self.inverse[self.starts[j] : self.starts[j + 1]]]
            which = rules == j
            entries[which] = self.inverse[self.starts[j] + np.searchsorted(own, codes[which])]
        return entries

    def _through(self, j: int, side: Side) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Facts by number, atoms of their row, the rule, and its ground rules from the one to the other."""
        chain = as_chain(self.store.knowledge, self.rules[j])
        if chain is None:
            found = self.grounded[j][side.position]
        else:
            found = _through_chain(self._matrices, chain if side.position == 1 else chain.turned(), side)
        return found[0], found[1], np.full(len(found[0]), j), found[2]

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
            found = _count_of_grounded(store, rule, grounder)
        else:
            found = _coded(store.base, chain, matrices.counts(chain))
        entries += len(found.codes)
        what = f"{entries:,} atoms that {done + 1:,} of {len(rules):,} counted rules conclude"
        ways_out = ["take fewer rules: r2n mine --max-rules, or a higher --min-support"]
        store.ceiling.check(entries * BYTES_OF_ENTRY, what=what, ways_out=ways_out)
        yield found


def _count_of_grounded(store: Store, rule: Rule, grounder: KnownBodyGrounder) -> _RuleCount:
    atoms, head = grounder.ground_rule(store, rule).atoms, rule.atoms[rule.head_positions[0]]
    codes, counts = np.unique(atoms[:, rule.head_positions[0]], return_counts=True)
    if not _in_body(rule, head.predicate):
        return _RuleCount(codes, counts)
    predicate = store.language.predicate_index(head.predicate)
    sides = [Side.of(store.base, predicate, position) for position in range(len(head.terms))]
    return _RuleCount(codes, counts, tuple(_through_grounded(store, rule, atoms, side) for side in sides))


def _coded(base: HerbrandBase, chain: Chain, pairs: csr_array) -> _RuleCount:
    predicate = base.language.predicate(chain.head)
    codes = base.encode_columns(predicate, [row_of_entries(pairs).astype(np.int64), pairs.indices.astype(np.int64)])
    inside = codes >= 0
    return _RuleCount(codes[inside], pairs.data[inside])


def _through_chain(matrices: StepMatrices, chain: Chain, side: Side) -> _Through:
    base = matrices.knowledge.base
    found = matrices.through(chain)
    fact, constants = row_of_entries(found).astype(np.int64), found.indices.astype(np.int64)
    columns = [column[fact] for column in matrices.pairs(chain.head)]
    columns[side.position] = constants
    codes = base.encode_columns(base.language.predicate(chain.head), columns)
    inside = codes >= 0
    return fact[inside], codes[inside], found.data[inside]


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
