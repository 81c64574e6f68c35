"""What training asks, against plain loops over names: corruptions, labels, known ground rules."""

from random import Random

import numpy as np
from hypothesis import given, settings

from r2n.training.losses import known_ground_rules
from r2n.training.negatives import corruptions
from r2n.training.targets import ask
from tests.model_strategies import make_small_world, rows_of, setting_of
from tests.oracles import corruption as oracle
from tests.oracles.losses import labelled_rules
from tests.strategies import codes_of, knowledge_of, make_world, named_atoms
from tests.theory_strategies import dice


@settings(max_examples=40)
@given(dice=dice())
def test_corruptions_are_those_of_the_loops(dice: Random) -> None:
    world = make_world(dice)
    knowledge = knowledge_of(world)
    facts = sorted(world.facts)
    codes = codes_of(knowledge.base, knowledge.language, facts)
    positions = dice.choice((None, [0], [-1], [0, -1], [1]))
    rows, candidates = corruptions(knowledge.base, codes, np.sort(codes), positions=positions)
    found = sorted(
        (fact, set(named_atoms(knowledge, row[row >= 0])))
        for fact, row in zip(named_atoms(knowledge, rows), candidates, strict=True)
    )
    expected = []
    for fact in facts:
        arity = len(fact) - 1
        wanted = range(arity) if positions is None else {p % arity for p in positions if -arity <= p < arity}
        expected += [(fact, oracle.corruptions(world, fact, position)) for position in sorted(wanted)]
    assert [fact for fact, _ in found] == [fact for fact, _ in expected]
    for fact in facts:  # rows of one fact come in any order
        possible = [sets for own, sets in expected if own == fact]
        for others in (others for own, others in found if own == fact):
            match = next((sets for sets in possible if others in sets), None)
            assert match is not None, (fact, others)
            possible.remove(match)


@settings(max_examples=40)
@given(dice=dice())
def test_labels_and_ground_rules_are_those_of_the_loops(dice: Random) -> None:
    world = make_small_world(dice)
    setting = setting_of(world, dice)
    knowledge, graph = setting.knowledge, setting.graph
    positions = dice.choice((None, [0], [0, 1]))
    questions = ask(knowledge.base, graph, knowledge.evidence, positions=positions)
    named = named_atoms(knowledge, graph.atoms.numpy())
    labels = questions.labels.tolist()
    for atom, label in zip(named, labels, strict=True):
        assert label in oracle.labels(world, atom, positions), atom
    closed = [oracle.is_closed(world, atom) for atom in named]
    assert questions.asked.tolist() == [i for i, label in enumerate(labels) if label >= 0 and not closed[i]]
    assert questions.open_atoms.tolist() == [not is_closed for is_closed in closed]
    constants = knowledge.language.constants
    assert [constants[c] for c in questions.first_constants.tolist()] == [atom[1] for atom in named]
    for rule, rows, part, (known, truth) in zip(
        graph.rules, rows_of(graph), graph.neighbours, questions.rules, strict=True
    ):
        expected, truths = labelled_rules(rule.formula, rows, labels)
        assert known.tolist() == expected
        assert truth.tolist() == truths
        if not rule.is_implicit:
            assert known_ground_rules(part, questions.labels).nonzero().flatten().tolist() == expected
