"""Problems on which nobody can do better than chance, unless the evaluation tells the answer; and one whose rules do.

Each head has one true tail, drawn at random. The kinds of rules about it:

    alike   q(x, y) & r(y, z) -> p(x, z)   closed bodies: every head has a path to every tail
    silent  q(x, z) -> p(x, z)             an open body of which nothing is known for the heads that are asked about
    telling as `alike`, but the only path of a head leads to its true tail: here the rules give the answer
"""

from random import Random

import pyarrow as pa

import r2n
from r2n.knowledge.options import Options

THEORIES = {
    "alike": """
        domain head, middle, tail
        predicate q(head, middle) closed
        predicate r(middle, tail) closed
        predicate p(head, tail)
        rule path: q(x, y) & r(y, z) -> p(x, z)
    """,
    "silent": """
        domain head, tail
        predicate q(head, tail)
        predicate p(head, tail)
        rule copy: q(x, z) -> p(x, z)
    """,
}
THEORIES["telling"] = THEORIES["alike"]
HEADS = {"train": 40, "valid": 40, "test": 150}
TAILS = tuple(f"t{i:02}" for i in range(20))
MIDDLES = ("m0", "m1", "m2")
Pairs = list[tuple[str, str]]


def noise_problem(kind: str, *changes: str, seed: int = 0) -> r2n.Problem:
    """Every head stands in one split, with one true tail; `changes` are options of the run."""
    dice = Random(seed)
    true = {split: [(f"{split}{i:03}", dice.choice(TAILS)) for i in range(number)] for split, number in HEADS.items()}
    small = ("model.dim=8", "model.layers=1", "training.epochs=12", "training.corrupted_positions=[-1]")
    return r2n.Problem.build(
        kind,
        r2n.parse_theory(THEORIES[kind]),
        [_table("p", true["train"]), *_background(kind, true, dice)],
        {split: [_table("p", true[split])] for split in ("valid", "test")},
        domains={"tail": TAILS},
        options=Options().changed([*small, *changes]),
    )


def _background(kind: str, true: dict[str, Pairs], dice: Random) -> list[r2n.Table]:
    """The facts of q and r."""
    pairs = [pair for part in true.values() for pair in part]
    if kind == "silent":
        return [_table("q", [(head, dice.choice(TAILS)) for head, _ in true["train"]])]
    if kind == "telling":
        to_middle = [(head, f"m_{tail}") for head, tail in pairs]
        return [_table("q", to_middle), _table("r", [(f"m_{tail}", tail) for tail in TAILS])]
    to_middle = [(head, dice.choice(MIDDLES)) for head, _ in pairs]
    return [_table("q", to_middle), _table("r", [(middle, tail) for middle in MIDDLES for tail in TAILS])]


def _table(predicate: str, pairs: Pairs) -> r2n.Table:
    return r2n.Table(pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]}), predicate=predicate)
