"""Pages of HTML for runs, comparisons, explanations: one file each, without scripts; and the files of a finished run.

Names from data are escaped, and the browser may run no script and load nothing. Charts (SVG) have the colours of the
page. A finished training has succeeded: a report that cannot be written is reported as a failure and never undoes it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import ceil, floor, isfinite, isnan, log10
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from r2n.errors import ConfigError, R2NError, refusing
from r2n.evaluation.by_query import LAST_RANKS
from r2n.evaluation.metrics import METRICS, Calibration
from r2n.evaluation.report import NOT_HELD_OUT, NOTHING_TO_RANK, REASONING_HARMS, Report
from r2n.explanation.drawing import explanation_svg, style_sheet
from r2n.explanation.records import Explanation, answer_texts, probability_text, render
from r2n.files import json_text, write_atomically
from r2n.model.model import Model
from r2n.reporting.compare import Comparison
from r2n.reporting.run_report import Curve, RunReport, Training, build_report
from r2n.store.folder import RunFolder
from r2n.visible import printable, shortened

LEFT, RIGHT, TOP, BOTTOM = 46, 310, 10, 34  # of a chart, in pixels; it is as wide as a phone
LEGEND_LINE, LEGEND_COLUMN, LETTERS_OF_A_COLUMN = 15, 137, 16  # the first two in pixels
MOST_POINTS, MOST_DOTS = 300, 12  # points of a line; lines of few points have dots

Number = int | float


def chart(
    label: str,
    series: Sequence[Curve] = (),
    *,
    x_label: str,
    y_label: str,
    x_range: tuple[Number, Number] | None = None,
    y_range: tuple[Number, Number] | None = None,
    bars: Sequence[tuple[Number, Number, Number]] = (),
    diagonal: bool = False,
    height: int = 200,
) -> str:
    """Lines, or bars (from x to x, height), in one pair of axes as SVG, with a legend below if there are several lines.

    `label` is for screen readers. Without a range the values give it.
    """
    points = [[(a, b) for a, b in zip(part.x, part.y, strict=True) if isfinite(b)] for part in series]
    low_x, high_x = x_range or _range([a for part in points for a, _ in part])
    low_y, high_y = y_range or _range([b for part in points for _, b in part])
    bottom = height - BOTTOM

    def x(value: Number) -> float:
        return LEFT + (value - low_x) / (high_x - low_x) * (RIGHT - LEFT)

    def y(value: Number) -> float:
        return bottom - (value - low_y) / (high_y - low_y) * (bottom - TOP)

    is_whole = all(isinstance(value, int) for part in series for value in part.x)
    kept = [np.linspace(0, len(p) - 1, min(len(p), MOST_POINTS)).round().astype(int).tolist() for p in points]
    names = [part.name for part in series] if len(series) > 1 else []
    columns = 2 if max(map(len, names), default=0) <= LETTERS_OF_A_COLUMN else 1
    spots = [(LEFT + i % columns * LEGEND_COLUMN, height + (1 + i // columns) * LEGEND_LINE) for i in range(len(names))]
    return page(
        "chart.svg.j2",
        label=label,
        left=LEFT,
        right=RIGHT,
        top=TOP,
        bottom=bottom,
        height=height + -(-len(names) // columns) * LEGEND_LINE + 3,
        x_label=x_label,
        y_label=y_label,
        x_ticks=[(x(v), f"{v:,.6g}") for v in ticks(low_x, high_x, 5, is_whole=is_whole)],
        y_ticks=[(y(v), f"{v:,.6g}") for v in ticks(low_y, high_y, 4, is_whole=bool(bars))],
        diagonal=diagonal,
        bars=[(x(a) + 0.5, y(count), max(0.5, x(b) - x(a) - 1)) for a, b, count in bars],
        lines=[[(x(part[i][0]), y(part[i][1])) for i in own] for part, own in zip(points, kept, strict=True)],
        most_dots=MOST_DOTS,
        legend=[(*spot, name) for spot, name in zip(spots, names, strict=True)],
    )


def ticks(low: Number, high: Number, most: int, *, is_whole: bool = False) -> list[float]:
    """About `most` round values between two."""
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    step = max(step, 1.0) if is_whole else step
    return [i * step for i in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _range(values: Sequence[Number]) -> tuple[Number, Number]:
    """From the smallest to the largest value, or around the only one."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


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
        unit: dict[str, Any] = {"x_range": (0, 1), "y_range": (0, 1), "height": 180}
        series = [Curve("precision", curve.recall, curve.precision)]
        drawn = chart(f"Precision over recall: {text}", series, x_label="recall", y_label="precision", **unit)
        precision_recall.append(Card(f"{split}: {curve.name}", text, (drawn,)))
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
        title=report.problem,
        headings={name: heading for name, heading, is_there in sections if is_there},
        charts=charts,
        precision_recall=precision_recall,
        rank_texts=rank_texts(),
        protocol_texts=protocol_texts,
        shown_metrics=list(METRICS),
        classification_metrics=[
            name
            for name, metric in METRICS.items()
            if metric.task != "ranking" and any(name in split.report.metrics for split in report.results)
        ],
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
    cards, curves = [], [curve for curve in report.curves if any(curve.y)]
    for panel in dict.fromkeys(curve.panel for curve in curves):
        series = [curve for curve in curves if curve.panel == panel]
        last = ", ".join(f"{part.name} {part.y[-1]:.4g}" for part in series)
        label = f"{panel.capitalize()} over the epochs; at the end: {last}"
        cards.append(
            Card(panel.capitalize(), f"At the end: {last}", (chart(label, series, x_label="epoch", y_label=panel),))
        )
    return {"training": cards, "reliability": found}


