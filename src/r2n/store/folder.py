"""A model as a folder: complete in itself, with one checksum of all that its numbers depend on."""

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pydantic.dataclasses
from pydantic import ConfigDict, TypeAdapter, ValidationError

from r2n.data.problem import Problem
from r2n.errors import CheckpointError, ConfigError, refusing
from r2n.files import read_file, write_atomically
from r2n.options import Options
from r2n.store.stored_problem import (
    REMOVED_OPTIONS,
    WHAT_TO_DO,
    problem_bytes,
    problem_fingerprints,
    problem_from_bytes,
    split_removed,
)

FORMAT = 2
CONFIG, PROBLEM, TRACE, REPORT = "config.json", "problem.safetensors", "trace.jsonl", "report.json"
CALIBRATION = "calibration.json"
LONGEST_NAME = 60
_NO_NUMBER_DEPENDS_ON = ("sha256", "versions")


class _File:
    """A file of a run folder, by its name there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: "RunFolder", owner: type | None = None) -> Path:
        return folder.path / self.name


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, and where its files are."""

    path: Path
    config = _File(CONFIG)  # how the run was made
    problem = _File(PROBLEM)  # with everything that was read for it
    trace = _File(TRACE)  # one line an epoch; each network of an ensemble has its own: `networks`
    report = _File(REPORT)  # how good it is
    calibration = _File(CALIBRATION)  # how its logits become probabilities

    @property
    def without_reasoning(self) -> "RunFolder":
        """A run with the same input layer and no rules, to compare with; not there until it is trained to its end."""
        return RunFolder(self.path / "without-reasoning")

    @property
    def traces(self) -> tuple[Path, ...]:
        """The trace of each network that has begun."""
        found = sorted(self.path.glob(f"seed-*/{TRACE}"), key=lambda path: (len(path.parent.name), path))
        return (self.trace,) if self.trace.exists() else tuple(found)

    def networks(self, seeds: range) -> "tuple[RunFolder, ...]":
        """Where each network has its trace and its checkpoint: here, or in a folder for each of an ensemble."""
        return (self,) if len(seeds) == 1 else tuple(RunFolder(self.path / f"seed-{seed}") for seed in seeds)


@pydantic.dataclasses.dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class RunConfig:
    """All that distinguishes a run from another, as `config.json` holds it.

    `name` and `source` are the problem's; `encoders` are the domains whose features go through modules of the caller.
    `fingerprints` has a digest for each part of the problem, so that a difference can be named. `seed` is that of the
    first of `ensemble` networks. `removed` are options that an earlier version wrote, by section: the digest has them.
    """

    name: str
    source: str | None
    options: Options
    seed: int
    encoders: tuple[str, ...]
    device: str
    threads: int
    versions: Mapping[str, str]
    problem_sha256: str
    fingerprints: Mapping[str, str]
    ensemble: int = 1
    removed: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def seeds(self) -> range:
        """The seed of each network."""
        return range(self.seed, self.seed + self.ensemble)

    @property
    def digest(self) -> str:
        """The one checksum over all that the numbers of the run depend on."""
        return digest(_document(self))


def usual_folder(name: str, seed: int) -> Path:
    """Where a run goes if nobody says: runs/NAME-SEED, the name without what a path or a file system may not have."""
    plain = re.sub(r"[^\w.-]+", "_", name)[:LONGEST_NAME].strip(".") or "run"
    return Path("runs") / f"{plain}-{seed}"


def config_of(
    problem: Problem,
    options: Options,
    *,
    seed: int,
    threads: int,
    encoders: tuple[str, ...] = (),
    device: str = "cpu",
    ensemble: int = 1,
) -> RunConfig:
    """The configuration of a run of this process on a problem."""
    return RunConfig(
        problem.name,
        problem.source,
        options,
        seed,
        encoders,
        device,
        threads,
        {"r2n": version("r2n"), "torch": version("torch"), "python": platform.python_version()},
        hashlib.sha256(problem_bytes(problem)).hexdigest(),
        problem_fingerprints(problem),
        ensemble,
    )


def write_run(folder: RunFolder, problem: Problem, config: RunConfig) -> None:
    """Begin a run folder: the problem, and then the configuration, by which the folder holds a run."""
    document = _document(config)
    document["sha256"] = digest(document)
    for path, content in (
        (folder.problem, problem_bytes(problem)),
        (folder.config, json.dumps(document, indent=1).encode()),
    ):
        with refusing(f"{str(path)!r} cannot be written", "give another --out"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)


def _document(config: RunConfig) -> dict[str, Any]:
    """The configuration as JSON holds it; a run of one network says nothing of others."""
    document = {"format": FORMAT, **asdict(config), "options": config.options.model_dump(mode="json")}
    for section, removed in document.pop("removed").items():
        document["options"][section] |= removed
    if config.ensemble == 1:
        del document["ensemble"]
    return document


