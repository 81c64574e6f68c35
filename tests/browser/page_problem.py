"""The run that the page shows in tests: towns with facts, features and hostile names, and rules of two kinds.

Networks read evidence, so that a fact that is switched off makes a difference.
"""

import subprocess
import sys
from pathlib import Path

from tests.toy_problem import TOWNS, valley_of, write_toy_problem

FEATURES = '[features.town]\ntable = "towns.tsv"\ntext = "words"\n'
MARKUP = "<img src=x onerror=alert(1)>"
RIGHT_TO_LEFT = "\u202eevil\u202c town"
LONG = "long" * 2_500
HOSTILE = (MARKUP, "[/]", RIGHT_TO_LEFT, "a/b?c=d&e#f%20", 'it\'s, "so"', LONG, "..")  # the last is a step of a path


def train_page_run(folder: Path) -> Path:
    """Train two networks on towns, of which the hostile ones are near n0; the folder of the run."""
    problem, run = write_toy_problem(folder / "towns", epochs=120), folder / "run"
    with (problem / "theory.r2n").open("a") as file:
        file.write("implicit pairs: [near(x, y), liesIn(x, z), liesIn(y, z)]\n")
    with (problem / "train.tsv").open("a", encoding="utf-8") as file:
        file.write("".join(f"{town}\tnear\tn0\nn0\tnear\t{town}\n" for town in HOSTILE))
    valleys = {town: valley_of(town) for town in TOWNS} | dict.fromkeys(HOSTILE, "north")
    words = [f"{town}\ta town of the {valley}, with <b>no</b> markup\n" for town, valley in valleys.items()]
    (problem / "towns.tsv").write_text("".join(["town\twords\n", *words]), encoding="utf-8")
    text = (problem / "problem.toml").read_text().replace("layers = 1", 'layers = 2\nevidence_input = "add"')
    (problem / "problem.toml").write_text(text.replace("epochs = 120", "epochs = 120\nhiding = 0.2") + FEATURES)
    command = [sys.executable, "-m", "r2n", "train", problem, "--out", run, "--ensemble", "2"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return run
