"""How much may be held at a time."""

import pytest

from r2n.errors import MemoryLimitError
from r2n.grounding.store import UNLIMITED, Ceiling, shown_size


def test_as_many_pieces_as_fit_one_at_least() -> None:
    assert Ceiling(1000).fitting(10, at_most=500) == 100
    assert Ceiling(1000).fitting(10, at_most=50) == 50
    assert Ceiling(1000).fitting(5000, at_most=50) == 1
    assert UNLIMITED.fitting(5000, at_most=50) == 50


def test_what_does_not_fit_is_refused_with_the_ways_out() -> None:
    Ceiling(1000).check(1000, what="a thing", ways_out=["take less"])
    UNLIMITED.check(10**18, what="a thing", ways_out=["take less"])
    message = (
        "a thing needs about 2 GB, more than the 1 GB that it may take\n  take less; or allow more with --memory SIZE"
    )
    with pytest.raises(MemoryLimitError, match=message):
        Ceiling(10**9).check(2 * 10**9, what="a thing", ways_out=["take less"])


def test_sizes_in_words() -> None:
    assert [shown_size(n) for n in (512_000_000, 18_449_000_000, 95 * 10**9)] == ["512 MB", "18.4 GB", "95 GB"]
