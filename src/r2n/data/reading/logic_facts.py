"""Facts of logic programs and of RDF."""

import re
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from r2n.data.reading.records import Fault, Records, Statements, line_location, read_lines, read_text, unreadable
from r2n.errors import ConfigError, DataError, Location

LOOKS_LIKE_ATOM = re.compile(r"""\s*(?:!|\\\+|not\s)?\s*[^\s(),'"]+\s*\([^()]+\)\s*(?:[.,%#/]|$)""")
QUOTED = r"""'(?:[^'\\]|\\.|'')+'|"(?:[^"\\]|\\.|"")+\""""
NAME = rf"""(?:/?[\pL\pN_][^\s(),'"]*|{QUOTED})"""
TERM = rf"""(?:{QUOTED}|[^\s(),'"](?:[^(),]*[^\s(),])?)"""
SIGN = r"(?:!|\\\+|not\s)"
FACT = rf"(?:{SIGN}\s*)?{NAME}\s*\(\s*{TERM}\s*(?:,\s*{TERM}\s*)*\)"
COMMENT = r"(?:%|#|//).*"
LINE = rf"^\s*(?:{FACT}\s*\.\s*)*(?:{FACT}\s*\.?\s*)?(?:{COMMENT})?$"
# No group is captured anywhere: that costs ten times more than finding whole matches.
READ = """
    WITH parts AS (
        SELECT row, unnest(regexp_extract_all(line, $fact_or_comment)) AS part
        FROM lines
    )
    SELECT row,
           NOT regexp_matches(part, $sign) AS truth,
           regexp_extract_all(regexp_replace(part, $sign, ''), $term) AS words
    FROM parts WHERE NOT regexp_matches(part, $comment)
"""
PATTERNS = {
    "fact_or_comment": f"{COMMENT}|{FACT}",
    "comment": f"^{COMMENT}",
    "sign": f"^{SIGN}",
    "term": TERM,
}


def read_prolog_facts(path: Path) -> tuple[tuple[Statements, ...], tuple[Fault, ...]]:
    """The facts of a file, those of each arity together, and the lines that are none."""
    lines = read_lines(path)
    with closing(duckdb.connect()) as connection:
        connection.register("texts", pa.table({"line": lines.texts}))
        query = "SELECT regexp_matches(line, $line) FROM texts"
        is_good = connection.sql(query, params={"line": LINE}).to_arrow_table().column(0).to_numpy()
        good, wrong = lines.rows[is_good], lines.rows[~is_good]
        connection.register("lines", pa.table({"row": good, "line": lines.texts.filter(pa.array(is_good))}))
        facts = connection.sql(READ, params=PATTERNS).to_arrow_table()
    faults = lines.faults + ((Fault(wrong, partial(_no_fact, path)),) if len(wrong) else ())
    return _by_arity(facts), faults


def looks_like_atoms(line: str) -> bool:
    """Whether a line of a file begins with a fact."""
    return LOOKS_LIKE_ATOM.match(line) is not None


def _by_arity(facts: pa.Table) -> tuple[Statements, ...]:
    """Statements of one arity each; the words of a fact are its predicate and its constants."""
    rows, truth = facts["row"].to_numpy(), facts["truth"].to_numpy()
    lists = facts["words"].combine_chunks()
    words, lengths = _unquoted(lists.flatten()), lists.value_lengths().to_numpy()
    starts = np.cumsum(lengths) - lengths
    statements = []
    for length in np.unique(lengths):
        chosen = np.flatnonzero(lengths == length)
        name, *terms = (words.take(pa.array(starts[chosen] + place)) for place in range(length))
        statements.append(Statements(name, tuple(terms), truth[chosen], rows[chosen]))
    return tuple(statements)


def _unquoted(texts: pa.Array) -> pa.Array:
    """The texts as they are, but quoted ones without their quotes and escapes: `'it''s'`, `"a \\" b"`."""
    plain = texts
    for mark in ("'", '"'):
        is_quoted = pc.starts_with(texts, mark)
        if pc.any(is_quoted).as_py():
            inside = pc.utf8_slice_codeunits(texts, 1, -1)
            unescaped = pc.replace_substring_regex(inside, rf"""\\(['"\\])|{mark}({mark})""", r"\1\2")
            plain = pc.if_else(is_quoted, unescaped, plain)
    return plain


def _no_fact(path: Path, row: int) -> DataError:
    where = line_location(path, row)
    if where.excerpt is not None and (":-" in where.excerpt or "->" in where.excerpt):
        return DataError("this is a rule, not a fact", where=where, hint="rules belong into the theory")
    hint = "write `p(a, b).`, and constants with blanks, commas or parentheses in quotes: `p('a, b', c).`"
    return DataError("this is not a fact", where=where, hint=hint)


def read_rdf(path: Path, language: str) -> Records:
    """The triples of an RDF file in one of rdflib's languages (nt, turtle, xml), in the file's order.

    Names are full IRIs, literals are their text, blank nodes are `_:FILE:0`, `_:FILE:1`, ...
    """
    text = read_text(path).decode("utf-8")
    try:
        triples = _parse(text, language, path.resolve().as_uri())
    except ImportError:
        where = Location(str(path))
        raise ConfigError("reading RDF needs rdflib", where=where, hint="pip install r2n[rdf]") from None
    except Exception as error:  # rdflib's parsers raise what they like
        raise unreadable(path, f"RDF ({language})", error) from None
    as_text = partial(_text, {}, path.name)
    columns = tuple(pa.array(map(as_text, terms), pa.string()) for terms in zip(*triples, strict=True))
    columns = columns or (pa.array([], pa.string()),) * 3

    def locate(row: int, column: int | None = None) -> Location:
        return Location(str(path), excerpt=" ".join(terms[row].as_py() for terms in columns))

    return Records(str(path), ("head", "relation", "tail"), columns, np.arange(len(columns[0])), locate)


def file_location(path: Path, row: int) -> Location:
    """The file: rdflib does not say on which line a triple stands."""
    return Location(str(path))


def _parse(text: str, language: str, base: str) -> dict[Any, None]:
    """The distinct triples, in the order of the file."""
    from rdflib import Graph

    class InOrder(Graph):
        """A graph that remembers when each triple came: rdflib's own order changes from run to run."""

        def add(self, triple: Any) -> Graph:
            found.setdefault(triple)
            return super().add(triple)

    found: dict[Any, None] = {}
    InOrder().parse(data=text, format=language, publicID=base)
    return found


def _text(blank: dict[Any, str], file: str, term: Any) -> str:
    """A term as text; a blank node is told apart from those of other files."""
    from rdflib import BNode

    return blank.setdefault(term, f"_:{file}:{len(blank)}") if isinstance(term, BNode) else str(term)
