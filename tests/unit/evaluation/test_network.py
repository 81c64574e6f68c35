"""How good a network is on queries, and the logits behind it."""

import numpy as np
import pytest
import torch

import r2n
from r2n.data.knowledge_base import reciprocal_codes
from r2n.model.run import Run, prepare_run
from tests.unit.training.toy_training import step_of


@pytest.fixture(scope="module")
def nations() -> Run:
    """A network with reciprocals, after three epochs."""
    problem = r2n.load("nations")
    run = prepare_run(problem, problem.options.changed(["training.epochs=3", "model.dim=4", "model.layers=1"]), seed=0)
    list(run.trainer)
    return run


def test_position_0_is_asked_of_the_reciprocals(nations: Run) -> None:
    scores, codes = nations.logits(), nations.problem.test.atoms
    layout = step_of(nations.trainer).layout
    with torch.no_grad():
        logits = nations.model(layout).atoms.double().numpy()
    mirrored = reciprocal_codes(nations.model.base, codes)
    assert (mirrored >= len(nations.problem.knowledge.base)).all()
    np.testing.assert_array_equal(scores.asked_at(0)(codes), logits[mirrored])
    np.testing.assert_array_equal(scores.asked_at(1)(codes), logits[codes])
    np.testing.assert_allclose(scores(codes), (logits[codes] + logits[mirrored]) / 2)


def test_ranking_asks_each_side_of_its_own_scores(nations: Run) -> None:
    """The rank of every test fact at both positions, by loops."""
    problem, scores = nations.problem, nations.logits()
    base = problem.knowledge.base
    known = {int(code) for part in (problem.train, *problem.queries.values()) for code in part.atoms[part.truth]}
    index, arguments = base.decode(problem.test.atoms)
    reciprocal = []
    for predicate, (head, tail), code in zip(index, arguments.tolist(), problem.test.atoms.tolist(), strict=True):
        for position in (0, 1):
            rows = [(other, tail) if position == 0 else (head, other) for other in range(14)]
            codes = base.encode(base.language.predicates[predicate], np.array(rows))
            logits = dict(zip(codes.tolist(), scores.asked_at(position)(codes).tolist(), strict=True))
            rivals = [logits[other] for other in codes.tolist() if other == code or other not in known]
            better = sum(value > logits[code] for value in rivals)
            equal = sum(value == logits[code] for value in rivals)
            reciprocal.append(1 / (better + (equal + 1) / 2))
    assert nations.evaluate("test").metrics["mrr"] == pytest.approx(sum(reciprocal) / len(reciprocal), abs=1e-12)
