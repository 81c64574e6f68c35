"""Mean-field inference: the steps of plain loops, exact effects of ground rules, and what it needs."""

from itertools import product
from math import exp

import numpy as np
import pytest
import torch
from torch import Tensor

from r2n.data.problem import Problem
from r2n.errors import ConfigError
from r2n.logic.formula import Formula
from r2n.model.choices import choose_options
from r2n.model.run import Run, prepare_run
from r2n.network.mean_field import MeanField
from r2n.network.r2n import R2N

NAMES = [f"n{i}" for i in range(6)]
THEORY = """
    domain item
    predicate near(item, item) closed
    predicate good(item)
    predicate bad(item)
    rule spread [0.8]: near(x, y) & good(x) -> good(y)
    rule apart: good(x) & !bad(x) | near(x, x)
    rule either [-0.5]: near(x, y) -> good(x) | bad(y)
"""
NEAR = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (2, 2)]
STEPS = 3
REFERENCES = {"good": 0.3, "bad": 0.6}
MEAN_FIELD = [
    *("model.reasoner=mean-field", "model.evidence_input=add", f"model.layers={STEPS}", "model.dim=4"),
    *("training.epochs=0", "training.batch_size=2", "training.hiding=0.3"),
]


def problem(theory: str = THEORY) -> Problem:
    facts = [*(("near", NAMES[i], NAMES[j]) for i, j in NEAR), ("good", "n0", True), ("bad", "n3", True)]
    return Problem.from_facts([*facts, ("good", "n2", False), ("bad", "n5", False)], theory, domains={"item": NAMES})


def run_of(*changes: str, theory: str = THEORY) -> Run:
    made = problem(theory)
    return prepare_run(made, made.options.changed([*MEAN_FIELD, *changes]))


def learned_weights(model: R2N) -> Tensor:
    layer = model.layers[0]
    assert isinstance(layer, MeanField)
    return layer.weights


def sigmoid(logit: float) -> float:
    return 1 / (1 + exp(-logit))


def expected_truth(formula: Formula, chances: list[float]) -> float:
    """The probability that a formula holds if its atoms are true independently, by all their truths."""
    total = 0.0
    for truths in product([False, True], repeat=len(chances)):
        share = np.prod([chance if truth else 1 - chance for truth, chance in zip(truths, chances, strict=True)])
        total += float(share) * bool(formula.evaluate(np.array(truths)))
    return total


def by_loops(run: Run) -> dict[int, float]:
    """The logit of each open atom: its score, and the messages after some steps."""
    graph, evidence = run.source.full_graph, run.knowledge.evidence
    assert graph is not None
    codes = graph.atoms.tolist()
    scores = dict(zip(codes, alone(run, np.array(codes)), strict=True))
    known = dict(zip(evidence.atoms.tolist(), evidence.truth.tolist(), strict=True))
    known |= {code: False for code in codes if run.knowledge.base.names(np.array([code]))[0].startswith("near")} | known
    messages = dict.fromkeys(codes, 0.0)
    weights, names = {rule.name: rule.weight or 0.0 for rule in graph.rules}, run.knowledge.base.names
    is_open = {code: not names(np.array([code]))[0].startswith("near") for code in codes}
    usual = {code: REFERENCES[names(np.array([code]))[0].partition("(")[0]] if is_open[code] else 0.0 for code in codes}
    for _ in range(STEPS):
        chance = {
            code: float(known[code]) if code in known else sigmoid(scores[code] + messages[code]) for code in codes
        }
        sums = dict.fromkeys(codes, 0.0)
        for rule, rows in zip(graph.rules, graph.neighbours, strict=True):
            assert rule.formula is not None
            for ground_rule in rows.tolist():
                atoms = [codes[row] for row in ground_rule]
                for i, atom in enumerate(atoms):
                    rest = [*atoms[:i], *atoms[i + 1 :]]
                    for sign in (1, -1) if any(is_open[other] for other in rest) else (1,):
                        others = [chance[other] if sign > 0 or not is_open[other] else usual[other] for other in atoms]
                        with_it, without = (
                            expected_truth(rule.formula, [*others[:i], t, *others[i + 1 :]]) for t in (1, 0)
                        )
                        sums[atom] += sign * weights[rule.name] * (with_it - without)
        messages = sums
    return {code: scores[code] + messages[code] for code in codes}


