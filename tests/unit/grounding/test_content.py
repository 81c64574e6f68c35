"""What a grounding depends on, as a digest."""

import numpy as np
import pytest

from r2n.grounding.cache import content_of, xxhash64
from r2n.grounding.full import FullGrounder
from r2n.grounding.known_body import KnownBodyGrounder
from tests.unit.grounding.small_knowledge import THEORY, knowledge

SPARK = (-5252525462095825812, -7001672635703045582, 3858142552250413010, -8319354198352958120)
FACTS = "smokes(ann) knows(ann,bob)"


def digest(facts: str = FACTS, false: str = "", rules: str = "", theory: str = THEORY) -> str:
    known = knowledge(rules, facts, false, theory)
    return content_of(known).digest(known.theory, KnownBodyGrounder())


def test_the_hash_is_that_of_spark() -> None:
    """Values that Spark 4 gives for SELECT xxhash64(0L), xxhash64(1L), xxhash64(-1L), xxhash64(3L, 5L)."""
    hashes = xxhash64([np.array([0, 1, -1])]).view(np.int64).tolist()
    assert hashes == [SPARK[0], SPARK[1], SPARK[2]]
    assert xxhash64([np.array([3]), np.array([5])]).view(np.int64).tolist() == [SPARK[3]]


def test_the_same_knowledge_has_the_same_digest() -> None:
    assert digest() == digest()


@pytest.mark.parametrize(
    "other",
    [
        digest("smokes(bob) knows(ann,bob)"),
        digest("smokes(ann)"),
        digest("smokes(ann)", "knows(ann,bob)"),
        digest(rules="rule r: smokes(x) -> smokes(x)\n"),
        digest(theory=THEORY.replace("tea", "wine")),
    ],
)
def test_whatever_differs_changes_it(other: str) -> None:
    assert other != digest()


def test_so_does_another_strategy() -> None:
    known = knowledge("", FACTS)
    content = content_of(known)
    assert content.digest(known.theory, KnownBodyGrounder()) != content.digest(known.theory, FullGrounder())
