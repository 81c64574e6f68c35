"""A problem: its file, theory, facts, queries, features and options."""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow.compute as pc
from jaxtyping import Int64
from pydantic import BeforeValidator, Field, ValidationError

from r2n.data.atom_text import as_tables
from r2n.data.candidates import Candidates, CandidateSource, candidate_sources, find_candidates
from r2n.data.derived import Definitions, derive
from r2n.data.features import Analyzer, FeatureTable, read_features
from r2n.data.herbrand import HerbrandBase, closed_atoms, union
from r2n.data.knowledge_base import EncodedFacts, Evidence, KnowledgeBase, complete, encode_facts, with_functional
from r2n.data.records import OnError, PostgresTable, check_file, is_postgres
from r2n.data.tables import FactRows, FirstRow, Table, read_facts
from r2n.data.text_tables import read_lines
from r2n.errors import ConfigError, DataError, Location, counted, first_names, nearest
from r2n.logic.language import Language, Predicate
from r2n.logic.parser import parse_theory, read_theory, read_utf8
from r2n.logic.theory import Theory
from r2n.options import GroundingOptions, ModelOptions, Options, Section, TrainingOptions, Whole, as_tuple, option_error

FOLDERS_VARIABLE = "R2N_FOLDERS"
"""The environment's name for folders outside their own that problem files may read, separated as in PATH."""
_PACKAGE = Path(__file__).parents[1]  # its problems share files, and no stranger's file is there


def checked_path(folder: Path, given: str) -> Path:
    """The path of a file that a problem file names; it, and what it links to, must be in the problem's folder."""
    path = folder / given
    try:
        full = path.resolve()
    except (OSError, RuntimeError, ValueError):  # a name that no file can have: opening it gives the reason
        return path
    trusted = [folder, _PACKAGE, *map(Path, filter(None, os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)))]
    if not any(full.is_relative_to(part.resolve()) for part in trusted):
        what = f"'{given}' lies outside {folder}, and a problem file reads from its own folder alone"
        hint = f"put the file there, or, where you trust the problem file, set {FOLDERS_VARIABLE}={full.parent}"
        raise ConfigError(what, hint=hint)
    return path


def _listed(given: Any) -> Any:
    return (given,) if isinstance(given, str | int) else as_tuple(given)


Names = Annotated[tuple[str, ...], BeforeValidator(as_tuple)]
MOST_PARTS = 100
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_UNREADABLE = (  # TOML's reader takes the square of the length of keys; no path and no name has a NUL
    (re.compile(rf"(?<![\w-]){_PART}(?:\.[ \t]*+{_PART}){{{MOST_PARTS}}}"), f"a key has more than {MOST_PARTS} parts"),
    (re.compile(r"\\u0000|\\U00000000"), "a text holds the character NUL"),
)


class TableOptions(Section):
    """A table of facts; `table` is the address of a database or, of an SQLite file, one of its tables."""

    file: str | None = None
    predicate: str | None = None
    columns: Names = ()
    label: str | None = None
    header: bool | None = None
    table: str | None = None
    db_schema: str | None = Field(default=None, alias="schema")  # pydantic has another use of the name
    name: str | None = None
    query: str | None = None
    format: str | None = None
    empty: Literal["error", "skip"] = "error"


def _as_tables(value: Any) -> Any:
    """A file name, the address of a database, a table of options, or a list of either, as a list of options."""
    values = value if isinstance(value, list | tuple) else [value]
    return tuple({"table" if is_postgres(item) else "file": item} if isinstance(item, str) else item for item in values)


Tables = Annotated[tuple[TableOptions, ...], BeforeValidator(_as_tables)]


class FactsOptions(Section):
    """[facts]: the training evidence, and the background, which only [derived] reads."""

    train: Tables = ()
    background: Tables = ()


