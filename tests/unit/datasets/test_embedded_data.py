"""The data inside the package: what the problems hold, and equality with independent copies."""

import importlib.util
import sys
import tomllib
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from r2n.datasets.benchmarks import EMBEDDED

COUNTRIES = ("countries-s1", "countries-s2", "countries-s3")
KNOWLEDGE_GRAPHS = ("nations", "kinship", "umls")
ROOT = Path(__file__).parents[3]

Row = tuple[str, ...]


def rows(path: Path) -> set[Row]:
    return {tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()}


def path_of(name: str, split: str) -> Path:
    """The file that the dataset's own problem file names for a split."""
    folder = EMBEDDED / name
    problem = tomllib.loads((folder / "problem.toml").read_text(encoding="utf-8"))
    return folder / {**problem["facts"], **problem["queries"]}[split]


def constants(domain: str) -> set[str]:
    return set((EMBEDDED / "countries" / f"{domain}.txt").read_text(encoding="utf-8").split())


def test_every_text_file_is_utf8_with_lf() -> None:
    for path in EMBEDDED.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"\r" not in content, path
            assert content.decode("utf-8").endswith("\n"), path


@pytest.mark.parametrize("split", ["valid", "test"])
def test_countries_queries_are_24_countries_by_5_regions_with_one_true(split: str) -> None:
    queries = rows(path_of("countries-s1", split))
    assert Counter(label for *_, label in queries) == {"1": 24, "0": 96}
    assert len({country for country, _, _, label in queries if label == "1"}) == 24
    assert set(Counter(country for country, *_ in queries).values()) == {5}
    assert {region for _, _, region, _ in queries} == constants("regions")


def test_countries_tasks_leave_out_more_and_more() -> None:
    first, second, third = (rows(path_of(name, "train")) for name in COUNTRIES)
    assert third < second < first
    asked = {row[0] for split in ("valid", "test") for row in rows(path_of("countries-s1", split))}
    assert len(asked) == 48
    assert {row[0] for row in first - second} == asked
    assert all(tail in constants("subregions") for _, _, tail in first - second)
    reached = {tail for head, relation, tail in first if relation == "neighborOf" and head in asked}
    assert {row[0] for row in second - third} == reached - asked
    assert all(tail in constants("regions") for _, _, tail in second - third)


def test_the_notice_names_every_folder_and_its_terms() -> None:
    notice = (EMBEDDED / "NOTICE.md").read_text(encoding="utf-8")
    for folder in (path.name for path in EMBEDDED.iterdir() if path.is_dir()):
        assert f"`{folder}`" in notice
    assert "ODbL" in notice
    assert "CC0" in notice


@pytest.mark.parametrize("name", COUNTRIES)
def test_countries_equal_the_given_folder(name: str, data_folder: Path) -> None:
    given = data_folder / name.replace("-", "_")
    assert rows(path_of(name, "train")) == rows(given / "train.tsv")
    for split in ("valid", "test"):
        assert rows(path_of(name, split)) == rows(given / f"{split}_queries.tsv")
    domains = {
        line.split()[0]: set(line.split()[1:])
        for line in (given / "domain2constants.txt").read_text(encoding="utf-8").splitlines()
    }
    assert domains == {domain: constants(domain) for domain in ("regions", "subregions", "countries")}


@pytest.mark.parametrize("name", KNOWLEDGE_GRAPHS)
@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_knowledge_graphs_equal_the_given_folder_byte_for_byte(name: str, split: str, data_folder: Path) -> None:
    assert path_of(name, split).read_bytes() == (data_folder / name / f"{split}.tsv").read_bytes()


# The script that builds the data, on input made up here: no network.


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_datasets", ROOT / "tools" / "build_datasets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look up their annotations
    spec.loader.exec_module(module)
    return module


def record(code: str, name: str, region: str, subregion: str, *borders: str) -> dict[str, Any]:
    """A country as the npm package writes it."""
    places = {"region": region, "subregion": subregion, "borders": list(borders)}
    return {"cca3": code, "name": {"common": name}, **places}


def test_the_script_gives_back_the_embedded_countries(script: ModuleType) -> None:
    """The package's records, drawn up again from the facts, give the embedded files byte for byte."""
    facts = rows(path_of("countries-s1", "train"))
    facts |= {row[:3] for split in ("valid", "test") for row in rows(path_of("countries-s1", split)) if row[3] == "1"}
    region_of = {head: tail for head, _, tail in facts if tail in constants("regions")}
    place_of = {head: tail for head, _, tail in facts if tail in constants("subregions")}
    spelled = {"czechia": "Czech Republic", "cocos_keeling_islands": "Cocos (Keeling) Islands"}
    records = [
        record(
            country,
            spelled.get(country, country.replace("_", " ").title()),
            region_of[country],
            "Central America" if country == "mexico" else place_of[country].replace("_", " "),
            *sorted(tail for head, relation, tail in facts if head == country and relation == "neighborOf"),
        )
        for country in sorted(constants("countries"), reverse=True)
    ]
    for path, content in script.countries_files(records).items():
        assert (EMBEDDED / path).read_bytes() == content, path
    with pytest.raises(SystemExit, match="not among the package's countries: atlantis"):
        script.countries_files(records, valid=["atlantis"], test=[])
