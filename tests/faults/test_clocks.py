"""A clock that goes back, and files from the future: no work looks at them, and nothing differs."""

import json
import os
from pathlib import Path

import pytest

from tests.faults.all_commands import WRITING, filled, with_run
from tests.faults.killed_works import EPOCHS, Given, contents, of_grounding, of_training
from tests.faults.warm_process import Conditions, WarmProcess, done

BACK = Conditions(clock_goes_back=True)
FUTURE = 2**32  # seconds: the year 2106


def from_the_future(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (FUTURE, FUTURE))


@pytest.mark.slow
def test_a_training_ends_in_the_same_weights_trace_and_metrics(warm: WarmProcess, given: Given, tmp_path: Path) -> None:
    arguments = [given.toy, "run", 2]
    for name in ("plain", "back"):
        (tmp_path / name).mkdir()
    done(warm, tmp_path / "plain", "train", *arguments)
    killed = warm.run("train", *arguments, folder=tmp_path / "back", before=60, under=BACK)
    assert killed.code is None
    from_the_future(tmp_path / "back")
    ended = warm.run("train", *arguments, folder=tmp_path / "back", under=BACK)
    assert ended.code == 0, ended.said
    assert of_training(tmp_path / "back") == of_training(tmp_path / "plain")


def test_a_trace_counts_no_time_below_zero(warm: WarmProcess, given: Given, tmp_path: Path) -> None:
    ended = warm.run("train", given.toy, "run", 1, folder=tmp_path, under=BACK)
    assert ended.code == 0, ended.said
    records = [json.loads(line) for line in (tmp_path / "run" / "trace.jsonl").read_text().splitlines()]
    assert [record["number"] for record in records] == list(range(1, EPOCHS + 1))
    assert all(record["seconds"] >= 0 for record in records)


@pytest.mark.slow
@pytest.mark.parametrize("command", WRITING)
def test_what_is_written_is_the_same(command: str, warm: WarmProcess, given: Given, tmp_path: Path) -> None:
    found = []
    for name, under in (("plain", Conditions()), ("back", BACK)):
        (tmp_path / name).mkdir()
        folder = with_run(given, tmp_path / name)
        from_the_future(folder)
        ended = warm.run("r2n", *filled(WRITING[command], given), folder=folder, under=under)
        assert ended.code == 0, ended.said
        if "train" in command:
            found.append(of_training(folder))
        else:
            found.append(of_grounding(folder) if "ground" in command else contents(folder))
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_grounding_from_the_future_is_read(warm: WarmProcess, given: Given, tmp_path: Path) -> None:
    arguments = ["ground", given.toy, "--out", "kept"]
    done(warm, tmp_path, "r2n", *arguments)
    from_the_future(tmp_path / "kept")
    (tmp_path / ".kept.00.tmp").mkdir()
    from_the_future(tmp_path / ".kept.00.tmp")
    again = warm.run("r2n", *arguments, folder=tmp_path, under=BACK)
    assert again.code == 0
    assert "read from kept" in again.said
    other = warm.run("r2n", *arguments, "--strategy", "known-body", folder=tmp_path, under=BACK)
    assert "written to kept" in other.said
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
