"""Problems with candidates: which of some things are the same, labelled true and false, or ranked."""

from collections.abc import Mapping

import pyarrow as pa

from r2n.data.candidates import Candidates
from r2n.data.problem import Problem
from r2n.data.tables import Table
from r2n.logic.parser import parse_theory
from r2n.options import Options

THEORY = """
domain thing
predicate same(thing, thing)
rule transitive: same(x, y) & same(y, z) -> same(x, z)
"""
THINGS: tuple[str, ...] = ("red_car", "red_bus", "blue_car", "blue_bus", "old_tram", "tram")
Labels = Mapping[tuple[str, str], bool]


def table(labels: Labels) -> Table:
    """Labels as a table of the predicate."""
    columns = {"a": [a for a, _ in labels], "b": [b for _, b in labels], "label": [int(t) for t in labels.values()]}
    return Table(pa.table(columns), "same")


def things_problem(
    train: Labels, test: Labels, candidates: Candidates, *changes: str, things: tuple[str, ...] = THINGS
) -> Problem:
    options = Options().changed(["model.dim=6", "model.layers=2", "training.epochs=2", *changes])
    return Problem.build(
        "things",
        parse_theory(THEORY),
        [table(train)],
        {"test": [table(test)]},
        domains={"thing": things},
        candidates={"same": candidates},
        options=options,
    )
