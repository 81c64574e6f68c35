"""A toy to train on: towns in valleys, some of which lie near each other."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.network.factor_graph import FactorGraph
from r2n.network.r2n import R2N
from r2n.training.batches import FixedBatches, Step
from r2n.training.fit import Epoch, Trainer, fit
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
    return known, FactorGraph.from_grounding(FullGrounder().ground(Store(known)), atoms=np.arange(known.base.size))


KNOWN, GRAPH = toy()


def closed_in(graph: FactorGraph) -> Tensor:
    return torch.tensor([name.startswith("near") for name in KNOWN.base.names(graph.atoms.numpy())])


def steps_of(trainer: Trainer) -> tuple[Step, ...]:
    """The steps of every epoch."""
    assert isinstance(trainer.batches, FixedBatches)
    return trainer.batches.steps


def step_of(trainer: Trainer) -> Step:
    """The only step of an epoch."""
    (step,) = steps_of(trainer)
    return step


def network(seed: int = 0, known: KnowledgeBase = KNOWN, **options: object) -> R2N:
    torch.manual_seed(seed)
    return R2N.build(known, **{"dim": 6, "layers": 1, **options})  # pyright: ignore


def trained(model: R2N, **options: Any) -> list[Epoch]:
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
