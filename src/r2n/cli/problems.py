"""The command line: r2n check."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from r2n.cli.rejected import by_kind, print_rejected
from r2n.cli.screen import (
    JsonOption,
    OnErrorOption,
    ProblemArgument,
    ScreenTable,
    SetOption,
    print_json,
    progress,
    screen,
    shortened,
)
from r2n.datasets.benchmarks import load
from r2n.errors import counted
from r2n.knowledge.contradictions import contradictions
from r2n.knowledge.options import Options
from r2n.knowledge.problem import TRAIN, Problem
from r2n.logic.theory import printed_predicate
from r2n.runs.chosen import choose_options
from r2n.runs.cost import cost_warnings
from r2n.runs.preflight import preflight_warnings
from r2n.visible import visible


def check(
    problem: ProblemArgument,
    changes: SetOption = None,
    on_error: OnErrorOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Every row that was skipped.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Read a problem and say what is in it, what is wrong with it, and what a training would not make good."""
    with progress(problem) as shown:
        shown("read", 0, 0)
        loaded = load(problem, on_error=on_error)
        summary = summary_of(loaded, changes or ())
    if as_json:
        print_json(summary)
        return
    console = screen()
    console.print(
        Text.assemble((visible(loaded.name), "bold"), f": {summary['herbrand_base']:,} ground atoms"), highlight=False
    )
    _print_pairs(console, "domain", "constants", summary["domains"])
    _print_pairs(console, "predicate", "known true / false", summary["predicates"])
    _print_pairs(console, "split", "atoms", summary["splits"])
    for what, unit in (("candidates", "atoms"), ("features", "constants")):
        if summary[what]:
            _print_pairs(console, what, unit, summary[what])
    for rule in loaded.knowledge.theory.rules:
        console.print(Text(visible(shortened(str(rule)))))
    _print_remarks(console, loaded)
    print_rejected(loaded.report.rejected, everything=everything)
    for text in summary["chosen"]:
        console.print(Text(f"chosen: {text}"))
    for text in (*(f"r2n train refuses this: {refusal}" for refusal in summary["refusals"]), *summary["warnings"]):
        typer.echo(f"warning: {text}", err=True)


def _print_remarks(console: Console, problem: Problem) -> None:
    """What was read and made no difference, or was taken for a header."""
    for note in problem.report.notes:
        console.print(Text(visible(note)))
    for domain, count in problem.report.unused_features:
        if count:
            console.print(Text(f"{domain}: {counted(count, 'row')} of features of constants that do not occur"))
    for split, count in problem.report.empty:
        console.print(Text(f"{split}: {counted(count, 'row')} with an empty cell (skipped)"))
    for split, count in problem.report.duplicates:
        if count:
            console.print(Text(f"{split}: {counted(count, 'duplicate fact')} (counted once)"))


def summary_of(problem: Problem, changes: Sequence[str] = ()) -> dict[str, Any]:
    """What `r2n check` says of a problem, with options changed."""
    options, choices = choose_options(problem, problem.options.changed(changes))
    return {**_summary(problem, options), "chosen": [str(choice) for choice in choices]}


def _summary(problem: Problem, options: Options) -> dict[str, Any]:
    language, knowledge = problem.knowledge.language, problem.knowledge
    known = {p.name: (len(knowledge.facts(p)), len(knowledge.false_facts(p))) for p in language.predicates}
    return {
        "name": problem.name,
        "herbrand_base": knowledge.base.size,
        "domains": {domain.name: len(language.members(domain)) for domain in language.domains},
        "predicates": {printed_predicate(p): f"{known[p.name][0]} / {known[p.name][1]}" for p in language.predicates},
        "rules": len(knowledge.theory.rules),
        "splits": {TRAIN: len(problem.train), **{name: len(part) for name, part in problem.queries.items()}},
        "candidates": {name: len(codes) for name, codes in knowledge.candidates.items()},
        "features": {name: len(part) for name, part in knowledge.features.items()},
        "unused_features": dict(problem.report.unused_features),
        "duplicates": dict(problem.report.duplicates),
        "empty": dict(problem.report.empty),
        "rejected_kinds": {kind: len(errors) for kind, errors in by_kind(problem.report.rejected).items()},
        "rejected": [str(error) for error in problem.report.rejected],
        "refusals": [str(error) for error in contradictions(problem, options)],
        "notes": list(problem.report.notes),
        "warnings": [
            *problem.report.warnings,
            *preflight_warnings(problem, options),
            *cost_warnings(problem, options),
        ],
    }


def _print_pairs(console: Console, left: str, right: str, pairs: dict[str, Any]) -> None:
    table = ScreenTable(left, right, box=None, pad_edge=False, header_style="dim")
    for name, value in pairs.items():
        table.add_texts([name, f"{value:,}" if isinstance(value, int) else value])
    console.print(table)
