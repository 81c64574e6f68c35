"""Every command under faults: a message and an exit code, never a traceback; what is written is complete or absent."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from r2n.model.model import Model
from tests.command_line import invoke
from tests.examples import first_of
from tests.faults.killed_works import EPOCHS, READING, WRITING, Trial, check_whole, contents, of_grounding, of_training
from tests.faults.warm_process import Conditions, Ended
from tests.toy_problem import write_toy_problem

MEGABYTE = 2**20
AS_ANYBODY, BACK = Conditions(obeys_modes=True), Conditions(clock_goes_back=True)
FUTURE = 2**32  # seconds: the year 2106
CLOSED_PIPE = (0, 1, 141)


def refused(ended: Ended, *words: str, codes: tuple[int | None, ...] = (1, 2)) -> str:
    assert ended.code in codes, ended.said
    assert "Traceback" not in ended.said
    assert not words or any(word in ended.said for word in words), ended.said
    return ended.said


def hidden_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith(".")]


@pytest.mark.parametrize("command", first_of(READING, 1))
def test_a_reader_that_is_gone(command: str, trial: Trial) -> None:
    for more in ([], ["--json"]):
        said = refused(trial.command(command, *more, under=Conditions(closed_output=True)), codes=CLOSED_PIPE)
        assert "Broken pipe" not in said


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "explain"])
def test_head(command: str, trial: Trial) -> None:
    line = shlex.join([sys.executable, "-m", "r2n", *trial.arguments(command), "--json"])
    shell = ["bash", "-c", f"{line} | head -1; exit ${{PIPESTATUS[0]}}"]
    done = subprocess.run(shell, capture_output=True, text=True, cwd=trial.with_run(), env=os.environ)
    assert len(done.stdout.splitlines()) == 1
    assert not any(words in done.stderr for words in ("Traceback", "Exception ignored", "Broken pipe")), done.stderr
    assert done.returncode in CLOSED_PIPE


@pytest.mark.slow
def test_the_last_checkpoint_is_kept_and_the_training_goes_on_when_there_is_room(trial: Trial) -> None:
    toy, run = write_toy_problem(trial.folder / "toy", epochs=300), trial.folder / "run"
    options = ("train", toy, "--out", run, "--checkpoint-seconds", 0, "--set", "model.dim=4", "--resume")
    full = Conditions(file_size=40_000)  # the trace grows beyond
    said = refused(trial.run("r2n", *options, under=full), "File too large", codes=(1,))
    assert "--resume" in said
    assert not list(run.glob(".*"))
    Model.load(run)
    trial.done("r2n", *options)
    assert len((run / "trace.jsonl").read_text().splitlines()) == 300


@pytest.mark.parametrize("size", first_of([100, 1_500, 4_000], 2))
@pytest.mark.parametrize("command", first_of([*WRITING, "report"], 1))
def test_whatever_is_written_is_complete_or_not_there(command: str, size: int, trial: Trial) -> None:
    before = contents(trial.with_run())
    stopped = trial.command(command, under=Conditions(file_size=size))
    assert "Traceback" not in stopped.said
    if stopped.code:  # what is smaller has been written
        refused(stopped, "File too large")
        check_whole(trial.folder)
        assert before.items() <= contents(trial.folder).items(), "the old files stay"
    again = trial.command(command, *(["--resume"] if "train" in command else []))
    assert again.code == (2 if command.startswith("datasets") and not stopped.code else 0), again.said
    check_whole(trial.folder)
    assert not hidden_files(trial.folder)


def from_the_future(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (FUTURE, FUTURE))


@pytest.mark.slow
def test_a_training_ends_in_the_same_weights_trace_and_metrics(trial: Trial) -> None:
    arguments, back = ("train", trial.given.toy, "run", 2), trial.folder / "back"
    trial.done(*arguments, at="plain")
    assert trial.run(*arguments, at="back", before=60, under=BACK).code is None
    from_the_future(back)
    trial.done(*arguments, at="back", under=BACK)
    assert of_training(back) == of_training(trial.folder / "plain")


def test_a_trace_counts_no_time_below_zero(trial: Trial) -> None:
    trial.done("train", trial.given.toy, "run", 1, under=BACK)
    records = [json.loads(line) for line in (trial.folder / "run" / "trace.jsonl").read_text().splitlines()]
    assert [record["number"] for record in records] == list(range(1, EPOCHS + 1))
    assert all(record["seconds"] >= 0 for record in records)


@pytest.mark.slow
@pytest.mark.parametrize("command", WRITING)
def test_what_is_written_is_the_same(command: str, trial: Trial) -> None:
    outcome = of_training if "train" in command else of_grounding if "ground" in command else contents
    found = []
    for at, under in (("plain", Conditions()), ("back", BACK)):
        from_the_future(trial.with_run(at))
        ended = trial.command(command, at=at, under=under)
        assert ended.code == 0, ended.said
        found.append(outcome(trial.folder / at))
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_grounding_from_the_future_is_read(trial: Trial) -> None:
    arguments = ("r2n", "ground", trial.given.toy, "--out", "kept")
    trial.done(*arguments)
    (trial.folder / ".kept.00.tmp").mkdir()
    from_the_future(trial.folder)
    assert "read from kept" in trial.done(*arguments, under=BACK).said
    assert "written to kept" in trial.done(*arguments, "--strategy", "known-body", under=BACK).said
    assert [path.name for path in trial.folder.iterdir()] == ["kept"]


# folders that may not be written, files that may not be read


DENIED = ("Permission denied", "permissions", "not readable")


@pytest.mark.parametrize("command", first_of(WRITING, 1))
def test_a_folder_that_may_not_be_written(command: str, trial: Trial) -> None:
    out = trial.folder / "out"
    out.mkdir(mode=0o555)
    assert "out" in refused(trial.command(command, out="out", under=AS_ANYBODY), *DENIED)
    assert list(out.iterdir()) == []
    out.chmod(0o755)
    again = trial.command(command, out="out", under=AS_ANYBODY)
    assert again.code == 0, again.said
    assert [path.stem for path in out.iterdir()] == ["made"]


@pytest.mark.slow
@pytest.mark.parametrize("command", [*READING, "report", "train --resume"])
def test_a_run_that_may_not_be_written_can_be_read(command: str, trial: Trial) -> None:
    before, run = contents(trial.with_run()), trial.folder / "run"
    run.chmod(0o555)
    try:
        ended = trial.command(command, under=AS_ANYBODY)
    finally:
        run.chmod(0o755)
    assert ended.code == 0 if command in READING else refused(ended, *DENIED), ended.said
    assert contents(trial.folder) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        *(f"run/{name}" for name in ("config.json", "problem.safetensors", "checkpoint.json", "checkpoint-*", "")),
        *(f"toy/{name}" for name in ("problem.toml", "theory.r2n", "train.tsv", "test.tsv", "")),
    ],
)
def test_a_run_or_problem_that_may_not_be_read(path: str, trial: Trial) -> None:
    folder = trial.with_run()
    shutil.copytree(trial.given.toy, folder / "toy")
    denied = next(folder.glob(path))
    commands = (
        [["predict", "run", "liesIn(n5, north)"]] if path.startswith("run") else [["check", "toy"], ["train", "toy"]]
    )
    denied.chmod(0)
    try:
        for arguments in commands:
            refused(trial.run("r2n", *arguments, under=AS_ANYBODY), *DENIED)
    finally:
        denied.chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ground", "train"])
@pytest.mark.parametrize("more", [40, 200])
def test_what_is_too_large_for_the_memory_is_named_with_its_phase(command: str, more: int, trial: Trial) -> None:
    """All pairs of so many towns take gigabytes."""
    toy = write_toy_problem(trial.folder / "toy", epochs=3)
    with (toy / "theory.r2n").open("a") as theory, (toy / "train.tsv").open("a") as facts:
        theory.write("rule all: liesIn(x, z) & liesIn(y, w) -> liesIn(x, w)\n")
        facts.writelines(f"t{i}\tliesIn\tnorth\n" for i in range(3_000))
    options = ["--max-groundings", 10**9, "--strategy", "full"]
    if command == "train":
        options = ["--set", "grounding.max_groundings=1000000000", "--set", "grounding.strategy=full"]
    under = Conditions(more_memory=more * MEGABYTE)
    said = refused(trial.run("r2n", command, "toy", "--out", "made", *options, under=under), "memory")
    assert "phase" in said or "needs" in said, said
    assert "--memory" in said or "--set" in said or "strategy" in said, said
    check_whole(trial.folder)


@pytest.mark.slow
def test_without_memory_the_last_checkpoint_is_kept(trial: Trial) -> None:
    toy, little = write_toy_problem(trial.folder / "toy", epochs=3), trial.folder / "little"
    text = (toy / "problem.toml").read_text()
    (toy / "problem.toml").write_text(text.replace("dim = 8", "dim = 512"))  # a checkpoint of many megabytes
    work = ("train", toy, "run", 1)
    complete = trial.done(*work, at="plain")
    assert trial.run(*work, at="little", before=complete.operations - 8).code is None
    before = (little / "run" / "checkpoint.json").read_bytes()
    for more in (24, 32):
        under = Conditions(more_memory=more * MEGABYTE)
        ended = trial.run("r2n", "train", toy, "--out", "run", "--resume", at="little", under=under)
        refused(ended, *["memory"] * (ended.code is not None), codes=(1, None))  # None: a library in C gives up
        assert (little / "run" / "checkpoint.json").read_bytes() == before
        check_whole(little)
    trial.done(*work, at="little")
    assert of_training(little) == of_training(trial.folder / "plain")


# paths that cannot be


error_of = partial(invoke, code=2)


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_toy_problem(tmp_path / "toy", epochs=1)


def test_a_folder_that_cannot_be_made_or_read(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("n" * 300), Path("/proc/none/below")):
        for command in ("train", "ground"):
            assert "--out" in error_of(command, toy, "--out", path)
        error_of("datasets", "generate", path)
        error_of("check", path)
        error_of("evaluate", path)


@pytest.mark.parametrize("key", ["theory", "name"])
@pytest.mark.parametrize("part", ["train", "test"])
def test_a_nul_in_a_problem_file(key: str, part: str, toy: Path) -> None:
    path = toy / "problem.toml"
    text = path.read_text()
    for spoiled in (text.replace(f'"{part}.tsv"', f'"{part}\\u0000.tsv"'), f'{key} = "a\\u0000b"\n[facts]'):
        path.write_text(spoiled)
        assert "NUL" in error_of("check", toy)


@pytest.mark.slow
def test_a_name_that_is_too_long_or_a_path_still_has_a_folder_in_runs(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (toy / "problem.toml").read_text()
    for name in ("x" * 5_000, "../../outside", "[/]", ".."):
        (toy / "problem.toml").write_text(text.replace('name = "towns"', f'name = "{name}"'))
        invoke("train", toy, "--set", "model.dim=2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs", "toy"]
    assert len(list((tmp_path / "runs").iterdir())) == 4
