"""What a step asks, and what it masks."""

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
from r2n.network.factor_graph import UNKNOWN, FactorGraph, known_states
from r2n.options import SamplingOptions, TrainingOptions
from r2n.training.batches import Targets, masked_atoms, masked_by_code, targets_of
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


def ask(base: HerbrandBase, graph: FactorGraph, evidence: Evidence, *, seed: int = 0, **options: object) -> Targets:
    """Targets with negatives drawn as the options say."""
    sampling = SamplingOptions.model_validate(options)
    negatives = draw_negatives(base, evidence, sampling, np.random.default_rng(seed))
    return targets_of(base, graph, evidence, negatives, ask_closed=sampling.ask_closed)


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


MANY = 20_000


def targets(count: int, open_atoms: torch.Tensor | None = None) -> Targets:
    nothing = torch.zeros(0, dtype=torch.int64)
    return Targets(
        labels=torch.zeros(count, dtype=torch.int64),
        asked=nothing,
        facts=nothing,
        negatives=torch.zeros((0, 0), dtype=torch.int64),
        rules=(),
        open_atoms=torch.ones(count, dtype=torch.bool) if open_atoms is None else open_atoms,
        first_constants=torch.arange(count) % 2,
    )


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def by_code(codes: torch.Tensor, share: float = 0.3, draw: torch.Generator | None = None) -> torch.Tensor:
    options = TrainingOptions(hiding=share)
    found = masked_by_code(codes, targets(len(codes)), options, generator=draw or generator())
    assert found is not None
    return found


def test_an_atom_is_hidden_wherever_it_stands() -> None:
    codes = torch.arange(MANY)
    full = by_code(codes)
    part = torch.tensor([7, 3, 19_999, 3])
    assert torch.equal(by_code(part), full[part])


def test_about_as_many_are_hidden_as_is_asked_for_and_others_each_time() -> None:
    draw, codes = generator(), torch.arange(MANY)
    first, second = by_code(codes, draw=draw), by_code(codes, draw=draw)
    deviation = 5 * np.sqrt(0.3 * 0.7 / MANY)
    assert abs(float(first.float().mean()) - 0.3) < deviation
    both = float((first & second).float().mean())
    assert abs(both - 0.09) < deviation
    neighbours = float((first[1:] & first[:-1]).float().mean())
    assert abs(neighbours - 0.09) < deviation


def test_closed_atoms_are_never_hidden_and_none_is_where_none_is_to_be() -> None:
    options, closed = TrainingOptions(hiding=0.9), torch.zeros(4, dtype=torch.bool)
    for found in (
        masked_by_code(torch.arange(4), targets(4, closed), options, generator=generator()),
        masked_atoms(targets(4, closed), options, 2, generator=generator()),
    ):
        assert found is not None
        assert not found.any()
    never = TrainingOptions(hiding=0.0)
    assert masked_by_code(torch.arange(4), targets(4), never, generator=generator()) is None
    assert masked_atoms(targets(4), never, 2, generator=generator()) is None


def test_atoms_of_a_constant_are_hidden_together() -> None:
    options = TrainingOptions(hiding=0.5, hide_by="constant")
    found = masked_atoms(targets(10), options, 2, generator=generator())
    assert found is not None
    assert len(set(found[::2].tolist())) == len(set(found[1::2].tolist())) == 1
