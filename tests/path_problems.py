"""Problems whose truths are at the end of chains of facts, each head with a chain of its own."""

from random import Random

import r2n
from r2n.options import Options

HEADS = {"train": 120, "valid": 20, "test": 30}
FAST = ("training.epochs=80", "model.dim=16", "training.learning_rate=0.02", "grounding.strategy=paths")


def chained(steps: int, *changes: str, seed: int = 0, tails: int = 12, prefix: str = "") -> r2n.Problem:
    """p(head, tail) where r1(head, m1), r2(m1, m2), ... lead from the head to the tail in so many steps."""
    dice, domains = Random(seed), ["head", *(f"m{i}" for i in range(1, steps)), "tail"]
    lines = [f"domain {', '.join(domains)}", "predicate p(head, tail)"]
    lines += [f"predicate r{i}({domains[i - 1]}, {domains[i]})" for i in range(1, steps + 1)]
    facts, queries = list[str](), dict[str, list[str]]()
    for split, count in HEADS.items():
        for number in range(count):
            tail = f"{prefix}t{dice.randrange(tails)}"
            places = [f"{prefix}{split}{number}", *(f"{prefix}{split}{number}m{i}" for i in range(1, steps)), tail]
            facts += [f"r{i}({places[i - 1]}, {places[i]})" for i in range(1, steps + 1)]
            (facts if split == "train" else queries.setdefault(split, [])).append(f"p({places[0]}, {tail})")
    options = Options().changed([*FAST, *changes])
    return r2n.Problem.from_facts(facts, theory="\n".join(lines), queries=queries, options=options)
