"""What training asks of a small world, label by label; tests/properties has random ones."""

from typing import Any

import numpy as np
import pytest
import torch

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.datasets.benchmarks import load
from r2n.errors import DataError
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounding
from r2n.grounding.store import Store
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN, FactorGraph, known_states
from r2n.options import SamplingOptions
from r2n.training.batches import Targets, targets_of
from r2n.training.negatives import Negatives, draw_negatives
from tests.unit.grounding.small_knowledge import codes, knowledge

THEORY = """
domain country = {france, italy, spain}
domain region = {asia, europe}
domain state = {latium, tuscany}
domain place = country | region | state
predicate liesIn(place, place) closed(state, country)
predicate near(country, country) closed
"""
RULES = """
rule spread: near(x, y) & liesIn(x, z: region) -> liesIn(y, z)
rule inside: liesIn(x: state, y: country) & liesIn(y, z: region) -> liesIn(x, z)
implicit pairs: [near(x, y), near(y, x)]
"""
FACTS = "liesIn(italy,europe) liesIn(latium,italy) near(italy,france)"


def world(facts: str = FACTS, false: str = "liesIn(spain,asia)", rules: str = RULES) -> KnowledgeBase:
    return knowledge(rules, facts, false, THEORY)


def graph_of(base: KnowledgeBase) -> FactorGraph:
    """Every ground atom."""
    return FactorGraph.from_grounding(FullGrounder().ground(Store(base)), atoms=np.arange(base.base.size))


def labels(base: KnowledgeBase, targets: Targets) -> dict[str, int]:
    return dict(zip(base.base.names(np.arange(base.base.size)), targets.labels.tolist(), strict=True))


def ask(base: HerbrandBase, graph: FactorGraph, evidence: Evidence, *, seed: int = 0, **options: object) -> Targets:
    """Targets with negatives drawn as the options say."""
    sampling = SamplingOptions.model_validate(options)
    negatives = draw_negatives(base, evidence, sampling, np.random.default_rng(seed))
    return targets_of(base, graph, evidence, negatives, ask_closed=sampling.ask_closed)


def asked(base: KnowledgeBase, **options: Any) -> tuple[Targets, dict[str, int]]:
    targets = ask(base.base, graph_of(base), base.evidence, **options)
    return targets, labels(base, targets)


def test_without_corruptions_only_what_is_stated_is_asked() -> None:
    base = world()
    targets, found = asked(base, corrupted_positions=())
    names = base.base.names(np.arange(base.base.size))
    assert {names[i] for i in targets.asked.tolist()} == {"liesIn(italy, europe)", "liesIn(spain, asia)"}
    assert (found["liesIn(italy, asia)"], found["near(france, italy)"]) == (-1, 0)
    assert targets.negatives.numel() == 0


def test_labels_say_true_false_or_nothing() -> None:
    _, found = asked(world())
    assert found["liesIn(italy, europe)"] == 1
    assert found["liesIn(spain, asia)"] == 0  # stated
    assert found["liesIn(italy, asia)"] == 0  # a corruption of a fact
    assert found["liesIn(france, europe)"] == 0
    assert found["near(italy, france)"] == 1
    assert found["near(france, italy)"] == 0  # closed
    assert found["liesIn(tuscany, italy)"] == 0  # closed over this part
    assert found["liesIn(france, asia)"] == -1
    assert found["liesIn(tuscany, europe)"] == -1


def test_a_local_closed_world_leaves_unknown_what_has_no_fact() -> None:
    """Corrupting the last position: italy lies in one region and so in no other; of france nothing is said."""
    _, found = asked(world(), corrupted_positions=[-1])
    assert found["liesIn(italy, asia)"] == 0
    assert found["liesIn(france, europe)"] == -1
    assert found["liesIn(france, asia)"] == -1


def is_closed(name: str) -> bool:
    """near as a whole, and liesIn from a state to a country."""
    first, _, second = name.removesuffix(")").partition("(")[2].partition(", ")
    return name.startswith("near") or (first in ("latium", "tuscany") and second in ("france", "italy", "spain"))


def test_labelled_open_atoms_are_asked_and_closed_ones_where_it_is_wished() -> None:
    base = world()
    targets, found = asked(base)
    names = list(found)
    expected = {name for name, label in found.items() if label >= 0 and not is_closed(name)}
    assert {names[row] for row in targets.asked.tolist()} == expected
    targets, _ = asked(base, ask_closed=True)
    assert {names[row] for row in targets.asked.tolist()} == expected | set(filter(is_closed, names))


def test_closed_atoms_are_not_open() -> None:
    base = world()
    targets, found = asked(base)
    for name, is_open in zip(found, targets.open_atoms.tolist(), strict=True):
        assert is_open != is_closed(name), name


def test_facts_stand_beside_their_corruptions() -> None:
    base = world()
    targets, found = asked(base, corrupted_positions=[-1])
    names = list(found)
    rows = {
        names[fact]: {names[row] for row in negatives if row >= 0}
        for fact, negatives in zip(targets.facts.tolist(), targets.negatives.tolist(), strict=True)
    }
    assert rows == {"liesIn(italy, europe)": {"liesIn(italy, asia)"}}
    wished, _ = asked(base, corrupted_positions=[-1], ask_closed=True)
    assert [names[fact] for fact in wished.facts.tolist()] == [
        "liesIn(italy, europe)",
        "liesIn(latium, italy)",
        "liesIn(latium, italy)",
        "near(italy, france)",
        "near(italy, france)",
    ]


