"""An atom has one logit: whatever else is queried, without some rules, and without some facts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import event, given

import r2n
from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence, KnowledgeBase, with_reciprocals
from r2n.data.problem import Problem
from r2n.evaluation.evaluate import evaluate
from r2n.grounding.backward import BackwardGrounder
from r2n.network.factor_graph import FactorGraph
from r2n.network.graph_sources import FullGraph, GroundedOnDemand, without_rules
from r2n.network.r2n import R2N
from r2n.options import ModelOptions, Options
from r2n.scoring import AtomLogits
from tests.examples import at_most, first_of
from tests.model_strategies import AGGREGATIONS, draw_options, make_choices, make_small_world, seed_of, shaken
from tests.one_way import (
    CLOSE,
    STRATEGIES,
    assert_rows_are_their_atoms,
    backward,
    brier,
    knowledge_in,
    run_in,
)
from tests.oracles import grounding as oracle
from tests.oracles.atom_logit import atom_logit, reciprocal, reciprocal_world
from tests.oracles.grounding import GroundAtom, World
from tests.oracles.message_passing import Choices
from tests.oracles.negatives import is_closed
from tests.strategies import codes_of, ground_atoms, knowledge_of, make_asked, make_candidates, named_atoms
from tests.theory_strategies import FORMS, dice, disjunctive, given_members, horn, one_in, share_of, with_denials
from tests.without_rules import knowledge_without, network_without

PROBLEMS = range(50)
ALONE, BY_LOOPS = 2, 8  # of the atoms of a problem, asked one by one; computed by plain loops


@dataclass(frozen=True)
class Asked:
    """A world with a network over it, and atoms to ask for: in any order, some of them twice."""

    world: World
    knowledge: KnowledgeBase
    network: R2N
    choices: Choices
    codes: np.ndarray


def draw(seed: int) -> Asked:
    """A small world with any network: each input layer, aggregation and way to read evidence; reciprocals or none."""
    dice = Random(seed)
    world = make_small_world(dice)
    if one_in(3, dice):
        world, _ = make_candidates(dice, (world, []))
    plain = knowledge_of(world)
    knowledge = with_reciprocals(plain) if one_in(2, dice) else plain
    world = reciprocal_world(world, knowledge) if knowledge is not plain else world
    choices = make_choices(dice, dice.choice(AGGREGATIONS))
    network = R2N.build(knowledge, **draw_options(dice, world.theory, choices))
    size = plain.base.size
    some = [dice.randrange(size) for _ in range(20)] if size else []
    return Asked(
        world, knowledge, shaken(network, seed_of(dice)).eval(), choices, np.array(some + some[::-2], np.int64)
    )


@pytest.mark.parametrize("seed", first_of(PROBLEMS, 8))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_asked_together_or_alone_by_anybody_and_by_plain_loops(strategy: str, seed: int) -> None:
    asked, chosen = draw(seed), STRATEGIES[strategy]
    evidence = asked.knowledge.evidence
    source = GroundedOnDemand.from_knowledge(asked.knowledge, chosen.grounder)
    together = AtomLogits(asked.network, source, evidence)(asked.codes)
    np.testing.assert_array_equal(AtomLogits(asked.network, source, evidence)(asked.codes), together, "to the bit")
    assert together.shape == asked.codes.shape
    unprepared = GroundedOnDemand.from_knowledge(asked.knowledge, chosen.grounder)  # knows nothing of the other atoms
    named = named_atoms(asked.knowledge, asked.codes[:BY_LOOPS])
    by_loops = [atom_logit(asked.network, asked.world, chosen.alone, atom, asked.choices) for atom in named]
    np.testing.assert_allclose(together[:BY_LOOPS], by_loops, **CLOSE)
    for i in range(len(asked.codes))[:ALONE]:
        alone = AtomLogits(asked.network, unprepared, evidence)(asked.codes[i : i + 1])
        np.testing.assert_allclose(alone, together[i : i + 1], **CLOSE)
    if len(asked.codes):
        ascending, first = np.unique(asked.codes, return_index=True)
        queries = Evidence(ascending, np.zeros(len(ascending), bool))
        report = evaluate(asked.network, source, queries, evidence=evidence)
        assert report.metrics["brier"] == pytest.approx(brier(together[first]), abs=1e-6)


@pytest.mark.parametrize("seed", first_of(PROBLEMS[::5], 4))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_row_of_candidates_has_the_logits_of_its_atoms(strategy: str, seed: int) -> None:
    """Each position of each predicate, as it is asked for in a ranking; some rows twice, in any order."""
    asked = draw(seed)
    base, dice = knowledge_of(asked.world).base, np.random.default_rng(seed)
    source = GroundedOnDemand.from_knowledge(asked.knowledge, STRATEGIES[strategy].grounder)
    logits = AtomLogits(asked.network, source, asked.knowledge.evidence)
    for start, end in pairwise(base.offsets):
        assert_rows_are_their_atoms(logits, base, start + dice.integers(0, max(1, end - start), 2 * (end > start)))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_worlds_are_worth_asking_about(strategy: str) -> None:
    """Ground rules reach many of the atoms that are asked for."""
    reached = 0
    for asked in map(draw, PROBLEMS[::5]):
        for atom in named_atoms(asked.knowledge, asked.codes[:BY_LOOPS]):
            found = oracle.rows(asked.world, STRATEGIES[strategy].alone(asked.world, atom))
            reached += any(atom in row for per_rule in found for row in per_rule)
    assert reached > 20


def tables(atoms: Sequence[GroundAtom], truth: Callable[[GroundAtom], bool]) -> list[r2n.Table]:
    made = []
    for name in sorted({atom[0] for atom in atoms}):
        own = [atom for atom in atoms if atom[0] == name]
        columns: dict[str, list[Any]] = {
            f"c{i}": list(column) for i, column in enumerate(list(zip(*own, strict=True))[1:])
        }
        made.append(r2n.Table(pa.table(columns | {"label": [int(truth(atom)) for atom in own]}), predicate=name))
    return made


def problem_of(seed: int, *changes: str) -> Problem:
    """A world with something to train on as a problem; a few of its unknown atoms are queries, the first is false."""
    dice, world, unknown = Random(seed), None, []
    while world is None or not unknown or all(is_closed(world, fact) for fact in world.facts):
        world = make_small_world(dice)
        known = world.facts | world.false_facts
        atoms = ground_atoms(world.theory, world.members)
        unknown = [atom for atom in atoms if atom not in known and not is_closed(world, atom)]
    asked = dice.sample(unknown, min(6, len(unknown)))
    drawn = draw_options(dice, world.theory) | {"isolated": "keep"}
    options = ["training.epochs=1", f"grounding.reciprocal={dice.choice(('true', 'false'))}"]
    options += [f"model.{name}={str(value).lower()}" for name, value in drawn.items()]
    return Problem.build(
        "random",
        world.theory,
        tables(sorted(world.facts | world.false_facts), world.facts.__contains__),
        {"test": tables(asked, lambda atom: atom != asked[0] and len(atom[-1]) == 1)},
        domains=given_members(world.theory.domains, world.members),
        options=Options().changed([*options, *changes]),
    )


@pytest.mark.parametrize("seed", first_of(PROBLEMS, len(STRATEGIES)))
def test_evaluate_and_predict_agree_on_random_problems(seed: int, tmp_path: Path) -> None:
    strategy = list(STRATEGIES)[seed % len(STRATEGIES)]
    problem = problem_of(seed, *STRATEGIES[strategy].options)
    run = run_in(tmp_path / "run", problem)
    predictor = r2n.Model.load(tmp_path / "run")
    queries, everything = problem.test, np.arange(problem.knowledge.base.size)[:30]
    assert run.evaluate("test").metrics["brier"] == pytest.approx(
        brier(predictor.logits(queries.atoms), queries.truth), abs=1e-6
    )
    source = GroundedOnDemand.from_knowledge(knowledge_in(problem), STRATEGIES[strategy].grounder)
    logits = AtomLogits(run.model, source, knowledge_in(problem).evidence)
    np.testing.assert_allclose(predictor.logits(everything), logits(everything), **CLOSE)
    for code in queries.atoms[:3]:
        one = np.array([code])
        np.testing.assert_allclose(predictor.logits(one), logits(queries.atoms)[queries.atoms == code], **CLOSE)
        np.testing.assert_allclose([answer.logit for answer in predictor.answers(one)], predictor.logits(one), **CLOSE)


# without some rules: the logits of a network of the other rules, on a theory without them

HUNDRED = range(100)
EXACT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}


@dataclass(frozen=True)
class Drawn:
    """A knowledge base with rules, any network over it, some of its rules, and atoms to ask for."""

    knowledge: KnowledgeBase
    options: ModelOptions
    network: R2N
    names: frozenset[str]
    codes: np.ndarray


def draw_rules(seed: int) -> Drawn:
    dice = Random(seed)
    knowledge = knowledge_of(make_small_world(dice))
    while not knowledge.theory.rules or not knowledge.base.size:
        knowledge = knowledge_of(make_small_world(dice))
    size = knowledge.base.size
    knowledge = with_reciprocals(knowledge) if one_in(3, dice) else knowledge
    more = {"rule_network": dice.choice(("own", "shared")), "mlp": dice.choice(("deep", "shallow"))}
    drawn = draw_options(dice, knowledge.theory) | more | {"layers": dice.choice((1, 2, 3))}
    options = ModelOptions.model_validate(drawn)
    names = [rule.name for rule in knowledge.theory.rules]
    out = frozenset(dice.sample(names, dice.choice((1, 1, len(names)))))
    network = shaken(R2N.build(knowledge, options), seed_of(dice)).eval()
    codes = np.array([dice.randrange(size) for _ in range(12)], np.int64)
    return Drawn(knowledge, options, network, out, codes)


def both(drawn: Drawn, grounder: Any) -> tuple[AtomLogits, AtomLogits]:
    """Logits without the rules, and those of the network of a theory that never had them."""
    evidence, rest = drawn.knowledge.evidence, knowledge_without(drawn.knowledge, drawn.names)
    found = AtomLogits(drawn.network, GroundedOnDemand.from_knowledge(drawn.knowledge, grounder), evidence)
    other = network_without(drawn.network, drawn.knowledge, drawn.names, drawn.options)
    source = GroundedOnDemand.from_knowledge(rest, grounder)
    return found.without_rules(drawn.names), AtomLogits(other, source, evidence)


@pytest.mark.parametrize("seed", first_of(HUNDRED, 8))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_is_the_network_of_a_theory_that_never_had_the_rule(strategy: str, seed: int) -> None:
    drawn = draw_rules(seed)
    found, expected = both(drawn, STRATEGIES[strategy].grounder)
    np.testing.assert_allclose(found(drawn.codes), expected(drawn.codes), **EXACT)


def test_the_rules_that_are_left_out_make_a_difference() -> None:
    changed = 0
    for drawn in map(draw_rules, HUNDRED[::5]):
        source = GroundedOnDemand.from_knowledge(drawn.knowledge, STRATEGIES["full"].grounder)
        logits = AtomLogits(drawn.network, source, drawn.knowledge.evidence)
        changed += not np.allclose(logits(drawn.codes), logits.without_rules(drawn.names)(drawn.codes))
    assert changed >= 4


# chains of proofs: without a rule, what was proved through it goes too


CHAINS = """
    domain thing = {u, v, w}
    predicate a(thing)
    predicate b(thing)
    predicate c(thing)
    predicate d(thing, thing)
