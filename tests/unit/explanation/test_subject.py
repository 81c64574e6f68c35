"""What is explained: networks, and how others are made of them."""

import numpy as np

from r2n.data.problem import Problem
from r2n.explanation.neighbourhood import Otherwise, mean_logits
from tests.unit.explanation.small_subject import code, codes, predictor_of, subject


def test_reciprocals_are_told_as_what_they_say(toy: Problem) -> None:
    told = subject(toy, "grounding.reciprocal=true", "grounding.strategy=known-body")
    own = code(told, "liesIn(n1, north)")
    mirrored = np.array([i for i, name in enumerate(told.base.names(np.arange(told.base.size))) if "^-1" in name])
    assert len(mirrored)
    assert told.plain(np.array([own])).tolist() == [own]
    assert not any("^-1" in name for name in told.names(mirrored))
    assert sorted(told.plain(mirrored)) == sorted(set(range(told.base.size)) - set(mirrored.tolist()))


def test_logits_are_means_over_networks(toy: Problem) -> None:
    one, other = (subject(toy, f"model.dim={dim}") for dim in (4, 8))
    asked = codes(one, "liesIn(n5, north)", "liesIn(s5, north)")
    both = mean_logits((*one.members, *other.members), asked)
    np.testing.assert_allclose(both, (one.logits(asked) + other.logits(asked)) / 2)


def test_otherwise_is_a_problem_where_it_is_so(toy: Problem) -> None:
    predictor = predictor_of(toy, "model.evidence_input=add", "grounding.strategy=backward")
    told = subject(toy, "model.evidence_input=add", "grounding.strategy=backward")
    asked, fact = codes(told, "liesIn(n5, north)"), codes(told, "near(n4, n5)")
    without = mean_logits(told.otherwise(Otherwise(unknown=fact)), asked)
    np.testing.assert_allclose(without, predictor.without_facts("near(n4, n5)").logits(asked))
    lies = codes(told, "liesIn(n4, north)")
    false = mean_logits(told.otherwise(Otherwise(unknown=lies, false=lies)), asked)
    again = predictor.without_facts("liesIn(n4, north)").with_facts("!liesIn(n4, north)")
    np.testing.assert_allclose(false, again.logits(asked))
    no_rule = mean_logits(told.otherwise(Otherwise(without_rule="neighbours")), asked)
    assert no_rule != told.logits(asked)


def test_a_new_constant_stays_when_its_only_fact_goes(toy: Problem) -> None:
    predictor = predictor_of(toy, "model.evidence_input=only", "grounding.strategy=backward", "training.hiding=0.3")
    more = predictor.with_facts(["near(n1, n99)", "near(n99, n1)"])
    explained = more.explain("liesIn(n99, north)")
    told = {what for other in explained.counterfactuals for what in other.what}
    assert "near(n1, n99)" in told
