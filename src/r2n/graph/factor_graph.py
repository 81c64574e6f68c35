"""Ground rules -> tensors: the factor graph (V, F, E)."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from r2n.errors import DataError, counted
from r2n.grounding.ground_rules import Grounding, distinct_codes
from r2n.grounding.neighbourhoods import Neighbourhoods
from r2n.knowledge.herbrand import Codes
from r2n.logic.theory import Rule


@dataclass(frozen=True, eq=False)
class FactorGraph:
    """Atoms (codes) and, for each rule j, `neighbours[j][g, i]`: the row in `atoms` of ne(g, i).

    The first `answered` atoms are ascending and distinct, and have all the ground rules that are theirs: what a network
    says of them is their answer. By default that is all of them. Atoms behind them are there as parts of others'
    neighbourhoods, each its own copy. `shapes[j]` gives the sizes of the rule's variables' domains where every
    substitution is there, else None.
    """

    atoms: Int64[Tensor, " atoms"]
    neighbours: tuple[Int64[Tensor, "_ _"], ...]
    rules: tuple[Rule, ...]
    shapes: tuple[tuple[int, ...] | None, ...]
    answered: int = -1

    def __post_init__(self) -> None:
        """By default, all atoms are answered."""
        if self.answered < 0:
            object.__setattr__(self, "answered", len(self.atoms))

    @classmethod
    def from_grounding(cls, grounding: Grounding, atoms: np.ndarray | None = None) -> "FactorGraph":
        """The graph of a grounding; `atoms` (codes) are in it also when no ground rule reaches them."""
        extra = np.zeros(0, np.int64) if atoms is None else np.asarray(atoms, np.int64)
        codes = distinct_codes([extra, *(part.atoms for part in grounding.ground_rules)])
        neighbours = tuple(torch.from_numpy(_rows(codes, part.atoms)) for part in grounding.ground_rules)
        rules = tuple(part.rule for part in grounding.ground_rules)
        return cls(torch.from_numpy(codes), neighbours, rules, tuple(part.shape for part in grounding.ground_rules))

    @classmethod
    def of_copies(cls, neighbourhoods: Neighbourhoods, queries: Codes) -> "FactorGraph":
        """The neighbourhoods of queries side by side, nothing shared: each has its own copy of every atom."""
        grounding, members = neighbourhoods.grounding, neighbourhoods.members
        codes = distinct_codes([queries, *(part.atoms for part in grounding.ground_rules)])
        keys = [  # (query, atom) as one number
            pairs[:, :1] * len(codes) + _rows(codes, part.atoms)[pairs[:, 1]]
            for part, pairs in zip(grounding.ground_rules, members, strict=True)
        ]
        own = np.arange(len(queries)) * len(codes) + _rows(codes, queries)
        others = np.setdiff1d(distinct_codes(keys), own, assume_unique=True)
        both = np.concatenate([own, others])
        order = np.argsort(both)
        neighbours = tuple(torch.from_numpy(order[_rows(both[order], part)]) for part in keys)
        rules = tuple(part.rule for part in grounding.ground_rules)
        atoms = np.concatenate([queries, codes[others % max(1, len(codes))]])
        return cls(torch.from_numpy(atoms), neighbours, rules, (None,) * len(rules), len(queries))

    def rows(self, codes: Int64[Tensor, " batch"]) -> Int64[Tensor, " batch"]:
        """The rows of atoms given by their codes, where they are answered."""
        found = self.contains(codes)
        if not bool(found.all()):
            missing = int(codes[~found][0])
            raise DataError(
                f"the atom with code {missing} is not in the graph",
                hint="ask a source that grounds what is asked: GroundedOnDemand.of(knowledge, grounder).around(atoms)",
            )
        return torch.searchsorted(self.atoms[: self.answered], codes)

    def contains(self, codes: Int64[Tensor, " batch"]) -> Bool[Tensor, " batch"]:
        """Whether each atom, given by its code, is answered by the graph."""
        answered = self.atoms[: self.answered]
        rows = torch.searchsorted(answered, codes)
        found = rows < len(answered)
        found[found.clone()] = answered[rows[found]] == codes[found]
        return found

    @cached_property
    def in_rules(self) -> Bool[Tensor, " atoms"]:
        """Whether each atom stands in a ground rule."""
        found = torch.zeros(len(self.atoms), dtype=torch.bool, device=self.atoms.device)
        for part in self.neighbours:
            found[part.flatten()] = True
        return found

    def to(self, device: torch.device | str) -> "FactorGraph":
        """The same graph on a device; the graph itself where it is there already."""
        if self.atoms.device == torch.device(device):
            return self
        return replace(self, atoms=self.atoms.to(device), neighbours=tuple(part.to(device) for part in self.neighbours))

    def __len__(self) -> int:
        """The number of ground rules."""
        return sum(map(len, self.neighbours))

    def __repr__(self) -> str:
        """How large it is."""
        rules = f"{counted(len(self), 'ground rule')} of {counted(len(self.rules), 'rule')}"
        return f"FactorGraph({counted(len(self.atoms), 'atom')}, {rules})"


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
