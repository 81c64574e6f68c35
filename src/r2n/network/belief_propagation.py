"""Belief propagation as reasoning layers (Theorem 1), and most probable worlds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array
from torch import Tensor

from r2n.errors import ConfigError
from r2n.logic.theory import Rule
from r2n.network.factor_graph import FactorGraph
from r2n.network.mlp import MLP, PositionMLP
from r2n.network.reasoning import ReasoningLayer, Sum
from r2n.network.scatter import Incidence

LOG_ZERO = -1e4
"""The log-belief of what is impossible: networks have no minus infinity."""

MOST_ATOMS = 12

Map = tuple[Tensor, Tensor]
"""A linear map: weight (inputs, outputs), bias (outputs)."""


def belief_layer(rules: Sequence[Rule]) -> ReasoningLayer:
    """The layer of Theorem 1 for a theory, in float64; atoms in no ground rule get the empty sum."""
    updates, messages = [], []
    for rule in rules:
        positions, assignments = len(rule.atoms), satisfying(rule)
        width = max(1, positions * len(assignments))
        sums = torch.zeros(width, 2 * positions, dtype=torch.float64)
        targets: list[list[list[int]]] = [[[], []] for _ in range(positions)]
        for i in range(positions):
            for t, assignment in enumerate(assignments):
                unit = i * len(assignments) + t
                targets[i][assignment[i]].append(unit)
                for j, value in enumerate(assignment):
                    sums[unit, 2 * j + value] = float(j != i)
        update = MLP((2 * positions, width)).double()
        with torch.no_grad():
            update.linear()[0].weight.copy_(sums)
        longest = max(len(units) for pair in targets for units in pair)
        updates.append(update)
        by_position = [maximum_maps(pair, width, longest) for pair in targets]
        widest = [max(bias.shape[0] for _, bias in maps) for maps in zip(*by_position, strict=True)]
        network = PositionMLP(positions, [width, *widest]).double()  # each position is as wide as the widest of them
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.zero_()
            for i, maps in enumerate(by_position):
                for level, (weight, bias) in enumerate(maps):
                    network.weights[level][i, : weight.shape[0], : weight.shape[1]] = weight
                    network.biases[level][i, : bias.shape[0]] = bias
        messages.append(network)
    layer = ReasoningLayer(updates, messages, aggregation=Sum(), isolated="zero", residual=False, rule_dropout=0.0)
    return layer.double().requires_grad_(requires_grad=False)


def satisfying(rule: Rule) -> list[list[bool]]:
    """The assignments to a rule's atoms, by position, that satisfy its formula; all of them for an implicit rule."""
    holds, assignments = _assignments(rule)
    return assignments[holds].tolist()


