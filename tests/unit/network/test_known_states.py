"""What is known of atoms, against the definition."""

import torch

from r2n.data.problem import Problem
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN, known_states, known_truths


def test_evidence_then_the_closed_world_then_unknown(toy: Problem) -> None:
    base, evidence = toy.knowledge.base, toy.train
    stated = dict(zip(evidence.atoms.tolist(), evidence.truth.tolist(), strict=True))
    states = known_states(base, torch.arange(base.size), evidence).tolist()
    for code, name in enumerate(base.names(torch.arange(base.size).numpy())):
        expected = UNKNOWN if name.startswith("liesIn") else FALSE
        if code in stated:
            expected = TRUE if stated[code] else FALSE
        assert states[code] == expected, name


def test_atoms_may_come_in_any_order_and_twice(toy: Problem) -> None:
    base, evidence = toy.knowledge.base, toy.train
    codes = torch.tensor([5, 3, 5, int(evidence.atoms[-1]), int(evidence.atoms[0])])
    whole = known_truths(base, torch.arange(base.size).numpy(), evidence)
    assert known_truths(base, codes.numpy(), evidence).tolist() == whole[codes.numpy()].tolist()
