"""Dice: small problems with networks of any kind, to be explained: as a Model, and as plain re-runs take them."""

from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

import r2n
from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import as_trained
from r2n.data.problem import LoadReport, Problem
from r2n.logic.formula import Atom, Variable
from r2n.logic.language import Domain, Predicate
from r2n.logic.theory import Rule, Theory
from r2n.model.changes import ChangedProblem
from r2n.model.memory import make_source
from r2n.model.model import Model
from r2n.network.r2n import R2N
from r2n.options import Options
from tests.model_strategies import draw_options, make_small_world, seed_of, shaken
from tests.one_way import STRATEGIES
from tests.one_way import backward as backward_strategy
from tests.oracles.explanation import Rerun
from tests.oracles.grounding import World
from tests.strategies import ground_atoms, knowledge_of, make_world
from tests.theory_strategies import disjunctive, horn, one_in, share_of, with_denials

ALL_STRATEGIES = {**STRATEGIES, "backward(2,2)": backward_strategy(2, 2)}
"""Full, known-body, and backward chaining of several widths."""


@dataclass(frozen=True)
class Explained:
    predictor: r2n.Model
    rerun: Rerun
    world: World

    @property
    def base(self) -> HerbrandBase:
        return self.predictor.base

    @property
    def codes(self) -> dict[str, int]:
        base = self.rerun.base
        return {name: code for code, name in enumerate(base.names(np.arange(base.size)))}

    def asked(self, dice: Random) -> list[int]:
        """Two atoms, by code: one that stands in ground rules, where there is any, and one of any kind."""
        some, reached = range(self.base.size), self.reached
        return list(dict.fromkeys([*dice.sample(reached, min(1, len(reached))), *dice.sample(some, min(1, len(some)))]))

    @property
    def reached(self) -> list[int]:
        """The atoms that stand in ground rules."""
        graph = self.predictor.source.around(np.arange(self.base.size))
        found = graph.atoms[: graph.answered][graph.in_rules[: graph.answered]].tolist()
        return [code for code in found if code < self.base.size]


def draw(dice: Random, strategy: str) -> Explained:
    """A problem with ground rules, most of the time: without layers, facts or rules there are none."""
    drawn = draw_any(dice, strategy)
    for _ in range(8):
        if one_in(8, dice) or drawn.reached:
            break
        drawn = draw_any(dice, strategy)
    return drawn


def draw_any(dice: Random, strategy: str) -> Explained:
    """A world with something known or nothing, and a network of any options in float64."""
    chosen = ALL_STRATEGIES[strategy]
    over_grids = strategy == "full" and one_in(6, dice)
    world = related_world(dice) if over_grids else any_world(dice)
    options = Options().changed(chosen.options)
    model = options.model.model_copy(update=(grid_options if over_grids else any_options)(dice, world))
    grounding = options.grounding.model_copy(update={"reciprocal": over_grids or one_in(3, dice)})
    options = options.model_copy(update={"model": model, "grounding": grounding})
    known = knowledge_of(world)
    problem = Problem("random", known, {}, LoadReport((), (), ()), options)
    knowledge = as_trained(known, grounding)
    networks = [shaken(R2N.build(knowledge, model), seed_of(dice)).eval() for _ in range(1 + one_in(4, dice))]
    source = make_source(knowledge, options)
    made = Model(ChangedProblem.from_problem(problem), options, tuple(networks), knowledge, source)
    rerun = Rerun(networks, known, chosen.grounder, grounding.reciprocal)
    return Explained(made, rerun, world)


def any_world(dice: Random) -> World:
    """Few ground rules of any form, or rules with bodies, negated ones too, over what is known."""
    if one_in(2, dice):
        return make_small_world(dice)
    return fewer(make_world(dice, (horn, with_denials, with_denials, disjunctive), least=1))


def fewer(world: World) -> World:
    """The first two rules: a re-run goes through all ground rules, one by one."""
    return replace(world, theory=replace(world.theory, rules=world.theory.rules[:2]))


def related_world(dice: Random) -> World:
    """An implicit rule over all predicates of a pair, and perhaps another: a whole base, laid out as grids."""
    thing = Domain("d", listed=("a", "b", "c")[: dice.choice((2, 3))])
    predicates = tuple(Predicate(f"p{i}", (thing, thing)) for i in range(dice.choice((1, 2, 3))))
    x, y, z = map(Variable, "xyz")
    forms = [((x, y),), ((x, y), (y, z)), ((x, y), (y, x))]
    rules = tuple(
        Rule(f"r{i}", None, tuple(Atom(p.name, terms) for terms in form for p in predicates))
        for i, form in enumerate(forms[: dice.choice((1, 2))])
    )
    theory = Theory((thing,), predicates, rules)
    assert thing.listed is not None
    members = {"d": thing.listed}
    known = share_of(ground_atoms(theory, members), dice, (0.3, 0.5))
    return World(theory, members, frozenset(known))


def grid_options(dice: Random, world: World) -> dict[str, Any]:
    return {
        "input": dice.choice(("complex", "distmult")),
        "dim": 4,
        "layers": dice.choice((1, 2, 3)),
        "aggregation": dice.choice(("sum", "mean", "mean-then-sum")),
        "mlp": "shallow",
        "output": "linear",
        "residual": one_in(2, dice),
        "input_score": one_in(3, dice),
    }


def any_options(dice: Random, world: World) -> dict[str, Any]:
    widest = max((predicate.arity for predicate in world.theory.predicates), default=0)
    inputs = ("distmult", "mlp", "complex", "transe", "rotate") if widest < 3 else ("distmult", "mlp")
    layers = dice.choice((0, 1, 1, 2, 2, 2, 3))
    reasoner = dice.choice(("r2n", "r2n", "r2n", "r2n", "fgnn", "none") if layers else ("r2n",))
    has_layers = layers and reasoner != "none"
    return draw_options(dice, world.theory) | {
        "input": dice.choice(inputs),
        "dim": 4,
        "rule_dim": dice.choice((None, 3)),
        "layers": layers,
        "reasoner": reasoner,
        "evidence_input": dice.choice(("off", "add", "only")) if has_layers else "off",
        "rule_network": dice.choice(("own", "own", "shared")),
        "mlp": dice.choice(("deep", "shallow")),
        "output": dice.choice(("mlp", "linear")),
        "input_score": one_in(3, dice),
    }
