"""Facts -> sets of constants that rules with constants compare: what leads to one constant by one step."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int64
from scipy.sparse import csr_array

from r2n.grounding.counting import row_of_entries
from r2n.mining.step_graph import StepGraph


@dataclass(frozen=True, eq=False)
class Tally:
    """How often each key occurs, 0 for those that never do."""

    keys: Int64[np.ndarray, " keys"]
    counts: Int64[np.ndarray, " keys"]

    @classmethod
    def of(cls, keys: np.ndarray) -> "Tally":
        """Of keys as they occur."""
        return cls(*np.unique(keys, return_counts=True))

    @classmethod
    def of_matrix(cls, matrix: csr_array, width: int) -> "Tally":
        """Of entries, the key of an entry being row * width + column."""
        matrix = matrix.sorted_indices()
        return cls(row_of_entries(matrix).astype(np.int64) * width + matrix.indices, matrix.data)

    def at(self, keys: np.ndarray) -> np.ndarray:
        """The counts of some keys; same shape."""
        if not len(self.keys):
            return np.zeros(keys.shape, np.int64)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.counts[place], 0)


@dataclass(frozen=True, eq=False)
class Ends:
    """The sets {x: a step leads from x to c} that have enough members: {x: p(x, c)} and {y: p(c, y)}.

    Each is an end: a `step` and a `constant`; `members` (ends, constants) is 1 where x is in it. No c is
    in its own set.
    """

    graph: StepGraph
    step: Int64[np.ndarray, " ends"]
    constant: Int64[np.ndarray, " ends"]
    members: csr_array

    @classmethod
    def of(cls, graph: StepGraph, least: int) -> "Ends":
        """Those with at least so many members."""
        x, step, c = edges(graph)
        keys, end, sizes = np.unique(step * graph.constants + c, return_inverse=True, return_counts=True)
        kept = sizes >= least
        number = np.cumsum(kept) - 1
        entries = kept[end]
        members = csr_array(
            (np.ones(int(entries.sum()), np.int64), (number[end[entries]], x[entries])),
            shape=(int(kept.sum()), graph.constants),
        )
        return cls(graph, *np.divmod(keys[kept], graph.constants), members)

    def __len__(self) -> int:
        """The number of ends."""
        return len(self.step)

    def find(self, step: np.ndarray, constant: np.ndarray) -> np.ndarray:
        """The number of each end, -1 where it has too few members."""
        keys, wanted = self.step * self.graph.constants + self.constant, step * self.graph.constants + constant
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, place, -1)

    @cached_property
    def is_concluded(self) -> Bool[np.ndarray, " ends"]:
        """Whether rules may conclude it as a head."""
        return self.graph.concluded[self.step // 2]

    @cached_property
    def _edges(self) -> Tally:
        x, step, c = edges(self.graph)
        return Tally.of((x * len(self.graph.steps) + step) * self.graph.constants + c)

    def holds(self, end: np.ndarray, constant: np.ndarray) -> np.ndarray:
        """Whether each constant is a member of each end; bool, same shape."""
        steps = constant * len(self.graph.steps) + self.step[end]
        return self._edges.at(steps * self.graph.constants + self.constant[end]) > 0

    def known_first(self, predicate: np.ndarray, constant: np.ndarray) -> np.ndarray:
        """Whether each predicate has a known fact with this first constant; bool, same shape."""
        return self._known.at(predicate * self.graph.constants + constant) > 0

    @cached_property
    def _known(self) -> Tally:
        return Tally.of_matrix(self.graph.known_first, self.graph.constants)

    @cached_property
    def inside(self) -> Bool[np.ndarray, "domains constants"]:
        """Which constants are in each domain of `graph.inside`, in its order."""
        return np.array(list(self.graph.inside.values()))

    @cached_property
    def domain(self) -> Int64[np.ndarray, " ends"]:
        """The domain that its x runs over in an atom, by its number in `graph.inside`."""
        number = {domain: i for i, domain in enumerate(self.graph.inside)}
        of_step = [number[domain] for predicate in self.graph.predicates for domain in predicate.domains]
        return np.array(of_step, np.int64)[self.step]


def edges(graph: StepGraph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All steps as columns: from x, which step, to c."""
    step = np.repeat(np.arange(len(graph.steps)), [matrix.nnz for matrix in graph.steps])
    x = np.concatenate([row_of_entries(matrix) for matrix in graph.steps]).astype(np.int64)
    return x, step, np.concatenate([matrix.indices for matrix in graph.steps]).astype(np.int64)
