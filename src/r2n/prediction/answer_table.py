"""A trained network, asked: a file of queries -> a table of answers, and a file of those."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from r2n.errors import ConfigError, DataError
from r2n.json_text import json_text
from r2n.knowledge.atom_text import ANYTHING
from r2n.knowledge.encoding import encode_facts
from r2n.knowledge.reading.chunks import chosen_facts
from r2n.knowledge.reading.tables import Facts, Table, read_facts
from r2n.prediction.answers import AnswerColumns, Question
from r2n.prediction.predictor import Predictor
from r2n.prediction.shown_answers import unnamed_arguments
from r2n.whole_files import new_file

PREDICATES = b"predicates"
ROWS_AT_ONCE = 2**16
Append = Callable[[pa.Table], None]


def answer_table(
    predictor: Predictor,
    queries: Table | Path | str,
    *,
    everything: bool = False,
    top: int | None = None,
    unknown: bool = False,
) -> pa.Table:
    """The answers to the queries of a file: a row for each atom, in the order of the file.

    A query whose constants are all named has one row. Where a constant is `?`, the query has the rows that
    `Predictor.predict` answers, at most `top` of them. `unknown` leaves out what is known or closed. The columns: `row`
    of the file (its line in a text file) from 1, `rank` within the query from 1, `predicate`, one for each argument
    (`Predictor.argument_names` says what they are called), `probability`, `known` (null: it is not), `closed`,
    `network`, `logit`, `reached` as an Answer has them, of an ensemble `spread` too, and `label` where the file holds
    false queries. What cannot be answered has a probability of null.
    """
    table = queries if isinstance(queries, Table) else Table(Path(queries))
    wanted = AnswersWanted(everything, top, unknown)
    facts = read_facts(table, theory=predictor.changed.problem.knowledge.theory).facts
    return finished(answers_to(predictor, facts, wanted), predictor.argument_names({part.predicate for part in facts}))


@dataclass(frozen=True, slots=True)
class AnswersWanted:
    """Which atoms a query with `?` is answered by, and whether what is known is told."""

    everything: bool = False
    top: int | None = None
    unknown: bool = False


def answers_to(predictor: Predictor, queries: Sequence[Facts], wanted: AnswersWanted) -> pa.Table:
    """The answers to queries by row and rank, with all columns that such a table may have: see `finished`.

    The table's metadata name the predicates that were asked, also where none of their atoms is an answer.
    """
    parts = [part for facts in queries for part in _answered(predictor, facts, wanted)]
    whole = pa.concat_tables(parts, promote_options="default") if parts else _rows(predictor, _nothing(predictor))
    asked = json.dumps(sorted({facts.predicate for facts in queries}))
    return whole.sort_by([("row", "ascending"), ("rank", "ascending")]).replace_schema_metadata({PREDICATES: asked})


def finished(table: pa.Table, arguments: Sequence[str], *, labelled: bool | None = None) -> pa.Table:
    """A table of answers as it is told: columns in their order, `arguments` named; labels only where some are false.

    Of a part of a table, `labelled` says whether the whole has labels.
    """
    if not (has_false_labels(table) if labelled is None else labelled):
        table = table.drop_columns("label")
    unnamed = unnamed_arguments(len(arguments))
    for name in unnamed:
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(table.num_rows, pa.string()))
    last = ["probability", "known", "closed", "network", "logit", "spread", "reached", "label"]
    first, last = ["row", "rank", "predicate"], [name for name in last if name in table.column_names]
    table = table.select([*first, *unnamed, *last]).replace_schema_metadata(None)
    return table.rename_columns([*first, *arguments, *last])


def arity_of(schema: pa.Schema) -> int:
    """How many arguments a table of answers has."""
    return sum(name.startswith("argument_") for name in schema.names)


def has_false_labels(table: pa.Table) -> bool:
    """Whether a label says that a query is false."""
    return pc.all(pc.fill_null(table["label"], True)).as_py() is False


def question_table(
    predictor: Predictor,
    question: str,
    *,
    everything: bool = False,
    top: int | None = None,
    unknown: bool = False,
) -> pa.Table:
    """The answers to one question, in the columns of `answer_table`."""
    asked = Question.parse(predictor.base, question)
    columns = predictor.told(asked, everything=everything, top=top, unknown=unknown)
    return told_table(predictor, [(asked.predicate.name, columns)])


def told_table(predictor: Predictor, told: Sequence[tuple[str, AnswerColumns]]) -> pa.Table:
    """Answers to questions, each with its predicate, in the columns of `answer_table`; the `row` numbers them."""
    parts = [
        _rows(predictor, columns, row=np.full(len(columns.atoms), i, np.int64)) for i, (_, columns) in enumerate(told)
    ]
    whole = pa.concat_tables(parts, promote_options="default")
    return finished(whole, predictor.argument_names({predicate for predicate, _ in told}), labelled=False)


def _nothing(predictor: Predictor) -> AnswerColumns:
    return predictor.columns(np.zeros(0, np.int64))


def _answered(predictor: Predictor, facts: Facts, wanted: AnswersWanted) -> list[pa.Table]:
    """The answers to the queries of one predicate: those that name all constants together, the others one by one."""
    is_open = np.zeros(len(facts), bool)
    for column in facts.arguments:
        is_open |= pc.equal(column, ANYTHING).to_numpy(zero_copy_only=False)
    named, found = chosen_facts(facts, np.flatnonzero(~is_open)), []
    if len(named):
        encoded, _ = encode_facts(predictor.base, [named])
        columns = predictor.columns(encoded.codes)
        kept = columns.truths < 0 if wanted.unknown else np.ones(len(named), bool)
        found.append(_rows(predictor, columns.kept(kept), row=named.rows[kept], label=named.truth[kept]))
    for i in np.flatnonzero(is_open).tolist():
        columns = predictor.told(_question(predictor, facts, i), **asdict(wanted))
        found.append(_rows(predictor, columns, row=np.full(len(columns.atoms), facts.rows[i])))
    return found


def _question(predictor: Predictor, facts: Facts, i: int) -> Question:
    terms = [column[i].as_py() for column in facts.arguments]
    try:
        return Question.of(predictor.base, facts.predicate, [None if term == ANYTHING else term for term in terms])
    except DataError as error:
        raise DataError(error.what, where=facts.location(i), hint=error.hint) from None


def _rows(
    predictor: Predictor, columns: AnswerColumns, *, row: np.ndarray | None = None, label: np.ndarray | None = None
) -> pa.Table:
    """Answers as a table; ranks count from 1 where they answer one question, and are all 1 where each is its own."""
    base, count = predictor.base, len(columns.atoms)
    index, arguments = base.decode(columns.atoms)
    names = pa.array([predicate.name for predicate in base.language.predicates], pa.string())
    constants = pa.array(base.language.constants, pa.string())
    where = np.zeros(0, np.int64) if row is None else row + 1
    arity = int((arguments >= 0).any(axis=0).sum()) if count else arguments.shape[1]
    made: dict[str, Any] = {
        "row": pa.array(where, pa.int64()),
        "rank": pa.array(np.arange(1, count + 1) if label is None else np.ones(count, np.int64), pa.int64()),
        "predicate": names.take(pa.array(index)),
        **{f"argument_{i + 1}": constants.take(pa.array(arguments[:, i])) for i in range(arity)},
        "probability": pa.array(columns.probability, mask=columns.refused),
        "known": pa.array(columns.truths == 1, mask=~columns.is_stated),
        "closed": columns.closed,
        "network": pa.array(columns.network, mask=columns.refused),
        "logit": pa.array(columns.logits, mask=columns.refused),
        **({} if columns.spread is None else {"spread": pa.array(columns.spread, mask=columns.refused)}),
        "reached": columns.reached,
        "label": pa.array(label, pa.bool_()) if label is not None else pa.nulls(count, pa.bool_()),
    }
    return pa.table(made)


def as_separated(separator: str, table: pa.Table, *, header: bool = True) -> bytes:
    """A table as CSV or TSV."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    if header:
        writer.writerow(table.column_names)
    writer.writerows(zip(*(_cells(column) for column in table.columns), strict=True))
    return text.getvalue().encode()


