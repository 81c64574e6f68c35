"""How fast rules are ground, as ratios to a peer measured in the same run.

- all rules of WN18RR, known bodies: r2n against clingo grounding the same program;
- transitivity over 200 constants, full: r2n against numpy writing an index array of the same shape.
"""

import json
import tracemalloc
from statistics import median
from time import perf_counter
from typing import Annotated, Any

import clingo
import numpy as np
import typer

import r2n
from r2n.errors import DataError

REPEATS = 5
CONSTANTS = 200


def clingo_program(knowledge: r2n.KnowledgeBase) -> tuple[str, str]:
    """The facts, and a program whose heads list the substitutions of each rule with a known body."""
    index = knowledge.language.predicate_index
    facts = "\n".join(
        f"p{index(predicate.name)}({','.join(map(str, row))})."
        for predicate in knowledge.language.predicates
        for row in knowledge.facts(predicate).tolist()
    )
    rules = []
    for number, rule in enumerate(knowledge.theory.rules):
        body = [rule.atoms[literal.position] for literal in rule.body]
        atoms = [f"p{index(atom.predicate)}({','.join(f'V_{t.name}' for t in atom.terms)})" for atom in body]
        head = f"g{number}({','.join(f'V_{name}' for name in rule.variables)})"
        rules.append(f"{head} :- {', '.join(atoms)}.")
    return facts, "\n".join(rules)


def time_clingo(facts: str, rules: str) -> tuple[float, int]:
    """Seconds that clingo needs to ground the rules over facts it has read already, and the number of ground rules."""
    control = clingo.Control()
    control.add("facts", [], facts)
    control.ground([("facts", [])])
    control.add("base", [], rules)
    start = perf_counter()
    control.ground([("base", [])])
    seconds = perf_counter() - start
    return seconds, sum(1 for atom in control.symbolic_atoms if atom.symbol.name.startswith("g"))


def time_known_body(knowledge: r2n.KnowledgeBase) -> tuple[float, int]:
    """Seconds that r2n needs from evidence in memory to ground rules, and their number."""
    start = perf_counter()
    grounding = r2n.KnownBodyGrounder().ground(knowledge)
    return perf_counter() - start, len(grounding)


def ratio_row(case: str, peer: str, ratios: list[float], target: str, **more: Any) -> dict[str, Any]:
    """One row of the benchmark table; `spread` is the smallest and the largest ratio."""
    return {
        "case": case,
        "peer": peer,
        "ratio": round(median(ratios), 3),
        "spread": [round(min(ratios), 3), round(max(ratios), 3)],
        "target": target,
        **more,
    }


def known_body_against_clingo() -> dict[str, Any]:
    """How many times faster than clingo all rules of WN18RR are ground on known bodies."""
    knowledge = r2n.load("wn18rr").knowledge
    facts, rules = clingo_program(knowledge)
    ratios, counts = [], set()
    for _ in range(REPEATS):
        ours, count = time_known_body(knowledge)
        theirs, their_count = time_clingo(facts, rules)
        counts |= {count, their_count}
        ratios.append(theirs / ours)
    if len(counts) != 1:
        raise SystemExit(f"clingo and r2n disagree on the number of ground rules: {sorted(counts)}")
    return ratio_row("known-body, WN18RR, times faster", "clingo", ratios, ">= 10", ground_rules=counts.pop())


def transitivity(constants: int) -> r2n.KnowledgeBase:
    """p(x, y) & p(y, z) -> p(x, z) over so many constants."""
    names = ", ".join(f"c{i}" for i in range(constants))
    text = f"domain d = {{{names}}}\npredicate p(d, d)\nrule t: p(x, y) & p(y, z) -> p(x, z)\n"
    return r2n.KnowledgeBase.build(r2n.parse_theory(text))


def full_against_numpy() -> list[dict[str, Any]]:
    """How many times the seconds of numpy's `indices` a full grounding takes, and its peak memory over its output."""
    knowledge = transitivity(CONSTANTS)
    r2n.FullGrounder().ground(knowledge)
    np.indices((CONSTANTS,) * 3)
    ratios = []
    for _ in range(REPEATS):
        start = perf_counter()
        np.indices((CONSTANTS,) * 3)
        theirs = perf_counter() - start
        start = perf_counter()
        grounding = r2n.FullGrounder().ground(knowledge)
        ratios.append((perf_counter() - start) / theirs)
    tracemalloc.start()
    grounding = r2n.FullGrounder().ground(knowledge)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    output = sum(part.atoms.nbytes for part in grounding.ground_rules)
    case = f"full, transitivity over {CONSTANTS} constants"
    return [
        ratio_row(f"{case}, times the seconds", "numpy.indices", ratios, "<= 2", ground_rules=len(grounding)),
        ratio_row(f"{case}, peak memory over output", "the output", [peak / output], "<= 2"),
    ]


def main(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Measure, and print the table."""
    rows: list[dict[str, Any]] = full_against_numpy()
    try:
        rows.insert(0, known_body_against_clingo())
    except DataError as error:
        typer.echo(f"left out: WN18RR is not here ({error.what})", err=True)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    print_rows(rows)


def print_rows(rows: list[dict[str, Any]]) -> None:
    """The rows as a table."""
    for row in rows:
        low, high = row["spread"]
        spread = f"({low} .. {high})" if low != high else ""
        typer.echo(f"{row['case']:100} {row['ratio']:8.2f} {spread:18} vs {row['peer']}, target {row['target']}")


if __name__ == "__main__":
    typer.run(main)
