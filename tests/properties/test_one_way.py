"""There is one way from an atom to its logit: whoever asks, with whatever else, gets what the atom alone gets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import r2n
from r2n.data.knowledge_base import Evidence, KnowledgeBase, with_reciprocals
from r2n.data.problem import Problem
from r2n.evaluation.evaluate import evaluate
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.r2n import R2N
from r2n.options import Options
from r2n.scoring import AtomLogits
from tests.examples import first_of
from tests.model_strategies import make_small_world, seed_of, shaken
from tests.one_way import CLOSE, STRATEGIES, brier, knowledge_in, run_in
from tests.oracles import grounding as oracle
from tests.oracles.atom_logit import atom_logit, with_mirrors
from tests.oracles.grounding import GroundAtom, World
from tests.oracles.message_passing import Choices
from tests.oracles.negatives import is_closed
from tests.strategies import ground_atoms, knowledge_of, make_candidates, named_atoms
from tests.theory_strategies import given_members, one_in

PROBLEMS = range(50)
ALONE, BY_LOOPS = 2, 8  # of the atoms of a problem, asked one by one; computed by plain loops


# random worlds, untrained networks


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
    world = with_mirrors(world, knowledge) if knowledge is not plain else world
    widest = max((predicate.arity for predicate in world.theory.predicates), default=0)
    choices = Choices(
        aggregation=dice.choice(("mean", "sum", "max")),
        residual=one_in(3, dice),
        isolated=dice.choice(("keep", "zero")),
    )
    options: dict[str, Any] = {
        "input": dice.choice(("distmult", "mlp", "complex") if widest < 3 else ("distmult", "mlp")),
        "layers": dice.choice((1, 2)),
        "evidence_input": dice.choice(("off", "add", "only")),
        "aggregation": choices.aggregation,
        "residual": choices.residual,
        "isolated": choices.isolated,
    }
    network = R2N.build(knowledge, dim=3, **options)
    size = plain.base.size
    some = [dice.randrange(size) for _ in range(20)] if size else []
    return Asked(
        world, knowledge, shaken(network, seed_of(dice)).eval(), choices, np.array(some + some[::-2], np.int64)
    )


@pytest.mark.parametrize("seed", first_of(PROBLEMS, 12))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_asked_together_or_alone_by_anybody_and_by_plain_loops(strategy: str, seed: int) -> None:
    asked, chosen = draw(seed), STRATEGIES[strategy]
    evidence = asked.knowledge.evidence
    source = GroundedOnDemand.of(asked.knowledge, chosen.grounder)
    together = AtomLogits(asked.network, source, evidence)(asked.codes)
    assert together.shape == asked.codes.shape
    unprepared = GroundedOnDemand.of(asked.knowledge, chosen.grounder)  # has heard nothing of the other atoms
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


@pytest.mark.parametrize("seed", first_of(PROBLEMS[::5], 5))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_row_of_candidates_has_the_logits_of_its_atoms(strategy: str, seed: int) -> None:
    """Each position of each predicate, as it is asked for in a ranking; some rows twice, in any order."""
    asked = draw(seed)
    base, dice = knowledge_of(asked.world).base, np.random.default_rng(seed)
    source = GroundedOnDemand.of(asked.knowledge, STRATEGIES[strategy].grounder)
    logits = AtomLogits(asked.network, source, asked.knowledge.evidence)
    for index, predicate in enumerate(base.language.predicates):
        arguments = base.decode(np.arange(*base.offsets[index : index + 2]))[1][:, : predicate.arity]
        for position, domain in enumerate(predicate.domains):
            given = arguments[dice.integers(0, len(arguments), 5)] if len(arguments) else arguments
            found = logits.rows(index, position, given)
            assert found.shape == (len(given), len(base.language.members(domain)))
            for row, constants in zip(found, given, strict=True):
                atoms = np.repeat(constants[None], len(row), axis=0)
                atoms[:, position] = base.language.members(domain)
                expected = logits.at_position(position)(base.encode(predicate, atoms))
                np.testing.assert_allclose(row, expected, **CLOSE)


def test_the_worlds_are_worth_asking_about() -> None:
    """Every option is drawn, and ground rules reach many of the atoms that are asked for, by every strategy."""
    drawn = [draw(seed) for seed in PROBLEMS]
    for options in (
        {type(asked.network.atom_embedding).__name__ for asked in drawn},
        {asked.network.evidence_input for asked in drawn},
        {asked.choices.aggregation for asked in drawn},
    ):
        assert len(options) == 3
    mirrored = [any(p.reciprocal_of for p in asked.knowledge.language.predicates) for asked in drawn]
    assert 10 < sum(mirrored) < 40
    for name, strategy in STRATEGIES.items():
        reached = 0
        for asked in drawn:
            for atom in named_atoms(asked.knowledge, asked.codes[:BY_LOOPS]):
                found = oracle.rows(asked.world, strategy.alone(asked.world, atom))
                reached += any(atom in row for per_rule in found for row in per_rule)
        assert reached > 40, name


# random problems, runs of one epoch


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
    widest = max(predicate.arity for predicate in world.theory.predicates)
    options = (
        "training.epochs=1",
        "model.dim=3",
        f"model.layers={dice.choice((1, 2))}",
        f"model.input={dice.choice(('distmult', 'mlp', 'complex') if widest < 3 else ('distmult', 'mlp'))}",
        f"model.aggregation={dice.choice(('mean', 'sum', 'max'))}",
        f"model.evidence_input={dice.choice(('off', 'add', 'only'))}",
        f"grounding.reciprocal={dice.choice(('true', 'false'))}",
    )
    return Problem.build(
        "random",
        world.theory,
        tables(sorted(world.facts | world.false_facts), world.facts.__contains__),
        {"test": tables(asked, lambda atom: atom != asked[0] and len(atom[-1]) == 1)},
        domains=given_members(world.theory.domains, world.members),
        options=Options().changed([*options, *changes]),
    )


@pytest.mark.parametrize("seed", first_of(PROBLEMS, 12))
def test_evaluate_and_predict_agree_on_random_problems(seed: int, tmp_path: Path) -> None:
    strategy = list(STRATEGIES)[seed % len(STRATEGIES)]
    problem = problem_of(seed, *STRATEGIES[strategy].options)
    run = run_in(tmp_path / "run", problem)
    predictor = r2n.Model.load(tmp_path / "run")
    queries, everything = problem.test, np.arange(problem.knowledge.base.size)[:30]
    assert run.evaluate("test").metrics["brier"] == pytest.approx(
        brier(predictor.logits(queries.atoms), queries.truth), abs=1e-6
    )
    source = GroundedOnDemand.of(knowledge_in(problem), STRATEGIES[strategy].grounder)
    logits = AtomLogits(run.model, source, knowledge_in(problem).evidence)
    np.testing.assert_allclose(predictor.logits(everything), logits(everything), **CLOSE)
    for code in queries.atoms[:3]:
        one = np.array([code])
        np.testing.assert_allclose(predictor.logits(one), logits(queries.atoms)[queries.atoms == code], **CLOSE)
        np.testing.assert_allclose([answer.logit for answer in predictor.answers(one)], predictor.logits(one), **CLOSE)
