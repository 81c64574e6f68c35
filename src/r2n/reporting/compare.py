"""Runs -> pages: runs side by side: what differs between them, their metrics, and whether by more than chance."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from math import isnan
from pathlib import Path
from typing import Any

from r2n.errors import ConfigError, counted
from r2n.evaluation.ranking import EvaluationOptions
from r2n.evaluation.report import NOT_HELD_OUT, Report
from r2n.files import finite
from r2n.model.model import Model
from r2n.progress import Progress, no_progress
from r2n.reporting.against import Against, ComparedRun, against
from r2n.reporting.overview import option_text
from r2n.store.folder import RunFolder, read_config

_TOLD_APART = frozenset({"name", "source", "options", "versions", "problem_sha256", "fingerprints", "seeds"})


@dataclass(frozen=True, slots=True)
class ComparedSplit:
    """A split: each metric of each run (None where it has none), how they were asked, and the tests."""

    split: str
    asked: str
    metrics: tuple[tuple[str, tuple[float | None, ...]], ...]
    against: tuple[Against, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs side by side; `differences` has a value for each run."""

    runs: tuple[str, ...]
    problems: tuple[str, ...]
    seeds: tuple[int, ...]
    differences: tuple[tuple[str, tuple[str, ...]], ...]
    splits: tuple[ComparedSplit, ...]

    @property
    def tests(self) -> int:
        """How many there are."""
        return sum(len(part.tests) for split in self.splits for part in split.against)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as one JSON document."""
        runs = zip(self.runs, self.problems, self.seeds, strict=True)
        document = {
            "runs": [{"run": run, "problem": problem, "seed": seed} for run, problem, seed in runs],
            "differences": {key: list(values) for key, values in self.differences},
            "splits": [
                {
                    "split": part.split,
                    "asked": part.asked,
                    "metrics": {name: list(values) for name, values in part.metrics},
                    "against_the_first": [_against_record(other) for other in part.against],
                }
                for part in self.splits
            ],
        }
        return finite(document)


def _against_record(other: Against) -> dict[str, Any]:
    return {
        "run": other.run,
        "tests": [asdict(test) for test in other.tests],
        **({"why_not": other.why_not} if other.why_not else {}),
    }


def compare(
    folders: Sequence[Path],
    *,
    splits: Sequence[str] | None = None,
    sample: int | None = None,
    seed: int = 0,
    device: str = "auto",
    progress: Progress = no_progress,
) -> Comparison:
    """The runs in some folders side by side, on some splits (by default all), each tested against the first.

    `sample`: rankings ask so many queries, drawn by `seed`, the same for all runs.
    """
    check_runs(folders)
    runs = [_asked(folder, splits, sample, seed, device, progress) for folder in folders]
    names = run_names(folders)
    found = list(dict.fromkeys(split for run in runs for split in run.reports))
    return Comparison(
        names,
        tuple(run.config.name for run in runs),
        tuple(run.config.seed for run in runs),
        tuple(differences(runs)),
        tuple(_split(split, runs, names) for split in found),
    )


def check_runs(folders: Sequence[Path]) -> None:
    """Refuse what is no run, or one run alone, before any work is done."""
    if len(folders) < 2:
        raise ConfigError("one run alone has nothing to be compared with", hint="r2n compare RUN RUN ...")
    for folder in folders:
        read_config(RunFolder(folder))


def run_names(folders: Sequence[Path]) -> tuple[str, ...]:
    """The names of the folders, where these tell them apart; else the paths as they were given."""
    names = tuple(folder.resolve().name for folder in folders)
    if len(set(names)) == len(names):
        return names
    paths = tuple(str(folder) for folder in folders)
    return paths if len(set(paths)) == len(paths) else tuple(f"{i}: {path}" for i, path in enumerate(paths, start=1))


def _asked(
    folder: Path, splits: Sequence[str] | None, sample: int | None, seed: int, device: str, progress: Progress
) -> ComparedRun:
    trained = Model.load(folder, device=device, progress=progress)
    queries = trained.problem.queries
    unknown = [split for split in splits or () if split not in queries]
    if unknown:
        raise ConfigError(
            f"the run in {folder} has no queries '{unknown[0]}'", hint=f"it has: {', '.join(queries) or 'none'}"
        )
    reports = {}
    for split in splits or queries:
        part = sample if queries[split].truth.all() else None  # only a ranking is sampled
        reports[split] = trained.evaluate(split, progress, options=EvaluationOptions(sample=part, seed=seed))
    return ComparedRun(folder, read_config(RunFolder(folder)), trained.problem, reports)


def differences(runs: Sequence[ComparedRun]) -> list[tuple[str, tuple[str, ...]]]:
    """All that a result depends on and is not the same for all runs, with the value of each."""
    columns = [_settings(run) for run in runs]
    keys = dict.fromkeys(key for column in columns for key in column)
    rows = [(key, tuple(column.get(key, "none") for column in columns)) for key in keys]
    return [(key, values) for key, values in rows if len(set(values)) > 1]


def _settings(run: ComparedRun) -> dict[str, str]:
    config, knowledge = run.config, run.problem.knowledge
    sizes = {
        "theory": counted(len(knowledge.theory.rules), "rule"),
        "language": counted(len(knowledge.language.constants), "constant"),
        "evidence": counted(len(knowledge.evidence), "known atom"),
        "queries": counted(sum(map(len, run.problem.queries.values())), "query", "queries"),
    }
    found = {"problem": config.name}
    for part, digest in config.fingerprints.items():
        found[part] = f"{sizes[part]} ({digest[:8]})" if part in sizes else digest[:8]
    for section, values in config.options.model_dump(mode="json").items():
        found |= {f"{section}.{key}": option_text(value) for key, value in values.items()}
    others = [field.name for field in fields(config) if field.name not in _TOLD_APART]
    found |= {name: option_text(getattr(config, name)) for name in others}
    found |= {"seed": option_text(config.seed), "networks": option_text(config.ensemble)}
    return found | {f"version of {name}": version for name, version in config.versions.items()}


def _split(split: str, runs: Sequence[ComparedRun], names: Sequence[str]) -> ComparedSplit:
    reports = [run.reports.get(split) for run in runs]
    metrics = dict.fromkeys(name for report in reports if report is not None for name in report.metrics)
    protocol = next(report.protocol for report in reports if report is not None)
    queries = protocol.get("sample", counted(int(protocol["queries"]), "query", "queries"))
    nothing = next((f"; {report.nothing_to_rank}" for report in reports if report and report.nothing_to_rank), "")
    uses = dict.fromkeys(
        str(report.protocol[NOT_HELD_OUT]) for report in reports if report and NOT_HELD_OUT in report.protocol
    )
    return ComparedSplit(
        split,
        f"{protocol['task']} of {queries}{nothing}{''.join(f'; not held out: {use}' for use in uses)}",
        tuple((name, tuple(_defined(report, name) for report in reports)) for name in metrics),
        tuple(against(split, runs[0], run, name) for run, name in zip(runs[1:], names[1:], strict=True)),
    )


def _defined(report: Report | None, metric: str) -> float | None:
    """A metric of a run, where it was asked and something defines it."""
    value = None if report is None else report.metrics.get(metric)
    return None if value is None or isnan(value) else value
