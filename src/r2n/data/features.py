"""Features of constants: numeric vectors and text, read from tables and arrays."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float, Int64
from pyarrow import types
from scipy.sparse import csr_array, vstack

from r2n.data.records import (
    Fault,
    Locate,
    OnError,
    ReadOptions,
    Records,
    check_file,
    format_of,
    read_arrow,
    row_location,
    settle,
    shortened,
    source_name,
)
from r2n.errors import ConfigError, DataError, Location, nearest
from r2n.logic.language import Domain, Language

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

WORD = r"[^\W_]+"  # letters and digits of any script; an underscore parts words as a space does
_WORD_AND_SPACES = re.compile(rf"({WORD})\s*")
WordWeights = Literal["binary", "count", "tfidf"]
Token = Literal["word", "char"]
Analyzer = Literal["word", "char", "both"]
TOKENS: Mapping[Analyzer, tuple[Token, ...]] = {"word": ("word",), "char": ("char",), "both": ("word", "char")}
SHORT_TEXT = 40  # characters, on average: names and titles rather than sentences
FEW_REPEATED = 0.2  # of the distinct words: fewer that occur in several texts say little of new texts
MOST_READ = 10_000  # texts, to choose by
GRAMS = (2, 4)  # the lengths of n-grams of characters
TRIGRAM = 3


def without_word(text: str, word: str) -> str:
    """The text without all occurrences of a word, in any case, and the spaces behind them."""
    return _WORD_AND_SPACES.sub(lambda found: "" if found[1].lower() == word else found[0], text)


def words_of(text: str) -> list[str]:
    """The words of a text, in order and in lower case."""
    return re.findall(WORD, text.lower())


def _plain(text: str) -> str:
    return " ".join(words_of(text))


@dataclass(frozen=True, eq=False)
class Bags:
    """Texts as bags of tokens, row by row: of words, or of the n-grams of characters of words.

    `counts` is over all `tokens`, which the `vectorizer` finds in a text, `known` over the `vocabulary` alone, which
    has only tokens of training texts (`columns` holds their indices), weighed by `rarity`. `every` marks all tokens,
    also those that training never saw: they count for how similar two texts are.
    """

    texts: tuple[str, ...]
    tokens: tuple[str, ...]
    counts: csr_array
    vectorizer: "CountVectorizer"
    columns: Int64[np.ndarray, " vocabulary"]
    token: Token = "word"
    weights: WordWeights = "binary"
    rarity: "TfidfTransformer | None" = None

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """The tokens that the network has weights for."""
        return tuple(self.tokens[i] for i in self.columns)

    @cached_property
    def every(self) -> csr_array:
        """Ones for all tokens of each text."""
        return _ones(self.counts)

    @cached_property
    def known(self) -> csr_array:
        """The weights of the vocabulary in each text."""
        known = csr_array((self.every if self.weights == "binary" else self.counts)[:, self.columns])
        if self.rarity is None or not self.texts:
            return known
        return csr_array(self.rarity.transform(known), dtype=np.float32)

    @cached_property
    def trigrams(self) -> csr_array:
        """Ones for the n-grams of three characters."""
        return csr_array(self.every[:, [i for i, token in enumerate(self.tokens) if len(token) == TRIGRAM]])

    def taken(self, rows: Int64[np.ndarray, " taken"], without: Sequence[str | None]) -> "Bags":
        """The bags of some rows, each without a word (None: with all of them)."""
        texts, index, changed = [self.texts[row] for row in rows], rows.copy(), list[str]()
        for i, word in enumerate(without):
            if word is not None:
                index[i] = len(self.texts) + len(changed)
                texts[i] = without_word(texts[i], word)
                changed.append(texts[i])
        counts = self.counts
        if changed:
            more = self.vectorizer.transform(changed) if self.tokens else csr_array((len(changed), 0))
            counts = csr_array(vstack([counts, more], format="csr"), dtype=np.float32)
        return replace(self, texts=tuple(texts), counts=csr_array(counts[index]))


def _ones(counts: csr_array) -> csr_array:
    return csr_array((np.ones_like(counts.data), counts.indices, counts.indptr), shape=counts.shape)


def bags_of_words(
    texts: Sequence[str],
    in_training: Bool[np.ndarray, " texts"],
    *,
    weights: WordWeights = "binary",
    min_texts: int = 1,
    token: Token = "word",
) -> Bags:
    """The bags of texts; a token of the vocabulary occurs in at least `min_texts` training texts.

    Words have no case, and n-grams of characters are inside words. `tfidf` weighs a token by how rare it is in the
    training texts, and gives each bag length one.
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer  # takes a second to import

    vectorizer = CountVectorizer(token_pattern=WORD)
    if token == "char":
        vectorizer = CountVectorizer(analyzer="char_wb", ngram_range=GRAMS, preprocessor=_plain)
    try:
        counts = csr_array(vectorizer.fit_transform(texts), dtype=np.float32)
        tokens = tuple(vectorizer.get_feature_names_out().tolist())
    except ValueError:  # no text has any word
        counts, tokens = csr_array(np.zeros((len(texts), 0), np.float32)), ()
    seen_in = np.asarray(_ones(counts)[in_training].sum(axis=0)).reshape(-1)
    columns = np.flatnonzero(seen_in >= max(1, min_texts))
    bags = Bags(tuple(texts), tokens, counts, vectorizer, columns, token, weights)
    if weights == "tfidf" and bags.vocabulary:
        bags = replace(bags, rarity=TfidfTransformer().fit(bags.known[in_training]))
    return bags


