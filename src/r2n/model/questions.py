"""Queries as text, tables and files, and completion of their constants; long work on a run, shared by processes."""

import csv
import hashlib
import io
import json
import re
import shutil
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from r2n.data.atom_text import ANYTHING, written_name
from r2n.data.knowledge_base import encode_facts
from r2n.data.tables import Facts, Table, read_fact_chunks, read_facts
from r2n.datasets.benchmarks import load
from r2n.errors import CheckpointError, ConfigError, DataError, counted, refusing
from r2n.evaluation.ranking import EvaluationOptions, Shard
from r2n.evaluation.report import Report
from r2n.files import json_text, new_file, write_atomically
from r2n.logic.formula import unescaped
from r2n.logic.language import Language
from r2n.mining.mine import Constrained
from r2n.model.answers import PREDICTED, Answers, Question, unnamed_arguments
from r2n.model.model import Model
from r2n.model.processes import shared
from r2n.progress import Progress, no_progress
from r2n.store.checkpoint import MANIFEST, locked
from r2n.store.folder import RunFolder, read_config

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


PARTS_MANIFEST = "manifest.json"
FORMAT = 2


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """The parts of the answers that are to stand in a file, in a folder next to it."""

    file: Path

    @property
    def folder(self) -> Path:
        """The folder that holds them."""
        return self.file.with_name(f".{self.file.name}.parts")

    @contextmanager
    def opened(self, asked: Mapping[str, Any]) -> Iterator[int]:
        """The number of parts that are done already; parts of other questions than these are taken away."""
        manifest = {"format": FORMAT, **asked}
        with refusing(f"'{self.file}' cannot be written", "give another --out"):
            self.folder.mkdir(exist_ok=True)
        with locked(self.folder):
            try:
                found = json.loads((self.folder / PARTS_MANIFEST).read_text("utf-8"))
            except (OSError, ValueError):
                found = None
            if found != manifest:
                for path in self.folder.glob("*part-*"):
                    path.unlink()
                write_atomically(self.folder / PARTS_MANIFEST, json.dumps(manifest, indent=1).encode())
            try:
                yield len(self.paths())
            finally:
                if not self.paths():
                    shutil.rmtree(self.folder, ignore_errors=True)

    def paths(self) -> list[Path]:
        """The parts that are done, in order."""
        return sorted(self.folder.glob("part-*.parquet"))

    def path(self, number: int) -> Path:
        """The path of a part."""
        return self.folder / f"part-{number:09d}.parquet"

    def keep(self, number: int, answers: pa.Table) -> None:
        """Write a part, complete or not at all."""
        with new_file(self.path(number)) as file:
            pq.write_table(answers, file)

    def join(self, names: Callable[[Iterable[str]], tuple[str, ...]]) -> int:
        """Make one file of all parts, complete or not at all; `names` names arguments. Returns the rows."""
        paths = self.paths()
        try:
            asked = [json.loads((pq.read_schema(path).metadata or {})[PREDICATES]) for path in paths]
            arguments = names({predicate for part in asked for predicate in part})
            labelled = any(has_false_labels(pq.read_table(path, columns=["label"])) for path in paths)
            count = write_tables(
                (finished(pq.read_table(path), arguments, labelled=labelled) for path in paths), self.file
            )
        except (pa.ArrowException, KeyError) as error:
            what = f"a part in {self.folder} is damaged: {error}"
            raise CheckpointError(what, hint="delete that folder, and ask again") from error
        for path in paths:
            path.unlink()
        return count


QUERIES_AT_ONCE = 2**14


@dataclass(frozen=True)
class PredictionJob:
    """What is asked of a run: queries, which answers, changed facts; `size` rows of the file are answered at once.

    `on` names another problem with the same predicates, which is asked in place of the run's own.
    """

    folder: Path
    queries: Path
    wanted: AnswerOptions = field(default_factory=AnswerOptions)
    more: tuple[str, ...] = ()
    fewer: tuple[str, ...] = ()
    domains: Mapping[str, Sequence[str]] = field(default_factory=dict)
    device: str = "auto"
    size: int = QUERIES_AT_ONCE
    on: str | None = None

    def load(self, progress: Progress = no_progress) -> Model:
        """The run's network, knowing less, and then more."""
        model = Model.load(self.folder, device=self.device, progress=progress)
        model = model if self.on is None else model.on(load(self.on))
        return model.with_changes(self.more, self.fewer, self.domains)


