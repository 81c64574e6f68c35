"""Derived predicates: what SQL gives, what a definition may not read, and every way to get it wrong."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from r2n.data import derived as module
from r2n.data.derived import Definitions, derive, forbidden_in
from r2n.data.problem import Problem, load_problem
from r2n.data.tables import Facts, Table, read_facts
from r2n.errors import ConfigError, DataError
from r2n.logic.parser import parse_theory

GroundAtom = tuple[str, ...]
BIBS = [("author", "b1", "ann"), ("author", "b2", "a. n."), ("author", "b3", "bob"), ("same", "b1", "b2")]
SQL = "SELECT x.c2, y.c2 FROM same s JOIN author x ON x.c1 = s.c1 JOIN author y ON y.c1 = s.c2"


def tables(atoms: list[GroundAtom], truth: bool = True) -> list[Facts]:
    found = []
    for name, arity in sorted({(atom[0], len(atom)) for atom in atoms}):
        rows = [atom for atom in atoms if atom[0] == name and len(atom) == arity]
        columns = {f"a{i}": [row[i] for row in rows] for i in range(1, arity)} | {"label": [int(truth)] * len(rows)}
        found += read_facts(Table(pa.table(columns), name)).facts
    return found


def derived(
    definitions: Definitions, atoms: list[GroundAtom], denied: list[GroundAtom] | None = None
) -> set[GroundAtom]:
    found, _ = derive(definitions, tables(atoms) + tables(denied or [], truth=False), source="p.toml")
    return {(f.predicate, *row) for f in found for row in zip(*(c.to_pylist() for c in f.arguments), strict=True)}


@pytest.mark.parametrize("sql", [SQL, SQL + ";", "  with t as (" + SQL + ") FROM t"])
def test_a_select_is_a_predicate(sql: str) -> None:
    assert derived({"linked": sql}, BIBS) == {("linked", "ann", "a. n.")}
    assert derived({"linked": f"FROM ({sql.rstrip(';')}) WHERE false"}, BIBS) == set()
    assert derive({}, tables(BIBS)) == ([], [])


def test_definitions_build_on_earlier_ones_and_on_facts_that_are_there() -> None:
    atoms = [("step", "a", "b"), ("step", "b", "c"), ("step", "c", "d"), ("far", "z", "a")]
    steps = "SELECT c1, c2 FROM step UNION FROM far"
    definitions = {
        "far": f"WITH RECURSIVE s AS ({steps}), t(x, y) AS (FROM s UNION SELECT x, c2 FROM t JOIN s ON c1 = y) FROM t",
        "round": "SELECT c1 FROM far WHERE c2 = 'd'",
    }
    pairs = {("far", x, y) for x in "zabc" for y in "abcd" if x == "z" or x < y} - {("far", "z", "a")}
    assert derived(definitions, atoms) == pairs | {("round", x) for x in "zabc"}


def test_what_is_added_is_new_and_in_order() -> None:
    twice = "SELECT c2, c1 FROM p UNION ALL SELECT c1, c2 FROM p"
    (found,), _ = derive({"p": twice}, tables([("p", "b", "c"), ("p", "a", "b"), ("p", "a", "b")]))
    assert [column.to_pylist() for column in found.arguments] == [["b", "c"], ["a", "b"]]


@pytest.mark.parametrize("name", ["incoming", "Incoming", "_", "____", "denied", "t0", "select", 'a "b"'])
def test_a_predicate_may_have_any_name_and_denied_facts_are_a_schema_of_their_own(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    sql = f"SELECT c2, c1 FROM {quoted} INTERSECT FROM denied.{quoted}"
    assert derived({"r": sql}, [(name, "a", "b")], [(name, "b", "a")]) == {("r", "b", "a")}


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("SELECT c3 FROM same", r"p.toml \[derived\] linked: the database refuses it: Binder Error: .*c3"),
        ("SELECT * FROM sam", r"Table with name sam does not exist.*\n.*\n.*the tables are: author\(c1, c2\), same"),
        ("SELECT FROM WHERE", r"the database refuses it: Parser Error"),
        ("SELECT 1; SELECT 2", "it is not one SELECT"),
        ("author(p, x) -> linked(p, x)", "the database refuses it: Parser Error"),
        ("", "it is not one SELECT"),
        ("WITH t AS (SELECT 1) INSERT INTO same SELECT 1, 2", "it is not one SELECT"),
        ("SELECT NULL, c1 FROM same", "column 1 has no value in 1 of 1 rows"),
        ("SELECT * FROM read_csv('/etc/passwd')", "it reads the function read_csv"),
        ("SELECT * FROM '/etc/passwd'", "the database refuses it: Catalog Error"),
        ("SELECT getenv('HOME'), c1 FROM same", "the database refuses it"),
        ("SELECT c1 FROM same LIMIT 1", "it depends on the order of the rows: LIMIT.*\n.*\n.*ORDER BY ALL"),
        ("SELECT any_value(c1) FROM same", "order of the rows: any_value.*\n.*\n.*min\\(x\\), max"),
        ("SELECT [c1] FROM same", "column 1 holds lists, no constants"),
        ("SELECT {'a': c1} FROM same", "column 1 holds structs, no constants"),
        ("SELECT c1, '' FROM same", "column 2 has no value in 1 of 1 rows"),
    ],
)
def test_what_cannot_be_derived_says_why(definition: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        derived({"linked": definition}, BIBS)


ENDLESS = "WITH RECURSIVE t(a) AS (SELECT c1 FROM same UNION ALL SELECT {} FROM t) SELECT a FROM t"


def test_a_definition_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that only goes on, by the clock, and one that fills the memory, by that."""
    monkeypatch.setattr(module, "MOST_SECONDS", 0.5)
    with pytest.raises(ConfigError) as caught:
        derived({"linked": ENDLESS.format("a")}, BIBS)
    assert str(caught.value).splitlines()[0] == "p.toml [derived] linked: it has not ended after 0.5 seconds"
    assert caught.value.hint == module.ENDLESS
    monkeypatch.setattr(module, "MOST_SECONDS", 60.0)
    monkeypatch.setattr(module, "MOST_BYTES", 2**26)
    with pytest.raises(ConfigError, match=r"it needs more than 0\.1 GiB of memory") as caught:
        derived({"linked": ENDLESS.format("a || a")}, BIBS)
    assert caught.value.hint == module.ENDLESS