Pairs = Int64[np.ndarray, " pairs"]


def pair_counts(bags: Bags, left: Pairs, right: Pairs) -> Float[np.ndarray, "pairs counts"]:
    """How similar two texts are, by all tokens, also those that training never saw: three numbers.

    Of words: how many both have, how many one has (both as log(1 + n)), and their Jaccard similarity. Of characters:
    the Jaccard and Dice similarities of trigrams, and the share of the common prefix in the longer text.
    """
    marks = bags.every if bags.token == "word" else bags.trigrams
    sizes = np.asarray(marks.sum(axis=1)).reshape(-1)
    shared = np.asarray(marks[left].multiply(marks[right]).sum(axis=1)).reshape(-1)
    total = sizes[left] + sizes[right]
    union = total - shared
    jaccard = shared / np.maximum(union, 1)
    if bags.token == "word":
        return np.stack([np.log1p(shared), np.log1p(union - shared), jaccard], 1).astype(np.float32)
    texts = [_plain(text) for text in bags.texts]
    both = ((texts[i], texts[j]) for i, j in zip(left.tolist(), right.tolist(), strict=True))
    alike = ((pair, list(takewhile(lambda two: two[0] == two[1], zip(*pair, strict=False)))) for pair in both)
    prefixes = [len(prefix) / max(1, *map(len, pair)) for pair, prefix in alike]
    return np.stack([jaccard, 2 * shared / np.maximum(total, 1), prefixes], 1).astype(np.float32)


WORD_MATCHES = 4  # numbers of `word_matches`


def word_matches(texts: Sequence[str], left: Pairs, right: Pairs) -> Float[np.ndarray, "pairs matches"]:
    """How the words of two short texts match, whatever their order: four numbers.

    How many words both have, how many others of one abbreviate a word of the other (`j` for `john`), how many are left
    in both (each as log(1 + n)), and the Jaccard similarity of the trigrams of the texts with their spaces.
    """
    rows: list[int] = np.union1d(left, right).tolist()
    words = {row: frozenset(words_of(texts[row])) for row in rows}
    grams = {row: _trigrams(texts[row]) for row in rows}
    found = np.zeros((len(left), WORD_MATCHES), np.float32)
    for number, (i, j) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        one, other = words[i] - words[j], words[j] - words[i]
        short = sum(any(a.startswith(b) or b.startswith(a) for b in other) for a in one)
        left_over = max(0, len(one) - short) + max(0, len(other) - short)
        either = len(grams[i] | grams[j])
        same = len(grams[i] & grams[j]) / either if either else 0.0
        found[number] = *np.log1p([len(words[i] & words[j]), short, left_over]), same
    return found


