"""Downloads of datasets from public repositories, at pinned commits, into a cache.

Every file kept is checked against its sha256 each time it is used. The cache has one folder for each dataset that is
not embedded, as the folder in `R2N_DATA`.
"""

import csv
import hashlib
import os
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Any

from r2n.errors import DataError, nearest
from r2n.files import scratch_folder, take_away
from r2n.progress import Progress

GITHUB = "https://raw.githubusercontent.com"
DATA_VARIABLE = "R2N_DATA"
EMBEDDED = Path(__file__).parent / "data"
SCRATCH = "download"
TIMEOUT = 30  # seconds without a byte


@dataclass(frozen=True, slots=True)
class Kept:
    """A file that stays: its name, its sha256, and the name it has inside a `.tar.gz` source."""

    name: str
    sha256: str
    member: str | None = None

    def matches(self, content: bytes) -> bool:
        """Whether `content` is this very file."""
        return hashlib.sha256(content).hexdigest() == self.sha256


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a public repository at a pinned commit, and what is kept of it."""

    repository: str
    commit: str
    path: str
    keeps: tuple[Kept, ...]

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


SOURCES: dict[str, tuple[Source, ...]] = {}
for (_folder, _repository, _commit, _path), _rows in groupby(
    listed("sources"), itemgetter("folder", "repository", "commit", "path")
):
    _keeps = tuple(Kept(row["name"], row["sha256"], row["member"] or None) for row in _rows)
    SOURCES[_folder] = (*SOURCES.get(_folder, ()), Source(_repository, _commit, _path, _keeps))
"""What is fetched of each dataset that is not embedded, by its folder."""


def cache_folder() -> Path:
    """The folder of this user's downloads, e.g. `~/.cache/r2n`."""
    import pooch

    return Path(pooch.os_cache("r2n"))


def is_complete(folder: Path, sources: tuple[Source, ...]) -> bool:
    """Whether every file kept of `sources` is in `folder`, undamaged."""
    paths = [(folder / kept.name, kept) for source in sources for kept in source.keeps]
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
    for source in sources:
        address = source.address(base)
        try:
            _fetch(source, address, target, progress)
        except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error) as error:
            # requests' own errors are OSErrors; the others are damaged archives and wrong checksums
            reason: BaseException = error
            while isinstance(reason.__cause__ or reason.__context__, Exception):
                reason = reason.__cause__ or reason.__context__  # type: ignore[assignment]
            said = " ".join(f"{reason}".split()) or type(reason).__name__
            what = f"cannot download {folder} from {address} to {target}: {said}"
            raise DataError(what, hint=_hint(folder)) from error
    return target


def _fetch(source: Source, address: str, target: Path, progress: Progress | None) -> None:
    """Fetch one source into a folder next to `target`, and move into `target` what is kept, with LF line ends."""
    import pooch

    pooch.get_logger().setLevel("ERROR")  # programs print, libraries do not
    target.mkdir(parents=True, exist_ok=True)
    with scratch_folder(target / SCRATCH) as scratch:
        # pooch annotates a flag, and documents an object too
        bar: Any = False if progress is None else _BytesDone(progress)
        # streamed only where a bar is drawn: pooch leaves a refused stream open
        web: Any = pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT, stream=progress is not None)
        fetched = Path(pooch.retrieve(address, known_hash=None, fname="fetched", path=scratch, downloader=web))
        for kept in source.keeps:
            contents = [fetched.read_bytes()] if kept.member is None else _members(fetched, kept.member)
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
