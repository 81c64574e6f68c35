"""Grounding of facts that Spark reads: from tables of text to ground rules in Parquet, never in a single process.

Views of Spark: `stated_N` (predicate, truth, split, c0, c1, ...) holds the facts of N positions as text, `constants`
(id, name, in_0, in_1, ...) the constants in order of name, `facts_N` (p, truth, split, a0, a1, ...) the facts as ids,
`fact_i` and `denied_i` (a0, a1, ...) the training facts of the i-th predicate, `domain_k` (a0) the k-th domain, and
`index_k` (a0, number) the index of each constant in it. This process holds only counts and checksums.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp

from r2n.data.herbrand import first_codes
from r2n.data.knowledge_base import complete, declaration, outside_domain, rule_constants, wrong_arity
from r2n.data.problem import TRAIN, ProblemFile, TableOptions, checked_path, listed_constants
from r2n.data.records import as_text, cell_sql, settle
from r2n.data.tables import FALSE, TRUE, Facts, Table, facts_from_records, layout_of
from r2n.errors import ConfigError, DataError, Location
from r2n.files import replace_folder, scratch_folder
from r2n.grounding.cache import RuleParts, Tally, digest_of_tallies, opened_for_writing, write_manifest
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.joins import AtomTable, Kind, Relation, RuleQuery, Tables, check_budget
from r2n.grounding.spark import SparkEngine, parquet_of
from r2n.logic.formula import Constant, Variable
from r2n.logic.language import Domain, Language
from r2n.logic.parser import read_theory
from r2n.logic.theory import Rule, Theory
from r2n.options import GroundingOptions
from r2n.progress import Progress, no_progress

TABLE = "table:"
"""How a file's name begins that is no file but a table of Spark's catalog."""
COUNT_FIRST = 10  # ground rules are counted before they are made if the estimate is above this part of the budget
_LOWER_BITS = 33  # of monotonically_increasing_id: the row within its partition


def why_not_remote(file: ProblemFile, options: GroundingOptions) -> str | None:
    """Why a problem has to be grounded in one process; None if Spark can do it."""
    specs = [*file.facts.train, *(spec for split in file.queries.splits().values() for spec in split)]
    other = next((spec.file for spec in specs if not _is_read_by_spark(spec)), None)
    reasons = {
        "there is no table of facts": not specs,
        f"{other} is no Parquet and no table of Spark's": other is not None,
        "candidates are found in one process": bool(file.candidates),
        "derived facts are made in one process": bool(file.derived),
        "wrong rows are skipped in one process": file.on_error == "skip",
        "reciprocals are made in one process": options.reciprocal,
        "backward chaining goes on from what is found": options.strategy == "backward",
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _is_read_by_spark(spec: TableOptions) -> bool:
    """Whether Spark reads it: a Parquet file or folder of such, or a table of its catalog."""
    name = spec.file or ""
    is_parquet = spec.format == "parquet" or (spec.format is None and Path(name).suffix.lower() == ".parquet")
    return name.startswith(TABLE) or (bool(name) and is_parquet)


@dataclass(frozen=True, eq=False)
class StatedFacts:
    """The facts of a table: a SELECT (predicate, truth, c0, c1, ...), and its predicates, each without rows."""

    select: str
    groups: list[Facts]
    split: str = TRAIN


def open_problem(engine: SparkEngine, file: ProblemFile, folder: Path, scratch: Path) -> "RemoteTables":
    """The tables of a problem in Spark; its files are under `scratch`."""
    theory = read_theory(checked_path(folder, file.theory)) if file.theory else Theory()
    splits = {TRAIN: file.facts.train, **file.queries.splits()}
    specs = [(split, spec) for split, given in splits.items() for spec in given]
    stated = [read_table(engine, spec, folder, split, f"read_{i}") for i, (split, spec) in enumerate(specs)]
    domains = {name: listed_constants(given, folder) for name, given in file.domains.items()}
    return remote_tables(engine, stated, theory, domains, scratch)


def _text(value: str) -> str:
    return exp.Literal.string(value).sql("spark")


def _columns(arity: int, letter: str = "a") -> list[str]:
    return [f"{letter}{i}" for i in range(arity)]


def _any_of(values: Iterable[str]) -> str:
    return f"({', '.join(map(_text, values))})"


def read_table(engine: SparkEngine, spec: TableOptions, folder: Path, split: str, view: str) -> StatedFacts:
    """Read a table as a view, in one pass over its rows; the first wrong row is refused as if it were read here."""
    if spec.file is None or not _is_read_by_spark(spec):
        raise ConfigError(
            f"Spark does not read {spec.file!r} as facts",
            hint=f"give Parquet, or a table of its catalog: {TABLE}NAME; --engine duckdb reads the other formats",
        )
    if spec.file.startswith(TABLE):
        source = spec.file.removeprefix(TABLE)
        relation = ".".join(exp.to_identifier(part, quoted=True).sql("spark") for part in source.split("."))
    else:
        path = checked_path(folder, spec.file)
        source, relation = str(path), parquet_of(path)
        if not path.exists():
            raise DataError("there is no such file", where=Location(source))
    schema = engine.arrow(f"SELECT * FROM {relation} LIMIT 0").schema
    records = as_text(schema.empty_table(), source)
    layout = layout_of(records, spec.predicate, spec.columns, spec.label)
    texts: dict[int | None, str] = {None: _text(spec.predicate or "")}
    kinds = []
    for i in (*layout.arguments, layout.predicate, layout.label):
        if i is not None:
            cell = exp.to_identifier(records.names[i], quoted=True).sql("duckdb")
            sql = cell_sql(cell, schema.field(records.names[i]).type)
            texts[i], kind = (sqlglot.transpile(part, read="duckdb", write="spark")[0] for part in sql)
            kinds.append(f"({kind}) IS NULL")
    label = "'true'" if layout.label is None else f"lower({texts[layout.label]})"
    cells = ["predicate", *_columns(len(layout.arguments), "c")]
    outputs = [f"{texts[i]} AS {c}" for i, c in zip((layout.predicate, *layout.arguments), cells, strict=True)]
    is_full = " AND ".join(f"coalesce({cell}, '') <> ''" for cell in cells)
    is_fine = " AND ".join([*kinds, f"coalesce({label}, '') IN {_any_of((*TRUE, *FALSE))}"])
    is_wrong = "is_full AND NOT is_fine" if spec.empty == "skip" else "NOT (is_full AND is_fine)"
    outputs += [f"{label} IN {_any_of(TRUE)} AS truth", f"{is_fine} AS is_fine"]
    rows = f"SELECT struct(*) AS given, {', '.join(outputs)} FROM {relation}"
    engine.view(view, f"SELECT *, {is_full} AS is_full FROM ({rows})")
    found = engine.run(
        f"SELECT predicate, bool_or(is_full) AS stated, bool_or({is_wrong}) AS wrong FROM {view} GROUP BY predicate"
    )
    if found["wrong"].any():
        row = as_text(engine.arrow(f"SELECT given.* FROM {view} WHERE {is_wrong} LIMIT 1"), source)
        row = replace(row, locate=lambda *_: Location(source))
        table = Table(schema.empty_table(), spec.predicate, tuple(spec.columns), spec.label, empty=spec.empty)
        settle(facts_from_records(table, row)[1], "raise")
        raise DataError("a row states nothing", where=Location(source))
    none, where = pa.array([], pa.string()), Table(Path(source))
    groups = [
        Facts(name, (none,) * len(layout.arguments), np.zeros(0, bool), np.zeros(0, np.int64), where)
        for name in sorted(found["predicate"][found["stated"].astype(bool)].tolist())
    ]
    return StatedFacts(f"SELECT predicate, truth, {', '.join(cells[1:])} FROM {view} WHERE is_full", groups, split)


@dataclass(frozen=True, eq=False)
class RemoteTables(Tables):
    """Spark's views of facts and domains, and their counts."""

    engine: SparkEngine
    theory: Theory  # completed by the tables
    constants: int
    sizes: tuple[int, ...]  # the number of constants of each domain
    known: Mapping[tuple[int, bool], tuple[int, ...]]  # by predicate and truth: number, hash, constants by position
    offsets: np.ndarray  # the first code of each predicate
    ids: Mapping[str, int] = field(default_factory=dict)  # of the constants in rules

    def predicate_index(self, name: str) -> int:
        """The index of a predicate in the theory."""
        return [predicate.name for predicate in self.theory.predicates].index(name)

    def size(self, domain: Domain) -> int:
        """The number of constants of a domain."""
        return self.sizes[self.theory.domains.index(domain)]

    def relation(self, kind: Kind, predicate: str) -> Relation:
        """The predicate's facts or denied atoms."""
        i = self.predicate_index(predicate)
        domains = self.theory.predicates[i].domains
        count, _, *distinct = self.known.get((i, kind is Kind.FACT), (0,) * (2 + len(domains)))
        return Relation(f"{kind.value}_{i}", domains, self.constants, counts=(count, *distinct))

    def domain(self, domain: Domain) -> Relation:
        """The constants of a domain."""
        name = f"domain_{self.theory.domains.index(domain)}"
        return Relation(name, (domain,), self.constants, counts=(self.size(domain),) * 2)