def _trigrams(text: str) -> frozenset[str]:
    plain = f"  {_plain(text)} "
    return frozenset(plain[i : i + TRIGRAM] for i in range(len(plain) - TRIGRAM + 1)) if plain.strip() else frozenset()


Vectors = Float[np.ndarray, "rows *shape"]


@dataclass(frozen=True, eq=False, slots=True)
class FeatureRows:
    """Rows of features of a source: a constant each, with its text, its vector, or both.

    `labels` is what people call the constants. `empty` marks rows that name a constant and nothing more. `notes` say
    which values were read as other ones.
    """

    source: str
    constants: pa.Array
    texts: pa.Array | None
    vectors: Vectors | None
    empty: Bool[np.ndarray, " rows"]
    rows: Int64[np.ndarray, " rows"]
    locate: Locate
    faults: tuple[Fault, ...] = ()
    labels: pa.Array | None = None
    notes: tuple[str, ...] = ()

    def without(self, bad: Bool[np.ndarray, " rows"], error: Callable[[int], DataError]) -> "FeatureRows":
        """These rows minus the bad ones, which `error` explains by their row in the source."""
        if not bad.any():
            return self
        names = ("constants", "texts", "labels", "vectors", "empty", "rows")
        kept = {name: _taken(getattr(self, name), np.flatnonzero(~bad)) for name in names}
        return replace(self, **kept, faults=(*self.faults, Fault(self.rows[bad], error)))

    def checked(self) -> "FeatureRows":
        """Without numbers that are not finite, and without the second of two rows for one constant."""
        rows = self
        if rows.vectors is not None:
            finite = np.isfinite(rows.vectors).all(axis=tuple(range(1, rows.vectors.ndim)))
            vectors, given = rows.vectors, rows

            def not_finite(row: int) -> DataError:
                at = int(np.searchsorted(given.rows, row))
                values = vectors[at].reshape(-1)
                number = int(np.flatnonzero(~np.isfinite(values))[0])
                what = f"the vector of '{given.constants[at].as_py()}' has {values[number]} as component {number + 1}"
                hint = "a feature is a finite number (within single precision); fill the gap, or leave the row out"
                return DataError(what, where=given.locate(row), hint=hint)

            rows = rows.without(~finite & ~rows.empty, not_finite)
        encoded = rows.constants.dictionary_encode().indices.to_numpy()
        _, first = np.unique(encoded, return_index=True)
        is_repeated = np.ones(len(encoded), bool)
        is_repeated[first] = False

        def repeated(row: int) -> DataError:
            constant = rows.constants[int(np.searchsorted(rows.rows, row))]
            where = rows.locate(int(rows.rows[pc.index(rows.constants, constant).as_py()]))
            hint = f"they are at {where}; keep one of the two rows"
            return DataError(f"'{constant.as_py()}' has features already", where=rows.locate(row), hint=hint)

        return rows.without(is_repeated, repeated)


def _taken(part: Any, rows: np.ndarray) -> Any:
    """Some rows of an array, of texts or of numbers."""
    return part.take(pa.array(rows)) if isinstance(part, pa.Array) else None if part is None else part[rows]


def read_feature_records(source: Path | object, table: str | None = None) -> Records:
    """The rows of a table, by column; a text file begins with a line of column names."""
    if not isinstance(source, Path):
        return read_arrow(source)
    check_file(source)
    kind = format_of(source)
    if not kind.has_names:
        hint = "write them as CSV, TSV, Parquet, JSON or SQLite"
        raise DataError("features are read from tables with named columns", where=Location(str(source)), hint=hint)
    kind.check_installed(source)
    return kind.records(source, ReadOptions(header=True, table=table))[0]


