"""Options that contradict each other or the problem."""

from dataclasses import replace

import pytest

from r2n.data.knowledge_base import Evidence
from r2n.data.problem import Problem
from r2n.data.validation import contradictions
from r2n.errors import ConfigError
from r2n.logic.theory import Theory
from r2n.model.run import prepare_run
from r2n.network.r2n import R2N
from r2n.options import Options
from r2n.training.rows import asks_rows

WIDE = "domain person, thing\npredicate gives(person, thing, person)\n"


def bare(toy: Problem) -> Problem:
    """Without rules, queries and facts."""
    knowledge = replace(toy.knowledge, theory=replace(toy.knowledge.theory, rules=()), evidence=Evidence.empty())
    return replace(toy, knowledge=knowledge, queries={})


def wide() -> Problem:
    """A problem with a ternary predicate."""
    from r2n.logic.parser import parse_theory

    return Problem.build("wide", parse_theory(WIDE), domains={"person": ["ann", "bob"], "thing": ["hat"]})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["model.evidence_input=only", "training.hiding=0.0"], "hides none of it learns to copy it"),
        (["model.evidence_input=add", "training.loss=full-softmax"], "full-softmax asks every fact"),
        (["model.evidence_input=add", "model.layers=0"], "evidence as input needs reasoning layers"),
        (["training.patience=5"], "training.patience needs queries to validate on"),
        (["training.patience=5", "training.with_valid=true"], "cannot both be trained on and tell when to stop"),
        (["training.regularisation=product"], "regularisation needs explicit rules"),
        (["training.batches=2", "training.loss=softmax"], "cannot be trained in batches"),
        (["training.loss=full-softmax"], "there is no fact to learn from"),
        (["training.batch_size=2", "training.batches=2"], "one of the two"),
        (["training.loss=full-softmax", "training.batch_size=2"], "in batches asks all candidates of a row"),
        (["training.leave_one_out=true"], "a step over the full graph asks everything"),
        (["training.labels_only=['liesIm']"], "unknown predicate 'liesIm'"),
        (["training.labels_only=['liesIn']", "training.loss=softmax"], "compares facts with their corruptions"),
    ],
)
def test_each_is_told_and_refused_by_a_training(changes: list[str], message: str, toy: Problem) -> None:
    options = Options().changed(changes)
    found = contradictions(bare(toy), options)
    assert any(message in str(error) for error in found), found
    with pytest.raises(ConfigError):
        prepare_run(bare(toy), options, seed=0)


@pytest.mark.parametrize("name", ["complex", "transe", "rotate"])
def test_an_input_layer_of_pairs_takes_no_ternary_predicate(name: str) -> None:
    options = Options().changed([f"model.input={name}"])
    (error,) = contradictions(wide(), options)
    assert f"input '{name}' takes predicates of one or two positions, but gives has 3" in str(error)
    assert "choose input = 'distmult' or 'mlp'" in str(error)
    with pytest.raises(ConfigError, match="gives has 3"):
        prepare_run(wide(), options, seed=0)


@pytest.mark.parametrize("name", ["distmult", "mlp", "pair"])
def test_the_other_input_layers_take_it(name: str) -> None:
    assert contradictions(wide(), Options().changed([f"model.input={name}"])) == []


def test_patience_counts_epochs_and_must_last_until_the_next_validation(toy: Problem) -> None:
    (error,) = contradictions(toy, toy.options.changed(["training.patience=5"]))
    assert str(error) == (
        "training.patience = 5 epochs is over before the next validation: training.validate_every is 10 epochs\n"
        "  patience counts epochs, not validations: set it to 10 or more, or validate_every to 5 or less"
    )
    assert contradictions(toy, toy.options.changed(["training.patience=10"])) == []
    assert contradictions(toy, toy.options.changed(["training.patience=5", "training.validate_every=5"])) == []


def test_all_are_told_at_once(toy: Problem) -> None:
    options = Options().changed(["training.patience=5", "training.regularisation=product", "model.layers=0"])
    assert len(contradictions(bare(toy), options)) == 2


def test_a_sound_problem_has_none(toy: Problem) -> None:
    assert contradictions(toy, toy.options) == []
    assert contradictions(Problem.build("empty", Theory()), Options()) == []


@pytest.mark.parametrize(
    ("changes", "is_refused"),
    [
        ([], True),
        (["model.reasoner=none"], False),
        (["model.layers=0"], False),
        (["model.rules=counted"], False),
        (["model.reasoner=none", "training.relation_weight=0.5"], False),
        (["model.reasoner=none", "training.regularisation=product"], True),
        (["model.reasoner=none", "model.input=mlp"], True),
        (["model.reasoner=none", "model.input=distmult"], False),
    ],
)
def test_batched_full_softmax_is_refused_alike_before_and_in_a_training(
    changes: list[str], is_refused: bool, toy: Problem
) -> None:
    options = Options().changed(["training.loss=full-softmax", "training.batch_size=2", "training.hiding=0", *changes])
    refusals = [error for error in contradictions(toy, options) if "all candidates of a row" in str(error)]
    assert bool(refusals) == is_refused
    model = R2N.build(toy.knowledge, options.model)
    if is_refused:
        with pytest.raises(ConfigError) as caught:
            asks_rows(model, options.training)
        assert str(caught.value) == str(refusals[0])
    else:
        assert asks_rows(model, options.training)
