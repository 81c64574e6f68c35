"""The training loop: what a step costs, what it draws by dice, and what it hides."""

import numpy as np
import pytest
import torch

from r2n.data.knowledge_base import Evidence
from r2n.errors import ConfigError, DataError
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN, FactorGraph
from r2n.training.fit import Trainer, fit
from tests.oracles import losses as oracle
from tests.unit.grounding.small_knowledge import knowledge
from tests.unit.training.toy_training import (
    GRAPH,
    KNOWN,
    THEORY,
    closed_in,
    network,
    same,
    step_of,
    toy,
    trained,
    watched,
    weights,
)

# what a step costs


def test_a_step_costs_the_mean_over_asked_atoms_plus_that_over_known_ground_rules() -> None:
    model = network()
    trainer = Trainer.from_source(model, GRAPH, KNOWN.evidence, semantic_weight=0.7, hiding=0.0, n3=0.2)
    step = step_of(trainer)
    found, targets = model(step.batch), step.targets
    out, labels, asked = found.atoms.tolist(), targets.labels.tolist(), targets.asked.tolist()
    supervised = oracle.cross_entropy([out[a] for a in asked], [labels[a] == 1 for a in asked])
    logits: list[float] = []
    truths: list[bool] = []
    for j, rule in enumerate(step.graph.rules):
        rows = [tuple(row) for row in step.graph.neighbours[j].tolist()]
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


def test_the_softmax_sets_each_fact_against_its_negatives() -> None:
    model = network()
    trainer = Trainer.from_source(model, GRAPH, KNOWN.evidence, loss="softmax", hiding=0.0, semantic_weight=0.0)
    step = step_of(trainer)
    out, targets = model(step.batch).atoms.tolist(), step.targets
    corrupted = [[out[row] if row >= 0 else None for row in rows] for rows in targets.negatives.tolist()]
    expected = oracle.negative_softmax([out[fact] for fact in targets.facts.tolist()], corrupted)
    assert trainer.step().supervised == pytest.approx(expected, rel=1e-5)


def test_implicit_rules_have_no_semantic_loss() -> None:
    known, graph = toy(rules="implicit alike: [old(x), liesIn(x, y)]")
    (epoch,) = fit(network(known=known), graph, known.evidence, epochs=1, semantic_weight=1.0)
    assert epoch.semantic == 0.0
    assert epoch.loss == epoch.supervised


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


def test_the_same_seed_gives_the_same_numbers_bit_for_bit_and_another_others() -> None:
    runs = []
    for seed in (3, 3, 4):
        model = network(rule_dropout=0.2)
        epochs = trained(model, epochs=3, seed=seed, negatives=2)
        runs.append(([(e.number, e.loss, e.supervised, e.semantic, e.valid) for e in epochs], weights(model)))
    assert runs[0][0] == runs[1][0] != runs[2][0]
    assert same(runs[0][1], runs[1][1])


def test_training_does_not_touch_the_global_dice() -> None:
    model = network()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    trained(model, epochs=3)
    assert torch.equal(before, torch.get_rng_state())


# hiding


def test_hidden_atoms_are_asked_all_the_same() -> None:
    """Everything hidden: the loss is still that of all asked atoms, on a network that sees nothing of them."""
    model = network()
    trainer = Trainer.from_source(model, GRAPH, KNOWN.evidence, hiding=0.9999999, semantic_weight=0.0)
    step = step_of(trainer)
    out, targets = model(step.batch, hidden=~closed_in(step.graph)).atoms.tolist(), step.targets
    asked, labels = targets.asked.tolist(), targets.labels.tolist()
    expected = oracle.cross_entropy([out[a] for a in asked], [labels[a] == 1 for a in asked])
    assert trainer.step().supervised == pytest.approx(expected, rel=1e-5)


# evidence as input


@pytest.mark.parametrize("reads", ["add", "only"])
def test_where_evidence_is_an_input_only_hidden_atoms_are_asked(reads: str) -> None:
    model = network(evidence_input=reads)
    trainer = Trainer.from_source(model, GRAPH, KNOWN.evidence, hiding=0.5, semantic_weight=0.0)
    seen, step, before = watched(trainer), step_of(trainer), weights(model)
    targets = step.targets
    epoch = trainer.step()
    hidden, known = seen[0]["hidden"], seen[0]["known"]
    model.load_state_dict(before)
    out, labels = model(step.batch, hidden=hidden, known=known).atoms.tolist(), targets.labels.tolist()
    assert hidden is not None
    asked = [a for a in targets.asked.tolist() if bool(hidden[a])]
    assert 0 < len(asked) < len(targets.asked)
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
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(known)), atoms=np.arange(known.base.size))
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


def test_a_full_softmax_needs_the_whole_base() -> None:
    with pytest.raises(DataError, match=r"1 of \d+ atoms are not in the graph, that with code 0 for one"):
        Trainer.from_source(network(), FactorGraph(GRAPH.atoms[1:], (), (), ()), KNOWN.evidence, loss="full-softmax")


# how long


class Clock:
    """A clock that goes on by so many seconds each time it is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: float) -> None:
        self.now, self.step = 0.0, step
        monkeypatch.setattr("r2n.training.fit.perf_counter", self)

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_training_stops_after_its_minutes_with_the_best_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch, 10.0)
    found = [0.2, 0.9, 0.4, 0.3, 0.1]
    given = {"epochs": 50, "patience": 50, "validate_every": 1, "minutes": 1.0}
    model, metrics = network(), iter(found)
    trainer = Trainer.from_source(model, GRAPH, KNOWN.evidence, validate=lambda _: next(metrics), **given)
    epochs = list(trainer)
    assert len(epochs) < len(found)
    assert trainer.is_out_of_time
    assert (trainer.best, trainer.best_epoch) == (0.9, 2)
    again = network()
    for _ in Trainer.from_source(again, GRAPH, KNOWN.evidence, epochs=2):
        pass
    assert same(weights(model), weights(again))


def test_the_last_epoch_before_the_time_is_over_is_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch, 10.0)
    given = {"epochs": 50, "patience": 50, "validate_every": 20, "minutes": 1.0}
    trainer = Trainer.from_source(network(), GRAPH, KNOWN.evidence, validate=lambda _: 0.5, **given)
    *earlier, last = list(trainer)
    assert last.number < 20
    assert [epoch.valid for epoch in earlier] == [None] * len(earlier)
    assert last.valid == 0.5


def test_an_epoch_of_several_steps_is_left_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"epochs": 3, "batch_size": 1, "leave_one_out": False}
    trainer = Trainer.from_source(network(), GRAPH, KNOWN.evidence, **given)
    assert len(list(trainer.batches.epoch(torch.Generator().manual_seed(0)))) > 1
    Clock(monkeypatch, 70.0)
    trainer = Trainer.from_source(network(), GRAPH, KNOWN.evidence, minutes=1.0, **given)
    made = []
    monkeypatch.setattr(trainer, "_descend", lambda step, **_: made.append(step) or torch.zeros(4))  # type: ignore[func-returns-value]
    trainer.step()
    assert len(made) == 1
    assert trainer.is_done