def feature_rows(
    records: Records, key: str | None, text: str | None, vector: tuple[str, ...], label: str | None = None
) -> FeatureRows:
    """Constants, texts, vectors and labels from the named columns; the constants are in the first one by default."""
    keys = 0 if key is None else records.column(key)
    if keys >= len(records.columns):
        raise DataError("the table of features is empty", where=Location(records.source))

    def no_constant(row: int) -> DataError:
        hint = "name the constant, or take the row out"
        return DataError("here are features of no constant", where=records.locate(row, keys), hint=hint)

    records = records.without(_is_empty(records.columns[keys]), no_constant).with_constants(keys)
    texts, empty, bad = None, np.zeros(len(records.rows), bool), np.zeros(len(records.rows), bool)
    if text is not None:
        column = records.column(text)
        texts = pc.fill_null(records.columns[column], "")
        empty = _is_empty(texts)
        filled = texts.filter(pa.array(~empty))
        if len(filled) and _numbers([filled], "TRY_CAST(trim(t0) AS DOUBLE)").null_count == 0:
            what = f"the column '{text}' is taken for text, but holds numbers: '{filled[0].as_py()}'"
            hint = f'for numbers write vector = ["{text}"]'
            raise DataError(what, where=records.locate(int(records.rows[np.flatnonzero(~empty)[0]]), column), hint=hint)
    vectors, error, notes = None, no_constant, ()
    if vector:
        vectors, without_vector, bad, error, notes = _read_vectors(records, [records.column(name) for name in vector])
        empty = empty | without_vector
    labels = None if label is None else pc.fill_null(pc.cast(records.columns[records.column(label)], pa.string()), "")
    found = (records.source, records.columns[keys], texts, vectors, empty, records.rows, records.locate)
    return FeatureRows(*found, records.faults, labels, notes).without(bad, error).checked()


def _is_empty(column: pa.Array) -> np.ndarray:
    return pc.equal(pc.utf8_trim_whitespace(pc.fill_null(column, "")), "").to_numpy(zero_copy_only=False)


def _numbers(cells: Sequence[pa.Array], sql: str) -> pa.Array:
    """Numbers, or lists of them, from columns of text t0, t1, ...; null where they are none."""
    with closing(duckdb.connect()) as connection:
        connection.register("given", pa.table(list(cells), [f"t{i}" for i in range(len(cells))]))
        table = connection.sql(f"SELECT {sql} AS value FROM given").to_arrow_table()
    return pa.chunked_array(table.column(0).chunks, table.schema.field(0).type).combine_chunks()


ReadVectors = tuple[np.ndarray, np.ndarray, np.ndarray, Callable[[int], DataError], tuple[str, ...]]
AS_NUMBERS = (
    (r"true$|false$", "CASE lower(trim(t0)) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END", "1 for true and 0 for false"),
    (r"\d{4}-\d", "epoch(TRY_CAST(trim(t0) AS TIMESTAMP)) / 86400", "days since 1970-01-01"),
)
"""Columns of which each cell is such a value (the first by a pattern, all by SQL) are read as numbers."""


