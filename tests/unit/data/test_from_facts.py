"""Problems of facts given in Python: every form of facts, queries, features and theory, and random splits."""

import doctest
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import r2n.data.problem
from r2n.data.features import FeatureTable
from r2n.data.problem import Problem, load_problem
from r2n.data.tables import Table
from r2n.errors import ConfigError, DataError, TheoryError
from r2n.model.choices import choose_options
from r2n.store.folder import problem_bytes, problem_fingerprints, problem_from_bytes

COLUMNS = {"head": ["italy", "rome", "rome"], "relation": ["in", "in", "big"], "tail": ["europe", "italy", "italy"]}
LABELLED = {**COLUMNS, "truth": [1, 1, 0]}
ATOMS = ["in(italy, europe)", "in(rome, italy)", "!big(rome, italy)"]
TUPLES = [("in", "italy", "europe"), ("in", "rome", "italy"), ("big", "rome", "italy", False)]
TRIPLES = [("italy", "in", "europe"), ("rome", "in", "italy"), ("rome", "big", "italy", 0)]
ARGUMENTS = {
    "in": [("italy", "europe"), ("rome", "italy")],
    "big": pd.DataFrame({"a": ["rome"], "b": "italy", "label": 0}),
}
THEORY = "rule r: in(x, y) & in(y, z) -> in(x, z)"


def known(problem: Problem) -> set[tuple[str, bool]]:
    names = problem.knowledge.base.names(problem.train.atoms)
    return set(zip(names, problem.train.truth.tolist(), strict=True))


@pytest.mark.parametrize(
    "facts",
    [
        pd.DataFrame(LABELLED),
        pl.DataFrame(LABELLED),
        pa.table(LABELLED),
        ATOMS,
        "\n".join(ATOMS),
        TUPLES,
        [*np.array([["in", "italy", "europe"], ["in", "rome", "italy"]]).tolist(), ATOMS[2]],
        TRIPLES,
        ARGUMENTS,
        [ARGUMENTS, Table(pd.DataFrame(LABELLED))],
        (row for row in TUPLES),
    ],
    ids=["pandas", "polars", "arrow", "atoms", "text", "tuples", "mixed", "triples", "dict", "list", "generator"],
)
def test_every_form_of_facts_is_the_same_problem(facts: object) -> None:
    problem = Problem.from_facts(
        facts, THEORY, {"test": ["in(rome, europe)"], "valid": [("big", "italy", "europe", False)]}
    )
    assert known(problem) == {("in(italy, europe)", True), ("in(rome, italy)", True), ("big(rome, italy)", False)}
    assert problem.knowledge.base.names(problem.test.atoms) == ["in(rome, europe)"]
    assert problem.valid.truth.tolist() == [False]
    assert len(problem.knowledge.theory.rules) == 1


