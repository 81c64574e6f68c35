"""On known problems too, evaluation and prediction give every atom one logit: Countries, UMLS with rules, Cora."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import r2n
from r2n.data.knowledge_base import Evidence
from r2n.data.problem import Problem
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.store import Store
from r2n.network.graph_sources import GroundedOnDemand
from r2n.options import Options
from r2n.scoring import AtomLogits
from tests.one_way import CLOSE, STRATEGIES, brier, knowledge_in, run_in

CORA = Path(os.environ.get("R2N_DATA") or "nowhere") / "cora"
SMALL = ("training.epochs=1", "model.dim=8", "model.layers=2")
HORN = """
domain constant
predicate isa(constant, constant)
predicate affects(constant, constant)
predicate location_of(constant, constant)
predicate causes(constant, constant)
rule transitive: isa(x, y) & isa(y, z) -> isa(x, z)
rule inherited: isa(x, y) & affects(y, z) -> affects(x, z)
rule within: location_of(x, y) & isa(z, y) -> location_of(x, z)
rule effect: causes(x, y) -> affects(x, y)
"""
RIVALS = 20


def agree(problem: Problem, folder: Path, grounder: Grounder, rivals: np.ndarray) -> None:
    """Report, predictor and logits one by one: the same for queries, and for rivals that nobody named before."""
    run = run_in(folder, problem)
    predictor, queries, knowledge = r2n.Model.load(folder), problem.test, knowledge_in(problem)
    logits = AtomLogits(run.model, GroundedOnDemand.of(knowledge, grounder), knowledge.evidence)
    np.testing.assert_allclose(predictor.logits(queries.atoms), logits(queries.atoms), **CLOSE)
    alone = [logits(rivals[i : i + 1])[0] for i in range(len(rivals))]
    np.testing.assert_allclose(predictor.logits(rivals), alone, **CLOSE)
    metrics = run.evaluate("test").metrics
    if "brier" in metrics:
        expected = brier(predictor.logits(queries.atoms), queries.truth)
        assert metrics["brier"] == pytest.approx(expected, abs=1e-6)
    else:
        assert metrics["mrr"] == pytest.approx(ranked_by(predictor, problem), abs=1e-6)


def rows_of(problem: Problem) -> list[tuple[int, np.ndarray]]:
    """Each true query with its rivals at each position: the atoms with another constant there, no true ones."""
    base = problem.knowledge.base
    true = np.concatenate([part.atoms[part.truth] for part in (problem.train, *problem.queries.values())])
    found = []
    for code in problem.test.atoms.tolist():
        index, arguments = base.decode(np.array([code]))
        predicate = base.language.predicates[int(index[0])]
        for position, domain in enumerate(predicate.domains):
            columns = [arguments[:, i] for i in range(predicate.arity)]
            columns[position] = base.language.members(domain)
            row = base.encode_columns(predicate, columns)
            found.append((code, row[~np.isin(row, true)]))
    return found


def ranked_by(predictor: r2n.Model, problem: Problem) -> float:
    """The mean reciprocal rank, each row asked of the predictor."""
    found = []
    for code, rivals in rows_of(problem):
        *others, own = predictor.logits(np.append(rivals, code)).tolist()
        better, equal = sum(other > own for other in others), sum(other == own for other in others)
        found.append(1 / (1 + better + equal / 2))
    return float(np.mean(found))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_evaluate_and_predict_agree_on_countries(strategy: str, tmp_path: Path) -> None:
    problem, chosen = r2n.load("countries-s3"), STRATEGIES[strategy]
    problem = replace(problem, options=problem.options.changed([*SMALL, *chosen.options]))
    unnamed = np.setdiff1d(np.arange(problem.knowledge.base.size), problem.atoms)
    agree(problem, tmp_path / "run", chosen.grounder, unnamed[:: len(unnamed) // RIVALS])


def umls_with_rules() -> Problem:
    """UMLS with four Horn rules, and every sixth test query of the predicates they speak of."""
    problem = r2n.load("umls")
    knowledge = problem.knowledge
    rules = r2n.parse_theory(HORN).rules
    heads = {"isa", "affects", "location_of"}
    index, _ = knowledge.base.decode(problem.test.atoms)
    spoken_of = np.array([knowledge.language.predicates[i].name in heads for i in index])
    test = problem.test.atoms[spoken_of][::6]
    return replace(
        problem,
        knowledge=replace(knowledge, theory=replace(knowledge.theory, rules=rules)),
        queries={"test": Evidence(test, np.ones(len(test), bool))},
        source=None,
        options=Options().changed([*SMALL, *STRATEGIES["backward(0,1)"].options, "training.negatives=2"]),
    )


@pytest.mark.slow
def test_evaluate_and_predict_agree_on_umls_with_rules(tmp_path: Path) -> None:
    """Rivals that the rules prove, each with its proofs."""
    problem, grounder = umls_with_rules(), STRATEGIES["backward(0,1)"].grounder
    rivals = np.unique(np.concatenate([row for _, row in rows_of(problem)]))
    proved = np.concatenate(
        [part.atoms[:, -1] for part in grounder.ground(Store(problem.knowledge), rivals).ground_rules]
    )
    provable = np.intersect1d(rivals, proved)
    assert len(provable) > 100
    agree(problem, tmp_path / "run", grounder, provable[:: len(provable) // RIVALS])


@pytest.mark.slow
@pytest.mark.skipif(not CORA.is_dir(), reason="R2N_DATA holds no folder cora")
def test_evaluate_and_predict_agree_on_cora(tmp_path: Path) -> None:
    """Texts, candidates, and labels true and false."""
    problem = r2n.load("cora-s1")
    problem = replace(problem, options=problem.options.changed(["training.epochs=1"]))
    unnamed = np.setdiff1d(np.concatenate(list(problem.knowledge.candidates.values())), problem.atoms)
    agree(problem, tmp_path / "run", FullGrounder(), unnamed[:: max(1, len(unnamed) // RIVALS)])
