"""Networks that read features: names of constants, their order and the order of rows mean nothing to them."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import r2n
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.network.factor_graph import FactorGraph
from r2n.network.r2n import R2N
from tests.examples import at_most

THEORY = r2n.parse_theory("""
domain thing
predicate good(thing)
predicate same(thing, thing)
rule symmetry: same(x, y) -> same(y, x)
rule spread: good(x) & same(x, y) -> good(y)
""")
WORDS = ("cat", "dog", "mouse", "owl")


def predictions(
    names: list[str], texts: list[str], vectors: np.ndarray, pairs: list[tuple[int, int]], input: str, pair: str
) -> dict[str, float]:
    """Logits of all atoms of a fresh network, in evaluation, by the atoms' names with numbers for constants."""
    facts = [
        r2n.Table(pa.table({"x": [names[i] for i, _ in pairs], "y": [names[j] for _, j in pairs]}), predicate="same"),
        r2n.Table(pa.table({"x": [names[0]]}), predicate="good"),
    ]
    rows = pa.table(
        {"name": names, "text": texts, **{f"v{k}": vectors[:, k].tolist() for k in range(vectors.shape[1])}}
    )
    table = r2n.FeatureTable(rows, text="text", vector=[f"v{k}" for k in range(vectors.shape[1])])
    problem = r2n.Problem.build("x", THEORY, facts, domains={"thing": names}, features={"thing": table})
    known = problem.knowledge
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(known)), atoms=np.arange(known.base.size))
    torch.manual_seed(0)
    model = R2N.build(known, input=input, dim=3, layers=1, pair=pair).eval()
    numbers = {name: str(i) for i, name in enumerate(names)}
    atoms = known.base.names(graph.atoms.numpy())
    parts = [atom.rstrip(")").split("(") for atom in atoms]
    keys = [f"{predicate} {' '.join(numbers[c] for c in arguments.split(', '))}" for predicate, arguments in parts]
    with torch.no_grad():
        return dict(zip(keys, model(model.collate(graph)).atoms.tolist(), strict=True))


@at_most(5, "each trains")
@given(st.randoms(use_true_random=False), st.sampled_from(("pair", "distmult")), st.sampled_from(("symmetric", "all")))
def test_renaming_constants_and_moving_rows_permutes_the_output(dice: Random, input: str, pair: str) -> None:
    count = dice.randint(2, 4)
    texts = [" ".join([*dice.choices(WORDS, k=dice.randint(1, 3)), f"w{i}"]) for i in range(count)]
    vectors = np.array([[dice.uniform(-2, 2), float(i)] for i in range(count)])
    pairs = [(i, dice.randrange(count)) for i in range(count)]
    expected = predictions([f"a{i}" for i in range(count)], texts, vectors, pairs, input, pair)
    order = [0, *dice.sample(range(1, count), count - 1)]  # good is stated of the first row
    place = {i: k for k, i in enumerate(order)}
    moved = [(place[i], place[j]) for i, j in pairs]
    names = [f"n{number}" for number in dice.sample(range(10, 30), count)]
    found = predictions(names, [texts[i] for i in order], vectors[order], moved, input, pair)
    for key, value in expected.items():
        predicate, *arguments = key.split()
        there = " ".join([predicate, *(str(place[int(i)]) for i in arguments)])
        assert found[there] == pytest.approx(value, rel=1e-4, abs=1e-5)


def test_new_constants_are_answered_as_their_features_say() -> None:
    """Two constants with the same features are told apart by nothing."""
    vectors = np.array([[0.0], [1.0], [1.0], [2.0]])
    found = predictions(
        ["a", "b", "new", "d"], ["cat", "dog", "dog", "cat owl"], vectors, [(0, 1), (3, 0)], "pair", "all"
    )
    assert found["good 1"] == pytest.approx(found["good 2"], abs=1e-6)
    assert found["good 1"] != pytest.approx(found["good 3"], abs=1e-4)
