"""Folders that may not be written, files that may not be read: a message, never a traceback, and nothing half."""

from pathlib import Path

import pytest

from tests.examples import first_of
from tests.faults.all_commands import READING, WRITING, filled, with_run
from tests.faults.killed_works import Given, contents
from tests.faults.warm_process import Conditions, Ended, WarmProcess

AS_ANYBODY = Conditions(obeys_modes=True)


def refused(ended: Ended) -> str:
    assert ended.code in (1, 2), ended.said
    assert "Traceback" not in ended.said
    assert any(words in ended.said for words in ("Permission denied", "permissions", "not readable")), ended.said
    return ended.said


@pytest.mark.parametrize("command", first_of(WRITING, 1))
def test_a_folder_that_may_not_be_written(command: str, warm: WarmProcess, given: Given, tmp_path: Path) -> None:
    folder = with_run(given, tmp_path)
    out = folder / "out"
    out.mkdir(mode=0o555)
    ended = warm.run("r2n", *filled(WRITING[command], given, "out"), folder=folder, under=AS_ANYBODY)
    assert "out" in refused(ended)
    assert list(out.iterdir()) == []
    out.chmod(0o755)
    again = warm.run("r2n", *filled(WRITING[command], given, "out"), folder=folder, under=AS_ANYBODY)
    assert again.code == 0, again.said
    assert [path.stem for path in out.iterdir()] == ["made"]


@pytest.mark.slow
@pytest.mark.parametrize("command", READING)
def test_a_run_that_may_be_read_alone_can_be_asked(
    command: str, warm: WarmProcess, given: Given, tmp_path: Path
) -> None:
    folder = with_run(given, tmp_path)
    before = contents(folder)
    (folder / "run").chmod(0o555)
    try:
        ended = warm.run("r2n", *filled(READING[command], given), folder=folder, under=AS_ANYBODY)
    finally:
        (folder / "run").chmod(0o755)
    assert ended.code == 0, ended.said
    assert contents(folder) == before


@pytest.mark.slow
def test_a_run_that_may_not_be_written_is_not_trained_and_gets_no_report(
    warm: WarmProcess, given: Given, tmp_path: Path
) -> None:
    folder = with_run(given, tmp_path)
    before = contents(folder)
    (folder / "run").chmod(0o555)
    try:
        for arguments in (["report", "run"], ["train", given.toy, "--out", "run", "--resume"]):
            refused(warm.run("r2n", *arguments, folder=folder, under=AS_ANYBODY))
    finally:
        (folder / "run").chmod(0o755)
    assert contents(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["config.json", "problem.safetensors", "checkpoint.json", "checkpoint-*", "."])
def test_a_run_that_may_not_be_read(name: str, warm: WarmProcess, given: Given, tmp_path: Path) -> None:
    folder = with_run(given, tmp_path)
    path = next((folder / "run").glob(name)) if name != "." else folder / "run"
    path.chmod(0)
    try:
        refused(warm.run("r2n", "predict", "run", "liesIn(n5, north)", folder=folder, under=AS_ANYBODY))
    finally:
        path.chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["problem.toml", "theory.r2n", "train.tsv", "test.tsv", "."])
def test_a_problem_that_may_not_be_read(name: str, warm: WarmProcess, given: Given, tmp_path: Path) -> None:
    toy = tmp_path / "toy"
    toy.mkdir()
    for path in given.toy.iterdir():
        (toy / path.name).write_bytes(path.read_bytes())
    (toy / name).chmod(0)
    try:
        for command in ("check", "train"):
            refused(warm.run("r2n", command, "toy", folder=tmp_path, under=AS_ANYBODY))
    finally:
        (toy / name).chmod(0o755)
