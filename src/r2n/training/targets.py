"""What a step asks: targets, their loss, and the atoms whose input is masked."""

from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from r2n.data.herbrand import Codes, HerbrandBase, closed_atoms
from r2n.data.knowledge_base import Evidence
from r2n.errors import DataError
from r2n.network.factor_graph import FactorGraph, known_truths
from r2n.options import HidingOptions
from r2n.training.negatives import Negatives


def supervised_loss(
    out: Float[Tensor, " atoms"], truth: Bool[Tensor, " atoms"], counted: Bool[Tensor, " atoms"] | None = None
) -> Float[Tensor, ""]:
    """L_sup by binary cross-entropy, the mean over the atoms asked (and `counted`); zero where none is."""
    if not len(out):
        return out.sum()
    if counted is None:
        return binary_cross_entropy_with_logits(out, truth.to(out))
    return _mean(binary_cross_entropy_with_logits(out, truth.to(out), reduction="none"), counted)


def _mean(values: Float[Tensor, " n"], counted: Bool[Tensor, " n"]) -> Float[Tensor, ""]:
    """The mean of those that are counted, by weights: which these are is not looked at on the way."""
    weights = counted.to(values)
    return (values * weights).sum() / weights.sum().clamp(min=1)


def softmax_loss(
    true: Float[Tensor, " rows"],
    negatives: Float[Tensor, "rows negatives"],
    allowed: Bool[Tensor, "rows negatives"],
    counted: Bool[Tensor, " rows"] | None = None,
) -> Float[Tensor, ""]:
    """L_sup by the negative softmax: minus the log of each fact's share among itself and its negatives."""
    if not len(true):
        return true.sum()
    both = torch.cat([true.unsqueeze(1), negatives.masked_fill(~allowed, -torch.inf)], dim=1)
    shares = torch.logsumexp(both, dim=1) - true
    return shares.mean() if counted is None else _mean(shares, counted)


def semantic_loss(out: Float[Tensor, " ground_rules"], truth: Bool[Tensor, " ground_rules"]) -> Float[Tensor, ""]:
    """L_sem by binary cross-entropy, the mean over the ground rules whose atoms are all known."""
    return supervised_loss(out, truth)


def n3_penalty(vectors: Float[Tensor, "batch dim"]) -> Float[Tensor, ""]:
    """N3: the mean over vectors of the sum of cubed absolute components; zero where there is none."""
    if not len(vectors):
        return vectors.sum()
    return vectors.abs().pow(3).sum(-1).mean()


def known_ground_rules(
    rows: Int64[Tensor, "ground_rules positions"], labels: Int64[Tensor, " atoms"]
) -> Bool[Tensor, " ground_rules"]:
    """R_j^E: the ground rules whose atoms all have a label (1 true, 0 false, -1 unknown)."""
    return (labels[rows] >= 0).all(dim=1)


RuleTargets = tuple[Int64[Tensor, " _"], Bool[Tensor, " _"]]
"""The ground rules of a rule whose atoms are all labelled, and the truth of the rule on them."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Labels of a graph's atoms and ground rules.

    `labels` holds 1 true, 0 false, -1 unknown for each atom; `asked` the rows of labelled atoms that training asks for;
    `facts` and `negatives` rows of facts and of their negatives (-1: none) for the softmax; `rules[j]` the ground rules
    of rule j whose atoms are all labelled, with the truth of the rule on them; `open_atoms` those that may be hidden,
    and `first_constants` by which they may be hidden together.
    """

    labels: Int64[Tensor, " atoms"]
    asked: Int64[Tensor, " asked"]
    facts: Int64[Tensor, " rows"]
    negatives: Int64[Tensor, "rows negatives"]
    rules: tuple[RuleTargets, ...]
    open_atoms: Bool[Tensor, " atoms"]
    first_constants: Int64[Tensor, " atoms"]

    def to(self, device: torch.device) -> "Targets":
        """The same on a device."""
        rules = tuple((known.to(device), truth.to(device)) for known, truth in self.rules)
        tensors = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "rules"}
        return Targets(rules=rules, **{name: tensor.to(device) for name, tensor in tensors.items()})


