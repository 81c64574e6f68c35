"""Scorers: logits of atoms, and of the candidates of a query, by networks and by their mixtures with counted rules."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from r2n.data.herbrand import Codes, QueryPattern, RowIndex, index_among
from r2n.data.knowledge_base import Evidence, reciprocal_codes
from r2n.errors import ConfigError, DataError
from r2n.grounding.counting import RowCounts
from r2n.grounding.paths import PathQueries
from r2n.network.collate import GraphBatch
from r2n.network.factor_graph import FactorGraph, known_states
from r2n.network.graph_sources import GraphSource, Paths, Ungrounded, without_rules
from r2n.network.grid import InputAtoms
from r2n.network.mixture import RULES_ALONE, Weighting, from_log_odds, log_odds, rule_probabilities
from r2n.network.mlp import Output
from r2n.network.paths import UNREACHED
from r2n.network.r2n import R2N

Logits = Float64[np.ndarray, " atoms"]
LogitsOfEach = Float64[np.ndarray, "networks atoms"]


@dataclass(frozen=True, eq=False)
class Pass:
    """One forward pass over a graph: the known states of its atoms, and their logits by each network."""

    batch: GraphBatch
    known: Int64[Tensor, " atoms"]
    each: LogitsOfEach

    @classmethod
    def over(
        cls, graph: FactorGraph, models: Sequence[R2N], evidence: Evidence, collated: GraphBatch | None = None
    ) -> "Pass":
        """The graph is collated once for all networks, if that was not done before."""
        known = known_states(models[0].base, graph.atoms, evidence)
        batch, each = models[0].collate(graph) if collated is None else collated, []
        for model in models:
            with _evaluating(model):
                out = model(batch, known=known.to(model.device), rule_outputs=False).atoms
            each.append(out.double().cpu().numpy())
        return cls(batch, known, np.stack(each))

    @cached_property
    def logits(self) -> Logits:
        """The means over the networks."""
        return self.each.mean(axis=0)

    @property
    def graph(self) -> FactorGraph:
        """The graph."""
        return self.batch.graph

    def rows(self, codes: Codes) -> Int64[np.ndarray, " atoms"]:
        """The rows of atoms that the graph answers."""
        return self.graph.rows(torch.from_numpy(codes)).numpy()


@contextmanager
def _evaluating(model: R2N) -> Iterator[None]:
    was_training = model.training
    model.eval()
    with torch.no_grad():
        yield
    model.train(was_training)


FEATURES_AT_ONCE = 2**24  # numbers: 64 MB in single precision

CandidateLogits = Float[Tensor, "rows candidates"]


@dataclass(frozen=True, eq=False)
class IsolatedRows:
    """A network and the present vectors of its constants: logits of candidates that are in no ground rule.

    Without layers out(a) is the input layer's score: one matrix product. If a layer gives an atom in no ground rule the
    empty sum it is MLP^A(0), plus the score if that is added. If all keep Emb^0(a) it is MLP^A(Emb^0(a)), computed over
    a grid of the rows' constants.
    """

    model: R2N
    vectors: Float[Tensor, "constants constant_dim"]  # of the present constants; zeros of new ones
    embeds: bool  # Emb^L(a) is Emb^0(a), and not 0

    @classmethod
    def from_model(cls, model: R2N) -> "IsolatedRows | None":
        """None if vectors are not enough: evidence or beliefs are read, or the input layer is no formula of them."""
        keeps = all(layer.isolated == "keep" or layer.residual for layer in model.layers)
        embeds = keeps and model.atom_output is not None
        reads_more = model.known is not None or model.belief_input is not None
        rows, grids = model.atom_embedding.rows, model.atom_embedding.grids
        if rows is None or (embeds and grids is None) or (keeps and reads_more):
            return None
        if model.trained_ids is not None and not model.blends:
            return None
        with _evaluating(model):
            vectors = model.constants(model.constants.collate().to(model.device))
        if model.trained_ids is not None:  # -1 is the last
            vectors = torch.cat([vectors, vectors.new_zeros(1, vectors.shape[1])])[model.trained_ids]
        return cls(model, vectors, embeds)

    def answers(self, predicate: int) -> bool:
        """Whether rows of a predicate (by index) can be computed: with layers, those of one or two positions."""
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
            size = max(1, FEATURES_AT_ONCE // max(1, len(candidates) * candidates.shape[1]))
            parts = self.vectors[given].split(size) if len(given) else []
            found = [self._embedded(predicate, position, part, candidates) for part in parts]
            return torch.cat([candidates.new_zeros(0, len(candidates)), *found])
        logits = candidates.new_zeros(len(given), len(candidates))
        if model.atom_output is None or model.input_score:
            rows, index = model.atom_embedding.rows, torch.full((len(given),), predicate, device=candidates.device)
            assert rows is not None
            logits = rows.row_scores(index, position, self.vectors[given], candidates)
        if model.atom_output is None:
            return logits
        output, width = model.atom_output, 3 if model.is_mean_field else model.atom_embedding.dim
        return logits + output(self.vectors.new_zeros(1, width))  # of the empty sum

    def _embedded(self, predicate: int, position: int, given: Tensor, candidates: Tensor) -> CandidateLogits:
        """MLP^A(Emb^0(a)) over a grid of rows and candidates."""
        grids, output = self.model.atom_embedding.grids, self.model.atom_output
        assert grids is not None
        assert isinstance(output, Output)
        axes: Sequence[Tensor] = [candidates]
        if given.shape[1] == 2:
            axes = [candidates, given[:, 1]] if position == 0 else [given[:, 0], candidates]
        atoms = InputAtoms(*grids.grid(torch.tensor([predicate], device=candidates.device), axes))
        logits = output.over_grid(atoms.features, atoms.maps, atoms.offsets)
        if self.model.input_score:
            logits = logits + grids.grid_score(atoms.features, atoms.diagonals, atoms.offsets)
        if given.shape[1] == 1:
            return logits.expand(len(given), -1)
        table = logits.view(len(axes[0]), len(axes[1]))
        return table.t() if position == 0 else table


FEW_ROWS = 16  # of atoms: below, all their candidates are computed
MOST_TOTALS = 2_000_000  # rows of a query pattern whose totals are kept
FEWEST_OFTEN = 0.1  # of a candidate in no known fact
ATOMS_IN_NO_RULE = 2**18  # at once
ATOMS_WITH_THEIR_OWN_RULES = 2**12  # at once
CANDIDATES_BY_CODE = 2**20  # at once

Given = Int64[np.ndarray, "rows positions"]
"""The constants (ids) of queries; the open position is not read."""


@dataclass(frozen=True, eq=False)
class AtomLogits:
    """A network, the source of its graphs, and the evidence: atoms -> logits.

    `others` are networks of the same form: then every logit is the mean over all of them. `weighting` replaces the
    networks' weighting of counted rules. What is grounded, collated and computed for all queries is kept: make another
    object when weights or facts change (`again`).
    """

    model: R2N
    source: GraphSource
    evidence: Evidence
    collated: GraphBatch | None = None
    weighting: Weighting | None = None
    others: tuple[R2N, ...] = ()
    _latest: dict[bool, tuple[object, np.ndarray]] = field(default_factory=dict)

    def __call__(self, codes: Codes) -> Logits:
        """The logits of atoms given by their codes; with reciprocals, the mean of both directions.

        With counted rules, the mean over the positions of the logit of the atom's probability among the candidates of
        its query.
        """
        return self.each(codes).mean(axis=0)

    def each(self, codes: Codes) -> LogitsOfEach:
        """The same by each network."""
        return self._atoms(codes, None)

    def at_position(self, position: int) -> Callable[[Codes], Logits]:
        """The logits of atoms as answers to their query with this open position."""
        return lambda codes: self._atoms(codes, position).mean(axis=0)

    def rows(self, predicate: int, position: int, given: Given) -> Float[np.ndarray, "rows candidates"]:
        """The logits of a predicate's atoms with each constant of the open position's domain, in its order.

        `given` are constants by id. The numbers are those of `at_position`, up to the order of summation; with counted
        rules, they are the logs of the candidates' probabilities.
        """
        if self.mixture is not None:
            return self.mixture.rows(predicate, position, given)
        return self.network_rows(predicate, position, given)

    @property
    def models(self) -> tuple[R2N, ...]:
        """All networks."""
        return (self.model, *self.others)

    @cached_property
    def members(self) -> "tuple[AtomLogits, ...]":
        """The logits of each network alone, with its part of the kept pass."""
        if not self.others:
            return (self,)
        made = [replace(self, model=model, others=(), _latest={}) for model in self.models]
        for i, member in enumerate(made):
            if self.full_pass is not None:
                member.__dict__["full_pass"] = replace(self.full_pass, each=self.full_pass.each[i : i + 1])
        return tuple(made)

    def again(self) -> "AtomLogits":
        """The same for the present weights; what was collated is kept."""
        kept = self.__dict__.get("full_pass")
        return replace(self, collated=self.collated if kept is None else kept.batch, _latest={})

    def without_rules(self, names: Collection[str]) -> "AtomLogits":
        """The same networks, without the ground rules and counts of these rules."""
        return replace(self, source=without_rules(self.source, names), collated=None)

    def by(self, weighting: Weighting) -> "AtomLogits":
        """The same with another weighting of network and counted rules; what the networks compute is shared."""
        made = replace(self, weighting=weighting)
        made.__dict__.update(full_pass=self.full_pass, _isolated=self._isolated)
        return made

    @cached_property
    def mixture(self) -> "Mixture | None":
        """The mixture with counted rules; None for networks that count none."""
        if self.model.counted is None:
            return None
        if self.source.row_counts is None:
            hint = "take the source of the run, or r2n.model.memory.make_source(knowledge, options)"
            raise ConfigError("this network counts rules, and its graphs come from a source that does not", hint=hint)
        return Mixture(self, self.source.row_counts)

    @cached_property
    def full_pass(self) -> Pass | None:
        """The pass over all ground rules, if they do not depend on the query; computed at the first question."""
        graph = self.source.full_graph
        return None if graph is None else Pass.over(graph, self.models, self.evidence, self.collated)

    def passes(self, codes: Codes) -> Iterator[tuple[Int64[np.ndarray, " some"], Pass]]:
        """Passes that together answer the atoms, each with the indices in `codes` of those that it answers."""
        codes = self._checked(codes)
        left, alone, alone_in = np.arange(len(codes)), np.zeros(0, np.int64), self.source
        if self.full_pass is not None:
            inside = self.full_pass.graph.contains(torch.from_numpy(codes)).numpy()
            if inside.any():
                yield left[inside], self.full_pass
            left, alone = alone, left[~inside]
        elif len(codes) > ATOMS_WITH_THEIR_OWN_RULES:
            reached = self.source.may_reach(codes)
            left, alone, alone_in = left[reached], left[~reached], Ungrounded()
        own, isolated = (left, self.source, ATOMS_WITH_THEIR_OWN_RULES), (alone, alone_in, ATOMS_IN_NO_RULE)
        for some, source, size in (own, isolated):
            # in parts that are about equal, none of them tiny: a row alone is summed in another order
            for which in np.array_split(some, -(-len(some) // size)) if len(some) else ():
                yield which, Pass.over(source.around(codes[which]), self.models, self.evidence)

    def _checked(self, codes: Codes) -> Codes:
        codes = np.array(codes, np.int64)
        if len(codes) and not 0 <= codes.min() <= codes.max() < self.model.base.size:
            what = f"there is a code outside the Herbrand base of {self.model.base.size:,} atoms"
            raise DataError(what, hint="take codes and network from one problem")
        return codes

    def _looked_up(self, codes: Codes) -> LogitsOfEach:
        logits = np.zeros((len(self.models), len(codes)))
        for which, made in self.passes(codes):
            logits[:, which] = made.each[:, made.rows(codes[which])]
        return logits

    def network_atoms(self, codes: Codes, position: int) -> Logits:
        """The network's logits of atoms as answers with this open position, without counted rules."""
        reciprocal = reciprocal_codes(self.model.base, codes)
        return self._looked_up(np.where((reciprocal >= 0) & (position == 0), reciprocal, codes))[0]

    def _atoms(self, codes: Codes, position: int | None) -> LogitsOfEach:
        """The logits of atoms by each network; position 0 by their reciprocals, all positions by the mean of both."""
        codes = self._checked(codes)
        if self.mixture is not None:
            return self.mixture.atoms(codes, position)
        reciprocal = reciprocal_codes(self.model.base, codes)
        has_one = reciprocal >= 0
        if position is not None:
            return self._looked_up(np.where(has_one, reciprocal, codes) if position == 0 else codes)
        logits = self._looked_up(codes)
        if has_one.any():
            logits[:, has_one] = (logits[:, has_one] + self._looked_up(reciprocal[has_one])) / 2
        return logits

    def network_rows(
        self, predicate: int, position: int, given: Given, *, along_paths: bool = True
    ) -> Float[np.ndarray, "rows candidates"]:
        """`rows` without counted rules, each query computed once; position 0 by the reciprocal.

        Of networks that blend two parts: by the one along paths, or by the input layer. The latest rows of each part
        are kept, for several weightings ask for the same ones. Of others, only candidates that ground rules may reach
        go through the reasoning layers; those left are computed by the row, if `IsolatedRows` can: without layers that
        is one matrix product.
        """
        predicates = self.model.base.language.predicates
        name = predicates[predicate].name
        found = [i for i, other in enumerate(predicates) if other.reciprocal_of == name] if position == 0 else []
        if found:
            predicate, position, given = found[0], 1, given[:, ::-1]
        pattern = QueryPattern.from_base(self.model.base, predicate, position)
        first, back = np.unique(pattern.rows(given), return_inverse=True)
        key = predicate, position, first.tobytes()
        kept = self._latest.get(along_paths)
        if not self.model.blends:
            logits = self._distinct_rows(pattern, first)
        elif kept is not None and kept[0] == key:
            logits = kept[1]
        else:
            logits = self._distinct_rows(pattern, first, along_paths=along_paths)
            self._latest[along_paths] = key, logits
        return logits if np.array_equal(back, np.arange(len(first))) else logits[back]

    def _distinct_rows(self, pattern: QueryPattern, first: Codes, *, along_paths: bool = True) -> np.ndarray:
        """The logits of queries given by the codes of their first candidates, ascending and distinct."""
        if self.source.paths is not None and along_paths:
            return self._path_rows(self.source.paths, pattern, first)
        if not along_paths:
            given = torch.from_numpy(pattern.given(first)).to(self.model.device)
            return self._isolated[0](pattern.predicate, pattern.position, given).cpu().numpy()
        full, cells, shape = self.full_pass, None, pattern.candidates
        if full is not None:  # the candidates that are in the pass over all ground rules
            graph = full.graph
            atoms = graph.atoms[: graph.answered].cpu().numpy()
            start, end = np.searchsorted(atoms, pattern.bounds)
            row, candidate = pattern.located(atoms[start:end])
            at = index_among(row, first)
            which = np.flatnonzero(at >= 0)
            cells = at[which], candidate[which], full.logits[start + which]
        if cells is not None and len(cells[0]) == len(first) * shape:
            found = np.empty((len(first), shape))
        elif self._isolated and self._isolated[0].answers(pattern.predicate):
            if cells is not None and len(first):  # a graph made elsewhere refuses atoms outside: try the first one
                flat = np.sort(cells[0] * shape + cells[1])
                missing = int(np.append(np.flatnonzero(flat != np.arange(len(flat))), len(flat))[0])
                row, candidate = divmod(missing, shape)
                self.source.around(first[row : row + 1] + pattern.stride * candidate)
            given = torch.from_numpy(pattern.given(first)).to(self.model.device)
            each = (rows(pattern.predicate, pattern.position, given) for rows in self._isolated)
            found = sum(each, next(each))
            found = (found / len(self._isolated) if self.others else found).cpu().numpy()
        else:
            found, cells = np.empty((len(first), shape)), None
            for start, codes in pattern.all_codes(first, CANDIDATES_BY_CODE):
                rows = len(codes) // max(1, shape)
                found[start : start + rows] = self._looked_up(codes).mean(axis=0).reshape(rows, shape)
            return found
        if cells is not None:
            found[cells[:2]] = cells[2]
            return found
        for start, codes in pattern.all_codes(first, CANDIDATES_BY_CODE):  # candidates with ground rules of their own
            reached = np.flatnonzero(self.source.may_reach(codes))
            row, candidate = np.divmod(reached, shape)
            found[start + row, candidate] = self._looked_up(codes[reached]).mean(axis=0)
        return found

    def _path_rows(self, source: Paths, pattern: QueryPattern, first: Codes) -> np.ndarray:
        """The same along paths; known facts are in the graph of their own row, which rankings leave out."""
        language, given = self.model.base.language, pattern.given(first)
        domains = language.predicates[pattern.predicate].domains
        if len(domains) != 2 or pattern.position != 1:
            return np.full((len(first), pattern.candidates), UNREACHED, np.float32)
        queries = PathQueries(np.full(len(given), pattern.predicate), given[:, 0])
        unreached = 0.0 if self.model.blends else UNREACHED  # the input layer answers for those
        read = source.index, queries, source.grounder.width, unreached
        rows = [model.paths.rows(*read) for model in self.models if model.paths]
        return np.mean(rows, axis=0)[:, language.members(domains[1])]

    @cached_property
    def _isolated(self) -> tuple[IsolatedRows, ...]:
        """One for each network; none if vectors are not enough."""
        return tuple(rows for rows in map(IsolatedRows.from_model, self.models) if rows is not None)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Networks mixed with their counted rules: logits of a candidate's probability among those of its query.

    `counts` are the rules' numbers of ground rules in the known facts. `_known` has, by predicate and position, the
    indices of the known facts among the candidates, by query, and `_totals`, by network and weighting too, what rows
    that were computed add up to: an atom of them does not need the others again.
    """

    logits: AtomLogits
    counts: RowCounts
    _known: dict[tuple[int, int], tuple[RowIndex, Int64[np.ndarray, " _"]]] = field(default_factory=dict)
    _totals: dict[tuple[int, Weighting, int, int], tuple[Codes, Tensor]] = field(default_factory=dict)

    def atoms(self, codes: Codes, position: int | None) -> LogitsOfEach:
        """The logits of atoms by each network; the mean over their positions, or as answers at one of them."""
        members = self.logits.members
        if position is not None:
            return np.stack([self._at(network, codes, position) for network in members])
        base = self.logits.model.base
        arity = np.array([len(shape) for shape in base.shapes], np.int64)[base.decode(codes)[0]]
        logits = np.zeros((len(members), len(codes)))
        for i, network in enumerate(members):
            for open_position in range(int(arity.max(initial=0))):
                which = arity > open_position
                logits[i, which] += self._at(network, codes[which], open_position)
        return logits / np.maximum(arity, 1)

    def _at(self, network: AtomLogits, codes: Codes, position: int) -> Logits:
        """The logits of atoms among the candidates of their queries; each query is computed once."""
        base = network.model.base
        index, logs = base.decode(codes)[0], np.zeros(len(codes))
        for predicate in np.unique(index).tolist():
            pattern, which = QueryPattern.from_base(base, predicate, position), np.flatnonzero(index == predicate)
            rows, candidates = pattern.located(codes[which])
            first, back = np.unique(rows, return_inverse=True)
            if len(first) > FEW_ROWS and (found := self._by_totals(network, pattern, codes[which])) is not None:
                logs[which] = found
                continue
            size = max(1, CANDIDATES_BY_CODE // max(1, pattern.candidates))
            for start in range(0, len(first), size):
                own = (back >= start) & (back < start + size)
                found = self._rows(network, predicate, position, pattern.given(first[start : start + size]))
                logs[which[own]] = found[back[own] - start, candidates[own]]
        return log_odds(logs)

    def rows(self, predicate: int, position: int, given: Given) -> Float[np.ndarray, "rows candidates"]:
        """The logs of the candidates' probabilities; of several networks, of those with the mean logits."""
        each = [self._rows(network, predicate, position, given) for network in self.logits.members]
        if len(each) == 1:
            return each[0]
        return from_log_odds(np.mean([log_odds(logs.astype(np.float64)) for logs in each], axis=0))

    @torch.no_grad()
    def _rows(self, network: AtomLogits, predicate: int, position: int, given: Given) -> np.ndarray:
        model, key, weighting = network.model, (predicate, position), self.logits.weighting
        pattern = QueryPattern.from_base(model.base, predicate, position)
        rows = pattern.rows(given)
        counts = self.counts.at(predicate, position, rows)
        assert model.counted is not None
        assert model.combination is not None
        if key not in self._known:
            true = self.logits.evidence.facts
            known, candidates = pattern.located(true[slice(*np.searchsorted(true, pattern.bounds))])
            order = np.argsort(known, kind="stable")
            self._known[key] = RowIndex.from_rows(known[order]), candidates[order]
        index, candidates = self._known[key]
        row, known = index.entries(rows)
        facts = row, candidates[known]
        rules = rule_probabilities(model.counted, counts, rows)
        part = partial(network.network_rows, predicate, position, given)
        if weighting == RULES_ALONE:
            tensor = rules.log_others.new_zeros(len(given), pattern.candidates)
        elif model.blends:
            tensor = model.combination.blended(part, facts, weighting)
        else:
            tensor = torch.from_numpy(np.ascontiguousarray(part())).to(rules.log_others)
        parts = facts, rules, self.popularity(pattern)
        logs, totals = model.combination.mixed(tensor, *parts, weighting)
        if not model.blends:
            self._keep(network, pattern, rows, totals)
        return logs.cpu().numpy()

    def popularity(self, pattern: QueryPattern) -> Float[Tensor, " candidates"]:
        """The log of each candidate's share of the known facts of a query pattern."""
        evidence = self.logits.evidence
        own = slice(*np.searchsorted(evidence.atoms, pattern.bounds))
        facts = evidence.atoms[own][evidence.truth[own]]
        often = np.bincount(pattern.located(facts)[1], minlength=pattern.candidates) + FEWEST_OFTEN
        return torch.from_numpy(np.log(often / often.sum())).float()

    def _key(self, network: AtomLogits, pattern: QueryPattern) -> tuple[int, Weighting, int, int]:
        assert network.model.combination is not None
        weighting = self.logits.weighting or network.model.combination.chosen
        return id(network.model), weighting, pattern.predicate, pattern.position

    def _keep(self, network: AtomLogits, pattern: QueryPattern, rows: Codes, totals: Tensor) -> None:
        """Keep the totals of rows, of as many as there are in all."""
        if pattern.rows_in_all > MOST_TOTALS:
            return
        key, every = self._key(network, pattern), pattern.all_rows
        if key not in self._totals:
            self._totals[key] = every, totals.new_full((len(every), totals.shape[1]), torch.nan)
        self._totals[key][1][torch.from_numpy(np.searchsorted(every, rows))] = totals

    @torch.no_grad()
    def _by_totals(self, network: AtomLogits, pattern: QueryPattern, codes: Codes) -> Logits | None:
        """The logs of the probabilities of atoms in their rows, if the totals of all these rows are kept."""
        model, weighting = network.model, self.logits.weighting
        rows, candidates = pattern.located(codes)
        every, totals = self._totals.get(self._key(network, pattern), (None, None))
        if every is None or totals is None or not totals.shape[1]:
            return None
        own = totals[torch.from_numpy(np.searchsorted(every, rows))]
        if bool(own.isnan().any()):
            return None
        assert model.counted is not None
        assert model.combination is not None
        first, back = np.unique(rows, return_inverse=True)
        rules = rule_probabilities(model.counted, self.counts.at(pattern.predicate, pattern.position, first), first)
        key = rules.rows.cpu().numpy() * pattern.candidates + rules.candidates.cpu().numpy()
        entry = index_among(back * pattern.candidates + candidates, key)
        at = np.flatnonzero(entry >= 0)
        found = torch.from_numpy(entry[at]).to(own.device)
        reached = torch.from_numpy(at).to(own.device), rules.log_probabilities[found], rules.log_odds[found]
        logits = torch.from_numpy(network.network_atoms(codes, pattern.position)).to(own)
        popularity = self.popularity(pattern)[torch.from_numpy(candidates)]
        return model.combination.mixed_atoms(logits, own, reached, popularity, weighting).cpu().double().numpy()
