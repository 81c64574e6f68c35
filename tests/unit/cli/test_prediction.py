"""r2n predict, with facts as they are or changed."""

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from r2n.cli import app
from tests.command_line import invoke
from tests.toy_problem import TOWNS, valley_of, write_toy_problem

runner = CliRunner()


def test_answers_are_what_rules_reach_or_all_and_top_limits_them(run_folder: Path, tmp_path: Path) -> None:
    asked = ["predict", str(run_folder), "near(n1, ?)", "--all"]
    few = json.loads(invoke(*asked[:3], "--top", "99", "--json"))["answers"]
    assert 0 < len(few) < len(json.loads(invoke(*asked, "--json"))["answers"]) == 16
    assert all(item["reached"] for item in few)
    assert "--all asks the input layer" in runner.invoke(app, asked[:3]).stderr
    assert len(json.loads(invoke(*asked, "--top", "3", "--json"))["answers"]) == 3
    assert invoke(*asked).count("near(n1, ") == 16
    invoke(*asked, "--out", str(tmp_path / "all.csv"))
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 1 + 16
    queries = tmp_path / "queries.tsv"
    queries.write_text("n1\tnear\t?\n")
    invoke("predict", str(run_folder), "--queries", str(queries), "--all", "--out", str(tmp_path / "all.parquet"))
    assert pq.read_metadata(tmp_path / "all.parquet").num_rows == 16


@pytest.mark.parametrize(("ending", "is_file"), [("csv", True), ("tsv", False), ("parquet", True), ("parquet", False)])
def test_no_answers_are_a_table_with_its_columns(ending: str, is_file: bool, run_folder: Path, tmp_path: Path) -> None:
    queries, tables = tmp_path / "queries.tsv", []
    queries.write_text("n1\tnear\t?\n")
    asked = ["--queries", str(queries)] if is_file else ["near(n1, ?)"]
    for name, options in (("some", []), ("none", ["--unknown"])):
        out = tmp_path / f"{name}.{ending}"
        invoke("predict", str(run_folder), *asked, *options, "--out", str(out))
        tables.append(pd.read_parquet(out) if ending == "parquet" else pd.read_csv(out, sep=None, engine="python"))
    some, none = tables
    assert list(none.columns) == list(some.columns)
    assert list(none.columns[2:6]) == ["predicate", "town_1", "town_2", "probability"]
    assert (len(none), len(some) > 0) == (0, True)
    assert ending != "parquet" or none.dtypes.equals(some.dtypes)
    document = json.loads(invoke("predict", str(run_folder), *asked, "--unknown", "--json"))
    assert document["answers"] == []
    assert {"town_1", "town_2"} <= set(document["columns"])