def remote_tables(
    engine: SparkEngine, stated: list[StatedFacts], theory: Theory, given: Mapping[str, Sequence[str]], scratch: Path
) -> RemoteTables:
    """Number the constants of the facts, and write the facts as tables of ids under `scratch`."""
    groups = [group for part in stated for group in part.groups]
    theory, language = complete(theory, groups, given, are_all_here=False)
    for group in groups:
        try:
            predicate = language.predicate(group.predicate)
        except DataError as error:
            raise DataError(error.what, where=Location(group.table.name), hint=error.hint) from None
        if len(group.arguments) != predicate.arity:
            raise wrong_arity(group, predicate.arity, declaration(predicate))
    arities = sorted({predicate.arity for predicate in theory.predicates})
    for arity in arities:
        parts = [
            f"SELECT *, {_text(part.split)} AS split FROM ({part.select})"
            for part in stated
            if part.groups and len(part.groups[0].arguments) == arity
        ]
        cells = ", ".join(f"'' AS c{i}" for i in range(arity))
        nothing = f"SELECT '' AS predicate, true AS truth, {cells}, '' AS split WHERE false"
        engine.view(f"stated_{arity}", " UNION ALL ".join(parts or [nothing]))
    gathered = {d for d in theory.domains if d.name not in given and d.listed is None and not d.parts}
    count, sizes = _number_constants(engine, theory, language, gathered, arities, scratch)
    ids: dict[str, int] = {}
    named = rule_constants(theory)
    if named:
        found = engine.run(f"SELECT * FROM constants WHERE name IN {_any_of({name: None for name, *_ in named})}")
        rows = {name: row for row, name in enumerate(found["name"].tolist())}
        for name, domain, where in named:
            if name not in rows or not found[f"in_{theory.domains.index(domain)}"][rows[name]]:
                raise outside_domain(name, domain, where)
        ids = dict(zip(rows, found["id"].tolist(), strict=True))
    shapes = [tuple(sizes[theory.domains.index(domain)] for domain in p.domains) for p in theory.predicates]
    offsets = first_codes(theory.predicates, shapes)
    known: dict[tuple[int, bool], tuple[int, ...]] = {}
    for arity in arities:
        known |= _encode(engine, theory, gathered, arity, scratch)
    return RemoteTables(engine, theory, count, sizes, known, offsets, ids)


