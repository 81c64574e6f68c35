"""kill -9 at any moment: every file is whole or absent, the same again ends as if nothing had been, nothing is left."""

import json
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.examples import first_of
from tests.faults.killed_works import WORKS, Outcome, Trial, Work, check_whole, contents

AT_ONCE = 12  # kills by time of one test; half as many by operations
TRIES = 8  # draws for each, where a busy machine makes the times of works differ
LOG = Path("build") / "kills"
FEW = 2  # of each kind, of a training: those of `make test`
CASES = [(work, part, AT_ONCE) for work in WORKS for part in range(work.kills // AT_ONCE)]


class Killing:
    def __init__(self, trial: Trial, work: Work) -> None:
        self.trial, self.work, self.stages = trial, work, Counter[str]()
        self.arguments = (work.work, *trial.given.filled(work.arguments))
        self.before = contents(self.new_folder())
        complete = trial.done(*self.arguments, at="work")
        self.seconds, self.operations = complete.seconds, complete.operations
        self.outcome: Outcome = work.outcome(trial.folder / "work")

    def new_folder(self) -> Path:
        folder = self.trial.folder / "work"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self.work.prepare(self.trial.given, folder)
        return folder

    def kill(self, **when: float) -> bool:
        """Whether the work was killed; if so, what is there is complete, and done again it is as if it had not been."""
        folder = self.new_folder()
        ended = self.trial.run(*self.arguments, at="work", **when)
        if ended.code is not None:
            assert ended.code == 0, ended.said
            self.seconds = min(self.seconds, ended.seconds)
            return False
        self.stages[f"{len(contents(folder).items() - self.before.items())} new files"] += 1
        check_whole(folder)
        if not (self.work.is_once and self.work.outcome(folder) == self.outcome):
            self.trial.done(*self.arguments, *self.work.again, at="work")
        assert self.work.outcome(folder) == self.outcome
        return True


@pytest.mark.parametrize(
    "case", first_of([(WORKS[0], 0, FEW), *CASES], 1), ids=lambda c: f"{c[0].name} {c[1]} {c[2]}".replace(" ", "-")
)
def test_killed_at_random_moments(case: tuple[Work, int, int], trial: Trial, request: pytest.FixtureRequest) -> None:
    work, part, moments = case
    operations = -(-moments // 2)
    killing, dice = Killing(trial, work), random.Random(f"{work.name} {part}")
    kills = {"moments": 0, "operations": 0}
    for _ in range(TRIES * moments):
        if kills["moments"] < moments:
            kills["moments"] += killing.kill(after=dice.uniform(0, killing.seconds))
    for _ in range(TRIES * moments):
        if kills["operations"] < operations:
            kills["operations"] += killing.kill(before=dice.randint(1, killing.operations))
    LOG.mkdir(parents=True, exist_ok=True)
    log = {"work": work.name, **kills, "seconds": killing.seconds, "stages": dict(killing.stages)}
    (LOG / f"{request.node.callspec.id}.json").write_text(json.dumps(log, indent=1))
    assert kills == {"moments": moments, "operations": operations}


def test_there_are_two_hundred_of_them() -> None:
    assert len(CASES) * AT_ONCE >= 200
