"""Predictions -> a trained network: what each step asks of the network, with the answers, laid out on a graph."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph
from r2n.knowledge.closed_world import closed_atoms
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import Evidence
from r2n.model.r2n import FALSE, TRUE, UNKNOWN
from r2n.training.losses import known_ground_rules
from r2n.training.negatives import fact_corruptions


@dataclass(frozen=True, eq=False)
class Questions:
    """Labels of a graph's atoms and ground rules.

    `labels` holds 1 true, 0 false, -1 unknown for each atom; `asked` the rows of labelled atoms that training asks for;
    `facts` and `candidates` rows of facts and of their corruptions (-1: none) for the softmax; `rules[j]` the ground
    rules of rule j whose atoms are all labelled, with the truth of the rule on them; `open_atoms`
    those that may be hidden, and `first_constants` by which they may be hidden together.
    """

    labels: Int64[Tensor, " atoms"]
    asked: Int64[Tensor, " asked"]
    facts: Int64[Tensor, " rows"]
    candidates: Int64[Tensor, "rows candidates"]
    rules: tuple[tuple[Int64[Tensor, " _"], Bool[Tensor, " _"]], ...]
    open_atoms: Bool[Tensor, " atoms"]
    first_constants: Int64[Tensor, " atoms"]


def ask(
    base: HerbrandBase,
    graph: FactorGraph,
    evidence: Evidence,
    *,
    positions: Sequence[int] | None = None,
    ask_closed: bool = False,
    negatives: int | None = None,
    seed: int = 0,
) -> Questions:
    """Questions about the evidence and its corruptions, as far as their atoms are in the graph."""
    codes = graph.atoms.numpy()
    rows, candidates = fact_corruptions(
        base,
        evidence,
        positions=positions,
        ask_closed=ask_closed,
        samples=negatives,
        generator=np.random.default_rng(seed),
    )
    labels = _labels(base, codes, evidence)
    labels[np.isin(codes, candidates) & (labels < 0)] = 0
    closed = closed_atoms(base, codes)
    tensor = torch.from_numpy(labels)
    return Questions(
        labels=tensor,
        asked=torch.from_numpy(np.flatnonzero((labels >= 0) & (~closed | ask_closed))),
        facts=torch.from_numpy(_rows(codes, rows)),
        candidates=torch.from_numpy(_rows(codes, candidates)),
        rules=tuple(rule_truths(graph, j, tensor) for j in range(len(graph.rules))),
        open_atoms=torch.from_numpy(~closed),
        first_constants=torch.from_numpy(base.decode(codes)[1][:, 0].copy() if len(codes) else np.zeros(0, np.int64)),
    )


def known_states(base: HerbrandBase, graph: FactorGraph, evidence: Evidence) -> Int64[Tensor, " atoms"]:
    """What is known of each atom, as the network reads it: UNKNOWN, FALSE or TRUE."""
    labels = torch.from_numpy(_labels(base, graph.atoms.numpy(), evidence))
    return torch.tensor([UNKNOWN, FALSE, TRUE])[labels + 1]


def _labels(base: HerbrandBase, codes: Codes, labelled: Evidence) -> np.ndarray:
    """1 true, 0 false (stated, corrupted, or by a closed world), -1 unknown."""
    labels = np.full(len(codes), -1, np.int64)
    labels[closed_atoms(base, codes)] = 0
    place = np.searchsorted(labelled.atoms, codes)
    found = place < len(labelled.atoms)
    found[found] = labelled.atoms[place[found]] == codes[found]
    labels[found] = labelled.truth[place[found]]
    return labels


def _rows(codes: Codes, wanted: np.ndarray) -> np.ndarray:
    """Rows of codes in the graph, -1 for those that are not in it."""
    place = np.searchsorted(codes, wanted)
    found = place < len(codes)
    found[found] = codes[place[found]] == wanted[found]
    return np.where(found, place, -1)


def rule_truths(graph: FactorGraph, j: int, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The ground rules of rule j whose atoms are all labelled, and the truth of the rule on them."""
    rule, rows = graph.rules[j], graph.neighbours[j]
    if rule.formula is None:
        nothing = torch.zeros(0, dtype=torch.int64)
        return nothing, nothing.bool()
    known = known_ground_rules(rows, labels).nonzero().flatten()
    return known, rule.formula.evaluate(labels[rows[known]] == 1)
