"""Known facts in the form that grounding reads: arrays, and tables of an engine that answers large queries."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Protocol, runtime_checkable

import duckdb
import numpy as np
import pyarrow as pa

from r2n.data.herbrand import Codes
from r2n.data.interruptible import interruptible
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.data.records import quoted_name
from r2n.errors import MemoryLimitError
from r2n.grounding.joins import Kind, Relation, RuleQuery, Substitutions, Tables, TooManyRowsError, check_budget, joined
from r2n.logic.language import Domain, Predicate
from r2n.logic.theory import Rule

LEAST_MEMORY = 64 * 10**6  # bytes: below, a database does not start its work
MOST_ROWS = 20_000_000  # of an intermediate result; beyond, a database that can spill to disk does better
MOST_LIMIT = 2**31 - 1  # Spark counts rows of a LIMIT by 32 bits
SURELY_TOO_MANY = 100  # times the budget: then the estimate alone refuses, without counting
BYTES_OF_BINDING = 16  # of a variable in a row of a join: its column, and what the join makes of it
BYTES_OF_NUMBER = 16  # of a variable or an atom in a ground rule: as it is found, and once more in order
CHEAPER_SETTINGS = (
    "ground less: narrow the domains of variables (x: DOMAIN), close a predicate of a body, or take another strategy"
    " (known-body, backward)",
)


@runtime_checkable
class Engine(Protocol):
    """Holds tables of integers and answers queries over them."""

    takes_all: bool  # small queries too, which arrays in memory would answer sooner

    def load(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        """Hold a table under this name, in place of an earlier one."""
        ...

    def run(self, query: str) -> dict[str, np.ndarray]:
        """The answer, column by column."""
        ...


class DuckDBEngine:
    """The embedded engine, on all cores; above `memory` bytes (by default DuckDB's choice) it spills to disk."""

    def __init__(self, memory: int | None = None, *, takes_all: bool = False) -> None:
        """Make an engine; its database is opened at the first use, since many groundings need none."""
        self.memory, self.takes_all = memory, takes_all
        self._connections: dict[int, duckdb.DuckDBPyConnection] = {}

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """An in-memory database of this process: one that was opened before a fork has lost its threads."""
        process = os.getpid()
        if process not in self._connections:
            config: dict[str, str | bool | int | float | list[str]] = {"temp_directory": tempfile.gettempdir()}
            if self.memory is not None:
                config["memory_limit"] = f"{max(LEAST_MEMORY, self.memory) // 10**6}MB"
            self._connections[process] = duckdb.connect(config=config)
        return self._connections[process]

    def load(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        """Hold a table under this name, in place of an earlier one."""
        arrow = pa.table({column: pa.array(values) for column, values in columns.items()})
        self._connection.register("incoming", arrow)
        self._connection.execute(f"CREATE OR REPLACE TABLE {quoted_name(name)} AS SELECT * FROM incoming")
        self._connection.unregister("incoming")

    def run(self, query: str) -> dict[str, np.ndarray]:
        """The answer, column by column."""
        try:
            with interruptible(self._connection):
                answer = self._connection.execute(query).fetchnumpy()
        except duckdb.OutOfMemoryException as error:
            what = f"a query needs more memory than the database may take: {str(error).splitlines()[0]}"
            hint = "ground less (narrower domains, closed predicates, another strategy); or allow more: --memory SIZE"
            raise MemoryLimitError(what, hint=hint) from error
        return {name: np.ma.getdata(column) for name, column in answer.items()}


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """The memory budget: the most bytes that may be held at a time; None: no limit."""

    most: int | None = None

    def fitting(self, each: int, at_most: int) -> int:
        """How many items of `each` bytes fit: at least one, and no more than `at_most`."""
        return at_most if self.most is None else min(at_most, max(1, self.most // each))

    def check(self, needed: int, *, what: str, hints: Sequence[str]) -> None:
        """Refuse what needs more bytes; `what` is the subject of a sentence."""
        if self.most is not None and needed > self.most:
            raise MemoryLimitError(
                f"{what} needs about {shown_size(needed)}, more than the {shown_size(self.most)} that it may take",
                hint="; or ".join([*hints, "allow more with --memory SIZE"]),
            )


UNLIMITED = MemoryBudget()


def shown_size(size: int) -> str:
    """`95 GB`, `18.4 GB`, `512 MB`."""
    number, unit = (size / 1e9, "GB") if size >= 1e9 else (size / 1e6, "MB")
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


class Store(Tables):
    """The tables of a knowledge base, each made at its first use: as arrays, and in an engine for large joins."""

    def __init__(
        self,
        knowledge: KnowledgeBase,
        engine: Engine | None = None,
        ceiling: MemoryBudget = UNLIMITED,
        *,
        asks_closed: bool = False,
    ) -> None:
        """Tables of `knowledge`, for large queries in `engine`, by default an embedded DuckDB."""
        self.asks_closed = asks_closed
        self.knowledge, self.language, self.base = knowledge, knowledge.language, knowledge.base
        self.theory, self.candidates = knowledge.theory, knowledge.candidates
        self.engine, self.ceiling = engine or DuckDBEngine(ceiling.most), ceiling
        self._known: dict[str, Relation] = {}
        self._made: dict[str, Relation] = {}
        self._loaded: dict[tuple[int, str], Relation] = {}  # by process: a fork opens a database of its own
        self._cut_from: tuple[Store, Codes] | None = None

    def relation(self, kind: Kind, predicate: str) -> Relation:
        """The predicate's facts, denied atoms or candidates."""
        name, made = self._name(kind, predicate), self._made if kind is Kind.CANDIDATE else self._known
        if name not in made:
            if kind is not Kind.CANDIDATE and self._cut_from is not None:
                larger, left_out = self._cut_from
                made[name] = larger.relation(kind, predicate).without(left_out)
            else:
                declared, is_fact = self.language.predicate(predicate), kind is Kind.FACT
                candidates = self.knowledge.candidates[predicate] if kind is Kind.CANDIDATE else None
                codes = self.knowledge.known_codes(declared, is_fact) if candidates is None else candidates
                made[name] = self._relation(name, declared, codes, self.base.decode(codes)[1])
        return made[name]

    def asked(self, codes: Codes) -> dict[str, Relation]:
        """Distinct atoms, of any predicates, as relations of queries: one for each predicate among them."""
        index, arguments = self.base.decode(codes)
        found: dict[str, Relation] = {}
        for i in np.unique(index):
            predicate, own = self.language.predicates[i], index == i
            name = self._name(Kind.ASKED, predicate.name)
            found[predicate.name] = self._relation(name, predicate, codes[own], arguments[own])
        return found

    def domain(self, domain: Domain) -> Relation:
        """The constants of a domain."""
        name = f"domain_{self.language.domains.index(domain)}"
        if name not in self._made:
            members, constants = self.language.members(domain), len(self.language.constants)
            self._made[name] = Relation(name, (domain,), constants, members, members[:, None])
        return self._made[name]

    def _name(self, kind: Kind, predicate: str) -> str:
        return f"{kind.value}_{self.language.predicate_index(predicate)}"

    def _relation(self, name: str, predicate: Predicate, codes: Codes, arguments: np.ndarray) -> Relation:
        encode = partial(self.base.encode_columns, predicate)
        rows = arguments[:, : predicate.arity]
        return Relation(name, predicate.domains, len(self.language.constants), codes, rows, encode)

    def without(self, codes: Codes) -> "Store":
        """The store without evidence on these atoms (in a closed world: false); its tables are cut from these."""
        view, evidence = copy(self), self.knowledge.evidence
        kept = ~np.isin(evidence.atoms, codes)
        view.knowledge = replace(self.knowledge, evidence=Evidence(evidence.atoms[kept], evidence.truth[kept]))
        view._known, view._cut_from = {}, (self, codes)
        return view

    def with_closed(self) -> "Store":
        """The store that keeps ground rules of closed atoms alone."""
        view = copy(self)
        view.asks_closed = True
        return view

    def with_rules(self, rules: tuple[Rule, ...]) -> "Store":
        """The store of the same knowledge base with these rules in place of its own; its tables are the same."""
        view, theory = copy(self), replace(self.theory, rules=rules)
        view.knowledge, view.theory = replace(self.knowledge, theory=theory), theory
        return view

    def box(self, query: RuleQuery) -> int:
        """The number of combinations of the variables that the rule has and the query does not bind."""
        domains = zip(query.rule.variables, self.domains(query.rule), strict=True)
        return prod(len(domain) for name, domain in domains if name not in query.variables)

    def substitutions(self, query: RuleQuery, max_groundings: int) -> Substitutions:
        """The answer to a query, unsorted and distinct; refused if its rule would have more ground rules than this."""
        box = self.box(query)  # of the variables that the query does not bind, for every substitution
        if not self.engine.takes_all:
            each = BYTES_OF_BINDING * (len(query.variables) + 2)
            with suppress(TooManyRowsError):
                found = joined(query, self.language, self.ceiling.fitting(each, MOST_ROWS))
                self._check(query.rule, len(found) * box, max_groundings, exact=True)
                return found
        return self._from_engine(query, box, max_groundings)

    def _check(self, rule: Rule, estimate: int, max_groundings: int, *, exact: bool) -> None:
        """Refuse a rule with too many ground rules: by number, or by the memory that they need."""
        check_budget(rule, estimate, max_groundings, exact=exact)
        what = f"rule '{rule.name}' with {'' if exact else 'about '}{estimate:,} ground rules"
        self.ceiling.check(estimate * _bytes_of_ground_rule(rule), what=what, hints=CHEAPER_SETTINGS)

    def _from_engine(self, query: RuleQuery, box: int, max_groundings: int) -> Substitutions:
        """The answer by a database; an estimate that covers all conditions may refuse before the work."""
        for relation, _ in (*query.joined, *query.ranging, *query.absent, *query.counted):
            key = os.getpid(), relation.name
            if self._loaded.get(key) is not relation:  # the last queries are replaced
                columns = map(np.ascontiguousarray, relation.rows.T)
                self.engine.load(relation.name, dict(zip(relation.table.columns, columns, strict=True)))
                self._loaded[key] = relation
        select = query.compiled(self.language.constant_id)
        outputs = [f"{select.columns[name]} AS v{i}" for i, name in enumerate(query.variables)] or ["1 AS one"]
        fitting = self.ceiling.fitting(_bytes_of_ground_rule(query.rule), max_groundings)
        estimate = query.estimate()

        def check_count() -> None:
            count = self.engine.run(select.select(["count(*) AS n"], query.width))
            self._check(query.rule, int(count["n"][0]) * box, max_groundings, exact=True)

        if not query.counted and estimate * box > SURELY_TOO_MANY * fitting:
            self._check(query.rule, estimate * box, max_groundings, exact=False)
        elif not query.counted and estimate * box > fitting:
            check_count()
        most = min(fitting // max(1, box) + 1, MOST_LIMIT)
        answer = self.engine.run(f"{select.select(outputs, query.width)} LIMIT {most}")
        rows = np.stack(list(answer.values())).astype(np.int64, copy=False)
        if rows.shape[1] * box > fitting:
            check_count()
        return rows[: len(query.variables)].T


def _bytes_of_ground_rule(rule: Rule) -> int:
    return BYTES_OF_NUMBER * (len(rule.variables) + len(rule.atoms))
