"""Any problem is the same after it was written and read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from hypothesis.strategies import DrawFn

from r2n.data.candidates import Candidates, CandidateSource
from r2n.data.features import Features
from r2n.data.knowledge_base import Evidence, KnowledgeBase, with_reciprocals
from r2n.data.problem import LoadReport, Problem
from r2n.errors import DataError, Location
from r2n.logic.theory import MOST_WEIGHT
from r2n.options import Options
from r2n.store.folder import problem_bytes, problem_fingerprints, problem_from_bytes
from tests.examples import at_most
from tests.same_records import assert_same
from tests.strategies import candidate_worlds, codes_of, knowledge_of

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=5)  # lone surrogates too, as in odd paths
COUNTS = st.lists(st.tuples(ANY_TEXT, st.integers(0, 2**70)), max_size=2).map(tuple)
PLACES = st.builds(Location, st.none() | ANY_TEXT, st.none() | st.integers(1), excerpt=st.none() | ANY_TEXT)
ERRORS = st.builds(DataError, ANY_TEXT, where=st.none() | PLACES, hint=st.none() | ANY_TEXT)
OPTIONS = st.sampled_from(["model.dim=7", "training.clip=2.5", "training.corrupted_positions=[0, -1]", "model.dim=8"])


@st.composite
def features(draw: DrawFn, knowledge: KnowledgeBase) -> dict[str, Features]:
    made: dict[str, Features] = {}
    for domain in knowledge.language.domains:
        if draw(st.booleans()):
            members = knowledge.language.members(domain)
            chosen = members[draw(arrays.arrays(bool, len(members)))]
            texts = draw(st.none() | st.tuples(*[ANY_TEXT] * len(chosen)))
            shape = (len(chosen), *draw(arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3)))
            vectors = draw(st.none() | arrays.arrays(arrays.floating_dtypes(endianness="="), shape))
            made[domain.name] = Features(domain, chosen, texts, vectors, draw(st.integers(0, 5)))
    return made


@st.composite
def evidences(draw: DrawFn, atoms: np.ndarray) -> Evidence:
    chosen = np.unique(atoms)[draw(arrays.arrays(bool, len(np.unique(atoms))))]
    return Evidence(chosen, draw(arrays.arrays(bool, len(chosen))))


@st.composite
def problems(draw: DrawFn) -> Problem:
    """Any theory, language, evidence, candidates, features, queries, report and options."""
    world, asked = draw(candidate_worlds())
    knowledge = knowledge_of(world)
    atoms = codes_of(knowledge.base, knowledge.language, asked)
    knowledge = replace(knowledge, features=draw(features(knowledge)))
    weights = st.none() | st.floats(-MOST_WEIGHT, MOST_WEIGHT)
    rules = tuple(replace(rule, weight=draw(weights)) for rule in knowledge.theory.rules)
    theory = replace(knowledge.theory, rules=rules, source=draw(st.none() | ANY_TEXT))
    words = st.builds(Candidates, shared_words=st.none() | st.integers(1, 5), rarer_than=st.floats(0.1, 1))
    sources = {
        name: CandidateSource(draw(words), codes[::2].copy(), draw(st.booleans()))
        for name, codes in knowledge.candidates.items()
    }
    return Problem(
        draw(ANY_TEXT),
        replace(knowledge, theory=theory),
        {name: draw(evidences(atoms)) for name in draw(st.lists(ANY_TEXT, max_size=3, unique=True))},
        LoadReport(draw(COUNTS), draw(COUNTS), tuple(draw(st.lists(ERRORS, max_size=2))), draw(COUNTS), draw(COUNTS)),
        Options().changed(draw(st.lists(OPTIONS, max_size=3))),
        draw(st.none() | ANY_TEXT),
        sources,
    )


QUARTER = at_most(50, "problems are slow to draw")


@QUARTER
@given(problems())
def test_a_problem_is_the_same_when_it_is_read_again(problem: Problem) -> None:
    content = problem_bytes(problem)
    found = problem_from_bytes(content, Path("problem.safetensors"))
    assert_same(found, problem)
    assert found.knowledge.theory == problem.knowledge.theory
    assert problem_fingerprints(found) == problem_fingerprints(problem)
    assert problem_bytes(found) == content
    assert_same(with_reciprocals(found.knowledge), with_reciprocals(problem.knowledge))
