"""Downloads of datasets from public repositories, at pinned commits, into a cache.

Every file kept is checked against its sha256 each time it is used. The cache has one folder for each dataset that is
not embedded, as the folder in `R2N_DATA`.
"""

import hashlib
import os
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from r2n.errors import DataError, nearest
from r2n.files import scratch_folder, take_away
from r2n.progress import Progress

GITHUB = "https://raw.githubusercontent.com"
DATA_VARIABLE = "R2N_DATA"
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


def _knowledge_graph(archive: str, folder: str, *sums: str) -> tuple[Source, ...]:
    """The three splits of a knowledge graph, inside one archive, and the Horn rules that were mined for it."""
    *splits, rules = sums
    keeps = tuple(
        Kept(f"{split}.tsv", sha256, member=f"{split}.txt")
        for split, sha256 in zip(("train", "valid", "test"), splits, strict=True)
    )
    mined = "rodrigo-castellano/keras_ns_grounders", "66e4e55631bf88ae85946b2d883ccfd449fa9201"
    return (
        Source("TimDettmers/ConvE", "f3c0eb286025410fa5b4c04696c918264163d0ca", archive, keeps),
        Source(*mined, f"experiments/data/{folder}/rules.txt", (Kept("rules.txt", rules),)),
    )


# sha256 of facts and queries, fold by fold
_CORA = [
    "c94aeea9234b588a2f7cfc259aa552b5d0e65202000c34c0863fb37fa5fb0538",
    "39a6901cb4cca834d9ca7cd987a843708c187667dcfdc71ee15815ad5ae41ed9",
    "63c1fe80f48d48277ef59f6234ce2916c65355bcc59efb0ee82e5244655eb965",
    "af3ee4f255f88850299cd514be8087d9706b7cccbd149c00af18c2413016970d",
    "eaae10fe96196d441bfc53705fa2c23e2677dfc76422fc8569fb3a2378847f11",
    "dda1f83359c47fe9419eb276811b2a1d52133ff0047cc15fd6381ec2dde19b21",
    "ad65b9413af70d95d153875710432ad2905ce856020da49d405872d9ab14ed00",
    "6c9f1b7eb045d71fbfe8c189028516ac709cbb03cadf1d426c6a86d5c4ab60c7",
    "969cdbc6ac8f6ca5cd33bb38fd147cd4aeb99a588e6757080fddb7e7d6e263e5",
    "4d200adc80b328cf6a27b260f3775cdce368e3ce42aa7d45fc711506df2008bc",
]
_PREDICATES_OF_CORA = "30018092f68ec1fe0b8a3beb8d5b3ed33b17b31da2b2da4ae92101f3cac16bce"  # the same in all folds
SOURCES: dict[str, tuple[Source, ...]] = {
    "cora": tuple(
        Source("expressGNN/ExpressGNN", "797897343bcfee8cb703ad22c53e14c38a1e08ea", f"data/cora/{kept.name}", (kept,))
        for fold in range(5)
        for kept in (
            Kept(f"S{fold + 1}/facts", _CORA[2 * fold]),
            Kept(f"S{fold + 1}/predicates", _PREDICATES_OF_CORA),
            Kept(f"S{fold + 1}/queries", _CORA[2 * fold + 1]),
        )
    ),
    "wn18rr": _knowledge_graph(
        "WN18RR.tar.gz",
        "wn18rr",
        "038612e783c215ee5f3ca9fbfca27b8d0739be1028fe4ee7c174aecf0b83d5df",
        "453ce7202afa58094a04d2b1560ee2b02660f1c260b32ce6651c8ccedd1028ab",
        "0383bceaaa1096cf3c03ec021ed0048068e2355dbfc0239b292cefdac821cec5",
        "059105eaac1221beb341730f845a52be41377cc0bcec09b27bd7f879391b30af",
    ),
    "fb15k237": _knowledge_graph(
        "FB15k-237.tar.gz",
        "FB15k237",
        "61099230e4439f90885ca9767739e31e8e32f54736fa1c35952b27997bc7c08a",
        "749cbe9d923bac7b9354da5614ecfed2e0220256d442c3e04a6b303db1f273d9",
        "e2e35e8e6113de220140b6f44dc71a5207b0fc6872d575e874aefe13259b655b",
        "4b5b645527b1273b782a4e4ea0ba3335484c5eaa64dc22c3b6da6c3d018a98f2",
    ),
}
"""What is fetched of each dataset that is not embedded; sums of graphs are those of train, valid, test and rules."""


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
