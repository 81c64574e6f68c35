"""What the input layer's part of an answer rests on: both kinds together, and nothing where nothing is read."""

from typing import Any

import numpy as np
import pytest
import torch

from r2n.explanation.features import input_reasons
from r2n.explanation.records import InputReasons
from r2n.grounding.full import FullGrounder
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.r2n import R2N
from r2n.scoring import AtomLogits
from tests.featured_problem import featured_problem

KNOWN = featured_problem().knowledge
SOURCE = GroundedOnDemand.of(KNOWN, FullGrounder())


def reasons(*constants: str, most: int = 5, **changes: Any) -> InputReasons:
    torch.manual_seed(0)
    model = R2N.build(KNOWN, dim=4, layers=1, **{"input": "pair", **changes})
    ids = np.array([[KNOWN.language.constant_id(name) for name in constants]])
    code = int(KNOWN.base.encode(KNOWN.language.predicate("same"), ids)[0])
    return input_reasons([AtomLogits(model, SOURCE, KNOWN.evidence)], KNOWN, code, most=most)


def test_similar_facts_and_effects_of_features_stand_together() -> None:
    found = reasons("p4", "p2")
    assert {one.atom for one in found.similar} == {"same(p1, p2)", "same(p3, p3)"}
    assert {one.of for one in found.features} == {"p2", "p4", "pair"}
    assert len(reasons("p4", "p2", most=1).similar) == 1


@pytest.mark.parametrize("input", ["pair", "distmult"])
def test_where_only_evidence_is_read_there_is_nothing_to_tell(input: str) -> None:
    assert reasons("p4", "p2", input=input, evidence_input="only") == InputReasons()


def test_where_its_score_is_added_all_the_same_there_is() -> None:
    found = reasons("p4", "p2", input="distmult", evidence_input="only", input_score=True)
    assert found.similar
    assert any(abs(one.effect) > 0 for one in found.features)


def test_most_by_default() -> None:
    words = [one for one in reasons("p1", "p3").features if one.part.startswith("word")]
    assert len(words) == 5
