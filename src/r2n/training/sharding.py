"""Predictions -> a trained network: the part of a batch of queries that one of several processes asks.

What is asked is dealt out by its codes, so that every atom, and every ground rule, counts for one process.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph
from r2n.knowledge.herbrand import Codes
from r2n.training.negatives import Negatives
from r2n.training.team import Team


@dataclass(frozen=True, eq=False)
class Part:
    """What one process asks of a step: atoms, facts beside their negatives (for a softmax), and atoms beside."""

    asked: Codes
    negatives: Negatives
    beside: Codes


def part_of(whole: Part, team: Team, *, by_fact: bool) -> Part:
    """The part of a process: atoms one by one, and (`by_fact`) facts, each with all its negatives."""
    if team.count == 1:
        return whole
    own = slice(team.rank, None, team.count)
    asked, negatives = whole.asked[own].copy(), Negatives.none()
    if by_fact:
        negatives = Negatives(whole.negatives.facts[own].copy(), whole.negatives.atoms[own].copy())
        asked = np.union1d(asked, np.union1d(negatives.facts, negatives.codes))
    return Part(asked, negatives, whole.beside[own].copy())


def owned(
    graph: FactorGraph, own: Sequence[Int64[Tensor, " _"]], whole: Part, team: Team
) -> tuple[Int64[Tensor, " _"], ...]:
    """Of some ground rules of each rule, those of this process: of the first of its atoms that the whole step holds."""
    if team.count == 1:
        return tuple(own)
    codes = np.concatenate([whole.asked, whole.beside])
    owner = np.concatenate([np.arange(len(part)) % team.count for part in (whole.asked, whole.beside)])
    order = np.argsort(codes)
    codes, owner = codes[order], owner[order]
    atoms = graph.atoms.numpy()
    place = np.minimum(np.searchsorted(codes, atoms), max(len(codes) - 1, 0))
    is_there = codes[place] == atoms if len(codes) else np.zeros(len(atoms), bool)
    first = np.where(is_there, atoms, np.iinfo(np.int64).max)  # the smallest code of a ground rule that is there
    found = []
    for rows, some in zip(graph.neighbours, own, strict=True):
        chosen = rows[some].numpy()
        best = first[chosen].argmin(axis=1) if len(chosen) else np.zeros(0, np.int64)
        mine = owner[place[chosen[np.arange(len(chosen)), best]]] == team.rank
        found.append(some[torch.from_numpy(mine)])
    return tuple(found)
