"""What is known: features of the constants of a domain, as texts or vectors, from a table or from Python."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int64

from r2n.errors import ConfigError, DataError, Location, nearest
from r2n.knowledge.feature_rows import FeatureRows, Vectors, feature_rows, read_feature_records, single_precision
from r2n.knowledge.reading.records import OnError, settle
from r2n.knowledge.reading.stored_tables import row_location
from r2n.logic.language import Domain, Language


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """Where the features of a domain's constants stand, and how to read them.

    `source` is a file, an object with `__arrow_c_stream__` (pandas, polars, pyarrow), or a mapping from constants to
    texts or to arrays of numbers, all of one shape. Of a table, `key` is the column with the constants (the first one
    by default), `text` a column of text, and `vector` columns of numbers, or one column of lists. `label` is a
    column with what people call the constants, which is shown and not read. With `names`, each constant's own name is
    its text, and there is no source. A constant without features is an error, or (`missing = "learn"`) has a learned
    vector as those of other domains have. `table` is the one to read of an SQLite file.
    """

    source: Path | object | None = None
    key: str | None = None
    text: str | None = None
    vector: Sequence[str] = ()
    names: bool = False
    missing: str = "error"
    table: str | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        """Check what can be told without reading."""
        if isinstance(self.source, str):
            object.__setattr__(self, "source", Path(self.source))
        object.__setattr__(self, "vector", (self.vector,) if isinstance(self.vector, str) else tuple(self.vector))
        if self.missing not in ("error", "learn"):
            raise ConfigError(f"missing is 'error' or 'learn', not '{self.missing}'")
        has_columns = self.text is not None or bool(self.vector)
        if self.names and (self.source is not None or has_columns or self.label is not None):
            raise ConfigError(
                "with names = true a constant's name is its text: leave out table, text, vector and label"
            )
        if not self.names and self.source is None:
            raise ConfigError("features need a table", hint="give table and text or vector, or names = true")
        if isinstance(self.source, Mapping):
            if has_columns or self.key is not None or self.label is not None:
                raise ConfigError("a mapping has no columns: leave out key, text, vector and label")
        elif not self.names:
            self._check_table(has_columns)

    def _check_table(self, has_columns: bool) -> None:
        if not isinstance(self.source, Path) and not hasattr(self.source, "__arrow_c_stream__"):
            raise ConfigError(
                f"features come from a file, a table or a mapping, not from a {type(self.source).__name__}",
                hint="for an array write {constant: row, ...}, as in dict(zip(constants, array))",
            )
        if not has_columns:
            raise ConfigError(
                "which columns are the features?", hint='give text = "COLUMN" or vector = ["COLUMN", ...]'
            )


@dataclass(frozen=True, eq=False)
class Features:
    """Texts, vectors or both, one for each of some constants (by id, ascending) of a domain.

    Constants of the domain that are not among them have no features. `ignored` counts the rows that named constants
    outside the domain. `labels` are what people call the constants; no number depends on them.
    """

    domain: Domain
    constants: Int64[np.ndarray, " rows"]
    texts: tuple[str, ...] | None = None
    vectors: Vectors | None = None
    ignored: int = 0
    labels: tuple[str, ...] | None = None

    def __len__(self) -> int:
        """The number of constants with features."""
        return len(self.constants)

    def in_language(self, before: Language, after: Language) -> "Features":
        """The same features by the ids of a language that has more constants."""
        ids = [after.constant_id(before.constants[i]) for i in self.constants.tolist()]
        return replace(self, constants=np.array(ids, np.int64))

    def digest(self) -> str:
        """The same for the same features, and for no others."""
        shape = None if self.vectors is None else (self.vectors.shape, str(self.vectors.dtype))
        digest = hashlib.sha256(json.dumps([self.domain.name, self.texts, shape]).encode())
        for array in (self.constants, self.vectors):
            digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


Mention = Callable[[str], Location | None]


def read_features(
    language: Language,
    tables: Mapping[str, object],
    *,
    on_error: OnError = "raise",
    mention: Mention = lambda name: None,
) -> tuple[dict[str, Features], tuple[DataError, ...]]:
    """The features of domains, by name, and (`on_error="skip"`) the errors of the rows left out.

    `tables` has for each domain a FeatureTable, or {constant: text or array}; anything else is refused.
    `mention` says where a constant stands among the facts, for the error about one without features.
    """
    features: dict[str, Features] = {}
    rejected: list[DataError] = []
    for name, given in tables.items():
        domain = _domain(language, name)
        table = given if isinstance(given, FeatureTable) else _table(name, given)
        if table.names:
            members = language.members(domain)
            features[name] = Features(domain, members, tuple(language.constants[i] for i in members))
            continue
        rows = _rows(table)
        rejected += settle(rows.faults, on_error)
        features[name] = _of_domain(language, domain, rows, table.missing, mention)
    _refuse_two(language, features)
    return features, tuple(rejected)


def _table(domain: str, given: object) -> FeatureTable:
    try:
        return FeatureTable(given)
    except ConfigError as error:
        raise ConfigError(f"features of domain '{domain}': {error.what}", hint=error.hint) from None


def _domain(language: Language, name: str) -> Domain:
    domains = {domain.name: domain for domain in language.domains}
    if name not in domains:
        hint = nearest(name, domains) or f"the domains are: {', '.join(domains)}"
        raise DataError(f"features are given for domain '{name}', which does not exist", hint=hint)
    return domains[name]


def _rows(table: FeatureTable) -> FeatureRows:
    if isinstance(table.source, Mapping):
        return _from_mapping(table.source).checked()
    records = read_feature_records(table.source, table.table)
    return feature_rows(records, table.key, table.text, tuple(table.vector), table.label)


def _from_mapping(given: Mapping[object, object]) -> FeatureRows:
    """Features given in Python; the place of a constant is its row."""
    keys, values = [str(key) for key in given], list(given.values())
    nothing = np.zeros(len(keys), bool)
    rows = FeatureRows(
        "features", pa.array(keys, pa.string()), None, None, nothing, np.arange(len(keys)), _locate_given
    )
    are_texts = [isinstance(value, str) for value in values]
    if all(are_texts):
        blank = np.array([not str(value).strip() for value in values], bool)
        return replace(rows, texts=pa.array([str(value) for value in values], pa.string()), blank=blank)
    if any(are_texts):
        row = are_texts.index(not are_texts[0])
        what = f"'{keys[row]}' has {'text' if are_texts[row] else 'numbers'}, unlike '{keys[0]}'"
        raise DataError(what, where=_locate_given(row), hint="give all constants of a domain texts, or all arrays")
    return replace(rows, vectors=_stacked(keys, values))


def _locate_given(row: int, column: int | None = None) -> Location:
    return row_location("features", row)


def _stacked(keys: list[str], values: Sequence[object]) -> np.ndarray:
    """Arrays of one shape as one array."""
    arrays: list[np.ndarray] = []
    for row, (key, value) in enumerate(zip(keys, values, strict=True)):
        try:
            arrays.append(single_precision(np.asarray(value, np.float64)))
        except (TypeError, ValueError):
            what = f"the features of '{key}' are no array of numbers"
            raise DataError(what, where=_locate_given(row), hint="give a text, or numbers of one shape") from None
        if not arrays[row].size:
            hint = "give at least one number, or leave the constant out"
            raise DataError(f"the vector of '{key}' is empty", where=_locate_given(row), hint=hint)
        if arrays[row].shape != arrays[0].shape:
            shape, first = (" x ".join(map(str, a.shape)) or "a single number" for a in (arrays[row], arrays[0]))
            what = f"the vector of '{key}' has shape {shape}, where that of '{keys[0]}' has {first}"
            raise DataError(what, where=_locate_given(row), hint="all vectors of a domain have one shape")
    stacked = np.stack(arrays)
    return stacked if stacked.ndim > 1 else stacked[:, None]


def _of_domain(language: Language, domain: Domain, rows: FeatureRows, missing: str, mention: Mention) -> Features:
    members = language.members(domain)
    names = pa.array([language.constants[i] for i in members], pa.string())
    found = pc.fill_null(pc.index_in(names, value_set=rows.constants), -1).to_numpy().astype(np.int64)
    has_some = found >= 0
    has_some[has_some] = ~rows.blank[found[has_some]]
    if missing == "error" and not has_some.all():
        at = int(np.flatnonzero(~has_some)[0])
        raise _missing(domain, names[at].as_py(), int((~has_some).sum()), rows, int(found[at]), mention)
    chosen = found[has_some]
    return Features(
        domain,
        members[has_some],
        None if rows.texts is None else tuple(rows.texts.take(pa.array(chosen)).to_pylist()),
        None if rows.vectors is None else rows.vectors[chosen],
        len(rows.constants) - int((found >= 0).sum()),
        None if rows.labels is None else tuple(rows.labels.take(pa.array(chosen)).to_pylist()),
    )


def constant_labels(
    features: Mapping[str, Features], language: Language, names: Iterable[str], *, with_texts: bool = False
) -> dict[str, str]:
    """What people call some constants, where that is known: their label or, with `with_texts`, else their text."""
    wanted = {language.constant_id(name): name for name in names} if features else {}
    found: dict[int, str] = {}
    for part in features.values():
        shown = part.labels or (part.texts if with_texts else None) or ()
        places = np.flatnonzero(np.isin(part.constants, list(wanted))).tolist() if shown else []
        found |= {int(part.constants[place]): label for place in places if (label := " ".join(shown[place].split()))}
    told = {name: found.get(constant, "") for constant, name in wanted.items()}
    return {name: label for name, label in told.items() if label and label != name}


def _missing(domain: Domain, name: str, count: int, rows: FeatureRows, found: int, mention: Mention) -> DataError:
    more = f" ({count:,} constants of domain '{domain.name}' have none)" if count > 1 else f" (domain '{domain.name}')"
    where = rows.locate(int(rows.rows[found])) if found >= 0 else mention(name)
    near = nearest(name, rows.constants.to_pylist()[:100_000]) if found < 0 else ""
    hint = f'add it to {rows.source}, or set missing = "learn" for a learned vector'
    return DataError(f"'{name}' has no features{more}", where=where, hint=f"{near} {hint}".strip())


def _refuse_two(language: Language, features: Mapping[str, Features]) -> None:
    """A constant has features from one table only."""
    parts = list(features.values())
    for i, earlier in enumerate(parts):
        for later in parts[i + 1 :]:
            shared = np.intersect1d(earlier.constants, later.constants, assume_unique=True)
            if len(shared):
                raise DataError(
                    f"'{language.constants[shared[0]]}' has features of domain '{earlier.domain.name}' and of"
                    f" '{later.domain.name}'",
                    hint="give one constant two names, or give features to a domain that holds both",
                )
