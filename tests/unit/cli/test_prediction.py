"""r2n predict, explain, rules, infer.

Where `explain` is tried, the engine is stood in for: `explained` replaces `Model.explain`, so that all kinds of
explanations are seen here. What the engine itself says is tested with it.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from r2n.cli import app
from r2n.cli.prediction import print_rules
from r2n.explanation.drawing import explanation_svg
from r2n.explanation.records import Explanation
from r2n.explanation.rules import LearnedClause, Occurrence, RuleAccount, RuleEffect, RuleReport
from r2n.logic.parser import parse_theory
from r2n.model.model import Model
from tests.command_line import invoke
from tests.explanations import italy
from tests.false_rule_problem import write_false_rule_problem
from tests.html_pages import read_page
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


@pytest.fixture(scope="module")
def toy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_problem(tmp_path_factory.mktemp("infer") / "towns")


def test_the_test_queries_by_default(toy_folder: Path) -> None:
    result = runner.invoke(app, ["infer", str(toy_folder), "--json", "--iterations", "20", "--top", "4"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["method"], document["iterations"]) == ("sum-product", 20)
    assert [sorted(item) for item in document["answers"]] == [["atom", "known", "label", "probability", "reached"]] * 4
    assert document["metrics"]["ap"] == 1.0
    assert {item["label"] for item in document["answers"]} == {True, False}
    assert all(0 <= item["probability"] <= 1 for item in document["answers"])


def test_a_problem_without_queries_wants_a_question(tmp_path: Path) -> None:
    (tmp_path / "theory.r2n").write_text("domain d = {a}\npredicate p(d)\nrule r: p(x)\n")
    (tmp_path / "problem.toml").write_text('theory = "theory.r2n"\n')
    result = runner.invoke(app, ["infer", str(tmp_path)])
    assert result.exit_code == 2
    assert "no queries 'test'" in result.stderr
    assert "Traceback" not in result.stderr
    asked = runner.invoke(app, ["infer", str(tmp_path), "p(?)", "--json"])
    assert json.loads(asked.stdout)["answers"] == [{"atom": "p(a)", "probability": 1.0, "reached": True, "known": None}]


def test_queries_that_are_all_true_have_no_metrics(toy_folder: Path, tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns")
    (folder / "test.tsv").write_text("n5\tliesIn\tnorth\n")
    result = runner.invoke(app, ["infer", str(folder), "--json"])
    assert json.loads(result.stdout)["metrics"] is None
    assert "the queries 'test' are all true" in result.stderr


def test_rules_that_no_world_satisfies_are_named(tmp_path: Path) -> None:
    rules = "rule yes: p(x) -> q(x)\nrule no: p(x) -> !q(x)\nrule all: p(x)\nrule other: s(x) -> q(x)\n"
    declared = "domain d = {a}\npredicate p(d)\npredicate q(d)\npredicate s(d)\n"
    (tmp_path / "theory.r2n").write_text(declared + rules)
    (tmp_path / "problem.toml").write_text('theory = "theory.r2n"\n')
    result = runner.invoke(app, ["infer", str(tmp_path), "p(?)"])
    assert result.exit_code == 0
    said = result.stderr
    assert "warning: no world satisfies these rules, which hold strictly, and what is known:" in said
    assert [line for line in rules.splitlines() if line in said] == rules.splitlines()[:3]
    assert json.loads(invoke("infer", str(tmp_path), "p(?)", "--json"))["no_world"] == [
        "rule yes: p(x) -> q(x)",
        "rule no: p(x) -> !q(x)",
        "rule all: p(x)",
    ]
    (tmp_path / "theory.r2n").write_text(declared + rules.replace("rule no", "rule no [2.0]"))
    weighted = runner.invoke(app, ["infer", str(tmp_path), "p(?)", "--json"])
    assert json.loads(weighted.stdout)["no_world"] is None
    assert "no world" not in weighted.stderr


def test_more_iterations_than_anybody_waits_for(toy_folder: Path) -> None:
    asked = ["infer", str(toy_folder), "--json", "--iterations"]
    refused = runner.invoke(app, [*asked, str(10**30)])
    assert refused.exit_code == 2, refused.output
    assert runner.invoke(app, [*asked, "-1"]).exit_code == 2


@pytest.fixture(scope="module")
def rules_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    write_false_rule_problem(folder / "towns", towns=48, epochs=20)
    invoke("train", str(folder / "towns"), "--out", str(folder / "run"), "--no-report", "--no-baseline")
    return folder / "run"


def test_one_json_document(rules_run: Path) -> None:
    document = json.loads(invoke("rules", str(rules_run), "--json", "--split", "test"))
    assert document["split"] == "test"
    rules = {rule["name"]: rule for rule in document["rules"]}
    assert set(rules) == {"neighbours", "pen pals"}
    rule = rules["neighbours"]
    assert rule["metric"] == document["value"]
    assert rule["alone"] == rules["pen pals"]["without"]
    assert rule["ground_rules"] > 0


def test_the_rules_that_help_are_exported_as_a_theory_that_is_accepted(rules_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "helpful.r2n"
    invoke("rules", str(rules_run), "--export", str(out))
    problem = write_false_rule_problem(tmp_path / "again", towns=48)
    (problem / "theory.r2n").write_text(out.read_text())
    assert "rule neighbours" in invoke("check", str(problem))


def test_bad_input_has_a_clear_answer(rules_run: Path, tmp_path: Path) -> None:
    assert "no queries 'dev'" in invoke("rules", str(rules_run), "--split", "dev", code=2)
    assert "does not end in .r2n" in invoke("rules", str(rules_run), "--export", "theory.txt", code=2)
    assert "error:" in invoke("rules", str(tmp_path / "nowhere"), code=2)
    assert "--most" in invoke("rules", str(rules_run), "--most", "0", code=2)


def test_a_run_that_reads_no_rules(tmp_path: Path) -> None:
    write_toy_problem(tmp_path / "towns", epochs=1)
    options = ["--no-report", "--no-baseline", "--set", "model.reasoner=none"]
    invoke("train", str(tmp_path / "towns"), "--out", str(tmp_path / "run"), *options)
    result = runner.invoke(app, ["rules", str(tmp_path / "run")])
    assert result.exit_code == 0
    assert "the network reads no rules" in result.output
    document = json.loads(invoke("rules", str(tmp_path / "run"), "--json"))
    assert document["rules"][0]["effect"] is None
    assert "nothing to export" in invoke("rules", str(tmp_path / "run"), "--export", str(tmp_path / "t.r2n"), code=2)


def test_clauses_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    rule = parse_theory('domain d\npredicate p(d)\npredicate "q[red]"(d)\nrule one: p(x) -> "q[red]"(x)').rules[0]
    effect, clause = RuleEffect(1.0, 0.1, 3, 0.9, 0.8, 0.2), LearnedClause(rule, 9, 0.9, 0, None, 0.1)
    accounts = (
        RuleAccount(rule, "implicit", Occurrence(3), effect, (clause,)),
        RuleAccount(rule, "implicit", Occurrence(3), effect),
        RuleAccount(rule, "explicit", Occurrence(3), effect),
    )
    print_rules(RuleReport("towns", None, 0, None, None, None, accounts))
    out = capsys.readouterr().out
    assert out.count('"q[red]"(x)') == 4, "three rules and a clause"
    assert out.count("no clause was learned") == 1


ATOM = "liesIn(n5, north)"


@pytest.fixture
def explained(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the engine was asked; it answers with an explanation made by hand."""
    asked: list[dict[str, Any]] = []

    def explain(predictor: Model, atom: str, **options: object) -> Explanation:
        asked.append({"atom": atom, "known": len(predictor.problem.train), **options})
        return italy()

    monkeypatch.setattr(Model, "explain", explain, raising=False)
    return asked


