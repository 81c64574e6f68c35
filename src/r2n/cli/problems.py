"""The command line: r2n check, ground, mine, datasets."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from r2n.cli.screen import (
    EngineOption,
    JsonOption,
    MemoryOption,
    OnErrorOption,
    ProblemArgument,
    ScreenTable,
    SetOption,
    by_kind,
    new_path,
    print_json,
    print_rejected,
    progress,
    screen,
    shortened,
)
from r2n.data.herbrand import Codes, union
from r2n.data.knowledge_base import as_trained, reciprocal_codes
from r2n.data.problem import TRAIN, Problem, read_problem_file
from r2n.data.validation import contradictions
from r2n.datasets.benchmarks import DATASETS, load
from r2n.datasets.download import download
from r2n.datasets.generated import LARGE, GraphOptions, generate
from r2n.errors import ConfigError, counted, nearest
from r2n.files import take_away
from r2n.grounding.cache import fingerprint, is_partitioned, read_grounding, read_partitioned, write_grounding
from r2n.grounding.ground_rules import Grounder, Grounding, GroundRules, distinct_codes
from r2n.grounding.remote import ground_select, open_problem, rule_query, scratch_beside, why_not_remote, write_remote
from r2n.grounding.spark import SparkEngine
from r2n.grounding.store import Ceiling, Store
from r2n.grounding.strategies import make_engine, make_grounder, plans, reached_atoms, reached_by
from r2n.logic.theory import printed_predicate
from r2n.mining.constraints import Constraint, mine_constraints
from r2n.mining.mine import Mining, MiningOptions, check_theory_path, mine_rules, mined_theory, write_theory
from r2n.model.choices import choose_options
from r2n.model.memory import parse_size
from r2n.model.preflight import cost_warnings, preflight_warnings
from r2n.options import GroundingOptions, Options, chosen
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


def ground_remotely(
    problem: str,
    engine: str,
    memory: int | None,
    changes: dict[str, Any],
    out: Path | None,
    *,
    explain: bool,
    as_json: bool,
) -> bool:
    """Ground a problem whose tables Spark can read itself; False if this process has to read them, and it says why."""
    spark = make_engine(engine, memory)
    path = Path(problem) / "problem.toml" if Path(problem).is_dir() else Path(problem)
    if not isinstance(spark, SparkEngine) or problem in DATASETS or not path.exists():
        return False
    file = read_problem_file(path)
    options = chosen(GroundingOptions, file.grounding, changes)
    reason = why_not_remote(file, options)
    if reason is not None:
        typer.echo(f"the facts are read in this process, and Spark answers the queries: {reason}", err=True)
        return False
    grounder, name = make_grounder(options), file.name or path.parent.resolve().name
    if explain or out is None:
        shared = Path(tempfile.gettempdir()) if spark.is_local else path.parent
        with scratch_beside(shared / "r2n-plans") as scratch:
            tables = open_problem(spark, file, path.parent, scratch)
            selects = [
                (rule, ground_select(tables, rule_query(tables, grounder, rule))) for rule in tables.theory.rules
            ]
            plans = [{"rule": rule.name, "plan": spark.explain(select)} for rule, select in selects]
        if as_json:
            print_json(plans)
        for plan in () if as_json else plans:
            typer.echo(f"rule {plan['rule']}\n{plan['plan']}\n")
        return True
    with progress(name) as shown, scratch_beside(out) as scratch:
        shown("read", 0, 0)
        tables = open_problem(spark, file, path.parent, scratch)
        found = write_remote(tables, grounder, out, scratch, shown)
    total, rules = (
        sum(part.ground_rules for part in found),
        list(zip(map(str, tables.theory.rules), found, strict=True)),
    )
    if as_json:
        rows = [
            {
                "name": part.name,
                "rule": rule,
                "estimate": part.estimate,
                "ground_rules": part.ground_rules,
                "seconds": round(part.seconds, 6),
            }
            for rule, part in rules
        ]
        print_json({"ground_rules": total, "rules": rows, "from_cache": False})
    else:
        table = ScreenTable(title=f"{name}, grounded by Spark")
        table.add_column("rule", overflow="fold")
        for column in ("estimate", "ground rules", "seconds"):
            table.add_column(column, justify="right", no_wrap=True)
        for rule, part in rules:
            table.add_texts([shortened(rule), f"{part.estimate:,}", f"{part.ground_rules:,}", f"{part.seconds:.3f}"])
        screen().print(table)
        screen().print(counted(total, "ground rule"), highlight=False)
    typer.echo(f"written to {out}", err=True)
    return True


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


_DEFAULTS = MiningOptions()


def mine(
    problem: ProblemArgument,
    out: Annotated[
        Path | None, typer.Option(parser=new_path, metavar="FILE.r2n", help="Write the theory here, not to the screen.")
    ] = None,
    max_length: Annotated[int, typer.Option(help="Atoms of a body, 1 to 3.")] = _DEFAULTS.max_length,
    max_rules: Annotated[int, typer.Option(help="Of each predicate as head and each length.")] = _DEFAULTS.max_rules,
    min_support: Annotated[int, typer.Option(help="Pairs that a rule gets right.")] = _DEFAULTS.min_support,
    min_confidence: Annotated[float, typer.Option(help="Share of them in all it says.")] = _DEFAULTS.min_confidence,
    seconds: Annotated[float | None, typer.Option(help="Stop the search for rules after this time.")] = None,
    constants: Annotated[bool, typer.Option("--constants", help="Rules with constants too.")] = False,
    constraints: Annotated[bool, typer.Option("--constraints", help="Constraints too, as rules.")] = False,
    max_exceptions: Annotated[float, typer.Option(help="Share of exceptions that a constraint may have.")] = 0.0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Without the rules that the problem has already.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of samples, where a graph is large.")] = 0,
    engine: EngineOption = None,
    on_error: OnErrorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Mine rules and constraints from the training facts of a problem: a theory file with weights."""
    options = MiningOptions(max_length, max_rules, min_support, min_confidence, constants, seconds, seed=seed)
    if not 0 <= max_exceptions <= 1:
        raise ConfigError(f"--max-exceptions is {max_exceptions}", hint="give a share from 0 to 1")
    if out is not None:
        check_theory_path(out)
    with progress(problem) as shown:
        shown("read", 0, 0)
        loaded = load(problem, on_error=on_error)
        mining = mine_rules(loaded.knowledge, options, shown, None if engine is None else make_engine(engine))
        held = mine_constraints(loaded.knowledge, max_exceptions, min_support) if constraints else ()
    _, text = mined_theory(loaded.knowledge.theory, mining.rules, held, fresh=fresh)
    if out is not None:
        write_theory(out, text)
    if as_json:
        print_json(_document(mining, held))
    elif out is None:
        typer.echo(text, nl=False)
    _say_what_was_done(mining, held, out)