def test_files_are_facts_queries_and_theory_too(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text("italy\tin\teurope\nrome\tin\titaly\n")
    (tmp_path / "rules.r2n").write_text(THEORY)
    path = tmp_path / "facts.tsv"
    for facts in (path, str(path), [path], {"in": pa.table({"x": ["italy", "rome"], "y": ["europe", "italy"]})}):
        problem = Problem.from_facts(facts, tmp_path / "rules.r2n", {"in": [("rome", "europe")]})
        assert len(known(problem)) == 2
        assert len(problem.test) == len(problem.knowledge.theory.rules) == 1
    with pytest.raises(TheoryError, match="there is no theory file nothing"):
        Problem.from_facts(path, "nothing.r2n")


def test_tuples_are_triples_where_first_items_are_constants_elsewhere() -> None:
    assert known(Problem.from_facts(TRIPLES)) == known(Problem.from_facts(TUPLES))
    assert known(Problem.from_facts([("in", "a", "b"), ("on", "c", "d")])) == {("in(a, b)", True), ("on(c, d)", True)}


def test_numbers_are_constants_and_unary_predicates_need_no_tuples() -> None:
    problem = Problem.from_facts({"smokes": ["ann", "bob"], "age": [("ann", 40), ("bob", 41.0), ("cy", np.int64(3))]})
    names = {name for name, _ in known(problem)}
    assert names == {"smokes(ann)", "smokes(bob)", "age(ann, 40)", "age(bob, 41)", "age(cy, 3)"}


def test_nothing_is_a_problem_too() -> None:
    assert len(Problem.from_facts([]).atoms) == len(Problem.from_facts({}, "").atoms) == 0


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (["in(a, b)", "in(a, ?)"], r"facts, row 2:4: a fact names all its constants"),
        ([("in", "a", "b"), ("in", None, "b")], r"facts, row 2: item 2 is empty"),
        ([("in", "a", ["b"])], r"facts, row 1: item 3 is \['b'\], which is no constant"),
        ([("in",)], "facts, row 1: a fact needs its predicate and its constants"),
        ({"in": [("a", "b"), ("a", float("nan"))]}, r"facts\['in'\], row 2: item 2 is empty"),
        ({"in": pd.DataFrame({"a": ["x", None], "b": "y"})}, r"facts\['in'\], row 2: column 1 \(a\) is empty"),
        ([("a", "in", "b", 1), ("b", "in", "c", 2)], "facts, row 2: the label 2 is neither 1 .true. nor 0"),
        ([("in", "a", "b"), ("in", "a")], "facts, row 2: in takes 2 constants, but here it has 1"),
        ([("in", "a", "b"), ("in", "a", "b", False)], r"facts, row 2: in\(a, b\) is stated both true and false"),
        (["in(a, b)", Path("x")], "facts: item 2 is a table or a path, unlike item 1"),
        (7, "facts: facts are tables, tuples, atoms as text or paths, not a int"),
        ("missing.tsv", "missing.tsv: there is no such file"),
    ],
)
def test_errors_name_the_argument_and_the_row(facts: object, message: str) -> None:
    with pytest.raises((DataError, ConfigError), match=message):
        Problem.from_facts(facts)


def test_errors_of_queries_name_their_split() -> None:
    theory = "domain c = {a, b}\npredicate in(c, c)"
    with pytest.raises(DataError, match=r"queries\['valid'\], row 1:14: constant 'z' is outside domain 'c'"):
        Problem.from_facts(["in(a, b)"], theory, {"valid": [("in", "a", "z")]})
    with pytest.raises(DataError, match="queries, row 1: 1 atom of split 'test' stands in split 'train' too"):
        Problem.from_facts(["in(a, b)"], theory, "in(a, b)")


THEORY_OF_TOWNS = "domain town\npredicate near(town, town)\npredicate far(town, town) closed"


def test_a_split_is_random_stratified_and_leaves_closed_predicates_alone() -> None:
    facts = [("near", f"t{i}", f"t{i + 1}", i % 4 != 0) for i in range(400)] + [
        ("far", f"t{i}", "t0") for i in range(50)
    ]
    problem, again, other = (
        Problem.from_facts(facts, THEORY_OF_TOWNS, split=(0.8, 0.1, 0.1), seed=s) for s in (0, 0, 1)
    )
    assert (len(problem.train), len(problem.valid), len(problem.test)) == (370, 40, 40)
    assert [int(part.truth.sum()) for part in (problem.valid, problem.test)] == [30, 30]
    assert len(problem.atoms) == 450
    assert all(name.startswith("near") for name in problem.knowledge.base.names(problem.test.atoms))
    assert again.test.atoms.tolist() == problem.test.atoms.tolist() != other.test.atoms.tolist()
    assert dict(problem.report.facts) == {"train": 370, "valid": 40, "test": 40}
    assert len(Problem.from_facts(facts, THEORY_OF_TOWNS, split=(0.5, 0.5)).test) == 200


