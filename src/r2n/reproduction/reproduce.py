"""The paper's tables: rows, baselines and rules counted."""

import signal
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.resources import files
from multiprocessing import active_children, get_context
from statistics import mean, stdev
from time import process_time
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float64
from pydantic import BaseModel, ConfigDict, ValidationError
from scipy.sparse import csr_array
from scipy.stats import hypergeom

from r2n.data.features import bags_of_words
from r2n.data.herbrand import Codes, QueryPattern, index_among
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.data.problem import Problem
from r2n.datasets.benchmarks import cuts_of_test, load
from r2n.errors import ConfigError, nearest
from r2n.evaluation.by_query import RankedQueries
from r2n.evaluation.metrics import average_precision
from r2n.evaluation.ranking import EvaluationOptions, Filter
from r2n.evaluation.report import Report, Score, classify
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.logic.theory import Theory
from r2n.mining.mine import Constrained, MiningOptions, mine_rules
from r2n.model.memory import forget_peak, peak_gigabytes
from r2n.model.model import Model
from r2n.model.run import Run, evaluate_split, prepare_run
from r2n.network.factor_graph import known_states, known_truths
from r2n.network.mixture import INPUT_ALONE, NETWORK_ALONE, PATHS_ALONE, RULES_ALONE
from r2n.options import Options
from r2n.training.batches import rule_targets


