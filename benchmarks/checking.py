"""How the time of `r2n check` grows: slopes on logarithmic axes, 1 where it is linear.

- theories of more and more rules;
- rules with constants over more and more constants;
- more and more rows that are skipped (`on_error = "skip"`).

CPU-seconds of reading a problem and summing it up, one thread, each case alone.
"""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Annotated, Any

import numpy as np
import typer

import r2n
from r2n.cli.problems import summary_of

PREDICATES = 50
PROBLEM = (
    'theory = "theory.r2n"\non_error = "skip"\n[facts]\ntrain = "train.tsv"\n[grounding]\nstrategy = "known-body"\n'
)


def written(folder: Path, theory: str, facts: str, more: str = "") -> Path:
    """A problem of a theory and facts."""
    (folder / "theory.r2n").write_text(theory)
    (folder / "train.tsv").write_text(facts)
    (folder / "problem.toml").write_text(PROBLEM + more)
    return folder


def many_rules(folder: Path, number: int) -> Path:
    """So many rules over few predicates."""
    names = [f"p{i}" for i in range(PREDICATES)]
    declared = "domain d\n" + "".join(f"predicate {name}(d, d)\n" for name in names)
    rules = "".join(
        f"rule r{i}: p{i % 50}(x, y) & p{i * 7 % 50}(y, z) -> p{i * 13 % 50}(x, z)\n" for i in range(number)
    )
    return written(folder, declared + rules, "".join(f"c{i % 100}\tp{i % 50}\tc{i % 97}\n" for i in range(500)))


def many_constants(folder: Path, number: int) -> Path:
    """So many constants, and for every hundredth a rule that names it."""
    rules = "".join(f'rule r{i}: p(x, "c{i}") -> p("c{i}", x)\n' for i in range(number // 100))
    facts = "".join(f"c{i}\tp\tc{i + 1}\n" for i in range(number))
    return written(folder, "domain d\npredicate p(d, d)\n" + rules, facts)


def many_skipped(folder: Path, number: int) -> Path:
    """So many rows whose constants are in no domain, beside as many constants."""
    (folder / "d.txt").write_text("".join(f"c{i}\n" for i in range(number)))
    facts = "".join(f"c{i}\tp\twrong{i}\n" for i in range(number)) + "c0\tp\tc1\n"
    return written(folder, "domain d\npredicate p(d, d)\n", facts, '[domains]\nd = "d.txt"\n')


def seconds_of(make: Callable[[Path, int], Path], number: int) -> float:
    """What `r2n check` takes of the CPU for a problem so large."""
    with TemporaryDirectory() as folder:
        path = make(Path(folder), number)
        start = process_time()
        summary_of(r2n.load(path))
        return process_time() - start


def slope_row(case: str, make: Callable[[Path, int], Path], sizes: tuple[int, ...]) -> dict[str, Any]:
    """A row of the benchmark table: the steepest slope between two sizes in turn is its spread's end."""
    seconds = [seconds_of(make, size) for size in sizes]
    slopes = np.diff(np.log(seconds)) / np.diff(np.log(sizes))
    overall = float(np.log(seconds[-1] / seconds[0]) / np.log(sizes[-1] / sizes[0]))
    return {
        "case": case,
        "peer": "linear growth",
        "ratio": round(overall, 3),
        "spread": [round(float(slopes.min()), 3), round(float(slopes.max()), 3)],
        "target": "<= 1.2",
        "sizes": list(sizes),
        "cpu_seconds": [round(second, 2) for second in seconds],
    }


def main(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """All cases."""
    seconds_of(many_rules, 10)  # what is loaded once
    rows = [
        slope_row("check: rules", many_rules, (1_000, 4_000, 16_000)),
        slope_row("check: constants named by rules", many_constants, (1_000, 10_000, 100_000)),
        slope_row("check: rows skipped", many_skipped, (500, 2_000, 8_000)),
    ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(f"{row['case']}: slope {row['ratio']} (target {row['target']}), CPU-seconds {row['cpu_seconds']}")


if __name__ == "__main__":
    typer.run(main)
