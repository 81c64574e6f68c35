"""Network and graph batch on one device: no pass, loss or gradient uses a tensor of another device."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import r2n
from r2n.components import input_layers, t_norms
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.network.factor_graph import FactorGraph, known_states
from r2n.network.input_layers import ComplEx
from r2n.network.r2n import R2N, Predictions
from r2n.options import TrainingOptions
from r2n.training.batches import Step, targets_of
from r2n.training.negatives import draw_negatives
from r2n.training.objective import Objective
from tests.examples import first_of
from tests.featured_problem import featured_problem
from tests.model_strategies import AGGREGATIONS

META = torch.device("meta")
KNOWLEDGE = KnowledgeBase.build(
    r2n.parse_theory("""
domain d = {a, b, c}
domain e = {k, l}
predicate p(d, d)
predicate q(d, d)
predicate t(d, e)
predicate alone(d)
rule swap: p(x, y) -> q(y, x)
rule chain: p(x, y) & q(y, z) -> p(x, z)
implicit pair: [p(x, y), t(x, m)]
""")
)
GRAPH = FactorGraph.from_grounding(FullGrounder().ground(Store(KNOWLEDGE)), np.arange(KNOWLEDGE.base.size))
EVIDENCE = Evidence(np.array([0, 1, 5, 10, 12, 19]), np.array([True, True, False, True, True, True]))


class ElsewhereError(AssertionError):
    """An operation took or made a tensor on another device."""


class OneDevice(TorchDispatchMode):
    """Refuses every operation with a tensor, of whatever size, that is not on the device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        found = {leaf.device for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, Tensor)}
        if found - {META}:
            raise ElsewhereError(f"{func} joins {sorted(map(str, found))}")
        return result


@dataclass(frozen=True, eq=False)
class Case:
    model: R2N
    step: Step
    hidden: Tensor
    objectives: tuple[Objective, ...]

    @classmethod
    def from_model(cls, model: R2N, graph: FactorGraph, evidence: Evidence, kind: Any, norms: bool = False) -> "Case":
        negatives = draw_negatives(model.base, evidence, TrainingOptions(), np.random.default_rng(0))
        targets = targets_of(model.base, graph, evidence, negatives)
        known, hidden = known_states(model.base, graph.atoms, evidence), torch.rand(len(graph.atoms)) < 0.5
        step = Step.from_batch(model.collate(graph, kind).to(META), targets, known)
        model = model.to(META)
        return cls(
            model, step, hidden.to(META), tuple(Objective(model, evidence, each) for each in options(model, norms))
        )

    def predictions(self, *, hides: bool) -> Predictions:
        return self.model.train()(self.step.batch, hidden=self.hidden if hides else None, known=self.step.known)

    def descend(self, *, hides: bool) -> None:
        """Forward, all losses and backward, as training does it, and forward as an evaluation does it."""
        self.model.zero_grad()
        said, hidden = self.predictions(hides=hides), self.hidden if hides else None
        losses = [objective.losses(self.step, said, hidden).total for objective in self.objectives]
        torch.stack(losses).sum().backward()
        assert any(parameter.grad is not None for parameter in self.model.parameters())
        assert self.answered().atoms.device == META

    def answered(self) -> Predictions:
        with torch.no_grad():
            return self.model.eval()(self.step.batch, known=self.step.known, rule_outputs=False)


def options(model: R2N, norms: bool) -> list[TrainingOptions]:
    """Training with every loss, or with every t-norm; full-softmax if the network reads no evidence."""
    losses = ("bce", "softmax", "full-softmax")[: 2 if model.evidence_input != "off" else 3]
    common = {"n3": 0.1, "semantic_weight": 0.3, "relation_weight": 0.5}
    key, values = ("regularisation", list(t_norms)) if norms else ("loss", losses)
    return [TrainingOptions.model_validate({key: value, **common}) for value in values]


@contextmanager
def watched(case: Case) -> Iterator[Case]:
    """What is made when it is first needed is made before, by passes that nobody watches."""
    case.predictions(hides=False)
    case.predictions(hides=True)
    case.answered()
    with OneDevice():
        yield case


