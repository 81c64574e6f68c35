"""The graph of an explanation's atoms and ground rules."""

from r2n.explanation.drawing import MOST_GROUND_RULES, MOST_NAMED, MOST_OF_ONE_ATOM, Edge, reason_graph
from r2n.explanation.records import Belief, Member, Reason
from tests.explanations import TRUE, chain, italy

ITALY = italy()
GRAPH = reason_graph(ITALY.atom, ITALY.belief, ITALY.reasons, if_unknown={"neighborOf(france, italy)": "0.78"})


def test_every_node_but_the_answer_is_the_child_of_one_other_a_column_left() -> None:
    graph = GRAPH
    back = next(i for i, node in enumerate(graph.nodes) if node.title.startswith("manifold +0.40"))
    assert Edge(back, 0) in graph.edges
    parents = {child: i for i, node in enumerate(graph.nodes) for child in node.children}
    assert sorted(parents) == list(range(1, len(graph.nodes)))
    assert sum(len(node.children) for node in graph.nodes) == len(parents)
    for child, parent in parents.items():
        assert parent < child
        assert graph.nodes[child].column == graph.nodes[parent].column + 1


def test_reasons_that_stand_elsewhere_are_found() -> None:
    """An atom that is referred to first and explained later is expanded where it is nearest to the answer."""
    deep = Member("q(a)", TRUE, reasons=(Reason("t", "u(a) -> q(a)", 0.5, (Member("u(a)", TRUE),)),))
    over = Member("s(a)", TRUE, reasons=(Reason("s", "q(a) -> s(a)", 0.4, (deep,)),))
    reasons = (
        Reason("r", "q(a) & s(a) -> p(a)", 1.0, (Member("q(a)", TRUE, is_explained_above=True), over)),
        Reason("r", "q(a) -> p(a)", 1.0, (Member("q(a)", TRUE, is_explained_above=True),)),
    )
    graph = reason_graph("p(a)", Belief(0.5, 0.0), reasons)
    columns = {node.name: node.column for node in graph.nodes if node.kind == "atom"}
    assert columns == {"q(a)": 2, "s(a)": 2, "u(a)": 4}
    assert sum(edge.effect is None for edge in graph.edges) == 5


def test_an_atom_at_two_positions_has_one_edge_and_the_answer_of_a_difference_stands_for_both() -> None:
    twice = Reason("r", "q(a) & q(a) -> p(a)", 1.0, (Member("q(a)", TRUE), Member("q(a)", TRUE)))
    assert reason_graph("p(a)", TRUE, (twice,)).edges == (Edge(1, 0, 1.0), Edge(1, 2))
    members = Member("q(a)", TRUE), Member("p(b)", TRUE)
    graph = reason_graph("p(a)", TRUE, (Reason("r", "q(a) -> p(b)", -1.0, members),), other="p(b)")
    assert [node.name for node in graph.nodes] == ["p(a)", "r", "q(a)"]
    assert graph.edges == (Edge(1, 0, -1.0), Edge(1, 2))


def test_many_ground_rules_are_counted_and_named_by_a_node_of_their_own() -> None:
    reasons = tuple(Reason(f"r{i}", f"q({i}) -> p(a)", 1.0 / (i + 1), (Member(f"q({i})", TRUE),)) for i in range(100))
    graph = reason_graph("p(a)", TRUE, reasons)
    more = [node for node in graph.nodes if node.kind == "more"]
    assert [node.name for node in more] == [f"and {100 - MOST_OF_ONE_ATOM} more ground rules"]
    assert len(more[0].title.splitlines()) == MOST_NAMED + 1
    assert more[0].title.endswith(f"and {100 - MOST_OF_ONE_ATOM - MOST_NAMED} more")
    one_more = reason_graph("p(a)", TRUE, reasons[: MOST_OF_ONE_ATOM + 1])
    assert not [node for node in one_more.nodes if node.kind == "more"]


def test_a_deep_explanation_is_drawn_from_the_answer_on_as_far_as_there_is_room() -> None:
    given = chain(20, rules=3)
    graph = reason_graph(given.atom, given.belief, given.reasons)
    drawn = sum(node.kind == "rule" for node in graph.nodes)
    assert MOST_GROUND_RULES <= drawn <= MOST_GROUND_RULES + 2
    left = [node.note for node in graph.nodes if "not drawn" in node.note]
    assert left == ["believed 0.70 · 3 reasons not drawn"] or any("more ground rule" in n.name for n in graph.nodes)
