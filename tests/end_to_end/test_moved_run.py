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

import pytest

from r2n.options import Options
from tests.command_line import document
from tests.featured_problem import featured_problem
from tests.toy_problem import write_toy_problem

QUESTIONS = {"towns": ["liesIn(?, north)"], "backward": ["liesIn(?, ?)"], "python": ["same(p4, ?)", "alike(i0, ?)"]}
NEW_FACTS = {
    "towns": ["near(n1, new)", "near(n3, new)", "liesIn(n5, north)"],
    "backward": ["near(s1, n5)", "!liesIn(n2, north)"],
    "python": ["same(p4, p3)"],
}
SHARED = ("grounding.reciprocal=true", "model.rule_network=shared")
CHANGES = {
    "towns": ("model.evidence_input=only", "training.hide_by=constant"),
    "backward": ("model.evidence_input=add", "grounding.strategy=backward", "training.negatives=1", *SHARED),
    "python": ("model.evidence_input=add", "model.input=pair", "training.epochs=2", "model.dim=4", "model.layers=1"),
}


def train(name: str, folder: Path) -> None:
    """Leave a run in `folder`/runs/NAME, and what it was made of in `folder`/problems."""
    from r2n.model.run import prepare_run
    from r2n.model.training import train_in  # not above: the other process imports this file, and trains nothing

    run, sets = folder / "runs" / name, [part for change in CHANGES[name] for part in ("--set", change)]
    if name == "python":
        problem = featured_problem()
        for _ in train_in(run, prepare_run(problem, Options().changed(CHANGES[name]), 0)):
            pass
        return
    problem = folder / "problems" / name
    document("train", write_toy_problem(problem, epochs=3), "--out", run, "--no-report", "--no-baseline", *sets)


def answers(run: Path, name: str) -> dict[str, Any]:
    """What the commands say of a run: metrics, and the probability of each atom that is asked for."""
    told = [part for fact in NEW_FACTS[name] for part in ("--with", fact)]
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
def test_it_answers_as_before_and_facts_make_a_difference(
    name: str, moved: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    before, after = moved[0][name], moved[1]["said"][name]
    assert before.keys() == after.keys()
    for question, said in before.items():
        assert said, "there is something to compare"
        assert after[question] == pytest.approx(said, abs=1e-6), question
    _, without, told, *_ = after.values()
    assert without != told


def test_loading_and_answering_leave_threads_and_random_numbers_alone(
    moved: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    assert all(moved[1]["untouched"].values()), moved[1]["untouched"]
