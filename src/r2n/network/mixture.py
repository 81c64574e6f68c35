"""Counted rules as a scorer, and mixtures of it with the network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn
from torch.nn.functional import softplus

from r2n.data.herbrand import Codes
from r2n.grounding.counting import PatternCounts
from r2n.logic.theory import Rule


class CountedRules(nn.Module):
    """The weights of counted rules."""

    def __init__(self, rules: Sequence[Rule], predicates: int, positions: int) -> None:
        """One w and v for each rule and position, one bias (`rest`) for each predicate and position."""
        super().__init__()
        self.rules = tuple(rules)
        self.weights = nn.Parameter(torch.full((len(rules), positions), -2.0))
        self.powers = nn.Parameter(torch.full((len(rules), positions), 0.3))
        self.rest = nn.Parameter(torch.full((predicates, positions), -2.0))

    def log_weights(
        self, position: int, rules: Int64[Tensor, " entries"], log_counts: Float[Tensor, " entries"]
    ) -> Float[Tensor, " entries"]:
        """The log of the weight that a rule adds to an atom: w_j + v_j log n_j(a)."""
        return self.weights[rules, position] + self.powers[rules, position] * log_counts


def log_sum(values: Float[Tensor, " values"], groups: Int64[Tensor, " values"], count: int) -> Float[Tensor, " groups"]:
    """The log of the sum of exponentials in each group; of an empty one a large negative number."""
    most = values.new_full((count,), -1e30).scatter_reduce(0, groups, values.detach(), "amax")
    sums = values.new_zeros(count).index_add(0, groups, torch.exp(values - most[groups]))
    return most + torch.log(sums.clamp(min=1e-30))


@dataclass(frozen=True, slots=True)
class Weighting:
    """How network and counted rules are mixed: their probabilities, their logs, or the rules alone.

    `popularity` is the share that the network leaves to how often a candidate stands in known facts. `paths` replaces
    the chosen share of what is read along paths in a network that blends this with an input layer.
    """

    kind: Literal["mixture", "sum", "rules"]
    value: float = 1.0
    popularity: float = 0.0
    paths: float | None = None

    def __str__(self) -> str:
        if self.paths is not None:
            blend, rest = (
                f"{self.paths:.0%} along paths, {1 - self.paths:.0%} by the input layer",
                replace(self, paths=None),
            )
            return blend if rest == NETWORK_ALONE else f"{blend}; {rest}"
        if self.kind == "rules":
            return "rules alone"
        if self.popularity:
            return f"{replace(self, popularity=0.0)}, {self.popularity:.0%} of the rest by popularity"
        if self.kind == "mixture" and not self.value:
            return "without counted rules"
        if self.kind == "sum":
            return f"sum of the logs, the network's times {self.value:g}"
        return f"mixture, {self.value:.0%} by the rules"


WEIGHTINGS = (
    Weighting("mixture", 0.5),
    *(Weighting("mixture", value) for value in (0.0, 0.05, 0.2, 0.35, 0.65, 0.8, 0.95)),
    *(Weighting("sum", value) for value in (0.5, 1.0, 2.0, 4.0)),
    *(Weighting("mixture", value, popularity) for value in (0.2, 0.5, 0.8) for popularity in (0.2, 0.6)),
)
"""The first is the default."""

UNSURE = 1e-6  # the rounding of a logit
NETWORK_ALONE, RULES_ALONE = Weighting("mixture", 0.0), Weighting("rules")
INPUT_ALONE, PATHS_ALONE = (Weighting("mixture", 0.0, paths=share) for share in (0.0, 1.0))
SHARES = (0.7, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.9, 1.0)
"""Of what is read along paths, in a blend with an input layer; the first is the default. Never 0: paths are reasons."""


@dataclass(frozen=True, eq=False)
class RuleProbabilities:
    """The candidates of rows that some rule concludes: row, index, log probability, and log(weight / bias).

    `log_others` is the log probability of all others together, of each row.
    """

    rows: Int64[Tensor, " reached"]
    candidates: Int64[Tensor, " reached"]
    log_probabilities: Float[Tensor, " reached"]
    log_odds: Float[Tensor, " reached"]
    log_others: Float[Tensor, " rows"]


def rule_probabilities(counted: CountedRules, counts: PatternCounts, rows: Codes) -> RuleProbabilities:
    """The probabilities of the candidates of rows by counted rules; the weights of known facts are not in the total."""
    pattern, device = counts.pattern, counted.rest.device
    owner, entry = counts.index.entries(rows)
    candidates = counts.candidates[entry]
    is_first = np.ones(len(entry), bool)
    is_first[1:] = (owner[1:] != owner[:-1]) | (candidates[1:] != candidates[:-1])
    rules = torch.from_numpy(counts.rules[entry]).to(device)
    log_counts = torch.from_numpy(np.log(counts.counts[entry])).float().to(device)
    number = torch.from_numpy(np.cumsum(is_first) - 1).to(device)
    log_weights = log_sum(counted.log_weights(pattern.position, rules, log_counts), number, int(is_first.sum()))
    row = torch.from_numpy(owner[is_first]).to(device)
    unknown = torch.from_numpy(~counts.is_fact[entry[is_first]]).to(device)
    bias = counted.rest[pattern.predicate, pattern.position]
    groups = torch.cat([row[unknown], torch.arange(len(rows), device=device)])
    total = log_sum(torch.cat([log_weights[unknown], bias.expand(len(rows))]), groups, len(rows))
    index = torch.from_numpy(candidates[is_first]).to(device)
    return RuleProbabilities(row, index, log_weights - total[row], log_weights - bias, bias - total)


class Combination(nn.Module):
    """The weighting by which network and counted rules are mixed; chosen, not learned (`way` holds its number).

    If the network `blends` an input layer with what is read along paths, `share` holds the number of that share.
    """

    way: Tensor
    share: Tensor

    def __init__(self, *, blends: bool = False) -> None:
        """The first one."""
        super().__init__()
        self.register_buffer("way", torch.zeros((), dtype=torch.int64))
        self.blends = blends
        if blends:
            self.register_buffer("share", torch.zeros((), dtype=torch.int64))

    @property
    def chosen(self) -> Weighting:
        """The chosen weighting."""
        chosen = WEIGHTINGS[int(self.way)]
        return replace(chosen, paths=SHARES[int(self.share)]) if self.blends else chosen

    def blended(
        self,
        rows: Callable[..., Float[np.ndarray, "rows candidates"]],
        known: tuple[Int64[np.ndarray, " known"], Int64[np.ndarray, " known"]],
        weighting: Weighting | None = None,
    ) -> Float[Tensor, "rows candidates"]:
        """The logits of candidates by both parts: the weighted mean of the logs of their probabilities.

        `rows` gives the logits by one part, `along_paths` or by the input layer.
        """
        share, logs = weighting and weighting.paths, list[Tensor]()
        share = SHARES[int(self.share)] if share is None else share  # 0 is one of them
        for along_paths, weight in ((True, share), (False, 1 - share)):
            if weight:
                part = torch.from_numpy(rows(along_paths=along_paths)).float()
                logs.append((part - _log_total(part, known)).mul_(weight))
        return sum(logs[1:], logs[0])

    def mixed(
        self,
        network: Float[Tensor, "rows candidates"],
        known: tuple[Int64[np.ndarray, " known"], Int64[np.ndarray, " known"]],
        rules: RuleProbabilities,
        popularity: Float[Tensor, " candidates"],
        weighting: Weighting | None = None,
    ) -> tuple[Float[Tensor, "rows candidates"], Float[Tensor, "rows totals"]]:
        """The logs of the candidates' probabilities, and the totals that `mixed_atoms` reads; `known` are the rows and
        indices of known facts, `popularity` logs of probabilities.

        `network` holds logits, and is overwritten. `weighting` replaces the chosen one.
        """
        weighting, at = weighting or self.chosen, (rules.rows, rules.candidates)
        if weighting.kind == "rules":
            logs = popularity.to(network).expand_as(network).clone()  # what no rule concludes shares by popularity
            logs[at] = -torch.inf
            logs = logs.log_softmax(1).add_(rules.log_others.unsqueeze(1))
            logs[at] = rules.log_probabilities
            return logs, logs.new_zeros(len(logs), 0)
        totals = [_log_total(network, known)]
        logs = network.sub_(totals[-1])
        if weighting.popularity:
            logs = _blended(logs, popularity, weighting)
            totals.append(_log_total(logs, known))
            logs.sub_(totals[-1])
        if weighting.kind == "sum":
            logs.mul_(weighting.value)
            logs[at] += softplus(rules.log_odds)
            totals.append(_log_total(logs, known))
            logs.sub_(totals[-1])
        elif weighting.value:
            logs.add_(np.log1p(-weighting.value))
            logs[at] = torch.logaddexp(logs[at], rules.log_probabilities + np.log(weighting.value))
        return logs, torch.cat(totals, dim=1)

    def mixed_atoms(
        self,
        network: Float[Tensor, " atoms"],
        totals: Float[Tensor, "atoms totals"],
        rules: tuple[Int64[Tensor, " reached"], Float[Tensor, " reached"], Float[Tensor, " reached"]],
        popularity: Float[Tensor, " atoms"],
        weighting: Weighting | None = None,
    ) -> Float[Tensor, " atoms"]:
        """The same of single atoms, by the `totals` of their rows; `rules`: which atoms some rule concludes, with the
        logs of their probabilities, and of their odds.
        """
        weighting, (at, log_probabilities, log_odds) = weighting or self.chosen, rules
        left = iter(totals.unbind(1))
        logs = network - next(left)
        if weighting.popularity:
            logs = _blended(logs, popularity, weighting) - next(left)
        if weighting.kind == "sum":
            logs = (logs * weighting.value).index_add(0, at, softplus(log_odds)) - next(left)
        elif weighting.value:
            logs = logs + np.log1p(-weighting.value)
            logs[at] = torch.logaddexp(logs[at], log_probabilities + np.log(weighting.value))
        return logs


def _blended(logs: Tensor, popularity: Tensor, weighting: Weighting) -> Tensor:
    """The logs of probabilities, of which popularity gives a share."""
    share = weighting.popularity
    return torch.logaddexp(logs + np.log1p(-share), popularity.to(logs) + np.log(share))


def log_odds(logs: Float64[np.ndarray, " *_"]) -> Float64[np.ndarray, " *_"]:
    """The logits of probabilities given by their logs; one that rounding may make 1 has the logit of 1 - `UNSURE`.

    A known fact may have more than all of the others together: its log is added to that.
    """
    return logs - np.log(-np.expm1(np.minimum(logs, -UNSURE)))


def from_log_odds(logits: Float64[np.ndarray, " *_"]) -> Float64[np.ndarray, " *_"]:
    """The logs of probabilities given by their logits."""
    return np.maximum(-np.logaddexp(0.0, -logits), logits + np.log(UNSURE))


def _log_total(logits: Tensor, known: tuple[np.ndarray, np.ndarray]) -> Tensor:
    """The log of the sum over the candidates of each row that are not known; of all if none is left."""
    among = logits.clone()
    among[tuple(map(torch.from_numpy, known))] = -torch.inf
    total = torch.logsumexp(among, dim=1, keepdim=True)
    return torch.where(torch.isneginf(total), torch.logsumexp(logits, dim=1, keepdim=True), total)
