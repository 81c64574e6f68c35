"""Derived predicates: by SQL, by rules, by rules over themselves; and every way to get them wrong."""

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data import fact_database
from r2n.data.derived import Definitions, derive
from r2n.data.problem import Problem, load_problem
from r2n.data.tables import Facts, Table, read_facts
from r2n.errors import ConfigError, DataError
from r2n.logic.parser import parse_theory
from tests.examples import at_most
from tests.oracles.derived import GroundAtom, closure

BIBS = [("author", "b1", "ann"), ("author", "b2", "a. n."), ("author", "b3", "bob"), ("same", "b1", "b2")]
SQL = "SELECT x.c2, y.c2 FROM same s JOIN author x ON x.c1 = s.c1 JOIN author y ON y.c1 = s.c2"
RULE = "author(p, x) & same(p, q) & author(q, y) -> linked(x, y)"


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


@pytest.mark.parametrize("definition", [SQL, RULE, SQL + ";", [SQL, RULE], "  with t as (" + SQL + ") FROM t"])
def test_by_sql_or_by_rule_it_is_the_same(definition: str | list[str]) -> None:
    assert derived({"linked": definition}, BIBS) == {("linked", "ann", "a. n.")}


def test_nothing_is_defined_nothing_is_derived() -> None:
    assert derive({}, tables(BIBS)) == ([], [])
    assert derived({"linked": "author(p, x) & author(x, y) -> linked(x, y)"}, BIBS) == set()


def test_definitions_add_up_and_build_on_earlier_ones_and_on_themselves() -> None:
    atoms = [("step", "a", "b"), ("step", "b", "c"), ("step", "c", "d"), ("far", "z", "a")]
    definitions = {
        "far": ["step(x, y) -> far(x, y)", "far(x, y) & far(y, z) -> far(x, z)"],
        "round": "SELECT c1 FROM far WHERE c2 = 'd'",
    }
    found = derived(definitions, atoms)
    pairs = {("far", x, y) for x in "zabc" for y in "abcd" if x == "z" or x < y} - {("far", "z", "a")}
    assert found == pairs | {("round", x) for x in "zabc"}


def test_denied_facts_are_a_schema_of_their_own_and_denied_literals_are_what_is_no_fact() -> None:
    denied = [("same", "b1", "b3")]
    assert derived({"differ": "SELECT c1, c2 FROM denied.same"}, BIBS, denied) == {("differ", "b1", "b3")}
    rule = "author(p, x) & author(q, y) & !same(p, q) -> other(x, y), p != q"
    assert derived({"other": rule}, BIBS) == {
        ("other", x, y)
        for x, y in [("ann", "bob"), ("bob", "ann"), ("bob", "a. n."), ("a. n.", "bob"), ("a. n.", "ann")]
    }


def test_what_is_added_is_new_and_in_order() -> None:
    twice = "SELECT c2, c1 FROM p UNION ALL SELECT c1, c2 FROM p"
    (found,), _ = derive({"p": twice}, tables([("p", "b", "c"), ("p", "a", "b"), ("p", "a", "b")]))
    assert [column.to_pylist() for column in found.arguments] == [["b", "c"], ["a", "b"]]


def test_constants_and_quotes_in_rules_stay_text() -> None:
    atoms = [("likes", "it's", 'a "b"'), ("likes", "c", "d")]
    assert derived({"one": 'likes("it\'s", y) -> one(y)'}, atoms) == {("one", 'a "b"')}
    assert derived({"one": 'likes(x, y) -> one(x), x != "c"'}, atoms) == {("one", "it's")}


@pytest.mark.parametrize("name", ["incoming", "Incoming", "_", "____", "denied", "t0", "select", 'a "b"'])
def test_a_predicate_may_have_any_name(name: str) -> None:
    quoted = '"' + name.replace('"', '\\"') + '"'
    found = derived({"r": f"{quoted}(x, y) & !{quoted}(y, x) -> r(y, x)"}, [(name, "a", "b")], [(name, "b", "a")])
    assert found == {("r", "b", "a")}


