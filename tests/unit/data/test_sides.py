"""Rows of atoms that differ at one position, against the base's own numbering of atoms by name."""

import numpy as np
import pytest

from r2n.data.herbrand import HerbrandBase, RowIndex, Side, ranges
from r2n.logic.language import Domain, Language, Predicate

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
SIDES = [(i, position) for i in range(3) for position in range(len(BASE.shapes[i]))]


@pytest.mark.parametrize(("predicate", "position"), SIDES)
def test_each_atom_is_in_the_row_of_its_other_constants_at_the_place_of_its_own(predicate: int, position: int) -> None:
    side, language = Side.of(BASE, predicate, position), BASE.language
    members = language.members(language.predicates[predicate].domains[position]).tolist()
    codes = np.arange(*side.bounds)
    rows, places = side.located(codes)
    _, arguments = BASE.decode(codes)
    assert [members[place] for place in places] == arguments[:, position].tolist()
    for row, constants in zip(rows.tolist(), arguments.tolist(), strict=True):
        first = [*constants[:position], members[0], *constants[position + 1 :]]
        arity = len(BASE.shapes[predicate])
        assert BASE.encode(language.predicates[predicate], np.array([first[:arity]])).tolist() == [row]
    distinct = np.unique(rows)
    given = side.given(distinct)
    given[:, position] = -7
    assert side.rows(given).tolist() == distinct.tolist()


@pytest.mark.parametrize(("predicate", "position"), SIDES)
@pytest.mark.parametrize("at_once", [1, 4, 100])
def test_written_out_row_after_row_all_atoms_are_there(predicate: int, position: int, at_once: int) -> None:
    side = Side.of(BASE, predicate, position)
    rows = np.unique(side.located(np.arange(*side.bounds))[0])[::-1]
    parts = list(side.written_out(rows, at_once))
    for start, codes in parts:
        assert len(codes) <= max(at_once, side.candidates)
        found, places = side.located(codes)
        assert found.tolist() == np.repeat(rows[start:], side.candidates)[: len(codes)].tolist()
        assert places.tolist() == list(range(side.candidates)) * (len(codes) // side.candidates)
    everything = np.concatenate([codes for _, codes in parts])
    assert np.sort(everything).tolist() == list(range(*side.bounds))


def test_a_domain_without_constants_has_no_rows() -> None:
    side = Side.of(BASE, 3, 0)
    assert list(side.written_out(np.zeros(0, np.int64), 10)) == []
    assert side.given(np.zeros(0, np.int64)).shape == (0, 2)
    assert side.bounds[0] == side.bounds[1]


@pytest.mark.parametrize("seed", range(5))
def test_what_stands_in_rows_is_found_in_the_order_asked(seed: int) -> None:
    dice = np.random.default_rng(seed)
    things = np.sort(dice.integers(0, 8, 3 * seed))
    asked = dice.integers(-1, 10, 6)
    owner, entries = RowIndex.of(things).entries(asked)
    expected = [(i, j) for i, row in enumerate(asked) for j, thing in enumerate(things) if row == thing]
    assert list(zip(owner.tolist(), entries.tolist(), strict=True)) == expected


def test_ranges_one_after_the_other() -> None:
    owner, numbers = ranges(np.array([5, 0, 7]), np.array([2, 0, 1]))
    assert owner.tolist() == [0, 0, 2]
    assert numbers.tolist() == [5, 6, 7]
    assert [len(part) for part in ranges(np.zeros(0, np.int64), np.zeros(0, np.int64))] == [0, 0]
