"""Predictions -> a trained network: counted rules asked row by row, each fact as if it were not known.

A fact is asked against all candidates of its row that a rule concludes, and against the rest. Other facts of the row
are left out, and so is every ground rule that has the asked fact in its body: leave-one-out, exactly as grounding
without the fact would have it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from r2n.grounding.counting import LeftOut, RuleCounts, SideCounts
from r2n.knowledge.closed_world import closed_atoms
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.options import TrainingOptions
from r2n.knowledge.sides import ranges
from r2n.model.counted_rules import CountedRules, log_sum
from r2n.model.r2n import R2N
from r2n.training.objective import Losses

ENTRIES_AT_ONCE = 2**16
ENTRIES_AN_EPOCH = 2**25  # above, an epoch asks a share of the facts


@dataclass(frozen=True, eq=False)
class RuleStep:
    """Facts of one predicate asked at one position: for each entry of their rows the fact, rule and log of the count.

    `is_true` marks entries that conclude the fact itself.
    """

    predicate: int
    position: int
    facts: int
    fact: Int64[Tensor, " entries"]
    rules: Int64[Tensor, " entries"]
    log_counts: Float[Tensor, " entries"]
    is_true: Bool[Tensor, " entries"]
    weight: float

    def losses(self, model: R2N, options: TrainingOptions) -> Losses:
        """The mean over the facts of minus the log of each one's share, or of the rest's where no rule concludes it."""
        assert model.counted is not None
        parts = (self.fact, self.rules, self.log_counts, self.is_true)
        fact, rules, log_counts, is_true = (part.to(model.device) for part in parts)
        masses = model.counted.masses(self.position, rules, log_counts)
        rest = model.counted.rest[self.predicate, self.position].expand(self.facts)
        each = torch.arange(self.facts, device=model.device)
        every = log_sum(torch.cat([masses, rest]), torch.cat([fact, each]), self.facts)
        true = log_sum(masses[is_true], fact[is_true], self.facts)
        is_reached = torch.zeros_like(each, dtype=torch.bool).index_fill(0, fact[is_true], True)
        loss = self.weight * (every - torch.where(is_reached, true, rest)).mean()
        return Losses(loss, loss, loss.new_zeros(()), loss.new_zeros(()))


@dataclass(frozen=True, eq=False)
class _AskedSide:
    """The facts of one predicate at one position, by number, with how many entries each has that is asked."""

    counts: SideCounts
    left_out: LeftOut
    facts: np.ndarray
    sizes: np.ndarray
    is_asked: np.ndarray


class RuleBatches:
    """The facts that counted rules are asked for, in steps of about equally many entries, drawn anew in every epoch."""

    def __init__(self, counts: RuleCounts, options: TrainingOptions) -> None:
        """Find out for every fact what is not counted while it is asked."""
        base = counts.base
        self.sides: list[_AskedSide] = []
        heads = {rule.atoms[rule.head_positions[0]].predicate for rule in counts.rules}
        for name in sorted(heads):
            predicate = base.language.predicate_index(name)
            facts = counts.store.knowledge.known_codes(base.language.predicates[predicate], True)
            is_asked = ~closed_atoms(base, facts) | options.ask_closed
            for position in range(len(base.shapes[predicate])) if is_asked.any() else ():
                side = counts.side(predicate, position)
                sizes = side.index.spans(side.side.located(facts)[0])[1] * is_asked
                self.sides.append(_AskedSide(side, counts.left_out(predicate, position), facts, sizes, is_asked))
        self.entries = sum(int(side.sizes.sum()) for side in self.sides)

    @property
    def ground_rules(self) -> int:
        """None is laid out."""
        return 0

    def asked(self, generator: torch.Generator) -> tuple[Codes, Codes]:
        """The facts that a rule may conclude."""
        facts = np.unique(np.concatenate([np.zeros(0, np.int64), *(side.facts[side.is_asked] for side in self.sides)]))
        return facts, np.zeros(0, np.int64)

    def epoch(self, generator: torch.Generator) -> Iterator[RuleStep]:
        """The steps of one epoch; of very many entries, a share that is drawn."""
        share = min(1.0, ENTRIES_AN_EPOCH / max(1, self.entries))
        cuts = [(side, part) for side in self.sides for part in _parts(side, share, generator)]
        order = torch.randperm(len(cuts), generator=generator).tolist()
        mean = sum(len(part) for _, part in cuts) / max(1, len(cuts))
        return (_step(*cuts[i], weight=len(cuts[i][1]) / mean) for i in order)


def _parts(side: _AskedSide, share: float, generator: torch.Generator) -> list[np.ndarray]:
    reached = np.flatnonzero(side.sizes)
    order = reached[torch.randperm(len(reached), generator=generator).numpy()][: int(np.ceil(len(reached) * share))]
    if not len(order):
        return []
    number = np.cumsum(side.sizes[order]) // ENTRIES_AT_ONCE
    return np.split(order, np.flatnonzero(np.diff(number)) + 1)


def _step(side: _AskedSide, numbers: np.ndarray, *, weight: float) -> RuleStep:
    counts, left_out = side.counts, side.left_out
    rows, places = counts.side.located(side.facts[numbers])
    fact, entry = counts.index.entries(rows)
    number = counts.counts[entry].copy()
    begins = np.cumsum(side.sizes[numbers]) - side.sizes[numbers]
    first = entry[begins]  # each of these facts has an entry
    owner, less = ranges(left_out.starts[numbers], left_out.starts[numbers + 1] - left_out.starts[numbers])
    np.subtract.at(number, begins[owner] + left_out.entries[less] - first[owner], left_out.counts[less])
    is_true = counts.places[entry] == places[fact]
    kept = (number > 0) & (is_true | ~counts.is_fact[entry])
    return RuleStep(
        counts.side.predicate,
        counts.side.position,
        len(numbers),
        torch.from_numpy(fact[kept]),
        torch.from_numpy(counts.rules[entry[kept]]),
        torch.from_numpy(np.log(number[kept])).float(),
        torch.from_numpy(is_true[kept]),
        weight,
    )


def start_at_confidence(counted: CountedRules, counts: RuleCounts) -> None:
    """Begin with w_j the log of the confidence of rule j."""
    logs = torch.from_numpy(np.log(counts.confidences)).float()
    with torch.no_grad():
        counted.weights.copy_(logs.unsqueeze(1).expand_as(counted.weights))
