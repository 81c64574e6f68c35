"""The best draws of a search: FILE of search.py's lines -> draws in order, by the mean over data sets and seeds."""

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer


def main(
    files: list[Path],
    measure: Annotated[str, typer.Option(help="valid (the higher the better) or cross_entropy (the lower)")] = "valid",
    show: Annotated[int, typer.Option(help="how many draws to show")] = 5,
) -> None:
    """Print one JSON line a draw, the best first; a draw with fewer trainings than another is left out."""
    records = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    draws: dict[int, dict[tuple[str, int], dict]] = defaultdict(dict)
    for record in records:
        draws[record["draw"]][record["dataset"], record["seed"]] = record
    most = max(map(len, draws.values()))
    whole = {draw: list(found.values()) for draw, found in draws.items() if len(found) == most}
    sign = -1 if measure == "valid" else 1
    order = sorted(whole, key=lambda draw: sign * fmean(record[measure] for record in whole[draw]))
    for draw in order[:show]:
        found = whole[draw]
        values = [round(record[measure], 4) for record in found]
        summary = {"draw": draw, "mean": fmean(values), "values": values, "options": found[0]["options"]}
        typer.echo(json.dumps(summary))


if __name__ == "__main__":
    typer.run(main)
