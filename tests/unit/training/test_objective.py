"""What a step minimises: parts and weights; what could only be learned by reading the answer is refused."""

import pytest
import torch

from r2n.errors import ConfigError
from r2n.training.fit import Trainer
from r2n.training.objective import n3_penalty
from tests.unit.training.toy_training import GRAPH, KNOWN, network, step_of


def test_the_total_is_the_weighed_sum_of_its_parts() -> None:
    model = network()
    trainer = Trainer.of(
        model, GRAPH, KNOWN.evidence, semantic_weight=0.3, regularisation="product", regularisation_weight=2.0, n3=0.1
    )
    step = step_of(trainer)
    found = trainer.objective.losses(step, model(step.layout), None)
    expected = found.supervised + 0.3 * found.semantic + 2 * found.fuzzy + 0.1 * n3_penalty(model.constants.vectors)
    torch.testing.assert_close(found.total, expected)
    assert all(float(part.detach()) > 0 for part in (found.supervised, found.semantic, found.fuzzy))


@pytest.mark.parametrize("reads", ["add", "only"])
def test_a_network_that_reads_evidence_needs_hiding(reads: str) -> None:
    with pytest.raises(ConfigError, match="hides none of it learns to copy it"):
        Trainer.of(network(evidence_input=reads), GRAPH, KNOWN.evidence, hiding=0.0)
    with pytest.raises(ConfigError, match="full-softmax asks every fact"):
        Trainer.of(network(evidence_input=reads), GRAPH, KNOWN.evidence, loss="full-softmax")
