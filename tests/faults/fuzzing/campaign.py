"""`make fuzz`: every reader by atheris, which goes on from the inputs that reach new lines.

    python -m tests.faults.fuzzing.campaign --inputs 1000000 --out build/fuzzing [TARGET ...]

One process a target, one after the other (atheris_process.py); a process that dies is a finding, and another goes on in
its place. Nothing is kept from one campaign to the next but what is found.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from tests.faults.fuzzing.all_targets import MODULES, targets_of

MOST_DEATHS = 20


def campaign(module: str, name: str, folder: Path, inputs: int, seed: int) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    tried, started, deaths, before = folder / "tried", monotonic(), 0, 0
    tried.unlink(missing_ok=True)
    while before < inputs and deaths < MOST_DEATHS:
        numbers = [str(number) for number in (inputs - before, seed + deaths, before)]
        command = [sys.executable, "-m", "tests.faults.fuzzing.atheris_process", module, name, str(folder), *numbers]
        with (folder / "log.txt").open("ab") as log:
            code = subprocess.run(command, stdout=log, stderr=log, check=False).returncode
        before = int(tried.read_text()) if tried.exists() else before
        deaths += code != 0
    findings = sorted(
        {path.stem for path in folder.glob("*") if path.suffix == ".input" or path.stem.startswith("died")}
    )
    return {"target": name, "inputs": before, "seconds": round(monotonic() - started), "findings": findings}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help="all, if none is named")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of all targets together, or of each named one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/fuzzing"))
    asked = parser.parse_args(arguments)
    places = {target.name: (module, target.inputs) for module in MODULES for target in targets_of(module)}
    full = sum(inputs for _, inputs in places.values())
    rows = []
    for name in asked.targets or places:
        module, share = places[name]
        inputs = asked.inputs if asked.targets else -(-share * asked.inputs // full)
        rows.append(campaign(module, name, asked.out / name, inputs, asked.seed))
        sys.stdout.write(json.dumps(rows[-1]) + "\n")
        sys.stdout.flush()
    return int(any(row["findings"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
