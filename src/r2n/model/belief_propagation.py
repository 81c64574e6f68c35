"""Tensors -> predictions: the paper's belief propagation as a reasoning layer whose weights are set, not learned.

Theorem 1: with Emb(a) = (log b(a false), log b(a true)), one forward pass of the layer is one iteration of the paper's
max-product recursion in log-beliefs (eq. 9),

    log b(x_i) = sum over g of max over x_g in T_g with x_i of sum over j != i of log b(x_j),

with T_g the assignments that satisfy the formula of g. MLP^1_j is one linear map: for each position i and each
satisfying assignment, the sum over the other positions. MLP^2_{j,i} is the ReLU network of Proposition 1, which takes
the maximum. Mind what the recursion is: it adds whole beliefs, not messages that leave the recipient out, and the
beliefs it starts from enter once; `inference.py` has the textbook's form.
"""

from collections.abc import Sequence
from itertools import product
from math import ceil, log2

import torch
from torch import Tensor

from r2n.errors import ConfigError
from r2n.logic.theory import Rule
from r2n.model.mlp import MLP, PositionMLP
from r2n.model.reasoning import ReasoningLayer

LOG_ZERO = -1e4
"""The log-belief of what is impossible: networks have no minus infinity."""

MOST_ATOMS = 12

Combination = dict[int, float]
"""A linear combination of the units of a layer: unit -> factor."""

Map = tuple[Tensor, Tensor]
"""A linear map: weight (inputs, outputs), bias (outputs)."""


def belief_layer(rules: Sequence[Rule]) -> ReasoningLayer:
    """The layer of Theorem 1 for a theory, in float64; atoms in no ground rule get the empty sum."""
    parts = [_rule_networks(rule) for rule in rules]
    layer = ReasoningLayer(
        [update for update, _ in parts],
        [to_atoms for _, to_atoms in parts],
        aggregation="sum",
        isolated="zero",
        residual=False,
        exclude_self=False,
        rule_dropout=0.0,
    )
    return layer.double().requires_grad_(requires_grad=False)


def maximum_network(inputs: int) -> MLP:
    """Proposition 1: the maximum of n inputs by ceil(log2 n) ReLU layers of at most 2n units, in float64."""
    maps = _maximum_maps([list(range(inputs))], inputs, _levels(inputs))
    network = MLP([inputs, *(bias.shape[0] for _, bias in maps)]).double()
    with torch.no_grad():
        for layer, (weight, bias) in zip(network.linear(), maps, strict=True):
            layer.weight.copy_(weight.t())
            layer.bias.copy_(bias)
    return network.requires_grad_(requires_grad=False)


def satisfying(rule: Rule) -> list[list[bool]]:
    """The assignments to a rule's atoms, by position, that satisfy its formula; all of them for an implicit rule."""
    if len(rule.atoms) > MOST_ATOMS:
        raise ConfigError(
            f"rule '{rule.name}' has {len(rule.atoms)} atoms, belief propagation takes at most {MOST_ATOMS}",
            hint="split the rule, or train a network instead",
        )
    if rule.formula is None:
        return [list(assignment) for assignment in product((False, True), repeat=len(rule.atoms))]
    return rule.formula.satisfying_assignments().tolist()


def _rule_networks(rule: Rule) -> tuple[MLP, PositionMLP]:
    """MLP^1_j and MLP^2_j of a rule."""
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
    levels = max(_levels(len(units)) for pair in targets for units in pair)
    return update, _position_network([_maximum_maps(pair, width, levels) for pair in targets], width)


def _position_network(by_position: list[list[Map]], width: int) -> PositionMLP:
    """One network for all positions, as wide as the widest of them."""
    widest = [max(bias.shape[0] for _, bias in maps) for maps in zip(*by_position, strict=True)]
    network = PositionMLP(len(by_position), [width, *widest]).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        for i, maps in enumerate(by_position):
            for level, (weight, bias) in enumerate(maps):
                network.weights[level][i, : weight.shape[0], : weight.shape[1]] = weight
                network.biases[level][i, : bias.shape[0]] = bias
    return network


def _levels(count: int) -> int:
    """How often values must be halved until one is left."""
    return ceil(log2(count)) if count > 1 else 0


def _maximum_maps(targets: Sequence[Sequence[int]], inputs: int, levels: int) -> list[Map]:
    """Linear maps with ReLU between them whose outputs are the maxima over some inputs each; nothing has LOG_ZERO.

    A level replaces each pair of values by max(a, b) = relu(a - b) + relu(b) - relu(-b), and carries a value that is
    alone as relu(a) - relu(-a).
    """
    values: list[list[Combination]] = [[{unit: 1.0} for unit in units] for units in targets]
    maps: list[Map] = []
    before = inputs
    for _ in range(levels):
        units: list[Combination] = []
        values = [_halved(of_target, units) for of_target in values]
        maps.append(_as_map(units, before))
        before = len(units)
    weight, bias = _as_map([of_target[0] if of_target else {} for of_target in values], before)
    bias[[not of_target for of_target in values]] = LOG_ZERO
    return [*maps, (weight, bias)]


def _halved(values: list[Combination], units: list[Combination]) -> list[Combination]:
    """Half as many values, over new ReLU units of the previous layer's combinations."""
    halved: list[Combination] = []
    for a, b in zip(values[::2], [*values[1::2], None], strict=False):
        start = len(units)
        if b is None:
            units += [a, _scaled(a, -1.0)]
            halved.append({start: 1.0, start + 1: -1.0})
        else:
            units += [_added(a, _scaled(b, -1.0)), b, _scaled(b, -1.0)]
            halved.append({start: 1.0, start + 1: 1.0, start + 2: -1.0})
    return halved


def _scaled(values: Combination, factor: float) -> Combination:
    return {unit: factor * value for unit, value in values.items()}


def _added(one: Combination, other: Combination) -> Combination:
    return {unit: one.get(unit, 0.0) + other.get(unit, 0.0) for unit in one.keys() | other.keys()}


def _as_map(units: list[Combination], inputs: int) -> Map:
    weight = torch.zeros(inputs, len(units), dtype=torch.float64)
    for unit, combination in enumerate(units):
        for source, factor in combination.items():
            weight[source, unit] = factor
    return weight, torch.zeros(len(units), dtype=torch.float64)
