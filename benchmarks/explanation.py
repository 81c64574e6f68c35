"""How fast an answer is explained, as ratios measured in one run.

- 1,000 ground rules of countries-s3 left out one by one: one pass over all these changes, against a forward pass over
  the whole graph for each of them (extrapolated from 10 of them);
- `Model.explain` on countries-s3 and kinship after the run is loaded, in CPU-seconds, and in forward passes.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import torch
import typer

import r2n
from r2n.explanation.counterfactuals import Changes, Neighbourhood
from r2n.model.run import prepare_run
from r2n.network.factor_graph import FactorGraph, known_states

sys.path.insert(0, str(Path(__file__).parent))
from grounding import compared, print_rows, ratio_row, seconds_of

LEFT_OUT, PASSES, REPEATS = 1000, 10, 3
EPOCHS = 20  # weights do not matter for speed
EXPLAINED = 5


def trained(name: str) -> r2n.Model:
    """A network that has seen a few epochs, and has answered once."""
    problem = r2n.load(name)
    run = prepare_run(problem, problem.options.changed([f"training.epochs={EPOCHS}"]), seed=0)
    for _ in run.trainer:
        pass
    predictor = r2n.Model.from_run(run)
    predictor.logits(problem.test.atoms[:1])
    return predictor


def forward(predictor: r2n.Model, graph: FactorGraph) -> np.ndarray:
    """The logits of all atoms of a graph: laid out, and one pass."""
    known = known_states(predictor.network.base, graph.atoms, predictor.members[0].evidence)
    with torch.no_grad():
        return predictor.network.eval()(predictor.network.collate(graph), known=known, rule_outputs=False).atoms.numpy()


def without(graph: FactorGraph, rule: int, row: int) -> FactorGraph:
    """The graph without one ground rule."""
    part = graph.neighbours[rule]
    neighbours = (*graph.neighbours[:rule], torch.cat([part[:row], part[row + 1 :]]), *graph.neighbours[rule + 1 :])
    return replace(graph, neighbours=neighbours, shapes=(None,) * len(neighbours))


def leave_one_outs() -> dict[str, Any]:
    """How many times faster 1,000 ground rules are left out at once than by a pass over the whole graph each."""
    predictor = trained("countries-s3")
    graph, codes = predictor.source.full_graph, predictor.problem.test.atoms
    assert graph is not None
    made: dict[str, np.ndarray] = {}

    def ours() -> None:  # the ground rules that test queries stand in, each left out for its own query
        near = Neighbourhood.around(predictor.members, codes)
        own = [np.stack([np.full(len(found), i), found], axis=1) for i, found in enumerate(standing_in(near, codes))]
        pairs = np.concatenate(own)[:LEFT_OUT]
        changes = Changes(len(pairs), np.stack([np.arange(len(pairs)), pairs[:, 1]], axis=1))
        made["atoms"], made["rules"] = codes[pairs[:, 0]], np.array([named(near, n) for n in pairs[:PASSES, 1]])
        made["logits"] = near.changed(changes)[np.arange(len(pairs)), pairs[:, 0]]

    def theirs() -> None:
        for code, logit, (rule, *atoms) in zip(made["atoms"], made["logits"], made["rules"], strict=False):
            found = (graph.atoms[graph.neighbours[rule]] == torch.tensor(atoms)).all(dim=1)
            changed = forward(predictor, without(graph, rule, int(found.nonzero())))
            if abs(changed[graph.rows(torch.tensor([code]))].item() - logit) > 1e-3:
                raise SystemExit("a ground rule left out, and a forward pass without it, disagree")

    ours()
    assert len(made["logits"]) == LEFT_OUT
    ratios = compared(lambda: seconds_of(theirs), lambda: seconds_of(ours), REPEATS, torch.set_num_threads)
    scale = LEFT_OUT / PASSES
    ratios.cpu, ratios.wall = [scale * ratio for ratio in ratios.cpu], [scale * ratio for ratio in ratios.wall]
    case = f"{LEFT_OUT:,} ground rules of countries-s3 left out one by one, times faster"
    peer = f"a forward pass over the whole graph each ({PASSES} measured)"
    return ratio_row(case, peer, ratios, ">= 20", ground_rules=len(graph))


def standing_in(near: Neighbourhood, codes: np.ndarray) -> list[np.ndarray]:
    """The ground rules that each atom stands in, by number."""
    return [near.ground_rules_of(i) for i in range(len(codes))]


def named(near: Neighbourhood, number: int) -> list[int]:
    """The rule of a ground rule of a near, and the codes of its atoms."""
    rule, rows = near.located(int(number))
    return [rule, *near.graph.atoms[torch.from_numpy(rows)].tolist()]


def explained(name: str, target: str) -> list[dict[str, Any]]:
    """CPU-seconds of explaining some test queries, one after the other; and in forward passes over the whole graph."""
    torch.set_num_threads(1)
    predictor = trained(name)
    graph, test = predictor.source.full_graph, predictor.problem.test
    assert graph is not None
    atoms = predictor.base.names(test.atoms[test.truth][:EXPLAINED])
    one_pass = median(seconds_of(lambda: forward(predictor, graph)).cpu for _ in range(3))
    seconds = [seconds_of(explaining(predictor, atom)).cpu for atom in atoms]
    return [
        ratio_row(f"explain on {name}, CPU-seconds", "one second", seconds, target, ground_rules=len(graph)),
        ratio_row(f"explain on {name}", "one forward pass", [each / one_pass for each in seconds], ""),
    ]


def explaining(predictor: r2n.Model, atom: str) -> Callable[[], object]:
    """The work of one explanation."""
    return lambda: predictor.explain(atom)


def main(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Measure, and print the table."""
    rows = [leave_one_outs(), *explained("countries-s3", "<= 0.5"), *explained("kinship", "<= 2")]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        print_rows(rows)


if __name__ == "__main__":
    typer.run(main)
