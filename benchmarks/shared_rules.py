"""How much faster a network is trained whose rules share their networks, as ratios measured in one run.

- training steps over 100 rules on a generated graph of 200 constants and 12 relations, known-body grounding, dim 32,
  three layers: `rule_network = "own"` against `"shared"`, with the loss that each has reached.
"""

import json
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import torch
import typer

import r2n
from r2n.data.problem import Problem
from r2n.model.run import prepare_run
from r2n.options import Options
from r2n.training.fit import Trainer

sys.path.insert(0, str(Path(__file__).parent))
from grounding import Seconds, compared, print_rows, ratio_row, seconds_of

CONSTANTS, RELATIONS, FACTS, RULES, STEPS = 200, 12, 1000, 100, 3


def many_rules(folder: Path) -> Problem:
    """A random graph with a hundred rules, of two atoms or three."""
    dice, names = Random(0), [f"p{i}" for i in range(RELATIONS)]
    lines = ["domain d", *(f"predicate {name}(d, d)" for name in names)]
    for j in range(RULES):
        first, second, third = (dice.choice(names) for _ in range(3))
        body = f"{first}(x, y)" if j % 2 else f"{first}(x, z) & {second}(z, y)"
        lines.append(f"rule r{j}: {body} -> {third}(x, y)")
    pairs = [
        (f"c{dice.randrange(CONSTANTS)}", dice.choice(names), f"c{dice.randrange(CONSTANTS)}") for _ in range(FACTS)
    ]
    (folder / "theory.r2n").write_text("\n".join(lines) + "\n")
    (folder / "train.tsv").write_text("".join("\t".join(fact) + "\n" for fact in sorted(set(pairs))))
    (folder / "problem.toml").write_text(
        'name = "many"\ntheory = "theory.r2n"\n[facts]\ntrain = "train.tsv"\n[grounding]\nstrategy = "known-body"\n'
    )
    return r2n.load(folder)


def trainer(problem: Problem, rule_network: str) -> Trainer:
    """A training of one kind."""
    changes = [f"model.rule_network={rule_network}", "training.negatives=2", "grounding.strategy=known-body"]
    return prepare_run(problem, Options().changed(changes), seed=0).trainer


def own_against_shared(problem: Problem) -> dict[str, Any]:
    """How many times faster the shared networks are."""
    own, shared = trainer(problem, "own"), trainer(problem, "shared")
    losses = {"own": own.step().loss, "shared": shared.step().loss}

    def steps(of: Trainer, name: str) -> Seconds:
        def take() -> None:
            for _ in range(STEPS):
                losses[name] = of.step().loss

        return seconds_of(take)

    ratios = compared(lambda: steps(own, "own"), lambda: steps(shared, "shared"), 1, torch.set_num_threads)
    sizes = [sum(p.numel() for p in of.model.layers.parameters()) for of in (own, shared)]
    case = (
        f"{RULES} rules, {own.batches.ground_rules:,} ground rules, {own.epoch} epochs, networks shared: times faster"
    )
    peer = f"own ({sizes[0]:,} parameters, loss {losses['own']:.3f}; shared: {sizes[1]:,}, {losses['shared']:.3f})"
    return ratio_row(case, peer, ratios, "> 1")


def main(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Measure, and print the table."""
    with TemporaryDirectory() as folder:
        rows = [own_against_shared(many_rules(Path(folder)))]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        print_rows(rows)


if __name__ == "__main__":
    typer.run(main)