def _assignments(rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """All assignments to a rule's atoms in binary order, and before them whether each satisfies the formula."""
    if len(rule.atoms) > MOST_ATOMS:
        raise ConfigError(
            f"rule '{rule.name}' has {len(rule.atoms)} atoms, belief propagation takes at most {MOST_ATOMS}",
            hint="split the rule, or train a network instead",
        )
    bits = np.arange(len(rule.atoms))[::-1]
    assignments = (np.arange(2 ** len(bits))[:, None] >> bits) & 1 == 1
    holds = np.ones(len(assignments), bool) if rule.formula is None else rule.formula.evaluate(assignments)
    return holds, assignments


def maximum_maps(targets: Sequence[Sequence[int]], inputs: int, longest: int) -> list[Map]:
    """Proposition 1: linear maps with ReLU between them whose outputs are the maxima over some inputs each.

    `longest` is the most inputs of an output; of none, the maximum is LOG_ZERO. Each level replaces pairs of values by
    max(a, b) = relu(a - b) + relu(b) - relu(-b), and carries a value that is alone as relu(a) - relu(-a).
    """
    values = [torch.eye(inputs, dtype=torch.float64)[list(units)] for units in targets]  # one row of weights a value
    maps: list[Map] = []
    for _ in range((longest - 1).bit_length() if longest else 0):
        units, halved = [], []
        for rows in values:
            pairs = len(rows) // 2
            a, b, alone = rows[: 2 * pairs : 2], rows[1::2], rows[2 * pairs :]
            units += [torch.stack([a - b, b, -b], dim=1).flatten(0, 1), alone, -alone]
            blocks = [torch.tensor([[1.0, 1.0, -1.0]])] * pairs + [torch.tensor([[1.0, -1.0]])] * len(alone)
            halved.append(torch.block_diag(torch.zeros(0, 0), *blocks).double())
        weight = torch.cat(units).t()
        maps.append((weight, weight.new_zeros(weight.shape[1])))
        values = list(torch.block_diag(*halved).split([len(rows) for rows in halved]))
    weight = torch.cat([rows if len(rows) else rows.new_zeros(1, rows.shape[1]) for rows in values]).t()
    return [*maps, (weight, torch.tensor([0.0 if len(rows) else LOG_ZERO for rows in values], dtype=torch.float64))]


Method = Literal["paper", "max-product", "sum-product"]
LogBeliefs = Float64[Tensor, "atoms 2"]


def log_beliefs(probability: Float[Tensor, " atoms"]) -> LogBeliefs:
    """(log b(false), log b(true)) of atoms that are true with these probabilities."""
    probability = probability.double()
    return torch.stack([1 - probability, probability], dim=1).log().clamp(min=LOG_ZERO)


def normalised(beliefs: LogBeliefs) -> LogBeliefs:
    """The same beliefs, with probabilities that add up to one."""
    return beliefs - torch.logsumexp(beliefs, dim=1, keepdim=True)


def infer(
    graph: FactorGraph, beliefs: LogBeliefs, *, method: Method = "paper", iterations: int = 10, damping: float = 0.0
) -> LogBeliefs:
    """Normalised log-beliefs after so many iterations, or when nothing changes any more.

    `damping` is the share of the old messages.
    """
    if method != "paper":
        parts = zip(graph.rules, graph.neighbours, strict=True)
        factors = [_Factors.from_rule(rule, rows.to(beliefs.device)) for rule, rows in parts]
        totals = beliefs.clone()
        for _ in range(iterations):
            if not sum([part.send(totals, maximum=method == "max-product", damping=damping) for part in factors]):
                break
            totals = beliefs.clone()
            for part in factors:
                totals.index_add_(0, part.rows.flatten(), part.messages.flatten(0, 1))
        return normalised(totals)
    layer = belief_layer(graph.rules).to(beliefs.device)
    incidence, beliefs = Incidence.from_graph(graph).to(beliefs.device), normalised(beliefs)
    for _ in range(iterations):
        updated, _ = layer(beliefs, incidence, rule_embeddings=False)
        before, beliefs = beliefs, normalised((1 - damping) * normalised(updated) + damping * beliefs)
        if torch.equal(before, beliefs):
            break
    return beliefs


@dataclass
class _Factors:
    """The ground rules of one rule: potentials of all assignments, and the messages they sent last."""

    rows: Int64[Tensor, "ground_rules positions"]
    assignments: Bool[Tensor, "assignments positions"]
    potentials: Float64[Tensor, "ground_rules assignments"]
    is_first: Bool[Tensor, "ground_rules positions"]
    messages: Float64[Tensor, "ground_rules positions 2"]

    @classmethod
    def from_rule(cls, rule: Rule, rows: Tensor) -> "_Factors":
        """An atom that fills several positions of a ground rule is one variable, read at the first of them."""
        positions, device, (holds, assignments) = rows.shape[1], rows.device, _assignments(rule)
        assignments, holds = (torch.from_numpy(part).to(device) for part in (assignments, holds))
        low, high = (LOG_ZERO, 0.0) if rule.weight is None else (0.0, rule.weight)
        potentials = torch.tensor([low, high], dtype=torch.float64, device=device)[holds.long()].repeat(len(rows), 1)
        is_first = torch.ones_like(rows, dtype=torch.bool)
        for j in range(positions):
            for i in range(j):
                same = rows[:, i] == rows[:, j]
                is_first[:, j] &= ~same
                differ = assignments[:, i] != assignments[:, j]
                potentials[same.unsqueeze(1) & differ] = LOG_ZERO
        return cls(rows, assignments, potentials, is_first, potentials.new_zeros(*rows.shape, 2))

    def send(self, totals: LogBeliefs, *, maximum: bool, damping: float) -> bool:
        """Update the messages, from each atom's belief without the last ones; whether any changed."""
        heard = (totals[self.rows] - self.messages) * self.is_first.unsqueeze(2)
        chosen = self.assignments.long()
        positions = range(self.rows.shape[1])
        scores = self.potentials + sum(heard[:, i, chosen[:, i]] for i in positions)
        sent = torch.zeros_like(self.messages)
        for i in positions:
            for value in (0, 1):
                part = scores[:, chosen[:, i] == value] - heard[:, i, value].unsqueeze(1)
                sent[:, i, value] = part.amax(1) if maximum else torch.logsumexp(part, 1)
        sent = (sent - sent.amax(2, keepdim=True)).clamp(min=LOG_ZERO) * self.is_first.unsqueeze(2)
        before, self.messages = self.messages, (1 - damping) * sent + damping * self.messages
        return not torch.equal(before, self.messages)


MOST_CLAUSES = 100_000
MOST_CELLS = 2**24
MOST_TRIES = 200
SECONDS = 5.0

Truths = Int64[np.ndarray, " atoms"]
"""1 true, 0 false, -1 not known, for each atom of a graph."""


@dataclass(frozen=True, eq=False)
class Clash:
    """Rules that no world satisfies together, given the known atoms: none of them can be left out (`is_minimal`)."""

    rules: tuple[Rule, ...]
    is_minimal: bool


@dataclass(frozen=True, eq=False)
class _Part:
    """The ground rules of a strict rule: their rows, and the assignments that satisfy or violate it."""

    rule: Rule
    rows: np.ndarray
    holds: np.ndarray
    breaks: np.ndarray


def find_clash(graph: FactorGraph, truths: Truths) -> Clash | None:
    """The strict rules of a graph that no world satisfies; None if a world does, or if the bounds are not enough."""
    parts: list[_Part] = []
    for rule, rows in zip(graph.rules, graph.neighbours, strict=True):
        if rule.weight is None and rule.formula is not None and len(rows):
            holds, assignments = _assignments(rule)
            parts.append(_Part(rule, rows.cpu().numpy(), assignments[holds], assignments[~holds]))
    if _is_satisfiable(parts, truths) is not False:
        return None
    left_out, tries = True, 0
    size = max(1, len(parts) // 2)
    while left_out or size > 1:
        size = size if left_out else size // 2
        left_out = False
        for start in range(0, len(parts), size):
            rest = [*parts[:start], *parts[start + size :]]
            tries += 1
            if tries > MOST_TRIES:
                return Clash(tuple(part.rule for part in parts), is_minimal=False)
            if rest and _is_satisfiable(rest, truths) is False:
                parts, left_out = rest, True
                break
    return Clash(tuple(part.rule for part in parts), is_minimal=True)


def _is_satisfiable(parts: Sequence[_Part], truths: Truths) -> bool | None:
    """Whether some world satisfies all ground rules; None if the bounds are not enough to find out.

    Each assignment v that violates a ground rule is a clause: the sum over its atoms of |x - v| is at least 1.
    """
    forced = _forced(parts, truths)
    if forced is None:
        return False
    clauses, columns, signs, least = [], [], [], []
    for part in parts:
        if len(part.rows) * len(part.breaks) > MOST_CLAUSES:
            return None
        assignment, ground_rule = np.nonzero(_fitting(part.breaks, part.rows, forced).T)
        rows, broken = part.rows[ground_rule], part.breaks[assignment]
        is_free = forced[rows] < 0
        clauses.append(is_free.nonzero()[0] + sum(map(len, least)))
        columns.append(rows[is_free])
        signs.append(np.where(broken, -1.0, 1.0)[is_free])
        least.append(1.0 - (broken & is_free).sum(axis=1))
    count = sum(map(len, least))
    if not 0 < count <= MOST_CLAUSES:
        return None if count else True
    atoms, column = np.unique(np.concatenate(columns), return_inverse=True)
    indices = np.concatenate(clauses), column
    matrix = csr_array((np.concatenate(signs), indices), shape=(count, len(atoms)))
    found = milp(
        np.zeros(len(atoms)),
        constraints=LinearConstraint(matrix, lb=np.concatenate(least)),  # pyright: ignore[reportArgumentType]
        integrality=np.ones(len(atoms)),
        bounds=Bounds(0, 1),
        options={"time_limit": SECONDS},
    )
    return {0: True, 2: False}.get(int(found.status))


def _forced(parts: Sequence[_Part], truths: Truths) -> Truths | None:
    """The known truths, and those that follow from single ground rules; None if a ground rule cannot hold."""
    truths, before = truths.copy(), -1
    while (known := int((truths >= 0).sum())) > before:
        before = known
        for part in parts:
            step = max(1, MOST_CELLS // max(1, part.holds.size))
            for rows in (part.rows[start : start + step] for start in range(0, len(part.rows), step)):
                fits = _fitting(part.holds, rows, truths)
                if not fits.any(axis=1).all():
                    return None
                for position, is_true in enumerate(part.holds.T):
                    for value in (0, 1):
                        never = ~fits[:, is_true != bool(value)].any(axis=1)
                        truths[rows[never, position]] = value
    return truths


def _fitting(assignments: np.ndarray, rows: np.ndarray, truths: Truths) -> np.ndarray:
    """Which assignments to the atoms of each ground rule agree with the known truths, and give an atom one truth."""
    fits = np.ones((len(rows), len(assignments)), bool)
    for position, values in enumerate(assignments.T):
        at = truths[rows[:, position]][:, None]
        fits &= (at < 0) | (at == values)
        for earlier in range(position):
            same = (rows[:, earlier] == rows[:, position])[:, None]
            fits &= ~same | (values == assignments[:, earlier])
    return fits
