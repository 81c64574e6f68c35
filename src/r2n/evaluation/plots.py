"""Predictions -> pictures: reliability, precision and recall, ranks, and curves of a training, as PNG or SVG files.

Figures are drawn without a display and without pyplot's global state; a file appears only when it is whole.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from r2n.errors import DataError
from r2n.evaluation.by_query import LAST_RANKS, PrecisionRecall, RankCounts
from r2n.evaluation.metrics import Calibration
from r2n.files import new_file

FORMATS = (".png", ".svg")
MOST_CURVES = 8
MOST_BARS = 25
LONGEST_NAME = 30


@dataclass(frozen=True, slots=True)
class Curve:
    """A number over epochs; curves of one panel share a pair of axes. NaN leaves a gap."""

    name: str
    epochs: tuple[int, ...]
    values: tuple[float, ...]
    panel: str = "loss"

    def __post_init__(self) -> None:
        """Check that there is a value for each epoch."""
        if len(self.epochs) != len(self.values):
            raise DataError(f"curve '{self.name}' has {len(self.values)} values for {len(self.epochs)} epochs")


def plot_reliability(calibration: Calibration, path: Path | str, *, title: str = "Reliability") -> None:
    """Draw the share of true atoms over the predicted probability, bin by bin, above the number of atoms."""
    figure = Figure(figsize=(4.5, 5.5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    filled = [part for part in calibration.bins if part.count]
    upper.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1, label="as it should be")
    upper.plot([p.confidence for p in filled], [p.accuracy for p in filled], marker="o", label="as it is")
    upper.set(title=title, xlim=(0, 1), ylim=(-0.02, 1.02), ylabel="share of true atoms")
    upper.legend(title=f"Brier {calibration.brier:.3f}, ECE {calibration.ece:.3f}")
    lefts, widths = [p.lower for p in calibration.bins], [p.upper - p.lower for p in calibration.bins]
    lower.bar(lefts, [p.count for p in calibration.bins], widths, align="edge", edgecolor="white")
    lower.set(xlabel="predicted probability", ylabel="atoms")
    _write(figure, Path(path))


def plot_training(
    curves: Sequence[Curve], path: Path | str, *, best: int | None = None, title: str = "Training"
) -> None:
    """Draw the curves over epochs, a panel below the other; `best`: the epoch whose weights were kept."""
    panels = list(dict.fromkeys(curve.panel for curve in curves)) or [""]
    figure = Figure(figsize=(6, 0.8 + 2.4 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for panel, axis in zip(panels, axes, strict=True):
        _draw_panel(axis, [curve for curve in curves if curve.panel == panel], best)
        axis.set_ylabel(panel)
    axes[0].set_title(title)
    axes[-1].set_xlabel("epoch")
    _write(figure, Path(path))


def plot_precision_recall(
    curves: Sequence[PrecisionRecall], path: Path | str, *, title: str = "Precision and recall"
) -> None:
    """Draw the first of the curves, each with its average precision."""
    figure = Figure(figsize=(5.5, 4.5), layout="constrained")
    axis = figure.subplots()
    for curve in curves[:MOST_CURVES]:
        axis.step(curve.recall, curve.precision, where="pre", label=f"AP {curve.ap:.3f}, {_name(curve.name)}")
    axis.set(title=title, xlabel="recall", ylabel="precision", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    if curves:
        axis.legend(loc="lower left")
    _write(figure, Path(path))


def plot_ranks(counts: Sequence[RankCounts], path: Path | str, *, title: str = "Ranks") -> None:
    """Draw for each of the first parts which share of its ranks is how good, best from the left."""
    drawn = counts[:MOST_BARS]
    figure = Figure(figsize=(6.5, 1.6 + 0.3 * max(1, len(drawn))), layout="constrained")
    axis = figure.subplots()
    names = [f"{_name(part.name)} ({part.ranks:,})" for part in drawn]
    left = [0.0] * len(drawn)
    for i, words in enumerate(rank_words()):
        shares = [part.counts[i] / max(1, part.ranks) for part in drawn]
        grey = str(round(0.15 + 0.7 * i / len(LAST_RANKS), 3))
        axis.barh(range(len(drawn)), shares, left=left, label=words, color=grey, edgecolor="white")
        left = [a + b for a, b in zip(left, shares, strict=True)]
    axis.set_yticks(range(len(drawn)), names)
    axis.invert_yaxis()
    axis.set(xlabel="share of ranks", xlim=(0, 1))
    figure.suptitle(title)
    figure.legend(loc="outside lower center", ncols=len(LAST_RANKS) + 1)
    _write(figure, Path(path))


def rank_words() -> tuple[str, ...]:
    """`1`, `2-3`, `4-10`: the ranks that are counted together (and the halves between, by the rank above)."""
    firsts = [1, *(last + 1 for last in LAST_RANKS)]
    words = [
        str(first) if first == last else f"{first}-{last}" for first, last in zip(firsts, LAST_RANKS, strict=False)
    ]
    return (*words, f"above {LAST_RANKS[-1]}")


def _name(name: str) -> str:
    """A name from the data, cut where it is long."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."


def _draw_panel(axis: Axes, curves: Sequence[Curve], best: int | None) -> None:
    for curve in curves:
        axis.plot(curve.epochs, curve.values, label=curve.name, marker="." if len(curve.epochs) == 1 else None)
    if best is not None:
        axis.axvline(best, color="grey", linestyle=":", linewidth=1, label=f"best: epoch {best}")
    if curves or best is not None:
        axis.legend()


def _write(figure: Figure, path: Path) -> None:
    """Write the figure beside its place, then move it there: no reader ever sees half of it.

    Names from the data are no formulas, whatever stands in them, and letters that the font lacks are drawn as boxes.
    """
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"cannot draw {path.name}", hint=f"end the name with {' or '.join(FORMATS)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = path.suffix.lower().removeprefix(".")
    for text in figure.findobj(Text):
        text.set_parse_math(False)  # pyright: ignore[reportAttributeAccessIssue]
    with rc_context({"svg.hashsalt": "r2n"}), warnings.catch_warnings(), new_file(path) as file:
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        # and no date: the same figure is the same file
        figure.savefig(file, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
