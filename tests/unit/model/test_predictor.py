"""A trained network and what it is told: answers follow facts, and what nothing is known of is refused."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from torch import Tensor

from r2n.data.candidates import Candidates
from r2n.data.problem import Problem, load_problem
from r2n.errors import DataError
from r2n.model.model import Model
from r2n.model.run import Run, prepare_run
from r2n.model.training import train_in
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN
from tests.candidate_problem import THINGS, table, things_problem
from tests.examples import at_most
from tests.theory_strategies import dice
from tests.toy_problem import TOWNS, VALLEYS, write_toy_problem

CHANGES = {
    "only": ["model.evidence_input=only", "training.hide_by=constant"],
    "add": ["model.evidence_input=add"],
    "off": [],
    "known-body": ["model.evidence_input=only", "grounding.strategy=known-body"],
    "backward": ["model.evidence_input=only", "grounding.strategy=backward", "model.layers=2"],
    "transe": ["model.input=transe", "model.input_score=true"],
    "fgnn": ["model.reasoner=fgnn", "model.evidence_input=add"],
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
        kept = [
            row for row in path.read_text().splitlines() if "liesIn({0}, {2})".format(*row.split("\t")) not in queries
        ]
        path.write_text("".join(f"{row}\n" for row in kept))
    return load_problem(folder)


def random_changes(dice: Random, problem: Problem) -> tuple[list[str], list[str]]:
    """Facts to take back, and facts to add: some known already, some about new towns, some false; none contradicts."""
    known = fact_lines(problem)
    fewer = dice.sample(known, dice.randint(0, 5))
    kept = set(known) - set(fewer)
    towns = [*TOWNS, "new", "zz"]
    more: set[str] = set(dice.sample(sorted(kept), dice.randint(0, 2)))
    for _ in range(dice.randint(0, 6)):
        fact = (
            f"near({dice.choice(towns)}, {dice.choice(towns)})"
            if dice.random() < 0.7
            else f"liesIn({dice.choice(towns)}, {dice.choice(VALLEYS)})"
        )
        if f"!{fact}" not in more:
            more.add(f"!{fact}" if dice.random() < 0.2 and fact not in more.union(known) else fact)
    return fewer, sorted(more)


@at_most(4, "each grounds and lays out several times, for every kind of network")
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
    twice = there.with_facts(more).without_facts(more)
    asked = there.changed.problem.atoms
    np.testing.assert_array_equal(twice.scores(asked), there.scores(asked))


@at_most(3, "each grounds and lays out several times, for every kind of network")
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


@at_most(4, "each grounds and lays out several times, for every kind of network")
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

    told = with_candidates.without_facts(lines({pair: LABELS[pair] for pair in fewer})).with_facts(lines(more))
    train = {pair: LABELS[pair] for pair in PAIRS[0::5] if pair not in fewer} | more
    test, options = {pair: LABELS[pair] for pair in PAIRS[1::5]}, problem.candidates["same"].options
    fresh = replace(things_problem(train, test, options, things=(*THINGS, *new)), options=problem.options)
    names = fresh.knowledge.base.names
    assert told.base.names(np.arange(told.base.size)) == names(np.arange(fresh.knowledge.base.size))
    assert names(told.changed.problem.knowledge.candidates["same"]) == names(fresh.knowledge.candidates["same"])
    again = prepare_run(fresh, with_candidates.options, 0)
    weights = {k: value for k, value in with_candidates.network.state_dict().items() if k != "constants.vectors"}
    again.model.load_state_dict(weights, strict=False)
    np.testing.assert_allclose(told.scores(fresh.atoms), again.logits()(fresh.atoms), rtol=1e-5, atol=1e-6)
    back = told.without_facts(lines(more)).with_facts(lines({pair: LABELS[pair] for pair in fewer}))
    np.testing.assert_array_equal(back.scores(problem.atoms), with_candidates.scores(problem.atoms))


def test_under_candidates_atoms_asked_together_are_answered_as_one_by_one(with_candidates: Model) -> None:
    everything = np.arange(with_candidates.base.size)
    whole = with_candidates.source.whole
    assert whole is not None
    assert not whole.contains(torch.from_numpy(everything)).all()
    alone = [with_candidates.logits(everything[i : i + 1])[0] for i in everything]
    np.testing.assert_allclose(with_candidates.logits(everything), alone, rtol=1e-5, atol=1e-6)


def test_in_a_ranking_facts_corruptions_queries_and_other_atoms_are_reached_alike() -> None:
    """Which atoms stand in ground rules is for the candidates to say, and their truth has no part in it."""
    train, test = (dict.fromkeys(PAIRS[i::5], True) for i in (0, 1))
    inner = dict.fromkeys(product(THINGS[:4], THINGS[:4]), True)
    predictor = Model.from_run(network(things_problem(train, test, Candidates(tables=(table(inner),)))))
    reached = {answer.atom: answer.reached for answer in predictor.predict("same(?, ?)", everything=True)}
    assert reached == {f"same({a}, {b})": (a, b) in inner for a, b in PAIRS}
    for asked in (train, test, set(PAIRS) - train.keys() - test.keys()):
        assert len({pair in inner for pair in asked}) == 2, "each kind has atoms within and without"


def test_new_constants_are_answered_as_from_the_start(inductive: Model, tmp_path: Path) -> None:
    """A network without vectors of constants takes any language."""
    told = inductive.with_facts(NEW)
    problem = write_again(tmp_path / "towns", [*fact_lines(inductive.changed.problem), *NEW])
    again = prepare_run(problem, inductive.options, 0)
    weights = {name: value for name, value in inductive.network.state_dict().items() if name != "constants.vectors"}
    again.model.load_state_dict(weights, strict=False)
    asked = problem.atoms
    np.testing.assert_array_equal(told.logits(asked[:40]), again.logits()(asked[:40]))


def test_a_new_town_lies_where_its_neighbours_lie(inductive: Model) -> None:
    for valley in VALLEYS:
        other = next(name for name in VALLEYS if name != valley)
        near = [town for town in TOWNS if town[0] == valley[0]]
        facts = [f"near({near[i]}, new)" for i in (0, 1, 3)] + [f"near(new, {near[i]})" for i in (0, 1, 3)]
        answers = {answer.atom: answer.probability for answer in inductive.with_facts(facts).predict("liesIn(new, ?)")}
        assert answers[f"liesIn(new, {valley})"] > 0.9
        assert answers[f"liesIn(new, {other})"] < 0.5


def test_facts_move_the_answers_about_old_constants(inductive: Model) -> None:
    def belief(predictor: Model) -> float:
        return predictor.predict("liesIn(n5, north)")[0].probability

    borders = [f"near({a}, {b})" for x in ("n4", "n6") for a, b in ((x, "n5"), ("n5", x))]
    moved = [fact.replace("n4", "s4").replace("n6", "s6") for fact in borders]
    assert belief(inductive) > 0.9
    assert belief(inductive.without_facts(borders).with_facts(moved)) < 0.5
    assert not inductive.without_facts(borders).predict("liesIn(n5, north)")[0].reached


def test_what_is_known_is_told_with_the_answer(inductive: Model) -> None:
    told = inductive.with_facts("!liesIn(n5, south)")
    assert [(answer.atom, answer.known) for answer in told.predict("liesIn(n5, ?)")] == [
        ("liesIn(n5, north)", None),
        ("liesIn(n5, south)", False),
    ]
    assert inductive.predict("liesIn(n1, north)")[0].known is True


def test_new_atoms_are_grounded_around(toy: Problem) -> None:
    """Nobody asked where n99 lies when the network was trained."""
    told = Model.from_run(network(toy, *CHANGES["backward"])).with_facts(["near(n1, n99)", "near(n3, n99)"])
    assert told.predict("liesIn(n99, north)")[0].reached


def test_what_no_rule_connects_with_anything_known_is_refused(inductive: Model) -> None:
    island = inductive.with_facts("near(n98, n97)")
    with pytest.raises(
        DataError, match=r"liesIn\(n98, north\) cannot be answered: 'n98' is no constant of the training"
    ):
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
    told = Model.from_run(network(toy, *changes)).with_facts(NEW)
    with pytest.raises(DataError, match=message):
        told.predict("liesIn(n99, ?)")
    assert told.predict("liesIn(n5, ?)"), "about others it can be asked as before"


def test_atoms_of_new_constants_enter_blanked_but_with_what_is_known(predictor: Model) -> None:
    told = predictor.with_facts([*NEW, "liesIn(n99, north)"])
    model = told.network
    assert model is not predictor.network
    assert model.constants is predictor.network.constants, "no weight is copied"
    everything = np.arange(told.base.size)
    after = {name: row for part in embeddings(told, everything) for name, row in part.items()}
    before = {name: row for part in embeddings(predictor, np.arange(predictor.base.size)) for name, row in part.items()}
    for name, row in after.items():
        if "n99" not in name and name in before:
            torch.testing.assert_close(row, before[name])
        elif "n99" in name:
            state = TRUE if name == "liesIn(n99, north)" or name in NEW else FALSE if name[:4] == "near" else UNKNOWN
            expected = torch.zeros_like(row) if model.known is None else model.known.detach()[state]
            torch.testing.assert_close(row, expected)
    assert any("n99" in name for name in after)


def embeddings(predictor: Model, codes: np.ndarray) -> Iterator[dict[str, Tensor]]:
    """Emb^0 of atoms by name, pass by pass; facts as they are before anything is added."""
    for which, made in predictor.scores.passes(codes):
        embedding = predictor.network.input_layer(made.layout, known=made.known).detach()
        yield dict(zip(predictor.base.names(codes[which]), embedding[made.rows(codes[which])], strict=True))


def test_it_is_loaded_from_the_folder_of_a_run(toy_folder: Path, tmp_path: Path) -> None:
    problem = load_problem(toy_folder)
    run = prepare_run(problem, problem.options, seed=0)
    for _ in train_in(tmp_path / "run", run):
        pass
    loaded = Model.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.logits(problem.atoms), run.logits()(problem.atoms))


def test_a_question_is_answered_with_what_is_known_also_where_no_rule_reaches(toy: Problem) -> None:
    predictor = Model.from_run(network(toy, "grounding.strategy=known-body"))
    for strategy in ("known-body", "backward"):
        predictor = Model.from_run(network(toy, f"grounding.strategy={strategy}"))
        known = {answer.atom for answer in predictor.predict("near(n1, ?)") if answer.known}
        assert known == {"near(n1, n0)", "near(n1, n2)"}, strategy
