"""Constraints of training facts in a ranking, against plain loops; validation facts are never seen."""

from dataclasses import replace

import numpy as np
import pytest

from r2n.data.knowledge_base import Evidence
from r2n.data.problem import Problem, load_problem
from r2n.errors import ConfigError
from r2n.evaluation.ranking import EvaluationOptions
from r2n.model.evaluation import LEAST_SUPPORT, RANKED_KINDS, Constrained
from r2n.model.model import Model
from r2n.model.run import prepare_run
from tests.oracles import metrics as oracle_metrics
from tests.oracles import mining as oracle
from tests.ordered_problem import write_ordered_problem


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return load_problem(write_ordered_problem(tmp_path_factory.mktemp("road")))


def ranks_by_loops(trained: Model, constrained: Constrained) -> list[float]:
    """Every side of every test query: a forbidden candidate has a score below all others."""
    problem = trained.problem
    base, facts = problem.knowledge.base, oracle.facts_of(problem.knowledge)
    known = {*problem.train.atoms.tolist(), *problem.valid.atoms.tolist(), *problem.test.atoms.tolist()}
    found = []
    for code in problem.test.atoms.tolist():
        index, arguments = base.decode(np.array([code]))
        predicate = base.language.predicates[int(index[0])]
        for position in range(predicate.arity):
            scores, allowed, true = [], [], -1
            for candidate in base.language.members(predicate.domains[position]).tolist():
                constants = arguments[0, : predicate.arity].tolist()
                constants[position] = candidate
                other = base.encode(predicate, np.array([constants]))
                names = [base.language.constants[i] for i in constants]
                broken = predicate.arity == 2 and any(
                    oracle.breaks(c.kind, facts, c.predicates, predicate.name, *names)
                    for c in constrained.constraints
                    if predicate.name in c.predicates
                )
                true = len(scores) if int(other[0]) == code else true
                scores.append(-np.inf if broken else float(trained.scores.asked_at(position)(other)[0]))
                allowed.append(int(other[0]) == code or int(other[0]) not in known)
            found.append(oracle_metrics.ranks(scores, true, allowed)[2])  # realistic
    return found


def test_forbidden_candidates_stand_last(road: Problem) -> None:
    trained = Model.from_run(prepare_run(road, road.options, seed=0))
    for kinds in (RANKED_KINDS, ("irreflexive",), ("range-first", "range-second")):
        constrained = Constrained.of(road.knowledge, kinds, min_support=3)
        report = trained.evaluate("test", options=EvaluationOptions(forbidden=constrained))
        expected = oracle_metrics.ranking_metrics(ranks_by_loops(trained, constrained))
        assert report.metrics["mrr"] == pytest.approx(expected["mrr"], abs=1e-9)
        assert report.protocol["constraints"] == str(constrained)
    plain, better = (
        trained.evaluate("test"),
        trained.evaluate("test", options=EvaluationOptions(forbidden=Constrained.of(road.knowledge))),
    )
    assert better.metrics["mrr"] > plain.metrics["mrr"], "no true answer is forbidden here"
    assert "constraints" not in plain.protocol


def test_which_constraints_are_found(road: Problem) -> None:
    found = Constrained.of(road.knowledge)
    assert str(found) == "irreflexive 1, asymmetric 1"
    assert all(constraint.support >= LEAST_SUPPORT for constraint in found.constraints)
    assert "functional 1" in str(Constrained.of(road.knowledge, min_support=3))
    assert str(Constrained.of(road.knowledge, ("disjoint",))) == "none found"
    with pytest.raises(ConfigError, match="no kind of constraint 'reflexive'") as caught:
        Constrained.of(road.knowledge, ("reflexive",))
    assert "irreflexive" in str(caught.value)


def test_no_query_has_a_part_in_them(road: Problem) -> None:
    blind = replace(road, queries={})
    assert Constrained.of(road.knowledge).constraints == Constrained.of(blind.knowledge).constraints
    broken = replace(road, queries={**road.queries, "valid": _loops(road)})
    assert Constrained.of(broken.knowledge).constraints == Constrained.of(road.knowledge).constraints


def _loops(road: Problem) -> Evidence:
    predicate = road.knowledge.language.predicate("after")
    codes = np.sort(road.knowledge.base.encode(predicate, np.array([[0, 0], [3, 3]])))
    return Evidence(codes, np.ones(2, bool))


def test_a_classification_is_refused(toy: Problem) -> None:
    trained = Model.from_run(prepare_run(toy, toy.options, seed=0))
    with pytest.raises(ConfigError, match="only a ranking respects constraints"):
        trained.evaluate("test", options=EvaluationOptions(forbidden=Constrained.of(toy.knowledge)))