"""
BODIES = ("a(x)", "b(x)", "c(x)", "d(x, y)", "a(x) & d(x, y)", "b(y) & d(x, y)", "c(x) & b(x)", "d(y, x) & c(y)")
HEADS = ("a(x)", "b(x)", "c(x)")


def draw_chains(seed: int) -> Drawn:
    dice = Random(seed)
    rules = [f"rule r{i}: {dice.choice(BODIES)} -> {dice.choice(HEADS)}" for i in range(dice.randint(2, 5))]
    theory = r2n.parse_theory("\n".join([CHAINS, *rules]))
    language = r2n.KnowledgeBase.build(theory).language
    base = HerbrandBase(language)
    known = np.array(sorted(dice.sample(range(base.size), 5)), np.int64)
    knowledge = r2n.KnowledgeBase(theory, language, r2n.Evidence(known, np.ones(5, bool)))
    options = ModelOptions(dim=3, layers=2, input="distmult", evidence_input="add")
    network = shaken(R2N.build(knowledge, options), seed).eval()
    return Drawn(knowledge, options, network, frozenset([f"r{dice.randrange(len(rules))}"]), np.arange(base.size))


@pytest.mark.parametrize("grounder", [BackwardGrounder(1, 2), BackwardGrounder(2, 3), BackwardGrounder(1, 3)])
def test_what_is_proved_through_a_rule_goes_with_it(grounder: BackwardGrounder) -> None:
    less = 0
    for seed in range(20):
        drawn = draw_chains(seed)
        evidence, source = drawn.knowledge.evidence, GroundedOnDemand.from_knowledge(drawn.knowledge, grounder)
        found, expected = (logits(drawn.codes) for logits in both(drawn, grounder))
        np.testing.assert_allclose(found, expected, **EXACT)
        dropped = without_rules(FullGraph(source.around(drawn.codes)), drawn.names)
        less += not np.allclose(AtomLogits(drawn.network, dropped, evidence)(drawn.codes), found)
    assert less >= 3  # to drop the ground rules alone would not be enough


# without some facts: the graph of grounding from scratch without them

GroundRule = tuple[int, tuple[GroundAtom, ...]]
ALL = STRATEGIES | {
    "backward(2,2)": backward(2, 2),
    "backward(1,3)": backward(1, 3),
}


@dataclass(frozen=True)
class LeftOut:
    """A world, what is left out of it, the world that is left, and a few atoms that are asked."""

    world: World
    knowledge: KnowledgeBase
    hidden: list[GroundAtom]
    left: World
    asked: list[GroundAtom]


def draw_hidden(dice: Random) -> LeftOut:
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
        world = reciprocal_world(world, knowledge)
        hidden = hidden + [reciprocal(atom) for atom in hidden if len(atom) == 3]
    left = replace(world, facts=world.facts - set(hidden), false_facts=world.false_facts - set(hidden))
    asked = sorted({*dice.sample(hidden, min(3, len(hidden))), *others})
    return LeftOut(world, knowledge, hidden, left, asked)


def own(ground_rules: set[GroundRule], atom: GroundAtom) -> set[GroundRule]:
    """Those that messages to the atom can come from."""
    reachable, before = {atom}, set[GroundAtom]()
    while reachable != before:
        before = set(reachable)
        reachable |= {other for _, row in ground_rules if reachable.intersection(row) for other in row}
    return {(j, row) for j, row in ground_rules if reachable.intersection(row)}


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
    drawn, chosen = draw_hidden(dice), ALL[strategy]
    base, language = drawn.knowledge.base, drawn.knowledge.language
    source = GroundedOnDemand.from_knowledge(drawn.knowledge, chosen.grounder)
    asked = np.sort(codes_of(base, language, drawn.asked))
    hidden = np.sort(codes_of(base, language, drawn.hidden))
    full = source.around(asked)
    graph = source.around(asked, without=hidden)
    assert graph.atoms[: graph.answered].tolist() == asked.tolist()
    changed = False
    for atom in drawn.asked:
        rows = oracle.rows(drawn.left, oracle.without_closed_rules(drawn.left, chosen.alone(drawn.left, atom)))
        expected = own({(j, row) for j, per_rule in enumerate(rows) for row in per_rule}, atom)
        assert own_in(graph, atom, drawn.knowledge) == expected
        changed |= own_in(full, atom, drawn.knowledge) != expected
    event(f"{strategy}: {'it makes a difference' if changed else 'no difference'}")
    assert not (changed and strategy == "full")


def test_the_worlds_are_worth_leaving_facts_out_of() -> None:
    """Ground rules go, and under backward grounding others come."""
    gone = come = 0
    for drawn in (draw_hidden(Random(seed)) for seed in range(60)):
        for atom in drawn.asked:
            before, after = (
                {(j, theta) for j, found in enumerate(ALL["backward(1,2)"].alone(world, atom)) for theta in found}
                for world in (drawn.world, drawn.left)
            )
            gone, come = gone + bool(before - after), come + bool(after - before)
    assert gone > 10
    assert come > 0
