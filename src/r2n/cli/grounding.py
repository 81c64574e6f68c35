"""The command line: r2n ground."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from r2n.cli.rejected import print_rejected
from r2n.cli.remote_grounding import ground_remotely
from r2n.cli.screen import (
    EngineOption,
    JsonOption,
    MemoryOption,
    OnErrorOption,
    ProblemArgument,
    ScreenTable,
    new_path,
    print_json,
    progress,
    screen,
    shortened,
)
from r2n.datasets.benchmarks import load
from r2n.errors import ConfigError, counted
from r2n.grounding.cache import fingerprint, read_grounding, write_grounding
from r2n.grounding.ceiling import Ceiling
from r2n.grounding.ground_rules import Grounder, Grounding, GroundRules, distinct_codes
from r2n.grounding.partitioned import is_partitioned, read_partitioned
from r2n.grounding.plans import plans
from r2n.grounding.reach import reached_atoms, reached_by
from r2n.grounding.store import Store
from r2n.grounding.strategies import make_engine, make_grounder
from r2n.knowledge.code_sets import union
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.options import GroundingOptions, chosen
from r2n.knowledge.problem import TRAIN, Problem
from r2n.knowledge.reciprocal import as_trained, reciprocal_codes
from r2n.runs.memory import parse_size
from r2n.whole_files import take_away

OutOption = Annotated[
    Path | None, typer.Option(parser=new_path, help="Keep the grounding here, and read it if it is here.")
]


def ground(
    problem: ProblemArgument,
    strategy: Annotated[Literal["full", "known-body", "backward"] | None, typer.Option()] = None,
    width: Annotated[int | None, typer.Option(min=0, help="backward: unknown body atoms allowed.")] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="backward: steps.")] = None,
    queries: Annotated[str | None, typer.Option(metavar="SPLIT", help="Ground for this split's queries only.")] = None,
    max_groundings: Annotated[int | None, typer.Option(min=0, help="The budget of a rule.")] = None,
    out: OutOption = None,
    engine: EngineOption = None,
    memory: MemoryOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the engine's plans, and ground nothing.")] = False,
    on_error: OnErrorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ground the rules of a problem and show, rule by rule, what that gives."""
    given = {"strategy": strategy, "width": width, "depth": depth, "max_groundings": max_groundings}
    changes = {name: value for name, value in given.items() if value is not None}
    limit = None if memory is None else parse_size(memory)
    may_be_remote = on_error is None and queries is None and (out is not None or explain)
    if (
        may_be_remote
        and engine
        and ground_remotely(problem, engine, limit, changes, out, explain=explain, as_json=as_json)
    ):
        return
    loaded, options = _loaded(problem, on_error, changes)
    store = Store(loaded.knowledge, make_engine(engine or "duckdb", limit), Ceiling(limit))
    asked, mirrored, both = _asked(loaded, queries)
    if explain:
        _print_plans(store, make_grounder(options), both, as_json)
        return
    start_atoms = union(both, loaded.atoms) if queries is None else both
    grounding, was_kept = _ground(store, loaded.name, make_grounder(options), both, start_atoms, out)
    reached = int((reached_atoms(grounding, asked) | reached_atoms(grounding, mirrored)).sum())
    if as_json:
        print_json(_grounding_document(loaded, grounding, reached, len(asked), was_kept))
        return
    _print_grounding(loaded, options, grounding, reached, len(asked))
    if out is not None:
        typer.echo(f"{'read from' if was_kept else 'written to'} {out}", err=True)
    print_rejected(loaded.report.rejected, more="r2n check P --all")


def _loaded(problem: str, on_error: str | None, changes: dict[str, Any]) -> tuple[Problem, GroundingOptions]:
    """The problem in the language that it is trained in, and the options of its grounding."""
    with progress(problem) as shown:
        shown("read", 0, 0)
        loaded = load(problem, on_error=on_error)
    options = chosen(GroundingOptions, loaded.options.grounding, changes)
    return replace(loaded, knowledge=as_trained(loaded.knowledge, options)), options


def _asked(problem: Problem, split: str | None) -> tuple[Codes, Codes, Codes]:
    """What is asked, its reciprocals (-1 where there is none), and both."""
    asked = _queries(problem, split)
    mirrored = reciprocal_codes(problem.knowledge.base, asked)
    return asked, mirrored, union(asked, mirrored[mirrored >= 0])


def _print_plans(store: Store, grounder: Grounder, asked: Codes, as_json: bool) -> None:
    found = [(rule.name, plan) for rule, plan in plans(store, grounder, asked)]
    if as_json:
        print_json([{"rule": name, "plan": plan} for name, plan in found])
        return
    for name, plan in found:
        typer.echo(f"rule {name}\n{plan}\n")


def _queries(problem: Problem, split: str | None) -> Codes:
    """The codes of one split's atoms; of all queries where no split is named."""
    splits = {TRAIN: problem.train, **problem.queries}
    if split is None:
        return distinct_codes([part.atoms for part in problem.queries.values()])
    if split not in splits:
        raise ConfigError(f"the problem has no split '{split}'", hint=f"it has: {', '.join(splits)}")
    return splits[split].atoms


def _ground(
    store: Store, name: str, grounder: Grounder, asked: Codes, start: Codes, out: Path | None
) -> tuple[Grounding, bool]:
    """The part of the grounding that the start atoms feel, and whether it was read from `out`."""
    knowledge = store.knowledge
    digest = fingerprint(knowledge, grounder, np.concatenate([asked, start]))
    if out is not None:
        take_away(out.parent, out.name)
    if out is not None and is_partitioned(out):
        in_parts = read_partitioned(out, knowledge, grounder)
        kept = None if in_parts is None else reached_by(in_parts, start)
    else:
        kept = read_grounding(out, knowledge.theory, digest) if out is not None else None
    if kept is not None:
        return kept, True
    with progress(name) as shown:
        shown("ground", 0, 0)
        grounding = reached_by(grounder.ground(store, asked, shown), start)
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
