"""The command line: r2n check, ground, mine, datasets."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.text import Text
from typer import Argument, Option

from r2n.cli import screen as ui
from r2n.data.herbrand import Codes, are_among, union
from r2n.data.knowledge_base import as_trained, reciprocal_codes
from r2n.data.problem import TRAIN, Problem, read_problem_file
from r2n.data.validation import contradictions
from r2n.datasets.benchmarks import DATASETS, download, load
from r2n.datasets.generated import LARGE, GraphOptions, generate
from r2n.errors import ConfigError, counted, nearest
from r2n.files import take_away
from r2n.grounding import cache, remote
from r2n.grounding.ground_rules import Grounder, Grounding, GroundRules, distinct_codes
from r2n.grounding.spark import SparkEngine
from r2n.grounding.store import MemoryBudget, Store
from r2n.grounding.strategies import ground_rules_left_out, make_engine, make_grounder, reached_by
from r2n.logic.theory import Rule, printed_predicate
from r2n.mining.mine import MiningOptions, check_theory_path, mine_constraints, mine_rules, mined_theory, write_theory
from r2n.mining.searches import MOST_WALKS
from r2n.model.choices import choose_options
from r2n.model.memory import parse_size
from r2n.model.preflight import cost_warnings, mining_notes, preflight_warnings
from r2n.options import GroundingOptions, chosen
from r2n.visible import visible


def check(
    problem: ui.ProblemArgument,
    changes: ui.SetOption = None,
    on_error: ui.OnErrorOption = None,
    everything: Annotated[bool, Option("--all", help="Every row that was skipped.")] = False,
    as_json: ui.JsonOption = False,
) -> None:
    """Read a problem and say what is in it, what is wrong with it, and what a training would not make good."""
    with ui.progress(problem) as shown:
        shown("read", 0, 0)
        loaded = load(problem, on_error=on_error)
        summary = summary_of(loaded, changes or ())
    if as_json:
        ui.print_json(summary)
        return
    size = f": {summary['herbrand_base']:,} ground atoms"
    ui.screen().print(Text.assemble((visible(loaded.name), "bold"), size), highlight=False)
    tables = {"domains": "domain, constants", "predicates": "predicate, known true / false", "splits": "split, atoms"}
    tables |= {"candidates": "candidates, atoms", "features": "features, constants"}
    for key, heads in tables.items():
        rows = [[name, f"{n:,}" if isinstance(n, int) else n] for name, n in summary[key].items()]
        if rows or key not in ("candidates", "features"):
            ui.print_table(heads.split(", "), [], rows, box=None, pad_edge=False, header_style="dim")
    read = loaded.report
    unused = [(domain, counted(n, "row")) for domain, n in read.unused_features if n]
    ui.print_text(
        *(ui.shortened(str(rule)) for rule in loaded.knowledge.theory.rules),
        *read.notes,
        *(f"{domain}: {rows} of features of constants that do not occur" for domain, rows in unused),
        *(f"{split}: {counted(n, 'row')} with an empty cell (skipped)" for split, n in read.empty),
        *(f"{split}: {counted(n, 'duplicate fact')} (counted once)" for split, n in read.duplicates if n),
        *(f"chosen: {choice}" for choice in summary["chosen"]),
    )
    ui.print_rejected(read.rejected, everything=everything)
    ui.note(*(f"r2n train refuses this: {refusal}" for refusal in summary["refusals"]), prefix="warning: ")
    ui.note(*summary["warnings"], prefix="warning: ")


def summary_of(problem: Problem, changes: Sequence[str] = ()) -> dict[str, Any]:
    """The content of a problem, and what a training with these options would refuse, choose or warn of."""
    options, choices = choose_options(problem, problem.options.changed(changes))
    language, knowledge, read = problem.knowledge.language, problem.knowledge, problem.report
    known = {p: f"{len(knowledge.facts(p))} / {len(knowledge.false_facts(p))}" for p in language.predicates}
    return {
        "name": problem.name,
        "herbrand_base": knowledge.base.size,
        "domains": {domain.name: len(language.members(domain)) for domain in language.domains},
        "predicates": {printed_predicate(predicate): counts for predicate, counts in known.items()},
        "rules": len(knowledge.theory.rules),
        "splits": {TRAIN: len(problem.train), **{name: len(part) for name, part in problem.queries.items()}},
        "candidates": {name: len(codes) for name, codes in knowledge.candidates.items()},
        "features": {name: len(part) for name, part in knowledge.features.items()},
        "unused_features": dict(read.unused_features),
        "duplicates": dict(read.duplicates),
        "empty": dict(read.empty),
        "rejected_kinds": {kind: len(errors) for kind, errors in ui.by_kind(read.rejected).items()},
        "rejected": [str(error) for error in read.rejected],
        "refusals": [str(error) for error in contradictions(problem, options)],
        "notes": [*read.notes, *mining_notes(problem)],
        "warnings": [*read.warnings, *preflight_warnings(problem, options), *cost_warnings(problem, options)],
        "chosen": [str(choice) for choice in choices],
    }


def ground(
    problem: ui.ProblemArgument,
    strategy: Annotated[Literal["full", "known-body", "backward"] | None, Option()] = None,
    width: Annotated[int | None, Option(min=0, help="backward: unknown body atoms allowed.")] = None,
    depth: Annotated[int | None, Option(min=1, help="backward: steps.")] = None,
    queries: Annotated[str | None, Option(metavar="SPLIT", help="Ground for this split's queries only.")] = None,
    max_groundings: Annotated[int | None, Option(min=0, help="The budget of a rule.")] = None,
    out: Annotated[Path | None, Option(parser=ui.new_path, help="Keep it here, and read it if it is here.")] = None,
    engine: ui.EngineOption = None,
    memory: ui.MemoryOption = None,
    on_error: ui.OnErrorOption = None,
    as_json: ui.JsonOption = False,
) -> None:
    """Ground the rules of a problem and show, rule by rule, what that gives."""
    settings = {"strategy": strategy, "width": width, "depth": depth, "max_groundings": max_groundings}
    changes = {name: value for name, value in settings.items() if value is not None}
    limit = None if memory is None else parse_size(memory)
    is_plain = on_error is None and queries is None
    if engine and out and is_plain and ground_remotely(problem, engine, limit, changes, out, as_json):
        return
    with ui.progress(problem) as shown:
        shown("read", 0, 0)
        loaded = load(problem, on_error=on_error)
    options = chosen(GroundingOptions, loaded.options.grounding, changes)
    if "strategy" not in loaded.options.grounding.model_fields_set | changes.keys():
        given = loaded.options.grounding.model_copy(update=changes)
        for choice in choose_options(loaded, loaded.options.model_copy(update={"grounding": given}))[1]:
            if choice.key == "grounding.strategy":
                options = chosen(GroundingOptions, options, {"strategy": choice.value})
                ui.note(f"chosen: {choice}")
    loaded = replace(loaded, knowledge=as_trained(loaded.knowledge, options))
    splits = {TRAIN: loaded.train, **loaded.queries}
    if queries is not None and queries not in splits:
        raise ConfigError(f"the problem has no split '{queries}'", hint=f"it has: {', '.join(splits)}")
    asked = distinct_codes([q.atoms for q in loaded.queries.values()]) if queries is None else splits[queries].atoms
    reciprocals = reciprocal_codes(loaded.knowledge.base, asked)
    both, grounder = union(asked, reciprocals[reciprocals >= 0]), make_grounder(options)
    database, asks_closed = make_engine(engine or "duckdb", limit), loaded.options.training.reads_closed
    store = Store(loaded.knowledge, database, MemoryBudget(limit), asks_closed=asks_closed)
    start = union(both, loaded.atoms) if queries is None else both
    grounding, was_kept = _ground(store, loaded.name, grounder, both, start, out)
    reached = int((are_among(asked, grounding.atoms) | are_among(reciprocals, grounding.atoms)).sum())
    rules, theory, members = [], loaded.knowledge.theory, loaded.knowledge.language.members
    for part in grounding.ground_rules:
        domains = zip(part.rule.variables, theory.variable_domains(part.rule), strict=True)
        sizes, atoms = {name: len(members(domain)) for name, domain in domains}, len(distinct_codes([part.atoms]))
        rules.append(_line(part.rule, part, len(part), variables=sizes, atoms=atoms))
    counts = {"reached": reached, "unreached": len(asked) - reached}
    document = {"ground_rules": len(grounding), "atoms": len(grounding.atoms), "rules": rules, "queries": counts}
    title = f"{loaded.name}, {options.strategy} grounding"
    _print_ground_rules(title, {**document, "from_cache": was_kept}, out, as_json=as_json)
    if left_out := ground_rules_left_out(store, options.strategy):
        ui.note(left_out)
    if not as_json:
        ui.print_rejected(loaded.report.rejected, more="r2n check P --all")


def ground_remotely(
    problem: str, engine: str, memory: int | None, changes: dict[str, Any], out: Path, as_json: bool
) -> bool:
    """Ground a problem whose tables Spark can read itself; False if this process has to read them, and it says why."""
    spark = make_engine(engine, memory)
    path = Path(problem) / "problem.toml" if Path(problem).is_dir() else Path(problem)
    if not isinstance(spark, SparkEngine) or problem in DATASETS or not path.exists():
        return False
    file = read_problem_file(path)
    options = chosen(GroundingOptions, file.grounding, changes)
    reason = remote.why_not_remote(file, options)
    if reason is not None:
        ui.note(f"the facts are read in this process, and Spark answers the queries: {reason}")
        return False
    grounder = make_grounder(options.model_copy(update={"kept": None}))
    name = file.name or path.parent.resolve().name
    with ui.progress(name) as shown, remote.scratch_folder_next_to(out) as scratch:
        shown("read", 0, 0)
        tables = remote.open_problem(spark, file, path.parent, scratch)
        found = remote.write_remote(tables, grounder, out, scratch, shown)
    total, rules = sum(part.ground_rules for part in found), tables.theory.rules
    lines = [_line(rule, part, part.ground_rules) for rule, part in zip(rules, found, strict=True)]
    document = {"ground_rules": total, "rules": lines, "from_cache": False}
    _print_ground_rules(f"{name}, grounded by Spark", document, out, as_json=as_json)
    return True


def _line(rule: Rule, part: GroundRules | cache.RuleParts, number: int, **more: Any) -> dict[str, Any]:
    """What grounding a rule gave, as JSON has it."""
    counts = {"ground_rules": number, "seconds": round(part.seconds, 6)}
    return {"name": rule.name, "rule": str(rule), **more, **counts}


def _print_ground_rules(title: str, document: dict[str, Any], out: Path | None, *, as_json: bool) -> None:
    """A table with a row for each rule: its variables with the sizes of their domains, and what grounding gave."""
    if as_json:
        ui.print_json(document)
    else:
        numbers, rows = ["ground_rules", *["atoms"] * ("atoms" in document)], []
        for part in document["rules"]:
            variables = ", ".join(f"{name}: {size:,}" for name, size in part.get("variables", {}).items())
            counts = [f"{part[name]:,}" for name in numbers]
            rows.append([ui.shortened(part["rule"]), variables, *counts, f"{part['seconds']:.3f}"])
        ui.print_table(["rule", "variables"], [*(n.replace("_", " ") for n in numbers), "seconds"], rows, title)
        size = counted(document["ground_rules"], "ground rule")
        ui.print_text(size + (f" over {counted(document['atoms'], 'atom')}" if "atoms" in document else ""))
        if queries := document.get("queries"):
            others = f"{queries['unreached']:,} not reached"
            ui.print_text(f"queries: {queries['reached']:,} reached by a ground rule, {others}")
    if out is not None:
        ui.note(f"{'read from' if document['from_cache'] else 'written to'} {out}")


def _ground(
    store: Store, name: str, grounder: Grounder, asked: Codes, start: Codes, out: Path | None
) -> tuple[Grounding, bool]:
    """The part of the grounding that the start atoms can reach, and whether it was read from `out`."""
    knowledge, kept = store.knowledge, None
    digest = cache.fingerprint(knowledge, grounder, asked, start) + ", closed atoms asked" * store.asks_closed
    if out is not None:
        take_away(out.parent, out.name)
        kept = cache.read_grounding(out, knowledge.theory, digest)
        if kept is None and (every := cache.read_partitioned(out, knowledge, grounder)) is not None:
            kept = reached_by(every, start)
    if kept is not None:
        return kept, True
    with ui.progress(name) as shown:
        shown("ground", 0, 0)
        grounding = reached_by(grounder.ground(store, asked, shown), start)
    if out is not None:
        cache.write_grounding(grounding, out, digest)
    return grounding, False


_DEFAULTS = MiningOptions()


def mine(
    problem: ui.ProblemArgument,
    out: Annotated[Path | None, Option(parser=ui.new_path, metavar="FILE.r2n", help="Write the theory here.")] = None,
    max_length: Annotated[int, Option(help="Atoms of a body, 1 to 3.")] = _DEFAULTS.max_length,
    max_rules: Annotated[int, Option(help="Of each predicate as head and each length.")] = _DEFAULTS.max_rules,
    min_support: Annotated[int, Option(help="Pairs that a rule gets right.")] = _DEFAULTS.min_support,
    min_confidence: Annotated[float, Option(help="Share of them in all it says.")] = _DEFAULTS.min_confidence,
    seconds: Annotated[float | None, Option(help="Stop the search for rules after this time.")] = None,
    constants: Annotated[bool, Option("--constants", help="Rules with constants too.")] = False,
    constant_length: Annotated[int, Option(help="Atoms of their bodies, 1 or 2.")] = _DEFAULTS.constant_length,
    max_constant_rules: Annotated[int | None, Option(help="Of each predicate as head; as --max-rules.")] = None,
    min_length: Annotated[int, Option(help="Least atoms of a body without constants.")] = _DEFAULTS.min_length,
    constraints: Annotated[bool, Option("--constraints", help="Constraints too, as rules.")] = False,
    max_exceptions: Annotated[float, Option(help="Share of exceptions that a constraint may have.")] = 0.0,
    fresh: Annotated[bool, Option("--fresh", help="Without the rules that the problem has already.")] = False,
    on_error: ui.OnErrorOption = None,
    as_json: ui.JsonOption = False,
) -> None:
    """Mine rules and constraints from the training facts of a problem: a theory file with weights."""
    given = max_length, max_rules, min_support, min_confidence, constants, seconds
    longer = {"constant_length": constant_length, "min_length": min_length, "max_constant_rules": max_constant_rules}
    options = MiningOptions(*given, **longer)
    if not 0 <= max_exceptions <= 1:
        raise ConfigError(f"--max-exceptions is {max_exceptions}", hint="give a share from 0 to 1")
    if out is not None:
        check_theory_path(out)
    with ui.progress(problem) as shown:
        shown("read", 0, 0)
        loaded = load(problem, on_error=on_error)
        mining = mine_rules(loaded.knowledge, options, shown)
        held = mine_constraints(loaded.knowledge, max_exceptions, min_support) if constraints else ()
    _, text = mined_theory(loaded.knowledge.theory, mining.rules, held, fresh=fresh)
    if out is not None:
        write_theory(out, text)
    if as_json:
        counts = ("support", "body_pairs", "pca_pairs", "confidence", "pca_confidence")
        rules = [
            {"name": mined.rule.name, "rule": str(mined.rule), **{name: getattr(mined, name) for name in counts}}
            for mined in mining.rules
        ]
        found = {"rules": rules, "constraints": [asdict(constraint) for constraint in held]}
        ui.print_json(found | {name: getattr(mining, name) for name in ("unwritable", "stopped", "left_out")})
    elif out is None:
        typer.echo(text, nl=False)
    ui.note(f"{len(mining.rules):,} rules, {len(held):,} constraints mined")
    if mining.unwritable:
        ui.note(f"{mining.unwritable:,} rules left out: no declared domain fits one of their variables")
    if mining.left_out:
        ui.note(f"{mining.left_out:,} paths left out: each has more than {MOST_WALKS:,} walks")
    if mining.stopped is not None:
        ui.note(f"the time was over at {mining.stopped}")
    if out is not None:
        ui.note(f"written to {out}")


datasets_app = typer.Typer(no_args_is_help=True, help="Known problems.")


@datasets_app.command("list")
def list_datasets(as_json: ui.JsonOption = False) -> None:
    """The known problems."""
    found = [(name, d.title, d.licence, d.is_embedded) for name, d in DATASETS.items()]
    if as_json:
        ui.print_json([dict(zip(("name", "title", "licence", "embedded"), row, strict=True)) for row in found])
        return
    rows = [[*row, "in the package" if is_embedded else "download"] for *row, is_embedded in found]
    ui.print_table(["name", "title", "licence", "where"], [], rows, box=None, header_style="dim")


@datasets_app.command("show")
def show_dataset(name: Annotated[str, Argument()], as_json: ui.JsonOption = False) -> None:
    """What is in a known problem."""
    check(name, as_json=as_json)


@datasets_app.command("download")
def download_dataset(name: Annotated[str, Argument()]) -> None:
    """Fetch a known problem that does not travel with the package."""
    dataset = DATASETS.get(name)
    if dataset is None:
        hint = nearest(name, DATASETS) or f"known: {', '.join(DATASETS)}"
        raise ConfigError(f"'{name}' is no known dataset", hint=hint)
    if dataset.is_embedded:
        typer.echo(f"{name} is in the package: nothing to download")
        return
    with ui.progress(name) as shown:
        folder = download(dataset.folder, progress=shown)
    typer.echo(f"{name} is in {folder}")


@datasets_app.command("generate")
def generate_dataset(
    folder: Annotated[Path | None, Argument(parser=ui.new_path, help="The new folder of the problem: text.")] = None,
    facts: Annotated[int | None, Option(help="Those kept back as queries included.")] = None,
    constants: Annotated[int | None, Option(help="With --out by default a tenth of the facts.")] = None,
    relations: Annotated[int | None, Option()] = None,
    rules: Annotated[int | None, Option(help="Of which a fifth is false.")] = None,
    noise: Annotated[float | None, Option(help="Share of facts that are noise.")] = None,
    communities: Annotated[int | None, Option(help="Of constants.")] = None,
    seed: Annotated[int, Option(min=0)] = 0,
    out: Annotated[Path | None, Option(parser=ui.new_path, help="The new folder instead: Parquet.")] = None,
) -> None:
    """Generate a graph with planted rules, exceptions and noise, to try r2n on."""
    given: dict[str, Any] = {"facts": facts, "constants": constants, "relations": relations, "rules": rules}
    given |= {"noise": noise, "communities": communities, "seed": seed}
    made = out or folder
    if made is None or (folder and out):
        raise ConfigError("name one folder", hint="FOLDER for text, or --out DIR for Parquet")
    defaults = GraphOptions() if out is None else LARGE
    options = replace(defaults, **{name: value for name, value in given.items() if value is not None})
    with ui.progress(str(made)) as shown:
        found = generate(options, made, "tsv" if out is None else "parquet", shown)
    sizes = ", ".join(f"{name} {size:,}" for name, size in found.items())
    typer.echo(f"{options.facts:,} facts ({sizes}), {options.rules:,} rules, in {made}")
