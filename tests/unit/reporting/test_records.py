"""Records of a page are values: they can be made by hand, and what is not known is left out."""

from dataclasses import FrozenInstanceError

import pytest

from r2n.reporting.records import RuleLine, RuleTable, RunReport, ToldAnswer, TrainedOn
from tests.report_samples import report


def test_parts_are_optional() -> None:
    empty = RunReport(TrainedOn("towns", ()))
    assert (empty.results, empty.rules, empty.answers, empty.phases, empty.options) == ((), None, (), (), ())
    assert RuleLine("r", "p(x)").effect is None
    assert RuleTable(()).whole is None
    assert ToldAnswer("p(a)", 0.5, None).explanation is None


def test_records_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        report().trained_on.problem = "other"  # pyright: ignore[reportAttributeAccessIssue]