def _number_constants(
    engine: SparkEngine, theory: Theory, language: Language, gathered: set[Domain], arities: list[int], scratch: Path
) -> tuple[int, tuple[int, ...]]:
    """Number all constants by name, those of `language` and of gathered domains; how many there are, and by domain."""
    domains = theory.domains
    listed = [(language.constants[i], k) for k, d in enumerate(domains) if not d.parts for i in language.members(d)]
    names, numbers = pa.array([name for name, _ in listed], pa.string()), pa.array([k for _, k in listed], "int32")
    engine.load("listed", {"name": names, "k": numbers})
    selects = ["SELECT name, k FROM listed"]
    for arity, i in ((size, i) for size in arities for i in range(size)):
        declared = [p for p in theory.predicates if p.arity == arity and p.domains[i] in gathered]
        if declared:
            positions = {p.name: domains.index(p.domains[i]) for p in declared}
            where = f"WHERE predicate IN {_any_of(positions)}"
            selects.append(f"SELECT DISTINCT c{i} AS name, {_lookup(positions)} AS k FROM stated_{arity} {where}")

    def inside(domain: Domain) -> str:
        if domain.parts:
            return f"({' OR '.join(map(inside, domain.parts))})"
        return f"bool_or(k = {domains.index(domain)})"

    flags = "".join(f", {inside(domain)} AS in_{k}" for k, domain in enumerate(domains))
    engine.view("named", f"SELECT name{flags} FROM ({' UNION ALL '.join(selects)}) GROUP BY name")
    number_rows(engine, "named", "name", scratch / "constants", "constants", "id")
    counts = "".join(f", count_if(in_{k}) AS n_{k}" for k in range(len(domains)))
    found = engine.run(f"SELECT count(*) AS n{counts} FROM constants")
    count, *sizes = (int(column[0]) for column in found.values())
    for k in range(len(domains)):
        engine.view(f"domain_{k}", f"SELECT id AS a0 FROM constants WHERE in_{k}")
        if sizes[k] < count:
            number_rows(engine, f"domain_{k}", "a0", scratch / f"index_{k}", f"index_{k}", "number")
    return count, tuple(sizes)


