"""The command line: r2n rules."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from r2n.cli.screen import (
    DeviceOption,
    JsonOption,
    RunArgument,
    ScreenTable,
    print_json,
    progress,
    screen,
    shortened,
)
from r2n.errors import counted
from r2n.mining.mined_theory import check_theory_path
from r2n.visible import visible

if TYPE_CHECKING:  # torch takes seconds to import: these come in where they are used
    from r2n.explanation.rule_records import Context, RuleAccount, RuleReport

WIDTH_OF_RULE = 72

SplitOption = Annotated[
    str | None, typer.Option(help="By which queries (default: valid, else test).", show_default=False)
]
ExportOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE.r2n", help="Write a theory: the rules that help, and the learned clauses."),
]


def rules(
    run: RunArgument,
    split: SplitOption = None,
    most: Annotated[int, typer.Option(min=1, help="How many rules, those with the largest effect.")] = 20,
    export: ExportOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Tell what each rule of a run does, and what was learned for the implicit ones."""
    from r2n.prediction.rule_report import rule_report
    from r2n.prediction.rule_theory import export_theory
    from r2n.prediction.trained import Trained

    if export is not None:
        check_theory_path(export)
    with progress(str(run)) as shown:
        trained = Trained.load(run, device=device, progress=shown)
        report = rule_report(trained, split=split, most=most, progress=shown)
    for note in report.notes:
        typer.echo(visible(f"note: {note}"), err=True)
    if as_json:
        print_json(report.to_dict())
    elif report.rules:
        _print_rules(report)
    if report.left_out:
        told = f"those with the largest effect; not told: {counted(report.left_out, 'rule')}"
        typer.echo(f"{counted(len(report.rules), 'rule')}, {told} (--most)", err=True)
    if export is not None:
        typer.echo(export_theory(report, trained.problem.knowledge.theory, export), err=True)


def _print_rules(report: "RuleReport") -> None:
    metric, console = report.metric or "metric", screen()
    title = report.problem
    if report.metric is not None:
        title += f", {report.split}: {metric} {_number(report.value)}, without any rule {_number(report.none)}"
    table = ScreenTable("rule", title=title)
    for column in ("ground rules", "satisfied", "out(g)", "effect", "gain", f"{metric} without", f"{metric} alone"):
        table.add_column(column, justify="right")
    for account in report.rules:
        table.add_texts(_cells(account))
    console.print(table)
    for account in report.rules:
        for line in _contexts(account):
            console.print(Text(visible(line)))
    for account in report.rules:
        _print_clauses(account)


def _cells(account: "RuleAccount") -> list[str]:
    """The row of a rule."""
    occurrence, effect = account.occurrence, account.effect
    text = shortened(str(account.rule).partition(" ")[2], WIDTH_OF_RULE)
    if occurrence is None:
        return [text, *[""] * 7]
    satisfied = "" if occurrence.satisfied is None else f"{occurrence.satisfied:.3f} of {occurrence.known:,}"
    found = [text, f"{occurrence.ground_rules:,}", satisfied, _number(occurrence.out)]
    if effect is None:
        return [*found, *[""] * 4]
    return [*found, f"{effect.effect:.3f}", f"{effect.gain:+.4f}", _number(effect.without), _number(effect.alone)]


def _contexts(account: "RuleAccount") -> list[str]:
    """Where a rule helps and where it hurts, in words."""
    return [f"{account.name} {'helps' if c.helps else 'hurts'} with {_where(c)}" for c in account.contexts]


def _where(context: "Context") -> str:
    here = f"{context.helped:,} helped, {context.hurt:,} hurt"
    elsewhere = f"elsewhere {context.helped_elsewhere:,} and {context.hurt_elsewhere:,}"
    return f"{context.kind} {context.what}: {here}; {elsewhere}"


def _print_clauses(account: "RuleAccount") -> None:
    if account.kind != "implicit" or account.effect is None:
        return
    if not account.clauses:
        screen().print(Text(f"{visible(account.name)}: no clause was learned that holds often enough to be told"))
        return
    table = ScreenTable("clause", title=f"{account.name}: what it has learned")
    for column in ("support", "confidence", "fidelity"):
        table.add_column(column, justify="right")
    for clause in account.clauses:
        confidence = "" if clause.confidence is None else f"{clause.confidence:.3f} of {clause.known:,}"
        table.add_texts([str(clause), f"{clause.support:,}", confidence, f"{clause.fidelity:.3f}"])
    screen().print(table)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
