"""A problem and the network that is trained on it: what it sees, and what it never sees."""

from dataclasses import replace

import numpy as np
import pytest

import r2n
from r2n.data.knowledge_base import Evidence, reciprocal_codes
from r2n.data.problem import Problem
from r2n.errors import ConfigError, MemoryLimitError
from r2n.model.preflight import preflight_warnings
from r2n.model.run import Run, prepare_run
from r2n.options import Options
from tests.labelled_problems import table
from tests.unit.training.toy_training import step_of


def test_the_rules_are_learned(toy_run: Run) -> None:
    report = toy_run.evaluate("test")
    assert report.metrics["ap"] == 1.0


def test_validation_chooses_and_needs_queries(toy: Problem) -> None:
    run = prepare_run(toy, toy.options.changed(["training.patience=20", "training.epochs=30"]), seed=0)
    records = list(run.trainer)
    assert [record.number for record in records if record.valid is not None] == [10, 20, 30][: len(records) // 10]
    assert run.trainer.best is not None
    blind = replace(toy, queries={})
    with pytest.raises(ConfigError, match="needs queries"):
        prepare_run(blind, toy.options.changed(["training.patience=20"]), seed=0)


def test_true_queries_are_ranked(toy: Problem, toy_run: Run) -> None:
    test = toy.test
    only_true = replace(toy, queries={"test": type(test)(test.atoms[test.truth], test.truth[test.truth])})
    report = replace(toy_run, problem=only_true).evaluate("test")
    assert report.metrics["mrr"] > 0.5
    with pytest.raises(ConfigError, match="no queries 'dev'"):
        toy_run.evaluate("dev")


def test_no_held_out_atom_has_a_label_or_a_part_in_selection(toy: Problem) -> None:
    """Held-out atoms are rows of the graph, but nothing that training reads says anything of them."""
    run = prepare_run(toy, toy.options.changed(["training.negatives=1"]), seed=0)
    shuffled = {split: type(part)(part.atoms, ~part.truth) for split, part in toy.queries.items()}
    other = prepare_run(replace(toy, queries=shuffled), toy.options.changed(["training.negatives=1"]), seed=0)
    for mine, theirs in zip(run.trainer, other.trainer, strict=True):
        assert (mine.loss, mine.supervised, mine.semantic) == (theirs.loss, theirs.supervised, theirs.semantic)


def test_the_whole_base_is_the_graph_of_a_full_softmax() -> None:
    problem = r2n.load("nations")
    options = problem.options.changed(["training.epochs=1", "model.dim=4", "model.layers=1"])
    run = prepare_run(problem, options, seed=0)
    graph = step_of(run.trainer).graph
    assert len(graph.atoms) == 2 * len(problem.knowledge.base), "with reciprocals"
    assert graph.shapes == ((14, 14),)
    with pytest.raises(MemoryLimitError, match="full-softmax over the whole Herbrand base, 21,560 atoms"):
        prepare_run(problem, options, seed=0, memory=1_000_000)


def test_held_out_facts_are_false_or_absent_for_all_that_training_sees() -> None:
    """Neither the softmax rows nor the reciprocals hold a fact of another split."""
    problem = r2n.load("nations")
    run = prepare_run(problem, problem.options.changed(["training.epochs=0", "model.dim=4"]), seed=0)
    held_out = np.concatenate([problem.valid.atoms, problem.test.atoms])
    mirrored = reciprocal_codes(run.model.base, held_out)
    assert not np.isin(np.concatenate([held_out, mirrored]), run.knowledge.evidence.atoms).any()
    rows = run.trainer.objective.rows
    assert rows is not None
    assert sum(len(facts[0]) for _, _, facts in rows.groups) == 2 * len(problem.train)


def test_queries_that_are_asked_as_false_are_told_whatever_their_truth(toy: Problem) -> None:
    """Corrupting the town of a fact makes atoms of the towns that are asked about."""
    note = "4 of 4 queries 'test' are asked as false in training"
    flipped = replace(toy, queries={name: Evidence(part.atoms, ~part.truth) for name, part in toy.queries.items()})
    for problem in (toy, flipped):
        every = prepare_run(problem, toy.options.changed(["training.corrupted_positions=[0, 1]"]), 0).notes()
        assert [text.split(",")[0] for text in every] == [note.replace("test", "valid"), note]
        assert prepare_run(problem, toy.options, 0).notes() == [], "there only the valley is corrupted"


PAIRS = "domain d\npredicate p(d, d)\n"
LABEL = "label facts of p false, at least one to 10 true ones, and name p in training.labels_only: then only these"


@pytest.mark.parametrize(
    ("facts", "changes", "advice"),
    [
        ("many", [], "only the last constant of a fact excludes others: set training.corrupted_positions to [-1]"),
        ("many", ["training.corrupted_positions=[0, 1]"], "set training.corrupted_positions to [-1]"),
        ("many", ["training.corrupted_positions=[-1]"], LABEL),
        ("many", ["training.corrupted_positions=[1]"], LABEL),
        ("reversed", [], "only the first constant of a fact excludes others: set training.corrupted_positions to [-2]"),
        ("ring", [], LABEL),
        ("labelled", [], "to ask only labelled atoms of p, set training.labels_only to ['p']"),
        ("few labels", [], LABEL),
        ("labelled", ["training.loss=softmax"], None),
    ],
)
def test_the_way_out_of_corrupted_queries_fits_the_facts_and_what_is_set(
    facts: str, changes: list[str], advice: str | None
) -> None:
    """The advice was [-1] whatever was set, and labels_only with one false fact to many, or with a softmax.

    Of a ranking, whose queries are all true, a note is made only where something better can be set.
    """
    pairs = [(f"p{i}", f"c{i % 2}") for i in range(8)]
    pairs = {
        "reversed": [(b, a) for a, b in pairs],
        "ring": [(f"p{i}", f"p{(i + 1) % 8}") for i in range(8)],
        "few labels": [(f"p{i}", f"p{(i + 1) % 16}") for i in range(16)],
    }.get(facts, pairs)
    asked = (pairs[0][0], pairs[1][1]) if facts != "reversed" else (pairs[1][0], pairs[0][1])
    true = {"labelled": 4, "few labels": 15}.get(facts, len(pairs))
    told = [(*pair, int(i < true)) for i, pair in enumerate(pairs)]
    problem = Problem.build(
        "pairs", r2n.parse_theory(PAIRS), [table("p", told, labelled=True)], {"test": [table("p", [asked])]}
    )
    options = Options().changed(changes)
    ranked = prepare_run(problem, options, 0).notes()
    assert len(ranked) == (advice not in (None, LABEL))
    false = {"test": Evidence(problem.test.atoms, ~problem.test.truth)}
    notes = prepare_run(replace(problem, queries=false), options, 0).notes()
    assert len(notes) == (advice is not None)
    if advice is None:
        return
    (note,) = notes
    assert note.startswith("1 of 1 queries 'test' are asked as false in training, as corruptions of facts: ")
    assert advice in note


def test_a_training_that_asks_nothing_is_warned_of_once(toy: Problem) -> None:
    closed = toy.train.atoms[toy.train.atoms >= toy.knowledge.base.offsets[1]]
    knowledge = replace(toy.knowledge, evidence=Evidence(closed, np.ones(len(closed), bool)))
    problem = replace(toy, knowledge=knowledge)
    assert sum("r2n infer" in text for text in preflight_warnings(problem, toy.options)) == 1
    assert prepare_run(problem, toy.options, 0).notes() == []


def test_only_predicates_with_false_facts_are_named_for_labels_only() -> None:
    """It named all predicates that are asked, and of the others no negative could be drawn."""
    theory = r2n.parse_theory("domain d\npredicate p(d, d)\npredicate q(d, d)\n")
    ring = [(f"c{i}", f"c{(i + 1) % 8}") for i in range(8)]
    facts = [table("p", [(*pair, int(i < 6)) for i, pair in enumerate(ring)], labelled=True), table("q", ring)]
    asked = [table(name, [("c0", "c2")]) for name in ("p", "q")]
    (note,) = prepare_run(Problem.build("two", theory, facts, {"test": asked}), Options(), 0).notes()
    assert note.endswith(": to ask only labelled atoms of p, set training.labels_only to ['p']")
