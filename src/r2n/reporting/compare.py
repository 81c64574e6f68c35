"""Runs compared: their settings, their metrics, and whether their results differ by more than chance."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from r2n.data.problem import Problem
from r2n.errors import ConfigError, counted
from r2n.evaluation.by_query import ByQuery, ClassifiedQueries, PairedTest, RankedQueries, compare_queries
from r2n.evaluation.ranking import EvaluationOptions, Filter
from r2n.evaluation.report import NOT_HELD_OUT, Report
from r2n.files import finite
from r2n.model.model import Model
from r2n.options import option_text
from r2n.progress import Progress, no_progress
from r2n.store.folder import RunConfig, RunFolder, flat_options, read_config

_LISTED_APART = frozenset({"name", "source", "options", "versions", "problem_sha256", "fingerprints", "seeds"})


@dataclass(frozen=True, eq=False)
class EvaluatedRun:
    """What a comparison keeps of a run: no network."""

    config: RunConfig
    problem: Problem
    reports: Mapping[str, Report]


@dataclass(frozen=True, slots=True)
class PairedTests:
    """The tests of a run against the first one on a split, or (`why_not`) why there are none."""

    run: str
    tests: tuple[PairedTest, ...] = ()
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class ComparedSplit:
    """A split: its protocol, each metric of each run (None where it has none), and the tests against the first run."""

    split: str
    protocol: str
    metrics: tuple[tuple[str, tuple[float | None, ...]], ...]
    tested: tuple[PairedTests, ...]


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
        """The number of tests."""
        return sum(len(part.tests) for split in self.splits for part in split.tested)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as one JSON document."""
        keys, runs, splits = ("run", "problem", "seed"), zip(self.runs, self.problems, self.seeds, strict=True), []
        for part in self.splits:
            tested = [{k: v for k, v in asdict(other).items() if k != "why_not" or v} for other in part.tested]
            document = {"split": part.split, "asked": part.protocol, "metrics": dict(part.metrics)}
            splits.append({**document, "against_the_first": tested})
        named = [dict(zip(keys, run, strict=True)) for run in runs]
        return finite({"runs": named, "differences": dict(self.differences), "splits": splits})


def compare(
    folders: Sequence[Path],
    *,
    splits: Sequence[str] | None = None,
    sample: int | None = None,
    seed: int = 0,
    device: str = "auto",
    progress: Progress = no_progress,
) -> Comparison:
    """Evaluate runs on some splits (default: all; `sample` ranked queries), and test each against the first."""
    check_runs(folders)
    runs, names = [], run_names(folders)
    for folder in folders:
        trained = Model.load(folder, device=device, progress=progress)
        queries, reports = trained.problem.queries, {}
        for split in (split for split in splits or () if split not in queries):
            hint = f"it has: {', '.join(queries) or 'none'}"
            raise ConfigError(f"the run in {folder} has no queries '{split}'", hint=hint)
        for split in splits or queries:
            part = sample if queries[split].truth.all() else None  # only a ranking is sampled
            reports[split] = trained.evaluate(split, progress, options=EvaluationOptions(sample=part, seed=seed))
        runs.append(EvaluatedRun(read_config(RunFolder(folder)), trained.problem, reports))
    return Comparison(
        names,
        tuple(run.config.name for run in runs),
        tuple(run.config.seed for run in runs),
        tuple(differences(runs)),
        tuple(_split(split, runs, names) for split in dict.fromkeys(split for run in runs for split in run.reports)),
    )


def check_runs(folders: Sequence[Path]) -> None:
    """Reject a folder that is no run, or a single run, before any work is done."""
    if len(folders) < 2:
        raise ConfigError("one run alone has nothing to be compared with", hint="r2n compare RUN RUN ...")
    for folder in folders:
        read_config(RunFolder(folder))


def run_names(folders: Sequence[Path]) -> tuple[str, ...]:
    """The names of the folders if they differ; else the paths as they were given, numbered if these are equal too."""
    names, paths = tuple(folder.resolve().name for folder in folders), tuple(map(str, folders))
    numbered = tuple(f"{i}: {path}" for i, path in enumerate(paths, start=1))
    return next(found for found in (names, paths, numbered) if len(set(found)) == len(folders))


