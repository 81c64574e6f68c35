"""Logits of atoms, and of the candidates of a query."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from r2n.data.herbrand import Codes, Side
from r2n.data.knowledge_base import Evidence, reciprocal_codes
from r2n.errors import DataError
from r2n.network.collate import Layout
from r2n.network.factor_graph import FactorGraph, known_states
from r2n.network.graph_sources import GraphSource, Ungrounded, without_rules
from r2n.network.grid import InputAtoms
from r2n.network.mixture import RULES_ALONE, RulesBeside, Way, from_log_odds, log_odds
from r2n.network.r2n import R2N

Logits = Float64[np.ndarray, " atoms"]
LogitsOfEach = Float64[np.ndarray, "networks atoms"]


@dataclass(frozen=True, eq=False)
class Pass:
    """One forward pass over a graph: what was known of its atoms, and their logits (exact for those it answers).

    `each` has a row for each network.
    """

    layout: Layout
    known: Int64[Tensor, " atoms"]
    each: LogitsOfEach

    @classmethod
    def over(
        cls, graph: FactorGraph, models: Sequence[R2N], evidence: Evidence, laid_out: Layout | None = None
    ) -> "Pass":
        """The graph is laid out once for all networks, if that was not done before."""
        known = known_states(models[0].base, graph.atoms, evidence)
        layout = models[0].lay_out(graph) if laid_out is None else laid_out
        return cls(layout, known, np.stack([_logits(model, layout, known) for model in models]))

    @cached_property
    def logits(self) -> Logits:
        """The means over the networks."""
        return self.each.mean(axis=0)

    @property
    def graph(self) -> FactorGraph:
        """The graph."""
        return self.layout.graph

    def rows(self, codes: Codes) -> Int64[np.ndarray, " atoms"]:
        """The rows of atoms that the graph answers."""
        return self.graph.rows(torch.from_numpy(codes)).numpy()


def _logits(model: R2N, layout: Layout, known: Int64[Tensor, " atoms"]) -> Logits:
    was_training = model.training
    model.eval()
    with torch.no_grad():
        out = model(layout, known=known.to(model.device), rule_outputs=False).atoms
    model.train(was_training)
    return out.double().cpu().numpy()


FEATURES_AT_ONCE = 2**24  # numbers: 64 MB in single precision

CandidateLogits = Float[Tensor, "rows candidates"]


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
        keeps = all(layer.isolated == "keep" or layer.residual for layer in model.layers)
        embeds = keeps and model.atom_output is not None
        reads_more = model.known is not None or model.belief_input is not None
        rows, grids = model.atom_embedding.rows, model.atom_embedding.grids
        if model.trained_ids is not None or rows is None or (embeds and grids is None) or (keeps and reads_more):
            return None
        was_training = model.training
        model.eval()
        with torch.no_grad():
            vectors = model.constants(model.constants.lay_out().to(model.device))
        model.train(was_training)
        return cls(model, vectors, embeds)

    def answers(self, predicate: int) -> bool:
        """Whether rows of a predicate (by index) can be asked: beside layers, those of one or two positions."""
        return not self.embeds or self.model.base.language.predicates[predicate].arity <= 2

    @torch.no_grad()
    def __call__(self, predicate: int, position: int, given: Int64[Tensor, "rows positions"]) -> CandidateLogits:
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

    def _embedded(self, predicate: int, position: int, given: Tensor, candidates: Tensor) -> CandidateLogits:
        """MLP^A(Emb^0(a)), so many rows at once as fit."""
        each = max(1, len(candidates) * candidates.shape[1])
        parts = given.split(max(1, FEATURES_AT_ONCE // each)) if len(given) else []
        found = [self._over_grid(predicate, position, part, candidates) for part in parts]
        return torch.cat([candidates.new_zeros(0, len(candidates)), *found])

    def _over_grid(self, predicate: int, position: int, given: Tensor, candidates: Tensor) -> CandidateLogits:
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


ATOMS_IN_NO_RULE = 2**18  # at once
ATOMS_WITH_THEIR_OWN_RULES = 2**12  # at once
CANDIDATES_BY_CODE = 2**20  # at once


@dataclass(frozen=True, eq=False)
class AtomLogits:
    """A network, where its graphs come from, and what it is told: atoms -> logits.

    `others` are networks made alike: then every logit is the mean over all of them, and what is grounded and laid out
    is shared. The pass over the ground rules that do not depend on what is asked is made at the first question and
    kept: make another object when weights or facts change (`again`).
    """

    model: R2N
    source: GraphSource
    evidence: Evidence
    laid_out: Layout | None = None
    way: Way | None = None
    others: tuple[R2N, ...] = ()

    def __call__(self, codes: Codes) -> Logits:
        """The logits of atoms given by their codes; where there are reciprocals, the mean of both directions.

        Where rules are counted, the mean over the positions of the logit that the atom's share of its row has.
        """
        return self.each(codes).mean(axis=0)

    def each(self, codes: Codes) -> LogitsOfEach:
        """The same by each network."""
        codes = np.array(codes, np.int64)
        self._check(codes)
        if self.model.counted is not None:
            return np.stack([member._of_shares(codes) for member in self.members])
        mirrored = reciprocal_codes(self.model.base, codes)
        has_one = mirrored >= 0
        logits = self._looked_up(codes)
        if has_one.any():
            logits[:, has_one] = (logits[:, has_one] + self._looked_up(mirrored[has_one])) / 2
        return logits

    @property
    def models(self) -> tuple[R2N, ...]:
        """All networks."""
        return (self.model, *self.others)

    @cached_property
    def members(self) -> "tuple[AtomLogits, ...]":
        """The logits of each network alone."""
        if not self.others:
            return (self,)
        made = [replace(self, model=model, others=()) for model in self.models]
        if self.whole is not None:
            for i, member in enumerate(made):
                member.__dict__["whole"] = replace(self.whole, each=self.whole.each[i : i + 1])
        return tuple(made)

    def asked_at(self, position: int) -> Callable[[Codes], Logits]:
        """The logits of atoms as answers to what stands at a position: position 0 is asked of the reciprocals."""

        def score(codes: Codes) -> Logits:
            if self.model.counted is not None:
                return self._shares_at(codes, position)
            mirrored = reciprocal_codes(self.model.base, codes) if position == 0 else np.full(len(codes), -1)
            return self._looked_up(np.where(mirrored >= 0, mirrored, codes)).mean(axis=0)

        return score

    def rows(
        self, predicate: int, position: int, given: Int64[np.ndarray, "rows positions"]
    ) -> Float[np.ndarray, "rows candidates"]:
        """The logits of a predicate's atoms with each constant of the open position's domain, in its order.

        `given` are constants by id; what stands at the open position is not read. The numbers are those of `asked_at`,
        up to the order of summation: only candidates that ground rules may reach go through the reasoning layers, and
        the others are computed by the row, where `IsolatedRows` can. Without layers that is one matrix product. Where
        rules are counted, the numbers are the logs of the candidates' shares of the row; of an ensemble, of the shares
        whose logits are the means over its networks.
        """
        if self.model.counted is None:
            return self._network_rows(predicate, position, given)
        if self.others:
            each = (member.rows(predicate, position, given).astype(np.float64) for member in self.members)
            return from_log_odds(np.mean([log_odds(shares) for shares in each], axis=0))
        assert self._rules is not None
        if self.way == RULES_ALONE:
            network = np.zeros((len(given), Side.of(self.model.base, predicate, position).candidates), np.float32)
        else:
            network = self._network_rows(predicate, position, given)
        return self._rules(predicate, position, given, network, self.way)

    def _network_rows(self, predicate: int, position: int, given: np.ndarray) -> np.ndarray:
        predicate, position, given = self._mirrored(predicate, position, given)
        side = Side.of(self.model.base, predicate, position)
        first, back = np.unique(side.rows(given), return_inverse=True)
        found = self._rows(side, first)
        return found if np.array_equal(back, np.arange(len(first))) else found[back]

    def _of_shares(self, codes: Codes) -> Logits:
        """The mean over the positions of each atom."""
        arity = np.array([len(shape) for shape in self.model.base.shapes], np.int64)[self.model.base.decode(codes)[0]]
        logits = np.zeros(len(codes))
        for position in range(int(arity.max(initial=0))):
            which = arity > position
            logits[which] += self._shares_at(codes[which], position)
        return logits / np.maximum(arity, 1)

    def _shares_at(self, codes: Codes, position: int) -> Logits:
        """The logits of atoms' shares of the rows with this position open; each row is computed once."""
        index = self.model.base.decode(codes)[0]
        shares = np.zeros(len(codes))
        for predicate in np.unique(index).tolist():
            side, which = Side.of(self.model.base, predicate, position), np.flatnonzero(index == predicate)
            rows, places = side.located(codes[which])
            first, back = np.unique(rows, return_inverse=True)
            size = max(1, CANDIDATES_BY_CODE // max(1, side.candidates))
            for start in range(0, len(first), size):
                own = (back >= start) & (back < start + size)
                found = self.rows(predicate, position, side.given(first[start : start + size]))
                shares[which[own]] = found[back[own] - start, places[own]]
        return log_odds(shares)

    @cached_property
    def _rules(self) -> RulesBeside | None:
        return RulesBeside.of(self.model, self.source, self.evidence)

    def _mirrored(self, predicate: int, position: int, given: np.ndarray) -> tuple[int, int, np.ndarray]:
        """Position 0 is asked of the reciprocal, where there is one."""
        predicates = self.model.base.language.predicates
        name = predicates[predicate].name
        found = [i for i, other in enumerate(predicates) if other.reciprocal_of == name] if position == 0 else []
        return (found[0], 1, given[:, ::-1]) if found else (predicate, position, given)

    def _rows(self, side: Side, first: Codes) -> np.ndarray:
        """The logits of rows given by the codes of their first candidates, ascending and distinct."""
        cells = None if self.whole is None else self._of_whole(side, first)
        if cells is not None and len(cells[0]) == len(first) * side.candidates:
            row, place, logits = cells
            found = np.empty((len(first), side.candidates))
            found[row, place] = logits
            return found
        if not self._isolated or not self._isolated[0].answers(side.predicate):
            return self._by_code(side, first)
        if cells is not None and len(first):
            self.source.around(_one_outside(side, first, cells))  # a graph that was made elsewhere refuses others
        given = torch.from_numpy(side.given(first)).to(self.model.device)
        found = self._isolated[0](side.predicate, side.position, given)
        if self.others:
            found = sum((rows(side.predicate, side.position, given) for rows in self._isolated[1:]), found)
            found = found / len(self._isolated)
        found = found.cpu().numpy()
        for row, place, logits in self._reached(side, first) if cells is None else [cells]:
            found[row, place] = logits
        return found

    def _of_whole(self, side: Side, first: Codes) -> tuple[np.ndarray, np.ndarray, Logits]:
        """Cells of rows whose atoms stand in the pass over all ground rules, and their logits."""
        assert self.whole is not None
        atoms = self.whole.graph.atoms[: self.whole.graph.answered].cpu().numpy()
        start, end = np.searchsorted(atoms, side.bounds)
        row, place = side.located(atoms[start:end])
        at = np.minimum(np.searchsorted(first, row), len(first) - 1)
        which = np.flatnonzero(first[at] == row) if len(first) else np.zeros(0, np.int64)
        return at[which], place[which], self.whole.logits[start + which]

    def _reached(self, side: Side, first: Codes) -> Iterator[tuple[np.ndarray, np.ndarray, Logits]]:
        """The same for candidates with ground rules of their own."""
        for start, codes in side.written_out(first, CANDIDATES_BY_CODE):
            reached = np.flatnonzero(self.source.may_reach(codes))
            row, place = np.divmod(reached, side.candidates)
            yield start + row, place, self._looked_up(codes[reached]).mean(axis=0)

    def _by_code(self, side: Side, first: Codes) -> np.ndarray:
        """All candidates of rows, atom by atom."""
        found = np.empty((len(first), side.candidates))
        for start, codes in side.written_out(first, CANDIDATES_BY_CODE):
            rows = len(codes) // max(1, side.candidates)
            found[start : start + rows] = self._looked_up(codes).mean(axis=0).reshape(rows, side.candidates)
        return found

    @cached_property
    def _isolated(self) -> tuple[IsolatedRows, ...]:
        """One for each network; none where vectors do not tell."""
        made = map(IsolatedRows.of, self.models)
        return tuple(rows for rows in made if rows is not None)

    def again(self) -> "AtomLogits":
        """The same for the weights as they are now; what was laid out stays so."""
        kept = self.__dict__.get("whole")
        laid_out = self.laid_out if kept is None else kept.layout
        return replace(self, laid_out=laid_out)

    def without_rules(self, names: Collection[str]) -> "AtomLogits":
        """The same networks, where nothing is grounded or counted by the rules of these names."""
        return replace(self, source=without_rules(self.source, names), laid_out=None)

    def by(self, way: Way) -> "AtomLogits":
        """The same, network and counted rules combined in another way than the chosen one."""
        made = replace(self, way=way)
        made.__dict__.update({name: self.__dict__[name] for name in ("whole", "_rules") if name in self.__dict__})
        return made

    @cached_property
    def whole(self) -> Pass | None:
        """The pass over all ground rules, where they do not depend on what is asked."""
        graph = self.source.whole
        return None if graph is None else self._pass(graph, self.laid_out)

    def passes(self, codes: Codes) -> Iterator[tuple[Int64[np.ndarray, " some"], Pass]]:
        """Passes that together answer the atoms, each with the places in `codes` of those that it answers."""
        self._check(codes)
        left, alone, alone_in = np.arange(len(codes)), np.zeros(0, np.int64), self.source
        if self.whole is not None:
            inside = self.whole.graph.contains(torch.from_numpy(codes)).numpy()
            if inside.any():
                yield left[inside], self.whole
            left, alone = alone, left[~inside]
        elif len(codes) > ATOMS_WITH_THEIR_OWN_RULES:
            reached = self.source.may_reach(codes)
            left, alone, alone_in = left[reached], left[~reached], Ungrounded()
        for which in _parts(left, ATOMS_WITH_THEIR_OWN_RULES):
            yield which, self._pass(self.source.around(codes[which]))
        for which in _parts(alone, ATOMS_IN_NO_RULE):
            yield which, self._pass(alone_in.around(codes[which]))

    def _check(self, codes: Codes) -> None:
        if len(codes) and not 0 <= codes.min() <= codes.max() < self.model.base.size:
            raise DataError(
                f"there is a code outside the Herbrand base of {self.model.base.size:,} atoms",
                hint="take codes and network from one problem",
            )

    def _looked_up(self, codes: Codes) -> LogitsOfEach:
        logits = np.zeros((len(self.models), len(codes)))
        for which, made in self.passes(codes):
            logits[:, which] = made.each[:, made.rows(codes[which])]
        return logits

    def _pass(self, graph: FactorGraph, laid_out: Layout | None = None) -> Pass:
        return Pass.over(graph, self.models, self.evidence, laid_out)


def _one_outside(side: Side, first: Codes, cells: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Codes:
    """An atom of the rows that is in none of the cells."""
    flat = np.sort(cells[0] * side.candidates + cells[1])
    missing = int(np.append(np.flatnonzero(flat != np.arange(len(flat))), len(flat))[0])
    row, place = divmod(missing, side.candidates)
    return first[row : row + 1] + side.stride * place


def _parts(which: np.ndarray, size: int) -> list[np.ndarray]:
    """In parts that are about equal, none of them tiny: a row alone is summed in another order."""
    return np.array_split(which, -(-len(which) // size)) if len(which) else []