def reliability_card(heading: str, calibration: Calibration) -> Card:
    """The share of true atoms over the predicted probability, above the number of atoms."""
    filled = [part for part in calibration.bins if part.count]
    text = f"Brier {calibration.brier:.3f}, ECE {calibration.ece:.3f}"
    upper = chart(
        f"Share of true atoms over the predicted probability, which would be the diagonal if all were right: {text}",
        [Curve("observed", [p.confidence for p in filled], [p.accuracy for p in filled])],
        x_label="predicted probability",
        y_label="share of true atoms",
        x_range=(0, 1),
        y_range=(0, 1),
        diagonal=True,
    )
    bins = ", ".join(f"{part.lower:.1f} to {part.upper:.1f}: {part.count:,}" for part in filled)
    bars = [(part.lower, part.upper, part.count) for part in calibration.bins]
    words = {"x_label": "", "y_label": "atoms", "height": 110}
    most = max(1, *(part.count for part in calibration.bins))
    label = f"Atoms by predicted probability: {bins}"
    lower = chart(label, bars=bars, x_range=(0, 1), y_range=(0, most), **words)
    return Card(heading, text, (upper, lower))


PAGE = "report.html"
SHARE_OF_TRAINING = 0.15  # that rules and answers of its page may take; what is begun is finished, and it is drawn
LEAST_SECONDS = 5.0  # of a short training


def check_writable(path: Path, option: str = "file") -> None:
    """Reject a file that cannot be written, before any work is done; `option` is where the user named it."""
    with refusing(f"{str(path)!r} cannot be written", f"give another {option}"):
        is_folder, has_folder = path.is_dir(), path.absolute().parent.is_dir()
    if path.suffix.lower() == ".png":
        raise ConfigError(f"'{path}' cannot be written: PNG is not supported", hint="name a .svg or .html file")
    if is_folder:
        raise ConfigError(f"'{path}' cannot be written: it is a folder", hint="name a file in it")
    if not has_folder:
        raise ConfigError(f"'{path}' cannot be written: there is no folder {path.parent}", hint="make it first")


def write_file(path: Path, content: bytes | str, option: str = "file") -> None:
    """Write a file completely or not at all; text as UTF-8, with `?` for what that cannot encode."""
    check_writable(path, option)
    with refusing(f"{str(path)!r} cannot be written", f"give another {option}"):
        write_atomically(path, content.encode("utf-8", "replace") if isinstance(content, str) else content)


def write_results(folder: Path, reports: Sequence[Report], training: Training) -> tuple[dict[str, Any], list[str]]:
    """Write `report.json` into a run's folder, which takes no time; its document, and why it could not be written."""
    document = {
        "run": str(folder),
        "epochs": training.epochs,
        "reports": [report.to_dict() for report in reports],
        "phases": [asdict(phase) for phase in training.phases],
        "chosen": dict(training.chosen or {}),
    }
    text = json_text(document, indent=1, ascii_alone=True)
    return document, _failures("report.json", lambda: write_atomically(RunFolder(folder).report, text.encode()))


def write_page(folder: Path, trained: Model, reports: Sequence[Report], training: Training) -> list[str]:
    """Write `report.html` within a share of the training's time; a message if it could not be written."""
    seconds = max(LEAST_SECONDS, SHARE_OF_TRAINING * sum(phase.cpu_seconds for phase in training.phases))

    def write() -> None:
        write_file(folder / PAGE, run_page(build_report(folder, trained, reports, training, seconds)), "--out")

    return _failures(PAGE, write)


def _failures(what: str, write: Callable[[], None]) -> list[str]:
    """A message if a file cannot be written, whatever the error."""
    try:
        write()
    except Exception as error:
        other = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        why = error.what if isinstance(error, R2NError) else other
        return [f"{what} could not be written: {why}; the run is complete, and r2n report writes it again"]
    return []
