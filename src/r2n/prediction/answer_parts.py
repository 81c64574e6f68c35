"""A trained network, asked: answers in parts beside the file that is to hold them, until it is whole.

The folder `.NAME.parts` holds the parts, by number, and a manifest that says what they are the answers to. Whoever asks
the same again finds the parts that are done, and nobody finds a file that is half of one.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from r2n.errors import CheckpointError, ConfigError
from r2n.prediction.answer_table import PREDICATES, WRITERS, appending, arity_of, finished, has_false_labels
from r2n.prediction.shown_answers import unnamed_arguments
from r2n.runs.lock import locked
from r2n.whole_files import new_file, write_atomically

MANIFEST = "manifest.json"
FORMAT = 2
ArgumentNames = Callable[[Iterable[str]], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """The parts of the answers that are to stand in a file."""

    file: Path

    @property
    def folder(self) -> Path:
        """Where they are."""
        return self.file.with_name(f".{self.file.name}.parts")

    @contextmanager
    def opened(self, asked: Mapping[str, Any]) -> Iterator[int]:
        """The number of parts that are done already; parts of other questions than these are taken away."""
        manifest = {"format": FORMAT, **asked}
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise ConfigError(f"'{self.file}' cannot be written: {error.strerror}", hint="give another --out") from None
        with locked(self.folder):
            if _read_json(self.folder / MANIFEST) != manifest:
                for path in self.folder.glob("*part-*"):
                    path.unlink()
                write_atomically(self.folder / MANIFEST, json.dumps(manifest, indent=1).encode())
            try:
                yield len(self.paths())
            finally:
                if not self.paths():
                    shutil.rmtree(self.folder, ignore_errors=True)

    def paths(self) -> list[Path]:
        """The parts that are done, in order."""
        return sorted(self.folder.glob("part-*.parquet"))

    def path(self, number: int) -> Path:
        """The place of a part."""
        return self.folder / f"part-{number:09d}.parquet"

    def keep(self, number: int, answers: pa.Table) -> None:
        """Write a part, whole or not at all."""
        write_atomically(self.path(number), WRITERS[".parquet"](answers))

    def join(self, names: ArgumentNames | None = None) -> int:
        """Make one file of all parts, under its name only when it is whole; the number of answers in it.

        `names` gives the names of the argument columns for the predicates of all parts.
        """
        paths = self.paths()
        try:
            with new_file(self.file) as file:
                count = _join(paths, file, self.file.suffix.lower(), names)
        except pa.ArrowException as error:
            raise CheckpointError(
                f"a part in {self.folder} is damaged: {error}", hint="delete that folder, and ask again"
            ) from error
        for path in paths:
            path.unlink()
        return count


def file_digest(path: Path) -> str:
    """The checksum of a file of any size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _join(paths: list[Path], file: BinaryIO, ending: str, names: ArgumentNames | None) -> int:
    schemas = [pq.read_schema(path) for path in paths]
    if names is None:
        arguments = unnamed_arguments(max(map(arity_of, schemas), default=0))
    else:
        asked = [json.loads((schema.metadata or {}).get(PREDICATES, b"[]")) for schema in schemas]
        arguments = names({predicate for part in asked for predicate in part})
    labelled = any(has_false_labels(pq.read_table(path, columns=["label"])) for path in paths)
    count = 0
    with appending(file, ending) as append:
        for path in paths:
            part = finished(pq.read_table(path), arguments, labelled=labelled)
            append(part)
            count += part.num_rows
    return count
