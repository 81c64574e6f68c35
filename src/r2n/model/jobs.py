"""Long work on a run folder, shared by processes: evaluation, and answers to a file of queries in resumable parts."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from r2n.data.tables import Table, read_fact_chunks
from r2n.errors import CheckpointError, counted, refusing
from r2n.evaluation.ranking import EvaluationOptions, Shard
from r2n.evaluation.report import Report
from r2n.files import new_file, write_atomically
from r2n.model.evaluation import Constrained
from r2n.model.model import Model
from r2n.model.processes import shared
from r2n.model.questions import (
    PREDICATES,
    AnswerOptions,
    answers_to,
    check_output,
    finished,
    has_false_labels,
    write_tables,
)
from r2n.progress import Progress, no_progress
from r2n.store.checkpoint import MANIFEST, locked
from r2n.store.folder import RunFolder, read_config

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
    """What is asked of a run: queries, which answers, changed facts; `size` rows of the file are answered at once."""

    folder: Path
    queries: Path
    wanted: AnswerOptions = field(default_factory=AnswerOptions)
    more: tuple[str, ...] = ()
    fewer: tuple[str, ...] = ()
    domains: Mapping[str, Sequence[str]] = field(default_factory=dict)
    device: str = "auto"
    size: int = QUERIES_AT_ONCE

    def load(self, progress: Progress = no_progress) -> Model:
        """The run's network, knowing less, and then more."""
        model = Model.load(self.folder, device=self.device, progress=progress)
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
    asked: PredictionJob,
    out: Path,
    *,
    jobs: int | None = None,
    model: Model | None = None,
    progress: Progress = no_progress,
) -> Predicted:
    """Write the answers to a file of queries, in its order, with the columns of `answer_table`.

    `jobs` processes share the work, one thread each (None: one, with as many as torch takes). `model`: the network, if
    it is loaded already. Stopped half-way, the same call goes on from the parts that are done.
    """
    check_output(out)
    parts = AnswerParts(out)
    with parts.opened(_identity(asked, is_shared=jobs is not None)) as before:
        with shared(jobs, _predict, asked, parts) as shard:
            model, made = _predict(shard, asked, parts, model, progress)
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
    """What is evaluated: the queries of a split, perhaps a sample of them, and once more with constraints of kinds."""

    folder: Path
    split: str = "test"
    sample: int | None = None
    seed: int = 0
    kinds: tuple[str, ...] = ()
    device: str = "auto"
    memory: int | None = None


def evaluate_run(
    asked: EvaluationJob, *, jobs: int | None = None, progress: Progress = no_progress
) -> tuple[Model, Sequence[Report]]:
    """The model, and the reports on it: by `jobs` processes with one thread each, the same for any number of them."""
    with shared(jobs, _evaluate_shard, asked) as shard:
        return _evaluate_shard(shard, asked, progress)


def _evaluate_shard(shard: Shard, asked: EvaluationJob, progress: Progress = no_progress) -> tuple[Model, list[Report]]:
    model = Model.load(asked.folder, device=asked.device, memory=asked.memory, progress=progress)
    forbidden: list[Constrained | None] = [None]
    if asked.kinds:
        forbidden.append(Constrained.from_knowledge(model.problem.knowledge, asked.kinds))
    every = [EvaluationOptions(sample=asked.sample, seed=asked.seed, forbidden=part, shard=shard) for part in forbidden]
    return model, [model.evaluate(asked.split, options=options, baselines=True) for options in every]
