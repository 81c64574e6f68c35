"""The run that the page shows in tests: towns with facts, features and hostile names, and rules of two kinds.

Networks read evidence, so that a fact that is switched off makes a difference.
"""

import subprocess
import sys
from pathlib import Path

THEORY = """\
domain town, valley
predicate liesIn(town, valley)
predicate near(town, town) closed
rule neighbours: near(x, y) & liesIn(x, z) -> liesIn(y, z)
implicit pairs: [near(x, y), liesIn(x, z), liesIn(y, z)]
"""
SETTINGS = """\
name = "towns"
theory = "theory.r2n"
[facts]
train = "train.tsv"
[queries]
valid = "valid.tsv"
test = "test.tsv"
[features.town]
table = "towns.tsv"
text = "words"
[model]
dim = 8
layers = 2
evidence_input = "add"
[training]
epochs = 120
hiding = 0.2
corrupted_positions = [-1]
"""
MARKUP = "<img src=x onerror=alert(1)>"
BRACKETS = "[/]"
RIGHT_TO_LEFT = "\u202eevil\u202c town"
SLASHED = "a/b?c=d&e#f%20"
QUOTED = 'it\'s, "so"'
LONG = "long" * 2_500
DOTS = ".."  # a step of a path
HOSTILE = (MARKUP, BRACKETS, RIGHT_TO_LEFT, SLASHED, QUOTED, LONG, DOTS)
HELD_OUT = {"valid": ("n2", "s2"), "test": ("n5", "s5")}
TOWNS = tuple(f"{valley}{i}" for valley in "ns" for i in range(8))


def valley_of(town: str) -> str:
    return "south" if town.startswith("s") else "north"


def write_page_problem(folder: Path) -> Path:
    """Towns stand in a ring in each valley; the hostile ones are near n0, and lie where it lies."""
    folder.mkdir(parents=True)
    held_out = {town for towns in HELD_OUT.values() for town in towns}
    facts = [(town, "liesIn", valley_of(town)) for town in TOWNS if town not in held_out]
    for i, town in enumerate(TOWNS):
        other = town[0] + str((i + 1) % 8)
        facts += [(town, "near", other), (other, "near", town)]
    for town in HOSTILE:
        facts += [(town, "near", "n0"), ("n0", "near", town)]
    (folder / "theory.r2n").write_text(THEORY)
    (folder / "problem.toml").write_text(SETTINGS)
    _write_table(folder / "train.tsv", facts)
    for split, towns in HELD_OUT.items():
        rows = [(town, "liesIn", v, str(int(v == valley_of(town)))) for town in towns for v in ("north", "south")]
        _write_table(folder / f"{split}.tsv", rows)
    words = [(town, f"a town of the {valley_of(town)}, with <b>no</b> markup") for town in (*TOWNS, *HOSTILE)]
    _write_table(folder / "towns.tsv", [("town", "words"), *words])
    return folder


def _write_table(path: Path, rows: list[tuple[str, ...]]) -> None:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def train_page_run(folder: Path) -> Path:
    """Train two networks on it; the folder of the run."""
    problem, run = write_page_problem(folder / "towns"), folder / "run"
    command = [sys.executable, "-m", "r2n", "train", problem, "--out", run, "--ensemble", "2"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return run
