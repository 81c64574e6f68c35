"""What the SQL of a definition reads besides facts is found, however it is hidden."""

import duckdb
import pytest

from r2n.data.definition_sql import functions, order_read, other_read

OF_X = "lambda x:" if tuple(map(int, duckdb.__version__.split(".")[:2])) >= (1, 3) else "x ->"  # a function, in SQL


@pytest.mark.parametrize(
    "sql",
    [
        "select * from plain",
        "from Plain select c1",
        "select * from main.plain join denied.plain using (c1)",
        "with t as (select c1 from plain), u as (from t) select * from u",
        "with recursive t(a) as (select c1 from plain union select c2 from plain, t where a = c1) from t",
        f"select c1, count(*), row_number() over (order by c1), list_transform([c1], {OF_X} upper(x)) from plain",
        "select c1, case when c1 like 'a%' then c2 else nullif(c1, c2) end from plain where length(c1) > 1",
        "select i::varchar, u from range(3) r(i), unnest(['a']) n(u)",
        "select * from plain where c1 in (select c2 from plain) order by all limit 3",
        "select regexp_replace(c1, 'a', 'b'), split_part(c2, ' ', 1), date_part('year', c1::date) from plain",
        "select * from plane",  # a table that is nowhere is left to the database
    ],
)
def test_facts_and_functions_of_them(sql: str) -> None:
    assert other_read(sql, ["plain"]) is None


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
        ("insert into plain values (1)", "what cannot be looked into"),
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
    assert other_read(sql, ["plain"]) == what


def test_functions_are_those_of_the_database() -> None:
    found = functions()
    assert found["upper"]
    assert found["count"]
    assert not found["random"]
    assert "reflect" not in found


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
    found = order_read(sql)
    assert found is not None
    assert all(found)


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
    assert order_read(sql) is None
    duckdb.sql(f"create or replace temp table plain(c1 varchar, c2 varchar); {sql}")
