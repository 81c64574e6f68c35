"""One batch of all queries asks what a step over the full graph asks: the same losses, the same gradients."""

import sys
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import event, given
from torch import Tensor

import r2n
from r2n.data.knowledge_base import KnowledgeBase, with_reciprocals
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.r2n import R2N
from r2n.options import TrainingOptions
from r2n.training import batches as training_batches
from r2n.training.batches import Losses, QueryBatches, Step, make_batches
from r2n.training.objective import Objective
from tests.examples import at_most
from tests.model_strategies import draw_options, make_small_world, seed_of, shaken
from tests.one_way import STRATEGIES
from tests.oracles.grounding import World
from tests.strategies import knowledge_of, make_candidates
from tests.theory_strategies import dice, one_in

CLOSE: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-8}


def draw_knowledge(dice: Random) -> KnowledgeBase:
    world = make_small_world(dice)
    if one_in(4, dice):
        world, _ = make_candidates(dice, (world, []))
    return with_reciprocals(knowledge_of(world)) if one_in(3, dice) else knowledge_of(world)


PATHS = """
domain n
predicate next(n, n) closed
predicate near(n, n)
rule start: next(x, y) -> near(x, y)
rule turn: near(x, y) -> near(y, x)
rule step: next(x, y) & near(y, z) -> near(x, z)
rule back: next(x, y) -> next(y, x)
"""


def draw_paths(dice: Random) -> KnowledgeBase:
    """A few labelled pairs, and most others far from them."""
    names = [f"n{i}" for i in range(dice.choice((12, 6)))]
    facts = {("next", *pair) for pair in pairwise(names) if not one_in(4, dice)}
    near = {("near", dice.choice(names), dice.choice(names)): one_in(2, dice) for _ in range(dice.choice((1, 2)))}
    world = World(
        parse_theory(PATHS),
        {"n": tuple(names)},
        frozenset(facts | {atom for atom, truth in near.items() if truth}),
        frozenset(atom for atom, truth in near.items() if not truth),
    )
    return knowledge_of(world)


def draw_network(dice: Random, knowledge: KnowledgeBase) -> R2N:
    options = draw_options(dice, knowledge.theory)
    more = {"input_score": one_in(2, dice), "rule_network": dice.choice(("own", "shared"))}
    return shaken(R2N.build(knowledge, **options, **more), seed_of(dice))


def draw_training(dice: Random, knowledge: KnowledgeBase) -> TrainingOptions:
    explicit = any(rule.formula is not None for rule in knowledge.theory.rules)
    return TrainingOptions(
        loss=dice.choice(("bce", "softmax")),
        corrupted_positions=dice.choice((None, (0,), (-1,), ())),
        semantic_weight=dice.choice((0.0, 0.5)),
        regularisation=dice.choice(("off", "off", "product", "goedel")) if explicit else "off",
    )


def hidden_in(step: Step) -> Tensor:
    return (step.graph.atoms % 3 == 0) & step.targets.open_atoms


def losses_of(network: R2N, objective: Objective, step: Step) -> tuple[Losses, list[Tensor]]:
    hidden = hidden_in(step)
    found = objective.losses(step, network(step.batch, hidden=hidden, known=step.known), hidden)
    network.zero_grad()
    if found.total.requires_grad:
        found.total.backward()
    return found, [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in network.parameters()]


def only_of(step: Step, evidence: r2n.Evidence) -> Step:
    """Without the ground rules of closed atoms none of which is stated: nothing that is asked leads to them."""
    found = torch.from_numpy(np.isin(step.graph.atoms.numpy(), evidence.atoms)) | step.targets.open_atoms
    kept = [
        found[rows[known]].any(1) for rows, (known, _) in zip(step.graph.neighbours, step.targets.rules, strict=True)
    ]
    rules = tuple((known[keep], truth[keep]) for (known, truth), keep in zip(step.targets.rules, kept, strict=True))
    return replace(step, targets=replace(step.targets, rules=rules))


