"""A run that is served in tests: towns in valleys, some with names that are no names elsewhere."""

from pathlib import Path

from r2n.data.problem import load_problem
from r2n.model.run import prepare_run
from r2n.model.training import train_in
from tests.toy_problem import write_toy_problem

MARKUP = "<img src=x onerror=alert(1)>"
BRACKETS = "[/]"
RIGHT_TO_LEFT = "\u202egnp.exe"
LONG = "long" * 2_500
SLASHED = 'a/b?c=d&e#f%20, "quoted"'
DOTS = (".", "..")  # steps of a path
STRANGE = (MARKUP, BRACKETS, RIGHT_TO_LEFT, LONG, SLASHED, *DOTS)


def write_served_run(folder: Path, *, epochs: int = 4) -> Path:
    """Train it; the folder of the run. Networks read evidence, so that facts make a difference."""
    problem = write_toy_problem(folder / "towns", epochs=epochs)
    lines = [f"{name}\tnear\tn0\nn0\tnear\t{name}\n" for name in STRANGE]
    with (problem / "train.tsv").open("a", encoding="utf-8") as file:
        file.write("".join(lines))
    settings = problem / "problem.toml"
    text = settings.read_text().replace("layers = 1", 'layers = 1\nevidence_input = "add"')
    settings.write_text(text.replace(f"epochs = {epochs}", f"epochs = {epochs}\nhiding = 0.2"))
    loaded = load_problem(problem)
    run = prepare_run(loaded, loaded.options, seed=0)
    for _ in train_in(folder / "run", run):
        pass
    return folder / "run"