def _cells(column: pa.ChunkedArray) -> list[Any]:
    """As a text table has them: true and false as 1 and 0, like the labels of tables of facts."""
    return (column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column).to_pylist()


def as_lines(table: pa.Table) -> bytes:
    """A table as one JSON object a row."""
    return "".join(f"{json_text(row)}\n" for row in table.to_pylist()).encode()


def _as_parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


WRITERS: dict[str, Callable[[pa.Table], bytes]] = {
    ".csv": lambda table: as_separated(",", table),
    ".tsv": lambda table: as_separated("\t", table),
    ".parquet": _as_parquet,
    ".json": lambda table: json_text(table.to_pylist(), indent=1).encode(),
    ".jsonl": as_lines,
}


@contextmanager
def appending(file: BinaryIO, ending: str) -> Iterator[Append]:
    """Appends tables to a file of that kind; what JSON holds is one list, and written at the end."""
    parts: list[pa.Table] = []
    writers: list[pq.ParquetWriter] = []

    def append(part: pa.Table) -> None:
        if ending == ".json":
            parts.append(part)
        elif ending == ".jsonl":
            file.write(as_lines(part))
        elif ending != ".parquet":
            file.write(as_separated({".csv": ",", ".tsv": "\t"}[ending], part, header=file.tell() == 0))
        else:
            if not writers:
                writers.append(pq.ParquetWriter(file, part.schema))
            writers[0].write_table(part, row_group_size=ROWS_AT_ONCE)

    yield append
    for writer in writers:
        writer.close()
    if parts:
        file.write(WRITERS[".json"](pa.concat_tables(parts)))


def check_output(path: Path) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    if path.suffix.lower() not in WRITERS:
        raise ConfigError(f"'{path}' is no table of answers", hint=f"let it end in {', '.join(WRITERS)}")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"'{path}' cannot be written: there is no folder {path.parent}", hint="make it first")


def write_answers(table: pa.Table, path: Path) -> None:
    """Write a table of answers, whole or not at all; the ending says as what."""
    check_output(path)
    try:
        with new_file(path) as file, appending(file, path.suffix.lower()) as append:
            for start in range(0, max(table.num_rows, 1), ROWS_AT_ONCE):
                append(table.slice(start, ROWS_AT_ONCE))
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be written: {error.strerror}", hint="give another --out") from error