@pytest.mark.parametrize("strategy", STRATEGIES)
@at_most(15, "two passes of a network, with gradients")
@given(dice=dice())
def test_one_batch_without_sampling_is_the_whole_graph(strategy: str, dice: Random) -> None:
    knowledge = draw_knowledge(dice)
    network, options, evidence = draw_network(dice, knowledge), draw_training(dice, knowledge), knowledge.evidence
    source = GroundedOnDemand.from_knowledge(knowledge, STRATEGIES[strategy].grounder)
    objective = Objective(network, evidence, options)
    (full,) = make_batches(network, source, evidence, options).steps
    if options.regularisation == "off" and source.full_graph is not None:
        full = only_of(full, evidence)
    batched = options.model_copy(update={"batch_size": len(evidence) + 1, "leave_one_out": False})
    batches = QueryBatches(network, source, evidence, batched)
    (batch,) = batches.epoch(torch.Generator())
    event(f"{strategy}: {'some' if len(full.graph) else 'no'} ground rules, {len(full.targets.asked) > 0} asked")
    assert batch.graph.atoms[batch.targets.asked].tolist() == full.graph.atoms[full.targets.asked].tolist()
    expected, gradients = losses_of(network, objective, full)
    found, batch_gradients = losses_of(network, objective, batch)
    for part in ("supervised", "semantic", "fuzzy", "total"):
        torch.testing.assert_close(
            getattr(found, part), getattr(expected, part), **CLOSE, msg=lambda m, p=part: f"{p}: {m}"
        )
    for one, other in zip(batch_gradients, gradients, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@at_most(40, "two passes of a network, with gradients")
@given(dice=dice())
def test_ground_rules_that_the_layers_do_not_reach_change_nothing(dice: Random) -> None:
    knowledge = draw_paths(dice)
    network, evidence = draw_network(dice, knowledge), knowledge.evidence
    corrupted = () if one_in(2, dice) else (0,)
    options = TrainingOptions(semantic_weight=dice.choice((0.0, 0.5)), corrupted_positions=corrupted)
    store, grounder = Store(knowledge, asks_closed=one_in(3, dice)), dice.choice((FullGrounder(), KnownBodyGrounder()))
    source, objective = GroundedOnDemand(store, grounder), Objective(network, evidence, options)
    found = []
    for fewer in (sys.maxsize, 0):  # the graph is cut in no case; in every case
        with patch.object(training_batches, "FEWER", fewer):
            (step,) = make_batches(network, source, evidence, options).steps
        found.append((*losses_of(network, objective, step), len(step.graph)))
    (expected, gradients, whole), (losses, cut_gradients, part) = found
    event("some are not reached" if part < whole else "all are reached")
    for one, other in zip((*losses, *cut_gradients), (*expected, *gradients), strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("strategy", STRATEGIES)
@at_most(5, "several passes of a network, with gradients")
@given(dice=dice())
def test_what_is_asked_once_counts_in_small_batches_as_in_the_whole(strategy: str, dice: Random) -> None:
    """Labels alone: no negative is asked in two batches, so that the mean over steps is the mean over all labels."""
    knowledge = draw_knowledge(dice)
    network, evidence = draw_network(dice, knowledge), knowledge.evidence
    options = TrainingOptions(corrupted_positions=(), semantic_weight=0)
    source = GroundedOnDemand.from_knowledge(knowledge, STRATEGIES[strategy].grounder)
    (full,) = make_batches(network, source, evidence, options).steps
    batched = options.model_copy(update={"batch_size": dice.choice((1, 2, 3)), "leave_one_out": False})
    steps = list(QueryBatches(network, source, evidence, batched).epoch(torch.Generator()))
    event(f"{len(steps) > 1}")
    network.evidence_input = "off"  # counts what is hidden alone, whose number differs from step to step
    objective = Objective(network, evidence, options)
    _, expected = losses_of(network, objective, full)
    found = [losses_of(network, objective, step)[1] for step in steps]
    for parts, of_whole in zip(zip(*found, strict=True), expected, strict=True):
        torch.testing.assert_close(torch.stack(parts).mean(0), of_whole, **CLOSE)
