"""The graph that rules are mined from: every binary predicate, read in both directions, as steps between constants."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int64
from scipy.sparse import csr_array, vstack

from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import DataError
from r2n.grounding.counting import row_of_entries
from r2n.logic.language import Domain, Language, Predicate


@dataclass(frozen=True, eq=False)
class FactsByPair:
    """Which predicates hold between two constants: their indices, gathered by the pair's key x * constants + y."""

    keys: Int64[np.ndarray, " pairs"]
    starts: Int64[np.ndarray, " pairs_and_1"]
    predicates: Int64[np.ndarray, " facts"]

    @classmethod
    def of(cls, keys: Int64[np.ndarray, " facts"], predicates: Int64[np.ndarray, " facts"]) -> "FactsByPair":
        """Of facts in any order."""
        order = np.argsort(keys, kind="stable")
        distinct, starts = np.unique(keys[order], return_index=True)
        return cls(distinct, np.append(starts, len(keys)), predicates[order])

    def among(
        self, keys: Int64[np.ndarray, " asked"]
    ) -> tuple[Int64[np.ndarray, " found"], Int64[np.ndarray, " found"]]:
        """The facts between the asked pairs: for each the place of its pair among the keys, and its predicate."""
        if not len(self.keys):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        hits = np.flatnonzero(self.keys[place] == keys)
        first = self.starts[place[hits]]
        number = self.starts[place[hits] + 1] - first
        within = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
        return np.repeat(hits, number), self.predicates[np.repeat(first, number) + within]


@dataclass(frozen=True, eq=False)
class StepGraph:
    """The true facts of the binary predicates as directed steps between constants (by id); loops are left out.

    Step 2i leads from x to y where the i-th predicate holds of (x, y), step 2i + 1 from y to x. `steps` are matrices
    (constants, constants) of ones. `known_first` (predicates, constants) is 1 where p(x, .) is known for some second
    constant, a loop included.
    """

    language: Language
    predicates: tuple[Predicate, ...]
    steps: tuple[csr_array, ...]
    known_first: csr_array
    facts: FactsByPair

    @classmethod
    def of(cls, knowledge: KnowledgeBase) -> "StepGraph":
        """Of the evidence of a knowledge base, never of queries."""
        language = knowledge.language
        predicates = binary_predicates(knowledge)
        constants = len(language.constants)
        facts = [knowledge.facts(predicate) for predicate in predicates]
        if not any(map(len, facts)):
            raise DataError(
                "there is no true fact of a binary predicate to mine", hint="give the problem facts: [facts] train ="
            )
        apart = [rows[rows[:, 0] != rows[:, 1]] for rows in facts]
        steps = [
            _ones(rows[:, start], rows[:, 1 - start], (constants, constants)) for rows in apart for start in (0, 1)
        ]
        known = [_ones(np.zeros_like(rows[:, 0]), rows[:, 0], (1, constants)) for rows in facts]
        keys = np.concatenate([rows[:, 0] * constants + rows[:, 1] for rows in apart])
        index = np.repeat(np.arange(len(apart)), [len(rows) for rows in apart])
        return cls(language, predicates, tuple(steps), csr_array(vstack(known)), FactsByPair.of(keys, index))

    @property
    def constants(self) -> int:
        """The number of constants of the language."""
        return len(self.language.constants)

    @cached_property
    def edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All steps as columns: from x, which step, to c."""
        step = np.repeat(np.arange(len(self.steps)), [matrix.nnz for matrix in self.steps])
        x = np.concatenate([row_of_entries(matrix) for matrix in self.steps]).astype(np.int64)
        return x, step, np.concatenate([matrix.indices for matrix in self.steps]).astype(np.int64)

    @cached_property
    def leaving(self) -> csr_array:
        """How many ways each step leads out of each constant: (steps, constants)."""
        return csr_array(vstack([csr_array(np.diff(step.indptr)[None, :]) for step in self.steps]))

    @cached_property
    def inside(self) -> dict[Domain, Bool[np.ndarray, " constants"]]:
        """For each domain of a binary predicate, which constants are in it."""
        found: dict[Domain, np.ndarray] = {}
        for domain in dict.fromkeys(domain for predicate in self.predicates for domain in predicate.domains):
            found[domain] = np.zeros(self.constants, bool)
            found[domain][self.language.members(domain)] = True
        return found

    @cached_property
    def concluded(self) -> Bool[np.ndarray, " predicates"]:
        """Which predicates rules may conclude: of a closed one all is known already."""
        return np.array([not predicate.closed for predicate in self.predicates], bool)


def binary_predicates(knowledge: KnowledgeBase) -> tuple[Predicate, ...]:
    """Those that can be mined; reciprocals say nothing of their own."""
    found = tuple(p for p in knowledge.language.predicates if p.arity == 2 and p.reciprocal_of is None)
    if not found:
        raise DataError(
            "the problem has no binary predicate, and rules are mined from facts p(x, y)",
            hint="give it facts of predicates with two positions",
        )
    return found


def _ones(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> csr_array:
    """A matrix that is 1 at these places, however often they are given."""
    matrix = csr_array((np.ones(len(rows), np.int64), (rows, columns)), shape=shape)
    matrix.data[:] = 1
    return matrix