def test_recursion_that_ends_is_no_reason_to_refuse() -> None:
    steps = [("same", f"b{i}", f"b{i + 1}") for i in range(50)]
    sql = "WITH RECURSIVE t(a) AS (SELECT 'b0' UNION SELECT c2 FROM same, t WHERE c1 = a) SELECT a FROM t"
    assert len(derived({"linked": sql}, steps)) == 51


def test_facts_that_do_not_agree_are_named() -> None:
    with pytest.raises(DataError, match=r"same\(b1, b2\) is stated both true and false"):
        derived({"linked": SQL}, BIBS, [("same", "b1", "b2")])
    declared = parse_theory("domain bib\npredicate same(bib, bib)").predicates
    with pytest.raises(
        DataError, match=r"takes 2 constants, but here it has 1(.|\n)*it is declared as same\(bib, bib\)"
    ):
        derive({"linked": SQL}, tables([("same", "b1"), *BIBS]), declared=declared)
    with pytest.raises(DataError, match="same takes 1 constants, but here it has 2"):
        derived({"linked": SQL}, [*BIBS, ("same", "b1")])
    with pytest.raises(ConfigError, match="'Same' and 'same' differ in case alone"):
        derived({"linked": SQL}, [*BIBS, ("Same", "b1")])


def test_facts_of_wrong_arity_are_left_out_when_asked_and_told_once(tmp_path: Path) -> None:
    path = folder(tmp_path, "author(b1, ann). author(b2, al). same(b1, b2).\nsame(b1). author(b3).")
    (path / "more.pl").write_text("equal(ann). equal(ann, al).")
    text = (path / "problem.toml").read_text()
    (path / "problem.toml").write_text(text.replace('{ file = "labels.tsv" }', '["more.pl", "labels.tsv"]'))
    with pytest.raises(DataError, match="equal takes 2 constants, but here it has 1"):
        load_problem(path)
    problem = load_problem(path, on_error="skip")
    names = problem.knowledge.base.names(problem.train.atoms)
    assert sorted(names) == ["equal(ann, al)", "equal(ann, ann)", "linked(ann, al)"]
    told = sorted(error.what for error in problem.report.rejected)
    assert told == [f"{name} takes 2 constants, but here it has 1" for name in ("author", "equal", "same")]
    assert sorted(error.where.line or 0 for error in problem.report.rejected if error.where) == [1, 2, 2]


