"""The command line: r2n predict."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from r2n.cli.changed_facts import (
    ConstantOption,
    WithOption,
    WithoutOption,
    by_domain,
    changed,
    tell_headers,
    tell_of_changes,
)
from r2n.cli.screen import (
    DeviceOption,
    JobsOption,
    JsonOption,
    PhaseProgress,
    RunArgument,
    ScreenTable,
    new_path,
    print_json,
    progress,
    screen,
)
from r2n.errors import ConfigError, counted

if TYPE_CHECKING:  # torch takes seconds to import: these come in where they are used
    import pyarrow as pa

    from r2n.evaluation.calibrate import Calibrated
    from r2n.prediction.answers import Answers
    from r2n.prediction.predicted_file import AskedOfRun
    from r2n.prediction.predictor import Predictor

MOST_ROWS_SHOWN = 50
MOST_ROWS_LAID_OUT = 1_000  # of one table on the screen, whose columns are as wide as its cells

QuestionArgument = Annotated[
    str | None, typer.Argument(help='An atom; ? stands for what is asked: "locatedIn(italy, ?)".')
]
TopOption = Annotated[
    int | None, typer.Option(min=1, help="How many answers to a question with ?: 10, or with --all every one.")
]
FEW = 10
UnknownOption = Annotated[bool, typer.Option("--unknown", help="Only what is not known already.")]
AllOption = Annotated[bool, typer.Option("--all", help="Also atoms that no ground rule reaches.")]
QueriesOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Ask many: a table like those of facts; ? may stand in it.")
]
OutOption = Annotated[
    Path | None,
    typer.Option(parser=new_path, metavar="FILE", help="Write the answers: .csv, .tsv, .parquet, .json or .jsonl."),
]


class Wanted(TypedDict):
    """Which atoms a question with `?` is answered by."""

    everything: bool
    top: int | None
    unknown: bool


def most_answers(top: int | None, *, show_all: bool) -> int | None:
    """How many answers to a question are shown: as many as somebody says, else a few, or (`show_all`) every one."""
    return top or (None if show_all else FEW)


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
    from r2n.prediction.answer_table import AnswersWanted, check_output
    from r2n.prediction.predicted_file import AskedOfRun
    from r2n.prediction.predictor import Predictor

    if (question is None) == (queries is None):
        raise ConfigError(
            "either a question or a file of queries is asked", hint='r2n predict RUN "p(a, ?)", or --queries FILE'
        )
    if out is not None:
        check_output(out)
    if jobs is not None and (queries is None or out is None or as_json):
        raise ConfigError("--jobs shares out a file of queries", hint="r2n predict RUN --queries FILE --out FILE")
    wanted = Wanted(everything=show_all, top=most_answers(top, show_all=show_all), unknown=unknown)
    with progress(str(run)) as shown:
        predictor = Predictor.load(run, device=device, progress=shown)
        predictor = changed(predictor, more or [], fewer or [], constants or [])
        tell_headers(predictor, [] if queries is None else [queries])
        if queries is None or out is None or as_json:
            told = _told(predictor, question, queries, wanted, as_table=out is not None)
        else:
            facts = (tuple(more or ()), tuple(fewer or ()), by_domain(constants or []))
            asked = AskedOfRun(run, queries, AnswersWanted(**wanted), *facts, device)
            told = _told_in_file(predictor, asked, out, jobs, shown)
    tell_of_changes(predictor, facts_changed=bool(more or fewer))
    told(out, as_json)


Tell = Callable[[Path | None, bool], None]
"""Tells what was found: in a file, as JSON, or on the screen."""


def _told_in_file(
    predictor: "Predictor", asked: "AskedOfRun", out: Path, jobs: int | None, shown: PhaseProgress
) -> Tell:
    """Answer a file of queries part by part: what was found is in the file already."""
    from r2n.prediction.predicted_file import predict_file

    found = predict_file(asked, out, jobs=jobs, predictor=predictor, progress=shown)

    def tell(_: Path | None, __: bool) -> None:
        tell_calibration(predictor.calibration)
        typer.echo(f"{found} in {out}", err=True)

    return tell


def _told(
    predictor: "Predictor", question: str | None, queries: Path | None, wanted: Wanted, *, as_table: bool
) -> Tell:
    from r2n.prediction.answer_table import answer_table, question_table

    if question is None:
        assert queries is not None
        return partial(_tell_table, answer_table(predictor, queries, **wanted), predictor.calibration)
    if as_table:
        return partial(_tell_table, question_table(predictor, question, **wanted), predictor.calibration)
    return partial(_tell_answers, predictor, question, predictor.predict(question, **wanted))


def _tell_answers(predictor: "Predictor", question: str, answers: "Answers", _: Path | None, as_json: bool) -> None:
    tell_calibration(answers.calibration)
    if as_json:
        print_json(answers_document(question, answers))
    else:
        print_answers(predictor, answers)


def answers_document(question: str, answers: "Answers") -> dict[str, Any]:
    """The answers as they are printed with --json."""
    counts = {name: getattr(answers, name) for name in ("asked", "refused", "left_out", "hidden")}
    calibration = None if answers.calibration is None else asdict(answers.calibration)
    told, columns = [asdict(item) for item in answers], answers.columns
    return {"question": question, "columns": columns, "answers": told, **counts, "calibration": calibration}


def tell_calibration(calibration: "Calibrated | None") -> None:
    """On what probabilities rest, on standard error."""
    from r2n.evaluation.calibrate import told_calibration

    typer.echo(f"probabilities: {told_calibration(calibration)}", err=True)


def _tell_table(table: "pa.Table", calibration: "Calibrated | None", out: Path | None, as_json: bool) -> None:
    """Write a table of answers, or show its first rows."""
    from r2n.prediction.answer_table import write_answers

    tell_calibration(calibration)
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


def print_answers(predictor: "Predictor", answers: "Answers", *, is_numbered: bool = False) -> None:
    """The answers as a table on standard output, and what else there is to say of them on standard error."""
    from r2n.knowledge.features import constant_labels
    from r2n.prediction.shown_answers import known_text

    knowledge = predictor.changed.problem.knowledge
    names = {name for item in answers for name in item.constants}
    labels = constant_labels(knowledge.features, knowledge.language, names)
    is_ensemble, number = any(item.spread is not None for item in answers), [""] * is_numbered
    heads = [*number, "atom", "probability", "known", "predicted", *["logit ± spread"] * is_ensemble]
    heads += ["label"] * bool(labels)
    for start in range(0, max(len(answers), 1), MOST_ROWS_LAID_OUT):
        table = ScreenTable(*heads)
        for i, item in enumerate(answers.items[start : start + MOST_ROWS_LAID_OUT], start=start + 1):
            spread = [f"{item.logit:.2f} ± {item.spread:.2f}"] if item.spread is not None else []
            first = [*[str(i)] * is_numbered, item.atom, f"{item.probability:.4f}"]
            label = [", ".join(labels[name] for name in item.constants if name in labels)] if labels else []
            table.add_texts([*first, known_text(item), f"{item.network:.4f}", *spread, *label])
        screen().print(table)
    if answers.left_out:
        why = "nothing is known of them, and no ground rule reaches them: --all asks the input layer"
        typer.echo(f"left out: {counted(answers.left_out, 'atom')}; {why}", err=True)
    if answers.hidden:
        typer.echo(f"not shown: {counted(answers.hidden, 'atom')} known already", err=True)
    if answers.refused:
        atoms = counted(answers.refused, "atom")
        typer.echo(f"{atoms} of new constants cannot be answered: ask for one, and see why", err=True)
