"""Data from two known clauses, a & b -> e and c & !d -> g, as a problem whose theory hints that all are related."""

from pathlib import Path

import numpy as np

BODIES, HEADS = "abcd", "eg"
CLAUSES = ("a(x) & b(x) -> e(x)", "c(x) & !d(x) -> g(x)")
IMPLICIT = "implicit related: [a(x), b(x), c(x), d(x), e(x), g(x)]\n"
DECLARED = "domain item\n" + "".join(f"predicate {name}(item)\n" for name in BODIES + HEADS)
PROBLEM = """\
name = "two-clauses"
theory = "{theory}"
[facts]
train = [{train}]
[queries]
valid = [{valid}]
test = [{test}]
[model]
evidence_input = "only"
dim = 16
layers = 1
[training]
epochs = {epochs}
corrupted_positions = [] # all labels are there
"""


def write_clause_problem(
    folder: Path, seed: int, *, items: int = 400, without_reason: float = 0.05, epochs: int = 150
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    dice = np.random.default_rng(seed)
    a, b, c, d = dice.random((4, items)) < 0.5
    spontaneous = dice.random((2, items)) < without_reason
    truths = dict(zip("abcd", (a, b, c, d), strict=True))
    truths |= {"e": (a & b) | spontaneous[0], "g": (c & ~d) | spontaneous[1]}
    order = dice.permutation(items)
    parts = {"train": order[: items // 2], "valid": order[items // 2 : 3 * items // 4], "test": order[3 * items // 4 :]}
    names = {split: [] for split in parts}
    for predicate, truth in truths.items():
        for split, some in ({"train": order} if predicate in BODIES else parts).items():
            rows = "".join(f"i{i:03}\t{int(truth[i])}\n" for i in sorted(some.tolist()))
            (folder / f"{split}_{predicate}.tsv").write_text(f"item\tlabel\n{rows}")
            names[split].append(f'{{ file = "{split}_{predicate}.tsv", predicate = "{predicate}", label = "label" }}')
    (folder / "theory.r2n").write_text(DECLARED + IMPLICIT)
    write_problem_file(folder, names, "theory.r2n", epochs)
    return folder


def write_problem_file(folder: Path, names: dict[str, list[str]], theory: str, epochs: int) -> None:
    tables = {split: ", ".join(part) for split, part in names.items()}
    (folder / "problem.toml").write_text(PROBLEM.format(theory=theory, epochs=epochs, **tables))