def digest(document: Mapping[str, Any]) -> str:
    """Of the document as JSON in one form, without the keys that no number depends on."""
    kept = {key: value for key, value in document.items() if key not in _NO_NUMBER_DEPENDS_ON}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_config(folder: RunFolder) -> RunConfig:
    """The configuration of the run in a folder, as it was when the run began."""
    path, again = folder.config, "train again in another folder"
    try:
        document = json.loads(read_file(path))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(f"{folder.path} holds no run", hint="a run is made by: r2n train P --out DIR") from error
    except OSError as error:
        hint = "see to its permissions" if isinstance(error, PermissionError) else WHAT_TO_DO
        raise CheckpointError(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    except (ValueError, RecursionError) as error:
        if "\0" in str(path):  # no system takes it
            raise ConfigError(f"{str(folder.path)!r} is no folder: {error}") from error
        raise CheckpointError(f"{path} is damaged: it is no JSON", hint=WHAT_TO_DO) from error
    if not isinstance(document, dict):
        raise CheckpointError(f"{path} is damaged: it holds no configuration", hint=WHAT_TO_DO)
    found = document.get("format")
    if found in (None, 1):
        raise CheckpointError(f"the run in {folder.path} was made by an earlier version of r2n", hint=again)
    if found != FORMAT:
        what = f"{path} has format {found!r}, this r2n reads format {FORMAT}"
        raise CheckpointError(what, hint=f"use the r2n that made the run, or {again}")
    if document.get("sha256") != digest(document):
        what = f"{path} was changed after the run began: its checksum is wrong"
        raise CheckpointError(what, hint=f"undo the change, or {again}")
    return _validated(document, folder)


def _validated(document: dict[str, Any], folder: RunFolder) -> RunConfig:
    """The configuration in a document of this format; what this version cannot read is refused."""
    values = {key: value for key, value in document.items() if key not in ("format", "sha256")}
    values["options"], removed = split_removed(values.get("options"))
    values_now = [(name, key, value) for name, part in removed.items() for key, value in part.items()]
    for name, key, value in values_now:
        if value == REMOVED_OPTIONS[name][key]:
            continue
        what = f"the run in {folder.path} has {name}.{key} = {json.dumps(value)}, which r2n has no more"
        raise CheckpointError(what, hint="use the r2n that made the run, or train again in another folder")
    try:
        return replace(TypeAdapter(RunConfig).validate_json(json.dumps(values)), removed=removed)
    except ValidationError as error:
        first = error.errors()[0]
        what = f"'{'.'.join(map(str, first['loc']))}': {first['msg'][0].lower()}{first['msg'][1:]}"
        hint = "use that one, or train again"
        raise CheckpointError(f"{folder.config} was written by another version of r2n: {what}", hint=hint) from error


def read_problem(folder: RunFolder, config: RunConfig) -> Problem:
    """The problem of the run in a folder, checked against its configuration."""
    return problem_from_bytes(checked_problem(folder, config), folder.problem)


def checked_problem(folder: RunFolder, config: RunConfig) -> bytes:
    """The file of the problem; refused if it is not the one that the configuration names."""
    try:
        content = read_file(folder.problem)
    except OSError as error:
        what = f"the run folder {folder.path} is not whole: {PROBLEM} cannot be read: {error.strerror}"
        raise CheckpointError(what, hint=WHAT_TO_DO) from error
    if hashlib.sha256(content).hexdigest() != config.problem_sha256:
        what = f"{folder.problem} is damaged, or was changed after the run began: its checksum is wrong"
        raise CheckpointError(what, hint=WHAT_TO_DO)
    return content


def flat_options(options: Options) -> dict[str, Any]:
    """Each option by its key (`model.dim`), as JSON has it."""
    sections = options.model_dump(mode="json")
    return {f"{section}.{name}": value for section, part in sections.items() for name, value in part.items()}


def differences(kept: RunConfig, now: RunConfig) -> list[str]:
    """What a result depends on and is not as it was, each by its name; versions and the source are left out."""
    parts = {**kept.fingerprints, **now.fingerprints}
    found = [f"the {part}" for part in parts if kept.fingerprints.get(part) != now.fingerprints.get(part)]
    before, after = (
        {f"options.{key}": value for key, value in flat_options(config.options).items()}
        | {key: getattr(config, key) for key in ("seed", "ensemble", "encoders", "device", "threads")}
        for config in (kept, now)
    )
    return found + [
        f"{key}: {_shown(before.get(key))}, now {_shown(after.get(key))}"
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]


def _shown(value: Any) -> str:
    return "none" if value is None or value == () else json.dumps(value)
