"""Known problems by name: the benchmarks of the paper, and two larger knowledge graphs.

Embedded datasets are problem folders inside the package. The others are read from the folder in `R2N_DATA`
or from the download cache, and their problems are put together here. Nothing here uses the network.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from r2n.data.problem import Problem, load_problem
from r2n.data.tables import Table
from r2n.data.text_tables import read_text
from r2n.datasets.cora import cuts, load_cora
from r2n.datasets.download import find
from r2n.errors import ConfigError, nearest
from r2n.logic.horn import parse_horn_rules
from r2n.options import GroundingOptions, Options

EMBEDDED = Path(__file__).parent / "data"


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
    sizes: Sizes
    folder: str
    is_embedded: bool


def _listed() -> Iterator[Dataset]:
    """All datasets, in the order of the paper."""
    countries, pykeen = "mledoze/countries, npm world-countries 1.8.1", "PyKEEN 1.11.1"
    for i, through, train in (
        (1, "its subregion", 1110),
        (2, "its neighbours", 1062),
        (3, "its neighbours' subregions", 978),
    ):
        name, title = f"countries-s{i}", f"Countries S{i}: the region of a country, known through {through}"
        yield Dataset(name, title, "ODbL-1.0", countries, Sizes(271, 2, train, 120, 120), name, True)
    for title, sizes in (
        ("Nations: relations between 14 countries", Sizes(14, 55, 1592, 199, 201)),
        ("Kinship: kinship terms of the Alyawarra", Sizes(104, 25, 8544, 1068, 1074)),
        ("UMLS: relations between biomedical concepts", Sizes(135, 46, 5216, 652, 661)),
    ):
        name = title.partition(":")[0].lower()
        yield Dataset(name, title, "CC0-1.0", pykeen, sizes, name, True)
    test = (1679, 1649, 3281, 2188, 1542)  # by fold, each with constants of its own and joined with the others
    own = ((12134, 1577), (10573, 3214), (10016, 2073), (11703, 1462), (12340, 1569))
    all_joined = ((11548, 1577), (9941, 3214), (9450, 2073), (11154, 1462), (11693, 1569))
    for joined, constants, splits in (("", 885, own), ("-joined", 700, all_joined)):
        for i, (train, valid) in enumerate(splits):
            title = f"Cora: which authors, titles and venues are the same; fold {i + 1}"
            title += ", the folds joined" * bool(joined)
            sizes = Sizes(constants, 4, train, valid, test[i])
            yield Dataset(f"cora-s{i + 1}{joined}", title, "CC0-1.0", "expressGNN/ExpressGNN", sizes, "cora", False)
    for name, title, sizes in (
        ("wn18rr", "WN18RR: relations between word senses of WordNet", Sizes(40943, 11, 86835, 3034, 3134)),
        ("fb15k237", "FB15k-237: relations between things of Freebase", Sizes(14541, 237, 272115, 17535, 20466)),
    ):
        source = "TimDettmers/ConvE; rules: rodrigo-castellano/keras_ns_grounders"
        yield Dataset(name, f"{title}, with mined rules", "not stated", source, sizes, name, False)


DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _listed()}
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
