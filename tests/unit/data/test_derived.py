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
from tests.examples import fixture

GroundAtom = tuple[str, ...]
SELECTS = fixture("definitions.toml")
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


@pytest.mark.parametrize(("sql", "message"), SELECTS["wrong"])
def test_what_cannot_be_derived_says_why(sql: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        derived({"linked": sql}, BIBS)


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
    found = sorted(error.what for error in problem.report.rejected)
    assert found == [f"{name} takes 2 constants, but here it has 1" for name in ("author", "equal", "same")]
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


@pytest.mark.parametrize("sql", SELECTS["allowed"])
def test_facts_and_functions_of_them_may_be_read(sql: str) -> None:
    assert forbidden_in(sql.replace("{OF_X}", OF_X), ["plain"]) is None


@pytest.mark.parametrize(("sql", "what"), SELECTS["reads"])
def test_what_is_read_besides(sql: str, what: str) -> None:
    assert forbidden_in(sql.replace("{OF_X}", OF_X), ["plain"]) == f"it reads {what}"


@pytest.mark.parametrize("sql", [*SELECTS["ordered"], *SELECTS["same"]])
def test_the_order_of_the_facts_changes_nothing(sql: str) -> None:
    atoms = [("plain", f"a{i % 7}", f"b{i % 5}") for i in range(35)]

    def found(given: list[GroundAtom]) -> object:
        try:
            return derived({"linked": sql}, given)
        except ConfigError as error:
            return str(error)

    assert found(atoms) == found(atoms[::-1]) == found(atoms[17:] + atoms[:17])
