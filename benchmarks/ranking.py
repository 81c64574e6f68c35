"""How fast queries are ranked, as ratios measured in one run.

- filtered ranking of the test facts of WN18RR, both sides, among all constants, by ComplEx of 100 complex numbers with
  random weights: r2n against PyKEEN's evaluator on the same weights, which must find the same mean reciprocal rank.
"""

import json
import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

import r2n
from r2n.data.problem import Problem
from r2n.errors import DataError
from r2n.evaluation.ranking import Filter, rank
from r2n.network.graph_sources import Ungrounded
from r2n.network.r2n import R2N
from r2n.scoring import AtomLogits

sys.path.insert(0, str(Path(__file__).parent))
from grounding import compared, print_rows, ratio_row, seconds_of

DIM, REPEATS = 100, 1
PYKEEN_BATCH = 16  # took 99 CPU-seconds, 256 took 131


def ours(problem: Problem, network: R2N) -> Callable[[], float]:
    """The mean reciprocal rank by r2n, from the weights to the report."""

    def ranked() -> float:
        logits = AtomLogits(network, Ungrounded(), problem.train)
        return rank(logits, problem.test, problem.knowledge.base, Filter.from_problem(problem)).metrics["mrr"]

    return ranked


def theirs(problem: Problem, network: R2N) -> Callable[[], float]:
    """The same by PyKEEN, with the same weights."""
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import ComplEx
    from pykeen.triples import CoreTriplesFactory

    base = problem.knowledge.base

    def triples(codes: np.ndarray) -> torch.Tensor:
        index, arguments = base.decode(codes)
        return torch.from_numpy(np.stack([arguments[:, 0], index, arguments[:, 1]], axis=1))

    train, valid, test = (triples(part.atoms[part.truth]) for part in (problem.train, problem.valid, problem.test))
    factory = CoreTriplesFactory(
        train, num_entities=len(base.language.constants), num_relations=len(base.language.predicates)
    )
    model = ComplEx(triples_factory=factory, embedding_dim=DIM, random_seed=0)
    parts = (
        (model.entity_representations[0], network.constants.vectors),
        (model.relation_representations[0], network.atom_embedding.vectors),  # pyright: ignore
    )
    for theirs_, ours_ in parts:
        re, im = ours_.detach().chunk(2, dim=1)
        theirs_._embeddings.weight.data = torch.stack([re, im], dim=-1).flatten(1)  # pyright: ignore

    def ranked() -> float:
        evaluator = RankBasedEvaluator(filtered=True, clear_on_finalize=False)
        evaluator.evaluate(
            model, test, batch_size=PYKEEN_BATCH, use_tqdm=False, additional_filter_triples=[train, valid]
        )
        for found in evaluator.ranks.values():  # kept in single precision, and averaged in it
            found[:] = [part.astype(np.float64) for part in found]
        return evaluator.finalize().get_metric("both.realistic.inverse_harmonic_mean_rank")

    return ranked


def ranking_against_pykeen() -> dict[str, Any]:
    """How many times faster than PyKEEN's evaluator WN18RR is ranked."""
    problem = r2n.load("wn18rr")
    torch.manual_seed(0)
    network = R2N.build(problem.knowledge, input="complex", dim=DIM, reasoner="none")
    one, other, found = ours(problem, network), theirs(problem, network), []
    one()
    ratios = compared(
        lambda: seconds_of(lambda: found.append(other())),
        lambda: seconds_of(lambda: found.append(one())),
        REPEATS,
        torch.set_num_threads,
    )
    if max(found) - min(found) > 1e-6:
        raise SystemExit(f"r2n and PyKEEN disagree on the mean reciprocal rank: {sorted(set(found))}")
    return ratio_row(f"ranking of WN18RR by ComplEx, dim {DIM}, times faster", "PyKEEN's evaluator", ratios, ">= 3")


def main(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Measure, and print the table."""
    try:
        rows = [ranking_against_pykeen()]
    except DataError as error:
        typer.echo(f"left out: WN18RR is not here ({error.what})", err=True)
        return
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        print_rows(rows)


if __name__ == "__main__":
    typer.run(main)
