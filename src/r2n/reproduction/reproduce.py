"""The paper's tables, measured: several seeds, mean and deviation, ours beside the paper's."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import lru_cache
from multiprocessing import active_children, get_context
from statistics import mean, stdev
from time import process_time
from typing import Any

from r2n.datasets.benchmarks import cuts_of_test, load
from r2n.evaluation.evaluate import Score, classify
from r2n.evaluation.metrics import average_precision
from r2n.knowledge.problem import Problem
from r2n.logic.parser import parse_theory
from r2n.logic.theory import Theory
from r2n.mining.mine import MiningOptions, mine_rules
from r2n.model.combination import NETWORK_ALONE, RULES_ALONE
from r2n.reproduction.baselines import EvidenceScores, ProofCounts, best_depth
from r2n.reproduction.rule_accuracy import rule_accuracy
from r2n.reproduction.table import TableRow, table_rows
from r2n.runs.constrained import Constrained
from r2n.runs.memory import forget_peak, peak_gigabytes
from r2n.runs.run import Run, evaluate_split, prepare_run

METRICS = (
    "ap",
    "ap_not_reflexive",
    "ap_new",
    "rule_accuracy",
    "rules_hold",
    "roc_auc_macro",
    "mrr",
    "hits@1",
    "hits@3",
    "hits@10",
    "memory_gb",
)

ALONE = {"without counted rules": NETWORK_ALONE, "rules alone": RULES_ALONE}


@dataclass(frozen=True, slots=True)
class Measured:
    """One cell of a table with one seed: metrics on the test queries, peak memory, and the CPU-seconds of training.

    `parts` are the metrics of what counted rules and the network say alone, and of the ranking with constraints.
    """

    row: TableRow
    dataset: str
    seed: int
    metrics: dict[str, float]
    cpu_seconds: float
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def alone(self) -> "list[Measured]":
        """Its parts, as rows of their own behind it."""
        return [
            Measured(
                self.row.model_copy(update={"row": name, "minus": None, "average": None}),
                self.dataset,
                self.seed,
                dict(metrics),
                self.cpu_seconds,
            )
            for name, metrics in self.parts.items()
        ]


def measure(row: TableRow, dataset: str, seed: int) -> Measured:
    """Measure one cell with one seed."""
    if row.kind == "published":
        return Measured(row, dataset, seed, {}, 0.0)
    forget_peak()
    problem = _problem(dataset)
    start = process_time()
    if row.kind == "proofs":
        depth = best_depth(problem)
        report = classify(ProofCounts(problem.knowledge, depth), problem.test, problem.knowledge.base)
        return Measured(row, dataset, seed, dict(report.metrics), process_time() - start)
    if row.reads is not None:
        scores = EvidenceScores(problem.knowledge, row.reads, words=row.kind == "evidence-words")
        report = classify(scores, problem.test, problem.knowledge.base)
        return Measured(row, dataset, seed, dict(report.metrics) | _by_cut(scores, problem), process_time() - start)
    run = prepare_run(_with_mined(with_rules(problem, row.rules), row), row.options(problem.options), seed)
    for _ in run.trainer:
        pass
    seconds = process_time() - start
    metrics = {**run.evaluate("test").metrics, **_by_cut(run.logits(), run.problem)}
    metrics |= rule_accuracy(run, "test") if row.rule_accuracy else {}
    metrics["memory_gb"] = peak_gigabytes()
    return Measured(row, dataset, seed, metrics, seconds, _parts(run) | _with_constraints(run, row))


def _with_mined(problem: Problem, row: TableRow) -> Problem:
    """The problem with mined rules in place of its explicit ones, where the row asks for them."""
    if not row.mined:
        return problem
    options = MiningOptions(row.mined, row.mined_rules, min_confidence=row.mined_confidence)
    mined = mine_rules(problem.knowledge, options).rules
    theory = problem.knowledge.theory
    kept = tuple(rule for rule in theory.rules if rule.is_implicit)
    theory = replace(theory, rules=(*kept, *(item.rule for item in mined)))
    return replace(problem, knowledge=replace(problem.knowledge, theory=theory))


def _parts(run: Run) -> dict[str, dict[str, float]]:
    """What the network and the counted rules of a run say alone, on the test queries."""
    if run.model.counted is None:
        return {}
    logits = run.logits()
    return {name: dict(evaluate_split(logits.by(way), run.problem, "test").metrics) for name, way in ALONE.items()}


def _with_constraints(run: Run, row: TableRow) -> dict[str, dict[str, float]]:
    """The same run ranked once more, with constraints read off the training facts, where the row asks for it."""
    if not row.constraints:
        return {}
    forbidden = Constrained.of(run.problem.knowledge)
    report = evaluate_split(run.logits(), run.problem, "test", forbidden=forbidden)
    return {f"{row.row}, with constraints": dict(report.metrics)}


@lru_cache(maxsize=1)
def _problem(dataset: str) -> Problem:
    """The problem of the cell before, where it is the same: cells come seed by seed."""
    return load(dataset)


def _by_cut(scores: Score, problem: Problem) -> dict[str, float]:
    """The average precision on the parts of the test queries that the dataset names."""
    found = {}
    for name, part in cuts_of_test(problem).items():
        found[f"ap_{name}"] = average_precision(scores(problem.test.atoms)[part], problem.test.truth[part])
    return found


def with_rules(problem: Problem, rules: bool | str) -> Problem:
    """The same problem with its own rules, with none, or with those of a text; its domains and predicates stay."""
    if rules is True:
        return problem
    theory = problem.knowledge.theory
    bare = Theory(theory.domains, theory.predicates, (), theory.source)
    if rules:
        bare = replace(bare, rules=parse_theory(f"{bare}{rules}").rules)
    return replace(problem, knowledge=replace(problem.knowledge, theory=bare))


Cell = tuple[TableRow, str, int]


def cells(table: str, seeds: Sequence[int], *, datasets: Sequence[str] = (), models: Sequence[str] = ()) -> list[Cell]:
    """What a table asks to be measured, as (row, dataset, seed); only some datasets and models where they are named.

    What learns nothing is measured with one seed.
    """
    return [
        (row, dataset, seed)
        for row in table_rows(table)
        if not models or row.row in models
        for dataset in row.datasets
        if not datasets or dataset in datasets
        for seed in (seeds if row.kind == "network" else seeds[:1])
    ]


def reproduce(chosen: Sequence[Cell], *, jobs: int = 1) -> Iterator[Measured]:
    """Measure cells, in whatever order they are done, `jobs` processes at once."""
    if jobs == 1:
        for cell in chosen:
            yield measure(*cell)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        try:
            for done in as_completed([pool.submit(measure, *cell) for cell in chosen]):
                yield done.result()
        except BaseException:  # an interrupt, or one that failed: the others are not waited for
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():
                process.terminate()
            raise


def summarise(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """One record for each cell and metric: mean and deviation over the seeds, and the paper's figure.

    A published row has no mean and no seeds. A row with `minus` is followed by its distance from that row, by seeds.
    """
    by_cell: dict[tuple[int, str, str], list[Measured]] = {}
    measured = [*measured, *(part for item in measured for part in item.alone()), *_averages(measured)]
    for item in measured:
        by_cell.setdefault((item.row.place, item.row.row, item.dataset), []).append(item)
    records = []
    for _, items in sorted(by_cell.items(), key=lambda entry: entry[0]):
        row, dataset = items[0].row, items[0].dataset
        for metric in METRICS:
            values = [item.metrics[metric] for item in items if metric in item.metrics]
            if values or (row.kind == "published" and row.paper_figure(dataset, metric) is not None):
                records.append(_record(items, row.row, metric, values, row.paper_figure(dataset, metric)))
        if row.minus is not None:
            records += _distances(items, measured)
    return records


def _averages(measured: Sequence[Measured]) -> list[Measured]:
    """For rows that ask for it, the mean over all their datasets, seed by seed."""
    by_seed: dict[tuple[str, int], list[Measured]] = {}
    for item in measured:
        if item.row.average is not None:
            by_seed.setdefault((item.row.row, item.seed), []).append(item)
    found = []
    for items in by_seed.values():
        row = items[0].row
        if row.average is not None and {item.dataset for item in items} == set(row.datasets):
            shared = [m for m in METRICS if all(m in item.metrics for item in items)]
            metrics = {metric: mean(item.metrics[metric] for item in items) for metric in shared}
            seconds = mean(item.cpu_seconds for item in items)
            found.append(Measured(row, row.average, items[0].seed, metrics, seconds))
    return found


def _record(
    items: Sequence[Measured], name: str, metric: str, values: Sequence[float], paper: float | None
) -> dict[str, Any]:
    return {
        "table": items[0].row.table,
        "dataset": items[0].dataset,
        "model": name,
        "metric": metric,
        "mean": mean(values) if values else None,
        "std": (stdev(values) if len(values) > 1 else 0.0) if values else None,
        "seeds": len(values),
        "paper": None if metric == "memory_gb" else paper,
        "cpu_seconds": mean(item.cpu_seconds for item in items),
    }


def _distances(items: Sequence[Measured], measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """How far a row is above another, or above a part of its own, metric by metric, with the same seeds."""
    row, dataset = items[0].row, items[0].dataset
    places = {row.place} if row.minus in ALONE else {item.row.place for item in measured}
    others = {
        item.seed: item
        for item in measured
        if item.row.row == row.minus and item.dataset == dataset and item.row.place in places
    }
    pairs = [(item, others[item.seed]) for item in items if item.seed in others]
    name = f"{row.row} minus {row.minus}"
    return [
        _record(items, name, metric, [ours.metrics[metric] - theirs.metrics[metric] for ours, theirs in pairs], None)
        for metric in METRICS
        if pairs and metric != "memory_gb" and all(metric in item.metrics for item in pairs[0])
    ]