@pytest.mark.parametrize("shares", [(0.8, 0.1), (1.2, -0.2), (1.0,)])
def test_shares_that_do_not_add_up(shares: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="the shares of train, valid and test add up to 1"):
        Problem.from_facts(TUPLES, split=shares)
    with pytest.raises(ConfigError, match="queries and split are both given"):
        Problem.from_facts(TUPLES, queries=ATOMS, split=shares)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"id": ["ann", "bob"], "age": [40, 41], "height": [1.7, 1.8], "about": ["tall", "small"]}),
        pl.DataFrame({"id": ["ann", "bob"], "values": [[40.0, 1.7], [41.0, 1.8]], "about": ["tall", "small"]}),
        pd.DataFrame({"age": [40, 41], "height": [1.7, 1.8], "about": ["tall", "small"]}, index=["ann", "bob"]),
    ],
    ids=["columns", "lists", "index"],
)
def test_frames_of_features(frame: object) -> None:
    problem = Problem.from_facts([("knows", "ann", "bob")], features={"constant": frame})
    features = problem.knowledge.features["constant"]
    assert features.vectors is not None
    assert features.vectors.tolist() == np.array([[40, 1.7], [41, 1.8]], np.float32).tolist()
    assert features.texts == ("tall", "small")


def test_a_frame_of_several_texts_asks_which() -> None:
    frame = pd.DataFrame({"id": ["ann", "bob"], "a": ["x", "y"], "b": ["x", "y"]})
    with pytest.raises(ConfigError, match="features of domain 'constant': which of the columns a, b are the features"):
        Problem.from_facts([("knows", "ann", "bob")], features={"constant": frame})
    problem = Problem.from_facts([("knows", "ann", "bob")], features={"constant": FeatureTable(frame, text="b")})
    assert problem.knowledge.features["constant"].texts == ("x", "y")


def test_the_example_runs() -> None:
    assert doctest.testmod(r2n.data.problem).failed == 0


SHOP = """
domain user, product, category
predicate bought(user, product)
predicate inCategory(product, category) closed
"""
BOUGHT = pd.DataFrame({"buyer": ["ann", "bob", "ann"], "item": ["pen", "ink", "ink"]})


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        ("product", {"bought": (1,), "inCategory": (0,)}),
        (["item"], {"bought": (1,)}),
        (["buyer", "product"], {"bought": (0, 1), "inCategory": (0,)}),
        ([-1], {"bought": (1,), "inCategory": (1,)}),
        ((), {}),
    ],
)
def test_what_is_asked_is_named_by_columns_domains_and_positions(
    ask: Any, expected: dict[str, tuple[int, ...]]
) -> None:
    known = {"bought": BOUGHT, "inCategory": [("pen", "office")]}
    problem = Problem.from_facts(known, SHOP, {"bought": [("bob", "pen")]}, ask=ask)
    assert problem.ask == expected
    assert problem_from_bytes(problem_bytes(problem), Path("x")).ask == expected
    assert (problem_fingerprints(problem) == problem_fingerprints(replace(problem, ask={}))) == (not expected)


def test_an_argument_that_does_not_exist_is_not_asked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no predicate has an argument 'itme'"):
        Problem.from_facts({"bought": BOUGHT}, SHOP, ask=["itme"])
    (tmp_path / "bought.csv").write_text(BOUGHT.to_csv(index=False))
    (tmp_path / "theory.r2n").write_text(SHOP)
    table = '{file = "bought.csv", predicate = "bought", header = true}'
    text = f'theory = "theory.r2n"\n[facts]\ntrain = {table}\n[queries]\nask = '
    (tmp_path / "problem.toml").write_text(text + '"item"')
    assert load_problem(tmp_path).ask == {"bought": (1,)}
    (tmp_path / "problem.toml").write_text(text + "[2]")
    with pytest.raises(ConfigError, match="no predicate has an argument '2'"):
        load_problem(tmp_path)


def test_the_asked_position_is_corrupted() -> None:
    problem = Problem.from_facts({"bought": BOUGHT}, SHOP, {"bought": [("bob", "pen")]}, ask=["buyer"])
    assert choose_options(problem, problem.options)[0].training.corrupted_positions == (-2,)