def _say_what_was_done(mining: Mining, constraints: tuple[Constraint, ...], out: Path | None) -> None:
    """On standard error: standard output is the theory or JSON."""
    typer.echo(f"{len(mining.rules):,} rules, {len(constraints):,} constraints mined", err=True)
    if mining.unwritable:
        typer.echo(f"{mining.unwritable:,} rules left out: no declared domain fits one of their variables", err=True)
    if mining.sampled:
        typer.echo(f"{mining.sampled:,} rules counted on a sample of first constants: estimates", err=True)
    if mining.stopped is not None:
        typer.echo(f"the time was over at {mining.stopped}", err=True)
    if out is not None:
        typer.echo(f"written to {out}", err=True)


def _document(mining: Mining, constraints: tuple[Constraint, ...]) -> dict[str, Any]:
    return {
        "rules": [
            {
                "name": mined.rule.name,
                "rule": str(mined.rule),
                "support": mined.support,
                "body_pairs": mined.body_pairs,
                "pca_pairs": mined.pca_pairs,
                "confidence": mined.confidence,
                "pca_confidence": mined.pca_confidence,
                "sample": mined.sample,
            }
            for mined in mining.rules
        ],
        "constraints": [
            {
                "kind": constraint.kind,
                "predicates": constraint.predicates,
                "support": constraint.support,
                "exceptions": constraint.exceptions,
                "constants": constraint.constants,
            }
            for constraint in constraints
        ],
        "unwritable": mining.unwritable,
        "stopped": mining.stopped,
    }


