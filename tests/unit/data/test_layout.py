"""Which column is what: triples, one predicate, labels, headers, names."""

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from r2n.data.tables import Table, is_header, read_facts
from r2n.errors import DataError
from r2n.logic.theory import Theory
from tests.oracles.fact_tables import listed


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("head relation tail", True),
        ("Subject Predicate OBJECT truth", True),
        ("relation head tail", True),
        ("h r t", True),
        ("s p o label", True),
        ("s r t", False),  # letters of two families: may be a fact
        ("h relation t", False),
        ("head tail label", True),  # names, if not those of triples: an error when it is read
        ("head head relation tail", True),
        ("italy locatedIn europe", False),
    ],
)
def test_header_of_triples(cells: str, expected: bool) -> None:
    assert is_header([pa.array([cell]) for cell in cells.split()], None, Theory()) is expected


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("head tail", True),
        ("s o", True),
        ("subject object label", True),
        ("s", False),
        ("h r t", False),
        ("s t", False),
    ],
)
def test_header_of_one_predicate(cells: str, expected: bool) -> None:
    assert is_header([pa.array([cell]) for cell in cells.split()], "p", Theory()) is expected


def table(names: str, *rows: str, **options: object) -> Table:
    cells = [row.split() for row in rows]
    columns = {name: [row[i] for row in cells] for i, name in enumerate(names.split())}
    return Table(pa.table(columns), **options)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("order", list(itertools.permutations(["head", "relation", "tail", "label"])))
def test_usual_names_tell_in_any_order(order: tuple[str, ...]) -> None:
    fact = {"head": "a", "relation": "p", "tail": "b", "label": "0"}
    assert listed(read_facts(table(" ".join(order), " ".join(fact[name] for name in order)))) == [
        ("p", ("a", "b"), False)
    ]


def test_unusual_names_go_by_order() -> None:
    assert listed(read_facts(table("x y z", "a p b"))) == [("p", ("a", "b"), True)]
    assert listed(read_facts(table("x y z w", "a p b 0"))) == [("p", ("a", "b"), False)]
    assert listed(read_facts(table("truth x y z", "0 a p b"))) == [("p", ("a", "b"), False)]


def test_picked_columns_of_triples(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("id,to,by,from,ok\n1,b,p,a,0\n", encoding="utf-8")
    read = read_facts(Table(path, columns=("from", "by", "to"), label="ok"))
    assert listed(read) == [("p", ("a", "b"), False)]


def test_a_column_called_label_is_one_even_if_others_are_picked() -> None:
    read = read_facts(table("x y label", "a b false", predicate="p", columns=("y", "x")))
    assert listed(read) == [("p", ("b", "a"), False)]


def test_any_arity() -> None:
    assert listed(read_facts(table("x", "a", predicate="p"))) == [("p", ("a",), True)]
    assert listed(read_facts(table("a b c d", "1 2 3 4", predicate="p"))) == [("p", ("1", "2", "3", "4"), True)]


@pytest.mark.parametrize("label", ["1", "1.0", "true", "TRUE"])
def test_labels(label: str) -> None:
    assert listed(read_facts(table("x label", f"a {label}", predicate="p"))) == [("p", ("a",), True)]


def message(source: Table) -> str:
    with pytest.raises(DataError) as caught:
        read_facts(source)
    return str(caught.value)


def test_missing_column_names_the_nearest() -> None:
    assert message(table("from to", "a b", predicate="p", columns=("form", "to"))) == (
        "pyarrow.Table: no column is called 'form'\n  did you mean 'from'? the columns are: from, to"
    )
    assert message(table("from to", "a b", predicate="p", label="zzzzz")) == (
        "pyarrow.Table: no column is called 'zzzzz'\n  the columns are: from, to"
    )


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\ta\n1\t2\n", encoding="utf-8")
    assert "two columns are called 'a'" in message(Table(path, "p", columns=("a",)))


def test_no_column_left() -> None:
    assert message(table("label", "1", predicate="p")).startswith(
        "pyarrow.Table: there is no column left for the arguments"
    )


def test_wrong_number_of_columns() -> None:
    assert message(table("a b", "1 2")).startswith("pyarrow.Table: 2 columns, where triples have 3, or 4 with a label")
    assert message(table("head relation tail weight source", "a p b 1 x")).startswith("pyarrow.Table: 5 columns, where")
    assert message(table("a b c", "1 2 3", columns=("a", "b"))).startswith(
        "pyarrow.Table: 2 columns are picked, where triples need 3\n  pick head, relation and tail, in that order"
    )


def test_a_fourth_column_that_is_no_label_is_not_passed_over() -> None:
    assert message(table("head relation tail weight", "a p b 0.7")) == (
        "pyarrow.Table, row 1: the label '0.7' is neither 1 (true) nor 0 (false)\n"
        "  column 4 is read as the label: write 1 or 0, or pick other columns with `columns`"
    )


def test_header_alone_is_no_fact(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("head\trelation\ttail\n", encoding="utf-8")
    assert read_facts(Table(path)).facts == ()


def test_a_header_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("head\trelation\ttail\na\tp\tb\n", encoding="utf-8")
    (facts,) = read_facts(Table(path)).facts
    assert facts.location(0).line == 2
