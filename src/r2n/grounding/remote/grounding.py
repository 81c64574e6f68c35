"""Tables with Spark -> ground rules as Parquet, a folder a rule, each in order; whole, or not under its name."""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import pyarrow.parquet as pq
from sqlglot import exp

from r2n.data.conjunctive import AtomTable, ConjunctiveSelect, Expression
from r2n.data.problem import TRAIN
from r2n.errors import CheckpointError, ConfigError
from r2n.files import put_in_place, scratch_folder
from r2n.grounding.cache import MANIFEST, Content, KeptGrounder, RuleParts, Tally, parts_of, write_manifest
from r2n.grounding.full import FullGrounder, uncontradicted_query
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.joins import RuleQuery
from r2n.grounding.known_body import KnownBodyGrounder, known_body_query
from r2n.grounding.remote.salt import salted
from r2n.grounding.remote.stated import quoted
from r2n.grounding.remote.tables import RemoteTables
from r2n.grounding.spark_engine import spark_sql
from r2n.grounding.substitutions import check_budget
from r2n.logic.formula import Atom, Constant, Variable
from r2n.logic.theory import Rule
from r2n.progress import Progress, no_progress

COUNT_FIRST = (
    10  # where the estimate is above one so-manieth of the budget, ground rules are counted before they are made
)


@dataclass(frozen=True, eq=False)
class RemoteGrounding:
    """The ground rules of each rule, kept in a folder."""

    rules: tuple[RuleParts, ...]
    digest: str

    def __len__(self) -> int:
        """The number of ground rules of all rules."""
        return sum(part.ground_rules for part in self.rules)


def rule_query(tables: RemoteTables, grounder: Grounder, rule: Rule) -> RuleQuery:
    """The substitutions of all of a rule's variables that a strategy seeks."""
    grounder = grounder.grounder if isinstance(grounder, KeptGrounder) else grounder
    if isinstance(grounder, KnownBodyGrounder) and rule.body:
        return known_body_query(tables, rule)
    if isinstance(grounder, KnownBodyGrounder | FullGrounder):
        return uncontradicted_query(tables, rule, every_variable=True)
    raise ConfigError(
        "backward grounding is not made from tables that Spark reads itself",
        hint="take known-body or full; backward reads the facts in this process, and asks Spark for its queries",
    )


def ground_select(tables: RemoteTables, query: RuleQuery) -> exp.Select:
    """A query as SQL, whose answer is the codes of the rule's atoms, in the order of the substitutions."""
    rule = query.rule
    select = query.compiled(lambda name: exp.Literal.number(tables.constant_id(name)), salted(tables, query))
    codes = [exp.alias_(_code(tables, select, atom), f"a{i}") for i, atom in enumerate(rule.atoms)]
    order = [select.columns[name].copy() for name in rule.variables]
    return select.select(codes).order_by(*order, copy=False)


def _code(tables: RemoteTables, select: ConjunctiveSelect, atom: Atom) -> Expression:
    """The code of an atom: the first one of its predicate, and the place of its constants among all tuples."""
    i = tables.predicate_index(atom.predicate)
    code: Expression = exp.Literal.number(0)
    for term, domain in zip(atom.terms, tables.theory.predicates[i].domains, strict=True):
        place = select.value(term)
        if not tables.constants.is_all(domain):
            k = tables.constants.index(domain)
            found = f"place {k} of {term.name} {isinstance(term, Constant)}"
            if found not in select.columns:
                select.join(AtomTable(f"place_{k}", ("a0", "place")), (term, Variable(found)))
            place = select.columns[found].copy()
        size = exp.Literal.number(tables.constants.size(domain))
        code = exp.Add(this=exp.Mul(this=exp.Paren(this=code), expression=size), expression=place)
    first = exp.Cast(this=exp.Literal.number(int(tables.offsets[i])), to=exp.DataType.build("bigint"))
    return exp.Add(this=first, expression=code)


