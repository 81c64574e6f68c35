"""Run folders: what they say of themselves, and what is refused after a change."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from r2n.data.knowledge_base import Evidence
from r2n.data.problem import Problem
from r2n.errors import CheckpointError, ConfigError
from r2n.store.folder import (
    RunConfig,
    RunFolder,
    config_of,
    differences,
    digest,
    read_config,
    read_problem,
    write_config,
    write_run,
)
from tests.same_records import assert_same

OLD = """{
 "problem": "countries-s3",
 "name": "countries-s3",
 "fingerprint": "78be88bec8490a5c45c9fb104a400be59f754486d333695910fe83ce76be1483",
 "options": {"grounding": {"strategy": "full"}, "model": {"dim": 32}, "training": {"epochs": 300}},
 "encoders": [],
 "seed": 0,
 "versions": {"r2n": "0.1.0", "torch": "2.13.0+cpu", "python": "3.11.7"},
 "threads": 1
}"""


@pytest.fixture
def config(toy: Problem) -> RunConfig:
    return config_of(toy, toy.options, seed=7, threads=2, encoders=("town",))


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
    assert_same(read_problem(folder), toy)
    assert_same(read_problem(folder, config), toy)
    assert sorted(path.name for path in folder.path.iterdir()) == ["config.json", "problem.safetensors"]


def test_the_names_of_the_files(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    paths = (folder.config, folder.problem, folder.trace, folder.report)
    names = ["config.json", "problem.safetensors", "trace.jsonl", "report.json"]
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == names


def test_a_folder_is_whole_in_itself(folder: RunFolder, toy: Problem, config: RunConfig, tmp_path: Path) -> None:
    moved = RunFolder(tmp_path / "elsewhere")
    shutil.move(folder.path, moved.path)
    found = read_problem(moved)
    assert config_of(found, found.options, seed=7, threads=2, encoders=("town",)) == config


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


def test_an_old_run_is_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for text in (OLD, OLD.replace("{", '{"format": 1,', 1)):
        folder.config.write_text(text)
        message = rf"the run in {tmp_path} was made by an earlier version of r2n\n  train again"
        with pytest.raises(CheckpointError, match=message):
            read_config(folder)


def test_a_later_format_is_refused(folder: RunFolder) -> None:
    with pytest.raises(CheckpointError, match="has format 3, this r2n reads format 2"):
        read_config(rewritten(folder, format=3))


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


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 5_000])
def test_what_is_no_json_is_refused(content: bytes, folder: RunFolder) -> None:
    folder.config.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"config\.json is damaged: it is no JSON\n  copy the whole run folder"):
        read_config(folder)


def test_json_of_another_kind_is_refused(folder: RunFolder) -> None:
    folder.config.write_text("[]")
    with pytest.raises(CheckpointError, match="holds no configuration"):
        read_config(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": "7"}, "'seed' has the wrong type"),
        ({"seed": True}, "'seed' has the wrong type"),
        ({"threads": 1.5}, "'threads' has the wrong type"),
        ({"source": 3}, "'source' has the wrong type"),
        ({"encoders": "town"}, "'encoders' has the wrong type"),
        ({"encoders": [1]}, "a text was expected"),
        ({"versions": {"r2n": None}}, "a text was expected"),
        ({"options": {"model": {"depth": 2}}}, "validation error"),
        ({"extra": 1}, "'extra' is missing, or unknown here"),
    ],
)
def test_wrong_types_are_refused(changes: dict[str, Any], message: str, folder: RunFolder) -> None:
    with pytest.raises(CheckpointError, match=rf"written by another version of r2n: .*{message}"):
        read_config(rewritten(folder, **changes))


def flipped(content: bytes, dice: Random) -> bytes:
    damaged = bytearray(content)
    damaged[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    return bytes(damaged)


def test_a_flipped_byte_of_the_configuration_is_refused_or_changes_no_number(
    folder: RunFolder, config: RunConfig
) -> None:
    content, dice = folder.config.read_bytes(), Random(1)
    refused = 0
    for _ in range(300):
        folder.config.write_bytes(flipped(content, dice))
        try:
            assert replace(read_config(folder), versions=config.versions) == config
        except CheckpointError as error:
            refused += 1
            assert str(folder.path) in str(error)  # noqa: PT017
            assert error.hint  # noqa: PT017
    assert refused > 200, "the rest are blanks and versions"


def test_a_flipped_byte_or_a_missing_end_of_the_problem_is_refused(folder: RunFolder) -> None:
    content, dice = folder.problem.read_bytes(), Random(2)
    for _ in range(200):
        for damaged in (flipped(content, dice), content[: dice.randrange(len(content))]):
            folder.problem.write_bytes(damaged)
            with pytest.raises(
                CheckpointError, match=r"problem\.safetensors is damaged.*\n  copy the whole run folder"
            ):
                read_problem(folder)


def test_a_folder_without_its_problem_is_refused(folder: RunFolder) -> None:
    folder.problem.unlink()
    with pytest.raises(CheckpointError, match=r"is not whole: problem\.safetensors cannot be read: No such file"):
        read_problem(folder)


def test_a_folder_that_cannot_be_written_or_read(toy: Problem, config: RunConfig, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "run", tmp_path / ("x" * 300), Path("a\0b")):
        with pytest.raises(ConfigError, match=r"cannot be written: .*\n  give another --out"):
            write_config(RunFolder(path), config)
    (tmp_path / "config.json").mkdir()
    with pytest.raises(
        CheckpointError, match=r"config\.json cannot be read: Is a directory\n  copy the whole run folder"
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
    now = config_of(problem, options, seed=8, threads=1, device="cuda")
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


def test_where_a_problem_lies_and_versions_are_no_difference(toy: Problem, config: RunConfig) -> None:
    moved = config_of(replace(toy, source="elsewhere"), toy.options, seed=7, threads=2, encoders=("town",))
    assert differences(config, replace(moved, versions={})) == []
