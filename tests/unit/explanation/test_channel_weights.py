"""Channels left out: without their weights, a network answers as if they gave nothing."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from r2n.data.knowledge_base import KnowledgeBase
from r2n.explanation.features import channel_weights, feature_effects
from r2n.grounding.full import FullGrounder
from r2n.network import pair_embedding
from r2n.network.constant_embedding import VectorChannel, WordChannel
from r2n.network.graph_sources import GroundedOnDemand, Ungrounded
from r2n.network.r2n import R2N
from r2n.scoring import AtomLogits
from tests.featured_problem import featured_problem
from tests.model_strategies import shaken

KNOWN = featured_problem().knowledge
READ_BY_CHARACTERS = featured_problem(analyzer="both").knowledge
SOURCE = GroundedOnDemand.from_knowledge(KNOWN, FullGrounder())


def network(input: str, known: KnowledgeBase = KNOWN, **changes: Any) -> R2N:
    model = R2N.build(known, input=input, dim=4, layers=1, **changes)
    return shaken(model, 1).eval()


def code_of(predicate: str, *constants: str) -> int:
    ids = np.array([[KNOWN.language.constant_id(name) for name in constants]])
    return int(KNOWN.base.encode(KNOWN.language.predicate(predicate), ids)[0])


def named(model: R2N, predicate: str, *constants: str) -> set[tuple[str, str]]:
    """The channels of an atom in no ground rule."""
    graph = Ungrounded().around(np.array([code_of(predicate, *constants)]))
    ids = np.array([KNOWN.language.constant_id(name) for name in constants])
    return set(channel_weights(model, model.collate(graph), ids))


def test_an_encoder_has_a_channel_of_words_and_one_of_vectors_and_a_module_none() -> None:
    papers = {("channel 'paper words'", "each constant"), ("channel 'paper vectors'", "each constant")}
    assert named(network("distmult"), "same", "p1", "p2") == papers
    made = network("distmult", encoders={"image": nn.Sequential(nn.Flatten(), nn.Linear(16, 4))})
    assert named(made, "alike", "p1", "i0") == papers
    assert named(made, "alike", "i1", "i0") == set()
    assert named(network("distmult"), "alike", "ann", "bob") == set()


def no_counts(token: str) -> Callable[[R2N, pytest.MonkeyPatch], None]:
    def change(_: R2N, patched: pytest.MonkeyPatch) -> None:
        counted = pair_embedding.pair_counts
        patched.setattr(
            pair_embedding, "pair_counts", lambda bags, *given: (bags.token != token) * counted(bags, *given)
        )

    return change


def no_kind(kind: str) -> Callable[[R2N, pytest.MonkeyPatch], None]:
    def change(_: R2N, patched: pytest.MonkeyPatch) -> None:
        read = pair_embedding.pair_of_bags

        def without(bags: csr_array, left: np.ndarray, right: np.ndarray) -> csr_array:
            both = read(bags, left, right)
            kept = [float(one != kind) for one in pair_embedding.KINDS]
            return csr_array(both.toarray() * np.repeat(kept, both.toarray().shape[1] // 2))

        patched.setattr(pair_embedding, "pair_of_bags", without)

    return change


def no_vectors(model: R2N, _: pytest.MonkeyPatch) -> None:
    for channel in model.modules():
        if isinstance(channel, VectorChannel) and channel.domain == "paper":
            channel.vectors.zero_()


def no_words(_: R2N, patched: pytest.MonkeyPatch) -> None:
    times = WordChannel.times

    def nothing(self: WordChannel, table: Tensor, kept: Tensor | None) -> Tensor:
        return 0 * times(self, table, kept)

    patched.setattr(WordChannel, "times", nothing)


@pytest.mark.parametrize(
    ("made", "part", "where", "without"),
    [
        ({"input": "pair"}, "overlap of paper words", "pair", no_counts("word")),
        ({"input": "pair", "known": READ_BY_CHARACTERS}, "overlap of paper characters", "pair", no_counts("char")),
        ({"input": "pair"}, "difference of paper words", "pair", no_kind("difference")),
        ({"input": "pair"}, "product of paper words", "pair", no_kind("product")),
        ({"input": "pair"}, "paper vectors", "pair", no_vectors),
        ({"input": "mlp"}, "paper vectors", "each constant", no_vectors),
        ({"input": "mlp"}, "paper words", "each constant", no_words),
    ],
)
def test_a_channel_left_out_is_one_that_gives_nothing(
    made: dict[str, Any],
    part: str,
    where: str,
    without: Callable[[R2N, pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The graph around same(p1, p4) is only of pairs of papers."""
    model, code = network(**made), code_of("same", "p1", "p4")
    logits = AtomLogits(model, SOURCE, KNOWN.evidence)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    found = {(one.part, one.of): one.effect for one in feature_effects([logits], code, most=0)}
    as_is = logits(np.array([code]))
    changed = deepcopy(model)
    without(changed, monkeypatch)
    expected = as_is - AtomLogits(changed, SOURCE, KNOWN.evidence)(np.array([code]))
    assert abs(expected[0]) > 1e-3
    assert found[f"channel '{part}'", where] == pytest.approx(float(expected[0]), abs=1e-6)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items()), "nothing is changed"
