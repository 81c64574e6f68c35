"""The drawing as PNG."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from r2n.errors import ConfigError
from r2n.explanation.drawing.marks import Group, Picture, Rectangle, Words
from r2n.explanation.drawing.picture import explanation_picture
from r2n.explanation.records import Belief, Explanation, LayerBelief, Member, Reason
from r2n.reporting.explanations.png import MOST_PIXELS, picture_png, write_explanation_png
from tests.explanations import CLOSED, NASTY, TRUE

SMALL = Explanation(
    "p(a)",
    Belief(0.9, 2.2),
    (LayerBelief(0, 0.0, 0.5),),
    (Reason("r", "q(a) & !s(a) -> p(a)", -1.5, (Member("q(a)", TRUE), Member("s(a)", CLOSED))),),
)


def pixels(content: bytes) -> np.ndarray:
    return imread(BytesIO(content), format="png")


def test_it_has_the_size_of_the_picture(tmp_path: Path) -> None:
    path, picture = tmp_path / "x.png", explanation_picture(SMALL)
    write_explanation_png(SMALL, path, scale=1.0)
    height, width, _ = pixels(path.read_bytes()).shape
    assert abs(width - picture.width) <= 1
    assert abs(height - picture.height) <= 1


def test_light_and_dark() -> None:
    page = Picture("", "", 40, 30, (Group("", (Rectangle(0, 0, 40, 30, "page"),)),))
    light, dark = (pixels(picture_png(page, theme))[15, 20, :3] for theme in ("light", "dark"))
    assert light.min() > 0.99
    assert dark.max() < 0.1


def test_names_are_no_formulas_and_letters_without_a_picture_no_error() -> None:
    texts = tuple(Words(5, 15, name.encode("utf-8", "replace").decode()[:20], "atom") for name in NASTY)
    assert picture_png(Picture("", "", 300, 30, (Group("", texts),)), scale=0.5)
    plain, formula = (
        picture_png(Picture("", "", 90, 30, (Group("", (Words(5, 15, text, "atom"),)),))) for text in ("x^2", "$x^2$")
    )
    assert (pixels(formula)[:, :, 0] < 0.5).sum() > (pixels(plain)[:, :, 0] < 0.5).sum()  # the signs are there


def test_a_large_drawing_has_fewer_dots_to_a_pixel() -> None:
    tall = Picture("", "", 20, 3.0 * MOST_PIXELS, (Group("", ()),))
    assert pixels(picture_png(tall)).shape[0] <= MOST_PIXELS


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        write_explanation_png(replace(SMALL, reasons=()), tmp_path / "nowhere" / "x.png")
