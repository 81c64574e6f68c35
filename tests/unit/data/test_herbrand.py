"""The Herbrand base: codes, sets of codes, closed worlds, query patterns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.herbrand import HerbrandBase, QueryPattern, RowIndex, are_among, closed_atoms, ranges, union
from r2n.errors import DataError
from r2n.logic.language import Domain, Language, Predicate
from tests.unit.grounding.small_knowledge import knowledge

PERSON = Domain("person", listed=("a", "b", "c"))
CITY = Domain("city", listed=("b", "rome"))
LIVES = Predicate("livesIn", (PERSON, CITY))
SMOKES = Predicate("smokes", (PERSON,))
LANGUAGE = Language.build([PERSON, CITY], [SMOKES, LIVES], {})


def test_no_atoms_is_legal() -> None:
    empty = HerbrandBase(Language.build([], [], {}))
    assert empty.size == 0
    assert empty.names(np.zeros(0, dtype=np.int64)) == []
    nobody = HerbrandBase(Language.build([Domain("d")], [Predicate("p", (Domain("d"),))], {}))
    assert nobody.size == 0


def wide(positions: int, constants: int) -> Language:
    domain = Domain("d", listed=tuple(f"c{i:03}" for i in range(constants)))
    return Language.build([domain], [Predicate("p", (domain,) * positions)], {})


def test_the_largest_base_that_fits_64_bits_fits() -> None:
    language = wide(positions=62, constants=2)
    base = HerbrandBase(language)
    assert base.size == 2**62
    last = base.encode(language.predicates[0], np.ones((1, 62), dtype=np.int64))
    assert last.tolist() == [2**62 - 1]
    assert base.decode(last)[1].tolist() == [[1] * 62]


@pytest.mark.parametrize(("positions", "constants"), [(64, 2), (7, 600)])
def test_a_base_beyond_64_bits_is_refused_with_a_way_out(positions: int, constants: int) -> None:
    with pytest.raises(DataError, match="does not fit 64 bits") as caught:
        HerbrandBase(wide(positions, constants))
    assert "p" in str(caught.value)
    assert caught.value.hint


ONE, TWO, NONE = Domain("one"), Domain("two"), Domain("none")
BASE = HerbrandBase(
    Language.build(
        [ONE, TWO, NONE],
        [
            Predicate("u", (TWO,)),
            Predicate("p", (ONE, TWO, ONE)),
            Predicate("q", (TWO, ONE)),
            Predicate("e", (ONE, NONE)),
        ],
        {"one": ["b", "d"], "two": ["a", "b", "c"], "none": []},
    )
)
PATTERNS = [(i, position) for i in range(3) for position in range(len(BASE.shapes[i]))]


@pytest.mark.parametrize(("predicate", "position"), PATTERNS)
def test_each_atom_is_in_the_row_of_its_other_constants_at_the_place_of_its_own(predicate: int, position: int) -> None:
    pattern, language = QueryPattern.from_base(BASE, predicate, position), BASE.language
    members = language.members(language.predicates[predicate].domains[position]).tolist()
    codes = np.arange(*pattern.bounds)
    rows, index = pattern.located(codes)
    _, arguments = BASE.decode(codes)
    assert [members[i] for i in index] == arguments[:, position].tolist()
    for row, constants in zip(rows.tolist(), arguments.tolist(), strict=True):
        first = [*constants[:position], members[0], *constants[position + 1 :]]
        arity = len(BASE.shapes[predicate])
        assert BASE.encode(language.predicates[predicate], np.array([first[:arity]])).tolist() == [row]
    distinct = np.unique(rows)
    given = pattern.given(distinct)
    given[:, position] = -7
    assert pattern.rows(given).tolist() == distinct.tolist()


@pytest.mark.parametrize(("predicate", "position"), PATTERNS)
@pytest.mark.parametrize("at_once", [1, 4, 100])
def test_written_out_row_after_row_all_atoms_are_there(predicate: int, position: int, at_once: int) -> None:
    pattern = QueryPattern.from_base(BASE, predicate, position)
    rows = np.unique(pattern.located(np.arange(*pattern.bounds))[0])[::-1]
    parts = list(pattern.all_codes(rows, at_once))
    for start, codes in parts:
        assert len(codes) <= max(at_once, pattern.candidates)
        found, index = pattern.located(codes)
        assert found.tolist() == np.repeat(rows[start:], pattern.candidates)[: len(codes)].tolist()
        assert index.tolist() == list(range(pattern.candidates)) * (len(codes) // pattern.candidates)
    everything = np.concatenate([codes for _, codes in parts])
    assert np.sort(everything).tolist() == list(range(*pattern.bounds))


def test_a_domain_without_constants_has_no_rows() -> None:
    pattern = QueryPattern.from_base(BASE, 3, 0)
    assert list(pattern.all_codes(np.zeros(0, np.int64), 10)) == []
    assert pattern.given(np.zeros(0, np.int64)).shape == (0, 2)
    assert pattern.bounds[0] == pattern.bounds[1]


@pytest.mark.parametrize("seed", range(5))
def test_what_stands_in_rows_is_found_in_the_order_asked(seed: int) -> None:
    dice = np.random.default_rng(seed)
    things = np.sort(dice.integers(0, 8, 3 * seed))
    asked = dice.integers(-1, 10, 6)
    owner, entries = RowIndex.from_rows(things).entries(asked)
    expected = [(i, j) for i, row in enumerate(asked) for j, thing in enumerate(things) if row == thing]
    assert list(zip(owner.tolist(), entries.tolist(), strict=True)) == expected


def test_ranges_one_after_the_other() -> None:
    owner, numbers = ranges(np.array([5, 0, 7]), np.array([2, 0, 1]))
    assert owner.tolist() == [0, 0, 2]
    assert numbers.tolist() == [5, 6, 7]
    assert [len(part) for part in ranges(np.zeros(0, np.int64), np.zeros(0, np.int64))] == [0, 0]


codes = st.lists(st.integers(0, 20) | st.integers(0, 2**63 - 1), max_size=20)


def array(given: list[int]) -> np.ndarray:
    return np.array(given, np.int64)


@given(codes, codes)
def test_they_are_sets(one: list[int], other: list[int]) -> None:
    assert union(array(one), array(other)).tolist() == sorted({*one, *other})
    assert are_among(array(one), array(sorted(other))).tolist() == [code in other for code in one]
    assert (union().dtype, len(union())) == (np.int64, 0)


THEORY = """
domain town = {a, b}
domain valley = {v}
domain place = town | valley
predicate near(town, town) closed
predicate liesIn(place, place)
"""


def test_closed_parts_are_closed_each_beside_the_others_and_beside_closed_predicates() -> None:
    parts = "liesIn(place, place) closed(town, valley) closed(valley, town)"
    base = knowledge("", "", theory=THEORY.replace("liesIn(place, place)", parts)).base
    codes = np.arange(base.size)
    closed = {name for name, is_closed in zip(base.names(codes), closed_atoms(base, codes), strict=True) if is_closed}
    between = {f"liesIn({x}, {y})" for town in "ab" for x, y in ((town, "v"), ("v", town))}
    assert closed == between | {f"near({x}, {y})" for x in "ab" for y in "ab"}
    assert closed_atoms(base, np.zeros(0, np.int64)).shape == (0,)
