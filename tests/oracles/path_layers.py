"""Grounding and reasoning along paths, a fact and a vector at a time."""

from collections.abc import Iterable

import torch
from torch import Tensor

from tests.oracles.message_passing import Maps, mlp

Fact = tuple[int, int, int]  # predicate, first and second constant


def left_out(asked: Fact, reciprocals: list[int], facts: Iterable[Fact], pairs: bool) -> set[Fact]:
    """The facts that a known atom is asked without: itself and its reciprocal, or all of its two constants."""
    q, h, y = asked
    if pairs:
        return {fact for fact in facts if fact[1:] in ((h, y), (y, h))}
    return {(q, h, y), (reciprocals[q], y, h)}


def steps_outwards(facts: set[Fact], head: int, depth: int) -> list[list[Fact]]:
    """For each step, the facts r(z, y) of its ground rules [q(h, z), r(z, y), q(h, y)]."""
    reached, steps = {head}, []
    for _ in range(depth):
        found = [fact for fact in sorted(facts) if fact[1] in reached]
        reached |= {y for _, _, y in found}
        steps.append(found)
    return steps


def row_logits(weights: dict[str, Tensor], facts: set[Fact], q: int, head: int, depth: int) -> dict[int, Tensor]:
    """The logit of q(head, y) for each y that ground rules reach; `weights` are those of the network by name."""
    asked = weights["embedding"][q]
    dim, state = len(asked), {head: asked}
    for number, ground_rules in enumerate(steps_outwards(facts, head, depth)):
        layer = {name.removeprefix(f"layers.{number}."): value for name, value in weights.items()}
        sums = {head: asked}
        for y in state:
            sums.setdefault(y, torch.zeros_like(asked))
        for r, z, y in ground_rules:
            at = slice(r * dim, (r + 1) * dim)
            of_r = layer["weights.weight"][at] @ asked + layer["weights.bias"][at]
            sums[y] = sums.get(y, torch.zeros_like(asked)) + state[z] * of_r
        after = {}
        for y, message in sums.items():
            before = state.get(y, torch.zeros_like(asked))
            changed = layer["update.weight"] @ torch.cat([before, message]) + layer["update.bias"]
            spread = (changed - changed.mean()) / (changed.var(unbiased=False) + 1e-5).sqrt()
            after[y] = before + (spread * layer["norm.weight"] + layer["norm.bias"]).clamp(min=0)
        state = after
    maps: Maps = [(weights[f"output.layers.{i}.weight"], weights[f"output.layers.{i}.bias"]) for i in (0, 1)]
    return {y: mlp(maps, torch.cat([vector, asked]))[0] for y, vector in state.items()}


def alone(weights: dict[str, Tensor], facts: set[Fact], q: int, y: int) -> Tensor:
    """What the facts of y say by themselves."""
    return sum((weights["alone"][q, r] for r in {r for r, z, _ in facts if z == y}), weights["alone"].new_zeros(()))


def row_loss(logits: dict[int, Tensor], answers: list[int], known: set[int], candidates: Iterable[int]) -> Tensor:
    """The mean of minus the log of each answer's probability among it and the candidates that are not known."""
    members, losses = list(candidates), []
    for answer in answers:
        among = [y for y in members if y == answer or y not in known]
        every = torch.stack([logits[y] for y in among])
        losses.append(torch.logsumexp(every, 0) - every[among.index(answer)])
    return torch.stack(losses).mean()
