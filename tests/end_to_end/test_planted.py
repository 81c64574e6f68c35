"""Generated graphs with no option set: rules and input layer together are above each alone, and noise stays noise."""

from pathlib import Path

import numpy as np
import pytest

import r2n
from r2n.datasets.generated import GraphOptions, generate
from r2n.evaluation.report import Report
from r2n.model.model import Model
from r2n.model.run import prepare_run

PLANTED = GraphOptions(facts=2000, constants=300, rules=40, communities=6, queries=0.1)  # about a tenth of a default
NOISE = GraphOptions(facts=1200, constants=150, relations=6, rules=15, noise=1.0, queries=0.1)


def trained(options: GraphOptions, folder: Path) -> Report:
    """The report on the test queries after a training in which nothing but the sizes is set."""
    generate(options, folder)
    run = prepare_run(r2n.load(folder))
    assert run.options.model.rules == ("counted" if options.rules else "layers")
    for _ in run.trainer:
        pass
    return Model.from_run(run).evaluate("test", baselines=True)


@pytest.mark.slow
def test_rules_and_input_layer_together_are_above_the_better_of_the_two(tmp_path: Path) -> None:
    report = trained(PLANTED, tmp_path / "planted")
    alone = {name: metrics["mrr"] for name, metrics in report.baselines.items()}
    assert set(alone) == {"rules alone", "without reasoning"}
    assert report.metrics["mrr"] > max(alone.values()) + 0.02, (report.metrics, alone)


def test_noise_is_ranked_by_chance(tmp_path: Path) -> None:
    """Rules are given, but every fact is drawn at random; a rank is as likely as any other."""
    report = trained(NOISE, tmp_path / "noise")
    assert NOISE.constants is not None
    ranks = 1 / np.arange(1, NOISE.constants + 1)
    deviation = ranks.std() / np.sqrt(2 * NOISE.facts * NOISE.queries)
    assert abs(report.metrics["mrr"] - ranks.mean()) < 2 * deviation, (report.metrics, ranks.mean())
    for metrics in report.baselines.values():  # candidates that no rule reaches tie in the middle: below chance
        assert metrics["mrr"] < ranks.mean() + 3 * deviation, (report.baselines, ranks.mean())
