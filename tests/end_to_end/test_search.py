"""The search behind the tables: its draws, its finalists, and their order."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def run(script: str, *arguments: str) -> list[dict]:
    command = [sys.executable, str(EXPERIMENTS / script), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in finished.stdout.splitlines()]


@pytest.mark.slow
def test_the_best_draws_go_on_to_further_seeds(tmp_path: Path) -> None:
    grid, lines = tmp_path / "grid.toml", tmp_path / "lines.jsonl"
    grid.write_text('"model.dim" = [2, 8, 16]\n"training.epochs" = [0, 3]\n')
    fixed = ("--set", "model.reasoner=none", "--set", "training.learning_rate=0.1")
    records = run("search.py", str(grid), "nations", "--draws", "4", "--seed", "7", "--finalists", "2", *fixed)
    first, again = records[:4], records[4:]
    assert [(record["draw"], record["seed"]) for record in first] == [(0, 7), (1, 7), (2, 7), (3, 7)]
    assert all(record["options"][2:] == ["model.reasoner=none", "training.learning_rate=0.1"] for record in records)
    by_valid = sorted(first, key=lambda record: -record["valid"])
    assert by_valid[0]["valid"] > by_valid[-1]["valid"]
    expected = [(record["draw"], seed) for record in by_valid[:2] for seed in (8, 9, 10)]
    assert [(record["draw"], record["seed"]) for record in again] == expected

    lines.write_text("".join(json.dumps(record) + "\n" for record in records))
    best = run("best.py", str(lines))
    assert {entry["draw"] for entry in best} == {draw for draw, _ in expected}
    assert [len(entry["values"]) for entry in best] == [4, 4]
    assert best[0]["mean"] >= best[1]["mean"]