def _read_vectors(records: Records, columns: list[int]) -> ReadVectors:
    """The vectors, the rows without any number, the rows that are wrong, their errors, and what was read as a number.

    A column holds a number a row, or the only one a list of numbers; wrong are rows with another length or no numbers.
    """
    cells, notes = [records.columns[column] for column in columns], list[str]()
    for i, column in enumerate(cells):
        first = next((cell.as_py().strip().lower() for cell in column if cell.is_valid and cell.as_py().strip()), "")
        for pattern, sql, what in AS_NUMBERS:
            found = _numbers([column], f"CAST({sql} AS VARCHAR)") if re.match(pattern, first) else column
            if found is not column and (found.is_valid().to_numpy(zero_copy_only=False) | _is_empty(column)).all():
                cells[i] = found
                notes.append(f"'{records.names[columns[i]]}' is read as {what}")
    empty = np.logical_and.reduce([_is_empty(column) for column in cells])
    filled = cells[0].filter(pa.array(~empty))
    are_lists = len(columns) == 1 and len(filled) > 0 and (filled[0].as_py() or "").lstrip().startswith("[")
    numbers = ", ".join(f"TRY_CAST(trim(t{i}) AS DOUBLE)" for i in range(len(cells)))
    lists = _numbers(cells, "TRY_CAST(trim(t0) AS DOUBLE[])" if are_lists else f"[{numbers}]")
    sizes = pc.fill_null(pc.list_value_length(lists), -1).to_numpy(zero_copy_only=False).copy()
    parents = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
    sizes[parents[pc.list_flatten(lists).is_null().to_numpy(zero_copy_only=False)]] = -1  # a list with a null
    model = int(np.concatenate([np.flatnonzero(sizes > 0), [0]])[0])
    width = max(int(sizes[model]), 1) if len(sizes) else 1
    good = sizes == width
    vectors = np.zeros((len(lists), width))
    vectors[good] = lists.filter(pa.array(good)).flatten().to_numpy(zero_copy_only=False).reshape(-1, width)

    def error(row: int) -> DataError:
        at = int(np.searchsorted(records.rows, row))
        which = 0 if are_lists else lists[at].as_py().index(None)
        name, where = records.names[columns[which]], records.locate(row, columns[which])
        if not are_lists:
            what = f"'{shortened(cells[which][at].as_py() or '')}' in column '{name}' is no number"
            hint = "a vector needs a number in each of its columns; for words write text = instead of vector ="
            return DataError(what, where=where, hint=hint)
        if sizes[at] < 0:
            what = f"column '{name}' has no list of finite numbers here"
            return DataError(what, where=where, hint="write it as [0.5, 1, -2]")
        other = records.locate(int(records.rows[model]))
        what = f"a vector of {sizes[at]} numbers, where that at {other} has {width}"
        return DataError(what, where=where, hint="all vectors of a domain have one length")

    return _single_precision(vectors), empty, ~good & ~empty, error, tuple(notes)


def _single_precision(vectors: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
        return vectors.astype(np.float32)


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """Where the features of a domain's constants stand, and how to read them.

    `source` is a file, an object with `__arrow_c_stream__` (pandas, polars, pyarrow), or a mapping from constants to
    texts or to arrays of one shape. Of a table, `key` is the column with the constants (default: the first), `text` a
    column of text, `vector` columns of numbers or one of lists, `label` what people call the constants (shown only).
    With `names`, a constant's name is its text. A constant without features is an error, or (`missing = "learn"`) has
    a learned vector. Texts are read as words, as n-grams of characters, or as both (`analyzer`; chosen by the texts if
    it is not set).
    """

    source: Path | object | None = None
    key: str | None = None
    text: str | None = None
    vector: Sequence[str] = ()
    names: bool = False
    missing: str = "error"
    table: str | None = None
    label: str | None = None
    analyzer: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.source, str):
            object.__setattr__(self, "source", Path(self.source))
        object.__setattr__(self, "vector", (self.vector,) if isinstance(self.vector, str) else tuple(self.vector))
        if self.missing not in ("error", "learn"):
            raise ConfigError(f"missing is 'error' or 'learn', not '{self.missing}'")
        if self.analyzer not in (None, *TOKENS):
            raise ConfigError(f"analyzer is 'word', 'char' or 'both', not '{self.analyzer}'")
        has_columns = self.text is not None or bool(self.vector)
        if self.names and (self.source is not None or has_columns or self.label is not None):
            what = "with names = true a constant's name is its text: leave out table, text, vector and label"
            raise ConfigError(what)
        if not self.names and self.source is None:
            raise ConfigError("features need a table", hint="give table and text or vector, or names = true")
        if isinstance(self.source, Mapping):
            if has_columns or self.key is not None or self.label is not None:
                raise ConfigError("a mapping has no columns: leave out key, text, vector and label")
        elif not self.names and not isinstance(self.source, Path) and not hasattr(self.source, "__arrow_c_stream__"):
            what = f"features come from a file, a table or a mapping, not from a {type(self.source).__name__}"
            raise ConfigError(what, hint="for an array write {constant: row, ...}, as in dict(zip(constants, array))")
        elif not self.names and not has_columns:
            hint = 'give text = "COLUMN" or vector = ["COLUMN", ...]'
            raise ConfigError("which columns are the features?", hint=hint)

    @classmethod
    def from_frame(cls, frame: object, **options: Any) -> "FeatureTable":
        """The features in a pandas, polars or pyarrow table: the first column (or pandas' index) holds the constants.

        Columns of numbers, booleans and dates, or one of lists, are the vector, and a column of text is the text.
        """
        if source_name(frame) == "pandas.DataFrame" and type(frame.index).__name__ != "RangeIndex":  # pyright: ignore[reportAttributeAccessIssue]
            frame = frame.reset_index()  # pyright: ignore[reportAttributeAccessIssue]
        table = pa.table(frame)
        kinds = dict(zip(table.column_names[1:], table.schema.types[1:], strict=True))
        numeric = (types.is_floating, types.is_integer, types.is_boolean, types.is_date, types.is_timestamp)
        vector = [name for name, kind in kinds.items() if any(is_kind(kind) for is_kind in numeric)]
        lists = [name for name, kind in kinds.items() if types.is_nested(kind)]
        texts = [name for name in kinds if name not in (*vector, *lists)]
        if len(texts) > 1 or len(lists) > 1 or (vector and lists):
            hint = 'give FeatureTable(frame, text="COLUMN", vector=["COLUMN", ...])'
            raise ConfigError(f"which of the columns {', '.join(kinds)} are the features?", hint=hint)
        return cls(frame, text=texts[0] if texts else None, vector=vector or lists, **options)


