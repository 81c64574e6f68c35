"""Runs -> pages: what the page of a run tells -> the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from r2n.evaluation.by_query import PrecisionRecall, RankCounts
from r2n.evaluation.metrics import METRICS, Calibration
from r2n.evaluation.plots import rank_words
from r2n.evaluation.report import NOT_HELD_OUT, NOTHING_TO_RANK, REASONING_HARMS, Numbers, Report
from r2n.reporting.charts import Chart, Series, bar_chart, line_chart
from r2n.reporting.curves import Networks, told_apart
from r2n.reporting.pages import number as number_text
from r2n.reporting.pages import page
from r2n.reporting.records import Result, RunReport

MOST_CHARTS = 12
MOST_SHOWN = 12  # lines of a table that are shown at once; the others can be unfolded
MOST_LINES = 40
HEADINGS = (
    ("trained-on", "What was trained on what"),
    ("results", "Results"),
    ("training", "Training"),
    ("predicates", "By predicate"),
    ("reliability", "Reliability"),
    ("rules", "Rules"),
    ("answers", "Answers"),
    ("phases", "Time and memory"),
    ("options", "Options"),
)


@dataclass(frozen=True, slots=True)
class Card:
    """A chart with its caption."""

    heading: str
    words: str
    charts: tuple[Chart, ...]


def run_page(report: RunReport) -> str:
    """The page of a run."""
    there = {
        "trained-on": True,
        "results": bool(report.results),
        "training": any(curve.epochs for curves in report.networks for curve in curves),
        "predicates": any(result.precision_recall or result.ranks for result in report.results),
        "reliability": any(_is_filled(result.report.calibration) for result in report.results),
        "rules": report.rules is not None,
        "answers": bool(report.answers),
        "phases": bool(report.phases),
        "options": bool(report.options),
    }
    return page(
        "run.html.j2",
        report=report,
        title=report.trained_on.problem,
        headings=[(name, heading) for name, heading in HEADINGS if there[name]],
        training=training_cards(report.networks),
        reliability=reliability_cards(report.results),
        precision_recall=precision_recall_cards(report.results),
        rank_rows=rank_rows,
        rank_words=rank_words(),
        protocol_words=protocol_words,
        metric_rows=metric_rows,
        classification_metrics=[name for name, metric in METRICS.items() if metric.task == "classification"],
        interval_words=interval_words,
        ties_that_matter=ties_that_matter,
        most_lines=MOST_LINES,
        most_shown=MOST_SHOWN,
    )


def _is_filled(calibration: Calibration | None) -> bool:
    return calibration is not None and any(part.count for part in calibration.bins)


def metric_rows(result: Result) -> list[tuple[str, list[float | None]]]:
    """Each metric of a split, of the network and of its baselines."""
    report = result.report
    names = [name for name in METRICS if name in report.metrics]
    columns: list[Mapping[str, float]] = [report.metrics, *report.baselines.values()]
    return [(name, [column.get(name) for column in columns]) for name in names]


def interval_words(interval: tuple[float, float] | None) -> str:
    """`0.8123 to 0.8456`; nothing where nothing defines it."""
    return "" if interval is None or isnan(interval[0]) else f"{number_text(interval[0])} to {number_text(interval[1])}"


def ties_that_matter(report: Report) -> Mapping[str, Mapping[str, float]]:
    """What the metrics would be with equals placed otherwise, where that makes a difference."""
    told = [{name: f"{value:.4f}" for name, value in part.items()} for part in report.ties.values()]
    return report.ties if any(part != told[0] for part in told) else {}


def protocol_words(protocol: Mapping[str, str | int]) -> list[str]:
    """How a split was asked, a sentence each."""
    queries = f"{protocol['queries']:,}" if isinstance(protocol.get("queries"), int) else "some"
    true = f", {protocol['true']:,} of them true" if "true" in protocol else ""
    held_out = f" Not held out: {protocol[NOT_HELD_OUT]}." if NOT_HELD_OUT in protocol else ""
    said = [f"{str(protocol['task']).capitalize()} of {queries} queries{true}.{held_out}"]
    apart = ("task", "queries", "true", NOTHING_TO_RANK, NOT_HELD_OUT, REASONING_HARMS)
    for name, value in protocol.items():
        if name not in apart and value not in (0, ""):
            text = f"{value:,}" if isinstance(value, int) else value
            said.append(f"{name.replace('_', ' ')}: {text}.")
    return said


def training_cards(networks: Networks) -> list[Card]:
    """A chart for each panel: of one network all its curves, of several the loss and the metric of each."""
    cards, curves = [], [curve for curve in told_apart(networks) if any(curve.values)]
    for panel in dict.fromkeys(curve.panel for curve in curves):
        series = [Series(curve.name, curve.epochs, curve.values) for curve in curves if curve.panel == panel]
        last = ", ".join(f"{part.name} {part.y[-1]:.4g}" for part in series)
        words = f"{panel.capitalize()} over the epochs; at the end: {last}"
        drawn = line_chart(words, series, x_label="epoch", y_label=panel)
        cards.append(Card(panel.capitalize(), f"At the end: {last}", (drawn,)))
    return cards


def precision_recall_cards(results: Sequence[Result]) -> list[list[Card]]:
    """Small charts, side by side: for each split of all queries and of the most asked predicates.

    Where every split has one curve alone, they stand together.
    """
    found = [
        [_precision_recall_card(result.report.split, curve) for curve in result.precision_recall[:MOST_CHARTS]]
        for result in results
        if result.precision_recall
    ]
    return [[card for cards in found for card in cards]] if all(len(cards) == 1 for cards in found) and found else found


def _precision_recall_card(split: str, curve: PrecisionRecall) -> Card:
    said = f"AP {curve.ap:.3f}, {curve.true:,} true of {curve.queries:,}"
    series = Series("precision", curve.recall, curve.precision, steps=True)
    drawn = line_chart(
        f"Precision over recall: {said}",
        [series],
        x_label="recall",
        y_label="precision",
        x_range=(0, 1),
        y_range=(0, 1),
        height=180,
    )
    return Card(f"{split}: {curve.name}", said, (drawn,))


def rank_rows(result: Result) -> list[tuple[RankCounts, Numbers, list[tuple[float, float]]]]:
    """For all predicates, then for each: its counts, its metrics, and where its bars begin and how long they are."""
    rows = []
    for part in result.ranks:
        metrics = result.report.per_predicate.get(part.name, result.report.metrics)
        bars, begin = [], 0.0
        for number in part.counts:
            share = 100 * number / max(1, part.ranks)
            bars.append((round(begin, 2), round(share, 2)))
            begin += share
        rows.append((part, metrics, bars))
    return rows


def reliability_cards(results: Sequence[Result]) -> list[Card]:
    """Of each split that was classified; where probabilities are calibrated, before and after it."""
    found = []
    for result in results:
        split, before = result.report.split, result.report.calibration
        after = result.report.calibrated
        kinds = [(split if after is None else f"{split}, by the network", before), (f"{split}, calibrated", after)]
        found += [reliability_card(name, part) for name, part in kinds if part is not None and _is_filled(part)]
    return found


def reliability_card(split: str, calibration: Calibration) -> Card:
    """The share of true atoms over the predicted probability, above the number of atoms."""
    filled = [part for part in calibration.bins if part.count]
    series = Series("as it is", [p.confidence for p in filled], [p.accuracy for p in filled], dots=True)
    said = f"Brier {calibration.brier:.3f}, ECE {calibration.ece:.3f}"
    upper = line_chart(
        f"Share of true atoms over the predicted probability, which would be the diagonal if all were right: {said}",
        [series],
        x_label="predicted probability",
        y_label="share of true atoms",
        x_range=(0, 1),
        y_range=(0, 1),
        guide=True,
    )
    edges = [part.lower for part in calibration.bins] + [calibration.bins[-1].upper]
    counts = [part.count for part in calibration.bins]
    told = ", ".join(f"{part.lower:.1f} to {part.upper:.1f}: {part.count:,}" for part in filled)
    lower = bar_chart(f"Atoms by predicted probability: {told}", edges, counts, x_label="", y_label="atoms")
    return Card(split, said, (upper, lower))
