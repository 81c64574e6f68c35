"""Known problems by name: the benchmarks of the paper, and two larger knowledge graphs.

Embedded datasets are problem folders inside the package. The others are read from the folder in `R2N_DATA` or from the
download cache, and their problems are put together here. Only `download` uses the network: it fetches from public
repositories, at pinned commits, into the cache, which has one folder for each dataset that is not embedded. Every file
kept is checked against its sha256 each time it is used.

Of Cora one of five folds is left out, as the paper's supervised protocol needs it. Fold i is the test. The next fold is
for validation, without the atoms of fold i, and the other three are for training, without the atoms of either.
SamePaper is derived from the facts. Each fold has constants of its own (`S1:Author_...`), so that its facts say nothing
about another fold; where the folds are `joined`, one name is one constant in all of them, and the facts of all folds
are taken together.
"""

import csv
import hashlib
import os
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool

from r2n.data.candidates import Candidates
from r2n.data.features import FeatureTable
from r2n.data.knowledge_base import wrong_arity
from r2n.data.problem import Problem, load_problem, read_problem_file
from r2n.data.tables import Table, read_facts
from r2n.data.text_tables import read_text
from r2n.errors import ConfigError, DataError, nearest
from r2n.files import scratch_folder, take_away
from r2n.logic.parser import parse_horn_rules, read_theory
from r2n.progress import Progress

GITHUB = "https://raw.githubusercontent.com"
DATA_VARIABLE = "R2N_DATA"
EMBEDDED = Path(__file__).parent / "data"
SCRATCH = "download"
TIMEOUT = 30  # seconds without a byte


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a public repository at a pinned commit, or a member of a `.tar.gz` there, and what it is kept as."""

    repository: str
    commit: str
    path: str
    name: str
    sha256: str
    member: str = ""

    def matches(self, content: bytes) -> bool:
        """Whether `content` is this very file."""
        return hashlib.sha256(content).hexdigest() == self.sha256

    def address(self, base: str) -> str:
        """Where to fetch it, below `base`."""
        return f"{base}/{self.repository}/{self.commit}/{self.path}"


class _BytesDone:
    """What pooch takes for a progress bar: it sets `total` and says how many more bytes have come."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.total, self.done = progress, 0, 0

    def update(self, n: int) -> None:
        self.done += n
        self.progress("download", self.done, self.total)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None: ...


