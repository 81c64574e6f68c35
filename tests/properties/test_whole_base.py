"""The network over grids gives, in value and gradient, what it gives atom by atom and by index."""

from random import Random

import numpy as np
import pytest
import torch
from hypothesis import event, given
from torch import Tensor

from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.network.collate import GraphBatch
from r2n.network.factor_graph import FactorGraph
from r2n.network.r2n import R2N, Predictions
from r2n.network.reasoning import Aggregation
from tests.examples import at_most
from tests.model_strategies import seed_of, shaken
from tests.theory_strategies import dice, one_in

DOMAINS = "domain d = {a, b, c}\ndomain e = {k, l}\n"
PREDICATES = {"p": ("d", "d"), "q": ("d", "d"), "r": ("d", "e"), "s": ("e", "e"), "u": ("d",), "v": ("e",)}
VARIABLES = {"d": ("x", "y", "z"), "e": ("m", "n")}


def make_theory(dice: Random) -> str:
    """Rules of one to five atoms, each with distinct variables: every one has the form of a grid."""
    used = dice.sample(sorted(PREDICATES), dice.randint(1, 4))
    lines = [f"predicate {name}({', '.join(PREDICATES[name])})" for name in used]
    for number in range(dice.randint(1, 3)):
        atoms = []
        for _ in range(dice.randint(1, 5)):
            name = dice.choice(used)
            left = {domain: list(names) for domain, names in VARIABLES.items()}
            terms = [left[domain].pop(dice.randrange(len(left[domain]))) for domain in PREDICATES[name]]
            atoms.append(f"{name}({', '.join(terms)})")
        lines.append(f"implicit r{number}: [{', '.join(dict.fromkeys(atoms))}]")
    return DOMAINS + "\n".join(lines) + "\n"


def whole_graph(text: str) -> tuple[KnowledgeBase, FactorGraph]:
    knowledge = KnowledgeBase.build(parse_theory(text))
    grounding = FullGrounder().ground(Store(knowledge))
    return knowledge, FactorGraph.from_grounding(grounding, atoms=np.arange(knowledge.base.size))


def outputs(network: R2N, layout: GraphBatch) -> tuple[Predictions, list[Tensor]]:
    """What the network says, and the gradient of a number that feels all of it."""
    said = network(layout)
    parts = [said.atoms, *said.rules]
    feels = sum((part * torch.arange(1.0, len(part) + 1).double().cos()).sum() for part in parts)
    assert isinstance(feels, Tensor)
    return said, list(torch.autograd.grad(feels, list(network.parameters()), allow_unused=True, materialize_grads=True))


def assert_same(network: R2N, graph: FactorGraph) -> None:
    """The kind that is chosen by itself and the dense one say what the indexed one says."""
    theirs, their_gradients = outputs(network, network.collate(graph, "indexed"))
    for kind in ("auto", "dense"):
        ours, our_gradients = outputs(network, network.collate(graph, kind))
        for one, other in zip(
            [ours.atoms, *ours.rules, *our_gradients], [theirs.atoms, *theirs.rules, *their_gradients], strict=True
        ):
            torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-7)


def is_grid(network: R2N, graph: FactorGraph) -> bool:
    return network.collate(graph).kind == "grid"


@at_most(60, "each runs a network in two ways, with gradients")
@given(dice=dice())
def test_grids_and_indices_agree_on_random_theories(dice: Random) -> None:
    knowledge, graph = whole_graph(make_theory(dice))
    network = R2N.build(
        knowledge,
        input=dice.choice(("distmult", "complex", "transe", "rotate")),
        dim=3,
        rule_dim=2,
        layers=dice.randint(0, 3),
        reasoner=dice.choice(("r2n", "r2n", "fgnn")),
        aggregation=dice.choice(("sum", "mean", "mean-then-sum")),
        residual=one_in(2, dice),
        isolated=dice.choice(("keep", "zero")),
        mlp="shallow",
        output=dice.choice(("linear", "mlp")),
        input_score=one_in(2, dice),
    )
    shaken(network, seed_of(dice))
    assert is_grid(network, graph) == (network.belief_input is None)
    event("grids" if is_grid(network, graph) else "beliefs as input")
    assert_same(network, graph)
    hidden = torch.tensor([one_in(3, dice) for _ in graph.atoms])
    by_kind = [network(network.collate(graph, kind), hidden=hidden).atoms for kind in ("auto", "indexed")]
    torch.testing.assert_close(*by_kind, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("aggregation", ["sum", "mean", "mean-then-sum"])
def test_grids_and_indices_agree_where_predicates_get_unequal_numbers_of_messages(aggregation: Aggregation) -> None:
    rule = "implicit r: [p(x, y), q(x, y), p(y, x)]\n"
    knowledge, graph = whole_graph(DOMAINS + "predicate p(d, d)\npredicate q(d, d)\n" + rule)
    network = shaken(R2N.build(knowledge, dim=3, layers=2, mlp="shallow", aggregation=aggregation), seed=0)
    assert is_grid(network, graph)
    assert_same(network, graph)


@pytest.mark.parametrize(
    "rule",
    [
        "implicit r: [p(x, x), q(x, y)]",  # a variable twice
        'implicit r: [p("a", x), q(x, y)]',  # a constant
        "implicit r: [p(x, y), q(x, y)], x != y",  # not every substitution
    ],
)
def test_what_has_not_the_form_of_a_grid_goes_the_other_way(rule: str) -> None:
    knowledge, graph = whole_graph(DOMAINS + "predicate p(d, d)\npredicate q(d, d)\n" + rule)
    network = shaken(R2N.build(knowledge, dim=3, layers=1, mlp="shallow"), seed=0)
    assert not is_grid(network, graph)
    assert_same(network, graph)


def test_a_graph_that_misses_an_atom_and_a_deep_mlp_go_the_other_way() -> None:
    text = DOMAINS + "predicate p(d, d)\npredicate q(d, d)\nimplicit r: [p(x, y), p(y, x)]\n"
    knowledge, graph = whole_graph(text)
    shallow = R2N.build(knowledge, dim=3, layers=1, mlp="shallow")
    assert is_grid(shallow, graph)
    assert not is_grid(shallow, FactorGraph(graph.atoms[:-1], graph.neighbours, graph.rules, graph.shapes))
    for options in ({"mlp": "deep"}, {"aggregation": "max"}, {"input": "mlp"}):
        network = R2N.build(knowledge, **{"dim": 3, "layers": 1, "mlp": "shallow", **options})  # pyright: ignore
        assert not is_grid(network, graph)
    assert not is_grid(R2N.build(knowledge, layers=1, mlp="shallow", evidence_input="add"), graph)
