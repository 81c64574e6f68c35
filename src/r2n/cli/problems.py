"""The command line: r2n check, r2n ground."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
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
    new_path,
    print_json,
    progress,
    screen,
    shortened,
)
from r2n.datasets.benchmarks import load
from r2n.errors import ConfigError, counted
from r2n.grounding.cache import fingerprint, read_grounding, write_grounding
from r2n.grounding.ground_rules import Grounder, Grounding, GroundRules, distinct_codes
from r2n.grounding.prospects import doubts
from r2n.grounding.reach import reached_atoms, reached_by
from r2n.grounding.store import Store
from r2n.grounding.strategies import make_grounder
from r2n.knowledge.contradictions import contradictions
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.options import GroundingOptions, Options, chosen
from r2n.knowledge.problem import TRAIN, Problem
from r2n.knowledge.reciprocal import as_trained, reciprocal_codes
from r2n.logic.theory import printed_predicate
from r2n.runs.chosen import choose_options


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
    console.print(Text.assemble((loaded.name, "bold"), f": {summary['herbrand_base']:,} ground atoms"), highlight=False)
    _print_pairs(console, "domain", "constants", summary["domains"])
    _print_pairs(console, "predicate", "known true / false", summary["predicates"])
    _print_pairs(console, "split", "atoms", summary["splits"])
    for what, unit in (("candidates", "atoms"), ("features", "constants")):
        if summary[what]:
            _print_pairs(console, what, unit, summary[what])
    for rule in loaded.knowledge.theory.rules:
        console.print(Text(shortened(str(rule))))
    _print_remarks(console, loaded)
    print_rejected(loaded.report.rejected, everything=everything)
    for text in summary["chosen"]:
        console.print(Text(f"chosen: {text}"))
    for text in (*(f"r2n train refuses this: {refusal}" for refusal in summary["refusals"]), *summary["warnings"]):
        typer.echo(f"warning: {text}", err=True)


def _print_remarks(console: Console, problem: Problem) -> None:
    """What was read and made no difference."""
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
        "warnings": doubts(problem, options),
    }


def _print_pairs(console: Console, left: str, right: str, pairs: dict[str, Any]) -> None:
    table = ScreenTable(left, right, box=None, pad_edge=False, header_style="dim")
    for name, value in pairs.items():
        table.add_texts([name, f"{value:,}" if isinstance(value, int) else value])
    console.print(table)


def ground(
    problem: ProblemArgument,
    strategy: Annotated[Literal["full", "known-body", "backward"] | None, typer.Option()] = None,
    width: Annotated[int | None, typer.Option(min=0, help="backward: unknown body atoms allowed.")] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="backward: steps.")] = None,
    queries: Annotated[str | None, typer.Option(metavar="SPLIT", help="Ground for this split's queries only.")] = None,
    max_groundings: Annotated[int | None, typer.Option(min=0, help="The budget of a rule.")] = None,
    out: Annotated[
        Path | None, typer.Option(parser=new_path, help="Keep the grounding here, and read it if it is here.")
    ] = None,
    on_error: OnErrorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ground the rules of a problem and show, rule by rule, what that gives."""
    with progress(problem) as shown:
        shown("read", 0, 0)
        loaded = load(problem, on_error=on_error)
    given = {"strategy": strategy, "width": width, "depth": depth, "max_groundings": max_groundings}
    changes = {name: value for name, value in given.items() if value is not None}
    options = chosen(GroundingOptions, loaded.options.grounding, changes)
    loaded = replace(loaded, knowledge=as_trained(loaded.knowledge, options))
    asked = _queries(loaded, queries)
    mirrored = reciprocal_codes(loaded.knowledge.base, asked)
    both = np.union1d(asked, mirrored[mirrored >= 0])
    start_atoms = np.union1d(both, loaded.atoms) if queries is None else both
    grounding, was_kept = _ground(loaded, make_grounder(options), both, start_atoms, out)
    reached = int((reached_atoms(grounding, asked) | reached_atoms(grounding, mirrored)).sum())
    if as_json:
        print_json(_grounding_document(loaded, grounding, reached, len(asked), was_kept))
        return
    _print_grounding(loaded, options, grounding, reached, len(asked))
    if out is not None:
        typer.echo(f"{'read from' if was_kept else 'written to'} {out}", err=True)
    print_rejected(loaded.report.rejected, more="r2n check P --all")


def _queries(problem: Problem, split: str | None) -> Codes:
    """The codes of one split's atoms; of all queries where no split is named."""
    splits = {TRAIN: problem.train, **problem.queries}
    if split is None:
        return distinct_codes([part.atoms for part in problem.queries.values()])
    if split not in splits:
        raise ConfigError(f"the problem has no split '{split}'", hint=f"it has: {', '.join(splits)}")
    return splits[split].atoms


def _ground(
    problem: Problem, grounder: Grounder, asked: Codes, start: Codes, out: Path | None
) -> tuple[Grounding, bool]:
    """The part of the grounding that the start atoms feel, and whether it was read from `out`."""
    knowledge = problem.knowledge
    digest = fingerprint(knowledge, grounder, np.concatenate([asked, start]))
    kept = read_grounding(out, knowledge.theory, digest) if out is not None else None
    if kept is not None:
        return kept, True
    with progress(problem.name) as shown:
        shown("ground", 0, 0)
        grounding = reached_by(grounder.ground(Store(knowledge), asked, shown), start)
    if out is not None:
        write_grounding(grounding, out, digest)
    return grounding, False


def _variables(problem: Problem, part: GroundRules) -> dict[str, tuple[str, int]]:
    domains = problem.knowledge.theory.variable_domains(part.rule)
    members = problem.knowledge.language.members
    return {name: (d.name, len(members(d))) for name, d in zip(part.rule.variables, domains, strict=True)}


def _grounding_document(
    problem: Problem, grounding: Grounding, reached: int, asked: int, was_kept: bool
) -> dict[str, Any]:
    return {
        "ground_rules": len(grounding),
        "atoms": len(grounding.atoms),
        "rules": [
            {
                "name": part.rule.name,
                "rule": str(part.rule),
                "variables": {name: size for name, (_, size) in _variables(problem, part).items()},
                "estimate": part.estimate,
                "ground_rules": len(part),
                "atoms": len(distinct_codes([part.atoms])),
                "seconds": round(part.seconds, 6),
            }
            for part in grounding.ground_rules
        ],
        "queries": {"reached": reached, "unreached": asked - reached},
        "from_cache": was_kept,
    }


def _print_grounding(
    problem: Problem, options: GroundingOptions, grounding: Grounding, reached: int, asked: int
) -> None:
    console = screen()
    table = ScreenTable(title=f"{problem.name}, {options.strategy} grounding")
    for name in ("rule", "variables"):
        table.add_column(name, overflow="fold")
    for name in ("estimate", "ground rules", "atoms", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for part in grounding.ground_rules:
        variables = [f"{name}: {d} ({size:,})" for name, (d, size) in _variables(problem, part).items()]
        numbers = (part.estimate, len(part), len(distinct_codes([part.atoms])))
        shown = [shortened(str(part.rule)), ", ".join(variables)]
        table.add_texts([*shown, *(f"{n:,}" for n in numbers), f"{part.seconds:.3f}"])
    console.print(table)
    size = f"{counted(len(grounding), 'ground rule')} over {counted(len(grounding.atoms), 'atom')}"
    console.print(size, highlight=False)
    console.print(f"queries: {reached:,} reached by a ground rule, {asked - reached:,} not reached", highlight=False)
