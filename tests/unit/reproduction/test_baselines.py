"""The baselines that learn nothing, and the accuracy of out(g)."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from r2n.data.problem import Problem
from r2n.data.tables import Table
from r2n.datasets.benchmarks import load
from r2n.grounding.full import KnownBodyGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.model.run import Run, prepare_run
from r2n.network.factor_graph import known_states
from r2n.reproduction.reproduce import EvidenceScores, ProofCounts, best_depth, rule_accuracy
from tests.strategies import codes_of

THEORY = "domain d\npredicate same(d, d)\npredicate linked(d, d) closed"
TEXTS = {"a": "machine learning 88", "b": "Machine_Learning", "c": "databases", "e": "!"}


def test_depth_one_counts_known_bodies(toy: Problem) -> None:
    grounding = KnownBodyGrounder().ground(Store(toy.knowledge))
    heads = grounding.ground_rules[0].atoms[:, 2].tolist()
    codes = toy.test.atoms
    counts = ProofCounts(toy.knowledge, 1)(codes)
    assert counts.tolist() == [heads.count(code) for code in codes.tolist()]
    np.testing.assert_array_equal(ProofCounts(toy.knowledge, 1)(codes[::-1]), counts[::-1])


def test_the_depth_is_chosen_on_validation_alone() -> None:
    problem = load("countries-s3")
    assert best_depth(problem) > 1, "in S3 one step reaches almost nothing"


@pytest.mark.parametrize(("words", "expected"), [(False, (1.0, 0.0, 0.0, 1.0)), (True, (1 + 2 / 3, 0.0, 1.0, 1.0))])
def test_a_fact_scores_one_and_words_their_jaccard_similarity(words: bool, expected: tuple[float, ...]) -> None:
    linked = Table(pa.table({"x": ["a", "e"], "y": ["b", "c"]}), "linked")
    knowledge = Problem.build(
        "x", parse_theory(THEORY), [linked], domains={"d": TEXTS}, features={"d": TEXTS}
    ).knowledge
    atoms = [("same", "a", "b"), ("same", "b", "c"), ("same", "c", "c"), ("same", "e", "c")]
    codes = codes_of(knowledge.base, knowledge.language, atoms)
    assert EvidenceScores(knowledge, "linked", words)(codes).tolist() == pytest.approx(expected)


def by_loops(run: Run) -> tuple[float, float]:
    base, queries = run.problem.knowledge.base, run.problem.test
    evidence, graph = run.knowledge.evidence, run.source.full_graph
    assert graph is not None
    truth = dict(zip(base.names(evidence.atoms), evidence.truth.tolist(), strict=True))
    asked = dict(zip(base.names(queries.atoms), queries.truth.tolist(), strict=True))
    right, holds = [], []
    (rule,), (rows,) = graph.rules, graph.neighbours
    logits = run.model(run.model.collate(graph), known=known_states(base, graph.atoms, evidence)).rules[0].tolist()
    for logit, row in zip(logits, rows.tolist(), strict=True):
        near, known, head = base.names(graph.atoms[row].numpy())
        given = {**truth, **asked}
        if near in truth and known in given and head in given and {known, head} & asked.keys():
            holds.append(not given[known] or given[head])
            right.append((logit > 0) == holds[-1])
    assert rule.name == "neighbours"
    return sum(right) / len(right), sum(holds) / len(holds)


def test_the_accuracy_of_rules_is_what_loops_count_and_needs_rule_outputs(toy_run: Run) -> None:
    torch.manual_seed(0)
    accuracy, holds = by_loops(toy_run)
    found = rule_accuracy(toy_run, "test")
    assert found == {"rule_accuracy": pytest.approx(accuracy), "rules_hold": pytest.approx(holds)}
    bare = prepare_run(toy_run.problem, toy_run.options.changed(["model.reasoner=none"]), 0)
    assert rule_accuracy(bare, "test") == {}