@dataclass(frozen=True, eq=False)
class Features:
    """Texts, vectors or both, one for each of some constants (by id, ascending) of a domain.

    Constants of the domain that are not among them have no features. `ignored` counts the rows that named constants
    outside the domain. `labels` are what people call the constants; no number depends on them. `analyzer` says what
    texts are read as.
    """

    domain: Domain
    constants: Int64[np.ndarray, " rows"]
    texts: tuple[str, ...] | None = None
    vectors: Vectors | None = None
    ignored: int = 0
    labels: tuple[str, ...] | None = None
    analyzer: Analyzer = "word"

    def __len__(self) -> int:
        return len(self.constants)

    def in_language(self, before: Language, after: Language) -> "Features":
        """The same features by the ids of a language that has more constants."""
        ids = [after.constant_id(before.constants[i]) for i in self.constants.tolist()]
        return replace(self, constants=np.array(ids, np.int64))

    def joined(self, added: "Features", example: str) -> "Features":
        """With the features of other constants, of which errors name an example."""
        for kind in ("texts", "vectors"):
            one, other = getattr(self, kind), getattr(added, kind)
            if (one is None) != (other is None) or np.shape(one)[1:] != np.shape(other)[1:]:
                what = (
                    f"the features of '{example}' are not of the kind that domain '{self.domain.name}' had in training"
                )
                raise DataError(what)
        constants = np.concatenate([self.constants, added.constants])
        order = np.argsort(constants)
        both = None if self.vectors is None or added.vectors is None else [self.vectors, added.vectors]

        def joined(one: Sequence[str] | None, other: Sequence[str] | None) -> tuple[str, ...] | None:
            both = None if one is None else (*one, *(other or [""] * len(added)))
            return both and tuple(both[i] for i in order)

        return replace(
            self,
            constants=constants[order],
            texts=joined(self.texts, added.texts),
            vectors=None if both is None else np.concatenate(both)[order],
            labels=joined(self.labels, added.labels),
        )

    def digest(self) -> str:
        """The same for the same features, and for no others."""
        shape = None if self.vectors is None else (self.vectors.shape, str(self.vectors.dtype))
        read = [] if self.analyzer == "word" else [self.analyzer]
        digest = hashlib.sha256(json.dumps([self.domain.name, self.texts, shape, *read]).encode())
        for array in (self.constants, self.vectors):
            digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


