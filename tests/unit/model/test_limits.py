"""A training that would not fit is refused before anything is made."""

import pytest

import r2n
from r2n.data.problem import Problem
from r2n.errors import ConfigError, MemoryLimitError
from r2n.grounding.full import FullGrounder
from r2n.model.memory import MemoryLimit, as_trained, count_weights
from r2n.model.run import prepare_run
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.r2n import R2N


def test_atoms_are_counted_before_a_negative_is_drawn(toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    MemoryLimit(10**9).check_atoms(toy.knowledge, toy.options)
    monkeypatch.setattr("r2n.training.batches.draw_negatives", lambda *_: pytest.fail("drawn"))
    with pytest.raises(MemoryLimitError, match=r"a training on \d+ facts and negatives needs about") as caught:
        prepare_run(toy, toy.options, 0, memory=1000)
    assert "training.negatives" in str(caught.value)


def test_a_full_softmax_is_asked_of_the_whole_base(toy: Problem) -> None:
    options = toy.options.changed(["training.loss=full-softmax"])
    with pytest.raises(MemoryLimitError, match="full-softmax over the whole Herbrand base, 288 atoms, needs about"):
        MemoryLimit(1000).check_atoms(toy.knowledge, options)


def test_a_graph_is_measured_before_it_is_laid_out(toy: Problem) -> None:
    graph = GroundedOnDemand.of(toy.knowledge, FullGrounder()).whole
    assert graph is not None
    MemoryLimit(10**9).for_graph(toy.options)(graph)
    with pytest.raises(MemoryLimitError, match=r"the training graph of \d+ atoms and \d+ ground rules"):
        MemoryLimit(1000).for_graph(toy.options)(graph)


def test_a_whole_base_over_grids_needs_little_and_rule_by_rule_much() -> None:
    problem = r2n.load("umls")
    knowledge, wide = as_trained(problem.knowledge, problem.options.grounding), ["model.dim=100"]
    MemoryLimit(2 * 10**9).check_atoms(knowledge, problem.options.changed(wide))
    for change in ("model.mlp=deep", "training.hiding=0.1", "model.evidence_input=add", "model.aggregation=max"):
        with pytest.raises(MemoryLimitError, match="1,676,700 atoms"):
            MemoryLimit(2 * 10**9).check_atoms(knowledge, problem.options.changed([*wide, change]))


def test_the_rows_of_a_batch_are_measured(toy: Problem) -> None:
    """All constants are compared with, or those drawn; a smaller batch needs less."""
    facts, constants = len(toy.knowledge.evidence), len(toy.knowledge.language.constants)
    for changes, compared in (
        (["training.loss=full-softmax", "training.batch_size=4"], 4 * constants),
        (["training.loss=full-softmax", "training.batch_size=10000"], facts * constants),
        (["training.loss=softmax", "training.batch_size=4", "training.negatives=3"], 4 * 3),
        (["training.loss=softmax", "training.batch_size=4", "training.negatives=999"], 4 * constants),
    ):
        options = toy.options.changed(changes)
        MemoryLimit(10**9).check_atoms(toy.knowledge, options)
        with pytest.raises(MemoryLimitError, match=f"a step that compares {compared:,} candidates needs") as caught:
            MemoryLimit(1000).check_atoms(toy.knowledge, options)
        assert "training.batch_size" in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["model.input=mlp"],
        ["model.mlp=shallow", "model.rule_dim=40"],
        ["model.reasoner=fgnn"],
        ["model.rule_network=shared", "model.layers=3"],
        ["model.shared_layers=true", "model.layers=3"],
        ["model.reasoner=none"],
        ["model.output=linear", "model.layers=2"],
    ],
)
def test_weights_are_counted_before_they_are_made(changes: list[str], toy: Problem) -> None:
    options = toy.options.changed(["model.dim=64", *changes]).model
    made = sum(weight.numel() for weight in R2N.build(toy.knowledge, options).parameters())
    assert made == pytest.approx(count_weights(toy.knowledge, options), rel=0.05)


@pytest.mark.parametrize("change", ["model.dim=100000", "model.rule_dim=1000000", "model.layers=1000"])
def test_a_network_that_would_not_fit_is_refused(change: str, toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2n.model.run.R2N.build", lambda *_, **__: pytest.fail("made"))
    with pytest.raises(MemoryLimitError, match=r"a network of about [\d,]+ weights needs about") as caught:
        prepare_run(toy, toy.options.changed(["model.dim=256", change]), 0, memory=10**9)
    assert "model.dim" in str(caught.value)


@pytest.mark.parametrize("seed", [-1, 2**63, 10**30])
def test_a_seed_beyond_64_bits_is_refused(seed: int, toy: Problem) -> None:
    with pytest.raises(ConfigError, match=f"the seed is {seed}"):
        prepare_run(toy, toy.options, seed)