@dataclass(frozen=True, slots=True)
class Predicted:
    """How many answers were written, and how many parts of them had been there before."""

    answers: int
    parts: int
    parts_before: int

    def __str__(self) -> str:
        """`2 answers, 3 of 4 parts found done`."""
        found = f", {self.parts_before:,} of {counted(self.parts, 'part')} found done" if self.parts_before else ""
        return f"{counted(self.answers, 'answer')}{found}"


def predict_file(
    job: PredictionJob, out: Path, jobs: int | None = None, model: Model | None = None, progress: Progress = no_progress
) -> Predicted:
    """Write the answers to a file of queries, in its order, with the columns of `answer_table`.

    `jobs` processes share the work, one thread each (None: one, with as many as torch takes). `model`: the network, if
    it is loaded already. Stopped half-way, the same call goes on from the parts that are done.
    """
    check_output(out)
    parts = AnswerParts(out)
    with parts.opened(_identity(job, is_shared=jobs is not None)) as before:
        with shared(jobs, _predict, job, parts) as shard:
            model, made = _predict(shard, job, parts, model, progress)
        return Predicted(parts.join(model.argument_names), made, before)


def _predict(
    shard: Shard, asked: PredictionJob, parts: AnswerParts, model: Model | None = None, progress: Progress = no_progress
) -> tuple[Model, int]:
    """Answer the parts of this shard that are not done; the model, and the number of parts in all."""
    model = asked.load(progress) if model is None else model
    number, done, total = -1, 0, 0
    if asked.queries.suffix == ".parquet" and asked.queries.is_file():
        total = pq.read_metadata(asked.queries).num_rows
    theory = model.problem.knowledge.theory
    for number, queries in enumerate(read_fact_chunks(Table(asked.queries), asked.size, theory=theory)):
        if shard.takes(number) and not parts.path(number).exists():
            parts.keep(number, answers_to(model, queries, asked.wanted))
        done += sum(map(len, queries))
        progress("predict", done, total)
    if number < 0:  # a file without queries: a table without rows
        number = 0
        parts.keep(0, answers_to(model, [], asked.wanted))
    shard.together([])  # all are done
    return model, number + 1


def _identity(asked: PredictionJob, *, is_shared: bool) -> dict[str, Any]:
    """All that the answers depend on: only parts with the same belong together."""
    folder = RunFolder(asked.folder)
    networks = folder.networks(read_config(folder).seeds)
    files = [folder.config, folder.calibration, *(own.path / MANIFEST for own in networks)]
    return {
        "run": [_digest_of(str(path)) if path.is_file() else None for path in files],
        "queries": [str(asked.queries.resolve()), _digest_of(str(asked.queries))],
        "wanted": asdict(asked.wanted),
        "on": asked.on,
        "changes": [_digest_of(text) for text in (*asked.fewer, "", *asked.more)],
        "domains": {name: list(constants) for name, constants in sorted(asked.domains.items())},
        "device": asked.device,
        "size": asked.size,
        "one_thread": is_shared,
        "versions": {name: version(name) for name in ("r2n", "torch", "pyarrow")},
    }


def _digest_of(text: str) -> str:
    """The checksum of the file of that name, or of a text that names none."""
    try:
        if Path(text).is_file():
            with Path(text).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):  # no name that a file could have
        pass
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class EvaluationJob:
    """What is evaluated: the queries of a split, perhaps a sample of them, and once more with constraints of kinds.

    `on` names another problem with the same predicates, whose queries are asked.
    """

    folder: Path
    split: str = "test"
    sample: int | None = None
    seed: int = 0
    kinds: tuple[str, ...] = ()
    device: str = "auto"
    memory: int | None = None
    on: str | None = None


def evaluate_run(
    asked: EvaluationJob, *, jobs: int | None = None, progress: Progress = no_progress
) -> tuple[Model, Sequence[Report]]:
    """The model, and the reports on it: by `jobs` processes with one thread each, the same for any number of them."""
    with shared(jobs, _evaluate_shard, asked) as shard:
        return _evaluate_shard(shard, asked, progress)


def _evaluate_shard(shard: Shard, asked: EvaluationJob, progress: Progress = no_progress) -> tuple[Model, list[Report]]:
    model = Model.load(asked.folder, device=asked.device, memory=asked.memory, progress=progress)
    model = model if asked.on is None else model.on(load(asked.on))
    forbidden: list[Constrained | None] = [None]
    if asked.kinds:
        forbidden.append(Constrained.from_knowledge(model.problem.knowledge, asked.kinds))
    every = [EvaluationOptions(sample=asked.sample, seed=asked.seed, forbidden=part, shard=shard) for part in forbidden]
    return model, [model.evaluate(asked.split, options=options, baselines=True) for options in every]
