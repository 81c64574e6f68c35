"""Tensors -> predictions: the logits of whole rows of atoms that stand in no ground rule, without their codes.

A row is an atom of which one position is open; its candidates are the constants of that position's domain. In no ground
rule, an atom hears no message, so that its logit follows from the constants' vectors alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from r2n.model.grid_atoms import InputAtoms
from r2n.model.r2n import R2N

FEATURES_AT_ONCE = 2**24  # numbers: 64 MB in single precision

Logits = Float[Tensor, "rows candidates"]


@dataclass(frozen=True, eq=False)
class IsolatedRows:
    """A network and the vectors of all its constants, as they are now.

    Without layers out(a) is the input layer's score: one matrix product. Where one of the layers gives an atom in no
    ground rule the empty sum it is MLP^A(0), plus the score where that is added. Where all keep Emb^0(a) it is
    MLP^A(Emb^0(a)), computed over a grid of the rows' constants.
    """

    model: R2N
    vectors: Float[Tensor, "constants constant_dim"]
    embeds: bool  # Emb^L(a) is Emb^0(a), and not 0

    @classmethod
    def of(cls, model: R2N) -> "IsolatedRows | None":
        """None where vectors do not tell: evidence or beliefs are read, or the input layer is no formula of them."""
        keeps = [layer.isolated == "keep" or layer.residual for layer in model.layers]
        reads_more = model.known is not None or model.belief_input is not None
        rows, grids = model.atom_embedding.rows, model.atom_embedding.grids
        if model.trained_ids is not None or rows is None or grids is None or (all(keeps) and reads_more):
            return None
        was_training = model.training
        model.eval()
        with torch.no_grad():
            vectors = model.constants(model.constants.lay_out().to(model.device))
        model.train(was_training)
        return cls(model, vectors, all(keeps) and model.atom_output is not None)

    def answers(self, predicate: int) -> bool:
        """Whether rows of a predicate (by index) can be asked: beside layers, those of one or two positions."""
        return not self.embeds or self.model.base.language.predicates[predicate].arity <= 2

    @torch.no_grad()
    def __call__(self, predicate: int, position: int, given: Int64[Tensor, "rows positions"]) -> Logits:
        """The logits of a predicate's atoms with each candidate, in the order of its domain; `given` are ids."""
        model = self.model
        language = model.base.language
        members = language.members(language.predicates[predicate].domains[position])
        candidates = self.vectors  # all constants are in order
        if len(members) < len(self.vectors):
            candidates = self.vectors[torch.as_tensor(members, device=self.vectors.device)]
        if self.embeds:
            return self._embedded(predicate, position, self.vectors[given], candidates)
        rows = model.atom_embedding.rows
        assert rows is not None
        if model.atom_output is None or model.input_score:
            index = torch.full((len(given),), predicate, device=candidates.device)
            logits = rows.row_scores(index, position, self.vectors[given], candidates)
        else:
            logits = candidates.new_zeros(len(given), len(candidates))
        return logits if model.atom_output is None else logits + model.atom_output(self._nothing())

    def _nothing(self) -> Tensor:
        """Emb^L(a) that is the empty sum."""
        return self.vectors.new_zeros(1, self.model.atom_embedding.dim)

    def _embedded(self, predicate: int, position: int, given: Tensor, candidates: Tensor) -> Logits:
        """MLP^A(Emb^0(a)), so many rows at once as fit."""
        each = max(1, len(candidates) * candidates.shape[1])
        parts = given.split(max(1, FEATURES_AT_ONCE // each)) if len(given) else []
        found = [self._over_grid(predicate, position, part, candidates) for part in parts]
        return torch.cat([candidates.new_zeros(0, len(candidates)), *found])

    def _over_grid(self, predicate: int, position: int, given: Tensor, candidates: Tensor) -> Logits:
        grids, output = self.model.atom_embedding.grids, self.model.atom_output
        assert grids is not None
        assert output is not None
        sides: Sequence[Tensor] = [candidates]
        if given.shape[1] == 2:
            sides = [candidates, given[:, 1]] if position == 0 else [given[:, 0], candidates]
        atoms = InputAtoms(*grids.grid(torch.tensor([predicate], device=candidates.device), sides))
        logits = output.over_grid(atoms.features, atoms.maps, atoms.offsets)
        if self.model.input_score:
            logits = logits + grids.grid_score(atoms.features, atoms.diagonals, atoms.offsets)
        if given.shape[1] == 1:
            return logits.expand(len(given), -1)
        table = logits.view(len(sides[0]), len(sides[1]))
        return table.t() if position == 0 else table
