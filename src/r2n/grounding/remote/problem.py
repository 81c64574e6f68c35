"""A problem file whose tables Spark reads itself -> its tables with Spark; or why this process has to read them."""

from pathlib import Path

from r2n.data.problem import TRAIN, ProblemFile, checked_path, listed_constants
from r2n.grounding.remote.derived import derive_stated
from r2n.grounding.remote.stated import is_read_by_spark, read_stated
from r2n.grounding.remote.tables import RemoteTables, remote_tables
from r2n.grounding.spark_engine import SparkEngine
from r2n.logic.parser import read_theory
from r2n.logic.theory import Theory
from r2n.options import GroundingOptions

_BACKGROUND = "background"


def why_not_remote(file: ProblemFile, folder: Path, options: GroundingOptions) -> str | None:
    """What of a problem only one process can do; None where Spark can do all of it."""
    specs = [*file.facts.train, *file.facts.background, *(s for part in file.queries.splits().values() for s in part)]
    others = [spec.file for spec in specs if not is_read_by_spark(spec, folder)]
    if not specs or others:
        return f"{others[0]} is no Parquet and no table of Spark's" if others else "there is no table of facts"
    reasons = {
        "candidates are found in one process": bool(file.candidates),
        "wrong rows are skipped in one process": file.on_error == "skip",
        "reciprocals are made in one process": options.reciprocal,
        "backward chaining goes on from what is found": options.strategy == "backward",
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def open_problem(engine: SparkEngine, file: ProblemFile, folder: Path, scratch: Path) -> RemoteTables:
    """The tables of a problem, with Spark; what is written for it lies under `scratch`."""
    theory = read_theory(checked_path(folder, file.theory)) if file.theory else Theory()
    tables = {TRAIN: file.facts.train, **file.queries.splits(), _BACKGROUND: file.facts.background}
    read = read_stated(engine, tables, folder)
    stated = tuple(part for part in read if part.split != _BACKGROUND)
    if file.derived:
        given = [part for part in read if part.split in (TRAIN, _BACKGROUND)]
        stated += derive_stated(engine, file.derived, given, scratch, str(folder / "problem.toml"))
    domains = {name: listed_constants(given, folder) for name, given in file.domains.items()}
    return remote_tables(engine, theory, stated, scratch, domains=domains)
