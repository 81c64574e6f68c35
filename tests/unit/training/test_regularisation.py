"""Rules as fuzzy logic on the outputs: what a step costs, what enters it, and what it teaches."""

import numpy as np
import pytest
import torch

from r2n.errors import ConfigError
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.logic.formula import Atom, Unequal, Variable
from r2n.network.factor_graph import FactorGraph
from r2n.training.fit import Trainer
from r2n.training.objective import fuzzy_loss, fuzzy_truth, product
from tests.oracles import t_norms as oracle
from tests.unit.grounding.small_knowledge import knowledge
from tests.unit.training.toy_training import GRAPH, KNOWN, THEORY, closed_in, network, step_of, steps_of, toy

A, B = (Atom(name, (Variable("x"),)) for name in "ab")
NAMES: tuple[str, ...] = ("product", "goedel", "lukasiewicz")


def test_a_guard_has_no_truth() -> None:
    with pytest.raises(TypeError, match="Unequal has no truth"):
        fuzzy_truth(Unequal(Variable("x"), Variable("y")), torch.ones(2, 0), product)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layers", [0, 1])
def test_a_step_costs_the_mean_over_all_ground_rules_of_explicit_rules(name: str, layers: int) -> None:
    model = network(layers=layers)
    options = {"regularisation": name, "regularisation_weight": 3.0, "semantic_weight": 0.0, "hiding": 0.0}
    options |= {"corrupted_positions": [-1]}
    trainer = Trainer.from_source(model, GRAPH, KNOWN.evidence, **options)
    step = step_of(trainer)
    out, labels = model(step.batch).atoms.tolist(), step.targets.labels.tolist()
    closed = closed_in(step.graph).tolist()
    given = [label == 1 if is_closed else None for label, is_closed in zip(labels, closed, strict=True)]
    rules = [(rule.formula, rows.tolist()) for rule, rows in zip(step.graph.rules, step.graph.neighbours, strict=True)]
    assert len(step.graph) == len(GRAPH)
    expected = oracle.cost(name, rules, out, given)
    assert any(label < 0 for label in labels), "not only what is labelled"
    epoch = trainer.step()
    assert epoch.regularisation == pytest.approx(expected, rel=1e-5)
    assert epoch.loss == pytest.approx(epoch.supervised + 3 * expected, rel=1e-5)


def test_in_batches_every_ground_rule_counts_once() -> None:
    """Three parts that share nothing; only one of them is labelled."""
    rules = "rule neighbours: near(x, y) & liesIn(x, z) -> liesIn(y, z)\n"
    facts = "liesIn(n0,north) near(n0,n1) near(n1,n2) near(s0,s1) near(s1,s0)"
    known, graph = toy(facts=facts, rules=rules)
    costs = []
    for batches in (None, 2):
        model = network(known=known, layers=0)
        options = {"regularisation": "product", "semantic_weight": 0.0, "hiding": 0.0, "learning_rate": 1e-12}
        changes = {**options, "batches": batches, "corrupted_positions": [-1]}
        trainer = Trainer.from_source(model, graph, known.evidence, **changes)
        assert sum(len(step.graph) for step in steps_of(trainer)) == len(graph)
        costs.append(trainer.step().regularisation)
    assert len(steps_of(trainer)) == 2
    assert costs[0] == pytest.approx(costs[1], rel=1e-5)


def test_a_closed_atom_is_what_it_is_known_to_be() -> None:
    """No gradient reaches the outputs of borders: the rule cannot be kept by denying them."""
    model = network(layers=0)
    trainer = Trainer.from_source(model, GRAPH, KNOWN.evidence, regularisation="product", hiding=0.0)
    step = step_of(trainer)
    out = torch.zeros(len(step.graph.atoms), requires_grad=True)
    fuzzy_loss(step, out, product).backward()
    closed = closed_in(step.graph)
    assert out.grad is not None
    assert not out.grad[closed].any()
    assert out.grad[~closed].any()


def test_without_explicit_rules_it_is_refused_and_without_ground_rules_it_costs_nothing() -> None:
    known, graph = toy(rules="implicit alike: [old(x), liesIn(x, y)]\n")
    with pytest.raises(ConfigError, match="needs explicit rules, and the theory has none"):
        Trainer.from_source(network(known=known), graph, known.evidence, regularisation="goedel").step()
    known = knowledge("rule neighbours: near(x, y) & old(x) -> old(y)\n", "old(n0)", theory=THEORY)
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(known)), atoms=np.arange(known.base.size))
    assert not len(graph), "nothing is near anything"
    trainer = Trainer.from_source(network(known=known), graph, known.evidence, regularisation="goedel")
    assert trainer.step().regularisation == 0
