"""What goes from a graph with a fact: the same as where everything is grounded again."""

from dataclasses import replace

import numpy as np
import pytest

from r2n.data.problem import Problem
from r2n.explanation.counterfactuals import FactChanges
from r2n.explanation.neighbourhood import Otherwise, Scene, mean_logits
from r2n.logic.parser import parse_theory
from tests.unit.explanation.small_subject import code, codes, subject

WAYS = {
    "full": ("grounding.strategy=full", "model.evidence_input=add"),
    "known-body": ("grounding.strategy=known-body", "model.evidence_input=only"),
    "unread": ("grounding.strategy=known-body",),
    "reciprocal": ("grounding.strategy=known-body", "model.evidence_input=add", "grounding.reciprocal=true"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("false", [False, True])
def test_a_fact_that_only_takes_away_is_taken_out_of_the_graph_as_it_is(toy: Problem, way: str, false: bool) -> None:
    told = subject(toy, "model.layers=2", *WAYS[way])
    asked = codes(told, "liesIn(n5, north)", "liesIn(s5, north)")
    scene = Scene.around(told.members, asked)
    made = FactChanges(told, scene)
    facts = made.stated(10)
    assert len(facts)
    assert made.only_take_away(facts, false=false).all()
    pairs = np.stack([np.arange(len(facts)), np.arange(len(facts))], axis=1)
    found = scene.changed(made.changes(facts, pairs, len(facts), false=false))
    for fact, logits in zip(facts, found, strict=True):
        gone = np.array([fact])
        is_open = "liesIn" in told.names(gone)[0]
        again = told.otherwise(Otherwise(unknown=gone, false=gone[: int(false and is_open)]))
        np.testing.assert_allclose(logits, mean_logits(again, asked), atol=1e-9)


def test_several_facts_go_together(toy: Problem) -> None:
    told = subject(toy, "model.layers=2", "model.evidence_input=add")
    asked = codes(told, "liesIn(n5, north)")
    scene = Scene.around(told.members, asked)
    made = FactChanges(told, scene)
    facts = codes(told, "near(n4, n5)", "near(n6, n5)")
    order = np.argsort(facts)
    (logit,) = scene.changed(made.changes(facts[order], np.array([[0, 0], [0, 1]]), 1))
    np.testing.assert_allclose(logit, mean_logits(told.otherwise(Otherwise(unknown=facts)), asked), atol=1e-9)


def test_a_closed_fact_that_is_taken_back_is_read_as_false(toy: Problem) -> None:
    """An implicit rule keeps its ground rules, and the network reads what is known of their atoms."""
    theory = parse_theory(
        "domain town, valley\npredicate liesIn(town, valley)\npredicate near(town, town) closed\n"
        "implicit together: [near(x, y), liesIn(x, z), liesIn(y, z)]\n"
    )
    knowledge = toy.knowledge
    completed = theory.completed(knowledge.language.domains, knowledge.language.predicates)
    other = replace(toy, knowledge=replace(knowledge, theory=completed))
    told = subject(other, "model.layers=1", "grounding.strategy=full", "model.evidence_input=add")
    asked, near = codes(told, "liesIn(n5, north)"), codes(told, "near(n4, n5)")
    scene = Scene.around(told.members, asked)
    (logit,) = scene.changed(FactChanges(told, scene).changes(near, np.array([[0, 0]]), 1))
    np.testing.assert_allclose(logit, mean_logits(told.otherwise(Otherwise(unknown=near)), asked), atol=1e-9)
    assert abs(logit[0] - scene.logits[0]) > 1e-6, "it is felt"


def test_where_ground_rules_would_come_nothing_is_easy(toy: Problem) -> None:
    """A closed atom that is no fact makes a denied body known: with a fact less there are ground rules more."""
    theory = parse_theory(
        "domain town, valley\npredicate liesIn(town, valley)\npredicate near(town, town) closed\n"
        "rule far: !near(x, y) & liesIn(x, z) -> liesIn(y, z)\n"
    )
    knowledge = toy.knowledge
    completed = theory.completed(knowledge.language.domains, knowledge.language.predicates)
    other = replace(toy, knowledge=replace(knowledge, theory=completed))
    told = subject(other, "grounding.strategy=known-body")
    made = FactChanges(told, Scene.around(told.members, np.array([code(told, "liesIn(n5, north)")])))
    near, lies = codes(told, "near(n4, n5)", "liesIn(n4, north)")[:, None]
    assert not made.only_take_away(near).any()
    assert made.only_take_away(lies).all()


def test_what_starts_from_the_question_is_grounded_again(toy: Problem) -> None:
    told = subject(toy, "grounding.strategy=backward")
    made = FactChanges(told, Scene.around(told.members, np.array([code(told, "liesIn(n5, north)")])))
    assert not made.only_take_away(told.knowledge.evidence.atoms).any()
    assert made.are_told_apart


def test_facts_that_a_network_does_not_read_are_no_facts_to_it(toy: Problem) -> None:
    told = subject(toy)
    scene = Scene.around(told.members, np.array([code(told, "liesIn(n5, north)")]))
    made = FactChanges(told, scene)
    assert not made.are_told_apart
    assert all(name.startswith("near") for name in told.names(made.stated(100)))
    assert len(made.stated(1)) == 1
