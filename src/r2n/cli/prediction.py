"""The command line: r2n predict, explain, rules, infer."""

from collections.abc import Iterable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.text import Text

from r2n.cli.screen import (
    DeviceOption,
    JobsOption,
    JsonOption,
    PhaseProgress,
    ProblemArgument,
    RunArgument,
    ScreenTable,
    SetOption,
    new_path,
    print_json,
    print_report,
    progress,
    screen,
    shortened,
)
from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence
from r2n.datasets.benchmarks import load
from r2n.errors import ConfigError, counted, nearest
from r2n.mining.mine import check_theory_path
from r2n.options import MOST_STEPS
from r2n.visible import visible

if TYPE_CHECKING:
    import pyarrow as pa

    from r2n.evaluation.report import Report
    from r2n.explanation.records import Explanation
    from r2n.explanation.rules import Context, RuleAccount, RuleReport
    from r2n.model.answers import Answers
    from r2n.model.infer import Believed
    from r2n.model.model import Model


WithOption = Annotated[
    list[str] | None, typer.Option("--with", metavar="FACT|FILE", help='Known too: "near(a, b)", or a table.')
]
WithoutOption = Annotated[
    list[str] | None, typer.Option("--without", metavar="FACT|FILE", help="No longer known; goes before --with.")
]
ConstantOption = Annotated[
    list[str] | None, typer.Option("--constant", metavar="DOMAIN=NAME", help="A new constant and its domain.")
]


def load_changed(
    run: Path, device: str, shown: PhaseProgress, more: list[str], fewer: list[str], constants: list[str]
) -> "Model":
    """The model of a run with fewer facts, and then more; `constants` are written DOMAIN=NAME."""
    from r2n.model.model import Model

    model = Model.load(run, device=device, progress=shown)
    names = ("--with", "--without", "--constant")
    found = model.with_changes(more, fewer, by_domain(constants), names)
    print_headers(model, [*fewer, *more])
    return found


def print_headers(model: "Model", given: Iterable[str | Path]) -> None:
    """Which first rows of files on the command line are taken for headers, on standard error; other texts are facts."""
    from r2n.data.atom_text import looks_like_atom
    from r2n.data.tables import Table, checked_format, with_header

    for path in (Path(item) for item in given if isinstance(item, Path) or not looks_like_atom(item)):
        table, theory = Table(path), model.problem.knowledge.theory
        first = with_header(table, checked_format(table, path), theory)[1]
        if first is not None and first.is_header:
            advice = (
                "if it is a fact or a query, write it below another row, or use Table(file, header=False) in Python"
            )
            typer.echo(visible(f"note: {first.taken(advice)}"), err=True)


def by_domain(constants: list[str]) -> dict[str, list[str]]:
    """`country=atlantis` as {"country": ["atlantis"]}."""
    found: dict[str, list[str]] = {}
    for text in constants:
        domain, equals, name = text.partition("=")
        if not equals or not domain.strip() or not name.strip():
            raise ConfigError(f"'{text}' names no domain and constant", hint="write --constant DOMAIN=NAME")
        found.setdefault(domain.strip(), []).append(name.strip())
    return found


def print_changes(model: "Model", *, facts_changed: bool) -> None:
    """What a person who changes facts should know, on standard error."""
    for name in model.changed.new_constants:
        near = nearest(name, model.changed.trained.constants)
        typer.echo(visible(f"new constant: {name}" + (f" ({near})" if near else "")), err=True)
    if facts_changed and model.network.evidence_input == "off":
        typer.echo(
            "this network does not read facts (model.evidence_input = off): they act through the grounding alone",
            err=True,
        )


MOST_ROWS_SHOWN = 50
MOST_ROWS_LAID_OUT = 1_000  # of one table on the screen, whose columns are as wide as its cells
FEW = 10

QuestionArgument = Annotated[
    str | None, typer.Argument(help='An atom; ? stands for what is asked: "locatedIn(italy, ?)".')
]
TopOption = Annotated[
    int | None, typer.Option(min=1, help="How many answers to a question with ?: 10, or with --all every one.")
]
UnknownOption = Annotated[bool, typer.Option("--unknown", help="Only what is not known already.")]
AllOption = Annotated[bool, typer.Option("--all", help="Also atoms that no ground rule reaches.")]
QueriesOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Ask many: a table like those of facts; ? may stand in it.")
]
OutOption = Annotated[
    Path | None,
    typer.Option(parser=new_path, metavar="FILE", help="Write the answers: .csv, .tsv, .parquet, .json or .jsonl."),
]


