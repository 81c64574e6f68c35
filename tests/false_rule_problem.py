"""Towns in valleys, found through their neighbours by a rule that is true, and through pen pals by one that is not."""

from pathlib import Path
from random import Random

THEORY = """\
domain town, valley
predicate liesIn(town, valley)
predicate near(town, town) closed
predicate writesTo(town, town) closed
rule neighbours: near(x, y) & liesIn(x, z) -> liesIn(y, z)
rule "pen pals": writesTo(x, y) & liesIn(x, z) -> liesIn(y, z)
"""
VALLEYS = ("east", "north", "south", "west")
PROBLEM = """\
name = "pen-pals"
theory = "theory.r2n"
[facts]
train = "train.tsv"
[queries]
valid = "valid.tsv"
test = "test.tsv"
[grounding]
strategy = "known-body"
[model]
dim = 8
layers = 1
[training]
epochs = {epochs}
corrupted_positions = [-1]
hiding = 0.5
hide_by = "constant"
"""


def write_false_rule_problem(folder: Path, seed: int = 0, *, towns: int = 120, epochs: int = 120) -> Path:
    """Each town has two neighbours in its valley, and two pen pals anywhere; the valley of a third is asked."""
    folder.mkdir(parents=True, exist_ok=True)
    dice = Random(seed)
    names = [f"t{i:02}" for i in range(towns)]
    valley = {name: VALLEYS[i % len(VALLEYS)] for i, name in enumerate(names)}
    lines = []
    for number, name in enumerate(names):
        ring = [other for other in names if valley[other] == valley[name]]
        place = ring.index(name)
        near = (ring[place - 1], ring[(place + 1) % len(ring)])
        pals = dice.sample([other for i, other in enumerate(names) if i != number], 2)
        lines += [f"{name}\tnear\t{other}\t1\n" for other in near]
        lines += [f"{name}\twritesTo\t{other}\t1\n" for other in pals]
    asked = dice.sample(names, towns // 3)
    known = [name for name in names if name not in asked]
    lines += [f"{name}\tliesIn\t{v}\t{int(v == valley[name])}\n" for name in known for v in VALLEYS]
    (folder / "train.tsv").write_text("".join(lines))
    for split, some in (("valid", asked[::2]), ("test", asked[1::2])):
        rows = [f"{name}\tliesIn\t{v}\t{int(v == valley[name])}\n" for name in some for v in VALLEYS]
        (folder / f"{split}.tsv").write_text("".join(rows))
    (folder / "theory.r2n").write_text(THEORY)
    (folder / "problem.toml").write_text(PROBLEM.format(epochs=epochs))
    return folder