def targets_of(
    base: HerbrandBase,
    graph: FactorGraph,
    evidence: Evidence,
    negatives: Negatives,
    false: Codes | None = None,
    *,
    ask_closed: bool = False,
) -> Targets:
    """Targets for the evidence and its negatives, all of which the graph must hold.

    `false` are further negatives, as far as it holds them. Atoms that the graph holds only as parts of others'
    neighbourhoods are labelled, but not asked.
    """
    codes = graph.atoms.numpy()
    _refuse_missing(base, graph, negatives)
    labels = known_truths(base, codes, evidence)
    is_negative = np.isin(codes, negatives.codes if false is None else np.union1d(negatives.codes, false))
    labels[is_negative & (labels < 0)] = 0
    closed = closed_atoms(base, codes)
    is_asked = (labels >= 0) & (~closed | ask_closed)
    is_asked[graph.answered :] = False
    tensor = torch.from_numpy(labels)
    there = negatives.atoms >= 0
    rows = np.full(negatives.atoms.shape, -1, np.int64)
    rows[there] = graph.rows(torch.from_numpy(negatives.atoms[there])).numpy()
    return Targets(
        labels=tensor,
        asked=torch.from_numpy(np.flatnonzero(is_asked)),
        facts=graph.rows(torch.from_numpy(negatives.facts)),
        negatives=torch.from_numpy(rows),
        rules=tuple(rule_targets(graph, j, tensor) for j in range(len(graph.rules))),
        open_atoms=torch.from_numpy(~closed),
        first_constants=torch.from_numpy(base.decode(codes)[1][:, 0].copy() if len(codes) else np.zeros(0, np.int64)),
    )


def _refuse_missing(base: HerbrandBase, graph: FactorGraph, negatives: Negatives) -> None:
    """A negative that is dropped would leave held-out facts, which the graph holds, as the only false atoms."""
    wanted = np.union1d(negatives.codes, negatives.facts)
    missing = wanted[~graph.contains(torch.from_numpy(wanted)).numpy()]
    if len(missing):
        raise DataError(
            f"{len(missing):,} of {len(wanted):,} facts and negatives are not in the graph,"
            f" {base.names(missing[:1])[0]} for one",
            hint="train from a source that grounds what is asked: GroundedOnDemand.of(knowledge, grounder)",
        )


def rule_targets(graph: FactorGraph, j: int, labels: Int64[Tensor, " atoms"]) -> RuleTargets:
    """The ground rules of rule j whose atoms are all labelled, and the truth of the rule on them."""
    rule, rows = graph.rules[j], graph.neighbours[j]
    if rule.formula is None:
        nothing = torch.zeros(0, dtype=torch.int64, device=rows.device)
        return nothing, nothing.bool()
    known = known_ground_rules(rows, labels).nonzero().flatten()
    return known, rule.formula.evaluate(labels[rows[known]] == 1)


def hidden_atoms(
    targets: Targets, options: HidingOptions, constants: int, *, generator: torch.Generator
) -> Bool[Tensor, " atoms"] | None:
    """The open atoms whose input is blanked in a step, or none at all; drawn on the CPU, for any device alike."""
    if not options.hiding:
        return None
    if options.hide_by == "atom":
        drawn = torch.rand(len(targets.labels), generator=generator) < options.hiding
        return drawn.to(targets.open_atoms.device) & targets.open_atoms
    by_constant = (torch.rand(constants, generator=generator) < options.hiding).to(targets.open_atoms.device)
    return by_constant[targets.first_constants] & targets.open_atoms


def hidden_by_code(
    codes: Int64[Tensor, " atoms"], targets: Targets, options: HidingOptions, *, generator: torch.Generator
) -> Bool[Tensor, " atoms"] | None:
    """The same, where one number is drawn for the step, and with it an atom's code tells whether it is hidden.

    An atom is then hidden or not wherever it stands, in any part of the step.
    """
    if not options.hiding:
        return None
    seed = int(torch.randint(2**62, (1,), generator=generator))
    drawn = torch.from_numpy(_uniform(codes.cpu().numpy(), seed) < options.hiding)
    return drawn.to(targets.open_atoms.device) & targets.open_atoms


def _uniform(codes: np.ndarray, seed: int) -> np.ndarray:
    """A number in [0, 1) for each code: the mixing of splitmix64 (Steele, Lea and Flood, 2014)."""
    mixed = codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) / 2**53
