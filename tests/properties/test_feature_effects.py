"""Networks that read features: the effects of words are those of a network on changed features."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from torch import Tensor, nn

import r2n
from r2n.data.knowledge_base import KnowledgeBase, with_reciprocals
from r2n.explanation import features as module
from r2n.explanation.features import feature_effects
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.network.graph_sources import GroundedOnDemand, Ungrounded
from r2n.network.r2n import R2N
from r2n.options import ModelOptions
from r2n.scoring import AtomLogits
from tests.examples import first_of
from tests.model_strategies import seed_of, shaken
from tests.oracles.feature_rerun import Rerun, words_of

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
    table = r2n.FeatureTable(
        pa.table(columns),
        text="text",
        vector=("u", "v") if has_vectors else (),
        analyzer=dice.choice(("word", "char", "both")),
    )
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
    source = GroundedOnDemand.from_knowledge(known, grounder) if layers else Ungrounded()
    return Rerun(model, known, options, source, encoders)


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