def predict(
    run: RunArgument,
    question: QuestionArgument = None,
    queries: QueriesOption = None,
    out: OutOption = None,
    more: WithOption = None,
    fewer: WithoutOption = None,
    constants: ConstantOption = None,
    top: TopOption = None,
    unknown: UnknownOption = False,
    show_all: AllOption = False,
    jobs: JobsOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Ask a trained network: one question, or a file of queries."""
    from r2n.evaluation.calibrate import calibration_text
    from r2n.model.answers import Question
    from r2n.model.jobs import AskedOfRun, predict_file
    from r2n.model.questions import AnswersWanted, answer_table, questions_table

    _check_predict(question, queries, out, is_shared=jobs is not None, as_json=as_json)
    wanted = AnswersWanted(show_all, top or (None if show_all else FEW), unknown)
    answers = table = written = None
    with progress(str(run)) as shown:
        model = load_changed(run, device, shown, more or [], fewer or [], constants or [])
        print_headers(model, [] if queries is None else [queries])
        if question is not None:
            answers = model.predict(question, **asdict(wanted))
            if out is not None:
                table = questions_table(model, [answers], [Question.parse(model.base, question).predicate.name])
        elif queries is not None and out is not None and not as_json:
            facts = (tuple(more or ()), tuple(fewer or ()), by_domain(constants or []))
            asked = AskedOfRun(run, queries, wanted, *facts, device)
            written = predict_file(asked, out, jobs=jobs, model=model, progress=shown)
        elif queries is not None:
            table = answer_table(model, queries, **asdict(wanted))
    print_changes(model, facts_changed=bool(more or fewer))
    typer.echo(f"probabilities: {calibration_text(model.calibration)}", err=True)
    if written is not None:
        typer.echo(f"{written} in {out}", err=True)
    elif table is not None:
        _print_table(table, out, as_json=as_json)
    elif answers is not None:
        print_json(answers_document(str(question), answers)) if as_json else print_answers(model, answers)


def _check_predict(
    question: str | None, queries: Path | None, out: Path | None, *, is_shared: bool, as_json: bool
) -> None:
    from r2n.model.questions import check_output

    if (question is None) == (queries is None):
        raise ConfigError(
            "either a question or a file of queries is asked", hint='r2n predict RUN "p(a, ?)", or --queries FILE'
        )
    if out is not None:
        check_output(out)
    if is_shared and (queries is None or out is None or as_json):
        raise ConfigError("--jobs shares out a file of queries", hint="r2n predict RUN --queries FILE --out FILE")


def answers_document(question: str, answers: "Answers") -> dict[str, Any]:
    """The answers as they are printed with --json."""
    counts = {name: getattr(answers, name) for name in ("asked", "refused", "left_out", "hidden")}
    calibration = None if answers.calibration is None else asdict(answers.calibration)
    items, columns = [asdict(item) for item in answers], answers.columns
    return {"question": question, "columns": columns, "answers": items, **counts, "calibration": calibration}


def _print_table(table: "pa.Table", out: Path | None, *, as_json: bool) -> None:
    """Write a table of answers, or show its first rows."""
    from r2n.model.questions import write_answers

    if out is not None:
        write_answers(table, out)
        typer.echo(f"{counted(table.num_rows, 'answer')} in {out}", err=True)
    if as_json:
        print_json({"columns": table.column_names, "answers": table.to_pylist()})
    elif out is None:
        shown = ScreenTable(*table.column_names)
        for row in table.slice(0, MOST_ROWS_SHOWN).to_pylist():
            shown.add_texts([_cell(value) for value in row.values()])
        screen().print(shown)
        if table.num_rows > MOST_ROWS_SHOWN:
            typer.echo(f"... and {table.num_rows - MOST_ROWS_SHOWN:,} more: --out FILE has them all", err=True)


def _cell(value: float | int | str | None) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def print_answers(model: "Model", answers: "Answers") -> None:
    """The answers as a table on standard output, and further notes on standard error."""
    from r2n.data.features import constant_labels
    from r2n.model.answers import known_text

    knowledge = model.problem.knowledge
    names = {name for item in answers for name in item.constants}
    labels = constant_labels(knowledge.features, knowledge.language, names)
    heads = ["atom", "probability", "known", "predicted", *["logit ± spread"] * (answers.spread is not None)]
    heads += ["label"] * bool(labels)
    for start in range(0, max(len(answers), 1), MOST_ROWS_LAID_OUT):
        table = ScreenTable(*heads)
        for item in answers.items[start : start + MOST_ROWS_LAID_OUT]:
            spread = [f"{item.logit:.2f} ± {item.spread:.2f}"] if item.spread is not None else []
            label = [", ".join(labels[name] for name in item.constants if name in labels)] if labels else []
            first = [item.atom, f"{item.probability:.4f}", known_text(item), f"{item.network:.4f}"]
            table.add_texts([*first, *spread, *label])
        screen().print(table)
    if answers.left_out:
        why = "nothing is known of them, and no ground rule reaches them: --all asks the input layer"
        typer.echo(f"left out: {counted(answers.left_out, 'atom')}; {why}", err=True)
    if answers.hidden:
        typer.echo(f"not shown: {counted(answers.hidden, 'atom')} known already", err=True)
    if answers.refused:
        atoms = counted(answers.refused, "atom")
        typer.echo(f"{atoms} of new constants cannot be answered: ask for one, and see why", err=True)


AtomArgument = Annotated[str, typer.Argument(metavar="ATOM", help='What is explained: "locatedIn(italy, europe)".')]
AgainstOption = Annotated[
    str | None, typer.Option(metavar="ATOM", help='Why not rather this one: "locatedIn(italy, africa)".')
]
DepthOption = Annotated[int, typer.Option(min=0, help="How many ground rules deep the reasons of reasons go.")]
ReasonsOption = Annotated[int, typer.Option(min=1, help="How many ground rules of each atom are listed.")]
HtmlOption = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with a drawing.")]
SvgOption = Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Write the drawing.")]


def explain(
    run: RunArgument,
    atom: AtomArgument,
    against: AgainstOption = None,
    depth: DepthOption = 2,
    top: ReasonsOption = 5,
    more: WithOption = None,
    fewer: WithoutOption = None,
    constants: ConstantOption = None,
    html: HtmlOption = None,
    svg: SvgOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Say why a trained network answers as it does, and what would flip the answer."""
    from r2n.reporting.write import check_writable

    for option, path in (("--html", html), ("--svg", svg)):
        if path is not None:
            check_writable(path, option)
    with progress(str(run)) as shown:
        model = load_changed(run, device, shown, more or [], fewer or [], constants or [])
        found = model.explain(atom, depth=depth, top=top, against=against)
    print_changes(model, facts_changed=bool(more or fewer))
    about = [("problem", model.problem.name), ("run", str(run))]
    about += [*(("with", fact) for fact in more or []), *(("without", fact) for fact in fewer or [])]
    _write(found, html, svg, about)
    if as_json:
        print_json(found.to_dict())
    else:
        print_tree(found)


def _write(found: "Explanation", html: Path | None, svg: Path | None, about: list[tuple[str, str]]) -> None:
    """The files that were asked for, and where they are on standard error."""
    if html is not None:
        from r2n.reporting.pages import explanation_page
        from r2n.reporting.write import write_file

        write_file(html, explanation_page(found, about=about), "--html")
    if svg is not None:
        from r2n.explanation.drawing import explanation_svg
        from r2n.reporting.write import write_file

        write_file(svg, explanation_svg(found), "--svg")
    for path in (html, svg):
        if path is not None:
            typer.echo(f"written: {path}", err=True)


def print_tree(found: "Explanation") -> None:
    """An explanation as a tree on standard output."""
    from r2n.explanation.text import explanation_tree

    console = screen()
    console.print(explanation_tree(found, in_ascii=console.options.ascii_only))


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
    from r2n.model.model import Model
    from r2n.model.rule_report import export_theory, rule_report

    if export is not None:
        check_theory_path(export)
    with progress(str(run)) as shown:
        trained = Model.load(run, device=device, progress=shown)
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


class MethodName(StrEnum):
    """How beliefs are passed."""

    PAPER = "paper"
    MAX_PRODUCT = "max-product"
    SUM_PRODUCT = "sum-product"


QueryArgument = Annotated[
    str | None, typer.Argument(help='An atom; ? stands for what is asked (default: the "test" queries).')
]
MethodOption = Annotated[MethodName, typer.Option(help="paper: its max-product recursion; the others: the textbook's.")]


def infer(
    problem: ProblemArgument,
    question: QueryArgument = None,
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
    from r2n.model.answers import Question
    from r2n.model.infer import believe
    from r2n.model.model import Model

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
            trained=None if beliefs is None else Model.load(beliefs),
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
