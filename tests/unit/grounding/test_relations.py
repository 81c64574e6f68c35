"""Relations: indexes, statistics, and what is in them."""

import numpy as np

import r2n
from r2n.grounding.joins import Kind, Relation
from r2n.logic.language import Domain
from tests.unit.grounding.small_knowledge import knowledge

D = Domain("d")
RELATION = Relation(
    "r", (D, D), np.array([2, 4, 6]), np.array([[0, 2], [1, 0], [1, 2]]), 4, lambda columns: columns[0] * 4 + columns[1]
)


def test_an_index_orders_rows_by_constant() -> None:
    for position, order, starts in ((0, [0, 1, 2], [0, 1, 3, 3, 3]), (1, [1, 0, 2], [0, 1, 1, 3, 3])):
        found = RELATION.index(position)
        assert [part.tolist() for part in found] == [order, starts]
        assert RELATION.index(position) is found, "made once"


def test_sizes_and_distinct_constants() -> None:
    assert (len(RELATION), RELATION.distinct(0), RELATION.distinct(1)) == (3, 2, 2)
    assert RELATION.table.columns == ("a0", "a1")


def test_what_it_holds_is_found_by_its_code() -> None:
    assert RELATION.holds([np.array([0, 1, 3]), np.array([2, 1, 3])]).tolist() == [True, False, False]


def test_no_constant_outside_a_position_is_held() -> None:
    kb = knowledge("", "takes(ann,tea)")
    takes = r2n.Store(kb).relation(Kind.FACT, "takes")
    ann, tea = (np.array([kb.language.constant_id(name)]) for name in ("ann", "tea"))
    assert takes.holds([ann, tea]).tolist() == [True]
    assert takes.holds([tea, ann]).tolist() == [False]


def test_without_some_atoms_it_is_as_if_made_of_the_others() -> None:
    kept = RELATION.without(np.array([3, 4]))
    made = Relation("r", (D, D), np.array([2, 6]), np.array([[0, 2], [1, 2]]), 4, RELATION.encode)
    assert (kept.codes.tolist(), kept.rows.tolist()) == (made.codes.tolist(), made.rows.tolist())
    for position in (0, 1):
        assert [part.tolist() for part in kept.index(position)] == [part.tolist() for part in made.index(position)]
        assert kept.distinct(position) == made.distinct(position)
    again = kept.without(np.array([2]))
    assert [part.tolist() for part in again.index(1)] == [[0], [0, 0, 0, 1, 1]]
    assert len(again.without(np.array([6]))) == 0


def test_without_what_it_does_not_hold_it_is_itself() -> None:
    assert RELATION.without(np.array([3, 5])) is RELATION
