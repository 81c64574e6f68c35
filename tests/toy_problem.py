"""A problem small enough to train in a second: towns in valleys, found through their neighbours."""

from pathlib import Path

THEORY = """\
domain town, valley
predicate liesIn(town, valley)
predicate near(town, town) closed
rule neighbours: near(x, y) & liesIn(x, z) -> liesIn(y, z)
"""
VALLEYS = ("north", "south")
TOWNS = tuple(f"{valley[0]}{i}" for valley in VALLEYS for i in range(8))
HELD_OUT = {"valid": ("n2", "s2"), "test": ("n5", "s5")}


def valley_of(town: str) -> str:
    return "north" if town.startswith("n") else "south"


def write_toy_problem(folder: Path, *, epochs: int = 60) -> Path:
    """Towns stand in a ring in each valley; the valley of four towns is asked."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "theory.r2n").write_text(THEORY)
    held_out = {town for towns in HELD_OUT.values() for town in towns}
    lines = [f"{town}\tliesIn\t{valley_of(town)}\n" for town in TOWNS if town not in held_out]
    for valley in VALLEYS:
        ring = [town for town in TOWNS if valley_of(town) == valley]
        for i, town in enumerate(ring):
            lines += [f"{town}\tnear\t{ring[i - 1]}\n", f"{ring[i - 1]}\tnear\t{town}\n"]
    (folder / "train.tsv").write_text("".join(lines))
    for split, towns in HELD_OUT.items():
        rows = [f"{town}\tliesIn\t{v}\t{int(v == valley_of(town))}\n" for town in towns for v in VALLEYS]
        (folder / f"{split}.tsv").write_text("".join(rows))
    (folder / "problem.toml").write_text(
        f"""\
name = "towns"
theory = "theory.r2n"
[facts]
train = "train.tsv"
[queries]
valid = "valid.tsv"
test = "test.tsv"
[model]
dim = 8
layers = 1
[training]
epochs = {epochs}
corrupted_positions = [-1]
"""
    )
    return folder
