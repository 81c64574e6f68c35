"""The claim of the example, and that its problem goes through the command line."""

from pathlib import Path
from time import process_time

import pytest

from examples.comparison import MOST_SECONDS, make_problem
from examples.link_prediction.__main__ import EXAMPLE, comparison
from examples.link_prediction.make_data import SHARES, STEPS, make_data


def test_the_data_are_the_same_for_the_same_seed_and_no_link_is_in_two_splits(tmp_path: Path) -> None:
    for name, seed in (("first", 0), ("again", 0), ("other", 1)):
        make_data(tmp_path / name, seed)
    texts = {name: [(tmp_path / name / f"{s}.tsv").read_text() for s in SHARES] for name in ("first", "again", "other")}
    assert texts["first"] == texts["again"] != texts["other"]
    problem = make_problem(EXAMPLE, make_data, 0)  # refuses splits that overlap
    assert not problem.knowledge.theory.rules
    assert {predicate.name for predicate in problem.knowledge.language.predicates} == set(STEPS)


@pytest.mark.slow
def test_complex_is_better_than_distmult_and_than_counting() -> None:
    start = process_time()
    found = comparison()
    assert process_time() - start < MOST_SECONDS
    assert len(found.figures["ComplEx"]) == 5
    assert found.holds(), "\n".join(found.lines())
