"""What tables state -> the tables that rules are grounded over, as ids, all of them with Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from r2n.data.encoding import complete, declaration, outside_domain, rule_constants
from r2n.data.herbrand import first_codes
from r2n.data.problem import TRAIN
from r2n.errors import DataError, Location
from r2n.grounding.joins import Kind, Relation, Tables
from r2n.grounding.remote.constants import RemoteConstants, constant_id, is_gathered, number_constants
from r2n.grounding.remote.stated import Stated, empty_facts, quoted
from r2n.grounding.spark_engine import SparkEngine, parquet_of
from r2n.logic.language import Domain
from r2n.logic.theory import Theory


@dataclass(frozen=True, eq=False)
class RemoteRelation(Relation):
    """Atoms that stand elsewhere; known here (`counts`) is their number, by position the number of constants, and by
    position in how many atoms one constant stands at most.
    """

    counts: tuple[int, ...] = (0,)

    def __len__(self) -> int:
        """The number of atoms."""
        return self.counts[0]

    def distinct(self, position: int) -> int:
        """The number of distinct constants at a position."""
        return self.counts[1 + position]

    @property
    def most(self) -> tuple[int, ...]:
        """By position, in how many atoms one constant stands at most."""
        return self.counts[1 + len(self.domains) :]


@dataclass(frozen=True, eq=False)
class RemoteTables(Tables):
    """Spark's views `fact_i`, `denied_i` (a0, a1, ...) and `domain_k` (a0), and what is known of them here."""

    engine: SparkEngine
    completed: Theory
    constants: RemoteConstants
    known: Mapping[tuple[int, bool], tuple[int, ...]]
    """For each predicate and truth: the number of atoms; by position the number of constants, and of the most atoms."""
    offsets: np.ndarray
    _ids: dict[str, int] = field(default_factory=dict)

    @property
    def theory(self) -> Theory:
        """The theory, with what the tables bring."""
        return self.completed

    @property
    def candidates(self) -> Mapping[str, Any]:
        """None."""
        return MappingProxyType({})

    def predicate_index(self, name: str) -> int:
        """The place of a predicate in the theory."""
        return next(i for i, predicate in enumerate(self.theory.predicates) if predicate.name == name)

    def relation(self, kind: Kind, predicate: str) -> RemoteRelation:
        """The predicate's facts or denied atoms."""
        i = self.predicate_index(predicate)
        domains = self.theory.predicates[i].domains
        counts = self.known.get((i, kind is Kind.FACT), (0,) * (1 + 2 * len(domains)))
        return self._relation(f"{kind.value}_{i}", domains, counts)

    def domain(self, domain: Domain) -> RemoteRelation:
        """The constants of a domain."""
        size = self.constants.size(domain)
        return self._relation(f"domain_{self.constants.index(domain)}", (domain,), (size, size, 1))

    def _relation(self, name: str, domains: tuple[Domain, ...], counts: tuple[int, ...]) -> RemoteRelation:
        nothing, rows = np.zeros(0, np.int64), np.zeros((0, len(domains)), np.int64)
        return RemoteRelation(name, domains, nothing, rows, self.constants.count, lambda _: nothing, counts=counts)

    def constant_id(self, name: str) -> int:
        """The id of a constant that a rule names; asked once."""
        if name not in self._ids:
            self._ids[name] = constant_id(self.engine, name)
        return self._ids[name]


def remote_tables(
    engine: SparkEngine,
    theory: Theory,
    stated: Sequence[Stated],
    scratch: Path,
    *,
    domains: Mapping[str, Sequence[str]] | None = None,
) -> RemoteTables:
    """Number the constants of what is stated, and hold the training facts as tables of ids; kept under `scratch`."""
    given = domains or {}
    theory, told = complete(theory, empty_facts(stated), given, are_all_here=False)
    _check_signatures(theory, stated)
    constants = number_constants(engine, theory, told, given, stated, scratch)
    _check_rule_constants(engine, theory)
    shapes = [tuple(constants.size(domain) for domain in p.domains) for p in theory.predicates]
    offsets = first_codes(theory.predicates, shapes)
    known: dict[tuple[int, bool], tuple[int, ...]] = {}
    for arity in sorted({predicate.arity for predicate in theory.predicates}):
        parts = [part for part in stated if part.arity == arity]
        known |= _encode(engine, theory, given, arity, parts, scratch)
    return RemoteTables(engine, theory, constants, known, offsets)


