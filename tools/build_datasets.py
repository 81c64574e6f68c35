"""Public packages -> `src/r2n/datasets/data`: builds the facts that travel inside the package.

    python tools/build_datasets.py            # fetch both packages, write the data
    python tools/build_datasets.py --check    # fetch both packages, compare with what is written

Needs npm and pip, nothing else. The same packages give the same bytes, so a second run changes nothing.
`problem.toml` and `theory.r2n` of each folder are written by hand and left alone.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "src" / "r2n" / "datasets" / "data"

COUNTRIES_PACKAGE = "world-countries@1.8.1"
COUNTRIES_SHA256 = "403d4289af63dd7fcf2ea5c1f577238cb0c3b34971530256a83ea99a4f8321c8"
PYKEEN_PACKAGE = "pykeen==1.11.1"
PYKEEN_SHA256 = "b6cc0ab012fc6ba4f37b58fb7081a409a5c1f04cbbb0e0e9c2256e911757d4ba"
KNOWLEDGE_GRAPHS = {"nations": "nations", "kinship": "kinships", "umls": "umls"}  # ours: PyKEEN's

# The two places where the benchmark's facts differ from the package.
RENAMED = {"czech_republic": "czechia"}
SUBREGION_OF = {"mexico": "northern_america"}

# The benchmark's definition: the countries whose region is asked.
VALID = frozenset(
    {
        "bangladesh",
        "belarus",
        "chile",
        "denmark",
        "guatemala",
        "hong_kong",
        "hungary",
        "kyrgyzstan",
        "mexico",
        "morocco",
        "mozambique",
        "myanmar",
        "netherlands",
        "nicaragua",
        "north_korea",
        "pakistan",
        "poland",
        "republic_of_the_congo",
        "serbia",
        "sierra_leone",
        "slovakia",
        "sri_lanka",
        "turkey",
        "turkmenistan",
    }
)
TEST = frozenset(
    {
        "bulgaria",
        "burkina_faso",
        "djibouti",
        "ecuador",
        "egypt",
        "eritrea",
        "french_guiana",
        "germany",
        "ghana",
        "guyana",
        "indonesia",
        "iraq",
        "jordan",
        "monaco",
        "norway",
        "saudi_arabia",
        "spain",
        "sudan",
        "tanzania",
        "thailand",
        "timor-leste",
        "united_states",
        "venezuela",
        "zimbabwe",
    }
)

Fact = tuple[str, str, str]  # head, relation, tail


@dataclass(frozen=True, slots=True)
class Country:
    """One country of the package that lies in a region; names are symbols."""

    name: str
    region: str
    subregion: str
    neighbours: tuple[str, ...]


def symbol(name: str) -> str:
    """The constant for a name: `Cocos (Keeling) Islands` -> `cocos_keeling_islands`; accents stay."""
    bare = name.lower().replace(" ", "_").replace("(", "").replace(")", "")
    return RENAMED.get(bare, bare)


def read_countries(records: Sequence[Mapping]) -> tuple[Country, ...]:
    """The package's records that have a region (Antarctica and three groups of islets have none)."""
    names = {record["cca3"]: symbol(record["name"]["common"]) for record in records}
    return tuple(
        Country(
            name=names[record["cca3"]],
            region=symbol(record["region"]),
            subregion=SUBREGION_OF.get(names[record["cca3"]], symbol(record["subregion"])),
            neighbours=tuple(names[code] for code in record["borders"]),
        )
        for record in records
        if record["region"]
    )


def all_facts(countries: Iterable[Country]) -> set[Fact]:
    """Every country lies in its subregion and region, every subregion in its region; borders as given."""
    facts: set[Fact] = set()
    for country in countries:
        facts.add((country.name, "locatedIn", country.subregion))
        facts.add((country.name, "locatedIn", country.region))
        facts.add((country.subregion, "locatedIn", country.region))
        facts.update((country.name, "neighborOf", neighbour) for neighbour in country.neighbours)
    return facts


def removed_facts(countries: Collection[Country], asked: Collection[str], task: int) -> set[Fact]:
    """What S1, S2, S3 (task 1, 2, 3) leave out of the training facts.

    S1: the region of an asked country. S2: its subregion too. S3: also the region of each of its neighbours,
    in the outgoing direction only: a few borders of the package are stated on one side.
    """
    chosen = [country for country in countries if country.name in asked]
    removed = {(country.name, "locatedIn", country.region) for country in chosen}
    if task >= 2:
        removed |= {(country.name, "locatedIn", country.subregion) for country in chosen}
    if task >= 3:
        region_of = {country.name: country.region for country in countries}
        neighbours = {neighbour for country in chosen for neighbour in country.neighbours}
        removed |= {(neighbour, "locatedIn", region_of[neighbour]) for neighbour in neighbours}
    return removed