datasets_app = typer.Typer(no_args_is_help=True, help="Known problems.")


@datasets_app.command("list")
def list_datasets(as_json: JsonOption = False) -> None:
    """The known problems."""
    if as_json:
        print_json([_dataset_row(name) for name in DATASETS])
        return
    table = ScreenTable("name", "title", "licence", "where", box=None, header_style="dim")
    for name, dataset in DATASETS.items():
        where = "in the package" if dataset.is_embedded else "download"
        table.add_texts([name, dataset.title, dataset.licence, where])
    screen().print(table)


def _dataset_row(name: str) -> dict[str, Any]:
    dataset = DATASETS[name]
    return {"name": name, "title": dataset.title, "licence": dataset.licence, "embedded": dataset.is_embedded}


@datasets_app.command("show")
def show_dataset(name: Annotated[str, typer.Argument()], as_json: JsonOption = False) -> None:
    """What is in a known problem."""
    check(name, as_json=as_json)


@datasets_app.command("download")
def download_dataset(name: Annotated[str, typer.Argument()]) -> None:
    """Fetch a known problem that does not travel with the package."""
    dataset = DATASETS.get(name)
    if dataset is None:
        hint = nearest(name, DATASETS) or f"known: {', '.join(DATASETS)}"
        raise ConfigError(f"'{name}' is no known dataset", hint=hint)
    if dataset.is_embedded:
        typer.echo(f"{name} is in the package: nothing to download")
        return
    with progress(name) as shown:
        folder = download(dataset.folder, progress=shown)
    typer.echo(f"{name} is in {folder}")


@datasets_app.command("generate")
def generate_dataset(
    folder: Annotated[Path | None, typer.Argument(parser=new_path, help="The new folder of the problem: text.")] = None,
    facts: Annotated[int | None, typer.Option(help="Those kept back as queries included.")] = None,
    constants: Annotated[int | None, typer.Option(help="With --out by default a tenth of the facts.")] = None,
    relations: Annotated[int | None, typer.Option()] = None,
    rules: Annotated[int | None, typer.Option(help="Of which a fifth is false.")] = None,
    noise: Annotated[float | None, typer.Option(help="Share of facts that are noise.")] = None,
    communities: Annotated[int | None, typer.Option(help="Of constants.")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    out: Annotated[Path | None, typer.Option(parser=new_path, help="The new folder instead: Parquet.")] = None,
) -> None:
    """Generate a graph with planted rules, exceptions and noise, to try r2n on."""
    numbers = {"facts": facts, "constants": constants, "relations": relations, "rules": rules, "noise": noise}
    given: dict[str, Any] = {**numbers, "communities": communities, "seed": seed}
    made = out or folder
    if made is None or (folder and out):
        raise ConfigError("name one folder", hint="FOLDER for text, or --out DIR for Parquet")
    defaults = GraphOptions() if out is None else LARGE
    options = replace(defaults, **{name: value for name, value in given.items() if value is not None})
    with progress(str(made)) as shown:
        found = generate(options, made, "tsv" if out is None else "parquet", shown)
    sizes = ", ".join(f"{name} {size:,}" for name, size in found.items())
    typer.echo(f"{options.facts:,} facts ({sizes}), {options.rules:,} rules, in {made}")