def _lookup(numbers: Mapping[str, int], of: str = "predicate") -> str:
    """The number of a predicate, in SQL."""
    return f"element_at(map({', '.join(f'{_text(name)}, {i}' for name, i in numbers.items())}), {of})"


def number_rows(engine: SparkEngine, view: str, key: str, folder: Path, called: str, number: str) -> None:
    """Make the view `called`: a view with a column of numbers from 0 in the order of a key, written once.

    Spark sorts by ranges. Each row is written with its range and its index in it; the first number of a range follows
    from the sizes of the ranges before.
    """
    engine.write(f"SELECT *, monotonically_increasing_id() AS _m FROM (SELECT * FROM {view} ORDER BY {key})", folder)
    written = parquet_of(folder)
    counts = engine.run(f"SELECT shiftright(_m, {_LOWER_BITS}) AS part, count(*) AS n FROM {written} GROUP BY 1")
    order = np.argsort(counts["part"])
    before = np.cumsum(counts["n"][order]) - counts["n"][order]
    entries = ", ".join(f"{part}L, {start}L" for part, start in zip(counts["part"][order], before, strict=True))
    first = f"element_at(map({entries}), shiftright(_m, {_LOWER_BITS}))" if entries else "0L"
    columns = ", ".join(name for name in engine.arrow(f"SELECT * FROM {written} LIMIT 0").column_names if name != "_m")
    engine.view(called, f"SELECT {columns}, {first} + (_m & {2**_LOWER_BITS - 1}L) AS {number} FROM {written}")


def _encode(
    engine: SparkEngine, theory: Theory, gathered: set[Domain], arity: int, scratch: Path
) -> dict[tuple[int, bool], tuple[int, ...]]:
    """Write the facts of one arity as ids, refuse those that are wrong, and count those of each predicate and truth."""
    predicates = {p.name: i for i, p in enumerate(theory.predicates) if p.arity == arity}
    allowed = ["true"]  # the constant at a position is one of its domain; what is gathered there always is
    for i in range(arity):
        checked = [
            f"WHEN {_text(p.name)} THEN coalesce(k{i}.in_{theory.domains.index(p.domains[i])}, false)"
            for p in theory.predicates
            if p.arity == arity and p.domains[i] not in gathered
        ]
        allowed += [f"(CASE f.predicate {' '.join(checked)} ELSE true END)"] if checked else []
    joins = "".join(f" LEFT JOIN constants AS k{i} ON k{i}.name = f.c{i}" for i in range(arity))
    ids, columns = ", ".join(f"k{i}.id AS a{i}" for i in range(arity)), ", ".join(_columns(arity))
    encoded = f"{_lookup(predicates, 'f.predicate')} AS p, f.*, {ids}, {' AND '.join(allowed)} AS inside"
    engine.view(f"encoded_{arity}", f"SELECT {encoded} FROM stated_{arity} AS f{joins}")
    folder, keys = scratch / f"facts_{arity}", f"p, truth, split, {columns}"
    engine.write(f"SELECT DISTINCT {keys}, inside FROM encoded_{arity} ORDER BY {keys}", folder)
    engine.view(f"facts_{arity}", f"SELECT * FROM {parquet_of(folder)}")
    atoms = ", ".join(["p", *_columns(arity, "c")])
    wrong = {
        "bool_or(NOT inside)": ("holds a constant outside its domain", "add it there"),
        "count(DISTINCT truth) > 1": ("is stated both true and false", "keep one of the two"),
        "count(DISTINCT split) > 1": ("stands in two splits", "take it out of one of the two"),
    }
    flags = engine.run(f"SELECT {', '.join(wrong)} FROM facts_{arity}")  # of most tables none holds
    for flag, (condition, (what, hint)) in zip(flags.values(), wrong.items(), strict=True):
        if flag[0]:
            found = engine.run(f"SELECT {atoms} FROM encoded_{arity} GROUP BY {atoms} HAVING {condition} LIMIT 1")
            for p, *names in zip(*(column.tolist() for column in found.values()), strict=True):
                raise DataError(f"{theory.predicates[p].name}({', '.join(names)}) {what}", hint=hint)
    for i in predicates.values():
        for name, truth in (("fact", "truth"), ("denied", "NOT truth")):
            where = f"p = {i} AND {truth} AND split = {_text(TRAIN)}"
            engine.view(f"{name}_{i}", f"SELECT {columns} FROM facts_{arity} WHERE {where}")
    distinct = ", ".join(f"count(DISTINCT a{i})" for i in range(arity))
    train = f"FROM facts_{arity} WHERE split = {_text(TRAIN)}"
    found = engine.run(f"SELECT p, truth, count(*), bit_xor(xxhash64({columns})), {distinct} {train} GROUP BY p, truth")
    return {(p, truth): tuple(counts) for p, truth, *counts in zip(*(c.tolist() for c in found.values()), strict=True)}