def test_predict_with_other_facts(run_folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "more.tsv"
    table.write_text("new\tnear\tn1\nn1\tnear\tnew\n")
    given = ["--with", str(table), "--with", "near(n3, new)", "--without", "near(n1, n0)", "--without", "near(n0, n1)"]
    result = runner.invoke(app, ["predict", str(run_folder), "liesIn(new, ?)", *given, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["answers"][0]["atom"] == "liesIn(new, north)"
    assert "new constant: new" in result.stderr
    assert "this network does not read facts" in result.stderr
    quiet = runner.invoke(app, ["predict", str(run_folder), "liesIn(n5, ?)", "--json"])
    assert "new constant" not in quiet.stderr
    assert "does not read facts" not in quiet.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--constant", "town=n98"], "liesIn(n98, north) cannot be answered, nor can 1 other atom:"),
        (["--with", "near(n98, n0)", "--with", "near(n1)"], '--with "near(n1)": near takes 2 constants, but here it'),
        (["--without", "near(n1, s1)"], '--without "near(n1, s1)": near(n1, s1) is not among the facts'),
        (["--constant", "town="], "write --constant DOMAIN=NAME"),
    ],
)
def test_wrong_facts_at_predict_are_refused(arguments: list[str], message: str, run_folder: Path) -> None:
    output = invoke("predict", str(run_folder), "liesIn(n98, ?)", *arguments, code=2)
    assert message in " ".join(output.split())


def test_a_file_of_queries_becomes_a_file_of_answers(run_folder: Path, tmp_path: Path) -> None:
    queries, out = tmp_path / "queries.tsv", tmp_path / "answers.csv"
    queries.write_text("n5\tliesIn\t?\nn1\tnear\tn0\n")
    result = runner.invoke(app, ["predict", str(run_folder), "--queries", str(queries), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "3 answers in" in result.stderr
    lines = out.read_text().splitlines()
    assert lines[0].startswith("row,rank,predicate,argument_1,argument_2,probability,known")
    assert lines[1].startswith("1,1,liesIn,n5,north,0.")
    assert lines[3].startswith("2,1,near,n1,n0,1.0,1")
    shown = invoke("predict", str(run_folder), "--queries", str(queries), "--top", "1")
    assert "north" in shown
    assert "south" not in shown
    document = json.loads(invoke("predict", str(run_folder), "--queries", str(queries), "--json"))
    assert [row["argument_2"] for row in document["answers"]] == ["north", "south", "n0"]
    invoke("predict", str(run_folder), "liesIn(n5, ?)", "--out", str(tmp_path / "one.json"))
    assert len(json.loads((tmp_path / "one.json").read_text())) == 2


def test_what_was_taken_for_a_header_is_said(run_folder: Path, tmp_path: Path) -> None:
    queries, more = tmp_path / "queries.tsv", tmp_path / "more.csv"
    queries.write_text("head\trelation\ttail\nn5\tliesIn\tnorth\n")
    more.write_text("source,relation,target\nn2,near,s2\n")
    asked = ["predict", str(run_folder), "--queries", str(queries), "--with", str(more), "--with", "near(n3, s3)"]
    for out in ([], ["--out", str(tmp_path / "answers.csv")], ["--json"]):
        result = runner.invoke(app, [*asked, *out])
        assert result.exit_code == 0, result.output
        assert "queries.tsv:1: 'head, relation, tail' was read as the names of the columns; if" in result.stderr
        assert "more.csv:1: 'source, relation, target' was read as the names of the columns; if" in result.stderr
        assert "problem file" not in result.stderr
    queries.write_text("n5\tliesIn\tnorth\n")
    assert "names of the columns" not in runner.invoke(app, asked[:4]).stderr


def test_known_facts_can_be_hidden(run_folder: Path) -> None:
    result = runner.invoke(app, ["predict", str(run_folder), "liesIn(n1, ?)", "--unknown"])
    assert "liesIn(n1, north)" not in result.stdout
    assert "liesIn(n1, south)" in result.stdout
    assert "not shown: 1 atom known already" in result.stderr


def test_either_a_question_or_a_file_is_asked(run_folder: Path, tmp_path: Path) -> None:
    for wrong in ([], ["p(?)", "--queries", "q.tsv"]):
        assert "either a question or a file" in invoke("predict", str(run_folder), *wrong, code=2)
    out = tmp_path / "answers.doc"
    assert "let it end in .csv" in invoke("predict", str(run_folder), "liesIn(n5, ?)", "--out", str(out), code=2)


@pytest.mark.parametrize("label", ['label = "name"\n', ""])
def test_constants_are_shown_with_what_people_call_them(label: str, tmp_path: Path) -> None:
    folder, run = write_toy_problem(tmp_path / "towns", epochs=1), str(tmp_path / "run")
    rows = [f"{town},Town {town.upper()} [bold],by the {valley_of(town)} river\n" for town in TOWNS]
    (folder / "named.csv").write_text("".join(["id,name,about\n", *rows]))
    with (folder / "problem.toml").open("a") as file:
        file.write(f'[features.town]\ntable = "named.csv"\ntext = "about"\n{label}')
    invoke("train", str(folder), "--out", run, "--no-report", "--no-baseline")
    called = "Town N5 [bold]" if label else "by the north river"
    assert ("Town N5 [bold]" in invoke("predict", run, "liesIn(n5, ?)")) is bool(label), "texts are not for a table"
    shown = invoke("explain", run, "liesIn(n5, north)", "--html", str(tmp_path / "why.html"))
    assert f"n5: {called}" in shown
    assert "north:" not in shown, "it has none"
    labels = json.loads(invoke("explain", run, "liesIn(n5, north)", "--json"))["labels"]
    assert labels["n5"] == called
    assert called in (tmp_path / "why.html").read_text()


def test_a_label_is_a_column_of_a_table(tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns")
    (folder / "named.csv").write_text("id,name,about\n")
    with (folder / "problem.toml").open("a") as file:
        file.write('[features.town]\ntable = "named.csv"\ntext = "about"\nlabel = "nam"\n')
    refused = invoke("check", str(folder), code=2)
    assert "nam" in refused
    assert "did you mean 'name'" in refused
