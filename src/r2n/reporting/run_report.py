"""The report of a run: its training data, results, curves, rules, example answers, cost and options, as records.

A part that is None or empty is left out of the page.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any, Literal

import numpy as np

from r2n.data.herbrand import Codes
from r2n.errors import R2NError, counted
from r2n.evaluation import by_query
from r2n.evaluation.report import NOT_HELD_OUT, REASONING_HARMS, Report
from r2n.explanation.rules import RuleReport
from r2n.files import read_file
from r2n.model.model import Model
from r2n.model.rule_report import rule_report
from r2n.options import Options, option_text
from r2n.reporting.answers import AnswerGroup, example_answers
from r2n.reporting.profiling import PhaseCost
from r2n.store.folder import RunConfig, RunFolder, flat_options, read_config
from r2n.store.trace import read_trace

EXPLAINED_SPLIT = "test"
MOST_LISTED = 300  # rules, and predicates
MOST_RULES = 20  # in the table of effects: each costs passes over the ground rules
MANY_RULES = 300  # with more rules a pass takes long, so fewer rules and answers are examined
FEW_OF_MANY, EXPLAINED_OF_MANY = 5, 2
LOSSES, LOSSES_IF_USED = ("loss", "supervised", "semantic"), ("regularisation", "rules")
OF_EACH_NETWORK = ("loss", "valid")


@dataclass(frozen=True, slots=True)
class Curve:
    """A number over the epochs; curves of one panel share a pair of axes. NaN leaves a gap."""

    name: str
    epochs: tuple[int, ...]
    values: tuple[float, ...]
    panel: str = "loss"


@dataclass(frozen=True, slots=True)
class PredicateSummary:
    """A predicate: its domains, and the numbers of its true and false known atoms and of its queries."""

    name: str
    domains: tuple[str, ...]
    is_closed: bool
    true: int
    false: int
    queries: int


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The problem and the training: `facts` are texts with headings, `more_rules` counts rules that are not listed."""

    problem: str
    facts: tuple[tuple[str, str], ...]
    domains: tuple[tuple[str, int], ...] = ()
    predicates: tuple[PredicateSummary, ...] = ()
    rules: tuple[str, ...] = ()
    more_rules: int = 0


@dataclass(frozen=True, slots=True)
class SplitResult:
    """The report on a split, and its precision-recall curves or rank counts, that of all predicates first."""

    report: Report
    precision_recall: tuple[by_query.PrecisionRecall, ...] = ()
    ranks: tuple[by_query.RankCounts, ...] = ()


