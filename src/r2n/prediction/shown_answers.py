"""A trained network, asked: answers -> the tables of notebooks and of other libraries."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from r2n.errors import ConfigError, counted
from r2n.explanation.wording import printable, probability_text, shortened
from r2n.logic.language import Language

if TYPE_CHECKING:
    import pandas
    import polars

    from r2n.prediction.answers import Answer, Answers

MOST_ROWS = 50
LONGEST_NAME = 200
BAR = 80  # pixels
TYPES = {
    "probability": pa.float64(),
    "known": pa.bool_(),
    "closed": pa.bool_(),
    "network": pa.float64(),
    "logit": pa.float64(),
    "spread": pa.float64(),
    "reached": pa.bool_(),
}
FIXED = frozenset({"row", "rank", "predicate", "question", "atom", "label", *TYPES})
"""Columns that tables of answers have besides those of the arguments."""


def argument_names(
    language: Language, columns: Mapping[str, tuple[str, ...]], predicates: Iterable[str]
) -> tuple[str, ...]:
    """The names of the columns that hold the arguments of atoms of these predicates (of none: of any).

    They are those of the table that the facts came from (`columns`), else of the domains; a name that stands there
    twice, or that such a table has for another column, is numbered: `person_1`, `person_2`. Where the predicates
    differ in them, the columns are `argument_1`, ...
    """
    asked = [language.predicate(name) for name in predicates] or language.predicates
    each = {_numbered(columns.get(one.name) or tuple(domain.name for domain in one.domains)) for one in asked}
    if len(each) == 1:
        return each.pop()
    return unnamed_arguments(max(map(len, each), default=0))


def unnamed_arguments(arity: int) -> tuple[str, ...]:
    """`argument_1`, `argument_2`, ..."""
    return tuple(f"argument_{i + 1}" for i in range(arity))


def _numbered(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names that differ from each other and from the fixed ones, whatever their capital letters."""
    folded = [name.casefold() for name in names]
    is_taken = [name in FIXED or not name.strip() or folded.count(name) > 1 for name in folded]
    found = tuple(f"{name}_{folded[: i + 1].count(folded[i])}" if is_taken[i] else name for i, name in enumerate(names))
    is_clear = len({name.casefold() for name in found}) == len(found)
    return found if is_clear else unnamed_arguments(len(names))


def answers_arrow(answers: "Answers") -> pa.Table:
    """A row for each answer; there is a `spread` where there is an ensemble."""
    arity = max((len(item.constants) for item in answers), default=len(answers.columns))
    arguments = answers.columns or unnamed_arguments(arity)
    columns: dict[str, Any] = {
        "rank": pa.array(range(1, len(answers) + 1), pa.int64()),
        "predicate": pa.array([item.predicate for item in answers], pa.string()),
    }
    for i, argument in enumerate(arguments):
        names = [item.constants[i] if i < len(item.constants) else None for item in answers]
        columns[argument] = pa.array(names, pa.string())
    for name, kind in TYPES.items():
        columns[name] = pa.array([getattr(item, name) for item in answers], kind)
    if not (answers.of_ensemble or _of_ensemble(answers)):
        del columns["spread"]
    return pa.table(columns)


def answers_pandas(answers: "Answers") -> "pandas.DataFrame":
    """What is not known is missing (`pandas.NA`), and neither true nor false."""
    boolean = _library("pandas").BooleanDtype()
    return answers_arrow(answers).to_pandas(types_mapper={pa.bool_(): boolean}.get)


def answers_polars(answers: "Answers") -> "polars.DataFrame":
    """The same table, without a copy where polars needs none."""
    return _library("polars").from_arrow(answers_arrow(answers))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        hint = f"pip install {name}, or take to_arrow(), which needs no more than r2n has"
        raise ConfigError(f"answers as a table of {name} need {name}, which is not installed", hint=hint) from None


def _of_ensemble(answers: Sequence["Answer"]) -> bool:
    return any(item.spread is not None for item in answers)


def answers_html(answers: "Answers") -> str:
    """A table for a notebook, in the colours of the page around it; names are text, never markup."""
    heads = ["", "atom", "probability", "", "known", "predicted", *["logit ± spread"] * _of_ensemble(answers)]
    shown = "".join(_row(i, item) for i, item in enumerate(answers.items[:MOST_ROWS], start=1))
    head = "".join(f'<th scope="col" style="text-align:left">{text}</th>' for text in heads)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{shown}</tbody></table>"
    return f'<div style="overflow-x:auto">{table}<p>{escape("; ".join(_foot(answers)))}</p></div>'


def _foot(answers: "Answers") -> list[str]:
    """What stands below the table."""
    texts = [f"{counted(len(answers), 'answer')} to {counted(answers.asked, 'atom')} asked"]
    texts += [f"the first {MOST_ROWS} are shown"] * (len(answers) > MOST_ROWS)
    texts += [f"{counted(answers.left_out, 'atom')} left out, which nothing is known of"] * bool(answers.left_out)
    texts += [f"{counted(answers.hidden, 'atom')} not shown, known already"] * bool(answers.hidden)
    texts += [f"{counted(answers.refused, 'atom')} of new constants cannot be answered"] * bool(answers.refused)
    calibrated = answers.calibration
    return [*texts, "not calibrated" if calibrated is None else calibrated.in_words]


def _row(number: int, item: "Answer") -> str:
    atom = escape(shortened(printable(item.atom), LONGEST_NAME))
    said = [known_text(item), probability_text(item.network)]
    said += [] if item.spread is None else [f"{item.logit:.2f} ± {item.spread:.2f}"]
    cells = [
        str(number),
        f"<code><bdi>{atom}</bdi></code>",
        escape(probability_text(item.probability)),
        _bar(item.probability),
        *map(escape, said),
    ]
    return "".join(["<tr>", *(f'<td style="text-align:left">{cell}</td>' for cell in cells), "</tr>"])


def _bar(probability: float) -> str:
    whole, part = f'width="{BAR}" height="8"', f'width="{BAR * probability:.1f}" height="8"'
    track = f'<rect {whole} rx="2" fill="currentColor" fill-opacity="0.15"/>'
    return f'<svg {whole} aria-hidden="true">{track}<rect {part} rx="2" fill="currentColor" fill-opacity="0.7"/></svg>'


def known_text(item: "Answer") -> str:
    """What is known of an atom, and whether rules speak of it: an atom of a closed predicate that is no fact is false.

    What is known needs no rule, so that only an unknown atom says that it has none.
    """
    if item.closed and not item.known:
        return "closed"
    if item.known is not None:
        return "true" if item.known else "false"
    return "" if item.reached else "(no ground rule)"
