"""What training asks, against plain loops over names: corruptions, labels, known ground rules."""

from collections import Counter
from random import Random

import numpy as np
from hypothesis import given

from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.network.factor_graph import FactorGraph
from r2n.options import SamplingOptions
from r2n.training.batches import targets_of
from r2n.training.negatives import corruptions, draw_negatives
from tests.examples import at_most
from tests.model_strategies import make_small_world, rows_of
from tests.oracles import negatives as oracle
from tests.oracles.grounding import GroundAtom
from tests.oracles.losses import labelled_rules
from tests.strategies import codes_of, knowledge_of, make_world, named_atoms
from tests.theory_strategies import dice

Row = tuple[GroundAtom, frozenset[GroundAtom]]
"""A fact and its corruptions in one position."""


@at_most(40, "loops over all atoms of a world")
@given(dice=dice())
def test_corruptions_are_those_of_the_loops(dice: Random) -> None:
    world = make_world(dice)
    knowledge = knowledge_of(world)
    facts = sorted(world.facts)
    codes = codes_of(knowledge.base, knowledge.language, facts)
    positions = dice.choice((None, [0], [-1], [0, -1], [1]))
    drawn = corruptions(knowledge.base, codes, np.sort(codes), positions=positions)
    found = Counter(
        (fact, frozenset(named_atoms(knowledge, row[row >= 0])))
        for fact, row in zip(named_atoms(knowledge, drawn.facts), drawn.atoms, strict=True)
    )
    choices: list[list[Row]] = []
    for fact in facts:
        arity = len(fact) - 1
        wanted = range(arity) if positions is None else {p % arity for p in positions if -arity <= p < arity}
        choices += [[(fact, frozenset(s)) for s in oracle.corruptions(world, fact, position)] for position in wanted]
    assert can_be_matched(choices, found)


def can_be_matched(choices: list[list[Row]], found: Counter[Row]) -> bool:
    """Whether one of each row's choices (several where narrowest domains tie) can be taken so that all are found."""
    if not choices:
        return not +found
    for choice in set(choices[0]):
        if found[choice] > 0:
            found[choice] -= 1
            if can_be_matched(choices[1:], found):
                return True
            found[choice] += 1
    return False


@at_most(40, "loops over all atoms of a world")
@given(dice=dice())
def test_labels_and_ground_rules_are_those_of_the_loops(dice: Random) -> None:
    world = make_small_world(dice)
    knowledge = knowledge_of(world)
    positions = dice.choice((None, [0], [0, 1]))
    sampling = SamplingOptions(corrupted_positions=None if positions is None else tuple(positions))
    drawn = draw_negatives(knowledge.base, knowledge.evidence, sampling, np.random.default_rng(0))
    atoms = np.union1d(knowledge.evidence.atoms, drawn.codes)
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(knowledge)), atoms=atoms)
    targets = targets_of(knowledge.base, graph, knowledge.evidence, drawn)
    named = named_atoms(knowledge, graph.atoms.numpy())
    labels = targets.labels.tolist()
    for atom, label in zip(named, labels, strict=True):
        assert label in oracle.labels(world, atom, positions), atom
    closed = [oracle.is_closed(world, atom) for atom in named]
    assert targets.asked.tolist() == [i for i, label in enumerate(labels) if label >= 0 and not closed[i]]
    assert targets.open_atoms.tolist() == [not is_closed for is_closed in closed]
    constants = knowledge.language.constants
    assert [constants[c] for c in targets.first_constants.tolist()] == [atom[1] for atom in named]
    for rule, rows, (known, truth) in zip(graph.rules, rows_of(graph), targets.rules, strict=True):
        expected, truths = labelled_rules(rule.formula, rows, labels)
        assert known.tolist() == expected
        assert truth.tolist() == truths
