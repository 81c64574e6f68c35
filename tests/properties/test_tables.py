"""Tables of facts: whatever text the constants hold, each format gives back what was written."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from r2n.data.tables import Table, read_facts
from tests.examples import at_most
from tests.oracles.fact_tables import listed, plain_csv, plain_json, plain_sqlite, plain_triples, plain_tsv
from tests.oracles.fact_writers import WRITERS, write_tsv


def text(excluded: str) -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=["Cs"], exclude_characters=excluded), min_size=1, max_size=6)


NO_LINE_ENDS = text("\t\n\r")
ANY_TEXT = text("")
ALPHABET = {
    ".tsv": NO_LINE_ENDS,
    ".csv": st.one_of(ANY_TEXT, st.text('",\r\n\t a', min_size=1, max_size=5)),
    ".pl": st.one_of(text("\n\r"), st.text("'\"\\(),.%!# a", min_size=1, max_size=5)),
    ".parquet": ANY_TEXT,
    ".json": ANY_TEXT,
    ".jsonl": ANY_TEXT,
    ".db": ANY_TEXT,
}


@pytest.mark.parametrize("suffix", list(ALPHABET))
@at_most(25, "each writes and reads files in every format")
@given(data=st.data())
def test_any_text_comes_back_as_it_was(suffix: str, data: st.DataObject) -> None:
    constant = ALPHABET[suffix]
    rows = data.draw(st.lists(st.tuples(constant, st.one_of(st.just("p"), constant), constant), min_size=1, max_size=6))
    assume(not rows[0][0].startswith("\ufeff"))  # at the start of a file it is a byte order mark
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"facts{suffix}"
        WRITERS[suffix](path, rows)
        read = listed(read_facts(Table(path, header=False)))
        assert read == plain_triples(rows)
        again = {
            ".tsv": lambda: plain_tsv(path),
            ".csv": lambda: plain_csv(path),
            ".json": lambda: [list(row.values()) for row in plain_json(path)],
            ".jsonl": lambda: [list(row.values()) for row in plain_json(path)],
            ".db": lambda: plain_sqlite(path, "facts"),
        }.get(suffix)
        assert again is None or read == plain_triples(again())


LABELS = st.sampled_from(("1", "0", "True", "FALSE"))
LABELLED = st.lists(st.tuples(NO_LINE_ENDS, st.sampled_from("pqr"), NO_LINE_ENDS, LABELS), min_size=1)
OF_ANY_ARITY = st.integers(1, 4).flatmap(lambda n: st.lists(st.tuples(*[NO_LINE_ENDS] * n), min_size=1, max_size=5))


@at_most(90, "each writes and reads files in every format")
@given(rows=LABELLED, of_one=OF_ANY_ARITY)
def test_labels_any_order_of_facts_and_tables_of_one_predicate(
    rows: list[tuple[str, ...]], of_one: list[tuple[str, ...]]
) -> None:
    assume(not any(part[0][0].startswith("\ufeff") for part in (rows, of_one)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "facts.tsv"
        write_tsv(path, rows)
        read = read_facts(Table(path, header=False))
        assert listed(read) == plain_triples(plain_tsv(path))
        assert [facts.predicate for facts in read.facts] == list(dict.fromkeys(row[1] for row in rows))
        write_tsv(path, of_one)
        assert listed(read_facts(Table(path, "p", header=False))) == [("p", row, True) for row in of_one]
