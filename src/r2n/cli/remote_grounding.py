"""The command line: r2n ground where Spark reads the facts itself, and this process never does."""

import tempfile
from pathlib import Path
from typing import Any

import typer

from r2n.cli.screen import ScreenTable, print_json, progress, screen, shortened
from r2n.datasets.benchmarks import DATASETS
from r2n.errors import counted
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.remote.grounding import RemoteGrounding, ground_select, in_scratch, rule_query, write_remote
from r2n.grounding.remote.problem import open_problem, why_not_remote
from r2n.grounding.spark_engine import SparkEngine
from r2n.grounding.strategies import make_engine, make_grounder
from r2n.knowledge.options import GroundingOptions, chosen
from r2n.knowledge.problem_file import ProblemFile, read_problem_file
from r2n.logic.theory import Theory


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
    """Ground a problem whose tables Spark can read itself; False where this process has to read them, with a reason."""
    made = make_engine(engine, memory)
    path = Path(problem) / "problem.toml" if Path(problem).is_dir() else Path(problem)
    if not isinstance(made, SparkEngine) or problem in DATASETS or not path.exists():
        return False
    file = read_problem_file(path)
    options = chosen(GroundingOptions, file.grounding, changes)
    reason = why_not_remote(file, path.parent, options)
    if reason is not None:
        typer.echo(f"the facts are read in this process, and Spark answers the queries: {reason}", err=True)
        return False
    grounder, name = make_grounder(options), file.name or path.parent.resolve().name
    if explain or out is None:
        _explain(made, file, path, grounder, as_json)
        return True
    theories: list[Theory] = []
    with progress(name) as shown:

        def work(scratch: Path) -> RemoteGrounding:
            shown("read", 0, 0)
            tables = open_problem(made, file, path.parent, scratch)
            theories.append(tables.theory)
            return write_remote(tables, grounder, out, scratch, shown)

        found = in_scratch(out, work)
    _show(name, theories[0], found, as_json)
    typer.echo(f"written to {out}", err=True)
    return True


def _explain(engine: SparkEngine, file: ProblemFile, path: Path, grounder: Grounder, as_json: bool) -> None:
    documents: list[dict[str, str]] = []

    def work(scratch: Path) -> RemoteGrounding:
        tables = open_problem(engine, file, path.parent, scratch)
        for rule in tables.theory.rules:
            plan = engine.explain(ground_select(tables, rule_query(tables, grounder, rule)))
            documents.append({"rule": rule.name, "plan": plan})
        return RemoteGrounding((), "")

    shared = Path(tempfile.gettempdir()) if engine.place.is_here else path.parent
    in_scratch(shared / "r2n-plans", work)
    if as_json:
        print_json(documents)
        return
    for document in documents:
        typer.echo(f"rule {document['rule']}\n{document['plan']}\n")


def _show(name: str, theory: Theory, found: RemoteGrounding, as_json: bool) -> None:
    rows = [
        {
            "name": part.name,
            "rule": str(rule),
            "estimate": part.estimate,
            "ground_rules": part.ground_rules,
            "seconds": round(part.seconds, 6),
        }
        for rule, part in zip(theory.rules, found.rules, strict=True)
    ]
    if as_json:
        print_json({"ground_rules": len(found), "rules": rows, "from_cache": False})
        return
    table = ScreenTable(title=f"{name}, grounded by Spark")
    table.add_column("rule", overflow="fold")
    for column in ("estimate", "ground rules", "seconds"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        numbers = [f"{row['estimate']:,}", f"{row['ground_rules']:,}", f"{row['seconds']:.3f}"]
        table.add_texts([shortened(str(row["rule"])), *numbers])
    screen().print(table)
    screen().print(counted(len(found), "ground rule"), highlight=False)