PROBLEM = """
theory = "theory.r2n"
[facts]
train = { file = "labels.tsv" }
background = "bibs.pl"
[derived]
linked = "SELECT x.c2, y.c2 FROM same s JOIN author x ON x.c1 = s.c1 JOIN author y ON y.c1 = s.c2"
"""


def folder(tmp_path: Path, bibs: str = "author(b1, ann). author(b2, al). same(b1, b2).") -> Path:
    (tmp_path / "theory.r2n").write_text(
        "domain person = {ann, al}\npredicate equal(person, person)\npredicate linked(person, person) closed\n"
        "rule r: linked(x, y) -> equal(x, y)"
    )
    (tmp_path / "labels.tsv").write_text("ann\tequal\tann\n")
    (tmp_path / "bibs.pl").write_text(bibs)
    (tmp_path / "problem.toml").write_text(PROBLEM)
    return tmp_path


def test_in_a_problem_file_the_background_is_no_evidence(tmp_path: Path) -> None:
    problem = load_problem(folder(tmp_path))
    assert problem.knowledge.base.names(problem.train.atoms) == ["equal(ann, ann)", "linked(ann, al)"]
    assert [p.name for p in problem.knowledge.language.predicates] == ["equal", "linked"]


def test_a_derived_constant_outside_its_domain_is_named_with_its_definition(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="constant 'eve' is outside domain 'person'") as caught:
        load_problem(folder(tmp_path, "author(b1, ann). author(b2, eve). same(b1, b2)."))
    assert "[derived] linked" in str(caught.value)
    assert "problem.toml" in str(caught.value)


def test_a_derived_predicate_must_fit_its_declaration(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "problem.toml").write_text(PROBLEM.replace("x.c2, y.c2", "x.c2"))
    with pytest.raises(DataError, match="linked takes 2 constants, but here it has 1"):
        load_problem(path)
    (path / "problem.toml").write_text(PROBLEM.replace("linked", "joined"))
    with pytest.raises(DataError, match="unknown predicate 'joined'"):
        load_problem(path)


def test_queries_are_never_read(tmp_path: Path) -> None:
    test = pa.table({"a": ["b1"], "b": ["b2"]})
    theory = parse_theory("domain d = {b1, b2}\npredicate p(d, d)\npredicate q(d, d)")
    given = ("x", theory, [Table(test, "p")], {"test": [Table(test, "q")]})
    problem = Problem.build(*given, derived={"p": "SELECT c2, c1 FROM p"})
    assert problem.knowledge.base.names(problem.train.atoms) == ["p(b1, b2)", "p(b2, b1)"]
    with pytest.raises(ConfigError, match="Table with name q does not exist"):
        Problem.build(*given, derived={"p": "FROM q"})


def test_a_definition_without_rows_still_has_so_many_columns() -> None:
    theory = parse_theory("domain d\npredicate linked(d, d)\n")
    known = [Table(pa.table({"a": ["x"], "b": ["y"]}), "same")]
    with pytest.raises(DataError, match="linked takes 2 constants, but here it has 1"):
        Problem.build("p", theory, [], background=known, derived={"linked": "SELECT c1 FROM same WHERE c1 = 'z'"})


OF_X = "lambda x:" if tuple(map(int, duckdb.__version__.split(".")[:2])) >= (1, 3) else "x ->"  # a function, in SQL


