"""A generated graph -> what its parts take in one process, as a line of JSON, for tools/measure_scale.py.

    python tools/scale_step.py joins FOLDER     known bodies, from tables in memory to ground rules in order
    python tools/scale_step.py train FOLDER     a step of training an input layer, and a ranked query

ComplEx of 32 complex numbers a constant, Adagrad, steps of 1,024 facts with 256 negatives a position; filtered ranking
among all constants, both positions. Tables are those of the whole graph; the facts of the steps are drawn from it.
Seconds are the processor's, of all threads.
"""

import json
import sys
from time import process_time
from typing import Any

import numpy as np
import torch

import r2n
from r2n.data.problem import Problem
from r2n.evaluation.ranking import EvaluationOptions, Filter, rank
from r2n.grounding.full import KnownBodyGrounder
from r2n.grounding.store import DuckDBEngine, Store
from r2n.network.graph_sources import Ungrounded
from r2n.network.r2n import R2N
from r2n.scoring import AtomLogits
from r2n.training.fit import Trainer

BATCH, STEPS, QUERIES = 1_024, 40, 500
MOST = 10**8


def joins(problem: Problem) -> dict[str, Any]:
    """The ground rules by arrays, and by DuckDB alone."""
    found: dict[str, Any] = {}
    for name, engine in (("arrays", None), ("duckdb", DuckDBEngine(4 * 10**9, takes_all=True))):
        start = process_time()
        grounding = KnownBodyGrounder(MOST).ground(Store(problem.knowledge, engine))
        found[f"{name}_seconds"] = process_time() - start
        found["ground_rules"] = len(grounding)
        del grounding
    return found


def train(problem: Problem) -> dict[str, Any]:
    """A step of training, and a ranked query."""
    torch.manual_seed(0)
    network = R2N.build(problem.knowledge, input="complex", dim=32, reasoner="none")
    step = trained(problem, network)
    start = process_time()
    filtered = Filter.from_problem(problem)
    network.eval()
    logits = AtomLogits(network, Ungrounded(), problem.train)
    rank(logits, problem.test, problem.knowledge.base, filtered, EvaluationOptions(sample=QUERIES))
    query = (process_time() - start) / QUERIES
    weights = sum(parameter.numel() * parameter.element_size() for parameter in network.parameters())
    return {"step_seconds": step, "query_seconds": query, "weight_bytes": weights}


def trained(problem: Problem, network: R2N) -> float:
    """Seconds of a step."""
    facts = problem.train
    drawn = np.sort(np.random.default_rng(0).choice(len(facts), min(len(facts), BATCH * STEPS), replace=False))
    some = r2n.Evidence(facts.atoms[drawn], facts.truth[drawn])
    changes = {"epochs": 2, "batch_size": BATCH, "loss": "softmax", "negatives": 256, "optimiser": "adagrad"}
    trainer = Trainer.from_source(network, Ungrounded(), some, **changes)
    trainer.step()  # the first epoch makes the optimiser's tables
    steps = sum(1 for _ in trainer.batches.epoch(torch.Generator().manual_seed(0)))
    start = process_time()
    trainer.step()
    return (process_time() - start) / steps


def main() -> None:
    """Measure, and print the line."""
    what, folder = sys.argv[1:]
    start = process_time()
    problem = r2n.load(folder)
    row: dict[str, Any] = {"read_seconds": process_time() - start}
    row |= {"constants": len(problem.knowledge.language.constants)}
    row |= {"joins": joins, "train": train}[what](problem)
    print(json.dumps(row))


if __name__ == "__main__":
    main()
