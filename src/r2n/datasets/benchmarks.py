"""Known problems by name: the benchmarks of the paper, and two larger knowledge graphs.

Embedded datasets are problem folders inside the package. The others are read from the folder in `R2N_DATA`
or from the download cache, and their problems are put together here. Nothing here uses the network.
"""

from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from r2n.data.problem import Problem, load_problem
from r2n.data.tables import Table
from r2n.data.text_tables import read_text
from r2n.datasets.cora import cuts, load_cora
from r2n.datasets.download import EMBEDDED, SOURCES, find, listed
from r2n.errors import ConfigError, nearest
from r2n.logic.horn import parse_horn_rules
from r2n.options import GroundingOptions, Options


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many constants, predicates, facts and queries a benchmark has."""

    constants: int
    predicates: int
    train: int
    valid: int
    test: int


@dataclass(frozen=True, slots=True)
class Dataset:
    """A benchmark; `folder` is below the package's data if `is_embedded`, else below `R2N_DATA` or the cache."""

    name: str
    title: str
    licence: str
    source: str
    folder: str
    sizes: Sizes
    is_embedded: bool


DATASETS: dict[str, Dataset] = {}
for _row in listed("datasets"):
    _texts = _row["name"], _row["title"], _row["licence"], _row["source"], _row["folder"]
    _sizes = Sizes(*(int(_row[part.name]) for part in fields(Sizes)))
    DATASETS[_row["name"]] = Dataset(*_texts, _sizes, _row["folder"] not in SOURCES)
"""The known names, in the order of the paper."""


def load(name: str | Path, *, on_error: str | None = None) -> Problem:
    """The problem of a known name, else of a problem file or its folder.

    A known name goes before a folder of the same name; write `./nations` for the folder.
    """
    dataset = DATASETS.get(str(name))
    if dataset is not None:
        return replace(_load_known(dataset, on_error), source=dataset.name)
    path = Path(name)
    try:
        exists = path.exists()
    except OSError as error:  # a name that is too long
        raise ConfigError(f"'{str(path)[:60]}...' cannot be read: {error.strerror}") from error
    if exists or path.suffix == ".toml" or len(path.parts) > 1:
        return load_problem(path, on_error=on_error)
    near = nearest(str(name), DATASETS)
    hint = f"{near} " * bool(near) + f"known: {', '.join(DATASETS)}"
    raise ConfigError(f"'{name}' is no known dataset, and there is no such problem file or folder", hint=hint)


def folder_of(dataset: Dataset) -> Path:
    """Where the dataset's files are on this machine; a DataError says how to get them if they are nowhere."""
    return EMBEDDED / dataset.folder if dataset.is_embedded else find(dataset.folder)


def _load_known(dataset: Dataset, on_error: str | None) -> Problem:
    folder = folder_of(dataset)
    if dataset.is_embedded:
        return load_problem(folder, on_error=on_error)
    if dataset.name.startswith("cora"):
        fold, joined = cora_fold(dataset)
        return load_cora(dataset.name, folder, fold, joined=joined, on_error=on_error or "raise")
    text = read_text(folder / "rules.txt").decode()
    text = text.replace("-> rd/award_winner/", "-> /award/award_winner/")  # a slip in FB15k-237: r117 has lost letters
    packed = {split: folder / f"{split}.tsv.gz" for split in ("train", "valid", "test")}
    tables = {
        split: [Table(path if path.exists() else path.with_suffix(""), header=False)] for split, path in packed.items()
    }
    return Problem.build(
        dataset.name,
        parse_horn_rules(text, source=str(folder / "rules.txt")),
        tables.pop("train"),
        tables,
        on_error=on_error or "raise",
        options=Options(grounding=GroundingOptions(strategy="known-body")),  # full: billions of substitutions
    )


def cuts_of_test(problem: Problem) -> dict[str, np.ndarray]:
    """Parts of a known problem's test queries that are looked at by themselves, as masks over them."""
    dataset = DATASETS.get(problem.source or "")
    if dataset is None or not dataset.name.startswith("cora"):
        return {}
    return cuts(problem, folder_of(dataset), cora_fold(dataset)[0])


def cora_fold(dataset: Dataset) -> tuple[int, bool]:
    """The test fold of a problem of Cora, and whether its folds are joined."""
    _, fold, *joined = dataset.name.split("-")
    return int(fold[1:]), bool(joined)
