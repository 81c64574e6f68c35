"""The command line: r2n infer."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from r2n.cli.screen import JsonOption, ProblemArgument, ScreenTable, print_json, progress, screen
from r2n.cli.training import SetOption
from r2n.datasets.benchmarks import load
from r2n.errors import ConfigError
from r2n.knowledge.herbrand import HerbrandBase

if TYPE_CHECKING:  # torch takes seconds to import: this comes in where it is used
    from r2n.prediction.inference import Believed


class MethodName(StrEnum):
    """How beliefs are passed."""

    PAPER = "paper"
    MAX_PRODUCT = "max-product"
    SUM_PRODUCT = "sum-product"


QuestionArgument = Annotated[
    str | None, typer.Argument(help='An atom; ? stands for what is asked (default: the "test" queries).')
]
MethodOption = Annotated[MethodName, typer.Option(help="paper: its max-product recursion; the others: the textbook's.")]


def infer(
    problem: ProblemArgument,
    question: QuestionArgument = None,
    method: MethodOption = MethodName.SUM_PRODUCT,
    iterations: Annotated[int, typer.Option(min=0)] = 10,
    damping: Annotated[float, typer.Option(min=0, max=0.99, help="The share of the old messages.")] = 0.0,
    prior: Annotated[float, typer.Option(min=0, max=1, help="The belief in what is not known.")] = 0.5,
    beliefs: Annotated[Path | None, typer.Option(metavar="RUN", help="Start from a trained network's beliefs.")] = None,
    changes: SetOption = None,
    top: Annotated[int, typer.Option(min=1, help="How many answers.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Answer from facts and rules alone, without training, by belief propagation."""
    from r2n.prediction.answers import Question
    from r2n.prediction.inference import believe
    from r2n.prediction.trained import Trained

    with progress(problem) as shown:
        shown("read", 0, 0)
        loaded = load(problem)
        if question is None and "test" not in loaded.queries:
            raise ConfigError("the problem has no queries 'test'", hint='ask for atoms: r2n infer P "likes(ann, ?)"')
        base = loaded.knowledge.base
        shown("infer", 0, 0)
        found = believe(
            loaded,
            loaded.options.changed(changes or ()),
            loaded.test.atoms if question is None else Question.parse(base, question).codes(),
            method=method.value,
            iterations=iterations,
            damping=damping,
            prior=prior,
            trained=None if beliefs is None else Trained.load(beliefs),
        )
    answers = _most_probable(base, found, top)
    if as_json:
        print_json({"problem": loaded.name, "method": method.value, "iterations": iterations, "answers": answers})
    else:
        _print_answers(f"{loaded.name}: {method.value}", answers)


def _most_probable(base: HerbrandBase, found: "Believed", top: int) -> list[dict[str, Any]]:
    order = np.argsort(-found.probability, kind="stable")[:top]
    return [
        {"atom": name, "probability": float(found.probability[i]), "reached": bool(found.reached[i])}
        for i, name in zip(order, base.names(found.atoms[order]), strict=True)
    ]


def _print_answers(title: str, answers: list[dict[str, Any]]) -> None:
    table = ScreenTable("atom", "probability", title=title)
    for item in answers:
        mark = "" if item["reached"] else " (no ground rule)"
        table.add_texts([item["atom"], f"{item['probability']:.4f}{mark}"])
    screen().print(table)
