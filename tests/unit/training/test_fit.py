"""The training loop: what a step costs, what it hides, and when it stops."""

from math import cos, pi
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from r2n.errors import ConfigError
from r2n.graph.factor_graph import FactorGraph
from r2n.grounding.full import FullGrounder
from r2n.knowledge.knowledge_base import Evidence, KnowledgeBase
from r2n.model.r2n import FALSE, R2N, TRUE, UNKNOWN
from r2n.training.fit import DivergedError, Epoch, Trainer, fit
from tests.oracles import losses as oracle
from tests.unit.grounding.small_knowledge import knowledge

TOWNS = ("n0", "n1", "n2", "s0", "s1", "s2")
THEORY = f"""
domain town = {{{", ".join(TOWNS)}}}
domain valley = {{north, south}}
predicate liesIn(town, valley)
predicate near(town, town) closed
predicate old(town)
"""
RULES = """
rule neighbours: near(x, y) & liesIn(x, z) -> liesIn(y, z)
implicit alike: [old(x), liesIn(x, y)]
"""
FACTS = "liesIn(n0,north) liesIn(n1,north) liesIn(s0,south) old(n0) old(s0) near(n0,n1) near(n1,n2) near(s0,s1)"


def toy(facts: str = FACTS, rules: str = RULES) -> tuple[KnowledgeBase, FactorGraph]:
    known = knowledge(rules, facts, theory=THEORY)
    return known, FactorGraph.from_grounding(FullGrounder().ground(known), atoms=np.arange(known.base.size))


KNOWN, GRAPH = toy()
CLOSED = torch.tensor([name.startswith("near") for name in KNOWN.base.names(GRAPH.atoms.numpy())])


def network(seed: int = 0, known: KnowledgeBase = KNOWN, **options: object) -> R2N:
    torch.manual_seed(seed)
    return R2N.build(known, **{"dim": 6, "layers": 1, **options})  # pyright: ignore


def trained(model: R2N, **options: object) -> list[Epoch]:
    return list(fit(model, GRAPH, KNOWN.evidence, **options))


def watched(trainer: Trainer) -> list[dict[str, Tensor | None]]:
    """What the network is given at each training step."""
    seen: list[dict[str, Tensor | None]] = []
    trainer.model.register_forward_pre_hook(lambda _, __, given: seen.append(dict(given)), with_kwargs=True)
    return seen


def weights(model: R2N) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# what a step costs


def test_a_step_costs_the_mean_over_asked_atoms_plus_that_over_known_ground_rules() -> None:
    model = network()
    trainer = Trainer(model, GRAPH, KNOWN.evidence, semantic_weight=0.7, hiding=0.0, n3=0.2)
    found, questions = model(GRAPH), trainer.questions
    out, labels, asked = found.atoms.tolist(), questions.labels.tolist(), questions.asked.tolist()
    supervised = oracle.cross_entropy([out[a] for a in asked], [labels[a] == 1 for a in asked])
    logits: list[float] = []
    truths: list[bool] = []
    for j, rule in enumerate(GRAPH.rules):
        rows = [tuple(row) for row in GRAPH.neighbours[j].tolist()]
        ground_rules, truth = oracle.labelled_rules(rule.formula, rows, labels)
        logits += found.rules[j][ground_rules].tolist()
        truths += truth
    assert truths
    semantic = oracle.cross_entropy(logits, truths)
    n3 = oracle.n3(model.constants.vectors.tolist())
    epoch = trainer.step()
    assert epoch.supervised == pytest.approx(supervised, rel=1e-5)
    assert epoch.semantic == pytest.approx(semantic, rel=1e-5)
    assert epoch.loss == pytest.approx(supervised + 0.7 * semantic + 0.2 * n3, rel=1e-5)


def test_the_softmax_sets_each_fact_against_its_corruptions() -> None:
    model = network()
    trainer = Trainer(model, GRAPH, KNOWN.evidence, loss="softmax", hiding=0.0, semantic_weight=0.0)
    out, questions = model(GRAPH).atoms.tolist(), trainer.questions
    corrupted = [[out[row] if row >= 0 else None for row in rows] for rows in questions.candidates.tolist()]
    expected = oracle.negative_softmax([out[fact] for fact in questions.facts.tolist()], corrupted)
    assert trainer.step().supervised == pytest.approx(expected, rel=1e-5)


def test_implicit_rules_have_no_semantic_loss() -> None:
    known, graph = toy(rules="implicit alike: [old(x), liesIn(x, y)]")
    (epoch,) = fit(network(known=known), graph, known.evidence, epochs=1, semantic_weight=1.0)
    assert epoch.semantic == 0.0
    assert epoch.loss == epoch.supervised


