"""A known name -> Problem: the benchmarks of the paper, and two larger knowledge graphs.

Embedded datasets are problem folders inside the package. The others are read from the folder in `R2N_DATA`
or from the download cache, and their problems are put together here. Nothing here uses the network.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from r2n.data.problem import Problem, load_problem
from r2n.data.records import read_text
from r2n.data.tables import Table
from r2n.datasets.cora import cuts, load_cora
from r2n.datasets.download import find
from r2n.errors import ConfigError, nearest
from r2n.logic.horn import parse_horn_rules
from r2n.logic.theory import Theory
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
    """A benchmark: what it is, on what terms, and how large.

    `folder` is below the package's data where `is_embedded`, else below `R2N_DATA` or the download cache.
    """

    name: str
    title: str
    licence: str
    source: str
    sizes: Sizes
    folder: str
    is_embedded: bool


_S1 = "Countries S1: the region of a country, known through its subregion"
_S2 = "Countries S2: the region of a country, known through its neighbours"
_S3 = "Countries S3: the region of a country, known through its neighbours' subregions"
_NATIONS = "Nations: relations between 14 countries"
_KINSHIP = "Kinship: kinship terms of the Alyawarra"
_UMLS = "UMLS: relations between biomedical concepts"
_CORA = "Cora: which authors, titles and venues are the same; fold "
_WN18RR = "WN18RR: relations between word senses of WordNet, with mined rules"
_FB15K237 = "FB15k-237: relations between things of Freebase, with mined rules"
_MLEDOZE, _PYKEEN = "mledoze/countries, npm world-countries 1.8.1", "PyKEEN 1.11.1"
_EXPRESSGNN, _CONVE = (
    "expressGNN/ExpressGNN",
    "TimDettmers/ConvE; rules: rodrigo-castellano/keras_ns_grounders",
)
_UNKNOWN = "not stated"

_CORA_SPLITS = ((12134, 1577), (10573, 3214), (10016, 2073), (11703, 1462), (12340, 1569))  # train and valid, by fold
_CORA_JOINED = ((11548, 1577), (9941, 3214), (9450, 2073), (11154, 1462), (11693, 1569))
_CORA_TEST = (1679, 1649, 3281, 2188, 1542)


def _cora() -> list[Dataset]:
    """Each fold as the test, with constants of its own and joined with the others."""
    found = []
    for joined, constants, splits in (("", 885, _CORA_SPLITS), ("-joined", 700, _CORA_JOINED)):
        for fold, ((train, valid), test) in enumerate(zip(splits, _CORA_TEST, strict=True), start=1):
            title = f"{_CORA}{fold}" + ", the folds joined" * bool(joined)
            sizes = Sizes(constants, 4, train, valid, test)
            found.append(Dataset(f"cora-s{fold}{joined}", title, "CC0-1.0", _EXPRESSGNN, sizes, "cora", False))
    return found


_LISTED = (
    Dataset("countries-s1", _S1, "ODbL-1.0", _MLEDOZE, Sizes(271, 2, 1110, 120, 120), "countries-s1", True),
    Dataset("countries-s2", _S2, "ODbL-1.0", _MLEDOZE, Sizes(271, 2, 1062, 120, 120), "countries-s2", True),
    Dataset("countries-s3", _S3, "ODbL-1.0", _MLEDOZE, Sizes(271, 2, 978, 120, 120), "countries-s3", True),
    Dataset("nations", _NATIONS, "CC0-1.0", _PYKEEN, Sizes(14, 55, 1592, 199, 201), "nations", True),
    Dataset("kinship", _KINSHIP, "CC0-1.0", _PYKEEN, Sizes(104, 25, 8544, 1068, 1074), "kinship", True),
    Dataset("umls", _UMLS, "CC0-1.0", _PYKEEN, Sizes(135, 46, 5216, 652, 661), "umls", True),
    *_cora(),
    Dataset("wn18rr", _WN18RR, _UNKNOWN, _CONVE, Sizes(40943, 11, 86835, 3034, 3134), "wn18rr", False),
    Dataset("fb15k237", _FB15K237, _UNKNOWN, _CONVE, Sizes(14541, 237, 272115, 17535, 20466), "fb15k237", False),
)

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _LISTED}
"""The known names, in the order of the paper."""


def load(name: str | Path, *, on_error: str | None = None) -> Problem:
    """The problem of a known name, else of a problem file or its folder.

    A known name goes before a folder of the same name; write `./nations` for the folder.
    """
    dataset = DATASETS.get(str(name))
    if dataset is not None:
        return replace(_load_known(dataset, on_error), source=dataset.name)
    path = Path(name)
    if _is_there(path) or path.suffix == ".toml" or len(path.parts) > 1:
        return load_problem(path, on_error=on_error)
    near = nearest(str(name), DATASETS)
    raise ConfigError(
        f"'{name}' is no known dataset, and there is no such problem file or folder",
        hint=f"{near} " * bool(near) + f"known: {', '.join(DATASETS)}",
    )


def _is_there(path: Path) -> bool:
    """Whether there is such a file or folder; a name that is too long for one is refused."""
    try:
        return path.exists()
    except OSError as error:
        raise ConfigError(f"'{str(path)[:60]}...' cannot be read: {error.strerror}") from error


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
    return _load_knowledge_graph(dataset.name, folder, on_error or "raise")


def cuts_of_test(problem: Problem) -> dict[str, np.ndarray]:
    """Parts of a known problem's test queries that are looked at by themselves, as masks over them."""
    dataset = DATASETS.get(problem.source or "")
    if dataset is None or not dataset.name.startswith("cora"):
        return {}
    return cuts(problem, folder_of(dataset), cora_fold(dataset)[0])


def cora_fold(dataset: Dataset) -> tuple[int, bool]:
    """The fold that a problem of Cora asks for, and whether its folds are joined."""
    _, fold, *joined = dataset.name.split("-")
    return int(fold[1:]), bool(joined)


def _load_knowledge_graph(name: str, folder: Path, on_error: str) -> Problem:
    """Triples and mined Horn rules over one domain; the facts with constants unseen in training are kept."""
    return Problem.build(
        name,
        _mined_rules(folder / "rules.txt"),
        [_split(folder, "train")],
        {split: [_split(folder, split)] for split in ("valid", "test")},
        on_error=on_error,
        options=Options(grounding=GroundingOptions(strategy="known-body")),  # full: billions of substitutions
    )


def _split(folder: Path, split: str) -> Table:
    """A split's triples, gzipped or not."""
    packed = folder / f"{split}.tsv.gz"
    return Table(packed if packed.exists() else folder / f"{split}.tsv", header=False)


def _mined_rules(path: Path) -> Theory:
    """The Horn rules; one slip of FB15k-237's file is mended: the head of r117 has lost its first letters."""
    text = read_text(path).decode()
    return parse_horn_rules(text.replace("-> rd/award_winner/", "-> /award/award_winner/"), source=str(path))