def write_remote(
    tables: RemoteTables, grounder: Grounder, folder: Path, scratch: Path, progress: Progress = no_progress
) -> RemoteGrounding:
    """Ground all rules into `folder`, which appears when all is written; `scratch` lies beside it and is used up."""
    rules = tables.theory.rules
    parts = []
    for number, rule in enumerate(rules):
        progress("ground", number, len(rules))
        parts.append(
            _write_rule(tables, rule, rule_query(tables, grounder, rule), grounder, scratch / f"rule={number}")
        )
    digest = _content(tables).digest(tables.theory, grounder)
    write_manifest(scratch, digest, parts)
    for other in scratch.iterdir():
        if other.is_dir() and not other.name.startswith("rule="):
            shutil.rmtree(other)
    put_in_place(scratch, folder)
    return RemoteGrounding(tuple(parts), digest)


def _write_rule(tables: RemoteTables, rule: Rule, query: RuleQuery, grounder: Grounder, folder: Path) -> RuleParts:
    start, limit, estimate = perf_counter(), _limit(grounder), query.estimate()
    select = ground_select(tables, query)
    if estimate > limit // COUNT_FIRST:
        counted = exp.select(exp.alias_(exp.Count(this=exp.Star()), "n")).from_(select.copy().subquery("found"))
        check_budget(rule, int(tables.engine.run(counted)["n"][0]), limit, exact=True)
    tables.engine.write(spark_sql(select), folder)
    files = parts_of(folder)
    found = sum(pq.read_metadata(folder / name).num_rows for name, _ in files)
    check_budget(rule, found, limit, exact=True)
    return RuleParts(rule.name, folder.name, files, found, estimate, perf_counter() - start)


def _limit(grounder: Grounder) -> int:
    grounder = grounder.grounder if isinstance(grounder, KeptGrounder) else grounder
    return grounder.max_groundings if isinstance(grounder, KnownBodyGrounder | FullGrounder) else 0


def _content(tables: RemoteTables) -> Content:
    """What the tables hold, tallied by Spark."""
    name = "CAST(conv(substr(md5(name), 1, 15), 16, 10) AS BIGINT)"
    domains = [_tally(tables, f"domain_{k}", "xxhash64(a0)") for k in range(len(tables.constants.domains))]
    known: dict[tuple[int, bool], Tally] = {}
    for arity in sorted({tables.theory.predicates[p].arity for p, _ in tables.known}):
        known |= _tallies(tables, arity)
    return Content(_tally(tables, "constants", name), domains, known)


def _tallies(tables: RemoteTables, arity: int) -> dict[tuple[int, bool], Tally]:
    """Of the training facts of one arity: for each predicate and truth, in one job."""
    columns = ", ".join(f"a{i}" for i in range(arity))
    found = tables.engine.ask(
        f"SELECT p, truth, count(*) AS n, bit_xor(xxhash64({columns})) AS x FROM facts_{arity}"
        f" WHERE split = {quoted(TRAIN)} GROUP BY p, truth"
    )
    rows = zip(*(found[name].tolist() for name in ("p", "truth", "n", "x")), strict=True)
    return {(p, truth): (n, x) for p, truth, n, x in rows}


def _tally(tables: RemoteTables, view: str, hashed: str) -> Tally:
    found = tables.engine.ask(f"SELECT count(*) AS n, coalesce(bit_xor({hashed}), 0L) AS x FROM {view}")
    return int(found["n"][0]), int(found["x"][0])


def in_scratch(folder: Path, work: Callable[[Path], RemoteGrounding]) -> RemoteGrounding:
    """Do some work in a folder beside another, which is gone in the end, whatever happens."""
    with ExitStack() as stack:
        try:
            if folder.exists() and any(folder.iterdir()) and not (folder / MANIFEST).exists():
                what = f"{folder} holds something that is no grounding"
                raise CheckpointError(what, hint="give another --out folder")
            folder.parent.mkdir(parents=True, exist_ok=True)
            scratch = stack.enter_context(scratch_folder(folder))
        except OSError as error:
            what = f"the grounding cannot be written to {str(folder)!r}: {error.strerror or error}"
            raise ConfigError(what, hint="give another --out") from error
        return work(scratch)
