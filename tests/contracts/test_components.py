"""The registries of components: the examples of `docs/adding-components.md`, entry points, and the page's tables."""

import re
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from r2n import components
from r2n.components import Registry, aggregations, input_layers, losses
from r2n.data.problem import LoadReport, Problem
from r2n.data.validation import contradictions
from r2n.errors import ConfigError, MemoryLimitError
from r2n.evaluation.evaluate import evaluate
from r2n.evaluation.metrics import METRICS, classification_metrics
from r2n.grounding.full import FullGrounder
from r2n.model.memory import FLOAT, check_training, count_weights, training_bytes
from r2n.network.graph_sources import GroundedOnDemand, Ungrounded
from r2n.network.r2n import R2N
from r2n.options import ModelOptions, Options
from r2n.scoring import AtomLogits, IsolatedRows
from r2n.training.fit import Trainer
from r2n.training.rows import RowBatches
from tests.unit.grounding.small_knowledge import knowledge

PAGE = Path(__file__).parents[2] / "docs" / "adding-components.md"
REGISTRIES = ("input_layers", "aggregations", "losses", "optimisers", "t_norms", "strategies")
THEORY = "domain d = {a, b, c, e}\npredicate p(d, d)\npredicate u(d)\nrule r: p(x, y) & p(y, z) -> p(x, z)\n"
KNOWN = knowledge("", "p(a,b) p(b,c) p(c,e) u(a) u(b)", theory=THEORY)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the Python of the page defines; it is registered for one test."""
    for registry in (input_layers, aggregations, losses):
        monkeypatch.setattr(registry, "_known", dict(registry._known))
    monkeypatch.setitem(METRICS, "balanced_accuracy", METRICS["accuracy"])  # gone again after the test
    defined: dict[str, Any] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)), defined)
    return defined


@pytest.mark.usefixtures("page")
def test_a_metric_is_computed_for_every_classification() -> None:
    logits, truth = np.array([1.0, 2.0, -1.0, 1.0]), np.array([True, True, True, False])
    assert classification_metrics(logits, truth, np.zeros(4, np.int64))["balanced_accuracy"] == pytest.approx(1 / 3)


def test_the_page_has_the_tables_of_the_registries() -> None:
    for name in REGISTRIES:
        assert getattr(components, name).table() in PAGE.read_text() + "\n", name


@pytest.mark.parametrize("name", REGISTRIES)
def test_every_component_can_be_loaded(name: str) -> None:
    registry = getattr(components, name)
    assert all(callable(registry[part].load()) for part in registry)


@pytest.mark.usefixtures("page")
def test_tucker_meets_checks_and_estimates() -> None:
    assert "| `tucker` | (c_1 W(r_P)) * c_2" in input_layers.table()
    wide = knowledge("", "", theory="domain d = {a}\npredicate p(d, d, d)\n")
    (error,) = contradictions(
        Problem("wide", wide, {}, LoadReport((), (), ())), Options().changed(["model.input=tucker"])
    )
    assert "input 'tucker' takes predicates of one or two positions, but p has 3" in str(error)
    with pytest.raises(ConfigError, match="p has 3"):
        R2N.build(wide, input="tucker")
    more = count_weights(KNOWN, ModelOptions(input="tucker", dim=7)) - count_weights(KNOWN, ModelOptions(dim=7))
    assert more == 7**3
    bytes_of = {
        name: training_bytes(Options().changed([f"model.input={name}", "model.dim=8", "model.layers=0"]), 1000)
        for name in ("tucker", "complex")
    }
    assert bytes_of["complex"] - bytes_of["tucker"] == 1000 * 8 * (17 - 12) * FLOAT
    options = Options().changed(["model.input=tucker", "model.dim=10000", "training.negatives=1"])
    with pytest.raises(MemoryLimitError, match=r"a network of about 1,003,200,120,000 weights"):
        check_training(KNOWN, options, 10**10)


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize("predicate", [0, 1])
def test_tucker_ranks_by_one_product(predicate: int) -> None:
    torch.manual_seed(0)
    model = R2N.build(KNOWN, input="tucker", dim=5, reasoner="none")
    assert IsolatedRows.from_model(model) is not None
    logits = AtomLogits(model, Ungrounded(), KNOWN.evidence)
    shape = KNOWN.base.shapes[predicate]
    start = int(KNOWN.base.offsets[predicate])
    atoms = logits(np.arange(start, start + int(np.prod(shape)))).reshape(shape)
    for position in range(len(shape)):
        given = np.stack([np.arange(4)] * len(shape), axis=1)
        found = logits.rows(predicate, position, given)
        expected = np.broadcast_to(np.moveaxis(atoms, position, -1), (4, 4))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize(
    ("model", "training"),
    [
        ({"input": "tucker"}, {}),
        ({"input": "tucker", "reasoner": "none"}, {"loss": "full-softmax", "batch_size": 2, "n3": 0.1}),
        ({"aggregation": "root-mean"}, {}),
        ({"aggregation": "root-mean", "mlp": "shallow", "residual": True}, {}),
        ({"input": "distmult"}, {"loss": "margin"}),
        ({"evidence_input": "only"}, {"loss": "margin", "batch_size": 2}),
    ],
)
def test_each_is_trained(model: dict[str, Any], training: dict[str, Any]) -> None:
    torch.manual_seed(0)
    network = R2N.build(KNOWN, **{"dim": 6, "layers": 1, **model})
    source = GroundedOnDemand.from_knowledge(KNOWN, FullGrounder(10_000))
    trainer = Trainer.from_source(network, source, KNOWN.evidence, epochs=12, learning_rate=0.05, **training)
    assert isinstance(trainer.batches, RowBatches) == ("n3" in training)
    losses = [epoch.supervised for epoch in trainer]
    assert losses[-1] < losses[0]
    assert evaluate(network, source, KNOWN.evidence, evidence=KNOWN.evidence).metrics


@pytest.mark.usefixtures("page")
def test_an_aggregation_over_grids_is_that_by_index() -> None:
    torch.manual_seed(0)
    model = R2N.build(KNOWN, dim=4, layers=2, mlp="shallow", aggregation="root-mean").eval()
    graph = GroundedOnDemand.from_knowledge(KNOWN, FullGrounder(10_000)).around(np.arange(KNOWN.base.size))
    found = [model(model.collate(graph, kind)).atoms for kind in ("grid", "dense", "indexed")]
    torch.testing.assert_close(found[0], found[2], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found[1], found[2], rtol=1e-4, atol=1e-5)


def test_an_entry_point_is_loaded_when_it_is_named(monkeypatch: pytest.MonkeyPatch, page: dict[str, Any]) -> None:
    page["TuckER"].name = "mine"
    points = {"r2n.input_layers": [EntryPoint("mine", "somewhere:TuckER", "r2n.input_layers")]}
    monkeypatch.setattr(components, "entry_points", lambda group: points[group])
    monkeypatch.setattr(EntryPoint, "load", lambda _: page["TuckER"])
    registry = Registry("input layer", components.InputLayer, group="r2n.input_layers")
    assert list(registry) == ["mine"]
    assert registry.named()("mine") == "mine"
    assert registry["mine"].max_arity == 2
    with pytest.raises(ConfigError, match="there is no input layer 'min'\n  did you mean 'mine'"):
        registry["min"]
