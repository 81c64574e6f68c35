"""What an implicit rule learns from data of two known clauses, and what the clauses are worth as explicit rules.

    python -m experiments.learned_clauses --seeds 5

For each seed: data are generated, a network is trained on the implicit rule, its clauses are read off and exported, and
a network is trained from the exported theory with the same options. Needs the folder of the repository.
"""

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from r2n.data.problem import load_problem
from r2n.model.model import Model
from r2n.model.rule_report import export_theory, rule_report
from r2n.model.run import Run, prepare_run
from tests.clause_problem import CLAUSES, with_theory, write_clause_problem


def trained(folder: Path, seed: int) -> Run:
    """A run, in memory."""
    run = prepare_run(load_problem(folder), seed=seed)
    for _ in run.trainer:
        pass
    return run


def measured(seed: int, folder: Path) -> dict[str, object]:
    """One seed."""
    write_clause_problem(folder, seed)
    run = trained(folder, seed)
    report = rule_report(Model.from_run(run))
    clauses = [str(clause) for clause in report.rules[0].clauses]
    export_theory(report, run.problem.knowledge.theory, folder / "learned.r2n")
    with_theory(folder, "learned.r2n")
    again = trained(folder, seed)
    return {
        "seed": seed,
        "recovered": set(clauses[:2]) == set(CLAUSES),
        "clauses": clauses,
        "implicit": {split: run.evaluate(split).main[1] for split in ("valid", "test")},
        "explicit": {split: again.evaluate(split).main[1] for split in ("valid", "test")},
    }


def main() -> None:
    """Print one line a seed, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    for seed in range(parser.parse_args().seeds):
        with TemporaryDirectory() as folder:
            sys.stdout.write(json.dumps(measured(seed, Path(folder))) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
