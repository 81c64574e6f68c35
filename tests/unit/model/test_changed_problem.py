"""A problem whose facts change: what is there afterwards, and what is refused."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from r2n.data.knowledge_base import Evidence
from r2n.data.problem import Problem
from r2n.data.tables import Table
from r2n.errors import DataError, R2NError
from r2n.model.changes import ChangedProblem

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
    return ChangedProblem.of(toy)


def test_facts_come_as_text_files_tables_and_evidence(start: ChangedProblem, tmp_path: Path) -> None:
    new = tmp_path / "more.tsv"
    new.write_text("n2\tliesIn\tnorth\n")
    row = start.base.names(np.arange(start.base.size)).index("liesIn(s2, south)")
    given = [
        "near(n0, s0)",
        "!liesIn(n2, south)",
        str(new),
        Table(pa.table({"h": ["n9"], "r": ["near"], "t": ["n1"]})),
        Evidence(np.array([row]), np.array([True])),
    ]
    changed = start.with_facts(given, {})
    more = {"near(n0, s0)", "!liesIn(n2, south)", "liesIn(n2, north)", "near(n9, n1)", "liesIn(s2, south)"}
    assert facts(changed) == facts(start) | more
    assert changed.new_constants == ("n9",)
    one = start.with_facts(new, {})
    assert facts(one) - facts(start) == {"liesIn(n2, north)"}
    assert facts(start.with_facts(pa.table({"h": ["n9"], "r": ["near"], "t": ["n1"]}), {})) - facts(start)
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


def test_what_is_told_twice_is_taken_back_twice(start: ChangedProblem) -> None:
    twice = start.with_facts(["near(n1, n0)", "near(n1, n0)"], {})
    assert facts(twice) == facts(start)
    assert facts(twice.without_facts("near(n1, n0)")) == facts(start)
    assert "near(n1, n0)" not in facts(twice.without_facts("near(n1, n0)").without_facts("near(n1, n0)"))


def test_the_part_of_a_union_is_what_other_facts_or_the_caller_say() -> None:
    from r2n.logic.parser import parse_theory

    table = Table(pa.table({"h": ["a", "a", "b"], "r": ["by", "in", "in"], "t": ["b", "r", "r"]}))
    problem = Problem.build(
        "unions", parse_theory(UNIONS), [table], domains={"country": ["a", "b"], "region": ["r", "s"]}
    )
    start = ChangedProblem.of(problem)
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
    assert declared.without_facts("in(new, s)", {"country": ["new"]}).problem.knowledge.language is start.trained


def test_a_declared_constant_stays_until_it_is_taken_back(start: ChangedProblem) -> None:
    town = {"town": ["n9"]}
    declared = start.with_facts([], town)
    assert declared.new_constants == ("n9",)
    assert facts(declared) == facts(start)
    named = declared.with_facts("near(n9, n8)", {})
    assert named.without_facts("near(n9, n8)").new_constants == ("n9",), "n8 goes with its fact, n9 was declared"
    assert named.without_facts([], town).new_constants == ("n8", "n9"), "a fact still names it"
    assert declared.without_facts([], town).problem.knowledge.language is start.trained
    twice = declared.with_facts([], town).without_facts([], town)
    assert twice.new_constants == ("n9",), "what is told twice is taken back twice"
    with pytest.raises(DataError, match="'n9' was not declared to be in 'town', so that cannot be taken back"):
        start.without_facts([], town)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("!near(n1, n0)", r"near\(n1, n0\) is known to be true, and now told to be false"),
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
    with pytest.raises(DataError, match="is known to be true, and now told to be false"):
        start.with_facts(["liesIn(s2, south)", Evidence(np.array([row]), np.array([False]))], {})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "liesIn(n2, north)",
            r'"liesIn\(n2, north\)": liesIn\(n2, north\) is not among the facts, so it cannot be taken back',
        ),
        ("!near(n1, n0)", r"near\(n1, n0\) is known to be true: as false it cannot be taken back"),
        ("near(n1, q)", "constant 'q' is outside domain 'town'"),
    ],
)
def test_what_cannot_be_taken_back(start: ChangedProblem, given: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        start.without_facts(given)
