"""Runs -> pages: what was trained on what, with which options, and the numbers to look at first."""

import json
from collections.abc import Iterator, Mapping, Sequence
from math import isnan

import numpy as np

from r2n.data.herbrand import Codes
from r2n.data.problem import Problem
from r2n.errors import counted
from r2n.evaluation.calibrate import calibration_text
from r2n.evaluation.report import NOT_HELD_OUT, Report
from r2n.model.trained import Trained
from r2n.options import Options
from r2n.reporting.phases import PhaseCost
from r2n.reporting.records import OptionLine, PredicateLine, TrainedOn
from r2n.store.folder import RunConfig

MOST_RULES = 300
MOST_PREDICATES = 300


def trained_on(trained: Trained, config: RunConfig, epochs: int | None) -> TrainedOn:
    """The problem, the network and how it was trained."""
    problem, rules = trained.problem, trained.problem.knowledge.theory.rules
    language = problem.knowledge.language
    return TrainedOn(
        problem.name,
        tuple(_facts(trained, config, epochs)),
        tuple((domain.name, len(language.members(domain))) for domain in language.domains),
        _predicates(problem),
        tuple(map(str, rules[:MOST_RULES])),
        max(0, len(rules) - MOST_RULES),
    )


def _facts(trained: Trained, config: RunConfig, epochs: int | None) -> Iterator[tuple[str, str]]:
    problem, model, options = trained.problem, trained.model, config.options
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
    yield "grounding", _grounding(trained)
    yield "probabilities", probability_words(trained)
    networks = len(trained.members)
    wanted = networks * options.training.epochs
    done = "" if epochs is None or epochs == wanted else f"{epochs:,} of at most "
    seeds = f"seed {config.seed}" if networks == 1 else f"{networks} seeds from {config.seed} on"
    yield "training", f"{done}{counted(wanted, 'epoch')}, {options.training.loss} loss, {seeds}"
    versions = ", ".join(f"{name} {version}" for name, version in config.versions.items())
    yield "made with", f"{versions}, on {config.device}, {counted(config.threads, 'thread')}"


def probability_words(trained: Trained) -> str:
    """Of how many networks the probabilities are the answer, and whether they are calibrated, and on what."""
    networks, calibration = len(trained.members), trained.calibration
    who = f"by the mean of the logits of {networks} networks" if networks > 1 else "by one network"
    return f"{who}, {calibration_text(calibration)}"


def _grounding(trained: Trained) -> str:
    grounding = trained.options.grounding
    words = grounding.strategy
    if words == "backward":
        words += f", width {grounding.width}, depth {grounding.depth}"
    if not trained.model.layers:
        return "none is read: the network has no reasoning layer"
    whole = trained.source.whole
    return words if whole is None else f"{words}, {counted(len(whole), 'ground rule')}"


def _predicates(problem: Problem) -> tuple[PredicateLine, ...]:
    """The predicates with the most known atoms and queries."""
    train, predicates = problem.train, problem.knowledge.language.predicates
    true, false = (_counts(problem, train.atoms[train.truth == truth]) for truth in (True, False))
    asked = sum((_counts(problem, part.atoms) for part in problem.queries.values()), np.zeros_like(true))
    order = np.argsort(-(true + false + asked), kind="stable")[:MOST_PREDICATES].tolist()
    return tuple(
        PredicateLine(
            predicates[i].name,
            tuple(domain.name for domain in predicates[i].domains),
            predicates[i].closed,
            int(true[i]),
            int(false[i]),
            int(asked[i]),
        )
        for i in order
    )


def _counts(problem: Problem, codes: Codes) -> np.ndarray:
    base = problem.knowledge.base
    return np.bincount(base.decode(codes)[0], minlength=len(base.language.predicates))


def option_lines(options: Options, chosen: Mapping[str, str]) -> tuple[OptionLine, ...]:
    """All options; `chosen` has the reasons of those that nobody set."""
    defaults, found = Options().model_dump(mode="json"), []
    for section, values in options.model_dump(mode="json").items():
        for name, value in values.items():
            key, default = f"{section}.{name}", defaults[section][name]
            origin = "chosen" if key in chosen else "default" if value == default else "set"
            found.append(OptionLine(key, option_text(value), option_text(default), origin, chosen.get(key, "")))
    return tuple(found)


def option_text(value: object) -> str:
    """As a problem file would have it."""
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)


def figures(reports: Sequence[Report], phases: Sequence[PhaseCost]) -> tuple[tuple[str, str], ...]:
    """The main metric of each split, then what the training took."""
    found = []
    for report in reports:
        name, value = report.main
        label = f"{report.split} {name}" + (", not held out" if NOT_HELD_OUT in report.protocol else "")
        found.append((label, "none" if isnan(value) else f"{value:.3f}"))
    if phases:
        found.append(("CPU-seconds", f"{sum(phase.cpu_seconds for phase in phases):,.1f}"))
        found.append(("peak memory", f"{max(phase.peak_gigabytes for phase in phases):.2f} GB"))
    return tuple(found)
