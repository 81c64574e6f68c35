"""The codes of ground atoms are their places in a plain enumeration."""

from itertools import product

import numpy as np
from hypothesis import given

from r2n.data.herbrand import HerbrandBase, QueryPattern
from r2n.data.knowledge_base import constant_ids
from r2n.logic.language import Language
from tests.oracles.grounding import GroundAtom, World
from tests.strategies import ground_atoms, knowledge_of, named_atoms, worlds
from tests.theory_strategies import languages


def enumeration(language: Language) -> list[tuple[int, tuple[int, ...]]]:
    """Every ground atom as the index of its predicate and the ids of its constants."""
    return [
        (p, ids)
        for p, predicate in enumerate(language.predicates)
        for ids in product(*(language.members(domain).tolist() for domain in predicate.domains))
    ]


@given(languages())
def test_constants_are_numbered_by_name(language: Language) -> None:
    assert list(language.constants) == sorted(set(language.constants))
    for i, name in enumerate(language.constants):
        assert language.constant_id(name) == i
    for domain in language.domains:
        members = language.members(domain).tolist()
        assert members == sorted(set(members))
        if domain.parts:
            assert set(members) == {i for part in domain.parts for i in language.members(part).tolist()}


@given(languages())
def test_encode_is_a_bijection_onto_the_base_in_order_and_decode_undoes_it(language: Language) -> None:
    base, atoms = HerbrandBase(language), enumeration(language)
    assert base.size == len(atoms)
    rows = [(language.predicates[p], np.array([ids], dtype=np.int64).reshape(1, -1)) for p, ids in atoms]
    assert [int(base.encode(*row)[0]) for row in rows] == list(range(base.size))
    which, arguments = base.decode(np.arange(base.size, dtype=np.int64))
    widest = max(predicate.arity for predicate in language.predicates)
    assert arguments.shape == (base.size, widest)
    assert which.tolist() == [p for p, _ in atoms]
    assert arguments.tolist() == [[*ids, *[-1] * (widest - len(ids))] for _, ids in atoms]


@given(languages())
def test_arguments_outside_their_domains_have_no_code(language: Language) -> None:
    base = HerbrandBase(language)
    everyone = range(len(language.constants))
    for predicate in language.predicates:
        tuples = list(product(everyone, repeat=predicate.arity))
        codes = base.encode(predicate, np.array(tuples, dtype=np.int64).reshape(-1, predicate.arity)).tolist()
        members = [set(language.members(domain).tolist()) for domain in predicate.domains]
        for ids, code in zip(tuples, codes, strict=True):
            inside = all(i in m for i, m in zip(ids, members, strict=True))
            assert (code >= 0) == inside
            assert inside or code == -1


@given(worlds())
def test_names_and_facts_come_back(world: World) -> None:
    knowledge = knowledge_of(world)
    base = ground_atoms(world.theory, world.members)
    assert named_atoms(knowledge, np.arange(len(base), dtype=np.int64)) == base
    for known, read in ((world.facts, knowledge.facts), (world.false_facts, knowledge.false_facts)):
        found: list[GroundAtom] = []
        for predicate in world.theory.predicates:
            rows = read(predicate).tolist()
            assert rows == sorted(rows)
            found += [(predicate.name, *(knowledge.language.constants[i] for i in row)) for row in rows]
        assert sorted(found) == sorted(known)


@given(languages())
def test_all_rows_of_a_pattern_are_those_of_its_atoms(language: Language) -> None:
    base = HerbrandBase(language)
    for index, shape in enumerate(base.shapes):
        for position in range(len(shape)):
            pattern = QueryPattern.from_base(base, index, position)
            expected = np.unique(pattern.located(np.arange(*pattern.bounds))[0])
            np.testing.assert_array_equal(pattern.all_rows, expected)
    assert constant_ids(language, language).tolist() == list(range(len(language.constants)))
