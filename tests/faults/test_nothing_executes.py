"""Nothing executes from data: names are data in every reader, engine and definition, and SQL reaches facts alone."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import r2n
from r2n.data.problem import Problem
from r2n.data.tables import Table, read_facts
from r2n.datasets.benchmarks import GITHUB
from r2n.errors import R2NError
from r2n.grounding import store
from r2n.grounding.full import KnownBodyGrounder
from r2n.grounding.store import DuckDBEngine, Store
from tests.oracles.fact_writers import WRITERS

SOURCE = Path(__file__).parents[2] / "src" / "r2n"
NAMES = (
    *('x"; drop table facts; --', "x'; drop table facts; --", "'); attach 'x.db'; --", "a`b", "$(touch x)", "{{7*7}}"),
    *("%s", "..", "/etc/passwd"),
)


def test_no_source_unpickles_or_evaluates() -> None:
    forbidden = {"eval", "exec", "pickle", "cPickle", "dill", "joblib", "marshal", "shelve", "__import__"}
    words = re.compile(r"(?<!\.)\b(eval|exec|__import__)\b|pickle|dill|joblib|marshal|shelve|torch\.load|os\.system")
    sources = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    for path in [path for path, source in sources.items() if words.search(source)]:
        for node in ast.walk(ast.parse(sources[path])):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name):
                assert called.id not in forbidden, path
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                assert (called.value.id, called.attr) not in {("torch", "load"), ("os", "system")}, path
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            assert not forbidden.intersection([*names, getattr(node, "module", "") or ""]), path


@pytest.mark.parametrize("ending", WRITERS)
def test_names_are_data_to_every_reader(ending: str, tmp_path: Path) -> None:
    rows = [(name, NAMES[-1 - i], name) for i, name in enumerate(NAMES)]
    path = tmp_path / f"facts{ending}"
    WRITERS[ending](path, rows)
    found = [
        (head, facts.predicate, tail)
        for facts in read_facts(Table(path)).facts
        for head, tail in zip(*(column.to_pylist() for column in facts.arguments), strict=True)
    ]
    assert sorted(found) == sorted(rows)


def tables(name: str) -> list[Table]:
    return [
        Table(pa.table({"a": ["a", name], "b": [name, "a"]}), name),
        Table(pa.table({"a": ["a", name], "b": [name, name]}), "plain"),
    ]


def theory(name: str) -> r2n.Theory:
    quoted = json.dumps(name)
    return r2n.parse_theory(
        f"domain d\npredicate {quoted}(d, d)\npredicate plain(d, d)\npredicate found(d, d)\n"
        f"rule r: {quoted}(x, y) & plain(y, {quoted}) -> {quoted}(y, x)\n"
    )


@pytest.mark.parametrize("name", NAMES)
def test_names_are_data_to_memory_engine_and_definitions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = 'select c1, c2 from "{}"'.format(name.replace('"', '""'))
    knowledge = Problem.build("p", theory(name), tables(name), derived={"found": sql}).knowledge
    assert len(knowledge.facts(knowledge.language.predicate("found"))) > 0
    knowledge, ground = Problem.build("p", theory(name), tables(name)).knowledge, KnownBodyGrounder().ground
    in_memory = ground(Store(knowledge))
    monkeypatch.setattr(store, "MOST_ROWS", 0)
    by_engine = ground(Store(knowledge, DuckDBEngine()))
    assert len(in_memory) > 0
    for ours, theirs in zip(in_memory.ground_rules, by_engine.ground_rules, strict=True):
        np.testing.assert_array_equal(ours.atoms, theirs.atoms)
    engine = DuckDBEngine()
    for table in ("facts", name):
        engine.load(table, {"a": np.arange(3)})
    (found,) = engine._connection.execute("SELECT list(table_name) FROM duckdb_tables()").fetchone()  # pyright: ignore
    assert sorted(found) == sorted(["facts", name])


SQL = """
select * from read_csv('/etc/passwd')
select * from read_blob('/etc/passwd')
select * from glob('/etc/*')
select * from '/etc/passwd'
select * from read_parquet('https://example.org/x.parquet')
select * from sqlite_scan('x.db', 't')
select getenv('HOME'), 'x'
copy plain to '/tmp/r2n-must-not-be-there.csv'
attach 'x.db'
install httpfs
set enable_external_access = true
select 1; set enable_external_access = true
pragma enable_external_access = true
drop table plain
with t as (select 1) insert into plain select 'a', 'b'
export database '/tmp/r2n-must-not-be-there'
select * from query('attach ''x.db''')
select * from sql
select current_setting('secret_directory'), 'x'
select * from json_execute_serialized_sql(json_serialize_sql('select 1, 2'))
"""


@pytest.mark.parametrize("sql", SQL.strip().splitlines())
def test_sql_of_a_definition_reaches_facts_alone(sql: str) -> None:
    with pytest.raises(R2NError):
        Problem.build("p", theory("p"), tables("p"), derived={"found": sql})
    assert not list(Path("/tmp").glob("r2n-must-not-be-there*"))


def test_downloads_are_encrypted() -> None:
    assert GITHUB.startswith("https://")