@dataclass(frozen=True, slots=True)
class OptionValue:
    """An option, its default, where its value comes from, and the reason if it was chosen."""

    key: str
    value: str
    default: str
    origin: Literal["default", "set", "chosen"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The content of a run's page; `networks` has the curves of each network, `figures` the most important numbers."""

    trained_on: TrainingData
    results: tuple[SplitResult, ...] = ()
    networks: tuple[tuple[Curve, ...], ...] = ()
    rules: RuleReport | None = None
    answers: tuple[AnswerGroup, ...] = ()
    phases: tuple[PhaseCost, ...] = ()
    options: tuple[OptionValue, ...] = ()
    notes: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Training:
    """A training's epochs, the cost of each phase, and the reason for each option that nobody set, by its key."""

    epochs: int | None = None
    phases: tuple[PhaseCost, ...] = ()
    chosen: Mapping[str, str] | None = None


def build_report(
    folder: Path, trained: Model, reports: Sequence[Report], training: Training, *, is_full: bool = True
) -> RunReport:
    """The report of the run in a folder, given the reports on its queries.

    Without `is_full` it has no rules and no answers, which take the most time. A part that fails is left out, and a
    note says why.
    """
    config, base = read_config(RunFolder(folder)), trained.problem.knowledge.base
    results = [SplitResult(report) for report in reports]
    for i, queries in enumerate(report.by_query for report in reports):
        if isinstance(queries, by_query.ClassifiedQueries):
            results[i] = SplitResult(reports[i], precision_recall=tuple(by_query.precision_recall(queries, base)))
        elif queries is not None:
            results[i] = SplitResult(reports[i], ranks=tuple(by_query.rank_counts(queries, base)))
    notes = [str(report.protocol[REASONING_HARMS]) for report in reports if REASONING_HARMS in report.protocol]
    found = {report.split: report.by_query for report in reports}
    queries = found.get(EXPLAINED_SPLIT, next(reversed(found.values()), None))  # or the last split
    rules = len(trained.problem.knowledge.theory.rules)
    shown, most = (FEW_OF_MANY, EXPLAINED_OF_MANY) if rules > MANY_RULES else (MOST_RULES, None)
    parts: dict[str, Callable[[], Any]] = {"rules": lambda: rule_report(trained, most=shown)} if rules else {}
    if queries is not None:
        parts["answers"] = lambda: example_answers(trained, queries, notes, most)
    slow: dict[str, Any] = {}
    for name, make in parts.items() if is_full else ():
        try:
            slow[name] = make()
        except Exception as error:
            why = error.what if isinstance(error, R2NError) else f"{type(error).__name__}: {error}"
            notes.append(f"the {name} are not shown: {why}")
    return RunReport(
        training_data(trained, config, training.epochs),
        tuple(results),
        tuple(tuple(training_curves(trace)) for trace in RunFolder(folder).traces),
        phases=training.phases,
        options=option_values(config.options, training.chosen or {}),
        notes=tuple(notes),
        figures=figures(reports, training.phases),
        **slow,
    )


# curves


def training_curves(trace: Path) -> list[Curve]:
    """The losses over the epochs of a trace, and the validation metric where it was measured."""
    records = read_trace(trace)
    names = [*LOSSES, *(name for name in LOSSES_IF_USED if any(record.get(name) for record in records))]
    epochs = tuple(record["number"] for record in records)
    curves = [Curve(name, epochs, tuple(record[name] for record in records)) for name in names]
    validated = [(record["number"], record["valid"]) for record in records if record["valid"] is not None]
    if validated:
        numbers, values = zip(*validated, strict=True)
        curves.append(Curve("valid", numbers, values, panel="validation"))
    return curves


def shown_curves(networks: Sequence[Sequence[Curve]]) -> list[Curve]:
    """The curves of one network, or the loss and the validation metric of each of several, with its number."""
    if len(networks) == 1:
        return list(networks[0])
    return [
        replace(curve, name=f"{curve.name} {i}")
        for i, curves in enumerate(networks, start=1)
        for curve in curves
        if curve.name in OF_EACH_NETWORK
    ]


# training data, options, figures


def training_data(trained: Model, config: RunConfig, epochs: int | None) -> TrainingData:
    """The problem, the network and how it was trained."""
    problem, rules = trained.problem, trained.problem.knowledge.theory.rules
    train, base, language = problem.train, problem.knowledge.base, problem.knowledge.language

    def counts(codes: Codes) -> np.ndarray:
        return np.bincount(base.decode(codes)[0], minlength=len(language.predicates))

    true, false = counts(train.atoms[train.truth]), counts(train.atoms[~train.truth])
    queries = sum((counts(part.atoms) for part in problem.queries.values()), np.zeros_like(true))
    order = np.argsort(-(true + false + queries), kind="stable")[:MOST_LISTED].tolist()
    found = [(language.predicates[i], int(true[i]), int(false[i]), int(queries[i])) for i in order]
    return TrainingData(
        problem.name,
        tuple(_facts(trained, config, epochs)),
        tuple((domain.name, len(language.members(domain))) for domain in language.domains),
        tuple(PredicateSummary(p.name, tuple(d.name for d in p.domains), p.closed, *numbers) for p, *numbers in found),
        tuple(map(str, rules[:MOST_LISTED])),
        max(0, len(rules) - MOST_LISTED),
    )


def _facts(trained: Model, config: RunConfig, epochs: int | None) -> Iterator[tuple[str, str]]:
    problem, model, options, networks = trained.problem, trained.network, config.options, len(trained.members)
    if config.source not in (None, problem.name):
        yield "read from", str(config.source)
    true = int(problem.train.truth.sum())
    false = len(problem.train) - true
    yield "known", f"{counted(true, 'true atom')}" + (f", {counted(false, 'false one')}" if false else "")
    splits = (f"{split} {len(part):,} ({int(part.truth.sum()):,} true)" for split, part in problem.queries.items())
    yield "queries", ", ".join(splits) or "none"
    if problem.knowledge.features:
        given = problem.knowledge.features.values()
        yield "features", ", ".join(f"{counted(len(part), 'constant')} of {part.domain.name}" for part in given)
    layers = counted(len(model.layers), "reasoning layer")
    parameters = counted(sum(part.numel() for part in model.parameters()), "parameter")
    yield "network", f"{options.model.input} of dim {options.model.dim}, {layers}, {parameters}"
    grounding, everything = trained.options.grounding, trained.source.whole
    text = grounding.strategy
    text += f", width {grounding.width}, depth {grounding.depth}" if text == "backward" else ""
    text += "" if everything is None else f", {counted(len(everything), 'ground rule')}"
    yield "grounding", text if model.layers else "none is read: the network has no reasoning layer"
    who = f"the mean of the logits of {networks} networks" if networks > 1 else "one network"
    yield "probabilities", f"by {who}, {trained.calibration or 'not calibrated'}"
    wanted = networks * options.training.epochs
    done = "" if epochs is None or epochs == wanted else f"{epochs:,} of at most "
    seeds = f"seed {config.seed}" if networks == 1 else f"{networks} seeds from {config.seed} on"
    yield "training", f"{done}{counted(wanted, 'epoch')}, {options.training.loss} loss, {seeds}"
    versions = ", ".join(f"{name} {version}" for name, version in config.versions.items())
    yield "made with", f"{versions}, on {config.device}, {counted(config.threads, 'thread')}"


def option_values(options: Options, chosen: Mapping[str, str]) -> tuple[OptionValue, ...]:
    """All options; `chosen` has the reasons of those that nobody set."""
    defaults, found = flat_options(Options()), []
    for key, value in flat_options(options).items():
        origin = "chosen" if key in chosen else "default" if value == defaults[key] else "set"
        found.append(OptionValue(key, option_text(value), option_text(defaults[key]), origin, chosen.get(key, "")))
    return tuple(found)


def read_training(folder: Path) -> Training:
    """What `report.json` keeps of a training; if it cannot be read, the number of epochs from the trace."""
    run = RunFolder(folder)
    try:
        document = json.loads(read_file(run.report))
        chosen = {str(key): str(reason) for key, reason in document.get("chosen", {}).items()}
        phases = tuple(PhaseCost(**record) for record in document.get("phases", ()))
        return Training(document["epochs"], phases, chosen)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        try:
            return Training(len(read_file(run.trace).splitlines()) or None)
        except OSError:
            return Training()


def figures(reports: Sequence[Report], phases: Sequence[PhaseCost]) -> tuple[tuple[str, str], ...]:
    """The main metric of each split, then the cost of the training."""
    found = []
    for report in reports:
        name, value = report.main
        label = f"{report.split} {name}" + (", not held out" if NOT_HELD_OUT in report.protocol else "")
        found.append((label, "none" if isnan(value) else f"{value:.3f}"))
    if phases:
        found.append(("CPU-seconds", f"{sum(phase.cpu_seconds for phase in phases):,.1f}"))
        found.append(("peak memory", f"{max(phase.peak_gigabytes for phase in phases):.2f} GB"))
    return tuple(found)
