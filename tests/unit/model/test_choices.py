"""Options that nobody set: chosen from the problem, with a reason, and never against what is set."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest

import r2n
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.data.problem import Problem
from r2n.data.validation import contradictions
from r2n.errors import ConfigError
from r2n.logic.parser import parse_theory
from r2n.model.choices import (
    MINUTES,
    alternatives,
    choose_options,
    corrupted_positions,
    lost_choices,
    with_budget,
)
from r2n.model.preflight import preflight_warnings
from r2n.model.run import Run, prepare_run
from r2n.options import Options
from tests.examples import first_of
from tests.labelled_problems import featured_graph, items, table
from tests.unit.grounding.small_knowledge import knowledge

CHAIN = "domain d\npredicate p(d, d)\npredicate q(d, d)\nrule r: p(x, z) & p(z, y) -> q(x, y)\n"


def graph(constants: int, facts: int, theory: str = CHAIN) -> Problem:
    """Random facts of two predicates, some of them kept as queries."""
    dice = np.random.default_rng(0)
    drawn = {tuple(row) for row in dice.integers(0, [constants, 2, constants], (facts, 3)).tolist()}
    rows = [(f"c{a}", "pq"[b], f"c{c}") for a, b, c in sorted(drawn)]
    dice.shuffle(rows)

    def table(part: list[tuple[str, str, str]]) -> r2n.Table:
        return r2n.Table(pa.table({name: [row[i] for row in part] for i, name in enumerate(("h", "r", "t"))}))

    queries = {"valid": [table(rows[:20])], "test": [table(rows[20:40])]}
    return Problem.build("graph", parse_theory(theory), [table(rows[40:])], queries)


def test_a_large_graph_is_asked_row_by_row_with_counted_rules() -> None:
    problem = graph(200, 1000)
    options, choices = choose_options(problem, Options())
    assert (options.model.rules, options.grounding.reciprocal) == ("counted", True)
    training = options.training
    assert (training.loss, training.batch_size, training.patience) == ("full-softmax", 250, 10)
    assert {choice.key for choice in choices} >= {"model.rules", "training.loss", "training.batch_size"}
    assert all(choice.reason for choice in choices)
    assert str(choices[0]).startswith("model.rules = counted (1 Horn rule on a graph of ")
    run = prepare_run(problem, options.changed(["training.epochs=1"]), 0)
    assert next(iter(run.trainer)).number == 1
    assert prepare_run(problem).options == choose_options(problem, problem.options)[0], "a run without options"


def test_labelled_queries_of_a_large_graph_of_true_facts_are_asked_row_by_row_too() -> None:
    """All corruptions of 3,260 facts were trained on at once, which needed 18 GB."""
    for problem, loss in ((graph(200, 1000), "full-softmax"), (graph(20, 100), "bce")):
        labelled = {part: Evidence(q.atoms, np.arange(len(q)) % 2 == 0) for part, q in problem.queries.items()}
        assert choose_options(replace(problem, queries=labelled), Options())[0].training.loss == loss


def test_features_change_nothing_that_is_chosen_for_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """They had bce over all corruptions, 300 epochs and dim 32, without a word."""
    monkeypatch.setattr("r2n.model.choices.MANY_NEGATIVES", 10_000)
    problem = featured_graph(0, count=60)
    options, choices = choose_options(problem, Options())
    assert choices == choose_options(featured_graph(0, count=60, vector=False), Options())[1]
    assert (options.training.loss, options.training.epochs, options.model.dim) == ("full-softmax", 30, 100)
    run = prepare_run(problem, options, 0)
    losses = [epoch.loss for epoch in run.trainer]
    assert losses[-1] < 0.8 * losses[0]
    assert run.evaluate("test").metrics["mrr"] > 0.2


def test_what_is_set_stays() -> None:
    problem = graph(200, 1000)
    options, choices = choose_options(problem, Options().changed(["training.epochs=7", "model.dim=8"]))
    assert (options.training.epochs, options.model.dim, options.model.rules) == (7, 8, "counted")
    assert not {choice.key for choice in choices} & {"training.epochs", "model.dim"}
    for settled in ("training.loss=bce", "model.layers=2", "training.negatives=3"):
        same = Options().changed([settled, "grounding.strategy=full"])
        assert choose_options(problem, same) == (same, ())


def test_small_graphs_labelled_queries_and_graphs_without_rules() -> None:
    small = graph(20, 100)
    assert [options.model.rules for options, _ in alternatives(small, Options())] == ["counted", "layers"]
    assert {options.training.n3 for options, _ in alternatives(small, Options())[:1]} == {0.2}, "few facts"
    concluded = small.test.atoms[small.knowledge.base.decode(small.test.atoms)[0] == 1]
    asked = {"valid": Evidence(concluded, np.ones(len(concluded), bool))}
    ((alone, _),) = alternatives(replace(small, queries=asked), Options())
    assert alone.model.rules == "counted", "no rule concludes from what is asked"
    assert choose_options(graph(20, 10), Options()) == (Options(), ())
    options, choices = choose_options(r2n.load("countries-s3"), Options())
    assert options.training.loss == "bce"
    assert [choice.key for choice in choices] in ([], ["training.corrupted_positions"])
    options, _ = choose_options(graph(200, 1000, CHAIN.rsplit("rule", 1)[0]), Options())
    assert (options.model.reasoner, options.model.rules, options.model.blends) == ("paths", "layers", True)
    assert not choose_options(graph(200, 1000), Options(), along_paths=False)[0].model.blends, "for several processes"


def lives(pairs: list[tuple[str, str]]) -> KnowledgeBase:
    names = ", ".join(sorted({name for pair in pairs for name in pair}) or ["a"])
    facts = " ".join(f"knows({some},{other})" for some, other in pairs)
    return knowledge("", facts, theory=f"domain d = {{{names}}}\npredicate knows(d, d)\n")


def test_positions_to_corrupt_are_those_whose_rows_hold_few_facts() -> None:
    one_city = [(f"p{i}", f"c{i % 3}") for i in range(12)]
    assert corrupted_positions(lives(one_city)) == (-1,)
    assert corrupted_positions(lives([(city, person) for person, city in one_city])) == (-2,)
    assert corrupted_positions(lives([(f"p{i}", f"p{(i + 1) % 12}") for i in range(12)])) is None
    assert corrupted_positions(lives([])) is None


def test_rules_that_cannot_be_counted_are_left_out_of_a_large_graph_and_that_is_told() -> None:
    either = "rule e: p(x, y) -> q(x, y) | q(y, x)\n"
    options, choices = choose_options(graph(200, 1000, CHAIN + either), Options())
    assert (options.model.rules, options.model.reasoner) == ("counted", "paths")
    found = preflight_warnings(graph(200, 1000, CHAIN + either), options)
    assert "1 rule of the theory left out along paths; only Horn rules can be counted" in found
    apart, choices = choose_options(graph(200, 1000, CHAIN + either), Options(), along_paths=False)
    assert apart.model.reasoner == "none"
    found = next(choice for choice in choices if choice.key == "model.reasoner")
    assert found.reason.startswith("1 rule left out: on a graph of ")
    alone, _ = choose_options(graph(200, 1000, CHAIN.rsplit("rule", 1)[0] + either), Options())
    assert (alone.model.rules, alone.model.reasoner) == ("layers", "paths")
    same = Options().changed(["model.reasoner=r2n", "grounding.strategy=full"])
    assert choose_options(graph(200, 1000, CHAIN + either), same) == (same, ())


def test_wide_predicates_take_an_input_layer_that_has_room_for_them() -> None:
    _, choices = choose_options(graph(20, 100, CHAIN + "predicate gives(d, d, d)\n"), Options())
    assert str(choices[0]) == "model.input = distmult (gives has 3 positions)"
    large, _ = choose_options(graph(200, 1000, CHAIN + "predicate gives(d, d, d)\n"), Options())
    assert (large.model.input, large.training.loss, large.grounding.reciprocal) == ("distmult", "full-softmax", False)
    assert large.training.corrupted_positions is None, "all positions are asked for"
    assert large.model.init_scale > 0.1, "a product of many small vectors never begins to learn"


def trained(problem: Problem, *changes: str) -> Run:
    run = prepare_run(problem, choose_options(problem, problem.options.changed(changes))[0], 0)
    for _ in run.trainer:
        pass
    return run


@pytest.mark.parametrize("seed", first_of(range(3), 1))
def test_labelled_false_facts_are_the_negatives_of_their_predicate(seed: int) -> None:
    """When every unlabelled item was asked as false, the accuracy was 0.58, 0.58 and 0.45."""
    problem = items(seed)
    run = trained(problem, "training.epochs=60")
    assert run.options.training.labels_only == ("good",)
    false = problem.train.atoms[~problem.train.truth]
    assert run.trainer.batches.asked(run.trainer.generator)[1].tolist() == false.tolist()
    assert run.evaluate("test").metrics["accuracy"] > 0.78
    assert run.notes() == []


def test_it_is_told_with_the_counts_and_never_against_what_is_set() -> None:
    problem = items()
    _, choices = choose_options(problem, Options())
    assert str(next(choice for choice in choices if choice.key == "training.labels_only")) == (
        "training.labels_only = ('good',) (labelled false facts are the negatives: good has 19 true and 21 false ones)"
    )
    for change in ("corrupted_positions=[-1]", "negatives=2", "labels_only=[]", "loss=softmax"):
        same = Options().changed([f"training.{change}"])  # a softmax compares facts with corruptions
        options, choices = choose_options(problem, same)
        assert "training.labels_only" not in {choice.key for choice in choices}
        set_to = same.training.model_dump(exclude_unset=True)
        assert set_to.items() <= options.training.model_dump().items()


MANY = """
domain a, b
predicate old(a)
predicate likes(a, b)
predicate owns(a, b)
predicate near(a, a) closed(a, a)
"""


def mixed(false: int) -> Problem:
    """old and likes have false facts, as many as asked for; owns has true ones; near is closed."""
    people = [f"a{i}" for i in range(20)]
    facts = [
        table("old", [(name, int(i > 0)) for i, name in enumerate(people)], labelled=True),
        table("likes", [(name, f"b{i % 3}", int(i >= false)) for i, name in enumerate(people)], labelled=True),
        table("owns", [(name, f"b{i % 3}") for i, name in enumerate(people)]),
        table("near", [(name, people[i - 1], 0) for i, name in enumerate(people)], labelled=True),
    ]
    return Problem.build("mixed", parse_theory(MANY), facts)


def test_each_predicate_has_its_own_negatives() -> None:
    options, _ = choose_options(mixed(2), Options())
    assert options.training.labels_only == ("old", "likes")
    assert options.training.corrupted_positions == (-1,), "owns alone tells it"
    run = prepare_run(mixed(2), options, 0)
    base = run.problem.knowledge.base
    false = base.names(run.trainer.batches.asked(run.trainer.generator)[1])
    assert sorted({name.partition("(")[0] for name in false}) == ["likes", "old", "owns"]
    assert sum(name.startswith("owns") for name in false) == 20 * 2
    assert sum(not name.startswith("owns") for name in false) == 3
    few = choose_options(mixed(1), Options())[0].training.labels_only
    assert few == ("old",), "a few false facts of a pair are no sample of what is false"


def test_true_facts_alone_of_one_position_are_warned_of() -> None:
    problem = items(only_true=True)
    options, choices = choose_options(problem, Options())
    assert options.training.prior == 0.5
    assert "training.prior" in {choice.key for choice in choices}
    assert not [text for text in preflight_warnings(problem, options) if "no false one" in text]
    options = options.changed(["training.prior=1.0"]).with_values({"prior": None})
    (first,) = preflight_warnings(problem, options)
    assert prepare_run(problem, options, 0).notes() == [], "it is said once"
    assert first.startswith("good has 19 true facts and no false one, so that training asks every other constant as")
    assert "label some facts of it false" in first
    for changes in (["training.labels_only=['good']"], ["training.corrupted_positions=[]"]):
        assert prepare_run(problem, Options().changed(changes), 0).notes() == []
        (warning,) = preflight_warnings(problem, Options().changed(changes))
        assert warning.startswith("no negative of good can be drawn: training.")


def some_values() -> Iterator[str]:
    """Each option that a person may set, with each of its values, or a few."""
    few: dict[type, tuple[object, ...]] = {bool: (True, False), int: (1, 3, 20), float: (0.0, 0.5)}
    for section, field in Options.model_fields.items():
        for key, option in getattr(field.annotation, "model_fields", {}).items():
            kinds = get_args(option.annotation) or (option.annotation,)
            kinds = [kind for part in kinds for kind in (get_args(part) or (part,))]
            values = [value for kind in kinds if isinstance(kind, type) for value in few.get(kind, ())]
            for value in [*values, *(kind for kind in kinds if isinstance(kind, str))]:
                yield f"{section}.{key}={json.dumps(value)}"


@pytest.fixture(scope="module")
def problems() -> tuple[Problem, ...]:
    wide = graph(200, 1000, CHAIN + "predicate gives(d, d, d)\n")
    return graph(200, 1000), replace(graph(200, 1000), queries={}), wide, graph(20, 100), mixed(2), items()


@pytest.mark.parametrize("setting", list(some_values()))
def test_what_is_chosen_gives_way_to_what_is_set(setting: str, problems: tuple[Problem, ...]) -> None:
    """`training.with_valid = true` was refused, for `training.patience` had been chosen."""
    try:
        own = Options().changed([setting])
    except ConfigError:
        return  # no value of this option
    section, _, key = setting.partition("=")[0].partition(".")
    for problem in problems:
        options, _ = choose_options(problem, own)
        assert getattr(getattr(options, section), key) == getattr(getattr(own, section), key)
        refused = {str(error) for error in contradictions(problem, options)}
        assert refused <= {str(error) for error in contradictions(problem, own)}


def test_what_was_chosen_for_the_sake_of_another_choice_goes_with_it() -> None:
    problem = graph(200, 1000)

    def keys(*changes: str) -> dict[str, object]:
        return {choice.key: choice.value for choice in choose_options(problem, Options().changed(changes))[1]}

    assert "training.patience" not in keys("training.with_valid=true")
    assert keys("training.with_valid=true")["training.loss"] == "full-softmax", "all else is chosen as before"
    assert not {"training.learning_rate", "model.init_scale"} & keys("training.optimiser=adam").keys()
    assert "training.corrupted_positions" not in keys("grounding.reciprocal=false")
    assert keys("training.validate_every=20")["training.patience"] == 40
    assert keys("training.patience=3")["training.validate_every"] == 3
    run = prepare_run(problem, choose_options(problem, Options().changed(["training.with_valid=true"]))[0], 0)
    assert run.trainer.validate is None


@pytest.mark.parametrize("settled", ["training.minutes=5", "training.epochs=7"])
def test_a_training_has_most_minutes_unless_somebody_says_how_long(settled: str) -> None:
    problem, own = graph(20, 10), Options().changed([settled])
    options, choices = with_budget(choose_options(problem, Options()), Options())
    assert (choices[-1].key, options.training.minutes) == ("training.minutes", MINUTES)
    assert with_budget(choose_options(problem, own), own) == choose_options(problem, own)


WITH_ATTRIBUTES = (
    "model.dim=16", "model.layers=2", "model.input_score=true", "training.hiding=0.5", "training.learning_rate=0.01",
    "training.optimiser=adagrad", "training.batch_size=50", "training.negatives=2", "training.patience=20",
    "training.weight_decay=0.0", "training.regularisation=off", "model.reasoner=mean-field", "training.minutes=1",
)  # fmt: skip
WITH_ROWS = (
    "model.dim=8", "model.layers=0", "model.rules=counted", "model.reasoner=none", "model.evidence_input=off",
    "training.loss=softmax", "training.hiding=0", "training.learning_rate=0.01", "training.batch_size=50",
    "training.optimiser=adam", "training.n3=0.0", "training.patience=20",
)  # fmt: skip


@pytest.mark.parametrize("setting", WITH_ATTRIBUTES)
def test_an_option_that_goes_with_a_recipe_for_attributes_leaves_it(setting: str) -> None:
    """`model.dim` turned all of it off."""
    problem = items()
    run = trained(problem, "training.epochs=1", setting)
    assert (run.options.model.input, run.options.model.reasoner) == ("regression", "mean-field")
    made = choose_options(problem, problem.options.changed([setting]))[1]
    assert lost_choices(problem, problem.options.changed([setting]), made, has_encoders=False) is None


@pytest.mark.parametrize("setting", WITH_ROWS)
def test_an_option_that_goes_with_rows_leaves_them(setting: str) -> None:
    run = trained(graph(200, 1000), "training.epochs=1", "grounding.strategy=full", setting)
    assert (run.options.model.rules, run.options.grounding.reciprocal) == ("counted", True)
    assert run.options.training.loss == ("softmax" if "softmax" in setting else "full-softmax")


@pytest.mark.parametrize("setting", ["model.reasoner=none", "model.layers=0"])
def test_without_reasoning_layers_the_regression_is_all(setting: str) -> None:
    options, choices = choose_options(items(), Options().changed([setting]))
    assert (options.model.input, options.model.has_layers, options.training.epochs) == ("regression", False, 1)
    assert "there is no reasoning layer" in {choice.reason for choice in choices} or setting.endswith("none")


def test_choices_that_a_set_option_turns_off_are_named() -> None:
    people = [f"p{i}" for i in range(40)]
    facts = [("leaves", person, i % 3 == 0) for i, person in enumerate(people)]
    problem = r2n.Problem.from_facts(facts, theory="domain person\npredicate leaves(person)")
    set_options = problem.options.changed(["model.input=complex"])
    made = choose_options(problem, set_options)[1]
    lost = lost_choices(problem, set_options, made, has_encoders=False)
    assert lost is not None
    assert lost.startswith("not chosen, because model.input is set: model.reasoner = none, ")
    own = choose_options(problem, problem.options)[1]
    assert lost_choices(problem, problem.options, own, has_encoders=False) is None
    harmless = problem.options.changed(["training.minutes=1"])
    assert lost_choices(problem, harmless, choose_options(problem, harmless)[1], has_encoders=False) is None