def stays(model: R2N, kind: str, graph: FactorGraph = GRAPH, evidence: Evidence = EVIDENCE) -> None:
    """No step leaves the device; over grids, one that hides atoms goes another way than one that does not."""
    with watched(Case.from_model(model, graph, evidence, kind)) as case:
        for hides in (True, False) if kind == "grid" else (True,):
            case.descend(hides=hides)


def build(**options: Any) -> R2N:
    dropout = {"constant_dropout": 0.1, "atom_dropout": 0.1, "rule_dropout": 0.1}
    return R2N.build(KNOWLEDGE, **{"dim": 4, "rule_dim": 3, "layers": 1, **dropout, **options})


OPTIONS: list[dict[str, Any]] = [
    {"aggregation": "sum", "layers": 2},
    {"evidence_input": "add"},
    *({"input": name, "reasoner": r, "input_score": True} for name in input_layers for r in ("r2n", "fgnn", "none")),
    *({"aggregation": aggregation, "layers": 2} for aggregation in AGGREGATIONS[1:]),
    {"evidence_input": "only"},
    {"rule_dropout": 0.0},  # then messages go in one pass
    {"rule_dropout": 0.0, "reasoner": "fgnn"},
    {"output": "linear"},
    {"isolated": "zero"},
    {"residual": True},
    {"rule_network": "shared", "layers": 2},
    {"rule_network": "shared", "rule_dropout": 0.0},
]


@pytest.mark.parametrize("options", first_of(OPTIONS, 5), ids=str)
def test_every_option_and_kind_of_batch(options: dict[str, Any]) -> None:
    for kind in ("dense", "indexed"):
        stays(build(**options), kind)
    shallow = build(mlp="shallow", **options)
    stays(shallow, shallow.collate(GRAPH).kind)


FEATURED: list[dict[str, Any]] = [{}, {"input": "distmult"}]


@pytest.mark.parametrize("options", first_of(FEATURED, 2))
def test_features(options: dict[str, Any]) -> None:
    problem = featured_problem()
    encoders = {"image": nn.Sequential(nn.Flatten(), nn.Linear(16, 2))}
    chosen = {"input": "pair", "dim": 3, "layers": 1, "word_dropout": 0.2, **options}
    grounding = FullGrounder().ground(Store(problem.knowledge))
    graph = FactorGraph.from_grounding(grounding, np.arange(problem.knowledge.base.size))
    stays(R2N.build(problem.knowledge, encoders=encoders, **chosen), "dense", graph, problem.train)


def test_every_t_norm() -> None:
    with watched(Case.from_model(build(), GRAPH, EVIDENCE, "dense", norms=True)) as case:
        case.descend(hides=True)


def test_a_language_that_has_grown_and_ground_rules_in_several_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """New constants have no vector, and their atoms are masked."""
    ids = torch.arange(len(KNOWLEDGE.language.constants))
    ids[0] = -1
    stays(build().on_base(KNOWLEDGE.base, ids), "dense")
    monkeypatch.setattr("r2n.network.scatter.PART", 30)
    for kind in ("dense", "indexed"):
        stays(build(rule_dropout=0.0), kind)


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Tensor:
        return grad_outputs[0] * torch.tensor(2.0)


PLANTED: dict[str, Any] = {
    "an index": lambda x: x[torch.zeros(len(x), dtype=torch.int64)],
    "a vector": lambda x: x + torch.zeros(x.shape[-1]),
    "a number": lambda x: x * torch.tensor(2.0),
    "a tensor made and moved in each pass": lambda x: x + torch.zeros(x.shape[-1]).to(x.device),
    "a gradient": Wrong.apply,
}


def test_a_planted_tensor_of_the_cpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    formula, case = ComplEx.formula, Case.from_model(build(), GRAPH, EVIDENCE, "dense")
    with watched(case):
        case.descend(hides=False)
        for plant in PLANTED.values():
            monkeypatch.setattr(ComplEx, "formula", lambda *given, plant=plant: plant(formula(*given)))
            with pytest.raises((ElsewhereError, RuntimeError), match="cpu"):
                case.descend(hides=False)
