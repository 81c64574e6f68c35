"""Run folders: what they say of themselves, what is refused after a change, and who may write."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from r2n.data.knowledge_base import Evidence, as_trained
from r2n.data.problem import Problem
from r2n.errors import CheckpointError, ConfigError
from r2n.grounding.full import KnownBodyGrounder
from r2n.grounding.store import MemoryBudget
from r2n.model.memory import make_device, make_source
from r2n.network.graph_sources import Counted, GroundedOnDemand, Ungrounded
from r2n.options import GroundingOptions, Options
from r2n.store import checkpoint
from r2n.store.checkpoint import LOCK, locked
from r2n.store.folder import (
    RunConfig,
    RunFolder,
    config_of,
    differences,
    digest,
    read_config,
    read_problem,
    write_run,
)
from tests.same_records import assert_same


@pytest.fixture
def config(toy: Problem) -> RunConfig:
    return config_of(toy, toy.options, 7, 2, ("town",), "cpu", 1)


@pytest.fixture
def folder(toy: Problem, config: RunConfig, tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "some" / "run")
    write_run(made, toy, config)
    return made


def rewritten(folder: RunFolder, **changes: Any) -> RunFolder:
    """Changed by somebody who knows the checksum."""
    document = json.loads(folder.config.read_bytes()) | changes
    document["sha256"] = digest(document)
    folder.config.write_text(json.dumps(document))
    return folder


def test_what_is_written_is_read(folder: RunFolder, config: RunConfig, toy: Problem) -> None:
    assert read_config(folder) == config
    assert_same(read_problem(folder, config), toy)
    assert sorted(path.name for path in folder.path.iterdir()) == ["config.json", "problem.safetensors"]


def test_the_configuration_says_what_made_the_run(folder: RunFolder, toy: Problem) -> None:
    document = json.loads(folder.config.read_bytes())
    assert next(iter(document)) == "format"
    assert document["format"] == 2
    assert document["name"] == "towns"
    assert document["source"] == toy.source
    assert document["options"] == toy.options.model_dump(mode="json")
    assert document["versions"].keys() == {"r2n", "torch", "python"}
    assert list(document["fingerprints"]) == ["theory", "language", "evidence", "features", "candidates", "queries"]


def test_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "gone", tmp_path / "file"):
        with pytest.raises(ConfigError, match=r"holds no run\n  a run is made by: r2n train P --out DIR"):
            read_config(RunFolder(path))
    with pytest.raises(ConfigError, match=r"'a\\x00b' is no folder"):
        read_config(RunFolder(Path("a\0b")))


@pytest.mark.parametrize(("old", "new"), [('"dim": 8', '"dim": 9'), ('"seed": 7', '"seed": 8'), ('"mean"', '"sum"')])
def test_an_edited_configuration_is_refused(old: str, new: str, folder: RunFolder) -> None:
    text = folder.config.read_text()
    assert old in text
    folder.config.write_text(text.replace(old, new))
    message = r"config\.json was changed after the run began: its checksum is wrong\n  undo the change, or train again"
    with pytest.raises(CheckpointError, match=message):
        read_config(folder)


def test_layout_and_versions_may_be_edited(folder: RunFolder, config: RunConfig) -> None:
    document = json.loads(folder.config.read_bytes())
    document["versions"]["torch"] = "another"
    folder.config.write_text(json.dumps(document, sort_keys=True))
    assert read_config(folder) == replace(config, versions={**config.versions, "torch": "another"})


EARLIER = "was made by an earlier version of r2n\n  train again"
NO_JSON = r"config\.json is damaged: it is no JSON\n  copy the full run folder"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"name": "countries-s3", "seed": 0}', EARLIER),
        (b'{"format": 1, "name": "countries-s3"}', EARLIER),
        (b'{"format": 3}', "has format 3, this r2n reads format 2"),
        (b"[]", "holds no configuration"),
        *((content, NO_JSON) for content in (b"", b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 5_000)),
    ],
)
def test_a_file_of_another_version_or_of_something_else_is_refused(
    content: bytes, message: str, folder: RunFolder
) -> None:
    folder.config.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        read_config(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": "7"}, "'seed': input should be a valid integer"),
        ({"seed": True}, "'seed': input should be a valid integer"),
        ({"threads": 1.5}, "'threads': input should be a valid integer"),
        ({"source": 3}, "'source': input should be a valid string"),
        ({"encoders": "town"}, "'encoders': input should be a valid array"),
        ({"encoders": [1]}, r"'encoders\.0': input should be a valid string"),
        ({"versions": {"r2n": None}}, r"'versions\.r2n': input should be a valid string"),
        ({"options": {"model": {"depth": 2}}}, r"'options\.model\.depth': extra inputs are not permitted"),
        ({"extra": 1}, "'extra': unexpected keyword argument"),
    ],
)
def test_wrong_types_are_refused(changes: dict[str, Any], message: str, folder: RunFolder) -> None:
    with pytest.raises(CheckpointError, match=rf"written by another version of r2n: .*{message}"):
        read_config(rewritten(folder, **changes))


def flipped(content: bytes, dice: Random) -> bytes:
    damaged = bytearray(content)
    damaged[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    return bytes(damaged)


def test_a_flipped_byte_or_a_missing_end_of_the_problem_is_refused(folder: RunFolder, config: RunConfig) -> None:
    content, dice = folder.problem.read_bytes(), Random(2)
    for _ in range(40):
        for damaged in (flipped(content, dice), content[: dice.randrange(len(content))]):
            folder.problem.write_bytes(damaged)
            with pytest.raises(CheckpointError, match=r"problem\.safetensors is damaged.*\n  copy the full run folder"):
                read_problem(folder, config)


def test_a_folder_without_its_problem_is_refused(folder: RunFolder, config: RunConfig) -> None:
    folder.problem.unlink()
    with pytest.raises(CheckpointError, match=r"is incomplete: problem\.safetensors cannot be read: No such file"):
        read_problem(folder, config)


def test_a_folder_that_cannot_be_written_or_read(toy: Problem, config: RunConfig, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "run", tmp_path / ("x" * 300), Path("a\0b")):
        with pytest.raises(ConfigError, match=r"cannot be written: .*\n  give another --out"):
            write_run(RunFolder(path), toy, config)
    (tmp_path / "config.json").mkdir()
    with pytest.raises(
        CheckpointError, match=r"config\.json cannot be read: Is a directory\n  copy the full run folder"
    ):
        read_config(RunFolder(tmp_path))


def test_the_problem_is_written_before_the_configuration(
    toy: Problem, config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr("r2n.store.folder.write_atomically", lambda path, content: written.append(path.name))
    write_run(RunFolder(tmp_path), toy, config)
    assert written == ["problem.safetensors", "config.json"]


def test_differences_are_named(toy: Problem, config: RunConfig) -> None:
    assert differences(config, config) == []
    options = toy.options.changed(["model.layers=2", "training.patience=3", "model.aggregation=sum"])
    queries = {name: Evidence(part.atoms, ~part.truth) for name, part in toy.queries.items()}
    evidence = Evidence(toy.train.atoms[1:], toy.train.truth[1:])
    problem = replace(toy, queries=queries, knowledge=replace(toy.knowledge, evidence=evidence))
    now = config_of(problem, options, 8, 1, (), "cuda", 1)
    assert differences(config, now) == [
        "the evidence",
        "the queries",
        "options.model.layers: 1, now 2",
        'options.model.aggregation: "mean", now "sum"',
        "options.training.patience: none, now 3",
        "seed: 7, now 8",
        'encoders: ["town"], now none',
        'device: "cpu", now "cuda"',
        "threads: 2, now 1",
    ]
    moved = config_of(replace(toy, source="elsewhere"), toy.options, 7, 2, ("town",), "cpu", 1)
    assert differences(config, replace(moved, versions={})) == [], "nor is it a difference where a problem lies"


HOLD = """
import fcntl, os, sys, time
with open(sys.argv[1], "w") as file:  # as `locked` does, without its imports
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write(str(os.getpid()))
    file.flush()
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_one_is_refused_while_the_first_trains(tmp_path: Path) -> None:
    with locked(tmp_path):
        with pytest.raises(ConfigError, match=rf"another process \({os.getpid()}\) is at work in .*\n  wait") as caught:
            locked(tmp_path).__enter__()
        assert str(tmp_path) in str(caught.value)
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_killed_process_blocks_nobody(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path / LOCK)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(ConfigError, match=rf"another process \({process.pid}\)"), locked(tmp_path):
            pass
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_lock_on_a_file_that_is_gone_or_replaced_is_none(
    is_replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, calls = fcntl.flock, []

    def slow(descriptor: int, how: int) -> None:
        if not calls:
            (tmp_path / LOCK).unlink()  # the process that held it has ended
            if is_replaced:
                (tmp_path / LOCK).touch()  # and the next one has made a file of its own
        calls.append(descriptor)
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", slow)
    with locked(tmp_path), pytest.raises(ConfigError), locked(tmp_path):
        pass
    assert len(calls) == 3
    assert list(tmp_path.iterdir()) == []


def refuse(number: int) -> Callable[..., None]:
    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return flock


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_where_there_are_no_locks_training_goes_on(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fcntl.flock", refuse(number))
    with locked(tmp_path), locked(tmp_path), locked(tmp_path / "gone"):
        pass
    monkeypatch.setattr(checkpoint, "fcntl", None)
    with locked(tmp_path), locked(tmp_path):
        pass


def test_a_network_that_reads_no_rules_grounds_none(toy: Problem) -> None:
    def source(*changes: str) -> object:
        return make_source(toy.knowledge, Options().changed(changes))

    assert isinstance(source("model.reasoner=none"), Ungrounded)
    assert isinstance(source("model.layers=0"), Ungrounded)
    t_norm = Options().changed(["model.layers=0", "training.regularisation=product"])
    assert isinstance(make_source(toy.knowledge, t_norm), Ungrounded), "to be asked, it needs no rule"
    assert isinstance(make_source(toy.knowledge, t_norm, to_train=True), GroundedOnDemand)
    known_body = source("grounding.strategy=known-body")
    assert isinstance(known_body, GroundedOnDemand)
    assert isinstance(known_body.grounder, KnownBodyGrounder)


def test_grounding_and_counting_keep_to_the_memory_that_is_allowed(toy: Problem) -> None:
    layered = make_source(toy.knowledge, Options(), memory=10**9)
    counted = make_source(
        toy.knowledge, Options().changed(["model.rules=counted", "grounding.max_groundings=7000"]), memory=10**8
    )
    assert isinstance(layered, GroundedOnDemand)
    assert isinstance(counted, Counted)
    assert (layered.store.ceiling, counted.store.ceiling) == (MemoryBudget(10**9), MemoryBudget(10**8))
    assert counted.max_groundings == 7000
    by_default = make_source(toy.knowledge, Options())
    assert isinstance(by_default, GroundedOnDemand)
    assert (by_default.store.ceiling.most or 0) > 10**6


def test_reciprocals_are_part_of_the_training_language_alone(toy: Problem) -> None:
    plain, both = (as_trained(toy.knowledge, GroundingOptions(reciprocal=wanted)) for wanted in (False, True))
    assert plain is toy.knowledge
    assert len(both.language.predicates) == 2 * len(plain.language.predicates)


def test_the_device_is_the_one_that_is_named_or_refused() -> None:
    assert make_device("cpu") == torch.device("cpu")
    assert make_device().type in ("cpu", "cuda", "mps")
    for name, is_there in (("cuda", torch.cuda.is_available()), ("mps", torch.backends.mps.is_available())):
        if not is_there:
            with pytest.raises(ConfigError, match=f"there is no device '{name}' here"):
                make_device(name)
