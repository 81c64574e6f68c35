"""What training asks of a small world, label by label; tests/properties has random ones."""

import numpy as np
import torch

from r2n.datasets.benchmarks import load
from r2n.graph.factor_graph import FactorGraph
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounding
from r2n.knowledge.knowledge_base import Evidence, KnowledgeBase
from r2n.model.r2n import FALSE, TRUE, UNKNOWN
from r2n.training.targets import Questions, ask, known_states
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
    return FactorGraph.from_grounding(FullGrounder().ground(base), atoms=np.arange(base.base.size))


def labels(base: KnowledgeBase, questions: Questions) -> dict[str, int]:
    return dict(zip(base.base.names(np.arange(base.base.size)), questions.labels.tolist(), strict=True))


def asked(base: KnowledgeBase, **options: object) -> tuple[Questions, dict[str, int]]:
    questions = ask(base.base, graph_of(base), base.evidence, **options)  # pyright: ignore
    return questions, labels(base, questions)


def test_without_corruptions_only_what_is_stated_is_asked() -> None:
    base = world()
    questions, found = asked(base, positions=())
    names = base.base.names(np.arange(base.base.size))
    assert {names[i] for i in questions.asked.tolist()} == {"liesIn(italy, europe)", "liesIn(spain, asia)"}
    assert (found["liesIn(italy, asia)"], found["near(france, italy)"]) == (-1, 0)
    assert questions.candidates.numel() == 0


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
    _, found = asked(world(), positions=[-1])
    assert found["liesIn(italy, asia)"] == 0
    assert found["liesIn(france, europe)"] == -1
    assert found["liesIn(france, asia)"] == -1


def is_closed(name: str) -> bool:
    """near as a whole, and liesIn from a state to a country."""
    first, _, second = name.removesuffix(")").partition("(")[2].partition(", ")
    return name.startswith("near") or (first in ("latium", "tuscany") and second in ("france", "italy", "spain"))


def test_labelled_open_atoms_are_asked_and_closed_ones_where_it_is_wished() -> None:
    base = world()
    questions, found = asked(base)
    names = list(found)
    expected = {name for name, label in found.items() if label >= 0 and not is_closed(name)}
    assert {names[row] for row in questions.asked.tolist()} == expected
    questions, _ = asked(base, ask_closed=True)
    assert {names[row] for row in questions.asked.tolist()} == expected | set(filter(is_closed, names))


def test_closed_atoms_are_not_open() -> None:
    base = world()
    questions, found = asked(base)
    for name, is_open in zip(found, questions.open_atoms.tolist(), strict=True):
        assert is_open != is_closed(name), name


def test_facts_stand_beside_their_corruptions() -> None:
    base = world()
    questions, found = asked(base, positions=[-1])
    names = list(found)
    rows = {
        names[fact]: {names[row] for row in candidates if row >= 0}
        for fact, candidates in zip(questions.facts.tolist(), questions.candidates.tolist(), strict=True)
    }
    assert rows == {"liesIn(italy, europe)": {"liesIn(italy, asia)"}}
    wished, _ = asked(base, positions=[-1], ask_closed=True)
    assert [names[fact] for fact in wished.facts.tolist()] == [
        "liesIn(italy, europe)",
        "liesIn(latium, italy)",
        "liesIn(latium, italy)",
        "near(italy, france)",
        "near(italy, france)",
    ]


def test_atoms_outside_the_graph_are_not_asked() -> None:
    base = world()
    few = codes(base, "liesIn(italy, europe)", "liesIn(france, europe)")
    graph = FactorGraph.from_grounding(Grounding(()), atoms=few)
    questions = ask(base.base, graph, base.evidence)
    assert questions.labels.tolist() == [0, 1]
    assert questions.asked.tolist() == [0, 1]
    found = list(zip(questions.facts.tolist(), questions.candidates.tolist(), strict=True))
    assert sorted({row for _, candidates in found for row in candidates}) == [-1, 0]
    assert {fact for fact, _ in found} == {1}
    told = ask(base.base, graph, base.evidence, ask_closed=True)
    assert {*told.facts.tolist()} == {-1, 1}  # liesIn(latium, italy) and near(italy, france) are in no row


def test_semantic_labels_are_the_truth_of_explicit_rules_on_known_atoms() -> None:
    base = world()
    graph = graph_of(base)
    questions = ask(base.base, graph, base.evidence)
    (spread, spread_truth), (inside, _), (pairs, pairs_truth) = questions.rules
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
    questions, found = asked(base, negatives=1, seed=3)
    drawn = {row for row in questions.candidates.flatten().tolist() if row >= 0}
    false = {row for row, (name, label) in enumerate(found.items()) if label == 0 and not is_closed(name)}
    assert false == drawn
    assert questions.candidates.shape == (2, 1)
    again, _ = asked(base, negatives=1, seed=3)
    assert torch.equal(again.candidates, questions.candidates)
    others = [asked(base, negatives=1, seed=seed)[0].candidates for seed in range(8)]
    assert len({tuple(other.flatten().tolist()) for other in others}) > 1


def test_first_constants_group_the_atoms() -> None:
    base = world()
    questions, found = asked(base)
    constants = base.language.constants
    for name, constant in zip(found, questions.first_constants.tolist(), strict=True):
        assert name.split("(")[1].startswith(constants[constant])


def test_a_network_reads_the_evidence_and_not_the_corruptions() -> None:
    base = world()
    states = known_states(base.base, graph_of(base), base.evidence)
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
    graph = FactorGraph.from_grounding(FullGrounder().ground(problem.knowledge), atoms=problem.atoms)
    held_out = np.concatenate([split.atoms[split.truth] for split in (problem.valid, problem.test)])
    rows = graph.rows(torch.from_numpy(held_out))
    questions = ask(base, graph, problem.train)
    assert questions.labels[rows].tolist() == [0] * 48
    assert bool(torch.isin(rows, questions.candidates).all())
    assert not bool(torch.isin(rows, questions.facts).any())
    assert known_states(base, graph, problem.train)[rows].tolist() == [UNKNOWN] * 48
    local = ask(base, graph, problem.train, positions=[-1])
    assert local.labels[rows].tolist() == [-1] * 48
    assert not bool(torch.isin(rows, local.asked).any())


def test_nothing_known_is_nothing_asked() -> None:
    base = world("", "")
    questions, found = asked(base)
    assert all(label == (0 if is_closed(name) else -1) for name, label in found.items())
    assert questions.asked.tolist() == []
    assert questions.facts.tolist() == []
    empty = FactorGraph.from_grounding(Grounding(()))
    nothing = ask(base.base, empty, Evidence.empty())
    assert nothing.labels.shape == (0,)
    assert nothing.first_constants.shape == (0,)