@pytest.mark.parametrize(
    "sql",
    [
        "select * from plain",
        "from Plain select c1",
        "select * from main.plain join denied.plain using (c1)",
        "with t as (select c1 from plain), u as (from t) select * from u",
        "with recursive t(a) as (select c1 from plain union select c2 from plain, t where a = c1) from t",
        f"select c1, count(*), rank() over (order by c1), list_transform([c1], {OF_X} upper(x)) from plain",
        "select c1, case when c1 like 'a%' then c2 else nullif(c1, c2) end from plain where length(c1) > 1",
        "select i::varchar, u from range(3) r(i), unnest(['a']) n(u)",
        "select * from plain where c1 in (select c2 from plain) order by all limit 3",
        "select regexp_replace(c1, 'a', 'b'), split_part(c2, ' ', 1), date_part('year', c1::date) from plain",
        "select * from plane",  # a table that is nowhere is left to the database
    ],
)
def test_facts_and_functions_of_them_may_be_read(sql: str) -> None:
    assert forbidden_in(sql, ["plain"]) is None


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("select name, value from duckdb_settings()", "the function duckdb_settings"),
        ("select sql, sql from sqlite_master", "the table sqlite_master"),
        ("select c1, (select max(setting) from pg_settings) from plain", "the table pg_settings"),
        ("select * from information_schema.tables", "the table information_schema.tables"),
        ("select * from other.main.plain", "the table other.main.plain"),
        ("select c1, current_setting('temp_directory') from plain", "the function current_setting"),
        ("select upper(CURRENT_SETTING('temp_directory'))", "the function current_setting"),
        (f"select list_transform([1], {OF_X} random())", "the function random"),
        ("select version()", "the function version"),
        ("select uuid() from plain", "the function uuid"),
        ("select * from plain tablesample 10%", "a sample"),
        ("select now()", "the function now"),
        ("select current_date", "current_date"),
        ("select current_timestamp", "current_timestamp"),
        ("select c1, user from plain", "user"),
        ("select pg_conf_load_time()", "the function pg_conf_load_time"),
        ("select * from plain using sample 1", "a sample"),
        ("select * from query('select 1')", "the function query"),
        ("select * from query_table('plain')", "the function query_table"),
        ("select * from json_execute_serialized_sql('x')", "the function json_execute_serialized_sql"),
        ("select * from (show tables)", "the catalog"),
        ("select * from (describe plain)", "the catalog"),
        # a name that WITH gives is seen by what stands behind it, and inside
        ("with a as (from pg_settings), pg_settings as (select 1) from a", "the table pg_settings"),
        ("with pg_settings as (select name from pg_settings) from pg_settings", "the table pg_settings"),
        ("select * from (with pg_settings as (select 1) from pg_settings), pg_settings", "the table pg_settings"),
    ],
)
def test_what_is_read_besides(sql: str, what: str) -> None:
    assert (forbidden_in(sql, ["plain"]) or "")[0] == f"it reads {what}"


@pytest.mark.parametrize(
    "sql",
    [
        "select c1 from plain limit 3",
        "select c1 from plain offset 1",
        "from plain limit 10%",
        "select * from plain order by c1 limit 3",  # of rows with one c1, which?
        "select * from (from plain order by all) limit 3",
        "select c1 from plain where c2 = (select c1 from plain limit 1)",
        "select c1 from plain union select c2 from plain order by c1 limit 1",
        "select distinct on (c1) c1, c2 from plain order by c1",
        "select first(c1) from plain",
        "select any_value(c1) from plain group by c2",
        "select list(c1)::varchar from plain",
        "select array_agg(distinct c1)[1] from plain",
        "select string_agg(c1, ',' order by c2) from plain",
        "select max_by(c1, c2) from plain",
        "select mode(c1) from plain",
        "select approx_quantile(length(c1), 0.5) from plain",
        "select row_number() over (partition by c1) from plain",
        "select c1 from plain qualify row_number() over (partition by c2 order by c2) = 1",
        "select first_value(c1) over (order by c2) from plain",
        "select lag(c1) over w from plain window w as (order by c1)",
        "select sum(1) over (rows between 1 preceding and current row) from plain",
        "select rowid from plain",
        "select plain.rowid from plain",
        "select * from plain positional join plain p",
        "with t as (select c1 from plain limit 3) from t",
        "from plain select c1.first()",
    ],
)
def test_what_depends_on_the_order_of_rows(sql: str) -> None:
    what, hint = forbidden_in(sql, ["plain"]) or ("", "")
    assert what.startswith("it depends on the order of the rows")
    assert hint


@pytest.mark.parametrize(
    "sql",
    [
        "from plain order by all limit 3",
        "select c1 from (select count(*) as n, c1 from plain group by c1 order by all desc limit 3)",
        "select c1 from plain union select c2 from plain order by all limit 1",
        "select distinct on (c1) c1, c2 from plain order by all",
        "select distinct c1 from plain order by c1",
        "select min(c1), max(c2), count(distinct c1) from plain",
        "select c1, rank() over (partition by c1 order by c2) as n, n + 1 from plain qualify n = 1",
        "select sum(1) over (partition by c1) from plain",
        "select c1 as first from plain",
    ],
)
def test_what_is_the_same_in_any_order(sql: str) -> None:
    assert forbidden_in(sql, ["plain"]) is None
    duckdb.sql(f"create or replace temp table plain(c1 varchar, c2 varchar); {sql}")
