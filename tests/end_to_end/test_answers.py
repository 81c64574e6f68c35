"""Answers: what is known or closed is said as it is, probabilities survive any logit, and questions cost little."""

import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import torch
from scipy.special import expit

import r2n
from r2n.data.problem import Problem
from r2n.model.model import Model
from r2n.model.questions import answer_table
from r2n.model.run import prepare_run
from r2n.model.training import train_in
from r2n.network.r2n import R2N
from r2n.options import Options

SMALL = ("model.dim=4", "model.layers=1", "training.epochs=2")


def table(predicate: str, *atoms: str) -> r2n.Table:
    """Facts as `a b`, or `!a b` where they are false."""
    rows = [atom.lstrip("!").split() for atom in atoms]
    columns: dict[str, list[Any]] = {"a": [a for a, _ in rows], "b": [b for _, b in rows]}
    return r2n.Table(pa.table(columns | {"label": [int(atom[0] != "!") for atom in atoms]}), predicate=predicate)


def run_in(folder: Path, problem: Problem) -> Path:
    for _ in train_in(folder, prepare_run(problem, problem.options, 0)):
        pass
    return folder


@pytest.mark.parametrize("kind", ["frame", "sqlite", "unnamed"])
def test_answers_have_the_names_of_the_table_that_the_facts_came_from(kind: str, tmp_path: Path) -> None:
    """And keep them in the run folder, which is queried without that table."""
    frame = pd.DataFrame({"user": ["ann", "bob", "cid"], "known": ["tea", "tea", "rum"]})
    path = tmp_path / f"likes.{kind}"
    if kind == "sqlite":
        with closing(sqlite3.connect(path)) as connection:
            frame.to_sql("likes", connection, index=False)
    elif kind == "unnamed":
        frame.to_csv(path := tmp_path / "likes.csv", index=False, header=False)
    theory = r2n.parse_theory("domain person, drink\npredicate likes(person, drink)\npredicate knows(person, person)")
    facts = [r2n.Table(frame if kind == "frame" else path, predicate="likes"), table("knows", "ann bob")]
    folder = run_in(tmp_path / "run", Problem.build("drinks", theory, facts, options=Options().changed(SMALL)))
    path.unlink(missing_ok=True)
    model = r2n.Model.load(folder)
    arguments = ["person", "drink"] if kind == "unnamed" else ["user", "known_1"]
    some, none = model.predict("likes(ann, ?)", everything=True), model.predict("likes(ann, tea)", unknown=True)
    assert list(some.to_pandas().columns[1:4]) == ["predicate", *arguments]
    assert list(none.to_arrow().schema) == list(some.to_arrow().schema)
    queries = r2n.Table(pa.table({"h": ["ann", "ann"], "r": ["likes", "knows"], "t": ["?", "?"]}))
    assert answer_table(model, queries).column_names[3:5] == ["argument_1", "argument_2"]


# what is known, and what is closed

TOWNS = r2n.parse_theory("""
domain town, valley
domain place = town | valley
predicate near(town, town) closed
predicate liesIn(place, place) closed(valley, valley)
rule neighbours: near(x, y) & liesIn(x, z: valley) -> liesIn(y, z)
""")
NEAR = ("a b", "b c", "c a", "d e")
LIES_IN = ("a north", "!b south", "d south", "south west")
KNOWN = {"near(a, b)": True, "liesIn(a, north)": True, "liesIn(b, south)": False, "liesIn(south, west)": True}
CLOSED = ("near(b, a)", "near(a, e)", "liesIn(north, west)", "liesIn(west, west)")
OPEN = ("liesIn(b, north)", "liesIn(e, south)", "liesIn(e, a)")


