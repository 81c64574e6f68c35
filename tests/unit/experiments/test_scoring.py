"""Atoms -> logits."""

import numpy as np
import torch

from r2n.experiments.run import Run
from r2n.experiments.scoring import AtomScores
from r2n.knowledge.problem import Problem


def test_scores_are_the_forward_pass(toy_run: Run) -> None:
    with torch.no_grad():
        logits = toy_run.model(toy_run.graph, known=toy_run.trainer.known).atoms.numpy()
    codes = toy_run.graph.atoms.numpy()
    np.testing.assert_allclose(toy_run.scores()(codes), logits, rtol=1e-6)
    np.testing.assert_allclose(toy_run.scores()(codes[::-2]), logits[::-2], rtol=1e-6)


def test_atoms_outside_the_graph_change_nothing_for_those_inside(toy_run: Run, toy: Problem) -> None:
    base = toy.knowledge.base
    outside = np.setdiff1d(np.arange(base.size), toy_run.graph.atoms.numpy())
    assert len(outside)
    inside = toy_run.graph.atoms.numpy()
    together = toy_run.scores()(np.concatenate([inside, outside]))
    np.testing.assert_allclose(together[: len(inside)], toy_run.scores()(inside), rtol=1e-5)
    assert np.isfinite(together).all()


def test_scores_of_a_network_that_reads_evidence(toy: Problem) -> None:
    from r2n.experiments.run import prepare_run

    run = prepare_run(toy, toy.options.changed(["model.evidence_input=only", "training.epochs=2"]), seed=0)
    list(run.trainer)
    np.testing.assert_array_equal(
        AtomScores.of(run.model, run.graph, toy.train)(toy.test.atoms), run.scores()(toy.test.atoms)
    )
