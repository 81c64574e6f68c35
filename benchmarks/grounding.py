"""How fast rules are ground, as ratios to a peer measured in the same run.

- all rules of WN18RR, known bodies: r2n against clingo grounding the same program;
- transitivity over 200 constants, full: r2n against numpy writing an index array of the same shape.

Ratios are of CPU-seconds on one thread: on a busy machine the wall clock measures the others. The ratio of the wall
clock, on all cores, stands beside.
"""

import json
import os
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Annotated, Any

import clingo
import numpy as np
import typer

import r2n
from r2n.errors import DataError
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.store import Store

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


def ready_clingo(facts: str, rules: str) -> clingo.Control:
    """Clingo that has read the facts and the rules, and has not ground the rules yet."""
    control = clingo.Control()
    control.add("facts", [], facts)
    control.ground([("facts", [])])
    control.add("base", [], rules)
    return control


@dataclass(frozen=True)
class Seconds:
    """What a piece of work took."""

    cpu: float
    wall: float


def seconds_of(work: Callable[[], object]) -> Seconds:
    """CPU-seconds of all threads of the process, and the wall clock's."""
    wall, cpu = perf_counter(), process_time()
    work()
    return Seconds(process_time() - cpu, perf_counter() - wall)


@dataclass
class Ratios:
    """Ratios of CPU-seconds on one thread, and of the wall clock on all cores."""

    cpu: list[float]
    wall: list[float]


def compared(
    over: Callable[[], Seconds],
    under: Callable[[], Seconds],
    repeats: int,
    threads: Callable[[int], None] | None = None,
) -> Ratios:
    """How many times as long `over` takes as `under`, each in turn; `threads` sets how many they may use."""
    found = Ratios([], [])
    for number, ratios, kind in ((1, found.cpu, "cpu"), (os.cpu_count() or 1, found.wall, "wall")):
        if threads is not None:
            threads(number)
        for _ in range(repeats):
            ratios.append(getattr(over(), kind) / getattr(under(), kind))
    return found


def ratio_row(case: str, peer: str, ratios: Ratios | list[float], target: str, **more: Any) -> dict[str, Any]:
    """One row of the benchmark table; `spread` is the smallest and the largest ratio, `wall` that of the wall clock."""
    cpu = ratios.cpu if isinstance(ratios, Ratios) else ratios
    wall = {"wall": round(median(ratios.wall), 3)} if isinstance(ratios, Ratios) else {}
    return {
        "case": case,
        "peer": peer,
        "ratio": round(median(cpu), 3),
        "spread": [round(min(cpu), 3), round(max(cpu), 3)],
        "target": target,
        **wall,
        **more,
    }


def known_body_against_clingo() -> dict[str, Any]:
    """How many times faster than clingo all rules of WN18RR are ground on known bodies."""
    knowledge = r2n.load("wn18rr").knowledge
    facts, rules = clingo_program(knowledge)
    counts: set[int] = set()

    def theirs() -> Seconds:
        control = ready_clingo(facts, rules)
        seconds = seconds_of(lambda: control.ground([("base", [])]))
        counts.add(sum(1 for atom in control.symbolic_atoms if atom.symbol.name.startswith("g")))
        return seconds

    def ours() -> Seconds:  # from evidence in memory to ground rules
        return seconds_of(lambda: counts.add(len(KnownBodyGrounder().ground(Store(knowledge)))))

    ratios = compared(theirs, ours, REPEATS)
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
    FullGrounder().ground(Store(knowledge))
    np.indices((CONSTANTS,) * 3)
    ratios = compared(
        lambda: seconds_of(lambda: FullGrounder().ground(Store(knowledge))),
        lambda: seconds_of(lambda: np.indices((CONSTANTS,) * 3)),
        REPEATS,
    )
    tracemalloc.start()
    grounding = FullGrounder().ground(Store(knowledge))
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
        wall = f"wall {row['wall']:.2f}, " if "wall" in row else ""
        text = f"{row['case']:100} {row['ratio']:8.2f} {spread:18} {wall}vs {row['peer']}, target {row['target']}"
        typer.echo(text)


if __name__ == "__main__":
    typer.run(main)
