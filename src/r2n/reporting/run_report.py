"""The report of a run: its training data, results, curves, rules, example answers, cost and options, as records.

A part that is None or empty is left out of the page.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from r2n.data.atom_text import written_atom
from r2n.data.herbrand import Codes, QueryPattern
from r2n.errors import R2NError, counted
from r2n.evaluation import by_query
from r2n.evaluation.by_query import ByQuery, ClassifiedQueries, RankedQueries
from r2n.evaluation.ranking import Filter, row_scores
from r2n.evaluation.report import NOT_HELD_OUT, REASONING_HARMS, Report
from r2n.explanation.records import Explanation
from r2n.explanation.rules import RuleReport
from r2n.files import read_file
from r2n.model.memory import peak_gigabytes
from r2n.model.model import Model
from r2n.model.rule_report import LEFT_TO_REPORT, rule_report
from r2n.options import Options, option_text
from r2n.progress import Progress, no_progress
from r2n.store.checkpoint import read_trace
from r2n.store.folder import RunConfig, RunFolder, flat_options, read_config

EXPLAINED_SPLIT = "test"
MOST_LISTED = 300  # rules, and predicates
MOST_RULES = 20  # in the table of effects: each costs passes over the ground rules
SHARE_FOR_ANSWERS = 0.4  # of the time that rules and answers may take
LOSSES, LOSSES_IF_USED = ("loss", "supervised", "semantic"), ("regularisation", "rules")
OF_EACH_NETWORK = ("loss", "valid")
MOST = 3
MOST_COMPARED = 50  # of the queries that are ranked first, spread evenly: the most confident of these are shown


@dataclass(frozen=True, slots=True)
class Curve:
    """Points that a line joins, but those that are not finite; the curves of one panel share a pair of axes."""

    name: str
    x: Sequence[int | float]
    y: Sequence[int | float]
    panel: str = "loss"


@dataclass(frozen=True, slots=True)
class SplitResult:
    """The report on a split, and its precision-recall curves or rank counts, that of all predicates first."""

    report: Report
    precision_recall: tuple[by_query.PrecisionRecall, ...] = ()
    ranks: tuple[by_query.RankCounts, ...] = ()


@dataclass(frozen=True, slots=True)
class ExampleAnswer:
    """An answer to a query, its truth (None if unknown), what is remarkable about it, and why it is given."""

    atom: str
    probability: float
    truth: bool | None
    text: str = ""
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """Answers of one kind, and a sentence that says which."""

    heading: str
    text: str
    answers: tuple[ExampleAnswer, ...]


@dataclass(frozen=True, slots=True)
class PhaseCost:
    """The cost of a phase: seconds of the clock and of all cores, and the process's peak memory since its start."""

    name: str
    seconds: float
    cpu_seconds: float
    peak_gigabytes: float


