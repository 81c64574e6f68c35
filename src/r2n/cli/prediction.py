"""The command line: r2n predict, explain, rules, infer."""

from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from typer import Argument, Option

from r2n.cli import screen as ui
from r2n.datasets.benchmarks import load
from r2n.errors import ConfigError, counted, nearest
from r2n.mining.mine import check_theory_path
from r2n.options import MOST_STEPS

if TYPE_CHECKING:
    import pyarrow as pa

    from r2n.explanation.rules import RuleReport
    from r2n.model.answers import Answers
    from r2n.model.model import Model


WithOption = Annotated[ui.Texts, Option("--with", metavar="FACT|FILE", help='Known too: "near(a, b)", or a table.')]
WithoutOption = Annotated[ui.Texts, Option("--without", metavar="FACT|FILE", help="No longer known; before --with.")]
ConstantOption = Annotated[ui.Texts, Option("--constant", metavar="DOMAIN=NAME", help="A new constant and its domain.")]

MOST_ROWS_SHOWN = 50
MOST_ROWS = 1_000  # of one table on the screen, whose columns are as wide as its cells
FEW = 10
WIDTH_OF_RULE = 72
NOT_READ = "this network does not read facts (model.evidence_input = off): they act through the grounding alone"


def load_changed(
    run: Path,
    device: str,
    shown: ui.PhaseProgress,
    more: ui.Texts,
    fewer: ui.Texts,
    constants: ui.Texts,
    on: str | None = None,
) -> "Model":
    """The model of a run (`on` another problem) with fewer facts, and then more; `constants` are DOMAIN=NAME."""
    from r2n.datasets.benchmarks import load
    from r2n.model.model import Model

    domains, names = by_domain(constants or ()), ("--with", "--without", "--constant")
    loaded = Model.load(run, device=device, progress=shown)
    loaded = loaded if on is None else loaded.on(load(on))
    model = loaded.with_changes(more or (), fewer or (), domains, names)
    print_headers(loaded, [*(fewer or ()), *(more or ())])
    for name in model.changed.new_constants:
        near = nearest(name, model.changed.trained.constants)
        ui.note(f"new constant: {name}" + (f" ({near})" if near else ""))
    if (more or fewer) and model.network.evidence_input == "off":
        ui.note(NOT_READ)
    return model


def print_headers(model: "Model", given: Iterable[str | Path]) -> None:
    """Which first rows of files on the command line are taken for headers, on standard error; other texts are facts."""
    from r2n.data.atom_text import looks_like_atom
    from r2n.data.tables import Table, read_facts

    advice = "if it is a fact or a query, write it below another row, or use Table(file, header=False) in Python"
    for path in (Path(item) for item in given if isinstance(item, Path) or not looks_like_atom(item)):
        first = read_facts(Table(path), on_error="skip", theory=model.problem.knowledge.theory).first
        if first is not None and first.is_header:
            ui.note(f"note: {first.taken(advice)}")


def by_domain(constants: Iterable[str]) -> dict[str, list[str]]:
    """`country=atlantis` as {"country": ["atlantis"]}."""
    found: dict[str, list[str]] = {}
    for text in constants:
        domain, _, name = map(str.strip, text.partition("="))
        if not domain or not name:
            raise ConfigError(f"'{text}' names no domain and constant", hint="write --constant DOMAIN=NAME")
        found.setdefault(domain, []).append(name)
    return found