def listed(what: str) -> list[dict[str, str]]:
    """The rows of a table of the package: `datasets`, or the `sources` of those that are not embedded."""
    with (EMBEDDED / f"{what}.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


SOURCES = {
    folder: tuple(Source(*list(row.values())[1:]) for row in rows)
    for folder, rows in groupby(listed("sources"), itemgetter("folder"))
}
"""What is fetched of each dataset that is not embedded, by its folder."""


def cache_folder() -> Path:
    """The folder of this user's downloads, e.g. `~/.cache/r2n`."""
    import pooch

    return Path(pooch.os_cache("r2n"))


def is_complete(folder: Path, sources: tuple[Source, ...]) -> bool:
    """Whether every file kept of `sources` is in `folder`, undamaged."""
    paths = [(folder / kept.name, kept) for kept in sources]
    return all(path.is_file() and kept.matches(path.read_bytes()) for path, kept in paths)


def find(folder: str, *, cache: Path | None = None) -> Path:
    """The dataset `folder` below `R2N_DATA`, else below the download cache; never the network."""
    given = os.environ.get(DATA_VARIABLE)
    if given and (Path(given) / folder).is_dir():
        return Path(given) / folder
    cached = (cache or cache_folder()) / folder
    if is_complete(cached, SOURCES[folder]):
        return cached
    missing = f"; {DATA_VARIABLE} is set to {given}, which has no folder {folder}" if given else ""
    raise DataError(f"the dataset {folder} is not on this machine{missing}", hint=_hint(folder))


def download(
    folder: str,
    *,
    base: str = GITHUB,
    cache: Path | None = None,
    sources: tuple[Source, ...] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Fetch the dataset `folder` into the cache, unless it is there, and return where it is.

    Files appear in the cache one by one, complete and verified, so that an interrupted download can be resumed.
    """
    if sources is None and folder not in SOURCES:
        raise DataError(f"nothing to download for '{folder}'", hint=nearest(folder, SOURCES) or None)
    sources = sources or SOURCES[folder]
    target = (cache or cache_folder()) / folder
    take_away(target, SCRATCH)
    if is_complete(target, sources):
        return target
    for address, kept in groupby(sources, lambda source: source.address(base)):
        try:
            _fetch(list(kept), address, target, progress)
        except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error) as error:
            # requests' own errors are OSErrors; the others are damaged archives and wrong checksums
            reason: BaseException = error
            while isinstance(reason.__cause__ or reason.__context__, Exception):
                reason = reason.__cause__ or reason.__context__  # type: ignore[assignment]
            said = " ".join(f"{reason}".split()) or type(reason).__name__
            what = f"cannot download {folder} from {address} to {target}: {said}"
            raise DataError(what, hint=_hint(folder)) from error
    return target


def _fetch(sources: list[Source], address: str, target: Path, progress: Progress | None) -> None:
    """Fetch one address into a folder next to `target`, and move into `target` what is kept, with LF line ends."""
    import pooch

    pooch.get_logger().setLevel("ERROR")  # programs print, libraries do not
    target.mkdir(parents=True, exist_ok=True)
    with scratch_folder(target / SCRATCH) as scratch:
        # pooch annotates a flag, and documents an object too
        bar: Any = False if progress is None else _BytesDone(progress)
        # streamed only where a bar is drawn: pooch leaves a refused stream open
        web: Any = pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT, stream=progress is not None)
        fetched = Path(pooch.retrieve(address, known_hash=None, fname="fetched", path=scratch, downloader=web))
        for kept in sources:
            contents = [fetched.read_bytes()] if not kept.member else _members(fetched, kept.member)
            content = next((lf for found in contents if kept.matches(lf := found.replace(b"\r\n", b"\n"))), None)
            if content is None:
                raise ValueError(f"{kept.member or kept.name} in it does not have the sha256 {kept.sha256}")
            complete = scratch / "complete"
            complete.write_bytes(content)
            (target / kept.name).parent.mkdir(exist_ok=True)
            complete.replace(target / kept.name)


def _members(archive: Path, name: str) -> Iterator[bytes]:
    """The content of each member of an archive that has this name, in whatever folder."""
    with tarfile.open(archive) as opened:
        for member in opened.getmembers():
            if PurePosixPath(member.name).name == name and (stream := opened.extractfile(member)):
                yield stream.read()


def _hint(folder: str) -> str:
    """How to get a dataset."""
    name = {"cora": "cora-s1"}.get(folder, folder)  # one download holds all folds of Cora
    return (
        f"`r2n datasets download {name}` fetches it where there is a network; "
        f"or set {DATA_VARIABLE} to a folder that holds {folder}/"
    )


FOLDS = (1, 2, 3, 4, 5)
DOMAINS = {"SameAuthor": "author", "SameTitle": "title", "SameVenue": "venue"}
PACKAGE = Path(__file__).parent / "data" / "cora"
Labelled = tuple[str, str, str, bool]
"""A predicate, its two constants, and the truth of the atom."""


def load_cora(name: str, folder: Path, fold: int, *, joined: bool) -> Problem:
    """The problem that asks for the labels of a fold; `folder` holds the files of all folds."""
    options = read_problem_file(PACKAGE / "options.toml")
    labels = {i: _atoms(folder / f"S{i}" / "queries") for i in FOLDS}
    valid = fold % len(FOLDS) + 1
    folds = {"test": [fold], "valid": [valid], "train": [i for i in FOLDS if i not in (fold, valid)]}
    held_out = {"test": [], "valid": [fold], "train": [fold, valid]}
    tables = dict[str, list[Table]]()
    for split, chosen in folds.items():
        taken = {atom[:3] for i in held_out[split] for atom in labels[i]}
        tables[split] = [_table([atom for atom in labels[i] if atom[:3] not in taken], i, joined) for i in chosen]
    texts: dict[str, dict[str, str]] = {domain: {} for domain in DOMAINS.values()}
    for i, atoms in labels.items():
        for predicate, *constants, _ in atoms:
            texts[DOMAINS[predicate]] |= {_named(c, i, joined): c.partition("_")[2] for c in constants}
    files = {i: folder / f"S{i}" / "facts" for i in FOLDS}
    return Problem.build(
        name,
        read_theory(PACKAGE / "theory.r2n"),
        tables["train"],
        {split: tables[split] for split in ("valid", "test")},
        domains=texts,
        features={domain: FeatureTable(given, analyzer="word") for domain, given in texts.items()},
        background=[Table(path) if joined else _table(_atoms(path), i, joined) for i, path in files.items()],
        derived=options.derived,
        candidates={predicate: Candidates() for predicate in options.candidates},
        options=options.options(),
    )


def cuts(problem: Problem, folder: Path, fold: int) -> dict[str, Bool[np.ndarray, " atoms"]]:
    """Parts of the test queries that are harder: not of a constant with itself; and in no other fold either."""
    others = {atom[:3] for i in FOLDS if i != fold for atom in _atoms(folder / f"S{i}" / "queries")}
    parts = problem.knowledge.base.parts(problem.test.atoms)
    asked = [(predicate, *(name.rpartition(":")[2] for name in constants)) for predicate, constants in parts]
    not_reflexive = np.array([first != second for _, first, second in asked], bool)
    return {"not_reflexive": not_reflexive, "new": not_reflexive & np.array([atom not in others for atom in asked])}


def _atoms(path: Path) -> list[Labelled]:
    """The facts of a file, true and false."""
    found = list[Labelled]()
    for group in read_facts(Table(path)).facts:
        if len(group.arguments) != 2:
            raise wrong_arity(group, 2, f"write {group.predicate}(FIRST, SECOND)")
        first, second = (column.to_pylist() for column in group.arguments)
        found += zip([group.predicate] * len(group), first, second, group.truth.tolist(), strict=True)
    return found


def _named(constant: str, fold: int, joined: bool) -> str:
    return constant if joined else f"S{fold}:{constant}"


def _table(atoms: list[Labelled], fold: int, joined: bool) -> Table:
    rows = [
        (_named(first, fold, joined), name, _named(second, fold, joined), int(t)) for name, first, second, t in atoms
    ]
    columns = zip(*rows, strict=True) if rows else [pa.array([], pa.string())] * 3 + [pa.array([], pa.int64())]
    table = pa.table([pa.array(column) for column in columns], ["head", "relation", "tail", "label"])
    return Table(table, label="label", called=f"the labels of Cora's fold {fold}")


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
        return load_cora(dataset.name, folder, fold, joined=joined)
    rules = folder / "rules.txt"
    text = read_text(rules).decode() if rules.exists() else ""
    text = text.replace("-> rd/award_winner/", "-> /award/award_winner/")  # a slip in FB15k-237: r117 has lost letters
    packed = {split: folder / f"{split}.tsv.gz" for split in ("train", "valid", "test")}
    tables = {
        split: [Table(path if path.exists() else path.with_suffix(""), header=False)] for split, path in packed.items()
    }
    return Problem.build(
        dataset.name,
        parse_horn_rules(text, source=str(rules)),
        tables.pop("train"),
        tables,
        on_error=on_error or "raise",
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