def rule_query(tables: RemoteTables, grounder: Grounder, rule: Rule) -> RuleQuery:
    """The query of a strategy for the substitutions of all of a rule's variables."""
    if isinstance(grounder, KnownBodyGrounder | FullGrounder):
        return grounder.query(tables, rule, every_variable=True)
    raise ConfigError(
        "backward grounding is not made from tables that Spark reads itself",
        hint="take known-body or full; backward reads the facts in this process, and asks Spark for its queries",
    )


def ground_select(tables: RemoteTables, query: RuleQuery) -> str:
    """A query as SQL, whose answer is the codes of the rule's atoms, in the order of the substitutions."""
    select, codes = query.compiled(tables.ids.__getitem__), list[str]()
    for number, atom in enumerate(query.rule.atoms):
        i, code = tables.predicate_index(atom.predicate), "0"  # the index among all tuples
        for term, domain in zip(atom.terms, tables.theory.predicates[i].domains, strict=True):
            index = select.value(term)
            if tables.size(domain) < tables.constants:
                k = tables.theory.domains.index(domain)
                found = f"index {k} of {term.name} {isinstance(term, Constant)}"
                if found not in select.columns:
                    select.join(AtomTable(f"index_{k}", ("a0", "number")), (term, Variable(found)))
                index = select.columns[found]
            code = f"({code}) * {tables.size(domain)} + {index}"
        codes.append(f"CAST({int(tables.offsets[i])} AS BIGINT) + {code} AS a{number}")
    order = [select.columns[name] for name in query.rule.variables]
    return select.select(codes) + (f" ORDER BY {', '.join(order)}" if order else "")


@contextmanager
def scratch_folder_next_to(folder: Path) -> Iterator[Path]:
    """A temporary folder next to one for a grounding; it is removed in the end, whatever happens."""
    with ExitStack() as stack:
        with opened_for_writing(folder):
            scratch = stack.enter_context(scratch_folder(folder))
        yield scratch


def write_remote(
    tables: RemoteTables, grounder: Any, folder: Path, scratch: Path, progress: Progress = no_progress
) -> tuple[RuleParts, ...]:
    """Ground all rules into `folder`, which appears when all is written; `scratch` is next to it and is used up."""
    rules, engine, parts = tables.theory.rules, tables.engine, list[RuleParts]()
    for number, rule in enumerate(rules):
        progress("ground", number, len(rules))
        path = scratch / f"rule={number}"
        if tables.is_left_out(rule):
            path.mkdir()
            parts.append(RuleParts.from_folder(path, rule.name, 0.0))
            continue
        start, query = perf_counter(), rule_query(tables, grounder, rule)
        limit, select = grounder.max_groundings, ground_select(tables, query)
        if query.estimate() > limit // COUNT_FIRST:
            counted = engine.run(f"SELECT count(*) AS n FROM ({select}) AS found")
            check_budget(rule, int(counted["n"][0]), limit, exact=True)
        engine.write(select, path)
        parts.append(RuleParts.from_folder(path, rule.name, perf_counter() - start))
        check_budget(rule, parts[-1].ground_rules, limit, exact=True)

    def tally(view: str, hashed: str) -> Tally:
        found = engine.run(f"SELECT count(*) AS n, coalesce(bit_xor({hashed}), 0L) AS x FROM {view}")
        return int(found["n"][0]), int(found["x"][0])

    known = {key: (count, hashed) for key, (count, hashed, *_) in tables.known.items()}
    names = tally("constants", "CAST(conv(substr(md5(name), 1, 15), 16, 10) AS BIGINT)")
    domains = [tally(f"domain_{k}", "xxhash64(a0)") for k in range(len(tables.sizes))]
    write_manifest(scratch, digest_of_tallies(tables.theory, grounder, names, domains, known), parts)
    for other in scratch.iterdir():
        if other.is_dir() and not other.name.startswith("rule="):
            shutil.rmtree(other)
    replace_folder(scratch, folder)
    return tuple(parts)
