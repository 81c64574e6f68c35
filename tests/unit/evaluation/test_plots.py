"""Plots are whole files of the format that their name says, the same each time, or no file at all."""

import stat
from math import inf, nan
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import Rectangle

from r2n.errors import DataError
from r2n.evaluation.by_query import PrecisionRecall, RankCounts
from r2n.evaluation.metrics import Calibration, calibration
from r2n.evaluation.plots import (
    MOST_CURVES,
    Curve,
    plot_precision_recall,
    plot_ranks,
    plot_reliability,
    plot_training,
    rank_words,
)

PROBABILITIES = np.linspace(0.05, 0.95, 40)
BELIEVED = calibration(PROBABILITIES, PROBABILITIES > 0.4)
EMPTY = calibration(np.zeros(0), np.zeros(0, bool))
CURVES = (
    Curve("train", (1, 2, 3), (0.9, 0.5, 0.4)),
    Curve("semantic", (1, 2, 3), (0.3, nan, inf)),
    Curve("ap", (2,), (0.8,), panel="validation"),
)


@pytest.mark.parametrize("believed", [BELIEVED, EMPTY], ids=["some", "none"])
@pytest.mark.parametrize("suffix", [".png", ".svg", ".PNG"])
def test_reliability(believed: Calibration, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "plots" / f"reliability{suffix}"
    plot_reliability(believed, path)
    assert is_drawn(path)


@pytest.mark.parametrize("curves", [CURVES, CURVES[:1], ()], ids=["three", "one", "none"])
@pytest.mark.parametrize("best", [None, 2])
def test_training(curves: tuple[Curve, ...], best: int | None, tmp_path: Path) -> None:
    path = tmp_path / "training.svg"
    plot_training(curves, str(path), best=best, title="countries-s3")
    assert is_drawn(path)


def is_drawn(path: Path) -> bool:
    """Whether the file is an image with something on it, and alone in its folder."""
    if path.suffix == ".svg":
        drawn = ElementTree.parse(path).getroot().tag.endswith("svg")
    else:
        drawn = float(np.ptp(imread(path, format="png"))) > 0
    return drawn and [other.name for other in path.parent.iterdir()] == [path.name]


def test_panels_and_curves_are_what_was_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **kw: (drawn.append(self), save(self, *args, **kw))[1])
    plot_training(CURVES, tmp_path / "training.png", best=2)
    loss, validation = drawn[0].axes
    assert (loss.get_ylabel(), validation.get_ylabel()) == ("loss", "validation")
    assert [line.get_label() for line in loss.lines] == ["train", "semantic", "best: epoch 2"]
    assert np.asarray(loss.lines[0].get_xydata()).tolist() == [[1, 0.9], [2, 0.5], [3, 0.4]]
    assert np.asarray(validation.lines[0].get_xydata()).tolist() == [[2, 0.8]]
    plot_reliability(BELIEVED, tmp_path / "reliability.png")
    curve, histogram = drawn[1].axes
    filled = [[part.confidence, part.accuracy] for part in BELIEVED.bins if part.count]
    assert np.asarray(curve.lines[1].get_xydata()).tolist() == filled
    heights = [bar.get_height() for bar in histogram.patches if isinstance(bar, Rectangle)]
    assert heights == [part.count for part in BELIEVED.bins]


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_same_numbers_give_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        plot_reliability(BELIEVED, tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


def test_a_plot_that_fails_leaves_the_old_file_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "reliability.svg"
    path.write_text("old")

    def half(self: Figure, target: BinaryIO, **_: object) -> None:
        target.write(b"half a pict")
        raise OSError("no space left on device")

    monkeypatch.setattr(Figure, "savefig", half)
    with pytest.raises(OSError, match="no space"):
        plot_reliability(BELIEVED, path)
    assert [(other.name, other.read_text()) for other in tmp_path.iterdir()] == [("reliability.svg", "old")]


def test_others_may_read_a_plot_as_any_other_file(tmp_path: Path) -> None:
    (tmp_path / "any").touch()
    plot_reliability(BELIEVED, tmp_path / "reliability.svg")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


@pytest.mark.parametrize("name", ["plot.pdf", "plot"])
def test_other_formats_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"^cannot draw {name}\n  end the name with .png or .svg$"):
        plot_reliability(BELIEVED, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_curve_has_a_value_for_each_epoch() -> None:
    with pytest.raises(DataError, match="curve 'loss' has 1 values for 2 epochs"):
        Curve("loss", (1, 2), (0.5,))


NASTY = "$a_{b$ _x [/] \u202e \u6f22\u5b57 " + 10_000 * "y"


def drawn_figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    drawn: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **kw: (drawn.append(self), save(self, *args, **kw))[1])
    return drawn


def test_precision_and_recall(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn = drawn_figures(monkeypatch)
    curves = [PrecisionRecall(f"p{i}", (0.0, 0.5, 1.0), (1.0, 1.0, 0.6), 0.8, 5, 3) for i in range(20)]
    plot_precision_recall(curves, tmp_path / "precision-recall.png", title="$x$")
    assert is_drawn(tmp_path / "precision-recall.png")
    (axis,) = drawn[0].axes
    assert len(axis.lines) == MOST_CURVES
    assert axis.lines[0].get_label() == "AP 0.800, p0"
    assert axis.lines[0].get_drawstyle() == "steps-pre"
    assert axis.get_title() == "$x$"


def test_ranks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn = drawn_figures(monkeypatch)
    plot_ranks([RankCounts("p", (1, 1, 2, 0, 0)), RankCounts("q", (0, 0, 0, 0, 3))], tmp_path / "ranks.png")
    assert is_drawn(tmp_path / "ranks.png")
    bars = [bar for bar in drawn[0].axes[0].patches if isinstance(bar, Rectangle)]
    assert [bar.get_width() for bar in bars[::2]] == [0.25, 0.25, 0.5, 0, 0]
    assert [bar.get_x() for bar in bars[::2]] == [0, 0.25, 0.5, 1, 1]
    assert [bar.get_width() for bar in bars[1::2]] == [0, 0, 0, 0, 1]
    assert rank_words() == ("1", "2-3", "4-10", "11-100", "above 100")


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_names_from_data_are_no_formulas(suffix: str, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("reliability", "curves", "ranks", "nothing")]
    plot_reliability(BELIEVED, folders[0] / f"x{suffix}", title=NASTY[:80])
    plot_precision_recall([PrecisionRecall(NASTY, (0.0, 1.0), (1.0, 1.0), 1.0, 1, 1)], folders[1] / f"x{suffix}")
    plot_ranks([RankCounts(NASTY, (1, 0, 0, 0, 0))], folders[2] / f"x{suffix}", title="$a_{b$")
    plot_ranks([], folders[3] / f"x{suffix}")
    assert all(is_drawn(folder / f"x{suffix}") for folder in folders)
    plot_precision_recall([], folders[3] / f"x{suffix}")
    assert is_drawn(folders[3] / f"x{suffix}")
