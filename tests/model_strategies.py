"""Hypothesis: small graphs with networks on them; rules of one to six atoms, boxes and scattered ground rules."""

from dataclasses import dataclass, replace
from math import prod
from typing import TypeVar

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from torch import Tensor, nn

from r2n.graph.factor_graph import FactorGraph
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.logic.formula import Atom, Formula, Implies, Or, Variable
from r2n.logic.theory import Rule
from r2n.model.mlp import MLP, PositionMLP
from r2n.model.r2n import make_layer
from r2n.model.reasoning import ReasoningLayer
from tests.oracles.grounding import World, domain_of, variables_of
from tests.oracles.message_passing import Choices, Maps, PlainRule
from tests.strategies import FORMS, Scope, graphs, knowledge_of, worlds

AGGREGATIONS = ("sum", "mean", "max", "mean-then-sum")
MOST_GROUND_RULES = 40

Module = TypeVar("Module", bound=nn.Module)


def wide(scope: Scope) -> Formula:
    """A formula over one to six atoms."""
    atoms = tuple(dict.fromkeys(scope.atom() for _ in range(scope.draw(st.integers(1, 6)))))
    if len(atoms) == 1:
        return atoms[0]
    whole = Or(atoms)
    return Implies(atoms[0], Or(atoms[1:])) if len(atoms) > 2 and scope.draw(st.booleans()) else whole


def small_worlds(**options: bool) -> SearchStrategy[World]:
    """Worlds whose rules have few ground rules: plain loops with gradients walk through all of them."""
    return worlds(forms=(wide, wide, wide, *FORMS[2:], None), **options).map(without_large_rules)


def without_large_rules(world: World) -> World:
    """The world without the rules that have too many substitutions."""

    def substitutions(rule: Rule) -> int:
        names = variables_of(rule)
        return prod(len(world.members[domain_of(world.theory, rule, name).name]) for name in names)

    rules = tuple(rule for rule in world.theory.rules if substitutions(rule) <= MOST_GROUND_RULES)
    return replace(world, theory=replace(world.theory, rules=rules))


@dataclass(frozen=True)
class Setting:
    """A knowledge base and its graph, with some atoms that no rule may reach."""

    knowledge: KnowledgeBase
    graph: FactorGraph


def setting_of(world: World, extra: np.ndarray) -> Setting:
    """The full grounding of a world as a graph, with extra atoms."""
    knowledge = knowledge_of(world)
    grounding = FullGrounder().ground(knowledge)
    return Setting(knowledge, FactorGraph.from_grounding(grounding, atoms=extra))


@st.composite
def settings(draw: DrawFn) -> Setting:
    """A graph of a random theory; its evidence and a few other atoms are always in it."""
    knowledge = knowledge_of(draw(small_worlds()))
    size = knowledge.base.size
    asked = draw(st.lists(st.integers(0, size - 1), max_size=4)) if size else []
    extra = np.union1d(knowledge.evidence.atoms, np.array(asked, np.int64))
    grounding = FullGrounder().ground(knowledge)
    return Setting(knowledge, FactorGraph.from_grounding(grounding, atoms=extra))


def graph_of_rows(extra: list[int], per_rule: list[list[tuple[int, ...]]]) -> FactorGraph:
    """A graph of any rows at all, of implicit rules; a rule without ground rules gets two positions."""
    parts = []
    for j, rows in enumerate(per_rule):
        positions = len(rows[0]) if rows else 2
        atoms = tuple(Atom(f"p{i}", (Variable("x"),)) for i in range(positions))
        codes = np.array(rows, np.int64).reshape(-1, positions)
        parts.append(GroundRules(Rule(f"r{j}", None, atoms), codes, estimate=len(rows), seconds=0.0))
    return FactorGraph.from_grounding(Grounding(tuple(parts)), atoms=np.array(extra, np.int64))


def scattered_graphs() -> SearchStrategy[FactorGraph]:
    """Graphs whose ground rules fit no box, with atoms anywhere, also twice in one."""
    return graphs().map(lambda drawn: graph_of_rows(*drawn))


def choices(aggregation: str) -> SearchStrategy[Choices]:
    """Every option beside this aggregation."""
    yes_or_no = st.booleans()
    return st.builds(
        Choices,
        aggregation=st.just(aggregation),
        residual=yes_or_no,
        exclude_self=yes_or_no,
        isolated=st.sampled_from(("keep", "zero")),
        ordered=yes_or_no,
    )


def layer_for(graph: FactorGraph, chosen: Choices, *, seed: int, dim: int = 3, rule_dim: int = 2) -> ReasoningLayer:
    """A layer in float64 with weights and biases of any sign."""
    layer = make_layer(
        graph.rules,
        dim,
        rule_dim,
        ordered=chosen.ordered,
        aggregation=chosen.aggregation,
        residual=chosen.residual,
        exclude_self=chosen.exclude_self,
        isolated=chosen.isolated,
    )
    return shaken(layer, seed)


def shaken(module: Module, seed: int) -> Module:
    """The module in float64, all its parameters drawn anew: no bias is zero."""
    generator = torch.Generator().manual_seed(seed)
    module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return module


def plain_maps(network: MLP) -> Maps:
    """An MLP of the library as the oracle takes it."""
    return [(linear.weight, linear.bias) for linear in network.linear()]


def plain_rule(update: MLP, to_atoms: PositionMLP) -> PlainRule:
    """A rule's networks as the oracle takes them."""
    copies = [0 if to_atoms.shared else i for i in range(to_atoms.positions)]
    pairs = list(zip(to_atoms.weights, to_atoms.biases, strict=True))
    return PlainRule(plain_maps(update), [[(weight[c].T, bias[c]) for weight, bias in pairs] for c in copies])


def plain_rules(layer: ReasoningLayer) -> list[PlainRule]:
    """All rules of a layer as the oracle takes them."""
    return [plain_rule(update, to_atoms) for update, to_atoms in layer.parts()]


def rows_of(graph: FactorGraph) -> list[list[tuple[int, ...]]]:
    """ne(g, i) as Python numbers."""
    return [[tuple(row) for row in part.tolist()] for part in graph.neighbours]


def vectors(count: int, dim: int, seed: int) -> Tensor:
    """Random embeddings in float64."""
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
