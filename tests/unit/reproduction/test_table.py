"""The rows of the paper's tables are checked data."""

import pytest

from r2n.datasets.benchmarks import DATASETS, load
from r2n.errors import ConfigError
from r2n.reproduction import PAPER_COUNTRIES
from r2n.reproduction.reproduce import ALONE, COLUMNS, table_rows


@pytest.mark.parametrize("table", ["countries", "ablation", "kgc"])
def test_every_row_is_valid(table: str) -> None:
    rows = table_rows(table)
    assert [row.order for row in rows] == sorted({row.order for row in rows})
    for row in rows:
        assert set(row.datasets) <= set(DATASETS)
        assert set(row.paper) <= set(row.datasets)
        figures = [row.paper_figure(dataset, metric) for dataset in row.paper for metric in COLUMNS]
        assert all(figure is None or 0 <= figure <= 1 for figure in figures)
        assert row.minus is None or row.minus in [*ALONE, *(other.row for other in rows)]
        row.options(load(row.datasets[0]).options)


def test_the_rows_that_the_tables_need() -> None:
    names = [row.row for row in table_rows("countries")]
    fuzzy = ["ComplEx + product", "ComplEx + Goedel", "ComplEx + Lukasiewicz"]
    assert names == ["proofs counted", "DistMult", "ComplEx", "input layer of R2NS", *fuzzy, "FGNN", "R2NS"]
    assert [row.model["layers"] for row in table_rows("ablation")] == [0, 1, 2, 3]
    last, full = table_rows("ablation")[-1], table_rows("countries")[-1]
    assert dict(full.paper) == PAPER_COUNTRIES
    options = load("countries-s3").options
    assert last.options(options) == full.options(options), "three blocks and R2NS are the same network"


def test_rows_change_only_what_they_name() -> None:
    options = load("countries-s3").options
    row = next(row for row in table_rows("countries") if row.row == "FGNN")
    changed = row.options(options)
    assert changed.grounding == options.grounding
    assert changed.training == options.training.model_copy(update=dict(row.training))
    assert (changed.model.input, changed.model.reasoner) == ("complex", "fgnn")
    fuzzy = [row for row in table_rows("countries") if row.row.startswith("ComplEx + ")]
    assert [row.options(options).training.regularisation for row in fuzzy] == ["product", "goedel", "lukasiewicz"]
    assert all(row.rules and row.options(options).model.reasoner == "none" for row in fuzzy)


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(ConfigError, match="no table 'countrys'\n  did you mean 'countries'"):
        table_rows("countrys")
