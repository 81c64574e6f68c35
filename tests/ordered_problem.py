"""A problem to rank, small and with constraints: houses along a road, of which the later ones are after the earlier."""

from itertools import pairwise
from pathlib import Path

HOUSES = tuple(f"h{i:02}" for i in range(14))
THEORY = """\
domain house
predicate after(house, house)
predicate next(house, house)
predicate old(house)
rule further: next(x, z) & after(z, y) -> after(x, y)
rule beside: next(x, y) -> after(x, y)
"""


def write_ordered_problem(folder: Path, *settings: str) -> Path:
    """Every seventh pair is asked; `settings` are lines of [model]."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "theory.r2n").write_text(THEORY)
    pairs = [(x, y) for i, y in enumerate(HOUSES) for x in HOUSES[i + 1 :]]
    splits: dict[str, list[str]] = {"train": [f"{x}\tnext\t{y}" for y, x in pairwise(HOUSES)], "valid": [], "test": []}
    for number, (x, y) in enumerate(pairs):
        splits[{3: "valid", 6: "test"}.get(number % 7, "train")].append(f"{x}\tafter\t{y}")
    for split, lines in splits.items():
        (folder / f"{split}.tsv").write_text("".join(f"{line}\n" for line in lines))
    (folder / "train-old.csv").write_text("h02\nh09\n")
    (folder / "test-old.csv").write_text("h05\n")
    (folder / "problem.toml").write_text(
        f"""\
name = "road"
theory = "theory.r2n"
[facts]
train = ["train.tsv", {{ file = "train-old.csv", predicate = "old" }}]
[queries]
valid = "valid.tsv"
test = ["test.tsv", {{ file = "test-old.csv", predicate = "old" }}]
[grounding]
strategy = "known-body"
[model]
dim = 4
layers = 1
{chr(10).join(settings)}
[training]
epochs = 2
"""
    )
    return folder
