"""The effects of words: which are listed, in which order, and cases that a network on changed features decides."""

from typing import Any

import numpy as np
import pytest

from r2n.data.features import FeatureTable
from r2n.data.problem import Problem
from r2n.explanation.features import feature_effects, input_reasons
from r2n.explanation.records import FeatureEffect, InputReasons
from r2n.grounding.full import FullGrounder
from r2n.model.model import Model
from r2n.model.run import prepare_run
from r2n.network.graph_sources import GroundedOnDemand, Ungrounded
from r2n.network.r2n import R2N
from r2n.options import ModelOptions, Options
from r2n.scoring import AtomLogits
from tests.featured_problem import TITLES, featured_problem
from tests.model_strategies import shaken
from tests.oracles.feature_rerun import Rerun

TEXTS_ONLY = featured_problem({"paper": FeatureTable(TITLES, analyzer="word")})


def rerun(problem: Problem, *, seed: int = 1, **changes: object) -> Rerun:
    options = ModelOptions.model_validate({"input": "pair", "dim": 4, "layers": 2, **changes})
    known = problem.knowledge
    source = GroundedOnDemand.from_knowledge(known, FullGrounder()) if options.has_layers else Ungrounded()
    return Rerun(shaken(R2N.build(known, options), seed).eval(), known, options, source, {})


def code_of(problem: Problem, predicate: str, *constants: str) -> int:
    known = problem.knowledge
    ids = np.array([[known.language.constant_id(name) for name in constants]])
    return int(known.base.encode(known.language.predicate(predicate), ids)[0])


def effects(*made: Rerun, code: int, most: int = 100) -> tuple[FeatureEffect, ...]:
    return feature_effects([AtomLogits(one.model, one.source, one.knowledge.evidence) for one in made], code, most=most)


def words(found: tuple[FeatureEffect, ...]) -> dict[tuple[str, str], float]:
    return {(one.part, one.of): one.effect for one in found if one.part.startswith("word")}


def test_words_are_listed_with_their_constant_the_largest_effect_first_and_only_some() -> None:
    made, code = rerun(TEXTS_ONLY), code_of(TEXTS_ONLY, "same", "p1", "p3")
    everything = effects(made, code=code)
    expected = {("p1", word) for word in ("cats", "and", "dogs")} | {("p3", word) for word in ("cats", "and", "mice")}
    assert {(of, part.removeprefix("word '").removesuffix("'")) for part, of in words(everything)} == expected
    sizes = [abs(one.effect) for one in everything]
    assert sizes == sorted(sizes, reverse=True)
    some = effects(made, code=code, most=2)
    channels = [one for one in everything if one.part.startswith("channel")]
    assert len(channels) == 3
    assert [one.part for one in some if one.part.startswith("channel")] == [one.part for one in channels]
    assert list(words(some)) == list(words(everything))[:2]
    assert not words(effects(made, code=code, most=0))


def test_without_features_nothing_is_listed_and_without_those_of_an_atom_the_channels() -> None:
    problem = featured_problem({})
    assert effects(rerun(problem, input="distmult"), code=code_of(problem, "same", "p1", "p2")) == ()
    assert effects(rerun(problem), code=code_of(problem, "same", "p1", "p2")) == ()
    (one,) = effects(rerun(TEXTS_ONLY), code=code_of(TEXTS_ONLY, "alike", "ann", "bob"))
    assert (one.part, one.of) == ("channel 'learned vectors'", "pair")


def test_of_an_ensemble_the_mean() -> None:
    code = code_of(TEXTS_ONLY, "same", "p1", "p3")
    first, second = (rerun(TEXTS_ONLY, seed=seed) for seed in (1, 2))
    one, other, both = (words(effects(*made, code=code)) for made in ((first,), (second,), (first, second)))
    assert both == pytest.approx({key: (one[key] + other[key]) / 2 for key in one})


def test_new_constants_are_explained_by_their_features_or_not_at_all() -> None:
    """p0 comes before all others, so that ids move; p9 has no features."""
    run = prepare_run(TEXTS_ONLY, Options().changed(["model.input=pair", "model.dim=4", "training.epochs=1"]), seed=0)
    plain = Model.from_run(run)
    changed = plain.with_facts([], domains={"paper": ["p0", "p9"]}, features={"paper": {"p0": "dogs, unseen"}})

    def found(predictor: Model, *names: str) -> dict[tuple[str, str], float]:
        base = predictor.network.base
        ids = np.array([[base.language.constant_id(name) for name in names]])
        code = int(base.encode(base.language.predicate("same"), ids)[0])
        return words(feature_effects([predictor.scores], code, most=9))

    assert changed.network.base.language.constant_id("p1") != plain.network.base.language.constant_id("p1")
    assert found(changed, "p1", "p3") == pytest.approx(found(plain, "p1", "p3"), abs=1e-5)
    assert found(changed, "p0", "p3").keys() >= {("word 'unseen'", "p0"), ("word 'mice'", "p3")}
    same_text = {
        (part, "p4" if of == "p0" else of): effect for (part, of), effect in found(changed, "p0", "p2").items()
    }
    assert same_text == pytest.approx(found(plain, "p4", "p2"), abs=1e-5)
    assert {of for _, of in found(changed, "p9", "p2")} == {"p2"}


@pytest.mark.parametrize(("input", "input_score"), [("pair", False), ("distmult", False), ("distmult", True)])
def test_the_input_layer_is_explained_if_it_reads_constants(input: str, input_score: bool) -> None:
    problem = featured_problem()
    code = code_of(problem, "same", "p4", "p2")

    def reasons(most: int = 5, **changes: Any) -> InputReasons:
        made = rerun(problem, layers=1, input=input, **changes)
        member = AtomLogits(made.model, made.source, made.knowledge.evidence)
        return input_reasons([member], problem.knowledge, code, most=most)

    found = reasons()
    assert {one.atom for one in found.similar} == {"same(p1, p2)", "same(p3, p3)"}
    assert {one.of for one in found.features} >= {"p2", "p4"}
    assert len(reasons(most=1).similar) == 1
    only = reasons(evidence_input="only", input_score=input_score)
    assert only == InputReasons() if not input_score else only.similar and any(one.effect for one in only.features)