def differences(runs: Sequence[EvaluatedRun]) -> list[tuple[str, tuple[str, ...]]]:
    """All settings that a result depends on and that differ between the runs, with the value of each."""
    columns = list[dict[str, str]]()
    for run in runs:
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
        found |= {key: option_text(value) for key, value in flat_options(config.options).items()}
        others = [field.name for field in fields(config) if field.name not in _LISTED_APART]
        found |= {name: option_text(getattr(config, name)) for name in others}
        found |= {"seed": option_text(config.seed), "networks": option_text(config.ensemble)}
        columns.append(found | {f"version of {name}": version for name, version in config.versions.items()})
    keys = dict.fromkeys(key for column in columns for key in column)
    rows = [(key, tuple(column.get(key, "none") for column in columns)) for key in keys]
    return [(key, values) for key, values in rows if len(set(values)) > 1]


def _split(split: str, runs: Sequence[EvaluatedRun], names: Sequence[str]) -> ComparedSplit:
    columns = [run.reports.get(split) for run in runs]
    reports = [report for report in columns if report is not None]
    protocol = reports[0].protocol
    queries = protocol.get("sample", counted(int(protocol["queries"]), "query", "queries"))
    nothing = next((f"; {report.nothing_to_rank}" for report in reports if report.nothing_to_rank), "")
    uses = dict.fromkeys(str(r.protocol[NOT_HELD_OUT]) for r in reports if NOT_HELD_OUT in r.protocol)
    metrics = dict.fromkeys(name for report in reports for name in report.metrics)
    return ComparedSplit(
        split,
        f"{protocol['task']} of {queries}{nothing}{''.join(f'; not held out: {use}' for use in uses)}",
        tuple((name, tuple(finite(r and r.metrics.get(name)) for r in columns)) for name in metrics),
        tuple(paired_tests(split, runs[0], run, name) for run, name in zip(runs[1:], names[1:], strict=True)),
    )


# tests of one run against another


def paired_tests(split: str, first: EvaluatedRun, other: EvaluatedRun, name: str) -> PairedTests:
    """The tests of a run against the first one, if both answered the same queries."""
    a, b = (run.reports[split].by_query if split in run.reports else None for run in (first, other))
    if a is None or b is None:
        return PairedTests(name, why_not=f"one of the two has no queries '{split}'")
    one, two = first.problem.knowledge.base.parts(a.atoms), other.problem.knowledge.base.parts(b.atoms)
    why_not = _why_not(first, other, a, b, one, two)
    if isinstance(a, RankedQueries) and not len(a.atoms):
        why_not = why_not or first.reports[split].nothing_to_rank
    if why_not:
        return PairedTests(name, why_not=why_not)
    if isinstance(a, ClassifiedQueries) and isinstance(b, ClassifiedQueries):  # in the order of the first run's
        index = {atom: i for i, atom in enumerate(two)}
        order = np.array([index[atom] for atom in one], np.int64)
        b = ClassifiedQueries(a.atoms, b.truth[order], b.logits[order])
    return PairedTests(name, tuple(compare_queries(a, b)))


_Names = list[tuple[str, tuple[str, ...]]]
"""Atoms by the names of their predicates and constants, which mean the same in all problems."""


def _why_not(first: EvaluatedRun, other: EvaluatedRun, a: ByQuery, b: ByQuery, one: _Names, two: _Names) -> str:
    """Why two runs cannot be tested on the queries of a split; empty if they can."""
    if set(one) != set(two):
        only = [counted(len(set(x) - set(y)), "atom") for x, y in ((one, two), (two, one))]
        return f"the queries are not the same: {only[0]} asked of the first run alone, {only[1]} of this one alone"
    if type(a) is not type(b):
        return "one of the two ranks these queries, the other classifies them"
    if isinstance(a, ClassifiedQueries) and isinstance(b, ClassifiedQueries):
        true = ({atom for atom, t in zip(atoms, part.truth, strict=True) if t} for atoms, part in ((one, a), (two, b)))
        changed = len(next(true) ^ next(true))
        return f"{counted(changed, 'query', 'queries')} have another truth" if changed else ""
    if first.config.fingerprints.get("language") != other.config.fingerprints.get("language"):
        return "the queries are ranked among other constants"
    if not np.array_equal(Filter.from_problem(first.problem).facts, Filter.from_problem(other.problem).facts):
        return "other atoms are known to be true, so that the candidates of the rankings differ"
    return ""
