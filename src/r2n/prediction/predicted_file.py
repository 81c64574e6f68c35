"""A trained network, asked: a file of any number of queries -> a file of answers, part by part, by several processes.

Memory holds one part of the queries and its answers. A part is written when it is done: whoever is stopped asks the
same again, and goes on. The parts are the same for any number of processes, and so are the answers.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from r2n.errors import counted
from r2n.evaluation.shares import Share
from r2n.knowledge.reading.chunks import read_fact_chunks
from r2n.knowledge.reading.tables import Table
from r2n.prediction.answer_parts import AnswerParts, file_digest
from r2n.prediction.answer_table import AnswersWanted, answers_to, check_output
from r2n.prediction.predictor import Predictor
from r2n.progress import Progress, no_progress
from r2n.runs.checkpoint import MANIFEST
from r2n.runs.folder import RunFolder, read_config
from r2n.runs.processes import shared

QUERIES_AT_ONCE = 2**14


@dataclass(frozen=True)
class AskedOfRun:
    """What is asked of which run: queries, which of their answers, and what is known besides, in words.

    `size`: so many rows of the file are answered at once.
    """

    folder: Path
    queries: Path
    wanted: AnswersWanted = field(default_factory=AnswersWanted)
    more: tuple[str, ...] = ()
    fewer: tuple[str, ...] = ()
    domains: Mapping[str, Sequence[str]] = field(default_factory=dict)
    device: str = "auto"
    size: int = QUERIES_AT_ONCE

    def load(self, progress: Progress = no_progress) -> Predictor:
        """The run's network, knowing less, and then more."""
        predictor = Predictor.load(self.folder, device=self.device, progress=progress)
        predictor = predictor.without_facts(list(self.fewer)) if self.fewer else predictor
        if not self.more and not self.domains:
            return predictor
        return predictor.with_facts(list(self.more), domains=self.domains)


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
    asked: AskedOfRun,
    out: Path,
    *,
    jobs: int | None = None,
    predictor: Predictor | None = None,
    progress: Progress = no_progress,
) -> Predicted:
    """Write the answers to a file of queries, in its order; `answer_table` says what its columns are.

    `jobs` processes share the work, one thread each (None: one, with as many as torch takes). `predictor`: the network,
    where it is loaded already. Stopped half-way, the same call goes on from the parts that are done.
    """
    check_output(out)
    parts = AnswerParts(out)
    with parts.opened(_identity(asked, is_shared=jobs is not None)) as before:
        with shared(jobs, _predict_share, asked, parts) as share:
            predictor = asked.load(progress) if predictor is None else predictor
            made = _predict(share, asked, parts, predictor, progress)
        return Predicted(parts.join(predictor.argument_names), made, before)


def _predict_share(share: Share, asked: AskedOfRun, parts: AnswerParts) -> None:
    _predict(share, asked, parts, asked.load(), no_progress)


def _predict(share: Share, asked: AskedOfRun, parts: AnswerParts, predictor: Predictor, progress: Progress) -> int:
    """Answer the parts of this share that are not done; the number of parts in all."""
    number, done, total = -1, 0, _rows_of(asked.queries)
    theory = predictor.changed.problem.knowledge.theory
    for number, queries in enumerate(read_fact_chunks(Table(asked.queries), asked.size, theory=theory)):
        if share.takes(number) and not parts.path(number).exists():
            parts.keep(number, answers_to(predictor, queries, asked.wanted))
        done += sum(map(len, queries))
        progress("predict", done, total)
    if number < 0:  # a file without queries: a table without rows
        number = 0
        parts.keep(0, answers_to(predictor, [], asked.wanted))
    share.together([])  # all are done
    return number + 1


def _rows_of(path: Path) -> int:
    """How many queries there are, where that is cheap to tell; else 0."""
    return pq.read_metadata(path).num_rows if path.suffix == ".parquet" and path.is_file() else 0


def _identity(asked: AskedOfRun, *, is_shared: bool) -> dict[str, Any]:
    """All that the answers depend on: only parts with the same belong together."""
    folder = RunFolder(asked.folder)
    networks = folder.networks(read_config(folder).seeds)
    files = [folder.config, folder.calibration, *(place.path / MANIFEST for place in networks)]
    told = [*asked.fewer, "", *asked.more]
    return {
        "run": [file_digest(path) if path.is_file() else None for path in files],
        "queries": [str(asked.queries.resolve()), _digest_of(str(asked.queries))],
        "wanted": asdict(asked.wanted),
        "told": [_digest_of(text) for text in told],
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
            return file_digest(Path(text))
    except (OSError, ValueError):  # no name that a file could have
        pass
    return hashlib.sha256(text.encode()).hexdigest()
