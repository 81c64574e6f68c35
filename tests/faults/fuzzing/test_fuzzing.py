"""Every reader against inputs that are nearly right: the kept corpus, hard inputs, and changes of these."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from tests.examples import first_of
from tests.faults.fuzzing.all_targets import all_targets
from tests.faults.fuzzing.edits import inputs
from tests.faults.fuzzing.target import MOST_SECONDS, OPENED

TARGETS = all_targets()
IN_A_MOMENT = ("theory", "rules", "atoms", "problem-file", "tsv", "csv")
SECONDS = 4 * MOST_SECONDS  # shapes and types are checked at every call of r2n here, which takes its time
NAMES = (*IN_A_MOMENT, *(name for name in TARGETS if name not in IN_A_MOMENT))


@pytest.fixture(scope="module", autouse=True)
def closed_behind() -> Iterator[None]:
    """What was opened for readers, a folder and a server, is closed."""
    yield
    OPENED.close()


@pytest.mark.parametrize("name", first_of(NAMES, len(IN_A_MOMENT)))
def test_the_kept_corpus_is_read_or_refused(name: str) -> None:
    target = TARGETS[name]
    seeds = target.ready()
    assert seeds
    for content in (b"", *seeds, *target.tokens):
        target.try_on(content, SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_hard_inputs_are_read_or_refused_in_time(name: str) -> None:
    target = TARGETS[name]
    assert target.ready()
    for content in target.hard:
        target.try_on(content, SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_nearly_right_is_read_or_refused(name: str) -> None:
    target = TARGETS[name]

    @settings(max_examples=target.examples)
    @given(content=inputs(target.ready(), target.tokens))
    def each(content: bytes) -> None:
        target.try_on(content, SECONDS)

    each()