def _check_signatures(theory: Theory, stated: Sequence[Stated]) -> None:
    signatures = {predicate.name: predicate for predicate in theory.predicates}
    for part in stated:
        for name in part.predicates:
            if name not in signatures:
                hint = f"declare it: predicate {name}({', '.join(['DOMAIN'] * part.arity)})"
                raise DataError(f"unknown predicate '{name}'", where=Location(part.source), hint=hint)
            if signatures[name].arity != part.arity:
                what = f"{name} takes {signatures[name].arity} constants, but here it has {part.arity}"
                raise DataError(what, where=Location(part.source), hint=declaration(signatures[name]))


def _check_rule_constants(engine: SparkEngine, theory: Theory) -> None:
    """Refuse a rule that names a constant outside the domain of its position."""
    named = rule_constants(theory)
    if not named:
        return
    names = ", ".join(dict.fromkeys(quoted(name) for name, _, _ in named))
    found = engine.ask(f"SELECT * FROM constants WHERE name IN ({names})")
    rows = {name: row for row, name in enumerate(found["name"].tolist())}
    for name, domain, where in named:
        if name not in rows or not found[f"in_{theory.domains.index(domain)}"][rows[name]]:
            raise outside_domain(name, domain, where)


def _encode(
    engine: SparkEngine, theory: Theory, given: Mapping[str, object], arity: int, parts: list[Stated], scratch: Path
) -> dict[tuple[int, bool], tuple[int, ...]]:
    """The facts of one arity as ids, written once; how many there are of each predicate and truth."""
    columns = [f"a{i}" for i in range(arity)]
    indices = {p.name: i for i, p in enumerate(theory.predicates) if p.arity == arity}
    if not parts:
        for i in indices.values():
            _empty_views(engine, i, columns)
        return {}
    union = " UNION ALL ".join(f"SELECT *, {quoted(part.split)} AS split FROM {part.view}" for part in parts)
    index = "element_at(map(" + ", ".join(f"{quoted(name)}, {i}" for name, i in indices.items()) + "), f.predicate)"
    joins = " ".join(f"LEFT JOIN constants AS k{i} ON k{i}.name = f.c{i}" for i in range(arity))
    ids = ", ".join(f"k{i}.id AS a{i}" for i in range(arity))
    inside = " AND ".join(_allowed(theory, given, arity, i) for i in range(arity))
    folder = scratch / f"facts_{arity}"
    keys = ", ".join(["p", "truth", "split", *columns])
    engine.write(
        f"SELECT DISTINCT {index} AS p, f.truth, f.split, {ids}, {inside} AS inside FROM ({union}) AS f {joins}"
        f" ORDER BY {keys}",
        folder,
    )
    engine.view(f"facts_{arity}", f"SELECT * FROM {parquet_of(folder)}")
    names = ", ".join(f"f.c{i}" for i in range(arity))
    engine.view(f"named_{arity}", f"SELECT {index} AS p, {names}, {inside} AS inside FROM ({union}) AS f {joins}")
    _refuse_wrong(engine, theory, f"facts_{arity}", columns)
    for i in indices.values():
        for name, truth in (("fact", "truth"), ("denied", "NOT truth")):
            where = f"p = {i} AND {truth} AND split = {quoted(TRAIN)}"
            engine.view(f"{name}_{i}", f"SELECT {', '.join(columns)} FROM facts_{arity} WHERE {where}")
    return _statistics(engine, f"facts_{arity}", columns)


