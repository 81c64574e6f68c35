"""Reasoning layers to the letter of eqs. 2-5: one loop per ground rule and position, a vector at a time."""

from dataclasses import dataclass

import torch
from torch import Tensor

Maps = list[tuple[Tensor, Tensor]]  # matrix (outputs, inputs) and bias (outputs,), from input to output
Row = tuple[int, ...]


@dataclass(frozen=True)
class PlainRule:
    """A rule's MLP^1_j, and MLP^2_{j,i} for each position i."""

    update_rule: Maps
    message_to_atom: list[Maps]


@dataclass(frozen=True)
class Choices:
    """What the paper leaves open."""

    aggregation: str = "sum"
    residual: bool = False
    isolated: str = "zero"
    ordered: bool = True


def mlp(maps: Maps, x: Tensor) -> Tensor:
    for number, (matrix, bias) in enumerate(maps):
        x = matrix @ x + bias
        if number < len(maps) - 1:
            x = x.clamp(min=0)
    return x


def joined(messages: list[Tensor], ordered: bool) -> Tensor:
    """What MLP^1 reads: its atoms' messages one after the other, or (order-blind) their sum."""
    if ordered:
        return torch.cat(messages)
    total = torch.zeros_like(messages[0])
    for message in messages:
        total = total + message
    return total


def mean(vectors: list[Tensor]) -> Tensor:
    return summed(vectors) / len(vectors)


def summed(vectors: list[Tensor]) -> Tensor:
    total = vectors[0]
    for vector in vectors[1:]:
        total = total + vector
    return total


def aggregate(received: list[tuple[int, Tensor]], how: str) -> Tensor:
    """A of eq. 5, over the messages that one atom receives, each with the rule it comes from."""
    messages = [message for _, message in received]
    if how == "sum":
        return summed(messages)
    if how == "mean":
        return mean(messages)
    if how == "max":
        return torch.stack(messages).amax(dim=0)
    if how == "mean-then-sum":
        rules = sorted({rule for rule, _ in received})
        return summed([mean([message for own, message in received if own == rule]) for rule in rules])
    raise ValueError(how)


def layer(
    atoms: Tensor, neighbours: list[list[Row]], rules: list[PlainRule], choices: Choices
) -> tuple[Tensor, list[list[Tensor]]]:
    """The atoms' new embeddings, and the embeddings of the ground rules, rule by rule."""
    received: list[list[tuple[int, Tensor]]] = [[] for _ in range(len(atoms))]
    ground_rules: list[list[Tensor]] = []
    for j, (rule, rows) in enumerate(zip(rules, neighbours, strict=True)):
        ground_rules.append([])
        for row in rows:
            messages = [atoms[a] for a in row]  # eq. 2
            ground_rule = mlp(rule.update_rule, joined(messages, choices.ordered))  # eq. 3
            ground_rules[j].append(ground_rule)
            for i, a in enumerate(row):
                received[a].append((j, mlp(rule.message_to_atom[i], ground_rule)))  # eq. 4
    updated = [after(atoms[a], received[a], choices) for a in range(len(atoms))]
    return (torch.stack(updated) if updated else atoms), ground_rules


def after(atom: Tensor, received: list[tuple[int, Tensor]], choices: Choices) -> Tensor:
    """The new embedding of one atom (eq. 5)."""
    if received:
        new = aggregate(received, choices.aggregation)
    elif choices.isolated == "keep" and not choices.residual:
        new = atom
    else:
        new = torch.zeros_like(atom)
    return atom + new if choices.residual else new