@pytest.fixture(scope="module", params=["full", "known-body", "backward"])
def towns(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that has hardly learned: what it says by itself is never 0 or 1."""
    problem = Problem.build(
        "towns",
        TOWNS,
        [table("near", *NEAR), table("liesIn", *LIES_IN)],
        {"test": [table("liesIn", "b north", "!e north")]},
        domains={"town": list("abcde"), "valley": ["north", "south", "west"]},
        options=Options().changed([*SMALL, "model.evidence_input=add", f"grounding.strategy={request.param}"]),
    )
    return run_in(tmp_path_factory.mktemp("towns") / "run", problem)


def test_known_closed_and_open_atoms_are_answered_as_such_with_what_the_network_says(towns: Path) -> None:
    model = r2n.Model.load(towns)
    for atom in (*KNOWN, *CLOSED, *OPEN):
        (found,) = model.predict(atom, everything=True)
        assert found.atom == atom
        assert 0 < found.network < 1
        assert found.network == pytest.approx(expit(found.logit), abs=1e-12)
        if atom in KNOWN:
            assert (found.known, found.probability) == (KNOWN[atom], float(KNOWN[atom]))
        elif atom in CLOSED:
            assert (found.closed, found.probability, found.known) in ((True, 0.0, None), (True, 0.0, False))
        else:
            assert (found.closed, found.probability, found.known) == (False, found.network, None)


def test_probabilities_of_any_logit_without_a_warning(towns: Path) -> None:
    """Warnings are errors in tests, so exp(1404) would be one."""
    for sign in (1, -1):
        trained = Model.load(towns)
        with torch.no_grad():
            assert trained.network.atom_output is not None
            *_, weight, bias = trained.network.atom_output.parameters()
            weight.zero_()
            bias.fill_(sign * 1404.0)
        found = {item.atom: item for item in trained.predict("liesIn(e, ?)", everything=True)}
        for atom in ("liesIn(e, north)", "liesIn(e, a)"):
            assert found[atom].logit == pytest.approx(sign * 1404.0)
            assert found[atom].probability == found[atom].network == (1.0 if sign > 0 else 0.0)


# questions over many constants

CONSTANTS = 3000
PATHS = r2n.parse_theory("""
domain thing
predicate q(thing, thing) closed
predicate p(thing, thing)
rule path: q(x, y) & q(y, z) -> p(x, z)
""")


def edges() -> list[tuple[str, str]]:
    dice = Random(0)
    return sorted({(f"c{dice.randrange(CONSTANTS):04}", f"c{dice.randrange(CONSTANTS):04}") for _ in range(4000)})


def reached() -> set[str]:
    """The atoms of p that have a path, by loops."""
    after: dict[str, list[str]] = {}
    for a, b in edges():
        after.setdefault(a, []).append(b)
    return {f"p({x}, {z})" for x, y in edges() for z in after.get(y, [])}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three thousand constants, nine million atoms of p, of which the rules reach a few thousand."""
    known = [atom.removeprefix("p(").removesuffix(")").replace(",", "") for atom in sorted(reached())[::50]]
    problem = Problem.build(
        "paths",
        PATHS,
        [table("q", *(f"{a} {b}" for a, b in edges())), table("p", *known)],
        domains={"thing": [f"c{i:04}" for i in range(CONSTANTS)]},
        options=Options().changed([*SMALL, "training.negatives=1", "grounding.strategy=known-body"]),
    )
    return run_in(tmp_path_factory.mktemp("paths") / "run", problem)


def test_a_question_over_nine_million_atoms_is_answered_with_what_the_rules_reach(many: Path) -> None:
    predictor = r2n.Model.load(many)
    tracemalloc.start()
    try:
        found = predictor.predict("p(?, ?)")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert {item.atom for item in found} == reached()
    assert len(found) == len(reached()) > 3000
    assert all(item.reached for item in found)
    assert peak < 60e6, "the codes of all atoms alone are 72 MB"


def test_one_forward_pass_serves_all_questions_about_the_same_facts(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes, forward = [], R2N.forward

    def counted(*given: Any, **options: Any) -> Any:
        passes.append(1)
        return forward(*given, **options)

    monkeypatch.setattr(R2N, "forward", counted)
    predictor = r2n.Model.load(many)
    first, *others = [atom[2:7] for atom in sorted(reached())[::500]]
    assert predictor.predict(f"p({first}, ?)")
    assert len(passes) == 1
    for other in others:
        assert predictor.predict(f"p({other}, ?)")
    predictor.predict("p(?, ?)")
    assert len(passes) == 1
    changed = predictor.with_facts(["q(c0000, c0001)", "q(c0001, c0002)"])
    assert "p(c0000, c0002)" in {item.atom for item in changed.predict("p(c0000, ?)")}
    changed.predict(f"p({first}, ?)")
    assert len(passes) == 2
