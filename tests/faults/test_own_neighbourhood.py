"""Under backward grounding an atom's answer depends on the atom, the facts and the run: not on what else is asked."""

import numpy as np
import pytest

import r2n
from r2n.model.run import Run, prepare_run
from tests.toy_problem import write_toy_problem

BOUND = 1e-6  # in the logit: sums are added up in another order


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    problem = r2n.load(write_toy_problem(tmp_path_factory.mktemp("alone") / "toy", epochs=5))
    changes = ["grounding.strategy=backward", "grounding.width=1", "grounding.depth=3"]
    run = prepare_run(problem, problem.options.changed(changes), 0)
    for _ in run.trainer:
        pass
    return run


@pytest.mark.parametrize("seed", range(5))
def test_alone_in_company_and_in_any_order(seed: int, run: Run) -> None:
    generator = np.random.default_rng(seed)
    atoms, alone = run.problem.atoms, run.logits()
    one_by_one = np.concatenate([alone(atoms[i : i + 1]) for i in range(len(atoms))])
    chosen = generator.permutation(len(atoms))[: generator.integers(2, len(atoms))]
    company = run.logits()(atoms[chosen])
    np.testing.assert_allclose(company, one_by_one[chosen], rtol=0, atol=BOUND)
    assert np.ptp(one_by_one) > 100 * BOUND, "there is something to tell apart"


def test_asked_the_same_again_the_bits_are_the_same(run: Run) -> None:
    atoms = run.problem.test.atoms
    np.testing.assert_array_equal(run.logits()(atoms), run.logits()(atoms))
