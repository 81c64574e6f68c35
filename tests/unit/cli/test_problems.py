"""r2n check, ground, mine, datasets: what the tables say (the other options are tested end to end)."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import r2n
from r2n.cli import app
from r2n.cli import problems as module
from r2n.datasets.benchmarks import DATASETS, load
from r2n.grounding.cache import fingerprint, write_grounding
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.progress import Progress
from tests.command_line import document, invoke, run

runner = CliRunner()


def test_check_announces_that_it_reads() -> None:
    result = runner.invoke(app, ["check", "countries-s3", "--json"])
    assert json.loads(result.stdout)["name"] == "countries-s3"
    assert result.stderr == "read ...\n"


WIDE = {
    "theory.r2n": "domain person, thing\npredicate gives(person, thing, person)\n",
    "facts.tsv": "ann\that\tbob\n",
    "problem.toml": 'theory = "theory.r2n"\n[facts]\ntrain = { file = "facts.tsv", predicate = "gives" }\n',
}


def write_files(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_check_tells_what_train_would_refuse(tmp_path: Path) -> None:
    problem = write_files(tmp_path / "gifts", WIDE)
    change = ["--set", "model.input=complex"]
    result = runner.invoke(app, ["check", str(problem), *change])
    assert result.exit_code == 0
    assert "warning: r2n train refuses this: input 'complex' takes predicates of one or two positions" in result.stderr
    assert "choose input = 'distmult' or 'mlp'" in result.stderr
    assert runner.invoke(app, ["train", str(problem), "--out", str(tmp_path / "run"), *change]).exit_code == 2
    document = json.loads(invoke("check", str(problem), "--json", *change))
    assert [text.splitlines()[0] for text in document["refusals"]] == [
        "input 'complex' takes predicates of one or two positions, but gives has 3"
    ]
    mended = runner.invoke(app, ["check", str(problem)])
    assert "refuses" not in mended.stderr
    assert "chosen: model.input = distmult (gives has 3 positions)" in mended.stdout


def test_check_warns_of_what_cannot_work(toy_folder: Path) -> None:
    result = runner.invoke(app, ["check", str(toy_folder), "--set", "grounding.strategy=known-body"])
    assert "warning: 1 of 1 rule has a predicate that is asked in its body (neighbours: liesIn)" in result.stderr


def test_train_warns_as_check_does_before_the_work(toy_folder: Path, tmp_path: Path) -> None:
    change = ["--set", "grounding.strategy=known-body", "--set", "training.epochs=1"]
    checked = runner.invoke(app, ["check", str(toy_folder), *change]).stderr
    trained = runner.invoke(app, ["train", str(toy_folder), "--out", str(tmp_path / "run"), *change]).stderr
    warnings = [line for line in checked.splitlines() if line.startswith("warning: ")]
    assert warnings
    assert [line for line in trained.splitlines() if line.startswith("warning: ")] == warnings
    assert trained.index("warning: ") < trained.index("train ...")
    resumed = runner.invoke(app, ["train", str(toy_folder), "--out", str(tmp_path / "run"), "--resume"]).stderr
    assert "warning: " not in resumed


def test_check_tells_of_empty_cells(tmp_path: Path) -> None:
    files = {
        "people.csv": "id,city\nann,rome\nbob,\n",
        "problem.toml": "[facts]\n"
        'train = { file = "people.csv", predicate = "livesIn", header = true, empty = "skip" }\n',
    }
    problem = str(write_files(tmp_path / "people", files))
    assert "train: 1 row with an empty cell (skipped)" in invoke("check", problem)
    assert json.loads(invoke("check", problem, "--json"))["empty"] == {"train": 1}


FAMILY = {
    "theory.r2n": "domain d\npredicate p(d, d)\npredicate q(d, d)\nimplicit all: *(x, y)\n",
    "train.tsv": "a\tp\tb\nb\tq\tc\n",
    "test.tsv": "a\tp\tc\n",
}


@pytest.mark.parametrize("strategy", ["full", "backward"])
def test_ground_knows_reciprocals(strategy: str, tmp_path: Path) -> None:
    text = 'theory = "theory.r2n"\n[facts]\ntrain = "train.tsv"\n[queries]\ntest = "test.tsv"\n[grounding]\n'
    files = {**FAMILY, "problem.toml": f'{text}strategy = "{strategy}"\nreciprocal = true\n'}
    problem = write_files(tmp_path / "family", files)
    document = json.loads(invoke("ground", str(problem), "--json"))
    assert '"p^-1"(x, y)' in document["rules"][0]["rule"]
    assert document["queries"] == {"reached": 1, "unreached": 0}
    plain = write_files(tmp_path / "plain", {**FAMILY, "problem.toml": f'{text}strategy = "{strategy}"\n'})
    without = json.loads(invoke("ground", str(plain), "--json"))
    assert document["atoms"] > without["atoms"]


def test_list_and_show() -> None:
    rows = json.loads(invoke("datasets", "list", "--json"))
    assert [row["name"] for row in rows] == list(DATASETS)
    assert "countries-s3" in invoke("datasets", "list")
    shown = json.loads(invoke("datasets", "show", "nations", "--json"))
    assert shown["splits"] == {"train": 1592, "valid": 199, "test": 201}


def test_download_of_what_is_here_and_of_what_is_unknown() -> None:
    assert "in the package" in invoke("datasets", "download", "nations")
    assert "did you mean 'nations'" in invoke("datasets", "download", "nation", code=2)


def test_a_download_shows_its_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(folder: str, *, progress: Progress) -> Path:
        progress("download", 5, 10)
        return tmp_path / folder

    monkeypatch.setattr(module, "download", download)
    result = runner.invoke(app, ["datasets", "download", "wn18rr"])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"wn18rr is in {tmp_path / 'wn18rr'}\n"
    assert result.stderr == "download ...\n"


def test_generate_makes_a_problem_folder_once(tmp_path: Path) -> None:
    arguments = ["datasets", "generate", str(tmp_path / "made"), "--facts", "200", "--constants", "20", "--rules", "5"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("200 facts (train 1")
    assert "), 5 rules, in " in result.stdout
    problem = load(tmp_path / "made")
    assert (len(problem.train) + len(problem.valid) + len(problem.test), len(problem.knowledge.theory.rules)) == (
        200,
        5,
    )
    assert "name one that is not there" in invoke(*arguments, code=2)
    assert runner.invoke(app, [*arguments[:2], str(tmp_path / "other"), "--noise", "2"]).exit_code == 2


def test_an_engine_that_is_none_is_refused() -> None:
    assert "there is no engine 'oracle'" in invoke("ground", "countries-s3", "--engine", "oracle", code=2)


def test_a_grounding_in_parts_is_read_where_it_is_that_of_the_problem(tmp_path: Path) -> None:
    knowledge, grounder = load("countries-s3").knowledge, FullGrounder()
    grounding = grounder.ground(Store(knowledge))
    write_grounding(grounding, tmp_path / "kept", fingerprint(knowledge, grounder))
    command = ["ground", "countries-s3", "--strategy", "full", "--json"]
    kept = json.loads(invoke(*command, "--out", str(tmp_path / "kept")))
    made = json.loads(runner.invoke(app, command).stdout)
    assert kept["from_cache"]
    assert (
        kept["ground_rules"]
        == made["ground_rules"]
        == len(np.concatenate([p.atoms[:, 0] for p in grounding.ground_rules]))
    )


def test_a_grounding_beyond_the_memory_that_is_allowed_is_refused() -> None:
    refused = invoke("ground", "countries-s3", "--strategy", "full", "--memory", "100KB", code=2)
    assert "more than the 0.1 MB that it may take" in refused


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    """A ring of parents, and their children; some of them asked."""
    pairs = [(f"k{i}", f"k{(i + 1) % 12}") for i in range(12)]
    facts = [f"{x}\tparent\t{y}" for x, y in pairs] + [f"{y}\tchild\t{x}" for x, y in pairs[:9]]
    (tmp_path / "train.tsv").write_text("\n".join(facts) + "\n")
    (tmp_path / "test.tsv").write_text("\n".join(f"{y}\tchild\t{x}" for x, y in pairs[9:]) + "\n")
    text = 'theory = "theory.r2n"\n[facts]\ntrain = "train.tsv"\n[queries]\ntest = "test.tsv"\n'
    (tmp_path / "problem.toml").write_text(text + '[grounding]\nstrategy = "known-body"\n')
    own = "domain k\npredicate parent(k, k)\npredicate child(k, k)\nrule own: parent(x, y) -> !child(x, y)\n"
    (tmp_path / "theory.r2n").write_text(own)
    return tmp_path / "problem.toml"


def test_the_theory_is_printed_and_is_a_theory(problem: Path) -> None:
    theory = r2n.parse_theory(run("mine", problem))
    assert [rule.name for rule in theory.rules][:2] == ["own", "m0"]
    assert "rule m0 [1.0]: child(y, x) -> parent(x, y), x != y" in map(str, theory.rules)
    assert "own" not in run("mine", problem, "--fresh")


def test_a_written_theory_is_accepted_by_check_ground_and_train(problem: Path) -> None:
    out = problem.parent / "mined.r2n"
    printed = run("mine", problem, "--constraints", "--max-length", 1)
    assert run("mine", problem, "--constraints", "--max-length", 1, "--out", out) == ""
    assert out.read_text() == printed
    problem.write_text(problem.read_text().replace("theory.r2n", "mined.r2n"))
    theory = r2n.parse_theory(printed)
    assert document("check", problem)["rules"] == len(theory.rules)
    grounded = {rule["name"]: rule["ground_rules"] for rule in document("ground", problem)["rules"]}
    (concluded,) = (rule.name for rule in theory.rules if str(rule.formula) == "parent(y, x) -> child(x, y)")
    assert grounded[concluded] == 12
    options = ["--no-report", "--no-baseline", "--set", "training.epochs=1"]
    invoke("train", str(problem), "--out", str(problem.parent / "run"), *options)


def test_json_says_what_was_counted(problem: Path) -> None:
    found = document("mine", problem, "--max-length", 1, "--constraints")
    (rule,) = (rule for rule in found["rules"] if "parent(y, x) -> child(x, y)" in rule["rule"])
    assert (rule["support"], rule["body_pairs"], rule["pca_pairs"], rule["confidence"]) == (9, 12, 9, 0.75)
    assert {"kind": "irreflexive", "predicates": ["child"], "support": 9, "exceptions": 0} in found["constraints"]
    assert (found["stopped"], found["unwritable"]) == (None, 0)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--max-length", "4"], "bodies of 4 atoms"),
        (["--max-length", "1", "--min-length", "2"], "bodies of 2 to 1 atoms"),
        (["--max-constant-rules", "0"], "max_constant_rules is 0"),
        (["--constant-length", "3"], "bodies of 3 atoms with a constant"),
        (["--max-exceptions", "-1"], "--max-exceptions is -1"),
        (["--out", "mined.txt"], "does not end in .r2n"),
    ],
)
def test_options_that_cannot_be_are_refused(problem: Path, options: list[str], what: str) -> None:
    assert what in invoke("mine", str(problem), *options, code=2)
