"""How fast the network is, as ratios measured in one run.

- a training step of a reasoning layer over transitivity on 60 constants, dim 32: plain form against factored and dense;
- the growth of a step with the number of ground rules;
- the whole training of countries-s3, in CPU-seconds.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor

import r2n
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.model.run import prepare_run
from r2n.network.factor_graph import FactorGraph
from r2n.network.reasoning import ReasoningLayer, make_layer
from r2n.network.scatter import Incidence
from r2n.options import ModelOptions
from r2n.reproduction import PAPER_SECONDS

sys.path.insert(0, str(Path(__file__).parent))
from grounding import Seconds, compared, print_rows, ratio_row, seconds_of, transitivity

CONSTANTS, DIM, REPEATS = 60, 32, 7
SIZES = (22, 46, 100)  # cubed: 10^4, 10^5, 10^6 ground rules


def plain_step(layer: ReasoningLayer, graph: FactorGraph, atoms: Tensor) -> Tensor:
    """Eqs. 2-5 to the letter, vectorised over ground rules: concatenate, MLP^1, MLP^2 for each position, sum."""
    updated = torch.zeros_like(atoms)
    for (update, to_atoms), rows in zip(layer.parts(), graph.neighbours, strict=True):
        rules = update(atoms[rows].flatten(1))
        for i in range(rows.shape[1]):
            hidden = torch.relu(rules @ to_atoms.weights[0][i] + to_atoms.biases[0][i])
            messages = hidden @ to_atoms.weights[1][i] + to_atoms.biases[1][i]
            updated = updated.index_add(0, rows[:, i], messages)
    return updated


def step_seconds(step: Callable[[], Tensor]) -> Seconds:
    """Seconds of one forward and backward pass."""
    return seconds_of(lambda: step().square().mean().backward())


def graph_of(constants: int) -> FactorGraph:
    """Transitivity over so many constants."""
    return FactorGraph.from_grounding(FullGrounder().ground(Store(transitivity(constants))))


def steps(constants: int) -> tuple[dict[str, Callable[[], Tensor]], int]:
    """The same layer in its three forms, and the number of ground rules."""
    graph = graph_of(constants)
    torch.manual_seed(0)
    layer = make_layer(graph.rules, ModelOptions(dim=DIM, aggregation="sum"))
    atoms = torch.randn(len(graph.atoms), DIM, requires_grad=True)
    dense, indexed = Incidence.from_graph(graph), Incidence.from_graph(graph, dense=False)
    forms: dict[str, Callable[[], Tensor]] = {
        "plain": lambda: plain_step(layer, graph, atoms),
        "factored": lambda: layer(atoms, indexed, rule_embeddings=False)[0],
        "dense": lambda: layer(atoms, dense, rule_embeddings=False)[0],
    }
    return forms, len(graph)


def forms_against_plain() -> list[dict[str, Any]]:
    """How many times faster than the plain form the other two are."""
    forms, ground_rules = steps(CONSTANTS)
    for form in forms.values():
        step_seconds(form)
    ratios = {
        name: compared(
            partial(step_seconds, forms["plain"]), partial(step_seconds, forms[name]), REPEATS, torch.set_num_threads
        )
        for name in ("factored", "dense")
    }
    case = f"training step, transitivity over {CONSTANTS} constants, dim {DIM}, times faster"
    targets = {"factored": ">= 1.7", "dense": ">= 2.5"}
    return [
        ratio_row(f"{case}: {name}", "the plain form", found, targets[name], ground_rules=ground_rules)
        for name, found in ratios.items()
    ]


def growth() -> list[dict[str, Any]]:
    """The slope of log CPU-seconds over log ground rules, for the factored and the dense form."""
    rows = []
    torch.set_num_threads(1)
    for name in ("factored", "dense"):
        counts, times = [], []
        for constants in SIZES:
            forms, ground_rules = steps(constants)
            step_seconds(forms[name])
            counts.append(ground_rules)
            times.append(min(step_seconds(forms[name]).cpu for _ in range(3)))
        slope = float(np.polyfit(np.log(counts), np.log(times), 1)[0])
        case = f"{name}: slope of log CPU-seconds over log ground rules, {counts[0]:,} to {counts[-1]:,}"
        rows.append(ratio_row(case, "linear growth", [slope], "<= 1.1"))
    return rows


def whole_training() -> dict[str, Any]:
    """CPU-seconds of training countries-s3 with its own options."""
    problem = r2n.load("countries-s3")
    start = process_time()
    run = prepare_run(problem, problem.options, seed=0)
    for _ in run.trainer:
        pass
    seconds = process_time() - start
    paper = PAPER_SECONDS["countries-s3"]
    case = f"countries-s3, {run.trainer.epoch} epochs, CPU-seconds (the paper: {paper:.0f} s on a V100)"
    return ratio_row(case, "one second", [seconds], "<= 40")


def main(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Measure, and print the table."""
    rows = [*forms_against_plain(), *growth(), whole_training()]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        print_rows(rows)


if __name__ == "__main__":
    typer.run(main)