def alone(run: Run, codes: np.ndarray) -> np.ndarray:
    """The scores of the input layer."""
    model = run.model
    index, arguments = model.base.decode(codes)
    found = np.zeros(len(codes))
    for predicate in np.unique(index).tolist():
        which, arity = np.flatnonzero(index == predicate), len(model.base.shapes[predicate])
        predicates = torch.from_numpy(index[which])
        rows = torch.from_numpy(arguments[which, :arity].copy())
        atoms = model.atom_embedding.collate(predicates, rows, model.constants)
        with torch.no_grad():
            found[which] = model.atom_embedding.score(model.atom_embedding(atoms, model.constants), predicates).numpy()
    return found


@pytest.mark.parametrize("strategy", ["full", "known-body"])
def test_the_steps_are_those_of_plain_loops(strategy: str) -> None:
    run = run_of(f"grounding.strategy={strategy}")
    layer = run.model.layers[0]
    assert isinstance(layer, MeanField)
    with torch.no_grad():
        layer.reference.copy_(torch.tensor(list(REFERENCES.values())).logit())
    expected = by_loops(run)
    assert max(abs(value) for value in expected.values()) > 0.1
    found = run.logits()(np.array(list(expected)))
    np.testing.assert_allclose(found, list(expected.values()), atol=1e-5)


def test_all_steps_share_a_weight_for_each_rule_which_starts_as_the_theory_says() -> None:
    model = run_of().model
    learned = [name for name, part in model.named_parameters() if name.startswith("layers") and part.requires_grad]
    assert learned == ["layers.0.weights", "layers.0.reference"]
    assert len(model.layers) == STEPS
    assert learned_weights(model).tolist() == pytest.approx([0.8, 0.0, -0.5])


def test_a_weight_is_learned_from_hidden_labels() -> None:
    run = run_of("training.epochs=30", "training.learning_rate=0.1")
    before = learned_weights(run.model).detach().clone()
    losses = [epoch.loss for epoch in run.trainer]
    assert min(losses[15:]) < losses[0]
    assert not torch.equal(before, learned_weights(run.model))


def staff(seed: int, count: int = 600) -> Problem:
    """Who leaves, which a feature says and whether the manager leaves; every manager has six reports."""
    dice, names = np.random.default_rng(seed), [f"e{i}" for i in range(count)]
    feature, leaves, manager = dice.normal(size=count), np.zeros(count, bool), (np.arange(count) - 1) // 6
    for i in range(1, count):
        leaves[i] = dice.random() < sigmoid(feature[i] - 1.2 + 2 * (leaves[manager[i]] - 0.3))
    facts = [("reports_to", names[i], names[manager[i]]) for i in range(1, count)]
    theory = """
        domain person
        predicate reports_to(person, person) closed
        predicate leaves(person)
        rule down: reports_to(x, y) & leaves(y) -> leaves(x)
    """
    labels = [("leaves", names[i], bool(leaves[i])) for i in dice.permutation(count)[: count // 2]]
    features = {"person": {name: np.array([value]) for name, value in zip(names, feature, strict=True)}}
    return Problem.from_facts([*facts, *labels], theory, features=features)


def test_a_rule_in_one_direction_is_believed() -> None:
    """Each report that stays made its manager's leaving less probable, so that the weight was hardly above 0.3."""
    made = staff(0)
    run = prepare_run(made, choose_options(made, made.options)[0])
    assert len(list(run.trainer)) == 100
    assert learned_weights(run.model).item() > 0.8


def test_a_rule_without_a_formula_or_evidence_that_is_not_read_is_refused() -> None:
    with pytest.raises(ConfigError, match="rule 'related' is implicit"):
        run_of(theory=f"{THEORY}\nimplicit related: [good(x), bad(x)]")
    with pytest.raises(ConfigError, match="starts from what is known") as refused:
        run_of("model.evidence_input=off")
    assert "model.evidence_input" in (refused.value.hint or "")


def test_attributes_with_rules_are_reasoned_about_by_mean_field_inference() -> None:
    made = problem()
    options, choices = choose_options(made, made.options)
    assert options.model.reasoner == "mean-field"
    assert {"model.reasoner", "model.layers", "training.weight_decay"} <= {choice.key for choice in choices}
    kept, _ = choose_options(made, made.options.changed(["model.reasoner=r2n"]))
    assert kept.model.reasoner == "r2n"
