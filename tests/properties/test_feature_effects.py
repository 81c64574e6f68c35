"""Networks that read features: the effects of words and vectors, and what makes no difference."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import r2n
from r2n.data.knowledge_base import KnowledgeBase, with_reciprocals
from r2n.explanation import features as module
from r2n.explanation.features import feature_effects
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.store import Store
from r2n.network.factor_graph import FactorGraph
from r2n.network.graph_sources import GroundedOnDemand, Ungrounded
from r2n.network.r2n import R2N
from r2n.options import ModelOptions
from r2n.scoring import AtomLogits
from tests.examples import at_most, first_of
from tests.model_strategies import seed_of, shaken
from tests.oracles.feature_rerun import Rerun, words_of
from tests.strategies import named_atoms

THEORY = r2n.parse_theory("""
domain thing, person
predicate good(thing)
predicate same(thing, thing)
predicate wrote(person, thing)
predicate among(thing, thing, thing)
rule symmetry: same(x, y) -> same(y, x)
rule spread: good(x) & same(x, y) -> good(y)
rule author: wrote(p, x) & wrote(p, y) -> same(x, y)
""")
WORDS = ("cat", "dog", "mouse", "owl")


class Lengths(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(3, 4)

    def forward(self, texts: Sequence[str]) -> Tensor:
        counted = [[len(words_of(text)), text.count("c"), text.count("o") ** 2] for text in texts]
        return self.last(self.last.weight.new_tensor(counted))


def make_knowledge(dice: Random, has_vectors: bool) -> KnowledgeBase:
    """A few things with texts of few words, some unknown to the training and some twice in a text."""
    names, people = [f"a{i}" for i in range(dice.randint(2, 4))], ["ann", "bob"]
    texts = [" ".join([*dice.choices(WORDS, k=dice.randint(1, 4)), f"w{i}"][dice.randrange(2) :]) for i in range(4)]
    columns = {"name": names, "text": texts[: len(names)]}
    if has_vectors:
        columns |= {"u": [dice.uniform(-2, 2) for _ in names], "v": [float(i) for i in range(len(names))]}
    table = r2n.FeatureTable(pa.table(columns), text="text", vector=("u", "v") if has_vectors else ())
    drawn = {
        "good": [(dice.choice(names[:2]),)],
        "same": [(dice.choice(names[:2]), dice.choice(names[:2])) for _ in range(2)],
        "wrote": [(person, dice.choice(names[:2])) for person in people],
    }
    facts = [
        r2n.Table(pa.table({f"c{i}": list(part) for i, part in enumerate(zip(*rows, strict=True))}), predicate=name)
        for name, rows in drawn.items()
    ]
    members = {"thing": names, "person": people}
    return r2n.Problem.build("x", THEORY, facts, domains=members, features={"thing": table}).knowledge


def make_rerun(dice: Random) -> Rerun:
    """A network with any input layer, pair, sharing, weights of words, grounding and reading of evidence."""
    reads_by_module = dice.randrange(4) == 0
    known = make_knowledge(dice, has_vectors=not reads_by_module and dice.randrange(2) == 0)
    if dice.randrange(3) == 0:
        known = with_reciprocals(known)
    layers = dice.randrange(3)
    options = ModelOptions.model_validate(
        {
            "input": dice.choice(("pair", "pair", "mlp", "distmult")),
            "dim": 4,
            "encoder_dim": 5,
            "pair": dice.choice(("concatenate", "symmetric", "symmetric")),
            "word_weights": dice.choice(("binary", "count", "tfidf")),
            "word_min_texts": dice.choice((1, 1, 2)),
            "layers": max(1, layers),
            "reasoner": dice.choice(("r2n", "fgnn")) if layers else "none",
            "evidence_input": dice.choice(("off", "add")) if layers else "off",
            "input_score": bool(layers) and dice.randrange(2) == 0,
        }
    )
    encoders = {"thing": Lengths()} if reads_by_module else {}
    model = shaken(R2N.build(known, options, encoders=encoders), seed_of(dice)).eval()
    grounder = dice.choice((FullGrounder(), KnownBodyGrounder(), BackwardGrounder(1, 2)))
    return Rerun(model, known, options, GroundedOnDemand.of(known, grounder) if layers else Ungrounded(), encoders)


def expected_effects(rerun: Rerun, code: int) -> dict[tuple[str, str], float]:
    base, features = rerun.knowledge.base, rerun.knowledge.features["thing"]
    assert features.texts is not None
    text_of = dict(zip(features.constants.tolist(), features.texts, strict=True))
    as_is, expected = rerun.logit(code), {}
    for constant in set(base.decode(np.array([code]))[1][0].tolist()) & set(text_of):
        name, words = base.language.constants[constant], set(words_of(text_of[constant]))
        if rerun.encoders:
            words = words if len(words) > 1 else set()
        for word in words:
            expected[f"word '{word}'", name] = as_is - rerun.without_word(code, name, word)
    return expected


@pytest.mark.parametrize("seed", first_of(range(100), 2))
def test_words_and_vectors_have_the_effect_that_a_network_on_changed_features_says(seed: int) -> None:
    dice = Random(seed)
    rerun = make_rerun(dice)
    base = rerun.knowledge.base
    plain = sum(np.prod(shape) for shape in base.shapes[: len(THEORY.predicates)])
    code = dice.randrange(int(plain))
    logits = AtomLogits(rerun.model, rerun.source, rerun.knowledge.evidence)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "NUMBERS_AT_ONCE", dice.choice((1, 1000, 10**9)))
        found = feature_effects([logits], code, most=100)
    parts = {(one.part, one.of): one.effect for one in found if not one.part.startswith("channel")}
    digits = 1e-5 if rerun.options.word_weights == "tfidf" else 1e-6  # bags of length one are kept in float32
    assert parts == pytest.approx(expected_effects(rerun, code), rel=digits, abs=digits)


# names and order mean nothing

SYMMETRY = r2n.parse_theory("""
domain thing
predicate good(thing)
predicate same(thing, thing)
rule symmetry: same(x, y) -> same(y, x)
rule spread: good(x) & same(x, y) -> good(y)
""")


def predictions(
    names: list[str], texts: list[str], vectors: np.ndarray, pairs: list[tuple[int, int]], input: str, pair: str
) -> dict[str, float]:
    """Logits of all atoms of a fresh network, in evaluation, by the atoms' names with numbers for constants."""
    same = {"x": [names[i] for i, _ in pairs], "y": [names[j] for _, j in pairs]}
    facts = [r2n.Table(pa.table(same), predicate="same"), r2n.Table(pa.table({"x": [names[0]]}), predicate="good")]
    columns = {f"v{k}": column.tolist() for k, column in enumerate(vectors.T)}
    table = r2n.FeatureTable(pa.table({"name": names, "text": texts, **columns}), text="text", vector=[*columns])
    problem = r2n.Problem.build("x", SYMMETRY, facts, domains={"thing": names}, features={"thing": table})
    known = problem.knowledge
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(known)), atoms=np.arange(known.base.size))
    torch.manual_seed(0)
    model = R2N.build(known, input=input, dim=3, layers=1, pair=pair).eval()
    atoms = named_atoms(known, graph.atoms.numpy())
    keys = [" ".join([predicate, *(str(names.index(name)) for name in arguments)]) for predicate, *arguments in atoms]
    with torch.no_grad():
        return dict(zip(keys, model(model.collate(graph)).atoms.tolist(), strict=True))


@at_most(5, "each trains")
@given(
    st.randoms(use_true_random=False),
    st.sampled_from(("pair", "distmult")),
    st.sampled_from(("symmetric", "concatenate")),
)
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
    """Two constants with the same features have the same logits."""
    vectors = np.array([[0.0], [1.0], [1.0], [2.0]])
    found = predictions(
        ["a", "b", "new", "d"], ["cat", "dog", "dog", "cat owl"], vectors, [(0, 1), (3, 0)], "pair", "all"
    )
    assert found["good 1"] == pytest.approx(found["good 2"], abs=1e-6)
    assert found["good 1"] != pytest.approx(found["good 3"], abs=1e-4)
