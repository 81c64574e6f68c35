"""Known names become problems with the numbers that the table states; downloads, against a server on this machine."""

import gzip
import hashlib
import io
import re
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2n.data.problem import Problem
from r2n.datasets.benchmarks import (
    DATASETS,
    EMBEDDED,
    SOURCES,
    Dataset,
    Source,
    download,
    find,
    folder_of,
    is_complete,
    load,
)
from r2n.errors import ConfigError, DataError

KNOWN = [dataset for dataset in DATASETS.values() if dataset.is_embedded]
FETCHED = [dataset for dataset in DATASETS.values() if not dataset.is_embedded]

known = cache(load)  # problems are frozen: tests may share them


def counts(problem: Problem) -> tuple[int, ...]:
    language = problem.knowledge.language
    splits = (problem.train, problem.valid, problem.test)
    return len(language.constants), len(language.predicates), *map(len, splits)


def stated(dataset: Dataset) -> tuple[int, ...]:
    sizes = dataset.sizes
    return sizes.constants, sizes.predicates, sizes.train, sizes.valid, sizes.test


def name_of(dataset: Dataset) -> str:
    return dataset.name


@pytest.mark.parametrize("dataset", KNOWN, ids=name_of)
def test_embedded_problems_have_the_stated_numbers(dataset: Dataset) -> None:
    problem = known(dataset.name)
    assert (problem.name, counts(problem)) == (dataset.name, stated(dataset))
    assert problem.report.rejected == ()
    assert {number for _, number in problem.report.duplicates} == {0}


def cheap_first(datasets: list[Dataset]) -> list[Any]:
    """One fold of Cora of each kind, and all others as slow."""
    slow = [d for d in datasets if d.name.startswith("cora") and "s1" not in d.name]
    return [pytest.param(d, marks=pytest.mark.slow) if d in slow else d for d in datasets]


@pytest.mark.parametrize("dataset", cheap_first(FETCHED), ids=name_of)
def test_fetched_problems_have_the_stated_numbers(dataset: Dataset, data_folder: Path) -> None:
    problem = known(dataset.name)
    assert (problem.name, counts(problem)) == (dataset.name, stated(dataset))


def test_the_table_covers_the_embedded_folders() -> None:
    assert {path.parent.name for path in EMBEDDED.glob("*/problem.toml")} == {dataset.name for dataset in KNOWN}


def test_countries_are_typed_and_neighbours_closed() -> None:
    knowledge = known("countries-s3").knowledge
    sizes = {domain.name: len(knowledge.language.members(domain)) for domain in knowledge.language.domains}
    assert sizes == {"country": 244, "region": 5, "subregion": 23, "place": 271}
    assert [p.name for p in knowledge.language.predicates if p.closed] == ["neighborOf"]
    assert [rule.name for rule in knowledge.theory.rules] == ["hierarchy", "manifold"]
    domains = [[d.name for d in knowledge.theory.variable_domains(rule)] for rule in knowledge.theory.rules]
    assert domains == [["country", "subregion", "region"], ["country", "country", "region"]]


@pytest.mark.parametrize("name", ["nations", "kinship", "umls"])
def test_knowledge_graphs_correlate_all_predicates_of_a_pair(name: str) -> None:
    problem = known(name)
    (rule,) = problem.knowledge.theory.rules
    assert rule.is_implicit
    assert len(rule.atoms) == DATASETS[name].sizes.predicates
    assert problem.train.truth.all()
    assert problem.test.truth.all()


def test_mined_rules_keep_their_weights_and_a_slip_in_those_of_freebase_is_mended(data_folder: Path) -> None:
    rules = known("wn18rr").knowledge.theory.rules
    assert len(rules) == 42
    assert (rules[0].name, rules[0].weight) == ("r0", 23498.557678762823)
    rules = known("fb15k237").knowledge.theory.rules
    assert len(rules) == 399
    assert rules[117].atoms[-1].predicate == "/award/award_winner/awards_won./award/award_honor/award_winner"