@pytest.mark.parametrize("name", ["From", "from", "With", "Select", "SELECT"])
def test_a_rule_may_begin_with_a_word_of_sql(name: str) -> None:
    atoms = [(name, "a", "b"), ("p", "a", "b")]
    assert derived({"r": f"{name}(x, y) -> r(y, x)"}, atoms) == {("r", "b", "a")}
    assert derived({"r": f" {name} (x, y)\n& p(x, y) -> r(x, y)"}, atoms) == {("r", "a", "b")}
    with pytest.raises(ConfigError, match="its head is q, but it defines r"):
        derived({"r": f"{name}(x, y) -> q(y, x)"}, atoms)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT(c1) FROM p",
        "FROM (SELECT c1 FROM p)",
        "SELECT(c1) FROM p WHERE c1 <> 'x -> y'",
        "SELECT (list_transform([c1], x -> x))[1] FROM p",
    ],
)
def test_sql_with_brackets_and_arrows_stays_sql(query: str) -> None:
    assert derived({"r": query}, [("p", "a", "b")]) == {("r", "a")}


RULES = (
    "p(x, y) -> r(y, x)",
    "p(x, y) & q(y) -> r(x, x)",
    "r(x, y) & p(y, z) -> r(x, z)",
    "r(x, y) & r(y, z) -> r(x, z)",
    "q(x) & p(x, y) & !q(y) -> r(x, y)",
    "p(x, y) & p(z, y) -> r(x, z), x != z",
    'p(x, x) -> r(x, "a")',
    'q("b") & q(x) -> r(x, "b")',
)


