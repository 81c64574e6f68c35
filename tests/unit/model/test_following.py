"""A process that follows: it makes the same run, trains it with the others, and writes nothing."""

from pathlib import Path

import pytest
import torch

from r2n.data.problem import load_problem
from r2n.model.training import FollowedRun, follow_elsewhere, follow_run, train_in
from tests.thread_team import ThreadTeam, together


def test_who_follows_trains_and_who_leads_writes(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    options = problem.options.changed(["training.batch_size=5", "training.epochs=4"])
    followed = FollowedRun(str(toy_folder), tmp_path / "two", options, 0)
    run = followed.prepared(problem)

    def work(team: ThreadTeam) -> list[float]:
        if team.rank:
            follow_run(team, followed)
            return []
        return [epoch.loss for epoch in train_in(tmp_path / "two", run, team=team)]

    alone = FollowedRun(str(toy_folder), tmp_path / "one", options, 0).prepared(problem)
    expected = [epoch.loss for epoch in train_in(tmp_path / "one", alone)]
    assert together(2, work)[0] == pytest.approx(expected, rel=1e-4)
    names = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("one", "two")]
    assert [len(part) for part in names] == [len(names[0])] * 2, names
    resumed = list(train_in(tmp_path / "two", followed.prepared(problem), resume=True))
    assert resumed == []  # a run of two is over for one, too
    assert torch.get_num_threads() == 1


def test_who_was_begun_by_nobody_follows_nobody() -> None:
    asked = {"resume": False, "devices": 2, "memory": None}
    assert follow_elsewhere("no problem", None, [], 0, 1, **asked) is False