def predict(
    run: ui.RunArgument,
    question: Annotated[str | None, Argument(help='An atom; ? is what is asked: "locatedIn(italy, ?)".')] = None,
    queries: Annotated[Path | None, Option(metavar="FILE", help="Ask many: a table like those of facts.")] = None,
    out: Annotated[
        Path | None,
        Option(parser=ui.new_path, metavar="FILE", help="Write the answers: .csv, .tsv, .parquet, .json or .jsonl."),
    ] = None,
    more: WithOption = None,
    fewer: WithoutOption = None,
    constants: ConstantOption = None,
    top: Annotated[int | None, Option(min=1, help="How many answers to a ?: 10, or with --all every one.")] = None,
    unknown: Annotated[bool, Option("--unknown", help="Only what is not known already.")] = False,
    show_all: Annotated[bool, Option("--all", help="Also atoms that no ground rule reaches.")] = False,
    on: ui.OnOption = None,
    jobs: ui.JobsOption = None,
    device: ui.DeviceOption = "auto",
    as_json: ui.JsonOption = False,
) -> None:
    """Ask a trained network: one question, or a file of queries."""
    from r2n.model.answers import Question
    from r2n.model.questions import (
        AnswerOptions,
        PredictionJob,
        answer_table,
        check_output,
        predict_file,
        questions_table,
    )

    if (question is None) == (queries is None):
        hint = 'r2n predict RUN "p(a, ?)", or --queries FILE'
        raise ConfigError("either a question or a file of queries is asked", hint=hint)
    if out is not None:
        check_output(out)
    if jobs is not None and (queries is None or out is None or as_json):
        raise ConfigError("--jobs shares out a file of queries", hint="r2n predict RUN --queries FILE --out FILE")
    wanted = AnswerOptions(show_all, top or (None if show_all else FEW), unknown)
    answers = table = written = None
    with ui.progress(str(run)) as shown:
        model = load_changed(run, device, shown, more, fewer, constants, on)
        print_headers(model, [] if queries is None else [queries])
        if question is not None:
            answers = model.predict(question, **asdict(wanted))
            predicates = [Question.parse(model.base, question).predicate.name]
            table = None if out is None else questions_table(model, [answers], predicates)
        elif queries is not None and out is not None and not as_json:
            facts = (tuple(more or ()), tuple(fewer or ()), by_domain(constants or ()))
            job = PredictionJob(run, queries, wanted, *facts, device, on=on)
            written = predict_file(job, out, jobs=jobs, model=model, progress=shown)
        elif queries is not None:
            table = answer_table(model, queries, wanted)
    ui.note(f"probabilities that atoms are true: {model.calibration or 'not calibrated'}")
    if written is not None:
        ui.note(f"{written} in {out}")
    elif table is not None:
        _print_or_write(table, out, as_json=as_json)
    elif answers is not None:
        _print_answers(model, str(question), answers, as_json=as_json)


def _print_or_write(table: "pa.Table", out: Path | None, *, as_json: bool) -> None:
    """Write a table of answers, or show its first rows."""
    from r2n.model.questions import write_answers

    if out is not None:
        write_answers(table, out)
        ui.note(f"{counted(table.num_rows, 'answer')} in {out}")
    if as_json:
        ui.print_json({"columns": table.column_names, "answers": table.to_pylist()})
    elif out is None:
        shown = table.slice(0, MOST_ROWS_SHOWN).to_pylist()
        ui.print_table(table.column_names, [], [[ui.cell_text(value) for value in row.values()] for row in shown])
        if table.num_rows > MOST_ROWS_SHOWN:
            ui.note(f"... and {table.num_rows - MOST_ROWS_SHOWN:,} more: --out FILE has them all")


def _print_answers(model: "Model", question: str, answers: "Answers", *, as_json: bool) -> None:
    """The answers on standard output, and the numbers of atoms that are not among them on standard error."""
    from r2n.data.features import constant_labels

    if as_json:
        calibration = None if answers.calibration is None else asdict(answers.calibration)
        ui.print_json({**asdict(answers.result(question)), "calibration": calibration})
        return
    knowledge = model.problem.knowledge
    names = {name for item in answers for name in item.constants}
    labels = constant_labels(knowledge.features, knowledge.language, names)
    heads, rows = answers.shown()
    if labels:
        heads.append("label")
        for row, item in zip(rows, answers, strict=True):
            row.append(", ".join(labels[name] for name in item.constants if name in labels))
    for start in range(0, max(len(rows), 1), MOST_ROWS):
        ui.print_table(heads, [], rows[start : start + MOST_ROWS])
    if answers.share is not None:
        ui.note("share: the probability to be the answer, among all candidates that are not known")
    if answers.left_out:
        why = "nothing is known of them, and no ground rule reaches them: --all asks the input layer"
        ui.note(f"left out: {counted(answers.left_out, 'atom')}; {why}")
    if answers.hidden:
        ui.note(f"not shown: {counted(answers.hidden, 'atom')} known already")
    if answers.refused:
        ui.note(f"{counted(answers.refused, 'atom')} of new constants cannot be answered: ask for one, and see why")


