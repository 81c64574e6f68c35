"""Which atoms are hidden in a step: drawn atom by atom, by constant, or by their codes."""

import numpy as np
import torch

from r2n.options import TrainingOptions
from r2n.training.batches import Targets, masked_atoms, masked_by_code

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
    whole = by_code(codes)
    part = torch.tensor([7, 3, 19_999, 3])
    assert torch.equal(by_code(part), whole[part])


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
