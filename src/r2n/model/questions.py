"""Queries as text and tables, and completion of their constants."""

import csv
import io
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from r2n.data.atom_text import ANYTHING, written_name
from r2n.data.knowledge_base import encode_facts
from r2n.data.tables import Facts, Table, read_facts
from r2n.errors import ConfigError, DataError
from r2n.files import json_text, new_file
from r2n.logic.formula import unescaped
from r2n.logic.language import Language
from r2n.model.answers import PREDICTED, Answers, Question, unnamed_arguments
from r2n.model.model import Model

MOST = 100
_QUOTED = r'"(?:[^"\\]|\\.)*"' + r"|'[^']*'"
# Runs of space are possessive (++, *+), so that a long one is read once, whatever follows.
_PREDICATE = re.compile(rf"""\s*+(?:({_QUOTED}|[^\s("']++)\s*+\()""", re.S)
_TERM = re.compile(rf"""\s*+(?:{_QUOTED}|[^,"'\s]++(?:\s++[^,"'\s]++)*+)\s*+,""", re.S)
_BEGUN = re.compile(r"""(?:"((?:[^"\\]|\\.)*)|'([^']*)|([^"']*))\Z""", re.S)  # a name that is not closed yet


def complete(language: Language, text: str, *, most: int = MOST) -> tuple[int, tuple[str, ...]]:
    """How the question in `text` may go on: a position, and texts that may each replace what follows it.

    First come predicates, then constants of the right domain. Names that begin with what is typed come first, then
    those that contain it in any case. A name is quoted if needed, and followed by what comes next.
    """
    name, position, rest = None, 0, text
    if (head := _PREDICATE.match(text)) is not None:
        end, name = head.end(), head.group(1)
        while (term := _TERM.match(text, end)) is not None:
            end, position = term.end(), position + 1
        rest, name = text[end:], unescaped(name[1:-1]) if name[0] in "\"'" else name
    begun = _BEGUN.match(rest := rest.lstrip())
    predicate = next((each for each in language.predicates if each.name == name), None)
    if begun is None or (name is not None and (predicate is None or position >= predicate.arity)):
        return len(text), ()
    double, single, bare = begun.groups()
    typed = bare if bare is not None else unescaped(single if double is None else double)
    if predicate is None:
        names, behind, first = sorted(each.name for each in language.predicates), "(", []
    else:
        names = [language.constants[i] for i in language.members(predicate.domains[position]).tolist()]
        behind, first = ")" if position == predicate.arity - 1 else ", ", [ANYTHING] * (not typed)
    found = islice((*first, *map(written_name, islice(_matching(names, typed), most))), most)
    return len(text) - len(rest), tuple(each + behind for each in found)


def _matching(names: Sequence[str], typed: str) -> Iterator[str]:
    """Of sorted names, those that begin with a text; then those that have it inside, whatever its case."""
    first = bisect_left(names, typed)
    last = first
    while last < len(names) and names[last].startswith(typed):
        yield names[last]
        last += 1
    lower = typed.casefold()
    yield from (name for i, name in enumerate(names) if not first <= i < last and lower in name.casefold())


