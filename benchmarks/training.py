"""How fast an input layer is trained on a large graph, as ratios measured in one run.

An epoch of ComplEx on WN18RR, r2n against PyKEEN's loops: the same triples and their inverses, batch, dimension, loss
(cross entropy over the candidates of a fact, no regulariser) and optimiser (Adagrad). Some steps in the middle of an
epoch are timed, and their mean is taken for all steps of it:

- sampled: each fact against so many constants drawn: PyKEEN's sLCWA loop draws them for each fact, r2n for the batch;
- 1-N: each row (constant, relation, ?) against all constants: PyKEEN's LCWA loop. It multiplies complex numbers, which
  is slow on CPUs; so its DistMult of twice the dimension, whose product of real numbers is as large, is there too.
"""

import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from math import ceil
from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated, Any

import numpy as np
import torch
import typer

import r2n
from r2n.data.problem import Problem
from r2n.errors import DataError
from r2n.model.run import prepare_run
from r2n.training.batches import AnyStep, Batches
from r2n.training.fit import Trainer

sys.path.insert(0, str(Path(__file__).parent))
from grounding import Seconds, compared, print_rows, ratio_row, seconds_of

DIM, RATE, NEGATIVES = 100, 0.1, 100
SAMPLED_BATCH, FULL_BATCH = 1000, 100
REPEATS, OUR_STEPS, SAMPLED_STEPS, FULL_STEPS = 1, 10, 3, 1


class FirstSteps:
    """Batches of which an epoch has the first steps alone."""

    def __init__(self, batches: Batches, steps: int) -> None:
        """So many steps."""
        self.batches, self.steps = batches, steps

    def epoch(self, generator: torch.Generator) -> Iterator[AnyStep]:
        """The first steps of an epoch."""
        return islice(self.batches.epoch(generator), self.steps)


class _EnoughError(Exception):
    """The steps to be timed are over."""


def ours(problem: Problem, batch: int, *changes: str) -> tuple[Trainer, int]:
    """A trainer of r2n whose epochs are `OUR_STEPS` steps, and how many an epoch really has."""
    options = problem.options.changed(
        [
            "model.reasoner=none",
            f"model.dim={DIM}",
            "model.init_scale=0.001",
            "grounding.reciprocal=true",
            "training.corrupted_positions=[-1]",
            "training.hiding=0.0",
            "training.optimiser=adagrad",
            f"training.learning_rate={RATE}",
            f"training.batch_size={batch}",
            "training.threads=1",
            *changes,
        ]
    )
    trainer = prepare_run(problem, options, seed=0).trainer
    full = sum(1 for _ in trainer.batches.epoch(torch.Generator().manual_seed(0)))
    trainer.batches = FirstSteps(trainer.batches, OUR_STEPS)  # pyright: ignore[reportAttributeAccessIssue]
    return trainer, full


def pykeen_triples(problem: Problem) -> Any:
    """The training facts and their inverses, as PyKEEN holds them."""
    from pykeen.triples import CoreTriplesFactory

    base, facts = problem.knowledge.base, problem.train.atoms[problem.train.truth]
    index, arguments = base.decode(facts)
    return CoreTriplesFactory(
        torch.from_numpy(np.stack([arguments[:, 0], index, arguments[:, 1]], axis=1)),
        num_entities=len(base.language.constants),
        num_relations=len(base.language.predicates),
        create_inverse_triples=True,
    )


def with_inverses(triples: Any) -> torch.Tensor:
    """All that an epoch of PyKEEN asks: a factory holds the facts alone, and its loops add the inverses."""
    return triples._add_inverse_triples_if_necessary(triples.mapped_triples)


class Watch:
    """Times steps of one of PyKEEN's loops: from the end of the first, which makes what is kept."""

    def __init__(self, steps: int) -> None:
        """So many steps."""
        self.left, self.steps = steps, steps
        self.since: Seconds | None = None

    def seconds_a_step(self, loop: Any, triples: Any, batch: int) -> Seconds:
        """What a step takes."""
        from pykeen.training.callbacks import TrainingCallback

        watch: Any = TrainingCallback()
        watch.on_batch = lambda **_: self._on_batch()
        try:
            loop.train(triples, batch_size=batch, callbacks=watch, use_tqdm=False, use_tqdm_batch=False)
        except _EnoughError as enough:
            (taken,) = enough.args
            return taken
        raise SystemExit(f"an epoch of PyKEEN has no {self.steps} steps")

    def _on_batch(self) -> None:
        now = Seconds(process_time(), perf_counter())
        if self.since is None:
            self.since = now
        elif self.left > 1:
            self.left -= 1
        else:
            raise _EnoughError(
                Seconds((now.cpu - self.since.cpu) / self.steps, (now.wall - self.since.wall) / self.steps)
            )


