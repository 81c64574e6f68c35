"""How often rules stand in a graph and hold there, as plain loops count it."""

from random import Random

import numpy as np
import pytest

import r2n
from r2n.explanation.rules import counted_occurrences, occurrences
from r2n.grounding.counting import RuleCounts, is_counted
from r2n.grounding.store import Store
from r2n.network.factor_graph import known_truths
from tests.model_strategies import make_small_world
from tests.one_way import STRATEGIES
from tests.oracles import rules as oracle
from tests.strategies import knowledge_of

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_as_plain_loops_count(strategy: str, seed: int) -> None:
    knowledge = knowledge_of(make_small_world(Random(seed)))
    source = r2n.GroundedOnDemand.of(knowledge, STRATEGIES[strategy].grounder)
    graph = source.around(np.arange(knowledge.base.size))
    truths = known_truths(knowledge.base, graph.atoms.numpy(), knowledge.evidence)
    found = occurrences(graph, truths)
    for rule, rows in zip(graph.rules, graph.neighbours, strict=True):
        distinct = {tuple(graph.atoms[row].tolist()) for row in rows}
        expected = oracle.occurrence(rule, distinct, knowledge)
        assert (found[rule.name].ground_rules, found[rule.name].known) == expected[:2]
        assert found[rule.name].satisfied == pytest.approx(expected[2])


def test_out_is_a_mean_probability_and_none_where_there_is_nothing() -> None:
    knowledge = knowledge_of(make_small_world(Random(3)))
    graph = r2n.GroundedOnDemand.of(knowledge, r2n.FullGrounder()).whole
    assert graph is not None
    truths = known_truths(knowledge.base, graph.atoms.numpy(), knowledge.evidence)
    outs = [np.zeros(len(part)) if j % 2 == 0 else None for j, part in enumerate(graph.neighbours)]
    found = occurrences(graph, truths, outs)
    for j, (rule, part) in enumerate(zip(graph.rules, graph.neighbours, strict=True)):
        assert found[rule.name].out == (0.5 if j % 2 == 0 and len(part) else None)


@pytest.mark.parametrize("seed", SEEDS)
def test_counted_rules_as_the_ground_rules_with_a_known_body(seed: int) -> None:
    knowledge = knowledge_of(make_small_world(Random(seed)))
    rules = tuple(rule for rule in knowledge.theory.rules if is_counted(rule))
    found = counted_occurrences(RuleCounts.of(Store(knowledge), rules), knowledge.evidence)
    grounding = r2n.KnownBodyGrounder().ground(Store(knowledge))
    for part in grounding.ground_rules:
        if is_counted(part.rule):
            head = part.rule.head_positions[0]
            truths = known_truths(knowledge.base, part.atoms[:, head], knowledge.evidence)
            assert found[part.rule.name].ground_rules == len(part)
            assert found[part.rule.name].known == int((truths >= 0).sum())
            expected = float((truths == 1).sum() / (truths >= 0).sum()) if (truths >= 0).any() else None
            assert found[part.rule.name].satisfied == expected
