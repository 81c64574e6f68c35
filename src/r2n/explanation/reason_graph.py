"""The graph of an explanation's atoms and ground rules, in which every atom is one node."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from r2n.errors import counted
from r2n.explanation.records import Belief, Reason
from r2n.explanation.text import all_reasons, effect_text, status_text, strongest
from r2n.visible import printable

MOST_GROUND_RULES = 40
MOST_OF_ONE_ATOM = 12
MOST_NAMED = 50

NodeKind = Literal["answer", "atom", "rule", "more"]


@dataclass(slots=True)
class Node:
    """An atom, a ground rule, or the number of those that are not drawn.

    `name` is shown, `note` below it, and `title` is the full text. `column` counts from the answer. Every node but the
    answer is one of the `children` of one other node. `of` is the atom, or the name of the rule, as it is in the data.
    """

    kind: NodeKind
    name: str
    note: str
    title: str
    column: int
    belief: Belief | None = None
    effect: float = 0.0
    children: list[int] = field(default_factory=list)
    of: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """From a ground rule (`rule`) to the atom it moves, with its effect, or to an atom it holds (no effect)."""

    rule: int
    atom: int
    effect: float | None = None


@dataclass(frozen=True, slots=True)
class ReasonGraph:
    """Nodes, the answer first, and edges between ground rules and atoms."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def strongest(self) -> float:
        """The largest effect of a ground rule."""
        return strongest(edge.effect for edge in self.edges if edge.effect is not None)


def reason_graph(
    atom: str,
    belief: Belief,
    reasons: Sequence[Reason],
    *,
    if_unknown: Mapping[str, str] | None = None,
    other: str | None = None,
) -> ReasonGraph:
    """The graph of the reasons for an atom, nearest first.

    `if_unknown` has the answer without a fact, by fact. If the reasons explain the difference to an `other` atom, the
    answer's node stands for both atoms.
    """
    by_atom = {atom: tuple(reasons)}
    for member in (member for reason in all_reasons(reasons) for member in reason.because if member.reasons):
        by_atom.setdefault(member.atom, member.reasons)
    builder = _Builder(by_atom, if_unknown or {})
    builder.add_atom("answer", atom, belief, 0)
    if other is not None:
        builder.atoms[other] = 0
    while builder.waiting:
        builder.expand(builder.waiting.popleft())
    return ReasonGraph(tuple(builder.nodes), tuple(builder.edges))


@dataclass
class _Builder:
    """Builds the graph breadth first, within its limits, from the reasons for each atom."""

    reasons: dict[str, tuple[Reason, ...]]
    if_unknown: Mapping[str, str]
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    atoms: dict[str, int] = field(default_factory=dict)
    waiting: deque[int] = field(default_factory=deque)
    ground_rules: int = 0

    def add(self, node: Node, parent: int | None = None) -> int:
        self.nodes.append(node)
        if parent is not None:
            self.nodes[parent].children.append(len(self.nodes) - 1)
        return len(self.nodes) - 1

    def add_atom(self, kind: NodeKind, atom: str, belief: Belief, column: int, parent: int | None = None) -> None:
        note = status_text(belief)
        title = f"{printable(atom)}: {note}"
        if atom in self.if_unknown:
            without = f"answer without it {self.if_unknown[atom]}"
            note, title = f"{note} · {without}", f"{title}; {without}"
        self.atoms[atom] = self.add(Node(kind, printable(atom), note, title, column, belief, of=atom), parent)
        self.waiting.append(self.atoms[atom])

    def expand(self, index: int) -> None:
        """Add the ground rules that moved an atom, up to the limits."""
        atom, reasons = self.nodes[index], self.reasons.get(self.nodes[index].of, ())
        room = max(min(MOST_OF_ONE_ATOM, MOST_GROUND_RULES - self.ground_rules), 0)
        room = len(reasons) if len(reasons) == room + 1 and room else room
        for reason in reasons[:room]:
            self.add_rule(index, reason)
        left = reasons[room:]
        if left and room:
            lines = [printable(reason.ground_rule) for reason in left[:MOST_NAMED]]
            lines += [f"and {len(left) - MOST_NAMED:,} more"] * (len(left) > MOST_NAMED)
            name = f"and {counted(len(left), 'more ground rule')}"
            self.add(Node("more", name, "", "\n".join(lines), atom.column + 1), index)
        elif left:
            atom.note += f" · {counted(len(left), 'reason')} not drawn"

    def add_rule(self, atom: int, reason: Reason) -> None:
        column, effect = self.nodes[atom].column + 1, effect_text(reason.effect)
        title = f"{printable(reason.rule)} {effect}: {printable(reason.ground_rule)}"
        node = Node("rule", printable(reason.rule), effect, title, column, effect=reason.effect, of=reason.rule)
        rule = self.add(node, atom)
        self.ground_rules += 1
        self.edges.append(Edge(rule, atom, reason.effect))
        for member in (member for member in reason.because if member.atom not in self.atoms):
            self.add_atom("atom", member.atom, member.belief, column + 1, rule)
        held = dict.fromkeys(self.atoms[member.atom] for member in reason.because)
        self.edges += [Edge(rule, other) for other in held if other != atom]
