"""Without a rule, every atom has the logit that the network of the other rules gives on a theory without it."""

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest

import r2n
from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import KnowledgeBase, with_reciprocals
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.store import Store
from r2n.network.graph_sources import FullGraph, GroundedOnDemand, without_rules
from r2n.network.r2n import R2N
from r2n.options import ModelOptions
from r2n.scoring import AtomLogits
from tests.model_strategies import make_small_world, seed_of, shaken
from tests.one_way import STRATEGIES
from tests.strategies import knowledge_of
from tests.theory_strategies import one_in
from tests.without_rules import knowledge_without, network_without

PROBLEMS = range(100)
FAST = 15  # of them, in `make test`
SEEDS = [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= FAST)) for seed in PROBLEMS]
CLOSE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}


@dataclass(frozen=True)
class Drawn:
    """A knowledge base with rules, any network over it, some of its rules, and atoms to ask for."""

    knowledge: KnowledgeBase
    options: ModelOptions
    network: R2N
    names: frozenset[str]
    codes: np.ndarray


def draw(seed: int) -> Drawn:
    dice = Random(seed)
    knowledge = knowledge_of(make_small_world(dice))
    while not knowledge.theory.rules or not knowledge.base.size:
        knowledge = knowledge_of(make_small_world(dice))
    size = knowledge.base.size
    knowledge = with_reciprocals(knowledge) if one_in(3, dice) else knowledge
    widest = max((predicate.arity for predicate in knowledge.theory.predicates), default=0)
    options = ModelOptions(
        dim=3,
        layers=dice.choice((1, 2, 3)),
        input=dice.choice(("distmult", "mlp", "complex") if widest < 3 else ("distmult", "mlp")),
        reasoner=dice.choice(("r2n", "r2n", "fgnn")),
        rule_network=dice.choice(("own", "shared")),
        aggregation=dice.choice(("mean", "sum", "max", "mean-then-sum")),
        evidence_input=dice.choice(("off", "add", "only")),
        mlp=dice.choice(("deep", "shallow")),
        residual=one_in(3, dice),
        isolated=dice.choice(("keep", "zero")),
    )
    names = [rule.name for rule in knowledge.theory.rules]
    out = frozenset(dice.sample(names, dice.choice((1, 1, len(names)))))
    network = shaken(R2N.build(knowledge, options), seed_of(dice)).eval()
    codes = np.array([dice.randrange(size) for _ in range(12)], np.int64)
    return Drawn(knowledge, options, network, out, codes)


def both(drawn: Drawn, grounder: Any) -> tuple[AtomLogits, AtomLogits]:
    """Logits without the rules, and those of the network of a theory that never had them."""
    evidence, rest = drawn.knowledge.evidence, knowledge_without(drawn.knowledge, drawn.names)
    found = AtomLogits(drawn.network, GroundedOnDemand.of(drawn.knowledge, grounder), evidence)
    other = network_without(drawn.network, drawn.knowledge, drawn.names, drawn.options)
    return found.without_rules(drawn.names), AtomLogits(other, GroundedOnDemand.of(rest, grounder), evidence)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_is_the_network_of_a_theory_that_never_had_the_rule(strategy: str, seed: int) -> None:
    drawn = draw(seed)
    found, expected = both(drawn, STRATEGIES[strategy].grounder)
    np.testing.assert_allclose(found(drawn.codes), expected(drawn.codes), **CLOSE)


@pytest.mark.parametrize("seed", PROBLEMS[::20])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_and_leave_one_out_go_the_same_way(strategy: str, seed: int) -> None:
    drawn, grounder = draw(seed), STRATEGIES[strategy].grounder
    base, source = drawn.knowledge.base, GroundedOnDemand.of(drawn.knowledge, grounder)
    found = AtomLogits(drawn.network, source, drawn.knowledge.evidence).without_rules(drawn.names)
    arity = [len(shape) for shape in base.shapes]
    index, arguments = base.decode(drawn.codes[:4])
    for predicate, given in zip(index.tolist(), arguments, strict=True):
        for position in range(arity[predicate]):
            row = found.rows(predicate, position, given[None, : arity[predicate]])[0]
            members = base.language.members(base.language.predicates[predicate].domains[position])
            atoms = np.repeat(given[None, : arity[predicate]], len(members), axis=0)
            atoms[:, position] = members
            expected = found.at_position(position)(base.encode(base.language.predicates[predicate], atoms))
            np.testing.assert_allclose(row, expected, **CLOSE)
    left = without_rules(source, drawn.names)
    rest = GroundedOnDemand(Store(knowledge_without(drawn.knowledge, drawn.names)), grounder)
    asked = np.unique(drawn.codes)
    for without in (None, asked):
        ours, theirs = left.around(asked, steps=2, without=without), rest.around(asked, steps=2, without=without)
        assert sum(map(len, ours.neighbours)) >= len(theirs)
        assert all(
            len(part) == 0 for rule, part in zip(ours.rules, ours.neighbours, strict=True) if rule.name in drawn.names
        )


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
    """Horn rules that conclude each other's bodies from few facts."""
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
        evidence, source = drawn.knowledge.evidence, GroundedOnDemand.of(drawn.knowledge, grounder)
        found, expected = (logits(drawn.codes) for logits in both(drawn, grounder))
        np.testing.assert_allclose(found, expected, **CLOSE)
        dropped = without_rules(FullGraph(source.around(drawn.codes)), drawn.names)
        less += not np.allclose(AtomLogits(drawn.network, dropped, evidence)(drawn.codes), found)
    assert less >= 3  # to drop the ground rules alone would not be enough


def test_the_rules_that_are_left_out_make_a_difference() -> None:
    """By every strategy, in many of the problems: else nothing above would be tested."""
    for strategy in STRATEGIES.values():
        changed = 0
        for seed in PROBLEMS[::5]:
            drawn = draw(seed)
            source = GroundedOnDemand.of(drawn.knowledge, strategy.grounder)
            logits = AtomLogits(drawn.network, source, drawn.knowledge.evidence)
            changed += not np.allclose(logits(drawn.codes), logits.without_rules(drawn.names)(drawn.codes))
        assert changed >= 4, strategy
