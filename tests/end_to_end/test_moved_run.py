"""A run is whole: moved to where its problem is not, it answers as before, and loading it trains nothing.

The runs are trained here, their problems deleted, their folders moved; another process, in another folder, asks them.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import r2n
from r2n.cli import app
from r2n.knowledge.options import Options
from tests.command_line import document
from tests.featured_problem import NUMBERS, TITLES, featured_problem
from tests.toy_problem import write_toy_problem

QUESTIONS = {
    "towns": ["liesIn(?, north)"],
    "backward": ["liesIn(?, ?)"],
    "reciprocal": ["liesIn(n5, ?)"],
    "papers": ["same(p4, ?)", "good(?)"],
    "python": ["same(p4, ?)", "alike(i0, ?)"],
}
TOLD = {
    "towns": ["near(n1, new)", "near(n3, new)", "liesIn(n5, north)"],
    "backward": ["near(s1, n5)", "!liesIn(n2, north)"],
    "reciprocal": ["near(s1, n5)"],
    "papers": ["cites(p1, p4)", "same(p4, p3)"],
    "python": ["same(p4, p3)"],
}
CHANGES = {
    "towns": ("model.evidence_input=only", "training.hide_by=constant"),
    "backward": ("model.evidence_input=add", "grounding.strategy=backward", "training.negatives=1"),
    "reciprocal": ("grounding.reciprocal=true", "training.negatives=1"),
    "papers": ("model.evidence_input=add",),
    "python": ("model.evidence_input=add", "model.input=pair", "training.epochs=2", "model.dim=4", "model.layers=1"),
}
PAPERS = """
domain paper
predicate good(paper)
predicate same(paper, paper)
predicate cites(paper, paper) closed
rule symmetry: same(x, y) -> same(y, x)
rule taste: cites(x, y) & good(y) -> good(x)
"""


def write_papers(folder: Path) -> Path:
    """Papers with texts and numbers in a table of their own."""
    folder.mkdir()
    rows = [f"{name},{TITLES[name]},{x},{y}" for name, (x, y) in NUMBERS.items()]
    texts = {
        "theory.r2n": PAPERS,
        "papers.csv": "\n".join(["id,title,x,y", *rows]),
        "train.tsv": "p1\tsame\tp2\t1\np3\tsame\tp1\t0\np4\tcites\tp1\t1\n",
        "good.csv": "paper,label\np1,1\np2,0\n",
        "test.tsv": "p4\tsame\tp2\t1\np2\tsame\tp3\t0\n",
        "problem.toml": """
theory = "theory.r2n"
[facts]
train = ["train.tsv", {file = "good.csv", predicate = "good", columns = ["paper"], label = "label"}]
[queries]
test = "test.tsv"
[features.paper]
table = "papers.csv"
text = "title"
vector = ["x", "y"]
[model]
input = "distmult"
dim = 4
layers = 1
[training]
epochs = 2
""",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def train(name: str, folder: Path) -> None:
    """Leave a run in `folder`/runs/NAME, and what it was made of in `folder`/problems."""
    from r2n.runs.run import prepare_run
    from r2n.runs.training import train_in  # not above: the other process imports this file, and trains nothing

    run, sets = folder / "runs" / name, [part for change in CHANGES[name] for part in ("--set", change)]
    if name == "python":
        problem = featured_problem()
        for _ in train_in(run, prepare_run(problem, Options().changed(CHANGES[name]), 0)):
            pass
        return
    problem = folder / "problems" / name
    write_papers(problem) if name == "papers" else write_toy_problem(problem, epochs=3)
    document("train", problem, "--out", run, "--no-report", "--no-baseline", *sets)


def answers(run: Path, name: str) -> dict[str, Any]:
    """What the commands say of a run: metrics, and the probability of each atom that is asked for."""
    told = [part for fact in TOLD[name] for part in ("--with", fact)]
    said: dict[str, Any] = {"test": document("evaluate", run)["metrics"]}
    for question in QUESTIONS[name]:
        for more in ([], told):
            found = document("predict", run, question, "--all", "--top", 99, *more)["answers"]
            said[f"{question} {more}"] = {answer["atom"]: answer["probability"] for answer in found}
    return said


ELSEWHERE = """
import json, sys
from pathlib import Path
import numpy as np, torch
from r2n.training import negatives

def refuse(*_, **__):
    raise AssertionError("a training began")

torch.optim.Optimizer.__init__ = refuse
for name, value in list(vars(negatives).items()):
    if getattr(value, "__module__", "") == negatives.__name__ and not isinstance(value, type):
        setattr(negatives, name, refuse)
