"""A model with other facts: answers follow them, and what nothing is known about is refused."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import assume, given
from torch import Tensor, nn

from r2n.data.candidates import Candidates
from r2n.data.features import FeatureTable
from r2n.data.knowledge_base import Evidence
from r2n.data.problem import Problem, load_problem
from r2n.data.tables import Table
from r2n.errors import DataError, R2NError
from r2n.logic.parser import parse_theory
from r2n.model.changes import ChangedProblem
from r2n.model.model import Model, supported
from r2n.model.run import Run, prepare_run
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN, FactorGraph
from r2n.options import Options
from tests.candidate_problem import THINGS, table, things_problem
from tests.examples import at_most
from tests.theory_strategies import dice
from tests.toy_problem import TOWNS, VALLEYS, write_toy_problem

NAMES = ("more", "fewer", "new")


def test_facts_go_before_others_come(toy_run: Run) -> None:
    model = Model.from_run(toy_run)
    changed = model.with_changes(["!liesIn(n0, north)"], ["liesIn(n0, north)"], {"town": ["n9"]})
    assert changed.predict("liesIn(n0, north)")[0].known is False
    assert changed.changed.new_constants == ("n9",)
    assert model.with_changes() is model


def test_errors_name_what_was_given(toy_run: Run, tmp_path: Path) -> None:
    model = Model.from_run(toy_run)
    (tmp_path / "facts.tsv").write_text("n0\tnear\tn1\nn0\tliesin\tnorth\n")
    with pytest.raises(DataError, match=r"fewer .*facts\.tsv:2: unknown predicate 'liesin'"):
        model.with_changes(fewer=[str(tmp_path / "facts.tsv")], names=NAMES)
    with pytest.raises(DataError, match="fewer") as caught:
        model.with_changes(fewer=["near(n0"], names=NAMES)
    with pytest.raises(DataError) as caught:
        model.with_changes(["!liesIn(n0, north)"], names=NAMES)
    assert str(caught.value.where) == 'more "!liesIn(n0, north)"'
    with pytest.raises(DataError, match="new: constants are given for domain 'city'"):
        model.with_changes(domains={"city": ["n9"]}, names=NAMES)


CHANGES = {
    "only": ["model.evidence_input=only", "training.hide_by=constant"],
    "add": ["model.evidence_input=add"],
    "off": [],
    "known-body": ["model.evidence_input=only", "grounding.strategy=known-body"],
    "backward": ["model.evidence_input=only", "grounding.strategy=backward", "model.layers=2"],
    "transe": ["model.input=transe", "model.input_score=true"],
    "fgnn": ["model.reasoner=fgnn", "model.evidence_input=add"],
    "mean-field": ["model.reasoner=mean-field", "model.evidence_input=add"],
    "reciprocal": ["grounding.reciprocal=true", "model.evidence_input=add"],
}
NEW = ["near(n99, n1)", "near(n1, n99)", "near(n3, n99)", "near(n99, n3)"]


def network(problem: Problem, *changes: str, epochs: int = 2) -> Run:
    run = prepare_run(problem, problem.options.changed([*changes, f"training.epochs={epochs}"]), seed=0)
    for _ in run.trainer:
        pass
    return run


@pytest.fixture(scope="session", params=CHANGES)
def predictor(request: pytest.FixtureRequest, toy: Problem) -> Model:
    """A network that has hardly learned, but is no longer what it began as."""
    return Model.from_run(network(toy, *CHANGES[request.param]))


@pytest.fixture(scope="session")
def inductive(toy: Problem) -> Model:
    """One that reads evidence alone, trained to the end."""
    return Model.from_run(network(toy, *CHANGES["only"], epochs=60))


def fact_lines(problem: Problem) -> list[str]:
    names = problem.knowledge.base.names(problem.train.atoms)
    return [name if truth else f"!{name}" for name, truth in zip(names, problem.train.truth, strict=True)]


def write_again(folder: Path, facts: list[str]) -> Problem:
    """The toy problem with these facts, from its files."""
    write_toy_problem(folder)
    rows = []
    for fact in facts:
        name, rest = fact.lstrip("!").rstrip(")").split("(")
        head, tail = rest.split(", ")
        rows.append(f"{head}\t{name}\t{tail}\t{int(not fact.startswith('!'))}\n")
    (folder / "train.tsv").write_text("".join(rows))
    queries = {*facts, *(f"!{fact}" for fact in facts), *(fact.lstrip("!") for fact in facts)}
    for split in ("valid", "test"):  # what is told now is not asked from the start
        path = folder / f"{split}.tsv"
        rows = path.read_text().splitlines(keepends=True)
        path.write_text("".join(row for row in rows if "liesIn({0}, {2})".format(*row.split("\t")) not in queries))
    return load_problem(folder)


def random_changes(dice: Random, problem: Problem) -> tuple[list[str], list[str]]:
    """Facts to take back, and facts to add: some known already, some about new towns, some false; none contradicts."""
    known = fact_lines(problem)
    fewer = dice.sample(known, dice.randint(0, 5))
    kept = set(known) - set(fewer)
    towns = [*TOWNS, "new", "zz"]
    more: set[str] = set(dice.sample(sorted(kept), dice.randint(0, 2)))
    for _ in range(dice.randint(0, 6)):
        near = dice.random() < 0.7
        fact = f"{'near' if near else 'liesIn'}({dice.choice(towns)}, {dice.choice(towns if near else VALLEYS)})"
        if f"!{fact}" not in more:
            more.add(f"!{fact}" if dice.random() < 0.2 and fact not in more.union(known) else fact)
    return fewer, sorted(more)


@at_most(4, "each grounds and collates several times, for every kind of network")
@given(dice())
def test_adding_and_taking_back_the_same_facts_restores_every_prediction_bit_for_bit(
    predictor: Model, dice: Random
) -> None:
    everything = np.arange(predictor.base.size)
    before = predictor.logits(everything)
    fewer, more = random_changes(dice, predictor.problem)
    there = predictor.with_facts(more)
    back = there.without_facts(more)
    np.testing.assert_array_equal(back.logits(everything), before)
    asked = predictor.problem.atoms
    less = predictor.without_facts(fewer)
    np.testing.assert_array_equal(less.with_facts(fewer).logits(asked), predictor.logits(asked))


@at_most(3, "each grounds and collates several times, for every kind of network")
@given(dice())
def test_answers_are_those_of_the_network_on_a_problem_with_these_facts_from_the_start(
    predictor: Model, tmp_path_factory: pytest.TempPathFactory, dice: Random
) -> None:
    fewer, more = random_changes(dice, predictor.problem)
    more = [fact for fact in more if "new" not in fact and "zz" not in fact]
    changed = predictor.without_facts(fewer).with_facts(more)
    known = [fact for fact in fact_lines(predictor.problem) if fact not in fewer]
    problem = write_again(tmp_path_factory.mktemp("again") / "towns", sorted({*known, *more}))
    # where nothing names some town any more, it would not be there from the start
    assume(problem.knowledge.language.constants == predictor.base.language.constants)
    again = prepare_run(problem, predictor.options, 0)
    again.model.load_state_dict(predictor.network.state_dict())
    asked = problem.atoms
    assert changed.base.names(asked) == problem.knowledge.base.names(asked)
    np.testing.assert_allclose(changed.logits(asked), again.logits()(asked), rtol=1e-5, atol=1e-5)


CANDIDATES = {
    "labelled": Candidates(),
    "tables": Candidates(tables=(table({("tram", "old_tram"): True, ("old_tram", "red_bus"): True}),)),
    "words": Candidates(shared_words=1, rarer_than=0.4),
}
PAIRS = list(product(THINGS, THINGS))
LABELS = {pair: (i // 5) % 2 == 0 for i, pair in enumerate(PAIRS)}


@pytest.fixture(scope="session", params=CANDIDATES)
def with_candidates(request: pytest.FixtureRequest) -> Model:
    """Half of the atoms are neither labelled nor asked for."""
    train, test = ({pair: LABELS[pair] for pair in PAIRS[i::5]} for i in (0, 1))
    changes = ["model.evidence_input=only", "training.corrupted_positions=[]"]
    return Model.from_run(network(things_problem(train, test, CANDIDATES[request.param], *changes)))


@at_most(4, "each grounds and collates several times, for every kind of network")
@given(dice())
def test_candidates_are_those_of_a_problem_with_these_facts_from_the_start(
    with_candidates: Model, dice: Random
) -> None:
    """New things share words with old ones, and make words common; atoms that are taken back are candidates no more."""
    problem = with_candidates.changed.problem
    new = dice.sample(["blue_van", "new_tram", "red"], dice.randint(0, 2))
    fewer = dict.fromkeys(dice.sample(PAIRS[0::5][2:], 2))
    more = {pair: LABELS[pair] for pair in dice.sample(PAIRS[2::5], 2)} | {(name, "tram"): True for name in new}

    def lines(labels: dict[tuple[str, str], bool]) -> list[str]:
        return [f"{'' if truth else '!'}same({a}, {b})" for (a, b), truth in labels.items()]

    changed = with_candidates.without_facts(lines({pair: LABELS[pair] for pair in fewer})).with_facts(lines(more))
    train = {pair: LABELS[pair] for pair in PAIRS[0::5] if pair not in fewer} | more
    test, options = {pair: LABELS[pair] for pair in PAIRS[1::5]}, problem.candidates["same"].options
    fresh = replace(things_problem(train, test, options, things=(*THINGS, *new)), options=problem.options)
    names = fresh.knowledge.base.names
    assert changed.base.names(np.arange(changed.base.size)) == names(np.arange(fresh.knowledge.base.size))
    assert names(changed.changed.problem.knowledge.candidates["same"]) == names(fresh.knowledge.candidates["same"])
    again = prepare_run(fresh, with_candidates.options, 0)
    weights = {k: value for k, value in with_candidates.network.state_dict().items() if k != "constants.vectors"}
    again.model.load_state_dict(weights, strict=False)
    np.testing.assert_allclose(changed.scores(fresh.atoms), again.logits()(fresh.atoms), rtol=1e-5, atol=1e-6)
    back = changed.without_facts(lines(more)).with_facts(lines({pair: LABELS[pair] for pair in fewer}))
    np.testing.assert_array_equal(back.scores(problem.atoms), with_candidates.scores(problem.atoms))


def test_under_candidates_atoms_asked_together_are_answered_as_one_by_one(with_candidates: Model) -> None:
    everything = np.arange(with_candidates.base.size)
    full = with_candidates.source.full_graph
    assert full is not None
    assert not full.contains(torch.from_numpy(everything)).all()
    alone = [with_candidates.logits(everything[i : i + 1])[0] for i in everything]
    np.testing.assert_allclose(with_candidates.logits(everything), alone, rtol=1e-5, atol=1e-6)


def test_new_constants_are_answered_as_from_the_start(inductive: Model, tmp_path: Path) -> None:
    """A network without vectors of constants takes any language."""
    changed = inductive.with_facts(NEW)
    problem = write_again(tmp_path / "towns", [*fact_lines(inductive.changed.problem), *NEW])
    again = prepare_run(problem, inductive.options, 0)
    weights = {name: value for name, value in inductive.network.state_dict().items() if name != "constants.vectors"}
    again.model.load_state_dict(weights, strict=False)
    asked = problem.atoms
    np.testing.assert_array_equal(changed.logits(asked[:40]), again.logits()(asked[:40]))


def test_a_new_town_lies_where_its_neighbours_lie(inductive: Model) -> None:
    for valley in VALLEYS:
        other = next(name for name in VALLEYS if name != valley)
        near = [town for town in TOWNS if town[0] == valley[0]]
        facts = [f"near({near[i]}, new)" for i in (0, 1, 3)] + [f"near(new, {near[i]})" for i in (0, 1, 3)]
        answers = {answer.atom: answer.probability for answer in inductive.with_facts(facts).predict("liesIn(new, ?)")}
        assert answers[f"liesIn(new, {valley})"] > 0.9
        assert answers[f"liesIn(new, {other})"] < 0.5


def test_new_atoms_are_grounded_around(toy: Problem) -> None:
    """Nobody asked where n99 lies when the network was trained."""
    changed = Model.from_run(network(toy, *CHANGES["backward"])).with_facts(["near(n1, n99)", "near(n3, n99)"])
    assert changed.predict("liesIn(n99, north)")[0].reached


def test_what_no_rule_connects_with_anything_known_is_refused(inductive: Model) -> None:
    island = inductive.with_facts("near(n98, n97)")
    with pytest.raises(DataError, match=r"liesIn\(n98, north\) cannot be answered: 'n98' is no constant of the tr"):
        island.predict("liesIn(n98, north)")
    with pytest.raises(DataError, match=r"nor can 1 other atom: .* no ground rule connects the atom with anything"):
        island.predict("liesIn(n97, ?)")
    with pytest.raises(DataError, match="cannot be answered"):
        island.logits(np.arange(island.base.size))
    bridge = island.with_facts("near(n97, n1)")
    assert len(bridge.predict("liesIn(n97, ?)")) == 2
    listed = [answer.atom for answer in island.predict("liesIn(?, north)", everything=True)]
    assert sorted(listed) == [f"liesIn({town}, north)" for town in TOWNS], "what cannot be answered is left out"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["model.reasoner=none"], "the network has no reasoning layer"),
        (["training.hiding=0.0"], "was trained without hiding, so it never learned to do without a vector"),
    ],
)
def test_a_network_that_needs_vectors_refuses_new_constants(toy: Problem, changes: list[str], message: str) -> None:
    changed = Model.from_run(network(toy, *changes)).with_facts(NEW)
    with pytest.raises(DataError, match=message):
        changed.predict("liesIn(n99, ?)")
    assert changed.predict("liesIn(n5, ?)"), "about others it can be asked as before"


def test_atoms_of_new_constants_enter_blanked_but_with_what_is_known(predictor: Model) -> None:
    changed = predictor.with_facts([*NEW, "liesIn(n99, north)"])
    model = changed.network
    assert model is not predictor.network
    assert model.constants is predictor.network.constants, "no weight is copied"
    after, before = embeddings(changed), embeddings(predictor)
    for name, row in after.items():
        if "n99" not in name and name in before:
            torch.testing.assert_close(row, before[name])
        elif "n99" in name:
            state = TRUE if name == "liesIn(n99, north)" or name in NEW else FALSE if name[:4] == "near" else UNKNOWN
            expected = torch.zeros_like(row) if model.known is None else model.known.detach()[state]
            torch.testing.assert_close(row, expected)
    assert any("n99" in name for name in after)


def embeddings(predictor: Model, *, known: bool = True) -> dict[str, Tensor]:
    """Emb^0 of all atoms by name, with what is known of them or without."""
    codes, names = np.arange(predictor.base.size), np.array(predictor.base.names(np.arange(predictor.base.size)))
    found = {}
    for which, made in predictor.scores.passes(codes):
        rows = predictor.network.input_layer(made.batch, known=made.known if known else None).detach()
        found |= dict(zip(names[which], rows[made.rows(codes[which])], strict=True))
    return found


def test_a_question_is_answered_with_what_is_known_also_where_no_rule_reaches(toy: Problem) -> None:
    for strategy in ("known-body", "backward"):
        predictor = Model.from_run(network(toy, f"grounding.strategy={strategy}"))
        known = {answer.atom for answer in predictor.predict("near(n1, ?)") if answer.known}
        assert known == {"near(n1, n0)", "near(n1, n2)"}, strategy


def marks(count: int, *rows: int) -> torch.Tensor:
    found = torch.zeros(count, dtype=torch.bool)
    found[list(rows)] = True
    return found


def rules_over(*parts: list[list[int]]) -> FactorGraph:
    return FactorGraph(torch.arange(9), tuple(torch.tensor(part) for part in parts), (), (None,) * len(parts))


CHAIN = rules_over([[0, 1], [1, 2], [3, 2]], [[3, 4, 5]])
MISSING = rules_over([[0, 1, 2], [1, 3, 4]])


@pytest.mark.parametrize(
    ("rules", "sources", "known", "steps", "expected"),
    [
        *((CHAIN, [0], [], steps, [*range((0, 1, 2, 3, 5)[steps] + 1)]) for steps in range(5)),
        (MISSING, [], [0, 1], 1, [2]),
        (MISSING, [], [0], 3, []),
        (rules_over([[2, 0, 2], [3, 3, 4], [0, 5, 5]]), [], [0], 1, [2, 5]),  # an atom at two positions is missed once
        (rules_over(), [4], [5], 3, [4]),
    ],
)
def test_sources_reach_as_far_as_there_are_layers_and_rules_support_the_atom_they_miss(
    rules: FactorGraph, sources: list[int], known: list[int], steps: int, expected: list[int]
) -> None:
    found = supported(rules, marks(9, *sources), marks(9, *known), steps)
    assert found.nonzero().flatten().tolist() == expected


THINGS_THEORY = parse_theory(
    "domain thing, owner\npredicate big(thing)\npredicate has(owner, thing)\npredicate alike(thing, thing) closed"
)
ITEMS = [f"t{i}" for i in range(8)]
BIG = Table(pa.table({"x": ITEMS, "label": [str(i % 2) for i in range(8)]}), "big", columns=("x",), label="label")
VECTORS = {name: np.array([float(i % 2), i / 8, 1.0]) for i, name in enumerate(ITEMS)}
TEXTS = {name: ("large heavy thing" if i % 2 else "small light thing") for i, name in enumerate(ITEMS)}
NEW_ITEM = {"t55": np.array([1.0, 0.3, 1.0])}


def things(features: dict[str, object], more: tuple[str, ...] = ()) -> Problem:
    has = pa.table({"o": ["ann", "bob"], "x": ["t0", "t1"]})
    alike = pa.table({"x": ["t0", *more], "y": ["t2", *("t1" for _ in more)]})
    domains = {"thing": [*ITEMS, *more], "owner": ["ann", "bob"]}
    tables = [BIG, Table(has, "has"), Table(alike, "alike")]
    return Problem.build("things", THINGS_THEORY, tables, domains=domains, features=features)  # pyright: ignore


def featured_run(given: Problem, *changes: str, encoders: dict[str, nn.Module] | None = None) -> Run:
    usual = ["model.reasoner=none", "model.input=mlp", "training.hiding=0.0", "training.epochs=60", "model.dim=8"]
    options = Options().changed([*usual, "training.corrupted_positions=[-1]", *changes])
    run = prepare_run(given, options, seed=0, encoders=encoders)
    for _ in run.trainer:
        pass
    return run


@pytest.mark.parametrize(
    ("changes", "features", "new"),
    [
        ((), VECTORS, NEW_ITEM),
        (("model.input=distmult",), VECTORS, NEW_ITEM),
        (("grounding.reciprocal=true",), VECTORS, NEW_ITEM),
        (("model.input=pair",), VECTORS, NEW_ITEM),
        ((), TEXTS, {"t55": "a large thing, heavy"}),
    ],
)
def test_they_are_answered_as_from_the_start(changes: tuple[str, ...], features: dict, new: dict) -> None:
    run = featured_run(things({"thing": features}), *changes)
    predictor = Model.from_run(run)
    changed = predictor.with_facts("alike(t55, t1)", features={"thing": new})
    again = prepare_run(things({"thing": features | new}, more=("t55",)), run.options, seed=0)
    again.model.load_state_dict(run.model.state_dict())
    codes = again.problem.atoms
    assert changed.base.names(codes) == again.problem.knowledge.base.names(codes)
    np.testing.assert_allclose(changed.logits(codes), again.logits()(codes), rtol=1e-5, atol=1e-5)
    assert changed.predict("big(t55)")[0].probability > 0.5
    before = predictor.logits(predictor.problem.atoms)
    back = changed.without_facts("alike(t55, t1)")
    np.testing.assert_array_equal(back.logits(back.changed.problem.atoms), before)
    assert back.network is run.model


def test_names_are_texts_where_they_were_in_training() -> None:
    run = featured_run(things({"thing": FeatureTable(names=True)}))
    changed = Model.from_run(run).with_facts("alike(t55, t1)")
    assert changed.network.trained_ids is not None
    assert bool((changed.network.trained_ids >= 0).all())
    assert changed.predict("big(t55)")


def test_a_module_is_found_by_its_domain() -> None:
    """A domain with an encoder but no features has no channel, so places would not do."""
    theory = parse_theory("domain owner, thing\npredicate big(thing)\npredicate has(owner, thing)")
    features = {"owner": FeatureTable({"nobody": [1.0]}, missing="learn"), "thing": VECTORS}
    given = Problem.build("two", theory, [BIG], domains={"owner": ["ann"]}, features=features)  # pyright: ignore
    encoders: dict[str, nn.Module] = {"owner": nn.Linear(1, 4), "thing": nn.Linear(3, 4)}
    run = featured_run(given, "training.epochs=3", encoders=encoders)
    changed = Model.from_run(run).with_facts([], domains={"thing": ["t55"]}, features={"thing": {"t55": VECTORS["t3"]}})
    assert changed.predict("big(t55)")[0].logit == pytest.approx(changed.predict("big(t3)")[0].logit, abs=1e-5)


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
    run = featured_run(pictured(names), *changes, encoders=encoders)
    predictor = Model.from_run(run)
    changed = predictor.with_facts([], domains={"image": ["i9"]}, features={"image": {"i9": pictures["i9"]}})
    assert [answer.atom for answer in changed.predict("digit(i9, ?)")] == ["digit(i9, odd)", "digit(i9, even)"]
    with pytest.raises(DataError, match="'i8' is declared to be in 'image', but it is no new constant"):
        predictor.with_facts([], domains={"image": ["i8"]})


def test_a_new_constant_without_features_blanks_its_own_atoms_only() -> None:
    """Its domain had features throughout: the pair classifier has no weights for one without."""
    theory = parse_theory(
        "domain thing\npredicate big(thing)\npredicate alike(thing, thing) closed\n"
        "rule like: alike(x, y) & big(y) -> big(x)"
    )
    alike = Table(pa.table({"x": ["t0", "t1", "t5"], "y": ["t2", "t3", "t1"]}), "alike")
    given = Problem.build("things", theory, [BIG, alike], features={"thing": VECTORS})
    changes = ("model.reasoner=r2n", "model.layers=2", "model.input=pair", "training.hiding=0.3")
    predictor = Model.from_run(featured_run(given, *changes, "training.epochs=3"))
    changed = predictor.with_facts(["alike(a, t1)", "alike(a, t3)"])  # a is before all others: ids move
    apart = changed.predict("big(t6)")[0]
    assert apart.logit == pytest.approx(predictor.predict("big(t6)")[0].logit, abs=1e-5)
    assert changed.predict("big(a)")[0].reached
    entered, before = embeddings(changed, known=False), embeddings(predictor, known=False)
    is_new = {name for name in entered if "(a" in name or ", a)" in name}
    assert is_new
    for name, embedding in entered.items():
        torch.testing.assert_close(embedding, torch.zeros_like(embedding) if name in is_new else before[name])
    both = changed.with_facts([], domains={"thing": ["t55"]}, features={"thing": {"t55": VECTORS["t6"]}})
    assert both.predict("big(t55)")[0].logit == pytest.approx(apart.logit, abs=1e-5)
    assert both.predict("big(a)")[0].logit == pytest.approx(changed.predict("big(a)")[0].logit, abs=1e-5)


def test_constants_without_features_are_refused_as_ever() -> None:
    predictor = Model.from_run(featured_run(things({"thing": VECTORS}), encoders=None))
    changed = predictor.with_facts("has(cy, t1)")
    with pytest.raises(DataError, match="'cy' is no constant of the training, and the network has no reasoning layer"):
        changed.predict("has(cy, t2)")
    after, before = (model.predict("has(ann, t2)")[0].logit for model in (changed, predictor))
    np.testing.assert_allclose(after, before, rtol=1e-5)
    state = torch.random.get_rng_state()
    changed.predict("has(ann, t1)")
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
    changed = Model.from_run(prepare_run(things({"thing": VECTORS}), Options(), seed=0))
    with pytest.raises(DataError, match=message):
        changed.with_facts("alike(t55, t1)", features=features)
    once = changed.with_facts("alike(t55, t1)", features={"thing": NEW_ITEM})
    with pytest.raises(DataError, match="'t55' has features already"):
        once.with_facts("alike(t55, t2)", features={"thing": NEW_ITEM})


UNIONS = """
domain country, region
domain place = country | region
predicate in(place, place)
predicate by(country, country) closed
rule all: by(x, y) & in(x, z: region) -> in(y, z)
"""


def facts(changed: ChangedProblem) -> set[str]:
    evidence = changed.problem.train
    names = changed.base.names(evidence.atoms)
    return {name if truth else f"!{name}" for name, truth in zip(names, evidence.truth, strict=True)}


@pytest.fixture
def start(toy: Problem) -> ChangedProblem:
    return ChangedProblem.from_problem(toy)


def test_facts_come_as_text_files_tables_and_evidence(start: ChangedProblem, tmp_path: Path) -> None:
    new = tmp_path / "more.tsv"
    new.write_text("n2\tliesIn\tnorth\n")
    row = start.base.names(np.arange(start.base.size)).index("liesIn(s2, south)")
    arrow, evidence = pa.table({"h": ["n9"], "r": ["near"], "t": ["n1"]}), Evidence(np.array([row]), np.array([True]))
    changed = start.with_facts(["near(n0, s0)", "!liesIn(n2, south)", str(new), Table(arrow), evidence], {})
    more = {"near(n0, s0)", "!liesIn(n2, south)", "liesIn(n2, north)", "near(n9, n1)", "liesIn(s2, south)"}
    assert facts(changed) == facts(start) | more
    assert changed.new_constants == ("n9",)
    one = start.with_facts(new, {})
    assert facts(one) - facts(start) == {"liesIn(n2, north)"}
    assert facts(start.with_facts(arrow, {})) - facts(start)
    for part in changed.problem.queries.values():
        assert len(part)
    assert changed.base.names(changed.problem.test.atoms) == start.base.names(start.problem.test.atoms)


def test_what_is_taken_back_is_gone_with_its_constants(start: ChangedProblem) -> None:
    changed = start.with_facts(["near(n9, n1)", "near(n9, m)"], {})
    assert changed.new_constants == ("m", "n9")
    less = changed.without_facts("near(n9, m)")
    assert less.new_constants == ("n9",)
    assert facts(less) == facts(start) | {"near(n9, n1)"}
    assert less.without_facts(["near(n9, n1)"]).problem.knowledge.language is start.trained
    bare = start.without_facts("liesIn(n0, north)")
    assert facts(bare) == facts(start) - {"liesIn(n0, north)"}
    assert bare.problem.knowledge.language is start.trained, "the constants of the training stay"


def test_a_fact_is_there_or_not(start: ChangedProblem) -> None:
    twice = start.with_facts(["near(n1, n0)", "near(n1, n0)"], {})
    assert facts(twice) == facts(start)
    assert "near(n1, n0)" not in facts(twice.without_facts("near(n1, n0)"))


def test_the_part_of_a_union_is_what_other_facts_or_the_caller_say() -> None:
    table = Table(pa.table({"h": ["a", "a", "b"], "r": ["by", "in", "in"], "t": ["b", "r", "r"]}))
    domains = {"country": ["a", "b"], "region": ["r", "s"]}
    start = ChangedProblem.from_problem(Problem.build("unions", parse_theory(UNIONS), [table], domains=domains))
    with pytest.raises(DataError, match="constant 'new' is outside domain 'place'"):
        start.with_facts("in(new, s)", {})
    declared = start.with_facts("in(new, s)", {"country": ["new"]})
    by_fact = start.with_facts(["in(new, s)", "by(new, a)"], {})
    assert facts(by_fact) - facts(declared) == {"by(new, a)"}
    language = by_fact.problem.knowledge.language
    assert "new" in [language.constants[i] for i in language.members(language.domains[0])]
    later = by_fact.without_facts("by(new, a)")
    assert facts(later) == facts(declared), "new stays the country it was"
    assert later.without_facts("in(new, s)").problem.knowledge.language is start.trained


def test_a_declared_constant_stays(start: ChangedProblem) -> None:
    town = {"town": ["n9"]}
    declared = start.with_facts([], town)
    assert declared.new_constants == ("n9",)
    assert facts(declared) == facts(start)
    named = declared.with_facts("near(n9, n8)", {})
    assert named.without_facts("near(n9, n8)").new_constants == ("n9",), "n8 goes with its fact, n9 was declared"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("!near(n1, n0)", r"near\(n1, n0\) is known to be true, and now given as false"),
        (["near(n1, q)", "!near(n1, q)"], "stated both true and false"),
        ("nowhere.tsv", r"'nowhere.tsv' is neither a fact nor a file\n.*write a fact as \"liesIn\(n0, north\)\""),
        ("nere(n1, n0)", "unknown predicate 'nere'\n.*did you mean 'near'"),
        ("near(n1)", "near takes 2 constants, but here it has 1"),
        ("near(n1, ?)", r"\? has no place"),
        ("near(n1, north)", "constant 'north' is outside domain 'town'"),
        (3, "not a int"),
        (Evidence(np.array([10**9]), np.array([True])), "a code outside the Herbrand base"),
    ],
)
def test_wrong_facts_are_refused(start: ChangedProblem, given: object, message: str) -> None:
    with pytest.raises(R2NError, match="(?s)" + message):
        start.with_facts(given, {})


def test_evidence_and_text_may_not_contradict_each_other(start: ChangedProblem) -> None:
    row = start.base.names(np.arange(start.base.size)).index("liesIn(s2, south)")
    with pytest.raises(DataError, match="is known to be true, and now given as false"):
        start.with_facts(["liesIn(s2, south)", Evidence(np.array([row]), np.array([False]))], {})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("liesIn(n2, north)", r'"liesIn\(n2, north\)": liesIn\(n2, north\) is not among the facts, so it cannot be'),
        ("!near(n1, n0)", r"near\(n1, n0\) is known to be true: as false it cannot be taken back"),
        ("near(n1, q)", "constant 'q' is outside domain 'town'"),
    ],
)
def test_what_cannot_be_taken_back(start: ChangedProblem, given: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        start.without_facts(given)