@pytest.mark.parametrize("there", [(), ("liesIn(italy, europe)", "liesIn(france, europe)")])
def test_a_negative_outside_the_graph_is_an_error(there: tuple[str, ...]) -> None:
    """Dropped, it would leave as false only those that the graph happens to hold: held-out facts."""
    base = world()
    graph = FactorGraph.from_grounding(Grounding(()), atoms=codes(base, *there))
    with pytest.raises(DataError, match=r"of \d+ facts and negatives are not in the graph, liesIn\(.*\) for one"):
        ask(base.base, graph, base.evidence)


def test_copies_of_atoms_in_other_neighbourhoods_are_labelled_but_not_asked() -> None:
    base = world()
    own = codes(base, "liesIn(italy, europe)", "liesIn(france, europe)")
    atoms = torch.from_numpy(np.concatenate([np.sort(own), codes(base, "liesIn(italy, europe)")]))
    targets = targets_of(base.base, FactorGraph(atoms, (), (), (), 2), base.evidence, Negatives.none())
    assert sorted(targets.labels.tolist()) == [-1, 1, 1]
    assert len(targets.asked) == 1
    assert int(targets.asked[0]) < 2


def test_semantic_labels_are_the_truth_of_explicit_rules_on_known_atoms() -> None:
    base = world()
    graph = graph_of(base)
    targets = ask(base.base, graph, base.evidence)
    (spread, spread_truth), (inside, _), (pairs, pairs_truth) = targets.rules
    names = base.base.names
    found = {
        " ".join(names(graph.atoms[graph.neighbours[0][g]].numpy())): bool(truth)
        for g, truth in zip(spread.tolist(), spread_truth, strict=True)
    }
    assert found == {"near(italy, france) liesIn(italy, europe) liesIn(france, europe)": False}
    assert inside.tolist() == []  # of liesIn(latium, europe) nothing is known
    assert len(graph.neighbours[2]) == 9
    assert pairs.tolist() == pairs_truth.tolist() == []  # all known, but what an implicit rule says is not


def test_sampled_negatives_alone_are_labelled_false() -> None:
    base = world("liesIn(italy,europe)", "")
    targets, found = asked(base, negatives=1, seed=3)
    drawn = {row for row in targets.negatives.flatten().tolist() if row >= 0}
    false = {row for row, (name, label) in enumerate(found.items()) if label == 0 and not is_closed(name)}
    assert false == drawn
    assert targets.negatives.shape == (2, 1)
    again, _ = asked(base, negatives=1, seed=3)
    assert torch.equal(again.negatives, targets.negatives)
    others = [asked(base, negatives=1, seed=seed)[0].negatives for seed in range(8)]
    assert len({tuple(other.flatten().tolist()) for other in others}) > 1


def test_first_constants_group_the_atoms() -> None:
    base = world()
    targets, found = asked(base)
    constants = base.language.constants
    for name, constant in zip(found, targets.first_constants.tolist(), strict=True):
        assert name.split("(")[1].startswith(constants[constant])


def test_a_network_reads_the_evidence_and_not_the_corruptions() -> None:
    base = world()
    states = known_states(base.base, graph_of(base).atoms, base.evidence)
    found = dict(zip(base.base.names(np.arange(base.base.size)), states.tolist(), strict=True))
    assert found["liesIn(italy, europe)"] == TRUE
    assert found["liesIn(spain, asia)"] == FALSE  # stated
    assert found["near(france, italy)"] == FALSE  # closed
    assert found["liesIn(tuscany, italy)"] == FALSE  # closed over this part
    assert found["liesIn(italy, asia)"] == UNKNOWN  # a corruption is a question, not knowledge
    assert found["liesIn(france, asia)"] == UNKNOWN


def test_held_out_facts_are_never_true_and_where_corruption_makes_one_it_is_false() -> None:
    """The whole of Countries S1, with its held-out atoms in the graph."""
    problem = load("countries-s1")
    base = problem.knowledge.base
    drawn = draw_negatives(base, problem.train, SamplingOptions(), np.random.default_rng(0))
    atoms = np.union1d(problem.atoms, drawn.codes)
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(problem.knowledge)), atoms=atoms)
    held_out = np.concatenate([split.atoms[split.truth] for split in (problem.valid, problem.test)])
    rows = graph.rows(torch.from_numpy(held_out))
    targets = ask(base, graph, problem.train)
    assert targets.labels[rows].tolist() == [0] * 48
    assert bool(torch.isin(rows, targets.negatives).all())
    assert not bool(torch.isin(rows, targets.facts).any())
    assert known_states(base, graph.atoms, problem.train)[rows].tolist() == [UNKNOWN] * 48
    local = ask(base, graph, problem.train, corrupted_positions=[-1])
    assert local.labels[rows].tolist() == [-1] * 48
    assert not bool(torch.isin(rows, local.asked).any())


def test_nothing_known_is_nothing_asked() -> None:
    base = world("", "")
    targets, found = asked(base)
    assert all(label == (0 if is_closed(name) else -1) for name, label in found.items())
    assert targets.asked.tolist() == []
    assert targets.facts.tolist() == []
    empty = FactorGraph.from_grounding(Grounding(()))
    nothing = ask(base.base, empty, Evidence.empty())
    assert nothing.labels.shape == (0,)
    assert nothing.first_constants.shape == (0,)
