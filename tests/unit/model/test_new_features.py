"""New constants with features are answered as if they had been there from the start."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor, nn

from r2n.data.features import FeatureTable
from r2n.data.problem import Problem
from r2n.data.reading.tables import Table
from r2n.errors import DataError
from r2n.logic.parser import parse_theory
from r2n.model.model import Model
from r2n.model.run import Run, prepare_run
from r2n.options import Options

THEORY = parse_theory(
    """
domain thing, owner
predicate big(thing)
predicate has(owner, thing)
predicate alike(thing, thing) closed
"""
)
THINGS = [f"t{i}" for i in range(8)]
VECTORS = {name: np.array([float(i % 2), i / 8, 1.0]) for i, name in enumerate(THINGS)}
TEXTS = {name: ("large heavy thing" if i % 2 else "small light thing") for i, name in enumerate(THINGS)}
NEW = {"t55": np.array([1.0, 0.3, 1.0])}


def problem(features: dict[str, object], more: tuple[str, ...] = ()) -> Problem:
    things = [*THINGS, *more]
    big = pa.table({"x": THINGS, "label": [str(i % 2) for i in range(8)]})
    has = pa.table({"o": ["ann", "bob"], "x": ["t0", "t1"]})
    tables = [Table(big, "big", columns=("x",), label="label"), Table(has, "has")]
    alike = pa.table({"x": ["t0", *more], "y": ["t2", *("t1" for _ in more)]})
    tables.append(Table(alike, "alike"))
    domains = {"thing": things, "owner": ["ann", "bob"]}
    return Problem.build("things", THEORY, tables, domains=domains, features=features)  # pyright: ignore


def trained(given: Problem, *changes: str, encoders: dict[str, nn.Module] | None = None) -> Run:
    options = Options().changed(["model.reasoner=none", "model.input=mlp", "training.hiding=0.0", *changes])
    options = options.changed(["training.epochs=60", "training.corrupted_positions=[-1]", "model.dim=8"])
    run = prepare_run(given, options, seed=0, encoders=encoders)
    for _ in run.trainer:
        pass
    return run


@pytest.mark.parametrize(
    ("changes", "features", "new"),
    [
        ((), VECTORS, NEW),
        (("model.input=distmult",), VECTORS, NEW),
        (("grounding.reciprocal=true",), VECTORS, NEW),
        (("model.input=pair",), VECTORS, NEW),
        ((), TEXTS, {"t55": "a large thing, heavy"}),
    ],
)
def test_they_are_answered_as_from_the_start(changes: tuple[str, ...], features: dict, new: dict) -> None:
    run = trained(problem({"thing": features}), *changes)
    predictor = Model.from_run(run)
    told = predictor.with_facts("alike(t55, t1)", features={"thing": new})
    again = prepare_run(problem({"thing": features | new}, more=("t55",)), run.options, seed=0)
    again.model.load_state_dict(run.model.state_dict())
    codes = again.problem.atoms
    assert told.base.names(codes) == again.problem.knowledge.base.names(codes)
    np.testing.assert_allclose(told.logits(codes), again.logits()(codes), rtol=1e-5, atol=1e-5)
    assert told.predict("big(t55)")[0].probability > 0.5
    before = predictor.logits(predictor.problem.atoms)
    back = told.without_facts("alike(t55, t1)")
    np.testing.assert_array_equal(back.logits(back.changed.problem.atoms), before)
    assert back.network is run.model


def test_names_are_texts_where_they_were_in_training() -> None:
    run = trained(problem({"thing": FeatureTable(names=True)}))
    told = Model.from_run(run).with_facts("alike(t55, t1)")
    assert told.network.trained_ids is not None
    assert bool((told.network.trained_ids >= 0).all())
    assert told.predict("big(t55)")


def test_a_module_of_the_caller_reads_new_features() -> None:
    module = nn.Linear(3, 4)
    run = trained(problem({"thing": VECTORS}), encoders={"thing": module})
    told = Model.from_run(run).with_facts("alike(t55, t1)", features={"thing": NEW})
    like = Model.from_run(run).predict("big(t3)")[0]
    assert told.predict("big(t55)")[0].probability == pytest.approx(like.probability, abs=0.2)
    assert like.probability > 0.5


def test_a_module_is_found_by_its_domain() -> None:
    """A domain with an encoder but no features has no channel, so places would not do."""
    theory = parse_theory("domain owner, thing\npredicate big(thing)\npredicate has(owner, thing)")
    big = Table(pa.table({"x": THINGS, "label": [str(i % 2) for i in range(8)]}), "big", columns=("x",), label="label")
    features = {"owner": FeatureTable({"nobody": [1.0]}, missing="learn"), "thing": VECTORS}
    given = Problem.build("two", theory, [big], domains={"owner": ["ann"]}, features=features)  # pyright: ignore
    run = trained(given, encoders={"owner": nn.Linear(1, 4), "thing": nn.Linear(3, 4)})
    told = Model.from_run(run).with_facts([], domains={"thing": ["t55"]}, features={"thing": {"t55": VECTORS["t3"]}})
    assert told.predict("big(t55)")[0].logit == pytest.approx(told.predict("big(t3)")[0].logit, abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "encoders"),
    [((), None), (("model.input=pair",), None), ((), {"image": nn.Sequential(nn.Flatten(), nn.Linear(4, 8))})],
)
def test_a_classifier_answers_for_a_new_picture_that_no_fact_names(changes: tuple[str, ...], encoders: dict) -> None:
    theory = parse_theory("domain image, value\npredicate digit(image, value)")
    rng = np.random.default_rng(0)
    pictures = {f"i{i}": np.eye(2)[[i % 2, 1 - i % 2]] + 0.1 * rng.normal(size=(2, 2)) for i in range(10)}
    names = list(pictures)[:9]  # i9 is new, and odd

    def pictured(images: list[str]) -> Problem:
        rows = pa.table({"x": names, "v": [("even", "odd")[int(name[1:]) % 2] for name in names]})
        domains, features = {"image": images}, {"image": {name: pictures[name] for name in images}}
        return Problem.build("digits", theory, [Table(rows, "digit")], domains=domains, features=features)

    changes = ("model.layers=0", "model.input=distmult", "training.learning_rate=0.05", *changes)
    run = trained(pictured(names), *changes, encoders=encoders)
    predictor = Model.from_run(run)
    told = predictor.with_facts([], domains={"image": ["i9"]}, features={"image": {"i9": pictures["i9"]}})
    assert [answer.atom for answer in told.predict("digit(i9, ?)")] == ["digit(i9, odd)", "digit(i9, even)"]
    again = prepare_run(pictured([*names, "i9"]), run.options, seed=0, encoders=encoders)
    again.model.load_state_dict(run.model.state_dict())
    codes = np.arange(told.base.size)
    assert told.base.names(codes) == again.problem.knowledge.base.names(codes)
    np.testing.assert_allclose(told.logits(codes), Model.from_run(again).logits(codes), rtol=1e-5, atol=1e-5)
    back = told.without_facts([], domains={"image": ["i9"]})
    assert back.network is run.model
    with pytest.raises(DataError, match="'i9' is declared to be in 'image', but it is no new constant"):
        Model.from_run(again).with_facts([], domains={"image": ["i9"]})


@pytest.mark.parametrize("pair", ["symmetric", "all", "concatenate"])
def test_a_new_constant_without_features_blanks_its_own_atoms_only(pair: str) -> None:
    """Its domain had features throughout: the pair classifier has no weights for one without."""
    theory = parse_theory(
        "domain thing\npredicate big(thing)\npredicate alike(thing, thing) closed\n"
        "rule like: alike(x, y) & big(y) -> big(x)"
    )
    big = Table(pa.table({"x": THINGS, "label": [str(i % 2) for i in range(8)]}), "big", columns=("x",), label="label")
    alike = Table(pa.table({"x": ["t0", "t1", "t5"], "y": ["t2", "t3", "t1"]}), "alike")
    given = Problem.build("things", theory, [big, alike], features={"thing": VECTORS})
    changes = ("model.reasoner=r2n", "model.layers=2", "model.input=pair", f"model.pair={pair}", "training.hiding=0.3")
    run = trained(given, *changes)
    predictor = Model.from_run(run)
    told = predictor.with_facts(["alike(a, t1)", "alike(a, t3)"])  # a is before all others: ids move
    apart = told.predict("big(t6)")[0]
    assert apart.logit == pytest.approx(predictor.predict("big(t6)")[0].logit, abs=1e-5)
    assert told.predict("big(a)")[0].reached
    entered, before = entering(told), entering(predictor)
    is_new = {name for name in entered if "(a" in name or ", a)" in name}
    assert is_new
    for name, embedding in entered.items():
        torch.testing.assert_close(embedding, torch.zeros_like(embedding) if name in is_new else before[name])
    both = told.with_facts([], domains={"thing": ["t55"]}, features={"thing": {"t55": VECTORS["t6"]}})
    assert both.predict("big(t55)")[0].logit == pytest.approx(apart.logit, abs=1e-5)
    assert both.predict("big(a)")[0].logit == pytest.approx(told.predict("big(a)")[0].logit, abs=1e-5)


def entering(predictor: Model) -> dict[str, Tensor]:
    """Emb^0 of all atoms, by name."""
    codes = np.arange(predictor.network.base.size)
    names = np.array(predictor.network.base.names(codes))
    return {
        name: row
        for which, made in predictor.scores.passes(codes)
        for name, row in zip(
            names[which], predictor.network.input_layer(made.layout).detach()[made.rows(codes[which])], strict=True
        )
    }


def test_constants_without_features_are_refused_as_ever() -> None:
    predictor = Model.from_run(trained(problem({"thing": VECTORS}), encoders=None))
    told = predictor.with_facts("has(cy, t1)")
    with pytest.raises(DataError, match="'cy' is no constant of the training, and the network has no reasoning layer"):
        told.predict("has(cy, t2)")
    np.testing.assert_allclose(
        told.predict("has(ann, t2)")[0].logit, predictor.predict("has(ann, t2)")[0].logit, rtol=1e-5
    )
    state = torch.random.get_rng_state()
    told.predict("has(ann, t1)")
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"owner": {"cy": [1.0]}}, "the network reads none of that domain\n  domains with features: thing"),
        ({"thing": {"t1": [1.0, 2.0, 3.0]}}, "features are given for 't1', but it is no new constant"),
        ({"thing": {"t77": [1.0, 2.0, 3.0]}}, "features are given for 't77', but no fact puts it into domain 'thing'"),
        ({"thing": {"t55": [1.0]}}, "not of the kind that domain 'thing' had in training"),
        ({"thing": {"t55": "text"}}, "not of the kind that domain 'thing' had in training"),
    ],
)
def test_wrong_features_are_refused(features: dict, message: str) -> None:
    told = Model.from_run(prepare_run(problem({"thing": VECTORS}), Options(), seed=0))
    with pytest.raises(DataError, match=message):
        told.with_facts("alike(t55, t1)", features=features)
    once = told.with_facts("alike(t55, t1)", features={"thing": NEW})
    with pytest.raises(DataError, match="'t55' has features already"):
        once.with_facts("alike(t55, t2)", features={"thing": NEW})
