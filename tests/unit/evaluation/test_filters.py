"""Which true atoms a ranking leaves out, and what its report says of it."""

import numpy as np

from r2n.datasets.benchmarks import load
from r2n.evaluation.ranking import Filter


def test_a_filter_has_the_true_atoms_of_its_splits() -> None:
    problem = load("countries-s1")
    splits = {"train": problem.train, "valid": problem.valid, "test": problem.test}
    for chosen in (None, ("train",), ("train", "valid")):
        found = Filter.of(problem, chosen)
        names = chosen or tuple(splits)
        assert set(found.facts.tolist()) == {c for n in names for c in splits[n].atoms[splits[n].truth].tolist()}
        assert (np.diff(found.facts) > 0).all()
        assert found.splits == names


def test_a_report_names_the_splits() -> None:
    problem = load("countries-s1")
    assert Filter.of(problem).words("test") == "other true atoms of train, valid and test are no candidates"
    assert (
        Filter.of(problem, ("train", "valid")).words("valid") == "other true atoms of train and valid are no candidates"
    )
    assert Filter.by(None).words("queries") == "other true atoms of queries are no candidates"
    assert Filter.by(problem.train).words("queries") == "other true atoms of evidence and queries are no candidates"
    assert len(Filter.by(None).facts) == 0