Mention = Callable[[str], Location | None]


def choose_analyzer(texts: Sequence[str]) -> tuple[Analyzer, str]:
    """What to read texts as, and why: names and other short texts differ by typos, and share few words."""
    lengths = [len(text) for text in texts if text.strip()]
    mean = sum(lengths) / max(1, len(lengths))
    seen_in = Counter(word for text in texts[:MOST_READ] for word in set(words_of(text)))
    repeated = sum(count > 1 for count in seen_in.values()) / max(1, len(seen_in))
    why = f"texts of {mean:.0f} characters on average, and {repeated:.0%} of the words occur in several of them"
    if lengths and mean < SHORT_TEXT:
        return "char", why
    return "both" if lengths and repeated < FEW_REPEATED else "word", why


def read_features(
    language: Language,
    tables: Mapping[str, object],
    *,
    on_error: OnError = "raise",
    mention: Mention = lambda name: None,
) -> tuple[dict[str, Features], tuple[DataError, ...], tuple[str, ...]]:
    """The features of domains, by name, (`on_error="skip"`) the errors of the rows left out, and what was chosen.

    `tables` has for each domain a FeatureTable, what `FeatureTable.from_frame` takes, or {constant: text or array}.
    `mention` gives the location of a constant among the facts, for the error about one without features.
    """
    features: dict[str, Features] = {}
    rejected, notes = list[DataError](), list[str]()
    domains = {domain.name: domain for domain in language.domains}
    for name, given in tables.items():
        if name not in domains:
            hint = nearest(name, domains) or f"the domains are: {', '.join(domains)}"
            raise DataError(f"features are given for domain '{name}', which does not exist", hint=hint)
        domain = domains[name]
        try:
            is_frame = hasattr(given, "__arrow_c_stream__")
            table = given if isinstance(given, FeatureTable) else None
            table = table or (FeatureTable.from_frame(given) if is_frame else FeatureTable(given))
        except ConfigError as error:
            raise ConfigError(f"features of domain '{name}': {error.what}", hint=error.hint) from None
        if table.names:
            members = language.members(domain)
            features[name] = Features(domain, members, tuple(language.constants[i] for i in members))
        else:
            if isinstance(table.source, Mapping):
                rows = _from_mapping(table.source).checked()
            else:
                records = read_feature_records(table.source, table.table)
                rows = feature_rows(records, table.key, table.text, tuple(table.vector), table.label)
            rejected += settle(rows.faults, on_error)
            notes += [f"features.{name}: {note}" for note in rows.notes]
            features[name] = _of_domain(language, domain, rows, table.missing, mention)
        if (texts := features[name].texts) is not None:
            chosen, why = choose_analyzer(texts)
            features[name] = replace(features[name], analyzer=table.analyzer or chosen)
            if table.analyzer is None and chosen != "word":
                notes.append(f'features.{name}.analyzer = "{chosen}" is chosen: {why}')
    for one, other in combinations(features.values(), 2):
        shared = np.intersect1d(one.constants, other.constants, assume_unique=True)
        if len(shared):
            name, (first, second) = language.constants[shared[0]], (one.domain.name, other.domain.name)
            hint = "give one constant two names, or give features to a domain that holds both"
            raise DataError(f"'{name}' has features of domain '{first}' and of '{second}'", hint=hint)
    return features, tuple(rejected), tuple(notes)


