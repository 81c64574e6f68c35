"""RDF (N-Triples, Turtle, RDF/XML) -> columns of text, through rdflib (`pip install r2n[rdf]`)."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from r2n.errors import ConfigError, Location
from r2n.knowledge.reading.records import Records
from r2n.knowledge.reading.text_files import read_text, unreadable


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
