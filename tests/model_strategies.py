"""Dice: small graphs with networks on them; rules of one to six atoms, boxes and scattered ground rules."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from random import Random
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.grounding.store import Store
from r2n.logic.formula import Atom, Constant, Formula, Implies, Or, Term, Variable
from r2n.logic.language import Domain
from r2n.logic.theory import Rule, Theory
from r2n.network.factor_graph import FactorGraph
from r2n.network.mlp import MLP, PositionMLP
from r2n.network.reasoning import ReasoningLayer, make_layer
from r2n.options import ModelOptions
from tests.oracles.grounding import World, domain_of, variables_of
from tests.oracles.message_passing import Choices, Maps, PlainRule
from tests.strategies import knowledge_of, make_graph, make_world
from tests.theory_strategies import FORMS, Scope, is_part, one_in

AGGREGATIONS = ("sum", "mean", "max", "mean-then-sum")
MOST_GROUND_RULES = 16

Module = TypeVar("Module", bound=nn.Module)


def wide(scope: Scope) -> Formula:
    """A formula over one to six atoms that share two variables or three: many atoms, few ground rules."""
    wanted = scope.dice.randint(1, 6)
    drawn = (related_atom(scope) for _ in range(4 * wanted))
    atoms = tuple(dict.fromkeys(drawn))[:wanted]
    if len(atoms) == 1:
        return atoms[0]
    return Implies(atoms[0], Or(atoms[1:])) if len(atoms) > 2 and one_in(2, scope.dice) else Or(atoms)


def related_atom(scope: Scope) -> Atom:
    predicate = scope.dice.choice(scope.predicates)
    return Atom(predicate.name, tuple(related_term(scope, domain) for domain in predicate.domains))


def related_term(scope: Scope, domain: Domain) -> Term:
    """A variable that fits, a third one only where none does, and constants where there are three."""
    fitting = [name for name, own in scope.domains.items() if is_part(own, domain)]
    if fitting and (len(scope.domains) > 1 or one_in(2, scope.dice)):
        return Variable(scope.dice.choice(fitting))
    return (
        Constant(scope.dice.choice(scope.members[domain.name]))
        if len(scope.domains) > 2 and scope.members[domain.name]
        else scope.term(domain)
    )


def make_small_world(dice: Random) -> World:
    """A world whose rules have few ground rules: plain loops with gradients walk through all of them."""
    world = make_world(dice, (wide, wide, wide, *FORMS))

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


def make_setting(dice: Random) -> Setting:
    """A graph of a random theory; its evidence and a few other atoms are always in it."""
    return setting_of(make_small_world(dice), dice)


def setting_of(world: World, dice: Random) -> Setting:
    """The full grounding of a world as a graph, with its evidence and a few other atoms."""
    knowledge = knowledge_of(world)
    size = knowledge.base.size
    asked = [dice.randrange(size) for _ in range(dice.randrange(4))] if size else []
    extra = np.union1d(knowledge.evidence.atoms, np.array(asked, np.int64))
    grounding = FullGrounder().ground(Store(knowledge))
    return Setting(knowledge, FactorGraph.from_grounding(grounding, atoms=extra))


def graph_of_rows(extra: list[int], per_rule: list[list[tuple[int, ...]]]) -> FactorGraph:
    """A graph of any rows at all, of implicit rules; a rule without ground rules gets two positions."""
    parts = []
    for j, rows in enumerate(per_rule):
        positions = len(rows[0]) if rows else 2
        atoms = tuple(Atom(f"p{i}", (Variable("x"),)) for i in range(positions))
        codes = np.array(rows, np.int64).reshape(-1, positions)
        parts.append(GroundRules(Rule(f"r{j}", None, atoms), codes, seconds=0.0))
    return FactorGraph.from_grounding(Grounding(tuple(parts)), atoms=np.array(extra, np.int64))


def make_scattered_graph(dice: Random) -> FactorGraph:
    """A graph whose ground rules fit no box, with atoms anywhere, also twice in one."""
    return graph_of_rows(*make_graph(dice))


def make_choices(dice: Random, aggregation: str) -> Choices:
    return Choices(
        aggregation=aggregation,
        residual=one_in(2, dice),
        isolated=dice.choice(("keep", "zero")),
        ordered=not one_in(3, dice),
    )


def choice_options(chosen: Choices) -> dict[str, Any]:
    reasoner = "r2n" if chosen.ordered else "fgnn"
    names = ("aggregation", "residual", "isolated")
    return {name: getattr(chosen, name) for name in names} | {"reasoner": reasoner}


def draw_options(dice: Random, theory: Theory, chosen: Choices | None = None) -> dict[str, Any]:
    """Any small network over a theory, with these choices or any."""
    widest = max((predicate.arity for predicate in theory.predicates), default=0)
    return {
        "dim": 3,
        "input": dice.choice(("distmult", "mlp", "complex")[: 3 if widest < 3 else 2]),
        "layers": dice.choice((1, 2)),
        "evidence_input": dice.choice(("off", "add", "only")),
        **choice_options(chosen or make_choices(dice, dice.choice(AGGREGATIONS))),
    }


def layer_for(
    graph: FactorGraph, chosen: Choices, *, seed: int, dim: int = 3, rule_dim: int = 2, **more: object
) -> ReasoningLayer:
    """A layer in float64 with weights and biases of any sign."""
    options = {"dim": dim, "rule_dim": rule_dim, **choice_options(chosen), **more}
    return shaken(make_layer(graph.rules, ModelOptions.model_validate(options)), seed)


def shaken(module: Module, seed: int) -> Module:
    """The module in float64, all its parameters drawn anew: no bias is zero."""
    generator = torch.Generator().manual_seed(seed)
    module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return module


def plain_maps(network: MLP) -> Maps:
    return [(linear.weight, linear.bias) for linear in network.linear()]


def plain_rule(update: MLP, to_atoms: PositionMLP) -> PlainRule:
    copies = [0 if to_atoms.shared else i for i in range(to_atoms.positions)]
    pairs = list(zip(to_atoms.weights, to_atoms.biases, strict=True))
    return PlainRule(plain_maps(update), [[(weight[c].T, bias[c]) for weight, bias in pairs] for c in copies])


def plain_rules(layer: ReasoningLayer) -> list[PlainRule]:
    return [plain_rule(update, to_atoms) for update, to_atoms in layer.parts()]


def plain_shared_rules(layer: ReasoningLayer, rules: Sequence[Rule]) -> list[PlainRule]:
    """The same where networks are shared: the first map of each rule written out, (1 + s_j) W and b + t_j."""
    assert layer.rule_embedding is not None
    found = []
    for j, rule in enumerate(rules):
        (shared,) = [plain_rule(*part) for part in layer.parts() if part[1].positions == len(rule.atoms)]
        (matrix, bias), *others = shared.update_rule
        scale, shift = 1 + layer.rule_embedding.scales[j], layer.rule_embedding.shifts[j]
        found.append(replace(shared, update_rule=[(scale.unsqueeze(1) * matrix, bias + shift), *others]))
    return found


def rows_of(graph: FactorGraph) -> list[list[tuple[int, ...]]]:
    """ne(g, i) as Python numbers."""
    return [[tuple(row) for row in part.tolist()] for part in graph.neighbours]


def vectors(count: int, dim: int, seed: int) -> Tensor:
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def seed_of(dice: Random) -> int:
    return dice.randrange(2**16)
