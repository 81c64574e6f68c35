"""What nodes look like."""

from dataclasses import replace

from r2n.explanation.drawing.boxes import Box, answer_box, contrast_box, layers_text, node_box, wrapped
from r2n.explanation.drawing.marks import Rectangle, Stroke, Words
from r2n.explanation.drawing.reason_graph import Node
from r2n.explanation.drawing.styles import text_width
from r2n.explanation.records import Belief, Counterfactual
from tests.explanations import CLOSED, FALSE, NASTY, TRUE, italy


def atom(belief: Belief, name: str = "p(a)") -> Box:
    return node_box(Node("atom", name, "a note", "", 2, belief))


def styles(box: Box) -> list[str]:
    return [mark.style for mark in box.marks]


def words(box: Box) -> list[str]:
    return [mark.text for mark in box.marks if isinstance(mark, Words)]


def is_inside(box: Box) -> bool:
    """Whether all words and boxes are within the box."""
    for mark in box.marks:
        if isinstance(mark, Words):
            width = text_width(mark.text, mark.style)
            left = mark.x - {"start": 0.0, "middle": width / 2, "end": width}[mark.anchor]
            if left < 0 or left + width > box.width or not 0 < mark.y < box.height:
                return False
        if isinstance(mark, Rectangle) and (mark.x + mark.width > box.width or mark.y + mark.height > box.height):
            return False
    return True


def test_truth_is_said_by_colour_by_sign_and_by_dash() -> None:
    assert "sign-for" in styles(atom(TRUE))
    assert "edge-for" in styles(atom(TRUE))
    for belief in (FALSE, CLOSED):
        assert styles(atom(belief)).count("sign-against") == 2
        assert "edge-against" in styles(atom(belief))
    believed = atom(Belief(0.75, 1.1))
    gauge = [mark for mark in believed.marks if isinstance(mark, Rectangle)][-1]
    assert (gauge.style, gauge.height, gauge.y) == ("tint-for", 18, 16)
    assert not any(isinstance(mark, Stroke) for mark in believed.marks)


def test_belief_is_said_by_strength() -> None:
    strengths = [atom(belief).marks[1] for belief in (TRUE, Belief(0.9, 2.2), Belief(0.6, 0.4), Belief(0.5, 0.0))]
    values = [mark.strength for mark in strengths if isinstance(mark, Rectangle)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == 0


def test_names_of_any_kind_fit_into_their_boxes() -> None:
    for name in NASTY:
        shown = name.encode("utf-8", "replace").decode()
        assert is_inside(atom(TRUE, shown))
        assert is_inside(node_box(Node("rule", shown, "+1.00", "", 1, effect=1.0)))
        given = replace(
            italy(),
            atom=name,
            turned_by=Counterfactual("known to be false", (name,) * 5, 0.0, 0.5, True),
            contrast=None,
        )
        assert is_inside(answer_box(given))
        given = italy()
        assert given.contrast is not None
        assert is_inside(contrast_box(replace(given, contrast=replace(given.contrast, other=name))))


def test_long_names_are_shortened() -> None:
    assert atom(TRUE, "x" * 10_000).width < 400


def test_a_ground_rule_shows_its_effect_and_its_rule() -> None:
    box = node_box(Node("rule", "manifold", "-0.42", "", 1, effect=-0.42))
    assert words(box) == ["-0.42", "manifold"]
    assert styles(box)[0] == "pill-against"
    assert words(node_box(Node("more", "and 3 more atoms", "", "", 2))) == ["and 3 more atoms"]


def test_the_answer_shows_layers_how_sure_it_is_and_what_would_turn_it() -> None:
    shown = words(answer_box(italy()))
    assert shown[:2] == ["locatedIn(italy, europe)", "0.97"]
    assert shown[2:5] == ["2", "1", "input"]
    assert "calibrated on 24 validation queries" in shown
    text = " ".join(shown)
    assert "The answer would turn without neighborOf(france, italy) and neighborOf(austria, italy): 0.45" in text
    assert layers_text(italy()) == "input layer 0.53, layer 1 0.91, layer 2 0.97"


def test_without_a_set_of_facts_the_first_thing_that_turns_it_is_shown() -> None:
    given = replace(italy(), turned_by=None)
    assert "without rule manifold: 0.41" in " ".join(words(answer_box(given)))
    assert "turn" not in " ".join(words(answer_box(replace(given, counterfactuals=()))))
    many = Counterfactual("not known", tuple("abcde"), 0.0, 0.2, True)
    assert "without a and b and c and 2 more: 0.20" in " ".join(words(answer_box(replace(given, turned_by=many))))


def test_words_are_wrapped_and_long_ones_cut() -> None:
    width = 10.01 * text_width("x", "note")
    assert wrapped(["one", "two", "three", "four"], "note", width) == ["one two", "three four"]
    assert wrapped(["if", "p(a, b, c)", "so"], "note", width) == ["if", "p(a, b, c)", "so"]
    assert wrapped(["abcdefghijklmnop", "qrs"], "note", width) == ["abcdefghij", "klmnop qrs"]
    assert wrapped([], "note", width) == [""]
