"""A process that follows: it makes the same run, trains it with the others, and writes nothing."""

from pathlib import Path

import pytest
import torch

from r2n.data.problem import load_problem
from r2n.model.training import TrainingSpec, _follow, follow_elsewhere, train_in
from tests.thread_team import ThreadTeam, together


def test_who_follows_trains_and_who_leads_writes(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    options = problem.options.changed(["training.batch_size=5", "training.epochs=4"])
    spec = TrainingSpec(tmp_path / "two", options)
    run = spec.prepared(problem)

    def work(team: ThreadTeam) -> list[float]:
        if team.rank:
            _follow(team, str(toy_folder), spec)
            return []
        return [epoch.loss for epoch in train_in(tmp_path / "two", run, team=team)]

    expected = [epoch.loss for epoch in train_in(tmp_path / "one", spec.prepared(problem))]
    assert together(2, work)[0] == pytest.approx(expected, rel=1e-4)
    names = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("one", "two")]
    assert len(names[0]) == len(names[1]), names
    assert list(train_in(tmp_path / "two", spec.prepared(problem), resume=True)) == []  # over for one process, too
    assert torch.get_num_threads() == 1


def test_who_was_begun_by_nobody_follows_nobody() -> None:
    assert follow_elsewhere("no problem", None, [], 0, 1, resume=False, devices=2, memory=None) is False
