"""Pages of HTML for runs, comparisons and explanations: one file each, without scripts.

Names from data are escaped, and the browser may run no script and load nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import isnan
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from r2n.evaluation.by_query import LAST_RANKS
from r2n.evaluation.metrics import METRICS, Calibration
from r2n.evaluation.report import NOT_HELD_OUT, NOTHING_TO_RANK, REASONING_HARMS, Report
from r2n.explanation.drawing import explanation_svg, style_sheet
from r2n.explanation.records import Explanation
from r2n.explanation.text import answer_texts, probability_text, render
from r2n.reporting.charts import Series, bar_chart, line_chart
from r2n.reporting.compare import Comparison
from r2n.reporting.run_report import RunReport, shown_curves
from r2n.visible import printable, shortened

MOST_CHARTS = 12
MOST_SHOWN = 12  # lines of a table that are shown at once; the others can be unfolded
MOST_LINES = 40
SIGNIFICANT = 0.05
_CONTROLS = {*range(32), *range(127, 160), 0xFFFE, 0xFFFF} - {ord("\t"), ord("\n")}
_DIRECTIONS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}  # unclosed, they would turn the text after a name
REPLACED = dict.fromkeys(_CONTROLS | _DIRECTIONS, "\N{REPLACEMENT CHARACTER}")


def page(template: str, **values: Any) -> str:
    """A filled template; characters that no page may hold are replaced."""
    return environment().get_template(template).render(**values).translate(REPLACED)


@cache
def environment() -> Environment:
    """The templates, with the filters and functions that they use."""
    made = Environment(loader=PackageLoader("r2n.reporting"), autoescape=True, undefined=StrictUndefined)
    made.trim_blocks = made.lstrip_blocks = True
    made.filters |= {"short": shortened, "number": number, "signed": signed, "count": count, "percent": percent}
    made.filters |= {"probability": probability_text, "printable": printable}
    drawing = {"drawing": lambda explanation: Markup(explanation_svg(explanation, theme="page")), "render": render}
    made.globals |= {"drawing_style": Markup(style_sheet("page")), **drawing}
    return made


def number(value: int | float | None, digits: int = 4) -> str:
    """`0.9871`; empty if undefined."""
    return "" if value is None or isnan(value) else f"{value:.{digits}f}"


def signed(value: int | float | None, digits: int = 2) -> str:
    """`+1.20`, `-0.03` with a minus sign as wide as the plus."""
    return "" if value is None or isnan(value) else f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def count(value: int | float | None) -> str:
    """`12,345`."""
    return "" if value is None else f"{value:,}"


def percent(value: int | float | None) -> str:
    """`98.3 %`."""
    return "" if value is None or isnan(value) else f"{100 * value:.1f}\N{NO-BREAK SPACE}%"


def explanation_page(explanation: Explanation, *, about: Sequence[tuple[str, str]] = ()) -> str:
    """The page of an explanation; `about` are names and values for its footer: the run, the problem, changed facts."""
    return page("explanation.html.j2", e=explanation, answer=answer_texts(explanation), about=about)


def compare_page(comparison: Comparison) -> str:
    """The page that puts runs side by side."""
    return page("compare.html.j2", title=" and ".join(comparison.runs), comparison=comparison, level=SIGNIFICANT)


def run_page(report: RunReport) -> str:
    """The page of a run."""
    charts, results, precision_recall = run_charts(report), report.results, list[Card]()
    for split, curve in ((r.report.split, curve) for r in results for curve in r.precision_recall[:MOST_CHARTS]):
        text = f"AP {curve.ap:.3f}, {curve.true:,} true of {curve.queries:,}"
        series = [Series("precision", curve.recall, curve.precision, steps=True)]
        unit = {"x_range": (0, 1), "y_range": (0, 1), "height": 180}
        chart = line_chart(f"Precision over recall: {text}", series, x_label="recall", y_label="precision", **unit)
        precision_recall.append(Card(f"{split}: {curve.name}", text, (chart,)))
    sections = (
        ("trained-on", "Training data", True),
        ("results", "Results", results),
        ("training", "Training", charts["training"]),
        ("predicates", "By predicate", any(result.precision_recall or result.ranks for result in results)),
        ("reliability", "Reliability", charts["reliability"]),
        ("rules", "Rules", report.rules is not None),
        ("answers", "Answers", report.answers),
        ("phases", "Time and memory", report.phases),
        ("options", "Options", report.options),
    )
    return page(
        "run.html.j2",
        report=report,
        title=report.trained_on.problem,
        headings={name: heading for name, heading, is_there in sections if is_there},
        charts=charts,
        precision_recall=precision_recall,
        rank_texts=rank_texts(),
        protocol_texts=protocol_texts,
        shown_metrics=list(METRICS),
        classification_metrics=[name for name, metric in METRICS.items() if metric.task == "classification"],
        ties_that_matter=ties_that_matter,
        most_lines=MOST_LINES,
        most_shown=MOST_SHOWN,
    )


def ties_that_matter(report: Report) -> Mapping[str, Mapping[str, float]]:
    """The metrics with ties broken otherwise, if that makes a difference."""
    texts = [{name: f"{value:.4f}" for name, value in part.items()} for part in report.ties.values()]
    return report.ties if any(part != texts[0] for part in texts) else {}


def protocol_texts(protocol: Mapping[str, str | int]) -> list[str]:
    """The protocol of a split, one sentence each."""
    queries = f"{protocol['queries']:,}" if isinstance(protocol.get("queries"), int) else "some"
    true = f", {protocol['true']:,} of them true" if "true" in protocol else ""
    held_out = f" Not held out: {protocol[NOT_HELD_OUT]}." if NOT_HELD_OUT in protocol else ""
    texts = [f"{str(protocol['task']).capitalize()} of {queries} queries{true}.{held_out}"]
    apart = ("task", "queries", "true", NOTHING_TO_RANK, NOT_HELD_OUT, REASONING_HARMS)
    for name, value in protocol.items():
        if name not in apart and value not in (0, ""):
            text = f"{value:,}" if isinstance(value, int) else value
            texts.append(f"{name.replace('_', ' ')}: {text}.")
    return texts


def rank_texts() -> tuple[str, ...]:
    """`1`, `2-3`, `4-10`: the ranks that are counted together (half ranks count as the rank above)."""
    firsts = [1, *(last + 1 for last in LAST_RANKS)]
    pairs = zip(firsts, LAST_RANKS, strict=False)
    return (*(str(a) if a == b else f"{a}-{b}" for a, b in pairs), f"above {LAST_RANKS[-1]}")


# charts


@dataclass(frozen=True, slots=True)
class Card:
    """Charts (SVG) with a caption."""

    heading: str
    text: str
    charts: tuple[str, ...]


def run_charts(report: RunReport) -> dict[str, list[Card]]:
    """The charts of the training and of the reliability, which the page of a run and the served page show."""
    found: list[Card] = []
    for result in report.results:
        split, before, after = result.report.split, result.report.calibration, result.report.calibrated
        kinds = (split if after is None else f"{split}, by the network", before), (f"{split}, calibrated", after)
        found += [reliability_card(name, part) for name, part in kinds if part and any(b.count for b in part.bins)]
    cards, curves = [], [curve for curve in shown_curves(report.networks) if any(curve.values)]
    for panel in dict.fromkeys(curve.panel for curve in curves):
        series = [Series(curve.name, curve.epochs, curve.values) for curve in curves if curve.panel == panel]
        last = ", ".join(f"{part.name} {part.y[-1]:.4g}" for part in series)
        label = f"{panel.capitalize()} over the epochs; at the end: {last}"
        chart = line_chart(label, series, x_label="epoch", y_label=panel)
        cards.append(Card(panel.capitalize(), f"At the end: {last}", (chart,)))
    return {"training": cards, "reliability": found}


def reliability_card(heading: str, calibration: Calibration) -> Card:
    """The share of true atoms over the predicted probability, above the number of atoms."""
    filled = [part for part in calibration.bins if part.count]
    text = f"Brier {calibration.brier:.3f}, ECE {calibration.ece:.3f}"
    upper = line_chart(
        f"Share of true atoms over the predicted probability, which would be the diagonal if all were right: {text}",
        [Series("observed", [p.confidence for p in filled], [p.accuracy for p in filled], dots=True)],
        x_label="predicted probability",
        y_label="share of true atoms",
        x_range=(0, 1),
        y_range=(0, 1),
        diagonal=True,
    )
    bins = ", ".join(f"{part.lower:.1f} to {part.upper:.1f}: {part.count:,}" for part in filled)
    edges = [*(part.lower for part in calibration.bins), calibration.bins[-1].upper]
    counts = [part.count for part in calibration.bins]
    lower = bar_chart(f"Atoms by predicted probability: {bins}", edges, counts, x_label="", y_label="atoms")
    return Card(heading, text, (upper, lower))