def test_a_problem_file_or_its_folder_loads_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EMBEDDED / "nations", tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    expected = known("nations")
    for path in (tmp_path / "mine", "mine", tmp_path / "mine" / "problem.toml"):
        np.testing.assert_array_equal(load(path).atoms, expected.atoms)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        load("countries-s4")
    assert str(caught.value).startswith(
        "'countries-s4' is no known dataset, and there is no such problem file or folder\n"
        "  did you mean 'countries-s3'? known: countries-s1, countries-s2, countries-s3, nations,"
    )
    with pytest.raises(ConfigError, match=r"there is no problem file .*nowhere\.toml"):
        load("somewhere/nowhere.toml")


def test_what_is_not_fetched_says_how_to_fetch_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2N_DATA", str(tmp_path))
    monkeypatch.setattr("r2n.datasets.benchmarks.cache_folder", lambda: tmp_path / "cache")
    with pytest.raises(DataError, match="`r2n datasets download wn18rr`"):
        load("wn18rr")
    assert folder_of(DATASETS["nations"]) == EMBEDDED / "nations"


RULES = b"r0:1.0:p(x,y) -> q(x,y)\n"
TRAIN = b"a\tp\tb\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def archive(*members: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


class Site:
    """A folder behind a loopback server that remembers what was asked."""

    def __init__(self, folder: Path, address: str, asked: list[str]) -> None:
        self.folder, self.address, self.asked = folder, address, asked

    def put(self, path: str, content: bytes) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    asked: list[str] = []

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            asked.append(self.path)

    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)  # looks often for the end
    thread.start()
    yield Site(folder, f"http://127.0.0.1:{server.server_address[1]}", asked)
    server.shutdown()
    server.server_close()
    thread.join()


PLAIN = Source("owner/repo", "abc", "data/rules.txt", "rules.txt", sha256(RULES))
PACKED = Source("owner/repo", "abc", "kg.tar.gz", "train.tsv", sha256(TRAIN), member="train.txt")


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_files_are_fetched_from_the_pinned_commit_and_kept(site: Site, tmp_path: Path) -> None:
    """Line ends become LF before the checksum, which decides among members of one name."""
    site.put("owner/repo/abc/data/rules.txt", RULES.replace(b"\n", b"\r\n"))
    members = ("old/train.txt", b"other\n"), ("KG/text/train.txt", TRAIN.replace(b"\n", b"\r\n"))
    site.put("owner/repo/abc/kg.tar.gz", archive(*members))
    folder = download("kg", base=site.address, cache=tmp_path / "cache", sources=(PLAIN, PACKED))
    assert folder == tmp_path / "cache" / "kg"
    assert left_behind(folder) == ["rules.txt", "train.tsv"]
    assert (folder / "rules.txt").read_bytes() == RULES
    assert (folder / "train.tsv").read_bytes() == TRAIN


def test_only_what_is_missing_or_damaged_is_fetched_again_and_scraps_are_removed(site: Site, tmp_path: Path) -> None:
    site.put("owner/repo/abc/data/rules.txt", RULES)
    folder = tmp_path / "cache" / "kg"
    for number in (1, 2):
        for _ in range(2):
            assert folder == download("kg", base=site.address, cache=tmp_path / "cache", sources=(PLAIN,))
            assert [path.name for path in folder.iterdir()] == ["rules.txt"]
            assert (folder / "rules.txt").read_bytes() == RULES
            (folder / ".download.0a1b.tmp").mkdir()  # what a killed download leaves
        assert site.asked == ["/owner/repo/abc/data/rules.txt"] * number
        (folder / "rules.txt").write_bytes(RULES[:5])
        assert not is_complete(folder, (PLAIN,))