sys.path.insert(0, {root!r})
from tests.end_to_end.test_moved_run import QUESTIONS, answers

torch.set_num_threads(2)
torch.manual_seed(7)
before = torch.get_rng_state(), np.random.get_state()[1].copy()
said = {{name: answers(Path({moved!r}) / name, name) for name in QUESTIONS}}
untouched = {{
    "threads": torch.get_num_threads() == 2,
    "random numbers of torch": torch.equal(before[0], torch.get_rng_state()),
    "random numbers of numpy": bool((before[1] == np.random.get_state()[1]).all()),
}}
print(json.dumps({{"said": said, "untouched": untouched}}))
"""  # functions of negatives are refused before anybody imports them


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """What each run said where it was trained, and what another process heard elsewhere."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "problems").mkdir()
    before = {}
    for name in QUESTIONS:
        train(name, folder)
        before[name] = answers(folder / "runs" / name, name)
    there = tmp_path_factory.mktemp("there")
    shutil.move(folder / "runs", there / "moved")
    shutil.rmtree(folder)
    root = str(Path(__file__).parents[2])
    script = ELSEWHERE.format(root=root, moved=str(there / "moved"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=there, env=os.environ)
    assert done.returncode == 0, done.stderr[-3000:]
    return before, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_answers_as_before(name: str, moved: tuple[dict[str, Any], dict[str, Any]]) -> None:
    before, after = moved[0][name], moved[1]["said"][name]
    assert before.keys() == after.keys()
    for question, said in before.items():
        assert said, "there is something to compare"
        assert after[question] == pytest.approx(said, abs=1e-6), question


def test_the_facts_that_it_is_told_make_a_difference(moved: tuple[dict[str, Any], dict[str, Any]]) -> None:
    for said in moved[1]["said"].values():
        _, without, told, *_ = said.values()
        assert without != told


def test_loading_and_answering_leave_threads_and_random_numbers_alone(
    moved: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    assert all(moved[1]["untouched"].values()), moved[1]["untouched"]


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    """A run whose problem is gone."""
    document(
        "train",
        write_toy_problem(tmp_path / "towns", epochs=2),
        "--out",
        tmp_path / "run",
        "--no-report",
        "--no-baseline",
    )
    shutil.rmtree(tmp_path / "towns")
    return tmp_path / "run"


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 2, result.output
    return result.stderr


def test_what_is_loaded_is_all_that_a_problem_was(towns: Path, tmp_path: Path) -> None:
    from r2n.prediction.trained import Trained

    trained, original = Trained.load(towns), r2n.load(write_toy_problem(tmp_path / "again"))
    ours, theirs = trained.problem.knowledge, original.knowledge
    assert str(ours.theory) == str(theirs.theory)
    assert (ours.language.constants, ours.language.predicates) == (
        theirs.language.constants,
        theirs.language.predicates,
    )
    for mine, given in zip(ours.language.extensions, theirs.language.extensions, strict=True):
        np.testing.assert_array_equal(mine, given)
    for mine, given in ((trained.problem.train, original.train), (trained.problem.test, original.test)):
        np.testing.assert_array_equal(mine.atoms, given.atoms)
        np.testing.assert_array_equal(mine.truth, given.truth)
    assert trained.options.model == original.options.model
    codes = original.test.atoms
    logits = r2n.Predictor.load(towns).logits(codes)
    np.testing.assert_array_equal(r2n.Predictor.of(trained).logits(codes), logits)


def test_asked_for_what_it_does_not_hold_it_says_so(towns: Path) -> None:
    assert "valid" in refused("evaluate", towns, "--split", "vald")
    assert "no_such" in refused("predict", towns, "liesIn(no_such, ?)")


def test_a_folder_of_an_older_version_is_refused_with_what_to_do(towns: Path) -> None:
    """Such a folder named its problem, and held nothing of it."""
    config = json.loads((towns / "config.json").read_text())
    assert "format" in config
    old = {
        "problem": "/somewhere/towns/problem.toml",
        "name": "towns",
        "fingerprint": "0" * 64,
        "options": config["options"],
        "encoders": [],
        "seed": 0,
        "versions": {"r2n": "0.1.0", "torch": "2.0.0", "python": "3.11.0"},
        "threads": 1,
    }
    (towns / "config.json").write_text(json.dumps(old))
    with pytest.raises(r2n.R2NError, match=r"(?s)train.*again"):
        r2n.Predictor.load(towns)
    for command in (("evaluate", towns), ("predict", towns, "liesIn(n5, ?)")):
        said = refused(*command)
        assert str(towns) in said
        assert "again" in said