def query_rows(countries: Collection[Country], asked: Collection[str]) -> set[tuple[str, ...]]:
    """Each asked country with every region, labelled 1 where it lies and 0 elsewhere."""
    regions = {country.region for country in countries}
    return {
        (country.name, "locatedIn", region, str(int(region == country.region)))
        for country in countries
        if country.name in asked
        for region in regions
    }


def table(rows: Iterable[tuple[str, ...]]) -> bytes:
    """Rows as sorted tab-separated lines, UTF-8, LF."""
    return "".join("\t".join(row) + "\n" for row in sorted(rows)).encode()


def countries_files(
    records: Sequence[Mapping], valid: Collection[str] = VALID, test: Collection[str] = TEST
) -> dict[str, bytes]:
    """The files of Countries S1, S2, S3, by path below the data folder; `countries/` is what they share."""
    countries = read_countries(records)
    asked = {*valid, *test}
    unknown = asked - {country.name for country in countries}
    if unknown:
        raise SystemExit(f"not among the package's countries: {', '.join(sorted(unknown))}")
    files = {
        "countries/countries.txt": table((country.name,) for country in countries),
        "countries/regions.txt": table({(country.region,) for country in countries}),
        "countries/subregions.txt": table({(country.subregion,) for country in countries}),
        "countries/valid_queries.tsv": table(query_rows(countries, valid)),
        "countries/test_queries.tsv": table(query_rows(countries, test)),
    }
    for task in (1, 2, 3):
        training = all_facts(countries) - removed_facts(countries, asked, task)
        files[f"countries-s{task}/train.tsv"] = table(training)
    return files


def knowledge_graph_files(wheel: Path) -> dict[str, bytes]:
    """Nations, Kinship, UMLS, each split in the order and spelling of PyKEEN's own file."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            f"{ours}/{split}.tsv": archive.read(f"pykeen/datasets/{theirs}/{split}.txt").replace(b"\r\n", b"\n")
            for ours, theirs in KNOWLEDGE_GRAPHS.items()
            for split in ("train", "valid", "test")
        }


def country_records(archive: Path) -> list[dict]:
    """The records of the npm package's `countries.json`."""
    with tarfile.open(archive) as package:
        member = package.extractfile("package/countries.json")
        if member is None:
            raise SystemExit(f"{archive.name} holds no countries.json")
        return json.loads(member.read())


def fetch(command: Sequence[str], pattern: str, sha256: str, folder: Path) -> Path:
    """Run a package manager in `folder` and return the one archive it leaves, its checksum verified."""
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    archives = list(folder.glob(pattern))
    if len(archives) != 1:
        raise SystemExit(f"{' '.join(command)}: expected one {pattern}, found {len(archives)}")
    found = hashlib.sha256(archives[0].read_bytes()).hexdigest()
    if found != sha256:
        raise SystemExit(f"{archives[0].name}: sha256 is {found}, expected {sha256}")
    return archives[0]


def build() -> dict[str, bytes]:
    """Fetch both packages and return every data file, by path below the data folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", PYKEEN_PACKAGE]
        countries = fetch(["npm", "pack", "--silent", COUNTRIES_PACKAGE], "*.tgz", COUNTRIES_SHA256, folder)
        pykeen = fetch(pip, "*.whl", PYKEEN_SHA256, folder)
        return countries_files(country_records(countries)) | knowledge_graph_files(pykeen)


def main() -> int:
    """Write the data, or with `--check` say which files differ."""
    parser = argparse.ArgumentParser(description="Build the data that travel inside the package.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file differs")
    parser.add_argument("--out", type=Path, default=DATA, help="the data folder")
    options = parser.parse_args()
    files = build()
    different = [
        path
        for path, content in files.items()
        if not (options.out / path).is_file() or (options.out / path).read_bytes() != content
    ]
    if not options.check:
        for path in different:
            target = options.out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(files[path])
    verb = "differ" if options.check else "written"
    sys.stdout.write("".join(f"{path}\n" for path in different) + f"{len(different)} of {len(files)} files {verb}\n")
    return int(options.check and bool(different))


if __name__ == "__main__":
    raise SystemExit(main())