class TableRow(BaseModel):
    """A row of a table: its datasets, what is measured, and what the paper printed for it.

    `kind`: a `network` is trained; `proofs` counts ground rules; `published` is what others printed; `evidence` scores
    an atom by the truth of the predicate `reads` on the same constants, and `evidence-words` adds the Jaccard
    similarity of their words. `paper` gives for each dataset its headline figure, or a figure for each metric;
    `average` names the mean over all datasets. `rules = false` removes the theory's rules, a text replaces them, and
    `mined` replaces them by rules mined up to this length, with at least `mined_confidence` and at most `mined_rules`
    of each head and length, from bodies of `mined_from` atoms on, and `mined_constants` rules with constants.
    `rule_accuracy` measures out(g) too. `constraints` ranks once more with constraints, as another row. With
    `inductive`, the test is that of another graph, `DATASET-new`, which shares no constant with the training.
    `minus` names the row to which the difference is reported. `[grounding]`, `[model]` and `[training]` change the
    problem's own options.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    table: str
    row: str
    order: int
    about: str
    kind: Literal["network", "proofs", "published", "evidence", "evidence-words"] = "network"
    minus: str | None = None
    rules: bool | str = True
    mined: int = 0
    mined_confidence: float = 0.01
    mined_rules: int = 100
    mined_from: int = 1
    mined_constants: int = 0
    constraints: bool = False
    reads: str | None = None
    average: str | None = None
    rule_accuracy: bool = False
    inductive: bool = False
    datasets: tuple[str, ...]
    paper: Mapping[str, float | Mapping[str, float]] = {}
    grounding: Mapping[str, object] = {}
    model: Mapping[str, object] = {}
    training: Mapping[str, object] = {}

    def paper_figure(self, dataset: str, metric: str) -> float | None:
        """What the paper printed for a metric; one figure for a dataset stands for all its metrics."""
        printed = self.paper.get(dataset)
        return printed.get(metric) if isinstance(printed, Mapping) else printed

    def options(self, problem: Options) -> Options:
        """The problem's options with this row's changes."""
        sections = problem.model_dump()
        for name in sections:
            sections[name] |= getattr(self, name)
        return Options.model_validate(sections)


def table_rows(table: str) -> list[TableRow]:
    """The rows of a table, in order."""
    rows = []
    for file in sorted((files("r2n.reproduction") / "tables").iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            try:
                rows.append(TableRow.model_validate(tomllib.loads(file.read_text("utf-8"))))
            except (tomllib.TOMLDecodeError, ValidationError) as error:
                raise ConfigError(f"{file.name}: {error}") from error
    names = sorted({row.table for row in rows})
    if table not in names:
        raise ConfigError(f"there is no table '{table}'", hint=nearest(table, names) or f"known: {', '.join(names)}")
    return sorted((row for row in rows if row.table == table), key=lambda row: row.order)


def rule_accuracy(run: Run, split: str) -> dict[str, float]:
    """The accuracy of out(g) on the ground rules with at least one atom of a split and no atom of unknown truth.

    `rules_hold` is the share of these that hold, the majority baseline. Empty without such ground rules or rule output.
    """
    queries, model, evidence = run.problem.queries[split], run.model, run.knowledge.evidence
    graph = run.source.around(queries.atoms)
    everything = Evidence.joined(evidence, queries)
    labels = torch.from_numpy(known_truths(model.base, graph.atoms.numpy(), everything))
    asked = torch.isin(graph.atoms, torch.from_numpy(queries.atoms.copy()))
    batch, known_then = model.collate(graph), known_states(model.base, graph.atoms, evidence)
    model.eval()
    with torch.no_grad():
        outputs = model(batch, known=known_then.to(model.device)).rules
    if not outputs:
        return {}
    right, holds = [], []
    for j, (out, rows) in enumerate(zip(outputs, graph.neighbours, strict=True)):
        known, truth = rule_targets(graph, j, labels)
        wanted = asked[rows[known]].any(dim=1)
        right.append((out.cpu()[known] > 0)[wanted] == truth[wanted])
        holds.append(truth[wanted])
    parts = {"rule_accuracy": torch.cat(right), "rules_hold": torch.cat(holds)}
    return {name: float(part.double().mean()) for name, part in parts.items() if len(part)}


DEPTHS = (1, 2, 3)


@dataclass(frozen=True, eq=False)
class ProofCounts:
    """The number of ground rules with an atom in their consequent, by backward chaining of a given depth."""

    knowledge: KnowledgeBase
    depth: int

    def __call__(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        """The counts of atoms given by their codes."""
        width = 0 if self.depth == 1 else 1
        grounding = BackwardGrounder(width, self.depth).ground(Store(self.knowledge), codes)
        counts, ascending = np.zeros(len(codes)), np.sort(codes)
        for part in grounding.ground_rules:
            for position in part.rule.head_positions:
                index = index_among(part.atoms[:, position], ascending)
                np.add.at(counts, np.argsort(codes)[index[index >= 0]], 1.0)
        return counts


def best_depth(problem: Problem) -> int:
    """The depth whose counts classify the validation queries best."""
    knowledge, valid = problem.knowledge, problem.valid
    return max(DEPTHS, key=lambda d: classify(ProofCounts(knowledge, d), valid, knowledge.base).metrics["ap"])


@dataclass(frozen=True, eq=False)
class EvidenceScores:
    """An atom P(x, y) scores 1 where `reads`(x, y) is a fact, plus (`words`) the Jaccard similarity of their texts."""

    knowledge: KnowledgeBase
    reads: str
    words: bool

    def __call__(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        """The scores of binary atoms given by their codes."""
        knowledge = self.knowledge
        arguments = knowledge.base.decode(codes)[1][:, :2]
        read = knowledge.language.predicate(self.reads)
        same = knowledge.base.encode(read, np.ascontiguousarray(arguments))
        scores = np.isin(same, knowledge.known_codes(read, True)).astype(np.float64)
        if not self.words:
            return scores
        left, right = arguments.T
        sizes = np.asarray(self._bags.sum(axis=1)).reshape(-1)
        shared = np.asarray(self._bags[left].multiply(self._bags[right]).sum(axis=1)).reshape(-1)
        return scores + shared / np.maximum(sizes[left] + sizes[right] - shared, 1)

    @cached_property
    def _bags(self) -> csr_array:
        """The words of each constant, by id; none for constants without a text."""
        texts = [""] * len(self.knowledge.language.constants)
        for part in self.knowledge.features.values():
            for constant, text in zip(part.constants.tolist(), part.texts or (), strict=False):
                texts[constant] = text
        return bags_of_words(texts, np.ones(len(texts), bool)).every


COLUMNS = ("ap", "ap_not_reflexive", "ap_new", "rule_accuracy", "rules_hold", "roc_auc_macro")
COLUMNS += ("mrr", "hits@1", "hits@3", "hits@10", "hits@10_of_50", "memory_gb")

SAMPLED, OTHERS = "hits@10_of_50", 50


def hits_of_sampled(report: Report, problem: Problem) -> float:
    """Hits@10 among the answer and 50 other candidates: the mean over all draws of these, without drawing any.

    The others are drawn from the candidates of the ranking, which leaves out true atoms.
    """
    found, base = report.by_query, problem.knowledge.base
    assert isinstance(found, RankedQueries)
    known, hits = Filter.from_problem(problem).facts, np.zeros(len(found.atoms))
    index = base.decode(found.atoms)[0]
    for predicate, position in set(zip(index.tolist(), found.positions.tolist(), strict=True)):
        own = np.flatnonzero((index == predicate) & (found.positions == position))
        pattern = QueryPattern.from_base(base, predicate, position)
        rows = pattern.located(known[slice(*np.searchsorted(known, pattern.bounds))])[0]
        rows, number = np.unique(rows, return_counts=True)
        others = pattern.candidates - number[np.searchsorted(rows, pattern.located(found.atoms[own])[0])]
        better = np.floor(found.realistic[own]) - 1
        hits[own] = hypergeom.cdf(9, others, better, np.minimum(OTHERS, others))
    return float(hits.mean())


ALONE = {"without counted rules": NETWORK_ALONE, "rules alone": RULES_ALONE}
PARTS = {"paths alone, R2N": PATHS_ALONE, "input layer alone": INPUT_ALONE}


@dataclass(frozen=True, slots=True)
class Measured:
    """One cell with one seed; `parts` are metrics of rules and network alone, and with constraints."""

    row: TableRow
    dataset: str
    seed: int
    metrics: dict[str, float]
    cpu_seconds: float
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def alone(self) -> "list[Measured]":
        """Its parts, as rows of their own."""
        nothing = {"minus": None, "average": None}
        rows = {name: self.row.model_copy(update={"row": name, **nothing}) for name in self.parts}
        return [replace(self, row=rows[name], metrics=dict(part), parts={}) for name, part in self.parts.items()]


def measure(row: TableRow, dataset: str, seed: int) -> Measured:
    """Measure one cell with one seed."""
    if row.kind == "published":
        return Measured(row, dataset, seed, {}, 0.0)
    forget_peak()
    problem = _problem(dataset)
    start = process_time()
    if row.kind != "network":
        scores: Score = EvidenceScores(problem.knowledge, row.reads or "", words=row.kind == "evidence-words")
        if row.kind == "proofs":
            scores = ProofCounts(problem.knowledge, best_depth(problem))
        metrics = dict(classify(scores, problem.test, problem.knowledge.base).metrics) | _by_cut(scores, problem)
        return Measured(row, dataset, seed, metrics, process_time() - start)
    problem = with_rules(problem, row.rules)
    if row.mined:  # in place of the explicit rules
        options = MiningOptions(
            row.mined,
            row.mined_rules,
            min_confidence=row.mined_confidence,
            constants=row.mined_constants > 0,
            min_length=row.mined_from,
            max_constant_rules=row.mined_constants or None,
        )
        mined = [item.rule for item in mine_rules(problem.knowledge, options).rules]
        theory = problem.knowledge.theory
        theory = replace(theory, rules=(*(rule for rule in theory.rules if rule.is_implicit), *mined))
        problem = replace(problem, knowledge=replace(problem.knowledge, theory=theory))
    run = prepare_run(problem, row.options(problem.options), seed)
    for _ in run.trainer:
        pass
    seconds, logits, parts = process_time() - start, run.logits(), {}
    if row.inductive:
        other = Model.from_run(run).on(load(f"{dataset}-new"))
        report = other.evaluate("test")
        metrics = dict(report.metrics) | {
            SAMPLED: hits_of_sampled(report, other.problem),
            "memory_gb": peak_gigabytes(),
        }
        return Measured(row, dataset, seed, metrics, seconds)
    if run.model.counted is not None:
        wanted = {**(PARTS if run.model.blends else {}), **(ALONE if run.model.counted.rules else {})}
        parts = {name: logits.by(weighting) for name, weighting in wanted.items()}
    report = evaluate_split(logits, run.problem, "test", baselines=parts)
    parts = {name: dict(report.baselines[name]) for name in parts}
    metrics = {**report.metrics, **_by_cut(logits, run.problem)}
    metrics |= rule_accuracy(run, "test") if row.rule_accuracy else {}
    metrics["memory_gb"] = peak_gigabytes()
    if row.constraints:
        constrained = EvaluationOptions(forbidden=Constrained.from_knowledge(run.problem.knowledge))
        report = evaluate_split(logits, run.problem, "test", options=constrained)
        parts[f"{row.row}, with constraints"] = dict(report.metrics)
    return Measured(row, dataset, seed, metrics, seconds, parts)


_problem = lru_cache(maxsize=1)(load)  # kept for the next seed


def _by_cut(scores: Score, problem: Problem) -> dict[str, float]:
    """The average precision on the parts of the test queries that the dataset names."""
    cuts, truth = cuts_of_test(problem), problem.test.truth
    values = scores(problem.test.atoms) if cuts else np.zeros(0)
    return {f"ap_{name}": average_precision(values[part], truth[part]) for name, part in cuts.items()}


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
    """The (row, dataset, seed) of a table, of some datasets and models if named; one seed for what learns nothing."""
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
        by_cell.setdefault((item.row.order, item.row.row, item.dataset), []).append(item)
    records = []
    for _, items in sorted(by_cell.items(), key=lambda entry: entry[0]):
        row, dataset = items[0].row, items[0].dataset
        for metric in COLUMNS:
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
        by_seed.setdefault((item.row.row, item.seed), []).append(item)
    found = []
    for items in by_seed.values():
        row = items[0].row
        if row.average is not None and {item.dataset for item in items} == set(row.datasets):
            shared = [m for m in COLUMNS if all(m in item.metrics for item in items)]
            metrics = {metric: mean(item.metrics[metric] for item in items) for metric in shared}
            found.append(Measured(row, row.average, items[0].seed, metrics, mean(i.cpu_seconds for i in items)))
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
    named = [item for item in measured if (item.row.row, item.dataset) == (row.minus, dataset)]
    others = {item.seed: item for item in named if row.minus not in ALONE | PARTS or item.row.order == row.order}
    pairs = [(item, others[item.seed]) for item in items if item.seed in others]
    name = f"{row.row} minus {row.minus}"
    return [
        _record(items, name, metric, [ours.metrics[metric] - theirs.metrics[metric] for ours, theirs in pairs], None)
        for metric in COLUMNS
        if pairs and metric != "memory_gb" and all(metric in item.metrics for item in pairs[0])
    ]