def ask_why(*arguments: object, code: int = 0) -> Result:
    result = runner.invoke(app, ["explain", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def test_options_reach_the_engine_and_files_are_written(
    run_folder: Path, explained: list[dict[str, Any]], tmp_path: Path
) -> None:
    page, drawing = tmp_path / "why.html", tmp_path / "why.svg"
    facts = ["--with", "near(n1, atlantis)", "--without", "near(n1, n0)", "--without", "near(n0, n1)"]
    options = ["--against", "liesIn(n5, south)", "--depth", 0, "--top", 3, "--device", "cpu"]
    result = ask_why(run_folder, ATOM, *options, *facts, "--html", page, "--svg", drawing)
    assert explained == [{"atom": ATOM, "known": 43, "depth": 0, "top": 3, "against": "liesIn(n5, south)"}]
    assert result.stdout.startswith("locatedIn(italy, europe)  0.97")
    for text in ("new constant: atlantis", f"written: {page}", f"written: {drawing}"):
        assert text in result.stderr
    read = read_page(page.read_text(encoding="utf-8"))
    assert read.tags["svg"] == 1
    assert all(text in read.text for text in ("towns", "near(n1, atlantis)"))
    assert drawing.read_text(encoding="utf-8") == explanation_svg(italy())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["why.html", "why.svg"]
    found = json.loads(ask_why(run_folder, ATOM, "--json").stdout)
    assert found == json.loads(json.dumps(italy().to_dict()))
    assert explained[1] == {"atom": ATOM, "known": 44, "depth": 2, "top": 5, "against": None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--html", "{}/nowhere/x.html"], "cannot be written: there is no folder"),
        (["--svg", "{}"], "cannot be written: it is a folder"),
        (["--svg", "{}/why.png"], "cannot be written: PNG is not supported"),
        (["--depth", "-1"], "Invalid value for '--depth'"),
        (["--top", "0"], "Invalid value for '--top'"),
        (["--with", "nera(n1, n2)"], "unknown predicate 'nera'"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_work(
    arguments: list[str], message: str, run_folder: Path, explained: list[dict[str, Any]], tmp_path: Path
) -> None:
    given = [argument.format(tmp_path) for argument in arguments]
    output = ask_why(run_folder, ATOM, *given, code=2).output
    assert message in " ".join(output.replace("│", " ").split())
    assert explained == []