def _statistics(engine: SparkEngine, view: str, columns: list[str]) -> dict[tuple[int, bool], tuple[int, ...]]:
    """For each predicate and truth of the training facts: how many there are, and what is in each position."""
    of_train = f"SELECT * FROM {view} WHERE split = {quoted(TRAIN)}"
    parts = [
        f"SELECT p, truth, {i} AS at, sum(n) AS n, count(*) AS d, max(n) AS most FROM"
        f" (SELECT p, truth, {column}, count(*) AS n FROM ({of_train}) GROUP BY p, truth, {column}) GROUP BY p, truth"
        for i, column in enumerate(columns)
    ]
    found = engine.ask(" UNION ALL ".join(parts))
    numbers = {
        (int(p), bool(truth), int(at)): (int(n), int(d), int(most))
        for p, truth, at, n, d, most in zip(*(found[c] for c in ("p", "truth", "at", "n", "d", "most")), strict=True)
    }
    known: dict[tuple[int, bool], tuple[int, ...]] = {}
    for p, truth, at in numbers:
        if at == 0:
            own = [numbers[p, truth, i] for i in range(len(columns))]
            known[p, truth] = (own[0][0], *(d for _, d, _ in own), *(most for _, _, most in own))
    return known


def _empty_views(engine: SparkEngine, predicate: int, columns: list[str]) -> None:
    nothing = ", ".join(f"0L AS {column}" for column in columns)
    for name in ("fact", "denied"):
        engine.view(f"{name}_{predicate}", f"SELECT {nothing} WHERE false")


def _allowed(theory: Theory, given: Mapping[str, object], arity: int, position: int) -> str:
    """Whether the constant at a position is one of its domain; what is gathered there always is."""
    checked = [
        f"WHEN {quoted(p.name)} THEN coalesce(k{position}.in_{theory.domains.index(p.domains[position])}, false)"
        for p in theory.predicates
        if p.arity == arity and not is_gathered(theory, given, p.domains[position])
    ]
    return f"(CASE f.predicate {' '.join(checked)} ELSE true END)" if checked else "true"


def _refuse_wrong(engine: SparkEngine, theory: Theory, view: str, columns: list[str]) -> None:
    """Constants outside their domain; atoms that are stated both true and false, or stand in two splits."""
    flags = "bool_or(NOT inside) AS outside, bool_or(NOT truth) AS denied, count(DISTINCT split) > 1 AS asked"
    found = {name: bool(column[0]) for name, column in engine.ask(f"SELECT {flags} FROM {view}").items()}
    keys = ", ".join(["p", *columns])
    several = f"SELECT {keys} FROM {view} GROUP BY {keys} HAVING count(DISTINCT"
    questions = {
        "denied": (f"{several} truth) > 1", "is stated both true and false", "keep one of the two"),
        "asked": (f"{several} split) > 1", "stands in two splits", "take it out of one of the two"),
    }
    if found["outside"]:  # it may have no id: its name is in what was read
        row = engine.ask(f"SELECT * FROM named_{len(columns)} WHERE NOT inside LIMIT 1")
        atom = _as_text(theory, row, len(columns))
        raise DataError(f"{atom} holds a constant outside its domain", hint="add it there")
    for flag, (sql, what, hint) in questions.items():
        atom = _some_atom(engine, theory, columns, sql) if found[flag] else None
        if atom is not None:
            raise DataError(f"{atom} {what}", hint=hint)


def _some_atom(engine: SparkEngine, theory: Theory, columns: list[str], sql: str) -> str | None:
    """The atom of some row, as text."""
    engine.view("wrong", f"SELECT * FROM ({sql}) LIMIT 1")
    joins = " ".join(f"JOIN constants AS k{i} ON k{i}.id = w.a{i}" for i in range(len(columns)))
    names = ", ".join(f"k{i}.name AS c{i}" for i in range(len(columns)))
    found = engine.ask(f"SELECT p, {names} FROM wrong AS w {joins}")
    return _as_text(theory, found, len(columns)) if len(found["p"]) else None


def _as_text(theory: Theory, found: Mapping[str, np.ndarray], arity: int) -> str:
    arguments = ", ".join(str(found[f"c{i}"][0]) for i in range(arity))
    return f"{theory.predicates[int(found['p'][0])].name}({arguments})"
