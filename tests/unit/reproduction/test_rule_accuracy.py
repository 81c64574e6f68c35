"""How well out(g) tells which ground rules hold, beside a count by loops."""

import pytest
import torch

from r2n.model.run import Run, prepare_run
from r2n.network.factor_graph import known_states
from r2n.reproduction.reproduce import rule_accuracy


def by_loops(run: Run) -> tuple[float, float]:
    base, queries = run.problem.knowledge.base, run.problem.test
    evidence, graph = run.knowledge.evidence, run.source.whole
    assert graph is not None
    truth = dict(zip(base.names(evidence.atoms), evidence.truth.tolist(), strict=True))
    asked = dict(zip(base.names(queries.atoms), queries.truth.tolist(), strict=True))
    right, holds = [], []
    (rule,), (rows,) = graph.rules, graph.neighbours
    logits = run.model(run.model.collate(graph), known=known_states(base, graph.atoms, evidence)).rules[0].tolist()
    for logit, row in zip(logits, rows.tolist(), strict=True):
        near, known, head = base.names(graph.atoms[row].numpy())
        told = {**truth, **asked}
        if near in truth and known in told and head in told and {known, head} & asked.keys():
            holds.append(not told[known] or told[head])
            right.append((logit > 0) == holds[-1])
    assert rule.name == "neighbours"
    return sum(right) / len(right), sum(holds) / len(holds)


def test_it_is_what_loops_count(toy_run: Run) -> None:
    torch.manual_seed(0)
    accuracy, holds = by_loops(toy_run)
    found = rule_accuracy(toy_run, "test")
    assert found == {"rule_accuracy": pytest.approx(accuracy), "rules_hold": pytest.approx(holds)}


def test_without_rule_outputs_there_is_nothing_to_tell(toy_run: Run) -> None:
    bare = prepare_run(toy_run.problem, toy_run.options.changed(["model.reasoner=none"]), 0)
    assert rule_accuracy(bare, "test") == {}
