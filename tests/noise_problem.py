"""Problems on which nobody can do better than chance, unless the evaluation tells the answer; and one whose rules do.

Each head has one true tail, drawn at random. The kinds of rules about it:

    alike   q(x, y) & r(y, z) -> p(x, z)   closed bodies: every head has a path to every tail
    silent  q(x, z) -> p(x, z)             an open body of which nothing is known for the heads that are asked about
    telling as `alike`, but the only path of a head leads to its true tail: here the rules give the answer
    spread  as `alike`, and near(x, y) & p(x, z) -> p(y, z): what is asked stands in a body; neighbours mean nothing
    hinted  q(x, z) -> p(x, z), and most hints q are right; p(x, z) -> chosen(z), which tells only that p(x, z) is
            known: here the hints help, if they are learned where the asked fact is not known
"""

from collections.abc import Mapping, Sequence
from random import Random

import pyarrow as pa

import r2n
from r2n.options import Options

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
NEAR = """
        predicate near(head, head) closed
        rule spread: near(x, y) & p(x, z) -> p(y, z)
"""
THEORIES["telling"] = THEORIES["alike"]
THEORIES["spread"] = THEORIES["alike"] + NEAR
THEORIES["hinted"] = """
        domain head, tail
        predicate q(head, tail) closed
        predicate p(head, tail)
        predicate chosen(tail)
        rule hint: q(x, z) -> p(x, z)
        rule role: p(x, z) -> chosen(z)
"""
HEADS = {"train": 40, "valid": 40, "test": 150}
TAILS = tuple(f"t{i:02}" for i in range(20))
MIDDLES = ("m0", "m1", "m2")
Pairs = list[tuple[str, str]]


def noise_problem(
    kind: str, *changes: str, seed: int = 0, heads: Mapping[str, int] = HEADS, tails: Sequence[str] = TAILS
) -> r2n.Problem:
    """Every head stands in one split, with one true tail; `changes` are options of the run.

    The split `mixed` asks for its heads with their true tails and with one other each.
    """
    dice = Random(seed)
    true = {split: [(f"{split}{i:03}", dice.choice(tails)) for i in range(number)] for split, number in heads.items()}
    small = ("model.dim=8", "model.layers=1", "training.epochs=12", "training.corrupted_positions=[-1]")
    background = _background(kind, true, dice, tails)
    queries = {split: [_table("p", true[split])] for split in ("valid", "test") if true.get(split)}
    if true.get("mixed"):
        other = [(head, dice.choice([t for t in tails if t != tail])) for head, tail in true["mixed"]]
        queries["mixed"] = [_table("p", true["mixed"], other)]
    return r2n.Problem.build(
        kind,
        r2n.parse_theory(THEORIES[kind]),
        [_table("p", true["train"]), *background],
        queries,
        domains={"tail": tails},
        options=Options().changed([*small, *changes]),
    )


def _background(kind: str, true: dict[str, Pairs], dice: Random, tails: Sequence[str]) -> list[r2n.Table]:
    pairs = [pair for part in true.values() for pair in part]
    if kind == "silent":
        return [_table("q", [(head, dice.choice(tails)) for head, _ in true["train"]])]
    if kind == "hinted":
        right = [(head, tail) for head, tail in pairs if dice.random() < 0.8]
        return [_table("q", sorted({*right, *((head, dice.choice(tails)) for head, _ in pairs)}))]
    if kind == "telling":
        to_middle = [(head, f"m_{tail}") for head, tail in pairs]
        return [_table("q", to_middle), _table("r", [(f"m_{tail}", tail) for tail in tails])]
    to_middle = [(head, dice.choice(MIDDLES)) for head, _ in pairs]
    found = [_table("q", to_middle), _table("r", [(middle, tail) for middle in MIDDLES for tail in tails])]
    if kind == "spread":
        heads = [head for head, _ in pairs]
        found.append(_table("near", sorted({(dice.choice(heads), head) for head in heads for _ in range(3)})))
    return found


def _table(predicate: str, pairs: Pairs, false: Pairs | None = None) -> r2n.Table:
    everything = [*pairs, *(false or [])]
    columns: dict[str, list[object]] = {"a": [a for a, _ in everything], "b": [b for _, b in everything]}
    if false is not None:
        columns["label"] = [int(i < len(pairs)) for i in range(len(everything))]
    return r2n.Table(pa.table(columns), predicate=predicate)
