"""What tables state -> the constants with their ids, in order of name, and their places in the domains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from r2n.data.spark_session import without_warnings
from r2n.errors import DataError
from r2n.grounding.remote.stated import Stated, quoted
from r2n.grounding.spark_engine import SparkEngine, parquet_of
from r2n.grounding.spark_engine import told as told_by_spark
from r2n.logic.language import Domain, Language
from r2n.logic.theory import Theory

CONSTANTS = "constants"
_LOWER_BITS = 33  # of monotonically_increasing_id: the row within its partition


@dataclass(frozen=True, eq=False)
class RemoteConstants:
    """All constants as Spark's view `constants` (id, name, in_0, in_1, ...), and how many each domain has.

    The k-th domain of the theory is the view `place_k` (a0, place) where a place is not the id.
    """

    count: int
    sizes: tuple[int, ...]
    domains: tuple[Domain, ...]

    def is_all(self, domain: Domain) -> bool:
        """Whether every constant is in the domain: then its place is its id."""
        return self.size(domain) == self.count

    def size(self, domain: Domain) -> int:
        """The number of the domain's constants."""
        return self.sizes[self.index(domain)]

    def index(self, domain: Domain) -> int:
        """The number of the domain in the theory."""
        return self.domains.index(domain)


def is_gathered(theory: Theory, given: Mapping[str, object], domain: Domain) -> bool:
    """Whether a domain holds what stands in its positions."""
    return domain.name not in given and domain.listed is None and not domain.parts


def number_constants(
    engine: SparkEngine,
    theory: Theory,
    told: Language,
    given: Mapping[str, object],
    stated: Sequence[Stated],
    scratch: Path,
) -> RemoteConstants:
    """Gather the constants, and number them by name; `told` holds those that theory and problem file list."""
    domains = theory.domains
    parts = [_standing(theory, given, part) for part in stated]
    engine.view("occurring", " UNION ALL ".join(filter(None, [*parts, _listed(engine, told)])))
    leaves = [k for k, domain in enumerate(domains) if not domain.parts]
    flags = ", ".join(f"bool_or(domain = {k}) AS in_{k}" for k in leaves)
    engine.view("named", f"SELECT name{', ' * bool(flags)}{flags} FROM occurring GROUP BY name")
    every = ", ".join(f"{_inside(domains, domain)} AS in_{k}" for k, domain in enumerate(domains))
    engine.view("flagged", f"SELECT name{', ' * bool(every)}{every} FROM named")
    numbered(engine, "flagged", "name", scratch / CONSTANTS, CONSTANTS, "id")
    counts = ", ".join(f"count_if(in_{k}) AS n_{k}" for k in range(len(domains)))
    found = engine.ask(f"SELECT count(*) AS n{', ' * bool(counts)}{counts} FROM {CONSTANTS}")
    sizes = tuple(int(found[f"n_{k}"][0]) for k in range(len(domains)))
    constants = RemoteConstants(int(found["n"][0]), sizes, domains)
    for k, domain in enumerate(domains):
        engine.view(f"domain_{k}", f"SELECT id AS a0 FROM {CONSTANTS} WHERE in_{k}")
        if not constants.is_all(domain):
            numbered(engine, f"domain_{k}", "a0", scratch / f"place_{k}", f"place_{k}", "place")
    return constants


def _standing(theory: Theory, given: Mapping[str, object], part: Stated) -> str:
    """The constants of gathered domains, by the positions they stand in."""
    signatures = {predicate.name: predicate for predicate in theory.predicates}
    selects = []
    for position in range(part.arity):
        of_domain: dict[int, list[str]] = {}
        for name in part.predicates:
            predicate = signatures.get(name)
            if predicate is None or predicate.arity != part.arity:
                continue
            domain = predicate.domains[position]
            if is_gathered(theory, given, domain):
                of_domain.setdefault(theory.domains.index(domain), []).append(name)
        for k, names in of_domain.items():
            every = len(names) == len(part.predicates)
            where = "" if every else f" WHERE predicate IN ({', '.join(map(quoted, names))})"
            selects.append(f"SELECT DISTINCT c{position} AS name, {k} AS domain FROM {part.view}{where}")
    return " UNION ALL ".join(selects)


def _listed(engine: SparkEngine, told: Language) -> str:
    """The constants that are listed, as a view; at least an empty one."""
    names, domains = [], []
    for k, domain in enumerate(told.domains):
        if not domain.parts:
            names += [told.constants[i] for i in told.members(domain)]
            domains += [k] * len(told.members(domain))
    table = pa.table({"name": pa.array(names, pa.string()), "domain": pa.array(domains, pa.int32())})
    with without_warnings(), told_by_spark():
        engine.session.createDataFrame(table).createOrReplaceTempView("listed")
    return "SELECT name, domain FROM listed"


def _inside(domains: Sequence[Domain], domain: Domain) -> str:
    """Whether a constant is in a domain: in itself, or in one of its parts."""
    if not domain.parts:
        return f"coalesce(in_{domains.index(domain)}, false)"
    return f"({' OR '.join(_inside(domains, part) for part in domain.parts)})"


def numbered(engine: SparkEngine, view: str, key: str, folder: Path, called: str, number: str) -> None:
    """A view with a column of numbers from 0 in the order of a key, written once and called so.

    Spark sorts by ranges. Each row is written with its range and its place in it; what comes before a range is known
    when all are counted.
    """
    engine.write(f"SELECT *, monotonically_increasing_id() AS _m FROM (SELECT * FROM {view} ORDER BY {key})", folder)
    written = parquet_of(folder)
    counts = engine.ask(f"SELECT shiftright(_m, {_LOWER_BITS}) AS part, count(*) AS n FROM {written} GROUP BY 1")
    order = np.argsort(counts["part"])
    parts, sizes = counts["part"][order].tolist(), counts["n"][order]
    before = (np.cumsum(sizes) - sizes).tolist()
    entries = ", ".join(f"{part}L, {start}L" for part, start in zip(parts, before, strict=True))
    first = f"element_at(map({entries}), shiftright(_m, {_LOWER_BITS}))" if entries else "0L"
    columns = ", ".join(name for name in engine.columns(written) if name != "_m")
    engine.view(called, f"SELECT {columns}, {first} + (_m & {2**_LOWER_BITS - 1}L) AS {number} FROM {written}")


def constant_id(engine: SparkEngine, name: str) -> int:
    """The id of a constant that a rule names."""
    found = engine.ask(f"SELECT id FROM {CONSTANTS} WHERE name = {quoted(name)}")["id"]
    if not len(found):
        raise DataError(f"unknown constant '{name}'")
    return int(found[0])
