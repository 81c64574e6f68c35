"""Ground rules -> tensors: the factor graph (V, F, E)."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from r2n.errors import DataError
from r2n.grounding.ground_rules import Grounding, distinct_codes
from r2n.logic.theory import Rule


@dataclass(frozen=True, eq=False)
class FactorGraph:
    """Atoms (codes, ascending) and, for each rule j, `neighbours[j][g, i]`: the row in `atoms` of ne(g, i).

    `shapes[j]` gives the sizes of the rule's variables' domains where every substitution is there, else None.
    """

    atoms: Int64[Tensor, " atoms"]
    neighbours: tuple[Int64[Tensor, "_ _"], ...]
    rules: tuple[Rule, ...]
    shapes: tuple[tuple[int, ...] | None, ...]

    @classmethod
    def from_grounding(cls, grounding: Grounding, atoms: np.ndarray | None = None) -> "FactorGraph":
        """The graph of a grounding; `atoms` (codes) are in it also when no ground rule reaches them."""
        extra = np.zeros(0, np.int64) if atoms is None else np.asarray(atoms, np.int64)
        codes = distinct_codes([extra, *(part.atoms for part in grounding.ground_rules)])
        neighbours = tuple(torch.from_numpy(_rows(codes, part.atoms)) for part in grounding.ground_rules)
        rules = tuple(part.rule for part in grounding.ground_rules)
        return cls(torch.from_numpy(codes), neighbours, rules, tuple(part.shape for part in grounding.ground_rules))

    def rows(self, codes: Int64[Tensor, " batch"]) -> Int64[Tensor, " batch"]:
        """The rows of atoms given by their codes."""
        rows = torch.searchsorted(self.atoms, codes)
        found = self.contains(codes)
        if not bool(found.all()):
            missing = int(codes[~found][0])
            raise DataError(
                f"the atom with code {missing} is not in the graph",
                hint="build the graph with it: FactorGraph.from_grounding(grounding, atoms=...)",
            )
        return rows

    def contains(self, codes: Int64[Tensor, " batch"]) -> Bool[Tensor, " batch"]:
        """Whether each atom, given by its code, is in the graph."""
        rows = torch.searchsorted(self.atoms, codes)
        found = rows < len(self.atoms)
        found[found.clone()] = self.atoms[rows[found]] == codes[found]
        return found

    def with_atoms(self, codes: Int64[Tensor, " batch"]) -> "FactorGraph":
        """The graph with these atoms too; those that are new stand in no ground rule."""
        atoms = torch.unique(torch.cat([self.atoms, codes]))
        new_row = torch.searchsorted(atoms, self.atoms)
        return FactorGraph(atoms, tuple(new_row[part] for part in self.neighbours), self.rules, self.shapes)

    def __len__(self) -> int:
        """The number of ground rules."""
        return sum(map(len, self.neighbours))


def _rows(codes: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """The place of each code in the sorted `codes`; by a table instead of bisection where the codes lie close."""
    if not atoms.size:
        return np.zeros(atoms.shape, np.int64)
    low, high = int(codes[0]), int(codes[-1])
    if high - low < 4 * atoms.size + 1_000_000:
        table = np.empty(high - low + 1, np.int64)
        table[codes - low] = np.arange(len(codes))
        return np.ascontiguousarray(table[atoms - low])
    return np.searchsorted(codes, atoms)