def _from_mapping(given: Mapping[object, object]) -> FeatureRows:
    """Features given in Python, a row for each constant: texts, or arrays of one shape."""

    def locate(row: int, column: int | None = None) -> Location:
        return row_location("features", row)

    keys, values = [str(key) for key in given], list(given.values())
    empty, constants = np.zeros(len(keys), bool), pa.array(keys, pa.string())
    rows = FeatureRows("features", constants, None, None, empty, np.arange(len(keys)), locate)
    are_texts = [isinstance(value, str) for value in values]
    if all(are_texts):
        empty = np.array([not str(value).strip() for value in values], bool)
        return replace(rows, texts=pa.array([str(value) for value in values], pa.string()), empty=empty)
    if any(are_texts):
        row = are_texts.index(not are_texts[0])
        what = f"'{keys[row]}' has {'text' if are_texts[row] else 'numbers'}, unlike '{keys[0]}'"
        raise DataError(what, where=locate(row), hint="give all constants of a domain texts, or all arrays")
    arrays: list[np.ndarray] = []
    for row, (key, value) in enumerate(zip(keys, values, strict=True)):
        try:
            arrays.append(_single_precision(np.asarray(value, np.float64)))
        except (TypeError, ValueError):
            what = f"the features of '{key}' are no array of numbers"
            raise DataError(what, where=locate(row), hint="give a text, or numbers of one shape") from None
        if not arrays[row].size:
            hint = "give at least one number, or leave the constant out"
            raise DataError(f"the vector of '{key}' is empty", where=locate(row), hint=hint)
        if arrays[row].shape != arrays[0].shape:
            shape, first = (" x ".join(map(str, a.shape)) or "a single number" for a in (arrays[row], arrays[0]))
            what = f"the vector of '{key}' has shape {shape}, where that of '{keys[0]}' has {first}"
            raise DataError(what, where=locate(row), hint="all vectors of a domain have one shape")
    stacked = np.stack(arrays)
    return replace(rows, vectors=stacked if stacked.ndim > 1 else stacked[:, None])


def _of_domain(language: Language, domain: Domain, rows: FeatureRows, missing: str, mention: Mention) -> Features:
    """The features of a domain's constants; unless they may be missing, each has some."""
    members = language.members(domain)
    names = pa.array([language.constants[i] for i in members], pa.string())
    found = pc.fill_null(pc.index_in(names, value_set=rows.constants), -1).to_numpy().astype(np.int64)
    has_some = found >= 0
    has_some[has_some] = ~rows.empty[found[has_some]]
    if missing == "error" and not has_some.all():
        at, count = int(np.flatnonzero(~has_some)[0]), int((~has_some).sum())
        name, row = names[at].as_py(), int(found[at])
        more = f"{count:,} constants of domain '{domain.name}' have none" if count > 1 else f"domain '{domain.name}'"
        where = rows.locate(int(rows.rows[row])) if row >= 0 else mention(name)
        near = nearest(name, rows.constants.to_pylist()[:100_000]) if row < 0 else ""
        hint = f'{near} add it to {rows.source}, or set missing = "learn" for a learned vector'.strip()
        raise DataError(f"'{name}' has no features ({more})", where=where, hint=hint)
    chosen = found[has_some]

    taken = (_taken(part, chosen) for part in (rows.texts, rows.labels))
    texts, labels = (None if part is None else tuple(part.to_pylist()) for part in taken)
    ignored = len(rows.constants) - int((found >= 0).sum())
    return Features(domain, members[has_some], texts, _taken(rows.vectors, chosen), ignored, labels)


def constant_labels(
    features: Mapping[str, Features], language: Language, names: Iterable[str], *, with_texts: bool = False
) -> dict[str, str]:
    """What people call some constants, where that is known: their label or, with `with_texts`, else their text."""
    wanted = {language.constant_id(name): name for name in names} if features else {}
    found: dict[int, str] = {}
    for part in features.values():
        shown = part.labels or (part.texts if with_texts else None) or ()
        rows = np.flatnonzero(np.isin(part.constants, list(wanted))).tolist() if shown else []
        found |= {int(part.constants[row]): label for row in rows if (label := " ".join(shown[row].split()))}
    labels = {name: found.get(constant, "") for constant, name in wanted.items()}
    return {name: label for name, label in labels.items() if label and label != name}