def explain(
    run: ui.RunArgument,
    atom: Annotated[str, Argument(metavar="ATOM", help='What is explained: "locatedIn(italy, europe)".')],
    against: Annotated[str | None, Option(metavar="ATOM", help="Why not rather this one.")] = None,
    depth: Annotated[int, Option(min=0, help="How many ground rules deep the reasons of reasons go.")] = 2,
    top: Annotated[int, Option(min=1, help="How many ground rules of each atom are listed.")] = 5,
    more: WithOption = None,
    fewer: WithoutOption = None,
    constants: ConstantOption = None,
    html: Annotated[Path | None, Option("--html", metavar="FILE", help="Write a page with a drawing.")] = None,
    svg: Annotated[Path | None, Option("--svg", metavar="FILE", help="Write the drawing.")] = None,
    device: ui.DeviceOption = "auto",
    as_json: ui.JsonOption = False,
) -> None:
    """Say why a trained network answers as it does, and what would flip the answer."""
    from r2n.explanation.drawing import explanation_svg
    from r2n.explanation.records import explanation_tree
    from r2n.reporting.pages import check_writable, explanation_page, write_file

    files = [(option, path) for option, path in (("--html", html), ("--svg", svg)) if path is not None]
    for option, path in files:
        check_writable(path, option)
    with ui.progress(str(run)) as shown:
        model = load_changed(run, device, shown, more, fewer, constants)
        found = model.explain(atom, depth=depth, top=top, against=against)
    about = [("problem", model.problem.name), ("run", str(run)), *(("with", fact) for fact in more or ())]
    about += [("without", fact) for fact in fewer or ()]
    for option, path in files:
        content = explanation_page(found, about=about) if option == "--html" else explanation_svg(found)
        write_file(path, content, option)
        ui.note(f"written: {path}")
    if as_json:
        ui.print_json(found.to_dict())
    else:
        console = ui.screen()
        console.print(explanation_tree(found, in_ascii=console.options.ascii_only))


def rules(
    run: ui.RunArgument,
    split: Annotated[str | None, Option(help="By which queries (default: valid, else test).")] = None,
    most: Annotated[int | None, Option(min=1, help="How many rules (20), path rules of each predicate (10).")] = None,
    export: Annotated[
        Path | None, Option(metavar="FILE.r2n", help="Write a theory: the rules that help, and what was learned.")
    ] = None,
    device: ui.DeviceOption = "auto",
    as_json: ui.JsonOption = False,
) -> None:
    """Show what each rule of a run does, and what was learned for the implicit ones and along paths."""
    from r2n.model.model import Model
    from r2n.model.rule_report import MOST_PATH_RULES, MOST_RULES, export_theory, rule_report

    if export is not None:
        check_theory_path(export)
    with ui.progress(str(run)) as shown:
        trained = Model.load(run, device=device, progress=shown)
        limits = {"most": most or MOST_RULES, "most_path_rules": most or MOST_PATH_RULES}
        report = rule_report(trained, split=split, progress=shown, **limits)
    ui.note(*report.notes, prefix="note: ")
    if as_json:
        ui.print_json(report.to_dict())
    else:
        print_rules(report)
        print_path_rules(report)
    if report.left_out:
        others = f"those with the largest effect; not shown: {counted(report.left_out, 'rule')}"
        ui.note(f"{counted(len(report.rules), 'rule')}, {others} (--most)")
    if export is not None:
        ui.note(export_theory(report, trained.problem.knowledge.theory, export))


def print_rules(report: "RuleReport") -> None:
    """A table of the rules, then what was learned for the implicit ones."""
    metric, title, rows = report.metric or "metric", report.problem, []
    if report.metric is not None:
        values = f"{metric} {ui.number_text(report.value)}, without any rule {ui.number_text(report.none)}"
        title += f", {report.split}: {values}"
    for account in report.rules:
        cells, occurrence, effect = [""] * 7, account.occurrence, account.effect
        if occurrence is not None:
            satisfied = "" if occurrence.satisfied is None else f"{occurrence.satisfied:.3f} of {occurrence.known:,}"
            cells[:3] = f"{occurrence.ground_rules:,}", satisfied, ui.number_text(occurrence.out)
        if occurrence is not None and effect is not None:
            cells[3:5] = f"{effect.effect:.3f}", f"{effect.gain:+.4f}"
            cells[5:] = ui.number_text(effect.without), ui.number_text(effect.alone)
        rows.append([ui.shortened(str(account.rule).partition(" ")[2], WIDTH_OF_RULE), *cells])
    numbers = ["ground rules", "satisfied", "out(g)", "effect", "gain", f"{metric} without", f"{metric} alone"]
    if rows:
        ui.print_table(["rule"], numbers, rows, title)
    for account in (part for part in report.rules if part.kind == "implicit" and part.effect is not None):
        if not account.clauses:
            ui.print_text(f"{account.name}: no clause was learned that holds often enough to be shown")
            continue
        rows = []
        for clause in account.clauses:
            confidence = "" if clause.confidence is None else f"{clause.confidence:.3f} of {clause.known:,}"
            rows.append([str(clause), f"{clause.support:,}", confidence, f"{clause.fidelity:.3f}"])
        title = f"{account.name}: what it has learned"
        ui.print_table(["clause"], ["support", "confidence", "fidelity"], rows, title)


