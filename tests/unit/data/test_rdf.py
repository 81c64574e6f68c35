"""RDF files as triples."""

import sys
from pathlib import Path

import pytest

from r2n.data.tables import Table, read_facts
from r2n.errors import ConfigError, DataError
from tests.oracles.fact_tables import listed

N_TRIPLES = """<http://x.org/italy> <http://x.org/locatedIn> <http://x.org/europe> .
<http://x.org/italy> <http://x.org/name> "Italia è bella"@it .
"""
TURTLE = """@prefix x: <http://x.org/> .
x:italy x:locatedIn x:europe ; x:name "Italia è bella"@it .
"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x.org/">
  <rdf:Description rdf:about="http://x.org/italy">
    <x:locatedIn rdf:resource="http://x.org/europe"/>
    <x:name xml:lang="it">Italia è bella</x:name>
  </rdf:Description>
</rdf:RDF>
"""
FACTS = {
    ("http://x.org/locatedIn", ("http://x.org/italy", "http://x.org/europe"), True),
    ("http://x.org/name", ("http://x.org/italy", "Italia è bella"), True),
}


@pytest.mark.parametrize(("suffix", "text"), [(".nt", N_TRIPLES), (".ttl", TURTLE), (".rdf", XML), (".owl", XML)])
def test_every_language(suffix: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts{suffix}"
    path.write_text(text, encoding="utf-8")
    read = read_facts(Table(path))
    assert set(listed(read)) == FACTS
    assert len(listed(read)) == 2
    where = next(facts for facts in read.facts if facts.predicate.endswith("locatedIn")).location(0)
    assert where.source == str(path)
    assert where.excerpt == "http://x.org/italy http://x.org/locatedIn http://x.org/europe"


def test_the_same_order_each_time_and_blank_nodes_of_their_own(tmp_path: Path) -> None:
    text = "".join(f"<u:a{i}> <u:p> _:n{i % 3} .\n" for i in range(30))
    first, second = tmp_path / "a.nt", tmp_path / "b.nt"
    first.write_text(text)
    second.write_text(text)
    assert listed(read_facts(Table(first))) == [("u:p", (f"u:a{i}", f"_:a.nt:{i % 3}"), True) for i in range(30)]
    constants = {fact[1][1] for fact in listed(read_facts(Table(first)))}
    assert constants == {"_:a.nt:0", "_:a.nt:1", "_:a.nt:2"}
    assert not constants & {fact[1][1] for fact in listed(read_facts(Table(second)))}


def test_an_empty_literal_is_an_empty_cell(tmp_path: Path) -> None:
    path = tmp_path / "facts.nt"
    path.write_text('<u:a> <u:p> "" .\n')
    with pytest.raises(DataError) as caught:
        read_facts(Table(path))
    assert str(caught.value).startswith(f"{path}: column 3 (tail) is empty\n  | u:a u:p \n")


def test_no_triples(tmp_path: Path) -> None:
    path = tmp_path / "facts.nt"
    path.write_text("# nothing\n")
    assert read_facts(Table(path)).facts == ()


@pytest.mark.parametrize(("suffix", "kind"), [(".nt", "nt"), (".ttl", "turtle"), (".rdf", "xml")])
def test_broken_file(suffix: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts{suffix}"
    path.write_text("<u:a> <u:p\n")
    with pytest.raises(DataError) as caught:
        read_facts(Table(path), on_error="skip")
    assert str(caught.value).startswith(f"{path}: this cannot be read as RDF ({kind}) (")


def test_a_predicate_cannot_be_given(tmp_path: Path) -> None:
    path = tmp_path / "facts.nt"
    path.write_text(N_TRIPLES, encoding="utf-8")
    with pytest.raises(ConfigError, match="these facts name their predicates themselves"):
        read_facts(Table(path, "p"))


def test_without_rdflib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "facts.nt"
    path.write_text(N_TRIPLES, encoding="utf-8")
    monkeypatch.setitem(sys.modules, "rdflib", None)
    with pytest.raises(ConfigError) as caught:
        read_facts(Table(path))
    assert str(caught.value) == f"{path}: reading ntriples needs rdflib\n  pip install r2n[rdf]"
