"""An explanation as lines within lines."""

from collections.abc import Iterator
from dataclasses import replace

from r2n.explanation.records import Belief, Explanation, Member, Reason
from r2n.explanation.text import MOST_MEMBERS, Line, all_reasons, shown_members, tell
from tests.explanations import CLOSED, TRUE, chain, italy


def told(line: Line) -> Iterator[str]:
    yield str(line)
    for below in line.lines:
        yield from told(below)


def part(explanation: Explanation, title: str) -> Line:
    return next(line for line in tell(explanation).lines if str(line).startswith(title))


def test_the_first_line_is_the_answer() -> None:
    assert str(tell(italy())).startswith("locatedIn(italy, europe)  0.97  not known, believed by the network; ")


def test_the_parts_stand_in_their_order_and_none_is_empty() -> None:
    titles = [str(line).split(",")[0] for line in tell(italy()).lines]
    assert titles == [
        "layer by layer",
        "because of these ground rules",
        "what if",
        "the smallest set of facts found whose absence turns the answer",
        "rather than locatedIn(italy",
        "how far these ground rules carry the answer",
        "what the input layer goes by",
        "notes",
    ]
    assert tell(Explanation("p(a)", Belief(0.5, 0.0), (), ())).lines == ()


def test_layers_have_a_bar_as_long_as_their_belief() -> None:
    lines = part(italy(), "layer by layer").lines
    assert [str(line) for line in lines] == ["input layer   0.53", "layer 1       0.91", "layer 2       0.97"]
    assert [span.share for line in lines for span in line.spans if span.role == "bar"] == [0.53, 0.91, 0.97]


def test_reasons_have_sign_rule_ground_rule_and_atoms() -> None:
    reasons = part(italy(), "because").lines
    first = reasons[0]
    assert [span.role for span in first.spans] == ["for", "bar", "words", "rule", "formula"]
    assert first.spans[0].text == " +1.92 "
    assert first.spans[1].share == 1.92 / 3.4  # the strongest effect of all is further down
    assert str(first.lines[0]) == "neighborOf(france, italy): true by the facts"
    assert str(first.lines[1]) == "locatedIn(france, europe): believed 0.93"
    assert reasons[-1].spans[0].role == "against"
    assert str(reasons[-1].lines[1]) == "locatedIn(northern_africa, europe): closed: no fact, so false"


def test_an_atom_that_is_met_again_is_referred_to() -> None:
    lines = list(told(part(italy(), "because")))
    assert "locatedIn(italy, europe): believed 0.97  (told above)" in lines
    first = Reason("r", "q(a) -> p(a)", 1.0, (Member("q(a)", TRUE, is_told_above=True),))
    later = Reason("s", "q(a) | p(a)", 0.5, (Member("q(a)", TRUE, reasons=(Reason("t", "q(a)", 0.1),)),))
    shown = list(told(tell(Explanation("p(a)", Belief(0.5, 0.0), (), (first, later)))))
    assert "q(a): true by the facts  (told elsewhere)" in shown


def test_effects_of_atoms_are_told_where_they_were_asked() -> None:
    reason = Reason("r", "q(a) -> p(a)", 1.0, (Member("q(a)", TRUE, effect=-0.5),))
    shown = list(told(tell(Explanation("p(a)", Belief(0.5, 0.0), (), (reason,)))))
    assert "q(a): true by the facts  (effect -0.50)" in shown


def test_counterfactuals_say_what_becomes_of_the_answer() -> None:
    assert [str(line) for line in part(italy(), "what if").lines] == [
        "if neighborOf(france, italy) were not known: 0.97 → 0.78  (effect +1.90)",
        "if locatedIn(france, europe) were known to be false: 0.97 → 0.64  (effect +2.70)",
        "without rule manifold: 0.97 → 0.41, the answer turns  (effect +4.00)",
    ]
    smallest = part(italy(), "the smallest").lines[0]
    names = "neighborOf(france, italy) and neighborOf(austria, italy)"
    assert str(smallest) == f"if {names} were not known: 0.97 → 0.45, the answer turns  (effect +3.80)"


def test_the_contrast_says_how_far_the_other_is() -> None:
    line = part(italy(), "rather than")
    assert str(line).endswith("0.03  the logits differ by +7.10; these ground rules make it")
    assert len(line.lines) == 2
    given = italy()
    assert given.contrast is not None
    none = replace(given, contrast=replace(given.contrast, reasons=(), belief=CLOSED))
    assert "closed: no fact, so false; the logits" in str(part(none, "rather than"))
    assert str(part(none, "rather than").lines[0]) == "no ground rule makes a difference"


def test_the_input_layer_goes_by_similar_facts_and_features() -> None:
    assert [str(line) for line in part(italy(), "what the input").lines] == [
        "similarity 0.91  locatedIn(malta, europe): true by the facts",
        "similarity 0.40  locatedIn(malta, africa): false by the facts",
        " +0.80  peninsula of italy",
        " -0.20  desert of italy",
    ]


def test_of_many_atoms_the_weightiest_are_shown_in_the_order_of_the_rule() -> None:
    few = tuple(Member(f"q({i})", CLOSED) for i in range(MOST_MEMBERS + 1))
    assert shown_members(Reason("r", "r", 1.0, few)) == (few, ())
    many = [Member(f"q({i})", CLOSED) for i in range(20)]
    many[3] = Member("q(3)", TRUE)
    many[9] = Member("q(9)", Belief(0.4, -0.4), effect=0.1)
    many[12] = Member("q(12)", Belief(0.4, -0.4), reasons=(Reason("t", "t", 0.1),))
    shown, others = shown_members(Reason("r", "r", 1.0, tuple(many)))
    assert len(shown) == MOST_MEMBERS
    assert [member.atom for member in shown] == [f"q({i})" for i in (0, 1, 2, 3, 4, 5, 9, 12)] or shown[-1] is many[12]
    assert {"q(3)", "q(9)", "q(12)"} <= {member.atom for member in shown}
    assert {*shown, *others} == set(many)
    line = tell(Explanation("p(a)", Belief(0.5, 0.0), (), (Reason("r", "r", 1.0, tuple(many)),))).lines[0].lines[0]
    assert str(line.lines[-1]) == "and 12 more atoms: 12 closed"


def test_all_reasons_come_before_those_of_their_atoms() -> None:
    rules = [reason.ground_rule for reason in all_reasons(chain(3, rules=2).reasons)]
    assert rules == [f"p({i + 1}) & q({j}) -> p({i})" for i, j in ((0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1))]
