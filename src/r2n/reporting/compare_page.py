"""Runs -> pages: runs side by side -> the page."""

from r2n.evaluation.by_query import PairedTest
from r2n.reporting.charts import Axis
from r2n.reporting.compare import Comparison
from r2n.reporting.pages import page

LEVEL = 0.05
EDGE = 4.0  # percent of the drawing, left free on either side


def compare_page(comparison: Comparison) -> str:
    """The page that puts runs side by side."""
    return page(
        "compare.html.j2",
        title=" and ".join(comparison.runs),
        comparison=comparison,
        level=LEVEL,
        drawn=interval_places,
    )


def interval_places(test: PairedTest, all_tests: tuple[PairedTest, ...]) -> tuple[float, float, float, float]:
    """Where zero, the interval's ends and the difference stand, from 0 to 100, on the axis of a metric's tests."""
    own = [part for part in all_tests if part.metric == test.metric]
    reach = max((abs(v) for part in own for v in (part.low, part.high, part.difference) if v == v), default=0.0) or 1.0
    axis = Axis(-reach, reach, EDGE, 100 - EDGE)
    low, high = (v if v == v else test.difference for v in (test.low, test.high))
    return axis(0.0), axis(low), axis(high), axis(test.difference)
