"""What the paper printed."""

from r2n.reproduction.paper import PAPER_COUNTRIES
from r2n.reproduction.reproduce import table_rows


def test_the_figures_agree_with_the_table_of_countries() -> None:
    assert dict(table_rows("countries")[-1].paper) == PAPER_COUNTRIES