def test_both_losses_fall() -> None:
    for loss in ("bce", "softmax"):
        epochs = trained(network(), epochs=60, loss=loss, hiding=0.0, semantic_weight=1.0)
        assert epochs[-1].supervised < 0.3 * epochs[0].supervised
        assert epochs[-1].semantic < 0.3 * epochs[0].semantic


def test_epochs_are_counted_from_one_and_come_one_by_one() -> None:
    model = network()
    steps = fit(model, GRAPH, KNOWN.evidence, epochs=5)
    before = weights(model)
    assert next(steps).number == 1
    after = weights(model)
    assert not same(before, after)
    assert next(steps).number == 2
    assert not same(after, weights(model))
    assert [epoch.number for epoch in steps] == [3, 4, 5]
    assert not model.training


def test_without_reasoning_the_input_layer_learns() -> None:
    choices: list[dict[str, Any]] = [{"layers": 0}, {"reasoner": "none"}, {"reasoner": "fgnn"}]
    for options in choices:
        epochs = trained(network(**options), epochs=60, hiding=0.0)
        assert epochs[-1].loss < 0.5 * epochs[0].loss


def test_nothing_to_learn_is_legal() -> None:
    known, graph = toy(facts="")
    for loss in ("bce", "softmax"):
        model = network(known=known)
        before = weights(model)
        epochs = list(fit(model, graph, Evidence.empty(), epochs=2, loss=loss))
        assert [epoch.supervised for epoch in epochs] == [0.0, 0.0]
        assert same(before, weights(model)) or epochs[0].semantic > 0
    empty = FactorGraph(graph.atoms[:0], (), (), ())
    (epoch,) = fit(network(known=knowledge("", theory=THEORY)), empty, Evidence.empty(), epochs=1)
    assert epoch.loss == 0.0


# randomness


def test_the_same_seed_gives_the_same_numbers_bit_for_bit() -> None:
    runs = []
    for _ in range(2):
        model = network(rule_dropout=0.2)
        epochs = trained(model, epochs=6, seed=3, negatives=2)
        runs.append(([(e.number, e.loss, e.supervised, e.semantic, e.valid) for e in epochs], weights(model)))
    assert runs[0][0] == runs[1][0]
    assert same(runs[0][1], runs[1][1])


def test_another_seed_hides_other_atoms() -> None:
    losses = {tuple(epoch.loss for epoch in trained(network(), epochs=3, seed=seed)) for seed in range(3)}
    assert len(losses) == 3


def test_training_does_not_touch_the_global_dice() -> None:
    model = network()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    trained(model, epochs=3)
    assert torch.equal(before, torch.get_rng_state())


# hiding


def test_no_hiding_hides_nothing() -> None:
    trainer = Trainer(network(), GRAPH, KNOWN.evidence, hiding=0.0)
    seen = watched(trainer)
    trainer.step()
    assert seen[0]["hidden"] is None or not bool(seen[0]["hidden"].any())


@pytest.mark.parametrize("hide_by", ["atom", "constant"])
def test_hiding_never_hides_closed_atoms_and_draws_anew_each_step(hide_by: str) -> None:
    trainer = Trainer(network(), GRAPH, KNOWN.evidence, hiding=0.5, hide_by=hide_by)  # pyright: ignore
    seen = watched(trainer)
    for _ in range(20):
        trainer.step()
    drawn = torch.stack([given["hidden"] for given in seen if given["hidden"] is not None])
    assert len(drawn) == 20
    assert not bool(drawn[:, CLOSED].any())
    share = float(drawn[:, ~CLOSED].double().mean())
    assert 0.35 < share < 0.65
    assert len({tuple(row) for row in drawn.tolist()}) > 10


def test_hiding_everything_leaves_closed_atoms_alone() -> None:
    trainer = Trainer(network(), GRAPH, KNOWN.evidence, hiding=1.0)
    seen = watched(trainer)
    trainer.step()
    assert seen[0]["hidden"] is not None
    assert torch.equal(seen[0]["hidden"], ~CLOSED)


def test_hiding_by_constant_hides_all_open_atoms_of_one_together() -> None:
    trainer = Trainer(network(), GRAPH, KNOWN.evidence, hiding=0.5, hide_by="constant")
    seen = watched(trainer)
    first = [name.split("(")[1].split(",")[0].rstrip(")") for name in KNOWN.base.names(GRAPH.atoms.numpy())]
    for _ in range(5):
        trainer.step()
    for given in seen:
        assert given["hidden"] is not None
        for town in TOWNS:
            own = torch.tensor([name == town for name in first]) & ~CLOSED
            assert len(set(given["hidden"][own].tolist())) == 1


