"""The logit of an atom that counted rules may conclude, with fewer of their ground rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64

from r2n.data.herbrand import RowIndex
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.counting import PatternCounts, RuleCounts
from r2n.grounding.ground_rules import GroundRules
from r2n.network.mixture import NETWORK_ALONE, log_odds, rule_probabilities
from r2n.scoring import AtomLogits


@dataclass(frozen=True, eq=False)
class Row:
    """The candidates of an atom's query at one position: its log-probabilities, counts and known ones."""

    counts: PatternCounts
    row: int
    candidate: int
    network: Float[np.ndarray, " candidates"]
    known: Int64[np.ndarray, " known"]

    @classmethod
    def from_atom(cls, member: AtomLogits, counts: RuleCounts, code: int, position: int) -> "Row":
        """The row of an atom, with the counts of its candidates."""
        base = member.model.base
        index = int(base.decode(np.array([code]))[0][0])
        every = counts.by_pattern(index, position)
        row, candidate = (int(part[0]) for part in every.pattern.located(np.array([code])))
        _, entries = every.index.entries(np.array([row]))
        network = member.by(NETWORK_ALONE).rows(index, position, every.pattern.given(np.array([row])))[0]
        codes, evidence = row + every.pattern.stride * np.arange(every.pattern.candidates), member.evidence
        known = np.flatnonzero(np.isin(codes, evidence.atoms[evidence.truth]))
        return cls(_entries(every, entries, row), row, candidate, network, known)

    def entries(self, code: int, rule: int) -> Bool[np.ndarray, " entries"]:
        """Which of the counts are those of a rule for an atom; none if the atom is in another row."""
        pattern = self.counts.pattern
        first, end = pattern.bounds
        if not first <= code < end:
            return np.zeros(len(self.counts.counts), bool)
        row, candidate = (int(part[0]) for part in pattern.located(np.array([code])))
        return (self.counts.candidates == candidate) & (self.counts.rules == rule) & (row == self.row)

    def log_odds(self, member: AtomLogits, counts: Int64[np.ndarray, " entries"]) -> float:
        """The logit of the atom's probability, with other counts."""
        model = member.model
        assert model.counted is not None
        assert model.combination is not None
        made = _entries(replace(self.counts, counts=counts), np.flatnonzero(counts > 0), self.row)
        with torch.no_grad():
            probabilities = rule_probabilities(model.counted, made, np.array([self.row]))
            network = torch.from_numpy(self.network[None].copy()).to(probabilities.log_others)
            known = np.zeros(len(self.known), np.int64), self.known
            logs = model.combination.mixed(network, known, probabilities, member.weighting)
        return float(log_odds(logs[0, self.candidate].double().cpu().numpy()[None])[0])


def _entries(counts: PatternCounts, entries: Int64[np.ndarray, " _"], row: int) -> PatternCounts:
    """Some of the counts, all of one row."""
    own = {name: getattr(counts, name)[entries] for name in ("candidates", "rules", "counts", "is_fact", "order")}
    return replace(counts, index=RowIndex.from_rows(np.full(len(entries), row)), **own)


class CountedAtom:
    """An atom that counted rules may conclude, and for each rule (by number) the `numbers` of ground rules that do."""

    def __init__(self, members: Sequence[AtomLogits], code: int) -> None:
        """`code` is that of the atom."""
        base, counts = members[0].model.base, members[0].source.counts
        assert counts is not None
        self.members, self.code, self._counts = members, code, counts
        start, end = np.searchsorted(counts.codes, [code, code + 1])
        self.numbers = dict(zip(counts.rule[start:end].tolist(), counts.counts[start:end].tolist(), strict=True))
        arity = len(base.shapes[int(base.decode(np.array([code]))[0][0])])
        pairs = [(member, position) for member in members for position in range(arity)]
        self._rows = [(member, Row.from_atom(member, counts, code, position)) for member, position in pairs]

    def logit(self, fewer: Mapping[int, int] | None = None, *, of: int | None = None) -> float:
        """The atom's logit without `fewer` ground rules of some rules that conclude it, or the atom `of`."""
        code = self.code if of is None else of
        found = []
        for member, row in self._rows:
            counts = row.counts.counts.copy()
            for rule, number in (fewer or {}).items():
                counts[row.entries(code, rule)] -= number
            found.append(row.log_odds(member, counts))
        return float(np.mean(found))

    @property
    def network(self) -> float:
        """The logit without the counted rules."""
        return float(np.mean([member.by(NETWORK_ALONE)(np.array([self.code]))[0] for member in self.members]))

    def ground_rules(self) -> list[tuple[int, GroundRules]]:
        """The ground rules that conclude the atom, with the number of their rule."""
        numbers = list(self.numbers)
        if not numbers:
            return []
        store = self._counts.store.with_rules(tuple(self._counts.rules[j] for j in numbers))
        found = BackwardGrounder(width=0, depth=1).neighbourhoods(store, np.array([self.code])).grounding.ground_rules
        return list(zip(numbers, found, strict=True))