def print_path_rules(report: "RuleReport") -> None:
    """For each predicate that is asked, a table of the chains of predicates that lead to it."""
    for head, parts in groupby(report.paths, lambda part: part.head):
        cells = "{0}", "{0.weight:+.3f}", "{0.support:,}", "{0.rule.weight:.3f} of {0.pairs:,}"
        rows = [[cell.format(part) for cell in cells] for part in parts]
        ui.print_table(["path rule"], ["weight", "support", "confidence"], rows, f"{head}: what leads to it")


KNOWN_TEXTS = {(1, True): "true", (0, True): "false", (0, False): "closed"}  # closed: false, since it is no fact
NO_WORLD = """\
warning: no world satisfies these rules, which hold strictly, and what is known:
  {}
  the probabilities are those of worlds that break as few of them as they can: give one of them a weight, as in \
rule r [2.0]: ..., or mend it"""


def infer(
    problem: ui.ProblemArgument,
    question: Annotated[str | None, Argument(help='An atom; ? is what is asked (default: the "test" queries).')] = None,
    method: Annotated[
        Literal["paper", "max-product", "sum-product"],
        Option(help="paper: its max-product recursion; the others: the textbook's."),
    ] = "sum-product",
    iterations: Annotated[int, Option(min=0, max=MOST_STEPS)] = 10,
    damping: Annotated[float, Option(min=0, max=0.99, help="The share of the old messages.")] = 0.0,
    prior: Annotated[float, Option(min=0, max=1, help="The belief in what is not known.")] = 0.5,
    beliefs: Annotated[Path | None, Option(metavar="RUN", help="Start from a trained network's beliefs.")] = None,
    changes: ui.SetOption = None,
    top: Annotated[int, Option(min=1, help="How many answers.")] = 10,
    as_json: ui.JsonOption = False,
) -> None:
    """Answer from facts and rules alone, without training, by belief propagation."""
    from r2n.model.answers import Question
    from r2n.model.infer import believe
    from r2n.model.model import Model

    with ui.progress(problem) as shown:
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
            method=method,
            iterations=iterations,
            damping=damping,
            prior=prior,
            trained=None if beliefs is None else Model.load(beliefs),
        )
    order = np.argsort(-found.probability, kind="stable")[:top]
    document: dict[str, Any] = {"problem": loaded.name, "method": method, "iterations": iterations}
    document["no_world"] = None if found.clash is None else [str(rule) for rule in found.clash.rules]
    document["answers"] = [
        {
            "atom": name,
            "probability": float(found.probability[i]),
            "reached": bool(found.reached[i]),
            "known": KNOWN_TEXTS.get((int(found.truths[i]), bool(found.is_stated[i]))),
            **({"label": bool(loaded.test.truth[i])} if question is None else {}),
        }
        for i, name in zip(order, base.names(found.atoms[order]), strict=True)
    ]
    if found.clash is not None:
        ui.note(NO_WORLD.format("\n  ".join(ui.shortened(str(rule)) for rule in found.clash.rules)))
    report = found.report(loaded, "test") if question is None else None
    if question is None:
        document["metrics"] = None if report is None else report.to_dict()["metrics"]
        if report is None:
            ui.note("the queries 'test' are all true: only a ranking would measure them (r2n evaluate)")
    if as_json:
        ui.print_json(document)
        return
    if report is not None:
        ui.print_report(report, loaded.name)
    heads = ["atom", "probability", "known", "reached", *["label"] * (question is None)]
    rows = [[ui.cell_text(item[head]) for head in heads] for item in document["answers"]]
    ui.print_table(heads, [], rows, f"{loaded.name}: {method}")
