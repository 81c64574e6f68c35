"""The command line: r2n mine."""

from pathlib import Path
from typing import Annotated, Any

import typer

from r2n.cli.screen import EngineOption, JsonOption, OnErrorOption, ProblemArgument, new_path, print_json, progress
from r2n.datasets.benchmarks import load
from r2n.errors import ConfigError
from r2n.grounding.strategies import make_engine
from r2n.mining.constraints import Constraint, mine_constraints
from r2n.mining.mine import Mining, MiningOptions, mine_rules
from r2n.mining.mined_theory import check_theory_path, mined_theory, write_theory

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
