"""docs/scale.json -> docs/images/scale-*.svg, and the slopes that docs/scale.md tells."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from r2n.reporting.pages import chart
from r2n.reporting.run_report import Curve

DOCS = Path(__file__).parents[1] / "docs"
COMMANDS = {"generate": "generate", "duckdb": "ground, arrays and DuckDB", "spark": "ground, Spark, local[2]"}
COLOURS = ("#0a5fa8", "#b04a00", "#14746a", "#7b3fa0")
STYLE = "svg{background:#fff}text{fill:#55606e;font:11px system-ui,sans-serif}.axis,.grid{stroke:#d5d9e0;fill:none}"
STYLE += ".line{fill:none;stroke-width:2}" + "".join(
    f".line.k{i}{{stroke:{colour}}}.dot.k{i}{{fill:{colour}}}" for i, colour in enumerate(COLOURS)
)
Figure = tuple[str, str, str]
"""A kind of measurement, a figure of it, and what it is called."""


def latest(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The last measurement of each kind and size, by kind, sizes ascending."""
    last = {(row["what"], row["facts"]): row for row in rows}
    found: dict[str, list[dict[str, Any]]] = {}
    for _, row in sorted(last.items(), key=lambda item: item[0][1]):
        found.setdefault(row["what"], []).append(row)
    return found


def draw(kinds: dict[str, list[dict[str, Any]]], curves: list[Figure], unit: float, label: str, name: str) -> None:
    """One chart: figures against the number of facts, both logarithmic."""
    series = [
        Curve(called, *np.log10([[row["facts"] for row in rows], [row[field] / unit for row in rows]]).tolist())
        for kind, field, called in curves
        for rows in [kinds.get(kind, [])]
    ]
    drawn = chart(f"{label} by facts", series, x_label="facts (log10)", y_label=f"{label} (log10)")
    head, rest = drawn.split(">", 1)
    (DOCS / "images" / f"scale-{name}.svg").write_text(f"{head}><style>{STYLE}</style>{rest}", encoding="utf-8")


def slope(rows: list[dict[str, Any]], field: str, least: float) -> float:
    """The slope of log time against log ground rules, from so many ground rules on."""
    kept = [row for row in rows if row["ground_rules"] >= least]
    x, y = (np.log([row[key] for row in kept]) for key in ("ground_rules", field))
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    """Draw all plots and print the slopes."""
    kinds = latest(json.loads((DOCS / "scale.json").read_text()))
    commands = list(COMMANDS.items())
    draw(kinds, [(kind, "cpu_seconds", called) for kind, called in commands], 1, "processor seconds", "seconds")
    peaks = [(kind, "peak_bytes", called) for kind, called in [*commands, ("train", "train and rank")]]
    draw(kinds, peaks, 1e9, "peak memory, GB", "memory")
    parts = [("train", "step_seconds", "a step of 1,024 facts"), ("train", "query_seconds", "a ranked query")]
    parts += [("joins", "arrays_seconds", "all rules, arrays"), ("joins", "duckdb_seconds", "all rules, DuckDB")]
    draw(kinds, parts, 1, "processor seconds", "parts")
    for kind, field in (
        ("duckdb", "cpu_seconds"),
        ("joins", "arrays_seconds"),
        ("joins", "duckdb_seconds"),
        ("spark", "cpu_seconds"),
        ("spark", "rule_seconds"),
    ):
        if len(kinds.get(kind, [])) > 1:
            print(kind, field, round(slope(kinds[kind], field, 1e5), 3))


if __name__ == "__main__":
    main()