@at_most(25, "each opens a database")
@given(st.lists(st.sampled_from(RULES), min_size=1, max_size=4, unique=True), st.integers(0, 10_000))
def test_rules_give_what_plain_loops_give(chosen: list[str], seed: int) -> None:
    dice = Random(seed)
    atoms = {("p", dice.choice("abcd"), dice.choice("abcd")) for _ in range(6)}
    atoms |= {("q", dice.choice("abcd")) for _ in range(2)}
    atoms |= {("r", dice.choice("abcd"), dice.choice("abcd")) for _ in range(dice.choice((0, 0, 2)))}
    rules = [parse_theory(f"rule r: {text}").rules[0] for text in chosen]
    assert derived({"r": chosen}, sorted(atoms)) | atoms == closure(rules, set(atoms))


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("SELECT c3 FROM same", r"p.toml \[derived\] linked: the database refuses it: Binder Error: .*c3"),
        ("SELECT * FROM sam", r"Table with name sam does not exist.*\n.*\n.*the tables are: author\(c1, c2\), same"),
        ("SELECT FROM WHERE", r"the database refuses it: Parser Error"),
        ("SELECT 1; SELECT 2", "it is not one SELECT"),
        ("WITH t AS (SELECT 1) INSERT INTO same SELECT 1, 2", "it is not one SELECT"),
        ("SELECT NULL, c1 FROM same", "column 1 has no value in 1 of 1 rows"),
        ("SELECT * FROM read_csv('/etc/passwd')", "it reads the function read_csv"),
        ("SELECT * FROM '/etc/passwd'", "the database refuses it: Catalog Error"),
        ("SELECT getenv('HOME'), c1 FROM same", "the database refuses it"),
        ("author(p, x) & -> linked(x)", r"it is no SELECT, and as a rule: unexpected '->'"),
        ("author(p, x) & same(p, q)", "it is neither a SELECT nor a rule"),
        ("author(p, x) -> other(x)", "its head is other, but it defines linked"),
        ("author(p, x) -> linked(x, y)", "the variable y stands in no undenied atom of the body"),
        ("auther(p, x) -> linked(x)", "there are no facts of 'auther'\n.*\n  did you mean 'author'?"),
        ("author(p, x, y) -> linked(x)", r"author\(p, x, y\) has 3 terms, but author takes 2"),
        ("author(p: bib, x) -> linked(x)", "p: bib has no meaning here"),
        ("author(p, x) & !linked(x) -> linked(x)", "linked is derived from its own denial"),
        ("author(p, x) -> linked(x)\nrule b: author(p, x) -> linked(p)", "a definition holds one rule"),
        (["author(p, x) -> linked(x)", SQL], "it gives 2 columns, but linked takes 1 constants"),
        ([], "there is no definition"),
        ("SELECT c1 FROM same LIMIT 1", "it depends on the order of the rows: LIMIT.*\n.*\n.*ORDER BY ALL"),
        ("SELECT any_value(c1) FROM same", "order of the rows: any_value.*\n.*\n.*min\\(x\\), max"),
        ("SELECT [c1] FROM same", "column 1 holds lists, no constants"),
        ("SELECT {'a': c1} FROM same", "column 1 holds structs, no constants"),
        ("SELECT c1, '' FROM same", "column 2 has no value in 1 of 1 rows"),
    ],
)
def test_what_cannot_be_derived_says_why(definition: str | list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        derived({"linked": definition}, BIBS)


ENDLESS = "WITH RECURSIVE t(a) AS (SELECT c1 FROM same UNION ALL SELECT {} FROM t) SELECT a FROM t"


def test_a_definition_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that only goes on, by the clock, and one that fills the memory, by that."""
    monkeypatch.setattr(fact_database, "MOST_SECONDS", 0.5)
    with pytest.raises(ConfigError) as caught:
        derived({"linked": ENDLESS.format("a")}, BIBS)
    assert str(caught.value).splitlines()[0] == "p.toml [derived] linked: it has not ended after 0.5 seconds"
    assert caught.value.hint == fact_database.ENDLESS
    monkeypatch.setattr(fact_database, "MOST_SECONDS", 60.0)
    monkeypatch.setattr(fact_database, "MOST_BYTES", 2**26)
    with pytest.raises(ConfigError, match=r"it needs more than 0\.1 GiB of memory") as caught:
        derived({"linked": ENDLESS.format("a || a")}, BIBS)
    assert caught.value.hint == fact_database.ENDLESS


def test_recursion_that_ends_is_no_reason_to_refuse() -> None:
    steps = [("same", f"b{i}", f"b{i + 1}") for i in range(50)]
    sql = "WITH RECURSIVE t(a) AS (SELECT 'b0' UNION SELECT c2 FROM same, t WHERE c1 = a) SELECT a FROM t"
    assert len(derived({"linked": sql}, steps)) == 51


def test_facts_that_do_not_agree_are_named() -> None:
    with pytest.raises(DataError, match=r"same\(b1, b2\) is stated both true and false"):
        derived({"linked": RULE}, BIBS, [("same", "b1", "b2")])
    declared = parse_theory("domain bib\npredicate same(bib, bib)").predicates
    with pytest.raises(
        DataError, match=r"takes 2 constants, but here it has 1(.|\n)*it is declared as same\(bib, bib\)"
    ):
        derive({"linked": RULE}, tables([("same", "b1"), *BIBS]), declared=declared)
    with pytest.raises(DataError, match="same takes 1 constants, but here it has 2"):
        derived({"linked": RULE}, [*BIBS, ("same", "b1")])
    with pytest.raises(ConfigError, match="'Same' and 'same' differ in case alone"):
        derived({"linked": RULE}, [*BIBS, ("Same", "b1")])


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
linked = "author(p, x) & same(p, q) & author(q, y) -> linked(x, y)"
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
    (path / "problem.toml").write_text(PROBLEM.replace("linked(x, y)", "linked(x)"))
    with pytest.raises(DataError, match="linked takes 2 constants, but here it has 1"):
        load_problem(path)
    (path / "problem.toml").write_text(PROBLEM.replace("linked", "joined"))
    with pytest.raises(DataError, match="unknown predicate 'joined'"):
        load_problem(path)


def test_queries_are_never_read(tmp_path: Path) -> None:
    test = pa.table({"a": ["b1"], "b": ["b2"]})
    theory = parse_theory("domain d = {b1, b2}\npredicate p(d, d)\npredicate q(d, d)")
    given = ("x", theory, [Table(test, "p")], {"test": [Table(test, "q")]})
    problem = Problem.build(*given, derived={"p": "p(y, x) -> p(x, y)"})
    assert problem.knowledge.base.names(problem.train.atoms) == ["p(b1, b2)", "p(b2, b1)"]
    with pytest.raises(ConfigError, match="there are no facts of 'q'"):
        Problem.build(*given, derived={"p": "q(y, x) -> p(x, y)"})


def test_a_definition_without_rows_still_has_so_many_columns() -> None:
    theory = parse_theory("domain d\npredicate linked(d, d)\n")
    known = [Table(pa.table({"a": ["x"], "b": ["y"]}), "same")]
    with pytest.raises(DataError, match="linked takes 2 constants, but here it has 1"):
        Problem.build("p", theory, [], background=known, derived={"linked": "SELECT c1 FROM same WHERE c1 = 'z'"})