def pykeen_loop(triples: Any, name: str, model: str = "complex", dim: int = DIM, **more: Any) -> Any:
    """One of PyKEEN's loops with a model of its own."""
    from pykeen.losses import CrossEntropyLoss
    from pykeen.models import model_resolver
    from pykeen.training import training_loop_resolver

    made = model_resolver.make(
        model, triples_factory=triples, embedding_dim=dim, loss=CrossEntropyLoss(), regularizer=None, random_seed=0
    )
    return training_loop_resolver.make(
        name,
        model=made,
        triples_factory=triples,
        optimizer="Adagrad",
        optimizer_kwargs={"lr": RATE},
        automatic_memory_optimization=False,
        **more,
    )


@dataclass(frozen=True)
class Epochs:
    """Epochs of the two: what a step takes, and how many steps there are."""

    trainer: Trainer
    our_steps: int
    triples: Any
    their_steps: int
    batch: int

    def by_r2n(self) -> Seconds:
        """What an epoch takes."""
        taken, share = seconds_of(self.trainer.step), self.our_steps / OUR_STEPS
        return Seconds(share * taken.cpu, share * taken.wall)

    def by_pykeen(self, loop: Callable[[], Any], timed: int) -> Seconds:
        """What an epoch takes, by some steps of it."""
        step = Watch(timed).seconds_a_step(loop(), self.triples, self.batch)
        return Seconds(self.their_steps * step.cpu, self.their_steps * step.wall)

    def row(self, case: str, peer: str, loop: Callable[[], Any], timed: int, target: str) -> dict[str, Any]:
        """How many times faster r2n is."""
        self.trainer.step()
        theirs = partial(self.by_pykeen, loop, timed)
        ratios = compared(theirs, self.by_r2n, REPEATS, torch.set_num_threads)
        case = f"ComplEx on WN18RR and inverses, dim {DIM}, batch {self.batch}, {case}: an epoch, times faster"
        return ratio_row(case, peer, ratios, target)


def sampled(problem: Problem, triples: Any) -> Iterator[dict[str, Any]]:
    """Facts against constants drawn."""
    changes = ("training.loss=softmax", f"training.negatives={NEGATIVES}")
    trainer, steps = ours(problem, SAMPLED_BATCH, *changes)
    epochs = Epochs(trainer, steps, triples, ceil(len(with_inverses(triples)) / SAMPLED_BATCH), SAMPLED_BATCH)
    drawn = {"num_negs_per_pos": NEGATIVES, "corruption_scheme": ("tail",)}
    loop = partial(pykeen_loop, triples, "slcwa", negative_sampler="basic", negative_sampler_kwargs=drawn)
    yield epochs.row(f"{NEGATIVES} negatives a fact", "PyKEEN, sLCWA", loop, SAMPLED_STEPS, ">= 2")


def one_to_all(problem: Problem, triples: Any) -> Iterator[dict[str, Any]]:
    """Rows against all constants."""
    trainer, steps = ours(problem, FULL_BATCH, "training.loss=full-softmax")
    rows = len(torch.unique(with_inverses(triples)[:, :2], dim=0))
    epochs = Epochs(trainer, steps, triples, ceil(rows / FULL_BATCH), FULL_BATCH)
    real = partial(pykeen_loop, triples, "lcwa", "distmult", 2 * DIM)
    yield epochs.row("1-N", "PyKEEN, LCWA", partial(pykeen_loop, triples, "lcwa"), FULL_STEPS, ">= 2")
    yield epochs.row("1-N", f"PyKEEN's DistMult of dim {2 * DIM}, LCWA", real, FULL_STEPS, ">= 1")


def main(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Measure, and print the table."""
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    try:
        problem = r2n.load("wn18rr")
    except DataError as error:
        typer.echo(f"left out: WN18RR is not here ({error.what})", err=True)
        return
    triples = pykeen_triples(problem)
    rows: list[dict[str, Any]] = []
    for row in chain(sampled(problem, triples), one_to_all(problem, triples)):
        rows.append(row)
        if not as_json:
            print_rows([row])
    if as_json:
        typer.echo(json.dumps(rows, indent=2))


if __name__ == "__main__":
    typer.run(main)