class QueriesOptions(Section):
    """[queries]: what is asked; the labels are for evaluation only.

    Rankings are of the arguments in `ask`: names of columns or domains, or positions, from 0 or (negative) the end.
    """

    valid: Tables = ()
    test: Tables = ()
    ask: Annotated[tuple[str | int, ...], BeforeValidator(_listed)] = ()

    def splits(self) -> dict[str, tuple[TableOptions, ...]]:
        """The splits that are there, by name."""
        return {name: tables for name, tables in (("valid", self.valid), ("test", self.test)) if tables}


class FeatureOptions(Section):
    """[features.DOMAIN]: texts or vectors of a domain's constants; `FeatureTable` says what each key means."""

    table: str | None = None
    key: str | None = None
    text: str | None = None
    vector: Annotated[Names, BeforeValidator(_listed)] = ()
    label: str | None = None
    names: bool = False
    missing: Literal["error", "learn"] = "error"
    analyzer: Analyzer | None = None
    database_table: str | None = None


class CandidateOptions(Section):
    """[candidates.PREDICATE]: which of its atoms ground rules may hold, besides labelled ones."""

    tables: Tables = ()
    shared_words: Whole | None = Field(default=None, ge=1)
    rarer_than: float = Field(default=1.0, gt=0, le=1)


class ProblemFile(Section):
    """A problem file."""

    name: str | None = None
    theory: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    domains: dict[str, str | Names] = Field(default_factory=dict)
    facts: FactsOptions = FactsOptions()
    derived: dict[str, str] = Field(default_factory=dict)
    queries: QueriesOptions = QueriesOptions()
    features: dict[str, FeatureOptions] = Field(default_factory=dict)
    candidates: dict[str, CandidateOptions] = Field(default_factory=dict)
    grounding: GroundingOptions = GroundingOptions()
    model: ModelOptions = ModelOptions()
    training: TrainingOptions = TrainingOptions()

    def options(self) -> "Options":
        """The sections that say how, not what."""
        return Options(grounding=self.grounding, model=self.model, training=self.training)


def read_problem_file(path: Path) -> ProblemFile:
    """The checked options of a problem file."""
    text = read_utf8(path, "problem", ConfigError, "a problem is a .toml file or its folder")
    if not text.strip():
        hint = 'it needs at least [facts] train = "FILE"'
        raise ConfigError("the problem file is empty", where=Location(str(path)), hint=hint)
    for pattern, what in _UNREADABLE:
        if found := pattern.search(text):
            raise ConfigError(what, where=Location(str(path), text.count("\n", 0, found.start()) + 1))
    try:
        return ProblemFile.model_validate(tomllib.loads(text.replace("\r\n", "\n")))
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
        if match is None:
            raise ConfigError(f"not valid TOML: {error}", where=Location(str(path))) from error
        line, column = int(match.group(2)), int(match.group(3))
        where = Location(str(path), line, column, text.split("\n")[line - 1].rstrip("\r"))
        raise ConfigError(f"not valid TOML: {match.group(1)}", where=where) from error
    except ValidationError as error:
        first = error.errors()[0]
        keys = [str(key) for key in first["loc"] if not isinstance(key, int)]
        raise option_error(first, ProblemFile, _find_key(keys, text, path)) from error
    except (ValueError, RecursionError) as error:  # Python's own limits: thousands of digits or brackets
        what = "it is nested too deep" if isinstance(error, RecursionError) else "a number has too many digits"
        raise ConfigError(f"the problem file cannot be read: {what}", where=Location(str(path))) from error


