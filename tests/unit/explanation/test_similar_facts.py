"""Known atoms that are read alike: by cosines in plain loops, and only as many as can be compared."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import r2n
from r2n.data.knowledge_base import KnowledgeBase
from r2n.data.problem import Problem
from r2n.explanation import features as module
from r2n.explanation.features import similar_facts
from r2n.model.model import Model
from r2n.model.run import Run
from r2n.network.graph_sources import Ungrounded
from r2n.network.r2n import R2N
from r2n.scoring import AtomLogits
from tests.featured_problem import table

THEORY = r2n.parse_theory("""
domain person
predicate likes(person, person)
predicate likesNot(person, person)
predicate knows(person, person) closed
""")
PEOPLE = tuple(f"x{i}" for i in range(7))
PAIRS = [(a, b) for i, a in enumerate(PEOPLE) for j, b in enumerate(PEOPLE) if (i + 2 * j) % 3 == 0]


def knowledge() -> KnowledgeBase:
    columns = {"a": [a for a, _ in PAIRS], "b": [b for _, b in PAIRS], "t": [str(i % 2) for i in range(len(PAIRS))]}
    facts = [
        r2n.Table(pa.table(columns), predicate="likes", columns=("a", "b"), label="t"),
        table("likesNot", ("x1", "x2")),
        table("knows", ("x1", "x2"), ("x2", "x3")),
    ]
    return Problem.build("likes", THEORY, facts, domains={"person": PEOPLE}).knowledge


KNOWN = knowledge()


def member(seed: int, **changes: Any) -> AtomLogits:
    torch.manual_seed(seed)
    return AtomLogits(R2N.build(KNOWN, dim=4, **{"layers": 0, **changes}), Ungrounded(), KNOWN.evidence)


def code_of(predicate: str, *constants: str) -> int:
    ids = np.array([[KNOWN.language.constant_id(name) for name in constants]])
    return int(KNOWN.base.encode(KNOWN.language.predicate(predicate), ids)[0])


def by_loops(members: list[AtomLogits], code: int) -> list[tuple[str, bool, float]]:
    """All known atoms of the predicate by their mean cosines, the most similar first."""
    base, found = KNOWN.base, []
    predicate = int(base.decode(np.array([code]))[0][0])
    for atom, truth in zip(KNOWN.evidence.atoms.tolist(), KNOWN.evidence.truth.tolist(), strict=True):
        if int(base.decode(np.array([atom]))[0][0]) != predicate or atom == code:
            continue
        total = 0.0
        for one in members:
            graph = Ungrounded().around(np.array([atom, code]))
            rows = graph.rows(torch.tensor([atom, code])).tolist()
            embedding = one.model.embed(one.model.collate(graph)).tolist()
            a, b = embedding[rows[0]], embedding[rows[1]]
            total += sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)
        found.append((base.names(np.array([atom]))[0], truth, total / len(members)))
    return sorted(found, key=lambda row: -row[2])


@pytest.mark.parametrize("asked", [("x0", "x0"), ("x1", "x0")])
@pytest.mark.parametrize("seeds", [(0,), (1, 2)])
def test_the_most_similar_are_those_that_loops_find(asked: tuple[str, str], seeds: tuple[int, ...]) -> None:
    """Whether the atom itself is known or not."""
    members, code = [member(seed) for seed in seeds], code_of("likes", *asked)
    found, expected = similar_facts(members, KNOWN, code, most=4), by_loops(members, code)[:4]
    assert [(one.atom, one.known) for one in found] == [(name, truth) for name, truth, _ in expected]
    assert [one.similarity for one in found] == pytest.approx([cosine for _, _, cosine in expected], abs=1e-6)
    assert len({one.known for one in similar_facts(members, KNOWN, code, most=99)}) == 2


def test_an_atom_is_not_similar_to_itself_nor_to_others_of_another_predicate_or_a_closed_world() -> None:
    expected = {("likesNot", "x1", "x2"): [], ("likesNot", "x2", "x2"): ["likesNot(x1, x2)"], ("knows", "x1", "x1"): []}
    for asked, atoms in expected.items():
        assert [one.atom for one in similar_facts([member(0)], KNOWN, code_of(*asked), most=5)] == atoms


def test_of_too_many_those_with_a_shared_constant_come_first_then_an_even_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, everything = code_of("likes", "x0", "x1"), len(PAIRS)
    shared = {f"likes({a}, {b})" for a, b in PAIRS if {a, b} & {"x0", "x1"} and (a, b) != ("x0", "x1")}
    for most in (len(shared) + 4, len(shared) - 3):
        monkeypatch.setattr(module, "FACTS_COMPARED", most)
        found = {one.atom for one in similar_facts([member(0)], KNOWN, code, most=everything)}
        assert len(found) == most
        assert found >= shared if most > len(shared) else found < shared


def test_a_constant_without_a_vector_has_nothing_similar_and_is_similar_to_nothing(toy_run: Run) -> None:
    model = Model.from_run(toy_run).with_facts(["near(aa, n1)", "liesIn(aa, south)"], domains={"town": ["bb"]})
    base, known = model.network.base, model.changed.problem.knowledge

    def found(town: str) -> set[str]:
        ids = np.array([[base.language.constant_id(town), base.language.constant_id("north")]])
        code = int(base.encode(base.language.predicate("liesIn"), ids)[0])
        return {one.atom for one in similar_facts([model.scores], known, code, most=99)}

    assert found("bb") == found("aa") == set()
    assert "liesIn(s1, south)" in found("n5")
    assert "liesIn(aa, south)" not in found("n5")


def test_neither_zeros_nor_what_is_known_of_an_atom_make_it_similar() -> None:
    """Evidence that is added to Emb^0 is left out of the comparison."""
    made, code = member(0, evidence_input="add", layers=1), code_of("likes", "x0", "x1")
    before = similar_facts([made], KNOWN, code, most=3)
    assert made.model.known is not None
    made.model.known.data *= 100
    assert similar_facts([made], KNOWN, code, most=3) == before
    made.model.constants.vectors.data.zero_()
    assert {one.similarity for one in similar_facts([made], KNOWN, code, most=3)} == {0.0}
