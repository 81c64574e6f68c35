"""The claim of the example, and that no label of a held-out image is among what is known."""

from pathlib import Path
from time import process_time

import numpy as np
import pytest

from examples.comparison import MOST_SECONDS, accuracy, make_problem, trained
from examples.neuro_symbolic.__main__ import CLASSIFIER, EXAMPLE, comparison
from examples.neuro_symbolic.make_data import SPLITS, make_data


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


def test_sums_are_right_and_every_image_is_in_one_pair(tmp_path: Path) -> None:
    make_data(tmp_path, 3)
    digit = {row[0]: int(row[2]) for split in SPLITS for row in rows(tmp_path / f"{split}.tsv")}
    sums = rows(tmp_path / "sums.tsv")
    assert [int(total) for _, _, total in sums] == [digit[x] + digit[y] for x, y, _ in sums]
    assert sorted(x for x, _, _ in sums) == sorted(digit)


def test_held_out_digits_are_not_known_and_ground_rules_are_few() -> None:
    problem = make_problem(EXAMPLE, make_data, 3)
    base = problem.knowledge.base
    names = base.names(problem.train.atoms)
    assert sum(name.startswith("digit(") for name in names) == len(SPLITS["train"])
    run = trained(problem, 0, ["training.epochs=0"])
    assert run.source.full_graph is not None
    (rule,) = run.source.full_graph.neighbours
    totals = [int(name.rstrip(")").split(", ")[-1]) for name in names if name.startswith("addsTo(")]
    assert len(rule) == sum(10 - abs(total - 9) for total in totals)  # pairs of values with that total


@pytest.mark.slow
def test_one_network_gains_from_the_rule() -> None:
    """With the built-in encoder, one seed and the validation images."""
    problem = make_problem(EXAMPLE, make_data, 10)
    found = [accuracy(trained(problem, 10, changes), "valid") for changes in (CLASSIFIER, ())]
    assert np.diff(found) > 0.05


@pytest.mark.slow
def test_the_rule_lifts_the_classifier() -> None:
    start = process_time()
    found = comparison()
    assert process_time() - start < MOST_SECONDS
    assert len(found.figures["classifier alone"]) == 5
    assert found.holds(), "\n".join(found.lines())
