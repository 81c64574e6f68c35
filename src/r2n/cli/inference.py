"""The command line: r2n infer."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from r2n.cli.report_table import print_report
from r2n.cli.screen import JsonOption, ProblemArgument, ScreenTable, SetOption, print_json, progress, screen, shortened
from r2n.datasets.benchmarks import load
from r2n.errors import ConfigError
from r2n.knowledge.herbrand import HerbrandBase
from r2n.knowledge.knowledge_base import Evidence
from r2n.knowledge.options import MOST_STEPS

if TYPE_CHECKING:  # torch takes seconds to import: these come in where they are used
    from r2n.evaluation.evaluate import Report
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
    iterations: Annotated[int, typer.Option(min=0, max=MOST_STEPS)] = 10,
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
    told: dict[str, Any] = {"problem": loaded.name, "method": method.value, "iterations": iterations}
    told["no_world"] = None if found.clash is None else [str(rule) for rule in found.clash.rules]
    told["answers"] = _most_probable(base, found, top, loaded.test if question is None else None)
    report = found.report(loaded, "test") if question is None else None
    _tell(told, report, is_split=question is None, as_json=as_json)


def _most_probable(base: HerbrandBase, found: "Believed", top: int, queries: Evidence | None) -> list[dict[str, Any]]:
    """The answers, to `queries` with their labels.

    What is known of them: true, false, closed (false, since it is no fact), or nothing.
    """
    order = np.argsort(-found.probability, kind="stable")[:top]
    words = {(1, True): "true", (0, True): "false", (0, False): "closed"}
    return [
        {
            "atom": name,
            "probability": float(found.probability[i]),
            "reached": bool(found.reached[i]),
            "known": words.get((int(found.truths[i]), bool(found.is_stated[i]))),
            **({} if queries is None else {"label": bool(queries.truth[i])}),
        }
        for i, name in zip(order, base.names(found.atoms[order]), strict=True)
    ]


def _tell(told: dict[str, Any], report: "Report | None", *, is_split: bool, as_json: bool) -> None:
    """The answers, and the metrics of a split that they answer; first of all, that no world satisfies the rules."""
    if told["no_world"] is not None:
        rules = "".join(f"\n  {shortened(rule)}" for rule in told["no_world"])
        typer.echo(
            f"warning: no world satisfies these rules, which hold strictly, and what is known:{rules}\n"
            "  the probabilities are those of worlds that break as few of them as they can: give one of them a weight,"
            " as in rule r [2.0]: ..., or mend it",
            err=True,
        )
    if is_split and report is None:
        typer.echo("the queries 'test' are all true: only a ranking would measure them (r2n evaluate)", err=True)
    document = None if report is None else report.to_dict()
    if as_json:
        print_json({**told, "metrics": document and document["metrics"]} if is_split else told)
        return
    if document is not None:
        print_report(document, told["problem"])
    _print_answers(f"{told['problem']}: {told['method']}", told["answers"])


def _print_answers(title: str, answers: list[dict[str, Any]]) -> None:
    has_labels = any("label" in item for item in answers)
    table = ScreenTable("atom", "probability", "known", *["label"] * has_labels, title=title)
    for item in answers:
        known = item["known"] or ("" if item["reached"] else "(no ground rule)")
        label = [str(item["label"]).lower()] if has_labels else []
        table.add_texts([item["atom"], f"{item['probability']:.4f}", known, *label])
    screen().print(table)
