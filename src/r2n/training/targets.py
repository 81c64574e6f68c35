"""Predictions -> a trained network: what a step asks of the network, with the answers, laid out on a graph."""

from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from r2n.errors import DataError
from r2n.graph.factor_graph import FactorGraph
from r2n.graph.known_states import known_truths
from r2n.knowledge.closed_world import closed_atoms
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import Evidence
from r2n.training.losses import known_ground_rules
from r2n.training.negatives import Negatives

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
