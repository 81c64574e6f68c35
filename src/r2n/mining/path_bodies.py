"""Facts -> bodies of rules: every path of steps from x to y, with the pairs that it reaches over distinct constants."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64
from scipy.sparse import csr_array

from r2n.grounding.counting import returns_to_first_step, row_of_entries, without_diagonal
from r2n.mining.step_graph import StepGraph

MOST_STEPS = 3


@dataclass(frozen=True, eq=False)
class PathBody:
    """A path of steps, and how many ways it leads from x to y over distinct constants.

    `counts` (constants, constants) is off the diagonal and may store zeros. It is filled for the `counted_from`
    constants only (their ids), of the `first_constants` many that the first step leaves.
    """

    steps: tuple[int, ...]
    counts: csr_array
    counted_from: Int64[np.ndarray, " counted"]
    first_constants: int

    @property
    def is_sampled(self) -> bool:
        """Whether only a sample of the first constants was counted from."""
        return len(self.counted_from) < self.first_constants

    def pairs(self) -> tuple[Int64[np.ndarray, " pairs"], Int64[np.ndarray, " pairs"]]:
        """The distinct pairs (x, y) that are reached, as two columns."""
        reached = self.counts.data > 0
        x, y = row_of_entries(self.counts)[reached], self.counts.indices[reached]
        return x.astype(np.int64), y.astype(np.int64)


@dataclass(frozen=True)
class PathWalker:
    """Paths of a graph; those of more than `most_walks` walks are counted from a random sample of first constants."""

    graph: StepGraph
    most_walks: int
    seed: int = 0

    def single(self, step: int) -> PathBody:
        """The path of one step."""
        matrix = self.graph.steps[step]
        first = np.flatnonzero(np.diff(matrix.indptr))
        return PathBody((step,), matrix, first, len(first))

    def extended(self, prefix: PathBody) -> Iterator[PathBody]:
        """The paths of one step more that are walked at all; the prefix has one step or two."""
        walks = np.asarray(self.graph.leaving @ prefix.counts.sum(axis=0))
        for last in np.flatnonzero(walks).tolist():
            share = self.most_walks / int(walks[last])
            steps = (*prefix.steps, last)
            yield self._extended_by(prefix if share >= 1 else self._sampled(prefix, steps, share), last)

    def _extended_by(self, prefix: PathBody, last: int) -> PathBody:
        steps, matrix = (*prefix.steps, last), self.graph.steps[last]
        counts = csr_array(prefix.counts @ matrix)
        if len(steps) == MOST_STEPS:
            first, second = (self.graph.steps[step] for step in prefix.steps)
            if prefix.is_sampled:
                first = _with_rows(first, prefix.counted_from)
            counts = csr_array(counts - returns_to_first_step(first, second, matrix))
        return PathBody(steps, without_diagonal(counts), prefix.counted_from, prefix.first_constants)

    def _sampled(self, prefix: PathBody, steps: tuple[int, ...], share: float) -> PathBody:
        """A prefix from a random share of the constants that it is counted from; one path, one sample for a seed."""
        number = max(1, int(share * len(prefix.counted_from)))
        rng = np.random.default_rng([self.seed, *steps])
        chosen = np.sort(rng.choice(prefix.counted_from, number, replace=False))
        return PathBody(prefix.steps, _with_rows(prefix.counts, chosen), chosen, prefix.first_constants)


def _with_rows(matrix: csr_array, rows: np.ndarray) -> csr_array:
    """The matrix with only these of its rows filled."""
    lengths = np.diff(matrix.indptr)
    kept = np.zeros(len(lengths), bool)
    kept[rows] = True
    entries = np.repeat(kept, lengths)
    starts = np.concatenate([[0], np.cumsum(lengths * kept)])
    return csr_array((matrix.data[entries], matrix.indices[entries], starts), shape=matrix.shape)