def test_hidden_atoms_are_asked_all_the_same() -> None:
    """Everything hidden: the loss is still that of all asked atoms, on a network that sees nothing of them."""
    model = network()
    trainer = Trainer(model, GRAPH, KNOWN.evidence, hiding=1.0, semantic_weight=0.0)
    out, questions = model(GRAPH, hidden=~CLOSED).atoms.tolist(), trainer.questions
    asked, labels = questions.asked.tolist(), questions.labels.tolist()
    expected = oracle.cross_entropy([out[a] for a in asked], [labels[a] == 1 for a in asked])
    assert trainer.step().supervised == pytest.approx(expected, rel=1e-5)


# evidence as input


@pytest.mark.parametrize("reads", ["add", "only"])
def test_where_evidence_is_an_input_only_hidden_atoms_are_asked(reads: str) -> None:
    model = network(evidence_input=reads)
    trainer = Trainer(model, GRAPH, KNOWN.evidence, hiding=0.5, semantic_weight=0.0)
    seen, questions, before = watched(trainer), trainer.questions, weights(model)
    epoch = trainer.step()
    hidden, known = seen[0]["hidden"], seen[0]["known"]
    model.load_state_dict(before)
    out, labels = model(GRAPH, hidden=hidden, known=known).atoms.tolist(), questions.labels.tolist()
    assert hidden is not None
    asked = [a for a in questions.asked.tolist() if bool(hidden[a])]
    assert 0 < len(asked) < len(questions.asked)
    expected = oracle.cross_entropy([out[a] for a in asked], [labels[a] == 1 for a in asked])
    assert epoch.supervised == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("hiding", [0.5, 0.0])
@pytest.mark.parametrize("reads", ["add", "only"])
@pytest.mark.parametrize("loss", ["bce", "softmax"])
def test_what_is_asked_is_hidden_where_evidence_is_an_input(loss: str, reads: str, hiding: float) -> None:
    """Without rules, what is shown of an atom reaches its own answer alone.

    So training changes nothing that reads what is shown, neither the vectors for true and false nor the embedding:
    facts and corruptions are asked only while they are hidden. Where nothing is hidden nothing is asked, or refused.
    """
    facts = "liesIn(n0,north) liesIn(n1,north) liesIn(s0,south) liesIn(s1,south)"
    known = knowledge("", facts, "liesIn(n0,south) liesIn(s0,north)", THEORY)
    graph = FactorGraph.from_grounding(FullGrounder().ground(known), atoms=np.arange(known.base.size))
    model = network(known=known, evidence_input=reads)
    before = weights(model)
    try:
        list(fit(model, graph, known.evidence, loss=loss, hiding=hiding, epochs=5, corrupted_positions=[-1]))
    except ConfigError:
        return
    after = weights(model)
    for name in ("constants.vectors", "atom_embedding.vectors"):
        assert torch.equal(before[name], after[name]), name
    assert torch.equal(before["known"][[FALSE, TRUE]], after["known"][[FALSE, TRUE]])
    if loss == "bce" and hiding:  # in a softmax, atoms that look the same pull nowhere
        assert not torch.equal(before["known"][UNKNOWN], after["known"][UNKNOWN])


# the optimiser


def rates(**options: object) -> list[float]:
    trainer = Trainer(network(), GRAPH, KNOWN.evidence, epochs=8, learning_rate=0.02, **options)  # pyright: ignore
    found = []
    while not trainer.is_done:
        trainer.step()
        found.append(trainer.optimizer.param_groups[0]["lr"])
    return found


def test_the_rate_is_constant_or_falls_along_a_cosine() -> None:
    assert rates() == [0.02] * 8
    expected = [0.02 * (1 + cos(pi * epoch / 8)) / 2 for epoch in range(8)]
    assert rates(schedule="cosine") == pytest.approx(expected)


def gradient_norm(model: R2N) -> float:
    squares = [float(p.grad.square().sum()) for p in model.parameters() if p.grad is not None]
    return sum(squares) ** 0.5


def test_gradients_are_clipped_together() -> None:
    free, clipped = network(), network()
    Trainer(free, GRAPH, KNOWN.evidence).step()
    Trainer(clipped, GRAPH, KNOWN.evidence, clip=0.01).step()
    assert gradient_norm(free) > 0.05
    assert gradient_norm(clipped) == pytest.approx(0.01, rel=1e-3)
    kept = [p.grad for p in clipped.parameters() if p.grad is not None]
    scale = 0.01 / gradient_norm(free)
    for ours, whole in zip(kept, (p.grad for p in free.parameters() if p.grad is not None), strict=True):
        torch.testing.assert_close(ours, whole * scale, rtol=1e-3, atol=1e-7)


