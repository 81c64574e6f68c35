"""Tables of facts and of features, in every format."""

import gzip
import io
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from r2n.data.features import feature_rows, read_feature_records
from r2n.data.tables import Table, read_fact_chunks, read_facts
from tests.faults.fuzzing.target import Target, scratch, written

CELLS = (b"italy", b"locatedIn", b"europe", b"head", b"relation", b"tail", b"label", b"1", b"0", b"true", b"1.0")
LINES = (b"italy\tlocatedIn\teurope\t1\n", b"italy,locatedIn,europe\n", b"\r\n", b"\r", b"\t", b",", b'""', b'","')
JSON = (
    *(b'{"head": "a", "relation": "p", "tail": "b"}', b'"head": ', b"null", b"true", b"1e5", b"[1, 2]", b"{}", b"[]"),
    *(b"\\u0000", b"\\ud800", b"\\", b'"', b'"a/b~c": 1', b'"": 1', b"[{", b"}]", b"},\n{", b"NaN", b"-Infinity"),
)
PROLOG = (b"p(a, b).", b"p('a, b', c).", b"!", b"\\+ ", b"not ", b"% ", b"// ", b"#", b"''", b'\\"', b"/m/0x", b":-")
RDF = (
    *(b"<http://a/b>", b"_:b0", b'"text"@en', b'"1"^^<http://www.w3.org/2001/XMLSchema#integer>', b" .\n", b"@prefix "),
    *(b"a", b";", b",", b"[ ]", b"( )", b"@base ", b"\\u0041", b"\\U00110000", b'"""', b"<<", b"rdf:type", b"<", b">"),
)
XML = (
    *(b"<rdf:Description rdf:about='http://a/b'>", b"</rdf:Description>", b"<rdf:RDF>", b"rdf:resource='x'", b"&lt;"),
    *(b"<!ENTITY a 'b'>", b"&a;", b"<![CDATA[", b"]]>", b"<?xml?>", b"xmlns:p='http://p/'"),
    *(b"rdf:nodeID='n'", b"<p:q>"),
    *(b"rdf:parseType='Literal'", b"rdf:parseType='Collection'", b"rdf:datatype='x'"),
    *(b"xml:base='::'", b"xml:lang='-'"),
)
PACKED = (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\x03\x00")
THRIFT = (
    b"PAR1",
    *(b"\x15\x00", b"\x15\x02", b"\x19\x4c", b"\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x08", b"\x00", b"\x7f"),
)
SQL = (b"SQLite format 3\x00", b"CREATE TABLE", b"CREATE VIEW", b"sqlite_", b"\xff\xff\xff\xff", b"\x00\x00", b"\x0d")
LINES_AT_A_TIME = 300
ROWS = {"head": ["italy", "rome"], "relation": ["locatedIn", "locatedIn"], "tail": ["europe", "italy"]}
LAUGHS = b"".join(b"<!ENTITY a%d '%s'>" % (i + 1, b"&a%d;" % i * 10 if i else b"aaaaaaaaaa") for i in range(9))
HARD_TEXT = (
    *(b"\t" * 20_000, b"," * 20_000),
    *(piece * 100_000 for piece in (b'"', b'""', b'",', b"a\n", b"\r\n", b"a\tb\tc\n", b"a,b,c\n")),
    b"a" * 2_100_000 + b"\tp\tb\n",
    b"a\tp\tb\n" + b"a\tp\n" * 20_000,
    b"a,p,b\n" + b"a,p\n" * 20_000,
    b"a\tp\tb\tx\n" * 20_000,
    b"head\trelation\ttail\n",
)
HARD_JSON = (
    *(b"[" * 100_000, b'{"a":' * 100_000, b"[" + b"{}," * 50_000 + b"{}]", b'{"a": ' + b"9" * 100_000 + b"}"),
    b'[{"a": ' + b"9" * 5_000 + b"}, x]",
    b"{" + b",".join(b'"k%d": 1' % i for i in range(2_000)) + b"}",
    b"\n".join(b'{"k%d": 1}' % i for i in range(2_000)),
    b'{"a": "' + b"\\u0000" * 10_000 + b'"}',
)
HARD_PROLOG = (
    *(piece * 60_000 for piece in (b"p(a).", b"p(a", b"(", b"'", b"p('", b"p(a,", b"! ", b"not ", b" ", b"p(a). ")),
    b"p(" + b"a," * 3_000 + b"a).",
    b"".join(b"p(" + b"a," * i + b"a).\n" for i in range(100)),
)
HARD_RDF = (
    *(piece * 50_000 for piece in (b"<", b"[", b"(", b'"', b"@prefix ", b"_:a ", b";", b"#\n")),
    b"<a> <b> <c> ." * 5_000,
    b"<a> <b> " + b"(" * 5_000 + b")" * 5_000 + b" .",
    b"<a> <b> " + b"[ <p> " * 5_000 + b"]" * 5_000 + b" .",
    b'<http://a> <http://b> "' + b"x" * 200_000 + b'" .',
)
HARD_XML = (
    b"<?xml version='1.0'?><!DOCTYPE r [" + LAUGHS + b"]><rdf:RDF xmlns:rdf="
    b"'http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description rdf:about='&a9;'/></rdf:RDF>",
    b"<a>" * 10_000,
    b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:p='http://p/'>"
    + b"<rdf:Description><p:q>" * 3_000,
)


def facts(ending: str, content: bytes) -> None:
    """Every way to read a table: rows refused one by one, in parts, with a predicate; and where each fact stands."""
    path = written(f"table{ending}", content)
    rows = read_facts(Table(path), on_error="skip")
    for part in rows.facts[:3]:
        part.location(len(part) - 1)
    [str(error) for error in rows.rejected[:20]]
    for _ in read_fact_chunks(Table(path), LINES_AT_A_TIME):
        pass
    read_facts(Table(path, predicate="p"), on_error="skip")


def features(ending: str, content: bytes) -> None:
    records = read_feature_records(written(f"features{ending}", content))
    feature_rows(records, "name", "title", ("x", "y")).checked()


def _parquet() -> list[bytes]:
    lists = {"head": ["a"], "relation": ["p"], "tail": ["b"], "label": [1], "more": [[1.5, 2.0]]}
    made = [io.BytesIO() for _ in range(4)]
    pq.write_table(pa.table(ROWS), made[0])
    pq.write_table(pa.table(ROWS), made[1], compression="none", use_dictionary=False)
    pq.write_table(pa.table(lists), made[2], compression="gzip")
    pq.write_table(pa.table(ROWS), made[3], compression="zstd", data_page_version="2.0")
    return [file.getvalue() for file in made]


def _sqlite() -> list[bytes]:
    path = scratch() / "made.sqlite"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("CREATE TABLE facts (head TEXT, relation TEXT, tail BLOB)")
        connection.executemany("INSERT INTO facts VALUES (?, ?, ?)", zip(*ROWS.values(), strict=True))
        connection.commit()
    return [path.read_bytes()]


def _packed(pack: Callable[[bytes], bytes]) -> list[bytes]:
    return [pack(text) for text in (b"italy\tlocatedIn\teurope\n", b"a\tp\tb\t1\n" * 50, b"\n")]


def _zstd(content: bytes) -> bytes:
    return pa.Codec("zstd").compress(content, asbytes=True)


def _bomb(pack: Callable[[bytes], bytes]) -> tuple[bytes]:
    """More than a gigabyte of zeros, packed."""
    return (pack(bytes(2**24)) * 100,)


def _of(
    kind: str, ending: str, tokens: Sequence[bytes], hard: Sequence[bytes], inputs: int = 10_000, examples: int = 300
) -> Target:
    return Target(kind, partial(facts, ending), (*tokens, *CELLS), hard, inputs=inputs, examples=examples)


TARGETS = (
    _of("tsv", ".tsv", LINES, HARD_TEXT, inputs=40_000, examples=500),
    _of("csv", ".csv", LINES, HARD_TEXT, inputs=40_000, examples=500),
    _of("json", ".json", JSON, HARD_JSON, inputs=8_000),
    _of("json-lines", ".jsonl", JSON, HARD_JSON, inputs=8_000),
    _of("prolog", ".pl", PROLOG, HARD_PROLOG, inputs=8_000),
    _of("n-triples", ".nt", RDF, HARD_RDF, inputs=10_000),
    _of("turtle", ".ttl", RDF, HARD_RDF, inputs=10_000),
    _of("rdf-xml", ".rdf", XML, HARD_XML, inputs=10_000),
    Target("parquet", partial(facts, ".parquet"), THRIFT, made=_parquet, longest=4_000),
    Target("sqlite", partial(facts, ".sqlite"), SQL, made=_sqlite, longest=4_000),
    Target("gzip", partial(facts, ".tsv.gz"), PACKED, _bomb(gzip.compress), partial(_packed, gzip.compress)),
    Target("zstd", partial(facts, ".tsv.zst"), PACKED, _bomb(_zstd), partial(_packed, _zstd)),
    Target("features", partial(features, ".csv"), (b"name,title,x,y\n", b"a,a title,1,2\n", b"1e400", b"nan", *CELLS)),
)