def _find_key(keys: list[str], text: str, path: Path) -> Location:
    """The line of the last of the nested keys, as far as the text shows it."""
    section = ""
    for number, line in enumerate(text.split("\n"), start=1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
        if header is not None:
            section = header.group(1)
            if section.split(".") == keys:
                return Location(str(path), number, line.index(section) + 1, line)
            continue
        found = re.search(rf"(?<![\w.-])[\"']?{re.escape(keys[-1])}[\"']?\s*=", line)
        if found and section == ".".join(keys[:-1])[: len(section)]:
            return Location(str(path), number, found.start() + 1, line)
    return Location(str(path))


def described_table(spec: TableOptions, folder: Path) -> Table:
    """A table of a problem file in this folder: a file, or a table of a database."""
    if spec.file is not None:
        if spec.db_schema is not None or spec.name is not None or spec.query is not None:
            what = f"'{spec.file}' is a file: only a database has a schema, a name or a query to pick"
            raise ConfigError(what, hint='write table = "postgresql://HOST/DATABASE" instead of file')
        named = (spec.predicate, spec.columns, spec.label, spec.header, spec.table)
        return Table(checked_path(folder, spec.file), *named, format=spec.format, empty=spec.empty)
    if spec.table is None or not is_postgres(spec.table):
        hint = 'write file = "facts.tsv", or table = "postgresql://HOST/DATABASE"'
        raise ConfigError("a table of facts is in a file or in a database: here is neither", hint=hint)
    if spec.header is not None or spec.format is not None:
        raise ConfigError(f"'{spec.table}' is a database: header and format are for files", hint="leave them out")
    source = PostgresTable(spec.table, spec.db_schema, spec.name, spec.query)
    return Table(source, spec.predicate, spec.columns, spec.label, empty=spec.empty)


MOST_NAMED = 4  # positions of a domain in a note
MOST_ALONE = 0.05  # share of rows whose constants occur nowhere else, for such a first row to be unusual
TRAIN = "train"
_BACKGROUND = "background"


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What reading found: facts read per split, duplicates among them, and what was refused.

    `unused_features` counts rows of features of other constants by domain, `empty` rows that state nothing by split.
    `notes` say which rows were read as headers, `warnings` which may be headers but were read as facts.
    """

    facts: tuple[tuple[str, int], ...]
    duplicates: tuple[tuple[str, int], ...]
    rejected: tuple[DataError, ...]
    unused_features: tuple[tuple[str, int], ...] = ()
    empty: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Problem:
    """Knowledge with training evidence, the queries of each split, and the options the problem asks for.

    The truth of a query is for evaluation only. `source` is the known name or the file it was loaded from.
    `candidates` are where those of the knowledge come from, for when facts are added later. `columns` names the
    arguments of predicates, as the tables of their facts do. `ask` has the positions that rankings are of, by
    predicate; of others, all are.
    """

    name: str
    knowledge: KnowledgeBase
    queries: Mapping[str, Evidence]
    report: LoadReport
    options: Options = field(default_factory=Options)
    source: str | None = None
    candidates: Mapping[str, CandidateSource] = field(default_factory=dict)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ask: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        name: str,
        theory: Theory,
        facts: Sequence[Table] = (),
        queries: Mapping[str, Sequence[Table]] | None = None,
        *,
        domains: Mapping[str, Iterable[str]] | None = None,
        features: Mapping[str, object] | None = None,
        background: Sequence[Table] = (),
        derived: Definitions | None = None,
        candidates: Mapping[str, Candidates] | None = None,
        on_error: str = "raise",
        options: Options | None = None,
        source: str | None = None,
        ask: Sequence[str | int] = (),
    ) -> "Problem":
        """Read the tables and join them; `on_error="skip"` collects wrong rows in the report.

        `features` are FeatureTables or {constant: text or array} by domain. `derived` defines predicates by SQL
        over the facts and the `background`, which is no evidence. `candidates` limits the atoms in ground rules.
        """
        skip: OnError = "skip" if on_error == "skip" else "raise"
        for split, argument in ((TRAIN, "facts"), (_BACKGROUND, "background")):
            if split in (queries or {}):
                hint = f"what is known goes to {argument}=; rename the queries"
                raise ConfigError(f"queries cannot be called '{split}'", hint=hint)
        tables = {TRAIN: facts, **(queries or {}), _BACKGROUND: background}
        read = {split: [read_facts(t, on_error=skip, theory=theory) for t in part] for split, part in tables.items()}
        rows = {split: [group for part in parts for group in part.facts] for split, parts in read.items()}
        tables_read = [part for parts in read.values() for part in parts]
        rejected = [error for part in tables_read for error in part.rejected]
        options_of_derived = {"declared": theory.predicates, "on_error": skip, "source": source}
        added, wrong = derive(derived or {}, rows[TRAIN], rows.pop(_BACKGROUND), **options_of_derived)
        rows[TRAIN] += added
        written, groups = theory, [group for groups in rows.values() for group in groups]
        theory, language = complete(theory, groups, domains or {}, featured=features or {})
        base, encoded, unencoded = HerbrandBase(language), dict[str, EncodedFacts](), list[DataError]()
        for split, part in rows.items():
            encoded[split], unread = encode_facts(base, part, skip=skip == "skip")
            unencoded += unread
        splits = {split: Evidence.from_encoded(part, base) for split, part in encoded.items()}
        _check_overlap(encoded, splits, base)
        theory, language, of_functional, contradicted = with_functional(theory, language, splits[TRAIN])
        base = HerbrandBase(language)

        def mention(name: str) -> Location | None:
            found = ((group, pc.index(column, name).as_py()) for group in groups for column in group.arguments)
            return next((group.location(row) for group, row in found if row >= 0), None)

        read_in, unread, read_as = read_features(language, features or {}, on_error=skip, mention=mention)
        counts = [(split, len(part.codes)) for split, part in encoded.items()]
        duplicates = tuple((split, count - len(splits[split])) for split, count in counts)
        train, where = splits.pop(TRAIN), Location(source) if source is not None else None
        sources = candidate_sources(base, candidates or {}, train, splits, where)
        first = [part.first for part in tables_read if part.first is not None]
        notes = [note for part in sources.values() for note in part.notes]
        if len(theory.domains) > 1 and not written.predicates:
            notes.append(_found_domains(language))
        listed = [d for d in language.domains if d.listed is not None or d.name in (domains or {})]
        usual = union(*map(language.members, listed), *(part.constants for part in read_in.values()))
        report = LoadReport(
            tuple(counts),
            duplicates,
            (*rejected, *wrong, *unencoded, *unread),
            tuple((domain, part.ignored) for domain, part in read_in.items()),
            tuple((split, count) for split, parts in read.items() if (count := sum(part.empty for part in parts))),
            (*(row.note for row in first if row.is_header), *notes, *of_functional, *read_as),
            (*(row.note for row in unusual_first_rows(base, tables_read, encoded.values(), usual)), *contradicted),
        )
        labelled = union(train.atoms, *(part.atoms for part in splits.values()))
        found = find_candidates(base, sources, labelled, read_in)
        knowledge = KnowledgeBase(theory, language, train, read_in, found)
        columns = {group.predicate: group.names for group in reversed(groups) if group.names}  # of its first table
        columns = dict(sorted(columns.items()))
        asked = asked_positions(language, columns, ask)
        return cls(name, knowledge, splits, report, options or Options(), source, sources, columns, asked)

    @classmethod
    def from_facts(
        cls,
        facts: object,
        theory: Theory | Path | str | None = None,
        queries: object = None,
        *,
        features: Mapping[str, object] | None = None,
        options: Options | None = None,
        split: Sequence[float] | None = None,
        seed: int = 0,
        name: str = "problem",
        domains: Mapping[str, Iterable[str]] | None = None,
        ask: Sequence[str | int] | str = (),
    ) -> "Problem":
        """The problem of facts given in Python; no file is needed.

        - `facts`: a pandas, polars or pyarrow table of triples (head, relation, tail, perhaps a label), a list of
          tuples (predicate, constant, ..., perhaps True or False), a list of atoms as text, false ones with `!`,
          {predicate: table or list of its arguments}, a path, or a list of such tables.
        - `theory`: rules and declarations, as text, path or Theory. None: no rules.
        - `queries`: with their truth, in the same forms: {"valid": ..., "test": ...}, or those of "test".
        - `features`: by domain, a table, {constant: text or array}, or a FeatureTable.
        - `split`: instead of queries, the shares of (train, valid, test) or (train, test), drawn by `seed`.
        - `domains`: the constants of domains that the theory leaves open. By default those in the facts.
        - `ask`: which argument of a ranking is asked, as `["product"]`: a column, a domain or a position.

        >>> facts = [("near", "rome", "ostia"), ("near", "ostia", "rome"), ("near", "rome", "tivoli")]
        >>> Problem.from_facts(facts, "rule r: near(x, y) -> near(y, x)", ["near(tivoli, rome)"])
        Problem 'problem': 3 constants, 1 predicate, 1 rule, 3 known atoms; queries: test 1
        """
        if split is not None and queries is not None:
            raise ConfigError("queries and split are both given", hint="split divides the facts: leave one of them out")
        if not isinstance(theory, Theory | None):  # a text of one line without a statement is a path
            text = str(theory)
            is_path = isinstance(theory, Path) or (text.strip() and not re.search(r"[(\n]|^domain ", text))
            theory = read_theory(Path(text)) if is_path else parse_theory(text, "theory")
        theory = theory or Theory()
        parts: Mapping[Any, object] = {} if queries is None else {"test": queries}
        if isinstance(queries, Mapping) and queries.keys() & {"valid", "test"}:
            parts = queries
        tables = {
            str(part): as_tables(given, "queries" if parts is not queries else f"queries[{part!r}]", theory)
            for part, given in parts.items()
        }
        known = as_tables(facts, "facts", theory)
        ask = (ask,) if isinstance(ask, str) else ask
        problem = cls.build(name, theory, known, tables, domains=domains, features=features, options=options, ask=ask)
        return problem if split is None else problem.with_split(split, seed)

    def with_split(self, shares: Sequence[float], seed: int = 0) -> "Problem":
        """The problem whose evidence is divided at random into train, valid and test, or train and test.

        The atoms of each predicate and truth are divided by themselves; those under a closed world stay in train.
        """
        if len(shares) not in (2, 3) or min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
            what = f"split is {tuple(shares)}, but the shares of train, valid and test add up to 1"
            raise ConfigError(what, hint="write split=(0.8, 0.1, 0.1), or (0.8, 0.2) for train and test")
        atoms, truth = self.train.atoms, self.train.truth
        base, generator = self.knowledge.base, np.random.default_rng(seed)
        part = np.zeros(len(atoms), np.int64)
        strata = np.where(closed_atoms(base, atoms), -1, 2 * base.decode(atoms)[0] + truth)
        for stratum in np.unique(strata[strata >= 0]):
            rows = generator.permutation(np.flatnonzero(strata == stratum))
            part[rows] = np.searchsorted(np.round(np.cumsum(shares[:-1]) * len(rows)), np.arange(len(rows)), "right")
        names = (TRAIN, "valid", "test") if len(shares) == 3 else (TRAIN, "test")
        splits = {split: Evidence(atoms[part == i], truth[part == i]) for i, split in enumerate(names)}
        report = replace(self.report, facts=tuple((split, len(evidence)) for split, evidence in splits.items()))
        knowledge = replace(self.knowledge, evidence=splits.pop(TRAIN))
        return replace(self, knowledge=knowledge, queries={**self.queries, **splits}, report=report)

    def __repr__(self) -> str:
        splits = ", ".join(f"{split} {len(part):,}" for split, part in self.queries.items())
        return f"Problem '{self.name}': {self.knowledge.size}; queries: {splits or 'none'}"

    @property
    def train(self) -> Evidence:
        """The evidence."""
        return self.knowledge.evidence

    @property
    def valid(self) -> Evidence:
        """The queries for model selection, with their truth."""
        return self.queries.get("valid", Evidence.empty())

    @property
    def test(self) -> Evidence:
        """The queries for the last evaluation, with their truth."""
        return self.queries.get("test", Evidence.empty())

    def with_valid_as_evidence(self) -> "Problem":
        """The problem to train on once the settings are chosen: the validation queries are evidence."""
        knowledge = replace(self.knowledge, evidence=Evidence.joined(self.train, self.valid))
        queries = {name: part for name, part in self.queries.items() if name != "valid"}
        return replace(self, knowledge=knowledge, queries=queries)

    @cached_property
    def atoms(self) -> Int64[np.ndarray, " atoms"]:
        """Codes of the evidence and of all queries, sorted and distinct."""
        return union(self.train.atoms, *(part.atoms for part in self.queries.values()))

    @cached_property
    def asked_predicates(self) -> tuple[Predicate, ...]:
        """The predicates of the queries."""
        return self.knowledge.base.predicates(*(part.atoms for part in self.queries.values()))


def asked_positions(
    language: Language, columns: Mapping[str, tuple[str, ...]], ask: Sequence[str | int]
) -> dict[str, tuple[int, ...]]:
    """The positions that are asked, by predicate; a name or position that no predicate has is an error."""
    keys = {
        predicate.name: [
            {i, i - predicate.arity, domain.name, *columns.get(predicate.name, ())[i : i + 1]}
            for i, domain in enumerate(predicate.domains)
        ]
        for predicate in language.predicates
    }
    known = {key for positions in keys.values() for part in positions for key in part}
    if wrong := [str(item) for item in ask if item not in known]:
        named = sorted(key for key in known if isinstance(key, str))
        hint = nearest(wrong[0], named) or f"there are: {', '.join(named)}; or write a position, from 0"
        raise ConfigError(f"queries.ask: no predicate has an argument '{wrong[0]}'", hint=hint)
    found = {name: tuple(i for i, part in enumerate(own) if part & set(ask)) for name, own in keys.items()}
    return {name: positions for name, positions in found.items() if positions}


def unusual_first_rows(
    base: HerbrandBase, read: Sequence[FactRows], encoded: Iterable[EncodedFacts], usual: Int64[np.ndarray, " _"]
) -> list[FirstRow]:
    """First rows that were read as facts and look like headers: their constants occur in no other row.

    That a constant occurs once is no sign of a header in a table where it is common, or if it is among the `usual`
    ones, which lists or features name, or has the digits and signs of codes and addresses.
    """
    first = {
        group: part.first
        for part in read
        for group in part.facts
        if part.first and not part.first.is_header and group.rows[0] == part.first.row
        if not any(re.search(r"[\d/:#@]", cell) for cell in part.first.cells)
    }
    parts = list(encoded)
    groups = [group for part in parts for group in part.groups]
    if first.keys().isdisjoint(groups):
        return []
    offsets = np.cumsum([0, *(len(part.groups) for part in parts)]).tolist()
    group = np.concatenate([part.group + offset for part, offset in zip(parts, offsets, strict=False)]).astype(np.int64)
    is_asked = np.array([own in first for own in groups])[group] & (np.concatenate([part.row for part in parts]) == 0)
    predicate, arguments = base.decode(np.concatenate([part.codes for part in parts]))
    names = np.array([own.table.predicate is None for own in groups])[group]  # its predicate is read from the row
    cells = np.column_stack([arguments, np.where(names, len(base.language.constants) + predicate, -1)])
    times = np.bincount(cells[~is_asked].ravel() + 1, minlength=cells.max() + 2)
    times[usual + 1] += 1
    times[0] = 0  # of no cell
    seen = times[cells + 1].max(axis=1)
    ids = {id(own.table): i for i, own in enumerate(groups)}
    table = np.array([ids[id(own.table)] for own in groups])[group]
    rows, alone = (np.bincount(table[which], minlength=len(groups)) for which in (~is_asked, ~is_asked & (seen == 1)))
    found = []
    for i in np.flatnonzero(is_asked & (seen == 0)):
        own = table[i] if rows[table[i]] else slice(None)  # of a table without other rows: those of all
        if rows[own].sum() > 0 and alone[own].sum() <= MOST_ALONE * rows[own].sum():
            found.append(first[groups[group[i]]])
    return found


def _found_domains(language: Language) -> str:
    """The domains that constants and rules show, each with its positions."""
    positions = [(d, f"{i} of {p.name}") for p in language.predicates for i, d in enumerate(p.domains, start=1)]
    shown = []
    for domain in language.domains:
        own = first_names((text for other, text in positions if other == domain), MOST_NAMED) or "nowhere"
        shown.append(f"{domain.name} ({counted(len(language.members(domain)), 'constant')}; {own})")
    return (
        f"positions that share constants or variables of rules have one domain: {'; '.join(shown)}; where that is not"
        " so, list the constants in [domains] or declare the predicates in the theory"
    )


def _check_overlap(encoded: Mapping[str, EncodedFacts], splits: Mapping[str, Evidence], base: HerbrandBase) -> None:
    """An atom in two splits would be a query whose answer is known."""
    for earlier, later in combinations(splits, 2):
        shared = np.intersect1d(splits[earlier].atoms, splits[later].atoms, assume_unique=True)
        if len(shared):
            rows = [int(np.flatnonzero(encoded[split].codes == shared[0])[0]) for split in (earlier, later)]
            locations = encoded[earlier].location(rows[0]), encoded[later].location(rows[1])
            hint = f"it is also at {locations[0]}; take it out of one of the two"
            if all(location.line == 1 for location in locations):
                hint += ", or write header = true in both tables if it is the names of their columns"
            raise DataError(
                f"{counted(len(shared), 'atom')} of split '{later}' {'stands' if len(shared) == 1 else 'stand'}"
                f" in split '{earlier}' too, {base.names(shared[:1])[0]} for one",
                where=locations[1],
                hint=hint,
            )


def load_problem(path: Path | str, *, on_error: str | None = None) -> Problem:
    """The problem in a problem file, or in a folder that holds a `problem.toml`."""
    path = Path(path)
    path = path / "problem.toml" if path.is_dir() else path
    file = read_problem_file(path)
    folder, features = path.parent, dict[str, FeatureTable]()

    def tables(specs: Sequence[TableOptions]) -> list[Table]:
        return [described_table(spec, folder) for spec in specs]

    for domain, given in file.features.items():
        try:
            source = checked_path(folder, given.table) if given.table is not None else None
            keys = given.model_dump(exclude={"table", "database_table"})
            features[domain] = FeatureTable(source, table=given.database_table, **keys)
        except ConfigError as error:
            what = f"[features.{domain}]: {error.what}"
            raise ConfigError(what, where=Location(str(path)), hint=error.hint) from None
    options = file.options()
    if file.grounding.kept is not None:  # a stored grounding is a file as any other
        kept = {"kept": str(checked_path(folder, file.grounding.kept))}
        options = options.model_copy(update={"grounding": options.grounding.model_copy(update=kept)})
    return Problem.build(
        file.name or folder.resolve().name,
        read_theory(checked_path(folder, file.theory)) if file.theory else Theory(),
        tables(file.facts.train),
        {split: tables(specs) for split, specs in file.queries.splits().items()},
        domains={name: listed_constants(given, folder) for name, given in file.domains.items()},
        features=features,
        background=tables(file.facts.background),
        derived=file.derived,
        candidates={
            name: Candidates(tuple(tables(given.tables)), given.shared_words, given.rarer_than)
            for name, given in file.candidates.items()
        },
        on_error=on_error or file.on_error,
        options=options,
        source=str(path.resolve()),
        ask=file.queries.ask,
    )


def listed_constants(given: str | tuple[str, ...], folder: Path) -> list[str]:
    """A domain's constants: as listed, or one a line in a file."""
    if not isinstance(given, str):
        return list(given)
    path = checked_path(folder, given)
    check_file(path)
    return [line for line in read_lines(path).columns[0].to_pylist() if line.strip()]
