"""The Herbrand base by hand: codes, names, limits."""

import numpy as np
import pytest

from r2n.data.herbrand import HerbrandBase
from r2n.errors import DataError
from r2n.logic.language import Domain, Language, Predicate

PERSON = Domain("person", listed=("a", "b", "c"))
CITY = Domain("city", listed=("b", "rome"))
LIVES = Predicate("livesIn", (PERSON, CITY))
SMOKES = Predicate("smokes", (PERSON,))
LANGUAGE = Language.build([PERSON, CITY], [SMOKES, LIVES])


def ids(*names: str) -> list[int]:
    return [LANGUAGE.constant_id(name) for name in names]


def test_predicates_in_order_and_the_last_position_fastest() -> None:
    base = HerbrandBase(LANGUAGE)
    assert base.size == len(base) == 3 + 3 * 2
    assert base.encode(SMOKES, np.array([ids("a"), ids("c")])).tolist() == [0, 2]
    pairs = np.array([ids("a", "b"), ids("a", "rome"), ids("b", "b"), ids("c", "rome")])
    assert base.encode(LIVES, pairs).tolist() == [3, 4, 5, 8]


def test_what_is_outside_its_domain_has_no_code() -> None:
    base = HerbrandBase(LANGUAGE)
    assert base.encode(LIVES, np.array([ids("rome", "b"), ids("a", "c"), [-1, 1]])).tolist() == [-1, -1, -1]


def test_decode_pads_with_minus_one() -> None:
    which, arguments = HerbrandBase(LANGUAGE).decode(np.array([2, 8, 3]))
    assert which.tolist() == [0, 1, 1]
    assert arguments.tolist() == [[*ids("c"), -1], ids("c", "rome"), ids("a", "b")]


def test_names_are_text() -> None:
    assert HerbrandBase(LANGUAGE).names(np.array([0, 4])) == ["smokes(a)", "livesIn(a, rome)"]
    assert HerbrandBase(LANGUAGE).parts(np.array([0, 4])) == [("smokes", ("a",)), ("livesIn", ("a", "rome"))]


def test_no_atoms_is_legal() -> None:
    empty = HerbrandBase(Language.build([], []))
    assert empty.size == 0
    assert empty.names(np.zeros(0, dtype=np.int64)) == []
    nobody = HerbrandBase(Language.build([Domain("d")], [Predicate("p", (Domain("d"),))]))
    assert nobody.size == 0


def wide(positions: int, constants: int) -> Language:
    domain = Domain("d", listed=tuple(f"c{i:03}" for i in range(constants)))
    return Language.build([domain], [Predicate("p", (domain,) * positions)])


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