def test_small_gradients_are_left_alone() -> None:
    free, clipped = network(), network()
    trained(free, epochs=3)
    trained(clipped, epochs=3, clip=1e6)
    assert same(weights(free), weights(clipped))


def test_weight_decay_pulls_towards_zero() -> None:
    known, graph = toy(facts="", rules="")
    model = network(known=known)
    before = model.constants.vectors.detach().abs().mean()
    list(fit(model, graph, known.evidence, epochs=5, weight_decay=0.1))
    assert float(model.constants.vectors.detach().abs().mean()) < float(before)


# divergence


@pytest.mark.parametrize("name", ["constants.vectors", "layers.0.update_rule.0.layers.0.bias"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_with_the_epoch_and_the_largest_parameters(value: float, name: str) -> None:
    model = network()
    trainer = Trainer(model, GRAPH, KNOWN.evidence)
    trainer.step()
    trainer.step()
    with torch.no_grad():
        model.get_parameter(name).view(-1)[0] = value
    with pytest.raises(DivergedError) as caught:
        trainer.step()
    text = str(caught.value)
    assert f" in epoch 3; the largest parameters are {name} ({value}), " in text
    assert "lower training.learning_rate, set training.clip, or choose another aggregation" in text


def test_the_weights_before_the_divergence_are_kept() -> None:
    model = network(aggregation="sum")
    trainer = Trainer(model, GRAPH, KNOWN.evidence, learning_rate=1e6)
    kept: list[dict[str, Tensor]] = []

    def until_it_diverges() -> None:
        while trainer.epoch < 60:
            kept[:] = [weights(model)]
            trainer.step()

    with pytest.raises(DivergedError, match=r"the loss is (nan|inf) in epoch \d+"):
        until_it_diverges()
    assert same(kept[0], weights(model))
    assert all(bool(torch.isfinite(value).all()) for value in kept[0].values())


# early stopping


class Scripted:
    """A validation that says what it is told, and remembers the weights it saw."""

    def __init__(self, *values: float) -> None:
        self.values, self.seen = list(values), []

    def __call__(self, model: R2N) -> float:
        assert not model.training
        assert not torch.is_grad_enabled()
        self.seen.append(weights(model))
        return self.values[min(len(self.seen), len(self.values)) - 1]


def test_training_stops_when_the_metric_has_not_risen_for_patience_epochs_and_the_best_weights_come_back() -> None:
    validate, model = Scripted(0.1, 0.5, 0.5, 0.4, 0.3), network()  # an equal value is no rise
    epochs = trained(model, epochs=50, validate=validate, validate_every=1, patience=3)
    assert [epoch.number for epoch in epochs] == [1, 2, 3, 4, 5]
    assert [epoch.valid for epoch in epochs] == [0.1, 0.5, 0.5, 0.4, 0.3]
    assert same(weights(model), validate.seen[1])
    assert not same(weights(model), validate.seen[-1])
    assert not model.training


def test_the_metric_is_measured_every_so_many_epochs_and_at_the_last() -> None:
    validate = Scripted(0.1, 0.2, 0.3)
    epochs = trained(network(), epochs=7, validate=validate, validate_every=3, patience=100)
    assert [epoch.valid for epoch in epochs] == [None, None, 0.1, None, None, 0.2, 0.3]


def test_patience_counts_epochs_and_not_measurements() -> None:
    epochs = trained(network(), epochs=50, validate=Scripted(0.5, 0.4), validate_every=2, patience=4)
    assert len(epochs) == 6


def test_the_last_epoch_may_be_the_best() -> None:
    validate, model = Scripted(0.1, 0.2, 0.3), network()
    trained(model, epochs=3, validate=validate, validate_every=1, patience=10)
    assert same(weights(model), validate.seen[2])


def test_without_patience_the_last_weights_stay() -> None:
    validate, model = Scripted(0.9, 0.1), network()
    assert len(trained(model, epochs=4, validate=validate, validate_every=1)) == 4
    assert same(weights(model), validate.seen[-1])


def test_validation_does_not_change_the_training() -> None:
    with_it, without = network(), network()
    trained(with_it, epochs=6, validate=Scripted(0.1, 0.2, 0.3, 0.4, 0.5, 0.6), validate_every=1, patience=50)
    trained(without, epochs=6)
    assert same(weights(with_it), weights(without))


def test_training_is_over_before_it_begins_with_no_epochs() -> None:
    model = network()
    before = weights(model)
    assert trained(model, epochs=0) == []
    assert same(before, weights(model))
