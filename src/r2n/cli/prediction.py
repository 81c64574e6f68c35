"""The command line: r2n predict."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from r2n.cli.screen import DeviceOption, JsonOption, RunArgument, ScreenTable, print_json, progress, screen
from r2n.errors import ConfigError, DataError, counted, nearest

if TYPE_CHECKING:  # torch takes seconds to import: these come in where they are used
    import pyarrow as pa

    from r2n.prediction.answers import Answer, Answers
    from r2n.prediction.predictor import Predictor

MOST_ROWS_SHOWN = 50

QuestionArgument = Annotated[
    str | None, typer.Argument(help='An atom; ? stands for what is asked: "locatedIn(italy, ?)".')
]
QueriesOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Ask many: a table like those of facts; ? may stand in it.")
]
OutOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the answers: .csv, .tsv, .parquet, .json or .jsonl.")
]
WithOption = Annotated[
    list[str] | None, typer.Option("--with", metavar="FACT|FILE", help='Known too: "near(a, b)", or a table.')
]
WithoutOption = Annotated[
    list[str] | None, typer.Option("--without", metavar="FACT|FILE", help="No longer known; goes before --with.")
]
ConstantOption = Annotated[
    list[str] | None, typer.Option("--constant", metavar="DOMAIN=NAME", help="A new constant and its domain.")
]


class Wanted(TypedDict):
    """Which atoms a question with `?` is answered by."""

    everything: bool
    top: int
    unknown: bool


def predict(
    run: RunArgument,
    question: QuestionArgument = None,
    queries: QueriesOption = None,
    out: OutOption = None,
    more: WithOption = None,
    fewer: WithoutOption = None,
    constants: ConstantOption = None,
    top: Annotated[int, typer.Option(min=1, help="How many answers to a question with ?.")] = 10,
    unknown: Annotated[bool, typer.Option("--unknown", help="Only what is not known already.")] = False,
    show_all: Annotated[bool, typer.Option("--all", help="Also atoms that no ground rule reaches.")] = False,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Ask a trained network: one question, or a file of queries."""
    from r2n.prediction.answer_table import check_output
    from r2n.prediction.predictor import Predictor

    if (question is None) == (queries is None):
        raise ConfigError(
            "either a question or a file of queries is asked", hint='r2n predict RUN "p(a, ?)", or --queries FILE'
        )
    if out is not None:
        check_output(out)
    wanted: Wanted = {"everything": show_all, "top": top, "unknown": unknown}
    with progress(str(run)) as shown:
        predictor = Predictor.load(run, device=device, progress=shown)
        predictor = _changed(predictor, more or [], fewer or [], _by_domain(constants or []))
        told = _told(predictor, question, queries, wanted, as_table=out is not None)
    _tell_of_changes(predictor, changed=bool(more or fewer))
    told(out, as_json)


def _changed(predictor: "Predictor", more: list[str], fewer: list[str], constants: dict[str, list[str]]) -> "Predictor":
    """Knowing less, and then more."""
    if fewer:
        with _naming("--without"):
            predictor = predictor.without_facts(fewer)
    if more or constants:
        with _naming("--with" if more else "--constant"):
            predictor = predictor.with_facts(more, domains=constants)
    return predictor


@contextmanager
def _naming(option: str) -> Iterator[None]:
    """Errors of what an option gave say which option it was."""
    try:
        yield
    except DataError as error:
        where, what = error.where, error.what
        if where is not None and where.source is not None:
            where = replace(where, source=f"{option} {where.source}")
        else:
            where, what = where and replace(where, line=None), f"{option}: {what}"
        raise DataError(what, where=where, hint=error.hint) from None


Tell = Callable[[Path | None, bool], None]
"""Tells what was found: in a file, as JSON, or on the screen."""


def _told(
    predictor: "Predictor", question: str | None, queries: Path | None, wanted: Wanted, *, as_table: bool
) -> Tell:
    from r2n.prediction.answer_table import answer_table, question_table

    if question is None:
        assert queries is not None
        return partial(_tell_table, answer_table(predictor, queries, **wanted))
    if as_table:
        return partial(_tell_table, question_table(predictor, question, **wanted))
    return partial(_tell_answers, question, predictor.predict(question, **wanted))


def _tell_answers(question: str, answers: "Answers", _: Path | None, as_json: bool) -> None:
    if not as_json:
        _print_answers(answers)
        return
    counts = {name: getattr(answers, name) for name in ("asked", "refused", "left_out", "hidden")}
    print_json({"question": question, "answers": [asdict(item) for item in answers], **counts})


def _tell_table(table: "pa.Table", out: Path | None, as_json: bool) -> None:
    """Write a table of answers, or show its first rows."""
    from r2n.prediction.answer_table import write_answers

    if out is not None:
        write_answers(table, out)
        typer.echo(f"{counted(table.num_rows, 'answer')} in {out}", err=True)
    if as_json:
        print_json({"answers": table.to_pylist()})
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


def _print_answers(answers: "Answers") -> None:
    table = ScreenTable("atom", "probability", "known", "network alone")
    for item in answers:
        table.add_texts([item.atom, f"{item.probability:.4f}", _known(item), f"{item.network:.4f}"])
    screen().print(table)
    if answers.left_out:
        why = "nothing is known of them, and no ground rule reaches them: --all asks the network alone"
        typer.echo(f"left out: {counted(answers.left_out, 'atom')}; {why}", err=True)
    if answers.hidden:
        typer.echo(f"not shown: {counted(answers.hidden, 'atom')} known already", err=True)
    if answers.refused:
        atoms = counted(answers.refused, "atom")
        typer.echo(f"{atoms} of new constants cannot be answered: ask for one, and see why", err=True)


def _known(item: "Answer") -> str:
    """What is known of an atom, and whether rules speak of it: an atom of a closed predicate that is no fact is false.

    What is known needs no rule, so that only an unknown atom says that it has none.
    """
    if item.closed and not item.known:
        return "closed"
    if item.known is not None:
        return "true" if item.known else "false"
    return "" if item.reached else "(no ground rule)"


def _by_domain(constants: list[str]) -> dict[str, list[str]]:
    """`country=atlantis` as {"country": ["atlantis"]}."""
    found: dict[str, list[str]] = {}
    for text in constants:
        domain, equals, name = text.partition("=")
        if not equals or not domain.strip() or not name.strip():
            raise ConfigError(f"'{text}' names no domain and constant", hint="write --constant DOMAIN=NAME")
        found.setdefault(domain.strip(), []).append(name.strip())
    return found


def _tell_of_changes(predictor: "Predictor", *, changed: bool) -> None:
    """What a person who changes facts should know, on standard error."""
    for name in predictor.changed.new_constants:
        near = nearest(name, predictor.changed.trained.constants)
        typer.echo(f"new constant: {name}" + (f" ({near})" if near else ""), err=True)
    if changed and predictor.model.evidence_input == "off":
        typer.echo(
            "this network does not read facts (model.evidence_input = off): they act through the grounding alone",
            err=True,
        )