@dataclass(frozen=True, slots=True)
class RunReport:
    """The content of a run's page.

    `facts` are texts on the problem and the training with headings, `theory` the rules but `more_rules` of them,
    `predicates` and `options` rows of tables, `curves` those of all networks, `figures` the most important numbers.
    """

    problem: str
    facts: tuple[tuple[str, str], ...] = ()
    domains: tuple[tuple[str, int], ...] = ()
    predicates: tuple[Mapping[str, Any], ...] = ()
    theory: tuple[str, ...] = ()
    more_rules: int = 0
    results: tuple[SplitResult, ...] = ()
    curves: tuple[Curve, ...] = ()
    rules: RuleReport | None = None
    answers: tuple[AnswerGroup, ...] = ()
    phases: tuple[PhaseCost, ...] = ()
    options: tuple[Mapping[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Training:
    """A training's epochs, the cost of each phase, and the reason for each option that nobody set, by its key."""

    epochs: int | None = None
    phases: tuple[PhaseCost, ...] = ()
    chosen: Mapping[str, str] | None = None


def build_report(
    folder: Path, trained: Model, reports: Sequence[Report], training: Training, seconds: float = inf
) -> RunReport:
    """The report of the run in a folder, given the reports on its queries.

    Its rules and example answers take at most about so many CPU-seconds; with 0 it has none. A part that fails is left
    out, and a note says why.
    """
    began = process_time()
    config, base = read_config(RunFolder(folder)), trained.problem.knowledge.base
    results = [SplitResult(report) for report in reports]
    for i, queries in enumerate(report.by_query for report in reports):
        if isinstance(queries, ClassifiedQueries):
            results[i] = SplitResult(reports[i], precision_recall=tuple(by_query.precision_recall(queries, base)))
        elif queries is not None:
            results[i] = SplitResult(reports[i], ranks=tuple(by_query.rank_counts(queries, base)))
    notes = [str(report.protocol[REASONING_HARMS]) for report in reports if REASONING_HARMS in report.protocol]
    found = {report.split: report.by_query for report in reports}
    queries = found.get(EXPLAINED_SPLIT, next(reversed(found.values()), None))  # or the last split
    rules = len(trained.problem.knowledge.theory.rules)
    parts: dict[str, Callable[[], Any]] = {}
    if queries is not None:
        until = began + SHARE_FOR_ANSWERS * seconds
        parts["answers"] = lambda: example_answers(trained, queries, notes, until)
    if rules:
        parts["rules"] = lambda: rule_report(trained, most=MOST_RULES, until=began + seconds, most_path_rules=0)
    slow: dict[str, Any] = {}
    for name, make in parts.items() if seconds else ():
        try:
            slow[name] = make()
        except Exception as error:
            why = error.what if isinstance(error, R2NError) else f"{type(error).__name__}: {error}"
            notes.append(f"the {name} are not shown: {why}")
    language, theory = trained.problem.knowledge.language, trained.problem.knowledge.theory
    return RunReport(
        trained.problem.name,
        tuple(_facts(trained, config, training.epochs)),
        tuple((domain.name, len(language.members(domain))) for domain in language.domains),
        tuple(predicate_rows(trained)),
        tuple(map(str, theory.rules[:MOST_LISTED])),
        max(0, len(theory.rules) - MOST_LISTED),
        tuple(results),
        shown_curves([training_curves(trace) for trace in RunFolder(folder).traces]),
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


def shown_curves(networks: Sequence[Sequence[Curve]]) -> tuple[Curve, ...]:
    """The curves of one network, or the loss and the validation metric of each of several, with its number."""
    if len(networks) == 1:
        return tuple(networks[0])
    numbered = ((i, curve) for i, curves in enumerate(networks, start=1) for curve in curves)
    return tuple(replace(c, name=f"{c.name} {i}") for i, c in numbered if c.name in OF_EACH_NETWORK)


# training data, options, figures


def predicate_rows(trained: Model) -> Iterator[dict[str, Any]]:
    """Predicates with their domains and the numbers of their known atoms and queries, the most frequent first."""
    train, base, language = trained.problem.train, trained.base, trained.base.language

    def counts(codes: Codes) -> np.ndarray:
        return np.bincount(base.decode(codes)[0], minlength=len(language.predicates))

    true, false = counts(train.facts), counts(train.atoms[~train.truth])
    queries = sum((counts(part.atoms) for part in trained.problem.queries.values()), np.zeros_like(true))
    for i in np.argsort(-(true + false + queries), kind="stable")[:MOST_LISTED].tolist():
        predicate = language.predicates[i]
        numbers = {"true": int(true[i]), "false": int(false[i]), "queries": int(queries[i])}
        domains = tuple(domain.name for domain in predicate.domains)
        yield {"name": predicate.name, "domains": domains, "is_closed": predicate.closed, **numbers}


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
    layers = counted(model.depth, "reasoning layer")
    parameters = counted(sum(part.numel() for part in model.parameters()), "parameter")
    kind = options.model.input if model.paths is None else "paths"
    yield "network", f"{kind} of dim {options.model.dim}, {layers}, {parameters}"
    grounding, everything = trained.options.grounding, trained.source.full_graph
    text = grounding.strategy
    text += f", width {grounding.width}, depth {grounding.depth}" if text in ("backward", "paths") else ""
    text += "" if everything is None else f", {counted(len(everything), 'ground rule')}"
    yield "grounding", text if model.depth else "none is read: the network has no reasoning layer"
    who = f"the mean of the logits of {networks} networks" if networks > 1 else "one network"
    yield "probabilities", f"that atoms are true, by {who}, {trained.calibration or 'not calibrated'}"
    wanted = networks * options.training.epochs
    done = "" if epochs is None or epochs == wanted else f"{epochs:,} of at most "
    seeds = f"seed {config.seed}" if networks == 1 else f"{networks} seeds from {config.seed} on"
    yield "training", f"{done}{counted(wanted, 'epoch')}, {options.training.loss} loss, {seeds}"
    versions = ", ".join(f"{name} {version}" for name, version in config.versions.items())
    yield "made with", f"{versions}, on {config.device}, {counted(config.threads, 'thread')}"


def option_values(options: Options, chosen: Mapping[str, str]) -> tuple[dict[str, str], ...]:
    """All options with their defaults, and where their values come from; `chosen` has the reasons of chosen ones."""
    defaults, found = flat_options(Options()), []
    for key, value in flat_options(options).items():
        origin = "chosen" if key in chosen else "default" if value == defaults[key] else "set"
        texts = {"value": option_text(value), "default": option_text(defaults[key])}
        found.append({"key": key, **texts, "origin": origin, "reason": chosen.get(key, "")})
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


# example answers

_Selection = tuple[str, str, list[tuple[int, str, int | None]]]
"""A heading, a sentence, and queries: the code, a remark, and the code of the atom that is ranked first instead."""


def example_answers(
    predictor: Model, queries: ByQuery, notes: list[str], until: float = inf
) -> tuple[AnswerGroup, ...]:
    """The most confident right answers and the worst ones; `notes` say why some are not explained.

    None is explained after the process has taken `until` CPU-seconds.
    """
    is_ranked = isinstance(queries, RankedQueries)
    selections = _ranked(predictor, queries) if is_ranked else _classified(predictor, queries)
    base, groups, shown, late = predictor.base, [], 0, 0
    for heading, sentence, chosen in selections:
        codes, answers = np.array([code for code, _, _ in chosen], np.int64), []
        probabilities = predictor.columns(codes).network
        for (code, text, rival), name, probability in zip(chosen, base.names(codes), probabilities, strict=True):
            explanation = None
            if rival is not None:
                text += f"; first is {base.names(np.array([rival], np.int64))[0]}"
            shown += 1
            if process_time() > until:
                late += 1
            else:
                pair = [code] if rival is None else [rival, code]  # why it is, or why a rival is ranked above it
                atom, *other = (written_atom(*parts) for parts in base.parts(np.array(pair, np.int64)))
                try:
                    explanation = predictor.explain(atom, against=next(iter(other), None))
                except R2NError as error:
                    notes.append(f"{atom} is not explained: {error.what}")
            truth = True if is_ranked else bool(queries.truth[np.searchsorted(queries.atoms, code)])
            answers.append(ExampleAnswer(name, float(probability), truth, text, explanation))
        groups += [AnswerGroup(heading, sentence, tuple(answers))] if answers else []
    if late:
        notes.append(f"{shown - late} of {shown} answers are explained in the time for a report; {LEFT_TO_REPORT}")
    return tuple(groups)


def _classified(predictor: Model, queries: ClassifiedQueries) -> Iterator[_Selection]:
    believed = predictor.columns(queries.atoms).network > 0.5  # as shown: a calibration may move it
    is_right, confidence = believed == queries.truth, np.abs(queries.logits)

    def largest(values: np.ndarray, which: np.ndarray) -> list[tuple[int, str, int | None]]:
        order = which[np.argsort(-values[which], kind="stable")[:MOST]]  # among equals, the first
        return [(code, "", None) for code in queries.atoms[order].tolist()]

    right = largest(confidence, np.flatnonzero(is_right & queries.truth))
    yield "Surest right answers", "True atoms with the highest probabilities.", right
    if not is_right.all():
        text = "Answers on the wrong side of 0.5, the most confident first."
        yield "Surest wrong answers", text, largest(confidence, np.flatnonzero(~is_right))
        return
    text = "No answer is on the wrong side of 0.5. These are the nearest to it."
    yield "Least sure answers", text, largest(-confidence, np.arange(len(queries.atoms)))


def _ranked(predictor: Model, queries: RankedQueries) -> Iterator[_Selection]:
    first = np.unique(queries.atoms[queries.pessimistic == 1])
    compared = first[np.linspace(0, len(first) - 1, min(MOST_COMPARED, len(first))).astype(np.int64)]
    if len(compared):
        compared = compared[np.argsort(-predictor.logits(compared), kind="stable")]
    sample = " of an even sample" if min(MOST_COMPARED, len(first)) < len(first) else ""
    text = f"True atoms that rank first, with the highest logits{sample}."
    yield "Surest right answers", text, [(code, "", None) for code in compared[:MOST].tolist()]
    ranks, base, known, last = queries.realistic, predictor.base, Filter.from_problem(predictor.problem).facts, []
    order = np.argsort(-ranks, kind="stable")
    order = order[ranks[order] > 1]
    for i in order[np.sort(np.unique(queries.atoms[order], return_index=True)[1])][:MOST]:  # each atom once
        code, position = int(queries.atoms[i]), int(queries.positions[i])
        pattern = QueryPattern.from_base(base, int(base.decode(queries.atoms[i : i + 1])[0][0]), position)
        row, _ = pattern.located(np.array([code]))
        scores = row_scores(predictor.scores, pattern, row)[0].astype(np.float64)
        codes = row[0] + pattern.stride * np.arange(pattern.candidates)
        scores[np.isin(codes, known[known != code])] = -np.inf
        rival = int(codes[scores.argmax()])  # the highest-ranked candidate that is not known to be true
        remark = f"rank {ranks[i]:,.10g} of {pattern.candidates:,} at position {position + 1}"
        last.append((code, remark, None if rival == code else rival))
    text = "True atoms with the worst ranks. The atom that ranks first instead is explained in contrast to the truth."
    yield "Farthest from the truth", text, last


# the cost of phases


@dataclass
class Profiler:
    """An `r2n.progress.Progress` that passes its calls on and measures each phase; repeated phases are added up."""

    progress: Progress = no_progress
    found: dict[str, PhaseCost] = field(default_factory=dict)
    current: str | None = None
    began: tuple[float, float] = (0.0, 0.0)

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Record a call; a name other than that of the last call begins a new phase."""
        if phase != self.current:
            self.end()
            self.current, self.began = phase, (perf_counter(), process_time())
        self.progress(phase, done, total)

    def end(self) -> None:
        """End the current phase."""
        if self.current is not None:
            before = self.found.get(self.current, PhaseCost(self.current, 0.0, 0.0, 0.0))
            seconds = before.seconds + perf_counter() - self.began[0]
            cpu_seconds = before.cpu_seconds + process_time() - self.began[1]
            self.found[self.current] = PhaseCost(self.current, seconds, cpu_seconds, peak_gigabytes())
            self.current = None

    @property
    def costs(self) -> tuple[PhaseCost, ...]:
        """The costs of the ended phases in the order of their beginning, to the millisecond and the megabyte."""
        found = ((c.name, c.seconds, c.cpu_seconds, c.peak_gigabytes) for c in self.found.values())
        return tuple(PhaseCost(name, *(round(value, 3) for value in values)) for name, *values in found)
