"""Options -> the objects they name."""

from dataclasses import replace

import pytest
import torch

from r2n.data.problem import Problem
from r2n.errors import ConfigError
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.store import Ceiling
from r2n.model.memory import as_trained, check_options, make_device, make_source, problem_to_train
from r2n.network.graph_sources import Counted, GroundedOnDemand, Ungrounded
from r2n.options import GroundingOptions, Options


def test_a_network_that_reads_no_rules_grounds_none(toy: Problem) -> None:
    def source(*changes: str) -> object:
        return make_source(toy.knowledge, Options().changed(changes))

    assert isinstance(source("model.reasoner=none"), Ungrounded)
    assert isinstance(source("model.layers=0"), Ungrounded)
    t_norm = Options().changed(["model.layers=0", "training.regularisation=product"])
    assert isinstance(make_source(toy.knowledge, t_norm), Ungrounded), "to be asked, it needs no rule"
    assert isinstance(make_source(toy.knowledge, t_norm, to_train=True), GroundedOnDemand)
    known_body = source("grounding.strategy=known-body")
    assert isinstance(known_body, GroundedOnDemand)
    assert isinstance(known_body.grounder, KnownBodyGrounder)


def test_grounding_and_counting_keep_to_the_memory_that_is_allowed(toy: Problem) -> None:
    layered = make_source(toy.knowledge, Options(), memory=10**9)
    counted = make_source(
        toy.knowledge, Options().changed(["model.rules=counted", "grounding.max_groundings=7000"]), memory=10**8
    )
    assert isinstance(layered, GroundedOnDemand)
    assert isinstance(counted, Counted)
    assert (layered.store.ceiling, counted.store.ceiling) == (Ceiling(10**9), Ceiling(10**8))
    assert counted.max_groundings == 7000
    by_default = make_source(toy.knowledge, Options())
    assert isinstance(by_default, GroundedOnDemand)
    assert (by_default.store.ceiling.most or 0) > 10**6


def test_reciprocals_are_part_of_the_training_language_alone(toy: Problem) -> None:
    plain, both = (as_trained(toy.knowledge, GroundingOptions(reciprocal=wanted)) for wanted in (False, True))
    assert plain is toy.knowledge
    assert len(both.language.predicates) == 2 * len(plain.language.predicates)


def test_the_device_is_the_one_that_is_named_or_refused() -> None:
    assert make_device("cpu") == torch.device("cpu")
    assert make_device().type in ("cpu", "cuda", "mps")
    for name, is_there in (("cuda", torch.cuda.is_available()), ("mps", torch.backends.mps.is_available())):
        if not is_there:
            with pytest.raises(ConfigError, match=f"there is no device '{name}' here"):
                make_device(name)


def test_validation_queries_are_evidence_where_that_is_wished(toy: Problem) -> None:
    assert problem_to_train(toy, Options()) is toy
    whole = problem_to_train(toy, Options().changed(["training.with_valid=true"]))
    assert len(whole.train) == len(toy.train) + len(toy.valid)
    with pytest.raises(ConfigError, match="cannot both be trained on and tell when to stop"):
        problem_to_train(toy, Options().changed(["training.with_valid=true", "training.patience=3"]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["model.evidence_input=only", "training.hiding=0.0"], "hides none of it learns to copy it"),
        (["training.patience=5"], "training.patience needs queries to validate on"),
        (["training.regularisation=product"], "regularisation needs explicit rules"),
    ],
)
def test_what_contradicts_itself_is_refused_before_any_work(changes: list[str], message: str, toy: Problem) -> None:
    bare = replace(toy.knowledge, theory=replace(toy.knowledge.theory, rules=()))
    problem = replace(toy, knowledge=bare, queries={})
    with pytest.raises(ConfigError, match=message):
        check_options(problem, Options().changed(changes))
    check_options(problem, Options())
