"""A source without some rules: in their places, nothing."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import r2n
from r2n.data.knowledge_base import KnowledgeBase
from r2n.data.problem import load_problem
from r2n.datasets.generated import GraphOptions, generate
from r2n.errors import ConfigError
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.store import Store
from r2n.model.run import prepare_run
from r2n.network.factor_graph import FactorGraph
from r2n.network.graph_sources import (
    Counted,
    GraphSource,
    GroundedOnDemand,
    Ungrounded,
    counted_rules,
    reachable_rules,
    without_rules,
)

THEORY = """
domain thing = {u, v, w}
predicate a(thing)
predicate b(thing)
predicate c(thing)
rule first: a(x) -> b(x)
rule second: b(x) -> c(x)
rule third: a(x) & b(x) -> c(x)
"""


def knowledge(theory: str = THEORY) -> KnowledgeBase:
    parsed = r2n.parse_theory(theory)
    language = KnowledgeBase.build(parsed).language
    known = np.array([0, 1], np.int64)  # a(u), a(v)
    return KnowledgeBase(parsed, language, r2n.Evidence(known, np.ones(2, bool)))


def sizes(graph: FactorGraph | None) -> list[int]:
    assert graph is not None
    return [len(part) for part in graph.neighbours]


def grounded(grounder: object) -> GraphSource:
    return GroundedOnDemand.from_knowledge(knowledge(), grounder)  # pyright: ignore


def test_nothing_left_out_is_the_source_and_more_is_left_out_of_what_is_left() -> None:
    source = grounded(FullGrounder())
    assert without_rules(source, []) is source
    assert sizes(without_rules(without_rules(source, ["first"]), ["third"]).full_graph) == [0, 3, 0]


def test_an_unknown_rule_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no rule 'thrid' to leave out") as error:
        without_rules(grounded(FullGrounder()), ["thrid"])
    assert "did you mean 'third'" in str(error.value)
    with pytest.raises(ConfigError, match="no rule 'zzz'"):
        without_rules(Ungrounded(), ["zzz"])


def test_counted_rules_count_nothing_and_the_others_as_before() -> None:
    known = knowledge()
    source = Counted(Ungrounded(), Store(known), known.theory.rules)
    counts, left = source.counts, without_rules(source, ["second", "first"]).counts
    assert counts is not None
    assert left is not None
    assert counted_rules(without_rules(source, ["first"])) == known.theory.rules
    only = Counted(Ungrounded(), Store(known), known.theory.rules[2:]).counts
    assert only is not None
    assert_array_equal(left.codes, only.codes)
    assert_array_equal(left.counts, only.counts)
    assert (left.rule == 2).all()
    assert left.starts.tolist() == [0, 0, 0, len(left.codes)]
    assert_array_equal(left.inverse, only.inverse)
    for position in range(1):
        ours, alone = left.by_pattern(2, position), only.by_pattern(2, position)
        assert_array_equal(ours.candidates, alone.candidates)
        assert_array_equal(left.left_out(2, position).starts, only.left_out(2, position).starts)


def test_which_rules_may_be_felt() -> None:
    asked = np.array([3], np.int64)  # b(u)
    assert reachable_rules(grounded(FullGrounder()), asked, 1) == {"first", "second", "third"}
    assert reachable_rules(grounded(KnownBodyGrounder()), asked, 1) == {"first"}
    assert reachable_rules(grounded(BackwardGrounder(1, 2)), asked, 1) == {"first"}
    assert reachable_rules(Ungrounded(), asked, 1) == frozenset()


def test_a_counted_rule_with_no_weight_is_a_rule_left_out(tmp_path: Path) -> None:
    """To drop the counts of a rule is to set its weight to minus infinity."""
    generate(GraphOptions(facts=400, constants=40, relations=3, rules=6, communities=4), tmp_path / "planted")
    problem = load_problem(tmp_path / "planted")
    run = prepare_run(problem, problem.options.changed(["model.rules=counted", "model.dim=4"]), seed=0)
    counted, counts = run.model.counted, run.source.counts
    assert counted is not None
    assert counts is not None
    j = int(np.bincount(counts.rule).argmax())  # the rule that concludes most
    name, codes = counts.rules[j].name, problem.test.atoms
    before, without = run.logits()(codes), run.logits().without_rules([name])(codes)
    assert not np.allclose(before, without, atol=1e-4)
    with torch.no_grad():
        counted.weights[j] = -1e9
    np.testing.assert_allclose(run.logits()(codes), without, atol=1e-6)