def test_progress_is_reported_in_bytes(site: Site, tmp_path: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    site.put("owner/repo/abc/data/rules.txt", RULES)
    cache = tmp_path / "cache"
    download("kg", base=site.address, cache=cache, sources=(PLAIN,), progress=lambda *call: heard.append(call))
    assert heard[-1] == ("download", len(RULES), len(RULES))
    assert {phase for phase, _, _ in heard} == {"download"}


@pytest.mark.parametrize(
    ("path", "content", "source", "reason"),
    [
        ("nothing", b"", PLAIN, "404"),
        ("data/rules.txt", b"tampered\n", PLAIN, f"rules.txt in it does not have the sha256 {sha256(RULES)}"),
        ("kg.tar.gz", archive(("train.txt", b"tampered\n")), PACKED, "train.txt in it does not have the sha256"),
        ("kg.tar.gz", archive(("other.txt", TRAIN)), PACKED, "train.txt in it does not have the sha256"),
        ("kg.tar.gz", archive(("train.txt", TRAIN * 9999))[:-100], PACKED, ""),
        ("kg.tar.gz", gzip.compress(b"no archive"), PACKED, ""),
        ("kg.tar.gz", b"", PACKED, ""),
    ],
    ids=["missing", "tampered", "tampered-member", "no-member", "cut", "no-archive", "empty"],
)
def test_a_bad_download_says_what_and_leaves_nothing(
    site: Site, tmp_path: Path, path: str, content: bytes, source: Source, reason: str
) -> None:
    site.put(f"owner/repo/abc/{path}", content)
    with pytest.raises(DataError) as caught:
        download("kg", base=site.address, cache=tmp_path / "cache", sources=(source,))
    message, address = str(caught.value), source.address(site.address)
    assert message.startswith(f"cannot download kg from {address} to {tmp_path / 'cache' / 'kg'}: ")
    assert reason in message
    assert "R2N_DATA" in message
    assert left_behind(tmp_path / "cache") == []


def test_without_network_the_error_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(DataError) as caught:
        download("wn18rr", base="http://127.0.0.1:9", cache=tmp_path)  # the discard port: nobody listens
    assert re.fullmatch(
        r"cannot download wn18rr from http://127\.0\.0\.1:9/TimDettmers/ConvE/[0-9a-f]{40}/WN18RR\.tar\.gz "
        r"to .*: .*refused.*\n  `r2n datasets download wn18rr` fetches it where there is a network; "
        r"or set R2N_DATA to a folder that holds wn18rr/",
        str(caught.value),
    )


def test_a_cache_that_cannot_be_written_is_a_clear_error(site: Site, tmp_path: Path) -> None:
    site.put("owner/repo/abc/data/rules.txt", RULES)
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(DataError, match="cannot download kg"):
        download("kg", base=site.address, cache=tmp_path / "cache", sources=(PLAIN,))
    with pytest.raises(DataError, match=r"nothing to download for 'wn18r'\n  did you mean 'wn18rr'\?"):
        download("wn18r", cache=tmp_path)


def test_find_prefers_the_given_folder_then_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "kg", (PLAIN,))
    cached, given = tmp_path / "cache", tmp_path / "given"
    (cached / "kg").mkdir(parents=True)
    (cached / "kg" / "rules.txt").write_bytes(RULES)
    monkeypatch.setenv("R2N_DATA", str(given))
    assert find("kg", cache=cached) == cached / "kg"
    (given / "kg").mkdir(parents=True)
    assert find("kg", cache=cached) == given / "kg"
    monkeypatch.delenv("R2N_DATA")
    assert find("kg", cache=cached) == cached / "kg"


def test_what_is_nowhere_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("R2N_DATA", raising=False)
    with pytest.raises(DataError, match=r"^the dataset cora is not on this machine\n  `r2n datasets download cora-s1`"):
        find("cora", cache=tmp_path)
    monkeypatch.setenv("R2N_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"R2N_DATA is set to .*, which has no folder cora"):
        find("cora", cache=tmp_path / "cache")


def test_every_source_is_pinned(data_folder: Path) -> None:
    """The checksums in the table are those of the files themselves."""
    for folder, sources in SOURCES.items():
        for kept in sources:
            assert re.fullmatch("[0-9a-f]{40}", kept.commit)
            path = data_folder / folder / kept.name
            packed = path.with_name(f"{path.name}.gz")
            content = path.read_bytes() if path.exists() else gzip.decompress(packed.read_bytes())
            assert kept.matches(content), path


def test_pooch_is_imported_only_to_download() -> None:
    code = "import sys, r2n.datasets.benchmarks; sys.exit('pooch' in sys.modules or 'requests' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
