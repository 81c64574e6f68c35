"""A graph without some facts is that of grounding from scratch without them, by plain loops and by the library."""

from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import event, given

from r2n.data.knowledge_base import KnowledgeBase, with_reciprocals
from r2n.grounding.backward import BackwardGrounder
from r2n.network.factor_graph import FactorGraph
from r2n.network.graph_sources import GroundedOnDemand
from tests.examples import at_most
from tests.one_way import STRATEGIES, Strategy, backward
from tests.oracles import grounding as oracle
from tests.oracles.atom_logit import mirror, with_mirrors
from tests.oracles.grounding import GroundAtom, World
from tests.oracles.negatives import is_closed
from tests.strategies import codes_of, ground_atoms, knowledge_of, make_asked, make_candidates, named_atoms
from tests.theory_strategies import FORMS, dice, disjunctive, horn, one_in, share_of, with_denials

GroundRule = tuple[int, tuple[GroundAtom, ...]]
ALL = STRATEGIES | {
    "backward(2,2)": backward(2, 2),
    "backward(1,3)": backward(1, 3),
    "unpruned": Strategy(
        BackwardGrounder(1, 2, prune=False),
        (),
        lambda world, atom: oracle.backward(world, [atom], 1, 2, prune=False),
    ),
}


@dataclass(frozen=True)
class LeftOut:
    """A world, what is left out of it, the world that is left, and a few atoms that are asked."""

    world: World
    knowledge: KnowledgeBase
    hidden: list[GroundAtom]
    left: World
    asked: list[GroundAtom]


def draw(dice: Random) -> LeftOut:
    """Some open atoms that are known, true or false, are hidden, with their reciprocals; most of them are asked."""
    forms = dice.choice((FORMS, (horn, with_denials, disjunctive)))
    world, _ = make_asked(dice, forms, least=2)
    if one_in(4, dice):
        world, _ = make_candidates(dice, (world, []))
    plain = knowledge_of(world)
    hidden = share_of([a for a in sorted(world.facts | world.false_facts) if not is_closed(world, a)], dice, (0.3, 0.6))
    others = dice.sample(ground_atoms(world.theory, world.members), min(2, plain.base.size))
    knowledge = with_reciprocals(plain) if one_in(3, dice) else plain
    if knowledge is not plain:
        world = with_mirrors(world, knowledge)
        hidden = hidden + [mirror(atom) for atom in hidden if len(atom) == 3]
    left = replace(world, facts=world.facts - set(hidden), false_facts=world.false_facts - set(hidden))
    asked = sorted({*dice.sample(hidden, min(3, len(hidden))), *others})
    return LeftOut(world, knowledge, hidden, left, asked)


def own(ground_rules: set[GroundRule], atom: GroundAtom) -> set[GroundRule]:
    """Those that messages to the atom can come from."""
    felt, before = {atom}, set[GroundAtom]()
    while felt != before:
        before = set(felt)
        felt |= {other for _, row in ground_rules if felt.intersection(row) for other in row}
    return {(j, row) for j, row in ground_rules if felt.intersection(row)}


def own_in(graph: FactorGraph, atom: GroundAtom, knowledge: KnowledgeBase) -> set[GroundRule]:
    """The same in a graph, whose rows are told apart first: the same atom may be there in several copies."""
    code = torch.from_numpy(codes_of(knowledge.base, knowledge.language, [atom]))
    names = named_atoms(knowledge, graph.atoms.numpy())
    rows = {(j, tuple(map(str, row))) for j, part in enumerate(graph.neighbours) for row in part.tolist()}
    found = own({(j, tuple((row,) for row in each)) for j, each in rows}, (str(int(graph.rows(code))),))
    return {(j, tuple(names[int(row)] for (row,) in each)) for j, each in found}


@pytest.mark.parametrize("strategy", ALL)
@at_most(10, "loops over all substitutions of a world")
@given(dice=dice())
def test_no_ground_rule_is_there_because_of_what_is_left_out(strategy: str, dice: Random) -> None:
    drawn, chosen = draw(dice), ALL[strategy]
    base, language = drawn.knowledge.base, drawn.knowledge.language
    source = GroundedOnDemand.of(drawn.knowledge, chosen.grounder)
    asked = np.sort(codes_of(base, language, drawn.asked))
    hidden = np.sort(codes_of(base, language, drawn.hidden))
    whole = source.around(asked)
    graph = source.around(asked, without=hidden)
    assert graph.atoms[: graph.answered].tolist() == asked.tolist()
    changed = False
    for atom in drawn.asked:
        rows = oracle.rows(drawn.left, chosen.alone(drawn.left, atom))
        expected = own({(j, row) for j, per_rule in enumerate(rows) for row in per_rule}, atom)
        assert own_in(graph, atom, drawn.knowledge) == expected
        changed |= own_in(whole, atom, drawn.knowledge) != expected
    event(f"{strategy}: {'it makes a difference' if changed else 'no difference'}")
    assert not (changed and strategy == "full")


def test_the_worlds_are_worth_leaving_facts_out_of() -> None:
    """Ground rules go, and under backward grounding others come."""
    some = {name: ALL[name] for name in ("full", "known-body", "backward(1,2)", "unpruned")}
    gone, come = dict.fromkeys(some, 0), dict.fromkeys(some, 0)
    for seed in range(60):
        drawn = draw(Random(seed))
        for name, strategy in some.items():
            for atom in drawn.asked:
                before, after = (
                    {(j, theta) for j, found in enumerate(strategy.alone(world, atom)) for theta in found}
                    for world in (drawn.world, drawn.left)
                )
                gone[name] += bool(before - after)
                come[name] += bool(after - before)
    assert gone["full"] == come["full"] == come["known-body"] == 0
    assert min(count for name, count in gone.items() if name != "full") > 10, gone
    assert come["backward(1,2)"] + come["unpruned"] > 3, come
