"""The whole drawing, as marks."""

from dataclasses import replace

from r2n.explanation.drawing.marks import Picture, Stroke, Words
from r2n.explanation.drawing.picture import THICKEST, THINNEST, explanation_picture
from r2n.explanation.records import Belief, Explanation
from tests.explanations import italy

ALONE = Explanation("p(a)", Belief(0.5, 0.0), (), ())


def strokes(picture: Picture, style: str) -> list[Stroke]:
    marks = [mark for group in picture.groups for mark in group.marks]
    return [mark for mark in marks if isinstance(mark, Stroke) and mark.style == style and mark.is_curve]


def words(picture: Picture) -> list[str]:
    return [mark.text for group in picture.groups for mark in group.marks if isinstance(mark, Words)]


def test_edges_are_as_wide_as_the_effect_and_dashed_against() -> None:
    picture = explanation_picture(replace(italy(), contrast=None))
    widths = sorted(stroke.width for stroke in strokes(picture, "flow-for"))
    assert len(widths) == 6
    assert widths[-1] == THICKEST
    assert widths[0] == THINNEST + (THICKEST - THINNEST) * 0.4 / 3.4
    assert len(strokes(picture, "flow-against")) == 1


def test_what_stands_further_left_is_linked_by_dots() -> None:
    picture = explanation_picture(replace(italy(), contrast=None))
    assert len(strokes(picture, "link-back")) == 1
    assert len(strokes(picture, "link")) == 13


def test_what_it_is_held_against_is_drawn_below() -> None:
    alone, both = explanation_picture(replace(italy(), contrast=None)), explanation_picture(italy())
    assert both.height > alone.height
    assert "the difference" in words(both)
    assert "rather than" not in words(alone)


def test_who_cannot_see_it_hears_what_it_shows() -> None:
    picture = explanation_picture(italy())
    assert picture.title == "Why locatedIn(italy, europe)?"
    assert picture.description.startswith("The answer is 0.97; the strongest reason is neighborOf(france, italy) & ")
    assert picture.description.endswith("without them 0.12 is left.")
    assert explanation_picture(ALONE).description == "The answer is 0.50; no ground rule is a reason."


def test_an_answer_without_reasons_has_no_legend() -> None:
    assert "speaks against it" in words(explanation_picture(italy()))
    assert "speaks against it" not in words(explanation_picture(ALONE))
