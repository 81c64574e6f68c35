"""The command line: r2n infer."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table as ScreenTable

from r2n.cli.screen import JsonOption, ProblemArgument, print_json, screen
from r2n.cli.training import SetOption
from r2n.datasets.benchmarks import load
from r2n.errors import ConfigError


class MethodName(StrEnum):
    """How beliefs are passed."""

    PAPER = "paper"
    MAX_PRODUCT = "max-product"
    SUM_PRODUCT = "sum-product"


def infer(
    problem: ProblemArgument,
    question: Annotated[
        str | None, typer.Argument(help='An atom; ? stands for what is asked (default: the "test" queries).')
    ] = None,
    method: Annotated[
        MethodName, typer.Option(help="paper: its max-product recursion; the others: the textbook's.")
    ] = (MethodName.SUM_PRODUCT),
    iterations: Annotated[int, typer.Option(min=0)] = 10,
    damping: Annotated[float, typer.Option(min=0, max=0.99, help="The share of the old messages.")] = 0.0,
    prior: Annotated[float, typer.Option(min=0, max=1, help="The belief in what is not known.")] = 0.5,
    beliefs: Annotated[Path | None, typer.Option(metavar="RUN", help="Start from a trained network's beliefs.")] = None,
    changes: SetOption = None,
    top: Annotated[int, typer.Option(min=1, help="How many answers.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Answer from facts and rules alone, without training, by belief propagation."""
    from r2n.prediction.answers import parse_question
    from r2n.prediction.inference import believe
    from r2n.runs.run import load_run

    loaded = load(problem)
    if question is None and "test" not in loaded.queries:
        raise ConfigError("the problem has no queries 'test'", hint='ask for atoms: r2n infer P "likes(ann, ?)"')
    base = loaded.knowledge.base
    found = believe(
        loaded,
        loaded.options.changed(changes or ()),
        loaded.test.atoms if question is None else parse_question(base, question),
        method=method.value,
        iterations=iterations,
        damping=damping,
        prior=prior,
        run=None if beliefs is None else load_run(beliefs),
    )
    order = np.argsort(-found.probability, kind="stable")[:top]
    answers = [
        {"atom": name, "probability": float(found.probability[i]), "reached": bool(found.reached[i])}
        for i, name in zip(order, base.names(found.atoms[order]), strict=True)
    ]
    if as_json:
        print_json({"problem": loaded.name, "method": method.value, "iterations": iterations, "answers": answers})
        return
    table = ScreenTable("atom", "probability", title=f"{loaded.name}: {method.value}", title_justify="left")
    for item in answers:
        table.add_row(
            str(item["atom"]), f"{item['probability']:.4f}" + ("" if item["reached"] else " (no ground rule)")
        )
    screen().print(table)
