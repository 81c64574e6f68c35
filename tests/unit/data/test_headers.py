"""The first row of a TSV or CSV table: the names of its columns, a fact, or ambiguous."""

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from r2n.data.features import FeatureTable
from r2n.data.problem import Problem, load_problem
from r2n.data.tables import Table, read_facts
from r2n.errors import DataError
from r2n.logic.parser import parse_theory
from tests.examples import fixture

CASES = fixture("headers.toml")
THEORY = "domain office, city\npredicate located_in(office, city)\n"
OPEN = "rule r: located_in(x, y) -> located_in(y, x)\n"
ROWS = "north,rome\nsouth,milan\neast,rome\nwest,milan\n"


def facts_of(path: Path, text: str | bytes, predicate: str | None = "located_in", theory: str = THEORY) -> int:
    """How many facts are read."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    table, known = Table(path, predicate), parse_theory(theory)
    return sum(map(len, read_facts(table, theory=known).facts))


def problem_of(folder: Path, files: dict[str, str], facts: str, queries: str = "", theory: str = THEORY) -> Path:
    folder.mkdir(exist_ok=True)
    text = f'theory = "theory.r2n"\n[facts]\ntrain = {facts}\n' + (f"[queries]\ntest = {queries}\n" if queries else "")
    for name, content in {**files, "theory.r2n": theory, "problem.toml": text}.items():
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize(("name", "text", "predicate"), CASES["with_header"])
def test_a_header_is_no_fact(name: str, text: str, predicate: str, tmp_path: Path) -> None:
    assert facts_of(tmp_path / name, text, predicate or None) == 4
    assert facts_of(tmp_path / f"{name}.gz", gzip.compress(text.encode()), predicate or None) == 4


@pytest.mark.parametrize(("text", "predicate"), CASES["without_header"])
def test_a_fact_is_no_header(text: str, predicate: str, tmp_path: Path) -> None:
    assert facts_of(tmp_path / "a.csv", text, predicate or None) == 4


def test_a_file_that_is_only_a_header_is_an_empty_table(tmp_path: Path) -> None:
    assert facts_of(tmp_path / "a.csv", "office,city\n") == 0
    assert facts_of(tmp_path / "a.csv", "source,relation,target", None) == 0
    assert facts_of(tmp_path / "a.csv", "office1,city1\n") == 1


def test_columns_keep_their_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("office,city,label\n" + ROWS.replace("\n", ",1\n"))
    (facts,) = read_facts(Table(tmp_path / "a.csv", "located_in"), theory=parse_theory(THEORY)).facts
    assert facts.names == ("office", "city")
    (tmp_path / "b.csv").write_text("source,relation,target\na,p,b\n")
    assert read_facts(Table(tmp_path / "b.csv")).facts[0].names == (), "which say nothing of a predicate"
    (tmp_path / "c.csv").write_text("a,p,b\n")
    assert read_facts(Table(tmp_path / "c.csv")).facts[0].names == ()


def test_a_header_that_comes_again_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("office,city\n" + ROWS + "office,city\nnorth,oslo\n")
    table = Table(tmp_path / "a.csv", "located_in", header=True)
    with pytest.raises(DataError, match=r"a\.csv:6: the names of the columns stand here again"):
        read_facts(table)


def test_what_was_taken_for_a_header_is_said(tmp_path: Path) -> None:
    files = {"offices.csv": "office,city\n" + ROWS, "asked.csv": "office,city\nnorth,milan\n"}
    tables = [f'{{ file = "{name}", predicate = "located_in" }}' for name in files]
    folder = problem_of(tmp_path / "p", files, *tables)
    problem = load_problem(folder)
    assert (len(problem.train), len(problem.test)) == (4, 1)
    assert set(problem.knowledge.language.constants) == {"north", "south", "east", "west", "rome", "milan"}
    assert problem.report.warnings == ()
    said, _ = problem.report.notes
    assert "offices.csv:1: 'office, city' was read as the names of the columns" in said
    assert "header = false" in said
    checked = CliRunner().invoke(app, ["check", str(folder)])
    assert "offices.csv:1: 'office, city' was read as" in " ".join(checked.stdout.split())
    refused = CliRunner().invoke(app, ["train", str(folder), "--set", "training.epochs=x"])  # said before it trains
    assert refused.exit_code == 2
    assert f"note: {said}" in refused.stderr
    assert json.loads(CliRunner().invoke(app, ["check", str(folder), "--json"]).stdout)["notes"] == list(
        problem.report.notes
    )


@pytest.mark.parametrize("value", ["true", "false"])
def test_the_problem_file_decides(value: str, tmp_path: Path) -> None:
    files = {"offices.csv": "office,city\n" + ROWS}
    folder = problem_of(tmp_path, files, f'{{ file = "offices.csv", predicate = "located_in", header = {value} }}')
    problem = load_problem(folder)
    assert len(problem.train) == (4 if value == "true" else 5)
    assert problem.report.notes == problem.report.warnings == ()


MORE = "".join(f"{office},{city}\n" for city in ("rome", "oslo", "bonn") for office in ("north", "south", "east"))


@pytest.mark.parametrize("first", ["branch,town", "office,town", "office,city", "atlantis,lemuria"])
def test_an_ambiguous_first_row_is_a_fact_and_a_warning(first: str, tmp_path: Path) -> None:
    """Without domains nothing tells `office,city` from a fact but that its constants occur nowhere else."""
    folder = problem_of(
        tmp_path, {"a.csv": f"{first}\n{MORE}"}, '{ file = "a.csv", predicate = "located_in" }', theory=OPEN
    )
    problem = load_problem(folder)
    assert len(problem.train) == 10
    (warning,) = problem.report.warnings
    assert "a.csv:1: " in warning
    assert f"'{first.replace(',', ', ')}' was read as a fact" in warning
    assert "header = true" in warning
    assert "header = false" in warning
    checked = CliRunner().invoke(app, ["check", str(folder)])
    assert f"warning: {warning}" in checked.stderr
    refused = CliRunner().invoke(app, ["train", str(folder), "--set", "training.epochs=x"])
    assert f"warning: {warning}" in refused.stderr


@pytest.mark.parametrize(("first", "rest"), CASES["alike"])
def test_a_first_row_like_the_others_is_not_ambiguous(first: str, rest: str, tmp_path: Path) -> None:
    theory = OPEN if "," in first else ""
    folder = problem_of(tmp_path, {"a.csv": f"{first}\n{rest}"}, '{ file = "a.csv", predicate = "p" }', theory=theory)
    assert load_problem(folder).report.warnings == ()


def test_all_tables_are_compared_with_a_first_row(tmp_path: Path) -> None:
    """In a table of one column, or of pairs that occur once, only other tables show that its first row is odd."""
    people = "".join(f"p{name}\n" for name in "abcdef")
    knows = "".join(f"p{x},p{y}\n" for x in "abcdef" for y in "abcdef" if x < y)
    specs = '[{ file = "a.csv", predicate = "smokes" }, { file = "b.csv", predicate = "knows" }]'
    files = {"a.csv": "who\n" + people, "b.csv": knows}
    assert len(load_problem(problem_of(tmp_path, files, specs, theory="")).report.warnings) == 1
    (tmp_path / "a.csv").write_text(people)
    assert load_problem(tmp_path).report.warnings == ()
    asked = {**files, "q.csv": "who\npa\n", "a.csv": "who\n" + people[3:]}
    folder = problem_of(tmp_path, asked, specs, '{ file = "q.csv", predicate = "drinks" }', theory="")
    assert len(load_problem(folder).report.warnings) == 2
    folder = problem_of(tmp_path, asked, specs, '{ file = "q.csv", predicate = "smokes" }', theory="")
    with pytest.raises(DataError, match="header = true in both tables"):
        load_problem(folder)


def test_constants_that_are_listed_or_described_are_not_ambiguous(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"branch,town\n{MORE}")
    tables = [Table(tmp_path / "a.csv", "located_in")]
    assert Problem.build("p", parse_theory(THEORY), tables).report.warnings
    offices = ["branch", "north", "south", "east"]
    assert not Problem.build("p", parse_theory(THEORY), tables, domains={"office": offices}).report.warnings
    described = {"city": dict.fromkeys(("town", "rome", "oslo", "bonn"), "a text")}
    assert not Problem.build("p", parse_theory(THEORY), tables, features=described).report.warnings
    described = {"city": FeatureTable({"nowhere": "a text"}, missing="learn")}  # of no constant
    (warning,) = Problem.build("p", parse_theory(THEORY), tables, features=described).report.warnings
    assert "its constants occur in no other row, which is usual for a header" in warning


@pytest.mark.parametrize(("text", "predicate"), CASES["after_domains"])
def test_constants_may_be_called_after_their_domain(text: str, predicate: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    theory = parse_theory(f"{THEORY}\ndomain item\npredicate good(item)\n")
    (facts,) = read_facts(Table(tmp_path / "a.csv", predicate), theory=theory).facts
    assert len(facts) == text.count("\n") - 1
