"""Generated graphs of growing size -> docs/scale.json: what grounding them costs, by DuckDB and by Spark.

    python tools/measure_scale.py generate 4 5 6 7          graphs of 10^4 to 10^7 facts, under --data
    python tools/measure_scale.py duckdb 4 5 6 7            known bodies, joined by arrays and DuckDB
    python tools/measure_scale.py spark 4 5 6 7             the same by Spark, local[2]
    python tools/measure_scale.py joins 4 5 6 7             the rules alone, by arrays and by DuckDB
    python tools/measure_scale.py train 4 5 6 7             steps of training an input layer, and ranked queries

Each run is a command of its own. Its memory and processor time are those of all its processes, Java's among them, read
from /proc four times a second; the peak is the largest sum of resident sets. Rows are added to the file as they come:
`tools/draw_scale.py` draws them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "docs" / "scale.json"
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def tree(root: int) -> dict[int, tuple[float, int]]:
    """Processor seconds and resident bytes of a process and all below it, by process id."""
    parents: dict[int, int] = {}
    found: dict[int, tuple[float, int]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        process = int(folder.name)
        parents[process] = int(fields[1])
        found[process] = ((int(fields[11]) + int(fields[12])) / TICKS, int(fields[21]) * PAGE)
    below = {root}
    while more := {process for process, parent in parents.items() if parent in below} - below:
        below |= more
    return {process: found[process] for process in below if process in found}


def measured(command: list[str]) -> dict[str, Any]:
    """Run a command: its output, seconds, processor seconds and peak bytes, of all its processes."""
    start, peak, cpu = time.perf_counter(), 0, {}
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, text=True)
        while process.poll() is None:
            now = tree(process.pid)
            peak = max(peak, sum(size for _, size in now.values()))
            cpu |= {child: seconds for child, (seconds, _) in now.items()}
            time.sleep(0.25)
        said.seek(0)
        output = said.read()
    if process.returncode:
        sys.exit(f"{' '.join(command)}\n{output}")
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "cpu_seconds": sum(cpu.values()), "peak_bytes": peak, "output": output}


def command(*arguments: str) -> list[str]:
    """A command of r2n."""
    return [sys.executable, "-m", "r2n", *arguments]


def run(what: str, exponent: int, data: Path, memory: str) -> dict[str, Any]:
    """One measurement, as a row."""
    facts, folder = 10**exponent, data / f"facts-{exponent}"
    if what == "generate":
        found = measured(command("datasets", "generate", "--facts", str(facts), "--out", str(folder)))
        size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
        return {"facts": facts, "file_bytes": size, **found}
    if what in ("joins", "train"):
        found = measured([sys.executable, str(ROOT / "tools" / "scale_step.py"), what, str(folder)])
        return {"facts": facts, **json.loads(found["output"].splitlines()[-1]), **found}
    out = data / f"ground-{what}-{exponent}-{os.getpid()}"
    arguments = ["ground", str(folder), "--strategy", "known-body", "--max-groundings", "100000000", "--memory", memory]
    arguments += ["--out", str(out), "--json"] + (["--engine", "local[2]"] if what == "spark" else [])
    found = measured(command(*arguments))
    document = json.loads(found["output"][found["output"].index("{") : found["output"].rindex("}") + 1])
    rules = sum(rule["seconds"] for rule in document["rules"])
    row = {"facts": facts, "ground_rules": document["ground_rules"], "rule_seconds": rules, **found}
    row["file_bytes"] = sum(path.stat().st_size for path in out.rglob("*.parquet"))
    return row


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["generate", "duckdb", "spark", "joins", "train"])
    parser.add_argument("exponents", type=int, nargs="+", help="of ten: how many facts")
    parser.add_argument("--data", type=Path, default=Path("runs") / "scale")
    parser.add_argument("--memory", default="4GB")
    given = parser.parse_args()
    for exponent in given.exponents:
        row = {"what": given.what, "load": os.getloadavg()[0], **run(given.what, exponent, given.data, given.memory)}
        del row["output"]
        rows = json.loads(RECORD.read_text()) if RECORD.exists() else []
        RECORD.write_text(json.dumps([*rows, row], indent=1) + "\n")
        print(json.dumps(row))


if __name__ == "__main__":
    main()
