"""A generated graph -> what a step of training and a ranked query take, as a line of JSON, for tools/measure_scale.py.

ComplEx of 32 complex numbers a constant, Adagrad, steps of 1,024 facts with 256 negatives a position; filtered ranking
among all constants, both positions. Tables are those of the whole graph; the facts of the steps are drawn from it.
Seconds are the processor's, of all threads.
"""

import json
import sys
from time import process_time

import numpy as np
import torch

import r2n
from r2n.evaluation.filters import Filter
from r2n.evaluation.ranking import rank
from r2n.graph.sources import Ungrounded
from r2n.model.atom_logits import AtomLogits
from r2n.training.fit import Trainer

BATCH, STEPS, QUERIES = 1_024, 40, 500


def main() -> None:
    """Measure, and print the line."""
    start = process_time()
    problem = r2n.load(sys.argv[1])
    read = process_time() - start
    torch.manual_seed(0)
    network = r2n.R2N.build(problem.knowledge, input="complex", dim=32, reasoner="none")
    facts = problem.train
    drawn = np.sort(np.random.default_rng(0).choice(len(facts), min(len(facts), BATCH * STEPS), replace=False))
    some = r2n.Evidence(facts.atoms[drawn], facts.truth[drawn])
    changes = {"epochs": 2, "batch_size": BATCH, "loss": "softmax", "negatives": 256, "optimiser": "adagrad"}
    trainer = Trainer.of(network, Ungrounded(), some, **changes)
    trainer.step()  # the first epoch makes the optimiser's tables
    steps = sum(1 for _ in trainer.batches.epoch(torch.Generator().manual_seed(0)))
    start = process_time()
    trainer.step()
    trained = (process_time() - start) / steps
    start = process_time()
    filtered = Filter.of(problem)
    prepared = process_time() - start
    network.eval()
    logits = AtomLogits(network, Ungrounded(), problem.train)
    start = process_time()
    rank(logits, problem.test, problem.knowledge.base, filtered, sample=QUERIES)
    ranked = process_time() - start
    weights = sum(parameter.numel() * parameter.element_size() for parameter in network.parameters())
    print(
        json.dumps(
            {
                "constants": len(problem.knowledge.language.constants),
                "read_seconds": read,
                "step_seconds": trained,
                "query_seconds": ranked / QUERIES,
                "filter_seconds": prepared,
                "weight_bytes": weights,
            }
        )
    )


if __name__ == "__main__":
    main()
