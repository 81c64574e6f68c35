"""Where nodes stand."""

from r2n.explanation.drawing.boxes import Box
from r2n.explanation.drawing.layout import BELOW_ATOM, GAPS, LOWEST_ANSWER, MARGIN, Layout, lay_out
from r2n.explanation.drawing.reason_graph import reason_graph
from tests.explanations import TRUE, chain, italy


def laid_out(depth: int, rules: int) -> Layout:
    given = chain(depth, rules)
    graph = reason_graph(given.atom, given.belief, given.reasons)
    return lay_out(graph, [Box(50, 20, ()) for _ in graph.nodes])


def test_an_answer_alone_stands_in_the_corner() -> None:
    layout = lay_out(reason_graph("p(a)", TRUE, ()), [Box(100, 50, ())])
    assert (layout.places[0].x, layout.width) == (MARGIN, 2 * MARGIN + 100)


def test_columns_follow_each_other_with_room_for_the_edges() -> None:
    layout = laid_out(2, 1)
    assert [place.x for place in layout.places] == list(layout.columns)
    steps = [b - a for a, b in zip(layout.columns, layout.columns[1:], strict=False)]
    assert steps == [50 + GAPS[0], 50 + GAPS[1], 50 + GAPS[0], 50 + GAPS[1]]
    assert len({place.middle for place in layout.places}) == 1  # a chain is a straight line


def test_a_node_stands_between_its_children() -> None:
    layout = laid_out(1, 3)
    answer, first, atom, *others = layout.places
    rules = [first, *others]
    assert answer.middle == rules[1].middle
    assert atom.middle == rules[0].middle
    assert [place.y for place in rules] == sorted(place.y for place in rules)


def test_what_hangs_on_a_node_comes_as_near_as_boxes_allow() -> None:
    """A fact stands right below another atom, however much hangs on that one."""
    given = italy()
    graph = reason_graph(given.atom, given.belief, given.reasons)
    layout = lay_out(graph, [Box(100, 44, ()) for _ in graph.nodes])
    place = {node.name: place for node, place in zip(graph.nodes, layout.places, strict=True)}
    first, second = place["neighborOf(france, italy)"], place["locatedIn(france, europe)"]
    assert second.y == first.bottom + BELOW_ATOM


def test_the_answer_is_seen_first_of_a_tall_drawing() -> None:
    layout = laid_out(1, 12)
    graph = reason_graph("p(0)", TRUE, chain(1, 12).reasons)
    tall = lay_out(graph, [Box(50, 400, ()) for _ in graph.nodes])
    assert layout.places[0].y < LOWEST_ANSWER
    assert tall.places[0].y == LOWEST_ANSWER
