"""How fast layers along paths are: training steps on a generated graph, against the plain form in torch.

The plain form is message passing as graph libraries write it: gather, multiply and index_add over all ground rules, and
the update of all atoms, by autograd. Both have the same weights, ground rules and outputs.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor

from r2n.grounding.paths import FactIndex, PathQueries, PathStep, first_atoms, next_step
from r2n.network.paths import Asked, PathLayer

sys.path.insert(0, str(Path(__file__).parent))
from grounding import Seconds, compared, print_rows, ratio_row, seconds_of

CONSTANTS, FACTS, PREDICATES, QUERIES, STEPS, DIM, REPEATS = 20_000, 40_000, 20, 64, 4, 32, 5


def skewed_facts() -> FactIndex:
    """Facts in both directions; some constants stand in many."""
    dice = np.random.default_rng(0)
    constants = (CONSTANTS * dice.random((FACTS, 2)) ** (1, 2)).astype(np.int64)
    predicates = dice.integers(PREDICATES, size=FACTS)
    facts = np.unique(np.column_stack([predicates, constants]), axis=0)
    both = np.concatenate([facts, facts[:, [0, 2, 1]] + [PREDICATES, 0, 0]])
    reciprocals = np.roll(np.arange(2 * PREDICATES), PREDICATES)
    return FactIndex.from_facts(both[:, 0], both[:, 1:], CONSTANTS, reciprocals)


def plain(layer: PathLayer, atoms: Tensor, step: PathStep, heads: np.ndarray, query: Asked) -> Tensor:
    """The layer, a vector for each ground rule."""
    table = layer.weights(query.distinct).view(-1, atoms.shape[1])
    pair = np.repeat(np.arange(len(step.source)), np.diff(step.starts))
    of_query, predicate = np.divmod(step.predicate[pair], len(query.facts))
    weights = query.owner[torch.from_numpy(of_query)] * len(query.facts) + torch.from_numpy(predicate)
    messages = atoms[torch.from_numpy(step.source[pair])] * table[weights]
    own = atoms.new_zeros(len(step.atoms), atoms.shape[1])
    sums = own.index_add(0, torch.from_numpy(step.targets), messages)
    sums = sums.index_add(0, torch.from_numpy(heads), query.each)
    own = own.index_add(0, torch.from_numpy(step.before), atoms)
    return own + torch.relu(layer.norm(layer.update(torch.cat([own, sums], dim=1))))


Form = Callable[[PathLayer, Tensor, PathStep, np.ndarray, Asked], Tensor]


def passes() -> tuple[Callable[[Form], Tensor], int]:
    """A pass of a form through layers and steps that are grounded before, and the number of ground rules."""
    torch.manual_seed(0)
    index, dice = skewed_facts(), np.random.default_rng(1)
    queries = PathQueries(dice.integers(2 * PREDICATES, size=QUERIES), dice.integers(CONSTANTS, size=QUERIES))
    distinct, owner = np.unique(queries.predicates, return_inverse=True)
    embedded = torch.randn(len(distinct), DIM, requires_grad=True)
    query = Asked(embedded, torch.from_numpy(owner), embedded[owner], torch.arange(2 * PREDICATES))
    layers, steps, reached = [PathLayer(2 * PREDICATES, DIM) for _ in range(STEPS)], list[PathStep](), None
    reached = first_atoms(index, queries)
    for _ in layers:
        steps.append(next_step(index, queries, reached, np.arange(len(reached))))
        reached = steps[-1].atoms

    def through(form: Form) -> Tensor:
        atoms, heads = query.each, np.arange(QUERIES)
        for layer, step in zip(layers, steps, strict=True):
            heads = step.before[heads]
            atoms = form(layer, atoms, step, heads, query)
        return atoms

    return through, sum(map(len, steps))


def trained(through: Callable[[Form], Tensor], form: Form) -> Seconds:
    """Seconds of one forward and backward pass."""
    return seconds_of(lambda: through(form).square().mean().backward(retain_graph=True))


def rows() -> list[dict[str, Any]]:
    """How many times faster than the plain form, and what a ground rule costs."""
    torch.set_num_threads(1)
    through, ground_rules = passes()
    torch.testing.assert_close(through(PathLayer.forward), through(plain), rtol=1e-4, atol=1e-4)
    ratios = compared(partial(trained, through, plain), partial(trained, through, PathLayer.forward), REPEATS)
    costs = [1e6 * trained(through, PathLayer.forward).cpu / ground_rules / 2 for _ in range(REPEATS)]
    case = f"paths, {STEPS} layers of dim {DIM}"
    return [
        ratio_row(f"{case}: training step, times faster", "gather, multiply, index_add", ratios.cpu, ">= 2"),
        ratio_row(f"{case}: microseconds a ground rule and direction", "a microsecond", costs, "<= 0.35"),
    ]


def main(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Measure, and print the table."""
    found = rows()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    print_rows(found)


if __name__ == "__main__":
    typer.run(main)