PREDICATES = b"predicates"
ENDINGS = (".csv", ".tsv", ".parquet", ".json", ".jsonl")
ROWS_AT_ONCE = 2**16


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Which atoms a query with `?` is answered by, and whether known atoms are left out."""

    everything: bool = False
    top: int | None = None
    unknown: bool = False


REACHED = AnswerOptions()


def answer_table(model: Model, queries: Table | Path | str, wanted: AnswerOptions = REACHED) -> pa.Table:
    """The answers to the queries of a file: a row for each atom, in the order of the file.

    A query without `?` has one row, others those that `Model.predict` answers. The columns: `row` of the file from 1,
    `rank` within the query from 1, `predicate`, the arguments by their names (`Model.argument_names`), the fields of an
    `Answer`, and `label` if the file holds false queries. What cannot be answered has a probability of null.
    """
    table = queries if isinstance(queries, Table) else Table(Path(queries))
    facts = read_facts(table, theory=model.problem.knowledge.theory).facts
    return finished(answers_to(model, facts, wanted), model.argument_names({part.predicate for part in facts}))


def answers_to(model: Model, queries: Sequence[Facts], wanted: AnswerOptions) -> pa.Table:
    """The answers by row and rank, with all columns (see `finished`); the metadata name the predicates asked."""
    parts = [part for facts in queries for part in _answered(model, facts, wanted)]
    if not parts:
        parts.append(_rows(model.columns(nothing := np.zeros(0, np.int64)), row=nothing))
    every = pa.concat_tables(parts, promote_options="default")
    asked = json.dumps(sorted({facts.predicate for facts in queries}))
    return every.sort_by([("row", "ascending"), ("rank", "ascending")]).replace_schema_metadata({PREDICATES: asked})


def finished(table: pa.Table, arguments: Sequence[str], *, labelled: bool | None = None) -> pa.Table:
    """A table of answers, or a part of one, with its columns in order; labels stay if some are false (`labelled`)."""
    if not (has_false_labels(table) if labelled is None else labelled):
        table = table.drop_columns("label")
    unnamed = unnamed_arguments(len(arguments))
    for name in unnamed:
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(table.num_rows, pa.string()))
    first, last = ["row", "rank", "predicate"], [n for n in (*PREDICTED, "label") if n in table.column_names]
    table = table.select([*first, *unnamed, *last]).replace_schema_metadata(None)
    return table.rename_columns([*first, *arguments, *last])


def has_false_labels(table: pa.Table) -> bool:
    """Whether a label says that a query is false."""
    return pc.all(pc.fill_null(table["label"], True)).as_py() is False


def questions_table(model: Model, answers: Sequence[Answers], predicates: Sequence[str]) -> pa.Table:
    """Answers to questions on these predicates, in the columns of `answer_table`; the `row` numbers the questions."""
    parts = [_rows(part, row=np.full(len(part), i, np.int64)) for i, part in enumerate(answers)]
    every = pa.concat_tables(parts, promote_options="default")
    return finished(every, model.argument_names(set(predicates)), labelled=False)


def _answered(model: Model, facts: Facts, wanted: AnswerOptions) -> list[pa.Table]:
    """The answers to the queries of one predicate: those that name all constants together, the others one by one."""
    is_open = np.zeros(len(facts), bool)
    for column in facts.arguments:
        is_open |= pc.equal(column, ANYTHING).to_numpy(zero_copy_only=False)
    named, found = facts.take(np.flatnonzero(~is_open)), []
    if len(named):
        encoded, _ = encode_facts(model.base, [named])
        answers = model.columns(encoded.codes)
        kept = answers.truths < 0 if wanted.unknown else np.ones(len(named), bool)
        found.append(_rows(answers.kept(kept), row=named.rows[kept], label=named.truth[kept]))
    for i in np.flatnonzero(is_open).tolist():
        terms = [column[i].as_py() for column in facts.arguments]
        try:
            question = Question.from_terms(model.base, facts.predicate, [None if t == ANYTHING else t for t in terms])
        except DataError as error:
            raise DataError(error.what, where=facts.location(i), hint=error.hint) from None
        answers = model.answer(replace(question, **asdict(wanted)))
        found.append(_rows(answers, row=np.full(len(answers), facts.rows[i])))
    return found


def _rows(answers: Answers, *, row: np.ndarray, label: np.ndarray | None = None) -> pa.Table:
    """Answers as a table; ranks count from 1 within a question, and are all 1 if each atom is a question."""
    table = replace(answers, columns=()).to_arrow().add_column(0, "row", pa.array(row + 1, pa.int64()))
    if label is None:
        return table.append_column("label", pa.nulls(len(answers), pa.bool_()))
    table = table.set_column(1, "rank", pa.array(np.ones(len(answers), np.int64)))
    return table.append_column("label", pa.array(label, pa.bool_()))


def check_output(path: Path) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(f"'{path}' is no table of answers", hint=f"let it end in {', '.join(ENDINGS)}")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"'{path}' cannot be written: there is no folder {path.parent}", hint="make it first")


def write_tables(parts: Iterable[pa.Table], path: Path) -> int:
    """Write tables of answers as one file, complete or not at all; the number of rows. The ending says as what.

    In CSV and TSV, true and false are 1 and 0, like the labels of tables of facts.
    """
    ending, count, writer, rows = path.suffix.lower(), 0, None, []
    with new_file(path) as file:
        for part in parts:
            count += part.num_rows
            if ending == ".parquet":
                writer = pq.ParquetWriter(file, part.schema) if writer is None else writer
                writer.write_table(part, row_group_size=ROWS_AT_ONCE)
            elif ending == ".json":
                rows += part.to_pylist()
            elif ending == ".jsonl":
                file.write("".join(f"{json_text(row)}\n" for row in part.to_pylist()).encode())
            else:
                text = io.StringIO()
                lines = csv.writer(text, delimiter="," if ending == ".csv" else "\t", lineterminator="\n")
                lines.writerows([part.column_names] if file.tell() == 0 else [])
                columns = (one.cast(pa.int8()) if pa.types.is_boolean(one.type) else one for one in part.columns)
                lines.writerows(zip(*(column.to_pylist() for column in columns), strict=True))
                file.write(text.getvalue().encode())
        if writer is not None:
            writer.close()
        if ending == ".json":
            file.write(json_text(rows, indent=1).encode())
    return count


def write_answers(table: pa.Table, path: Path) -> None:
    """Write a table of answers, complete or not at all; the ending says as what."""
    check_output(path)
    starts = range(0, max(table.num_rows, 1), ROWS_AT_ONCE)
    try:
        write_tables((table.slice(start, ROWS_AT_ONCE) for start in starts), path)
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be written: {error.strerror}", hint="give another --out") from error
