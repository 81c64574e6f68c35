"""How fast knowledge graph completion is, as ratios measured in one run.

- an epoch of R2NC on Kinship, dim 50, rules of size 100: the multiply-adds that the equations need for it, against what
  the machine's matrix product does in the same time;
- an epoch of ComplEx alone on Kinship, against PyKEEN's LCWA loop with inverse triples, same dimension, one batch;
- the whole training of R2NC on each dataset, in CPU-seconds, beside the paper's seconds on a V100.
"""

import json
import logging
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Annotated, Any

import torch
import typer

import r2n
from r2n.model.run import Run, prepare_run
from r2n.reproduction import PAPER_SECONDS
from r2n.reproduction.reproduce import table_rows

sys.path.insert(0, str(Path(__file__).parent))
from grounding import Seconds, compared, print_rows, ratio_row, seconds_of

DIM, RULE_DIM, REPEATS, SIDE = 50, 100, 9, 1024


def kinship(*changes: str) -> Run:
    """Kinship, ready to be trained."""
    problem = r2n.load("kinship")
    sizes = (f"model.dim={DIM}", f"model.rule_dim={RULE_DIM}", f"training.threads={os.cpu_count() or 1}")
    return prepare_run(problem, problem.options.changed([*sizes, *changes]), seed=0)


def needed_by_the_equations(run: Run, layers: int) -> int:
    """Multiply-adds of eqs. 2-5 and out(a), forward and twice that backward: MLP^1, MLP^2, the output, each one map."""
    assert run.source.full_graph is not None
    pairs, positions = run.source.full_graph.neighbours[0].shape
    forward = layers * 2 * pairs * positions * DIM * RULE_DIM + pairs * positions * DIM
    return 3 * forward


def share_of_peak() -> dict[str, Any]:
    """The multiply-adds that the equations need a second, over those of a square matrix product."""
    run = kinship("model.layers=1")
    left, right = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    run.trainer.step()
    torch.mm(left, right)
    needed = needed_by_the_equations(run, 1)

    def product() -> Seconds:
        """As long as the matrix product would need for as many multiply-adds."""
        found, times = [seconds_of(lambda: torch.mm(left, right)) for _ in range(5)], needed / SIDE**3
        return Seconds(times * min(one.cpu for one in found), times * min(one.wall for one in found))

    ratios = compared(product, lambda: seconds_of(run.trainer.step), REPEATS, torch.set_num_threads)
    case = f"R2NC on Kinship, dim {DIM}, rules of size {RULE_DIM}: multiply-adds of the equations"
    return ratio_row(case, "the machine's matrix product", ratios, ">= 0.4")


def pykeen_epoch() -> Callable[[], object]:
    """One epoch of ComplEx in PyKEEN's LCWA loop, all triples in one batch."""
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    from pykeen.datasets import Kinships
    from pykeen.models import ComplEx
    from pykeen.training import LCWATrainingLoop

    triples = Kinships(create_inverse_triples=True).training
    model = ComplEx(triples_factory=triples, embedding_dim=DIM, random_seed=0)
    loop = LCWATrainingLoop(model=model, triples_factory=triples, optimizer="Adam")
    size = len(triples.mapped_triples)
    return lambda: loop.train(triples, num_epochs=1, batch_size=size, use_tqdm=False, use_tqdm_batch=False)


def complex_against_pykeen() -> dict[str, Any]:
    """How many times faster than PyKEEN's an epoch of ComplEx alone is."""
    run = kinship("model.reasoner=none")
    theirs = pykeen_epoch()
    theirs()
    run.trainer.step()
    ratios = compared(lambda: seconds_of(theirs), lambda: seconds_of(run.trainer.step), REPEATS, torch.set_num_threads)
    return ratio_row(f"ComplEx on Kinship, dim {DIM}, an epoch, times faster", "PyKEEN, LCWA", ratios, ">= 1.5")


def whole_training(dataset: str) -> dict[str, Any]:
    """CPU-seconds of training R2NC with the options of the table."""
    (row,) = [row for row in table_rows("kgc") if row.row == "R2NC" and dataset in row.datasets]
    problem = r2n.load(dataset)
    start = process_time()
    run = prepare_run(problem, row.options(problem.options), seed=0)
    for _ in run.trainer:
        pass
    seconds, paper = process_time() - start, PAPER_SECONDS[dataset]
    case = f"R2NC on {dataset}, {run.trainer.epoch} epochs, CPU-seconds (the paper: {paper:.0f} s on a V100)"
    return ratio_row(case, "one second", [seconds], f"<= {paper:.0f}")


def main(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Measure, and print the table."""
    rows = [share_of_peak(), complex_against_pykeen(), *map(whole_training, ("nations", "kinship", "umls"))]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        print_rows(rows)


if __name__ == "__main__":
    typer.run(main)
