"""Questions and answers: `Answers` is one table of atoms with their probabilities, and an answer is its row."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from html import escape
from math import prod
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float64, Int64

from r2n.data.atom_text import ANYTHING, AtomText, parse_atom, written_atom, written_name
from r2n.data.herbrand import Codes, HerbrandBase
from r2n.errors import DataError, counted, nearest, optional_library
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.metrics import levels
from r2n.logic.language import Language, Predicate
from r2n.visible import printable, shortened

if TYPE_CHECKING:
    import pandas

MOST_ASKED = 20_000_000
MOST_PRINTED = 10
MOST_NAMED = 5
MOST_ROWS = 50
LONGEST_NAME = 200
PREDICTED = ("probability", "share", "known", "closed", "network", "logit", "spread", "reached")
FIXED = frozenset({"row", "rank", "predicate", "question", "atom", "label", *PREDICTED})
"""Columns that tables of answers have besides those of the arguments."""


def argument_names(
    language: Language, columns: Mapping[str, tuple[str, ...]], predicates: Iterable[str]
) -> tuple[str, ...]:
    """The names of the columns that hold the arguments of atoms of these predicates (of none: of any).

    They are those of the table that the facts came from (`columns`), else of the domains; a name that is there twice,
    or is one of the fixed ones, is numbered: `person_1`. If the predicates differ, they are `argument_1`, ...
    """
    asked = [language.predicate(name) for name in predicates] or language.predicates
    each = {_numbered(columns.get(one.name) or tuple(domain.name for domain in one.domains)) for one in asked}
    if len(each) == 1:
        return each.pop()
    return unnamed_arguments(max(map(len, each), default=0))


def unnamed_arguments(arity: int) -> tuple[str, ...]:
    """`argument_1`, `argument_2`, ..."""
    return tuple(f"argument_{i + 1}" for i in range(arity))


def _numbered(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names that differ from each other and from the fixed ones, whatever their capital letters."""
    folded = [name.casefold() for name in names]
    is_taken = [name in FIXED or not name.strip() or folded.count(name) > 1 for name in folded]
    found = tuple(f"{name}_{folded[: i + 1].count(folded[i])}" if is_taken[i] else name for i, name in enumerate(names))
    is_clear = len({name.casefold() for name in found}) == len(found)
    return found if is_clear else unnamed_arguments(len(names))


@dataclass(frozen=True, slots=True)
class Answer:
    """An atom with its probability.

    A `known` atom has the probability of what is known; a `closed` one that is no fact is false, and has 0. `network`
    is the probability that the network predicts, calibrated if there is a calibration, and `logit` the logit before
    that; of an ensemble it is the mean, and `spread` its standard deviation. `reached`: a ground rule holds the atom
    (or the network reads no rules). These say whether the atom is true; `share` says how probably it is the answer to
    a question with one `?`: over all candidates that are not known it adds up to 1.
    """

    atom: str
    probability: float
    known: bool | None
    closed: bool
    network: float
    logit: float
    reached: bool
    spread: float | None = None
    predicate: str = ""
    constants: tuple[str, ...] = ()
    share: float | None = None

    @property
    def question(self) -> str:
        """The atom with its names quoted where they have to be, so that it can be asked."""
        return written_atom(self.predicate, self.constants)


@dataclass(frozen=True, slots=True)
class Result:
    """The answers to a question, the names of their arguments, and counts of other atoms: what JSON has of it."""

    question: str
    columns: tuple[str, ...]
    answers: tuple[Answer, ...]
    asked: int
    refused: int
    left_out: int
    hidden: int


@dataclass(frozen=True, eq=False)
class Answers(Sequence[Answer]):
    """Answers as columns, one row for each atom; `predict` gives the most probable first.

    `truths` is 1 for atoms known to be true, 0 for those known to be false or closed, -1 for unknown ones; `is_refused`
    marks atoms that cannot be answered. `asked` counts the atoms that were answered or refused, `left_out` those that
    are not known and that no ground rule reaches, `hidden` the known ones that were not wanted. `columns` names the
    columns of the arguments in tables.
    """

    base: HerbrandBase
    atoms: Codes
    truths: Int64[np.ndarray, " atoms"]
    is_asserted: Bool[np.ndarray, " atoms"]
    logits: Float64[np.ndarray, " atoms"]
    reached: Bool[np.ndarray, " atoms"]
    is_refused: Bool[np.ndarray, " atoms"]
    network: Float64[np.ndarray, " atoms"]
    spread: Float64[np.ndarray, " atoms"] | None = None
    share: Float64[np.ndarray, " atoms"] | None = None
    calibration: Calibrated | None = None
    columns: tuple[str, ...] = ()
    asked: int = 0
    refused: int = 0
    left_out: int = 0
    hidden: int = 0

    @property
    def probability(self) -> Float64[np.ndarray, " atoms"]:
        """The truth of known atoms, else the network's probability."""
        return np.where(self.truths < 0, self.network, self.truths)

    @property
    def closed(self) -> Bool[np.ndarray, " atoms"]:
        """Whether an atom is false because its predicate is closed and it is no fact."""
        return (self.truths == 0) & ~self.is_asserted

    @cached_property
    def items(self) -> tuple[Answer, ...]:
        """Each row as an answer."""
        known = [bool(truth) if known else None for truth, known in zip(self.truths, self.is_asserted, strict=True)]
        spread = [None] * len(known) if self.spread is None else self.spread.tolist()
        numbers = (part.tolist() for part in (self.closed, self.network, self.logits, self.reached))
        columns = self.base.names(self.atoms), self.probability.tolist(), known, *numbers, spread
        shares = [None] * len(known) if self.share is None else [s if s == s else None for s in self.share.tolist()]
        rows = zip(*columns, self.base.parts(self.atoms), shares, strict=True)
        return tuple(Answer(*row, *part, share=share) for *row, part, share in rows)

    def kept(self, which: Bool[np.ndarray, " atoms"] | Int64[np.ndarray, " kept"]) -> "Answers":
        """Some rows, by a mask or by their indices."""
        columns = {part.name: getattr(self, part.name) for part in fields(self)[1:10]}
        return replace(self, **{name: part if part is None else part[which] for name, part in columns.items()})

    def ranked(self, top: int | None = None) -> "Answers":
        """The `top` atoms that are not refused: known true ones first, known false ones last, else by logits."""
        certainty = np.where(self.truths < 0, 0, 2 * self.truths - 1)
        order = np.lexsort((-levels(self.logits), -certainty))
        return self.kept(order[~self.is_refused[order]][:top])

    @overload
    def __getitem__(self, index: int) -> Answer: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Answer]: ...
    def __getitem__(self, index: int | slice) -> Answer | Sequence[Answer]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.atoms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answers) and self.items == other.items

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        lines = [f"{counted(len(self), 'answer')} to {counted(self.asked, 'atom')} asked"]
        for item in self.items[:MOST_PRINTED]:
            known = "" if item.known is None else f" (known: {str(item.known).lower()})"
            lines.append(f"  {item.atom} {item.probability:.4f}{' (closed)' if item.closed else known}")
        if len(self) > MOST_PRINTED:
            lines.append(f"  ... and {len(self) - MOST_PRINTED:,} more")
        return "\n".join(lines)

    def shown(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """What people see of the first answers: the heads of a table, and its rows."""
        shares, spreads = self.share is not None, self.spread is not None
        heads = ["atom", "probability", *["share"] * shares, "known", "predicted", *["logit ± spread"] * spreads]
        rows = []
        for item in self.items[:most]:
            row = [item.atom, f"{item.probability:.4f}"]
            row += ["" if item.share is None else f"{item.share:.4f}"] * shares
            row += [known_text(item), f"{item.network:.4f}"]
            row += [] if item.spread is None else [f"{item.logit:.2f} ± {item.spread:.2f}"]
            rows.append(row)
        return heads, rows

    def _repr_html_(self) -> str:
        """A table for a notebook, in the colours of the page around it; names are text, never markup."""
        heads, rows = self.shown(MOST_ROWS)
        cells = ([f"<bdi>{escape(shortened(printable(cell), LONGEST_NAME))}</bdi>" for cell in row] for row in rows)
        lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in cells)
        head = "".join(f'<th scope="col">{text}</th>' for text in heads)
        calibrated = "not calibrated" if self.calibration is None else self.calibration.in_words
        texts = [
            f"{counted(len(self), 'answer')} to {counted(self.asked, 'atom')} asked",
            *[f"the first {MOST_ROWS} are shown"] * (len(self) > MOST_ROWS),
            *[f"{counted(self.left_out, 'atom')} left out, which nothing is known of"] * bool(self.left_out),
            *[f"{counted(self.hidden, 'atom')} not shown, known already"] * bool(self.hidden),
            *[f"{counted(self.refused, 'atom')} of new constants cannot be answered"] * bool(self.refused),
            f"probability: that the atom is true, {calibrated}",
            *["share: that it is the answer, among all candidates that are not known"] * (self.share is not None),
        ]
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
        return f'<div style="overflow-x:auto">{table}<p>{escape("; ".join(texts))}</p></div>'

    def result(self, question: str) -> Result:
        """What is sent, or printed as JSON."""
        return Result(question, self.columns, self.items, self.asked, self.refused, self.left_out, self.hidden)

    def to_arrow(self) -> pa.Table:
        """An Arrow table, one row for each answer: rank, predicate, arguments, probability and what `Answer` has."""
        language, (index, ids) = self.base.language, self.base.decode(self.atoms)
        arity = int((ids >= 0).any(axis=0).sum()) if len(self) else ids.shape[1]
        constants, columns = pa.array(language.constants, pa.string()), dict[str, Any]()
        for i, name in enumerate(self.columns or unnamed_arguments(arity)):
            part = ids[:, i] if i < ids.shape[1] else np.full(len(self), -1)
            columns[name] = constants.take(pa.array(part, pa.int64(), mask=part < 0))
        refused, shares = self.is_refused, self.share
        if shares is None and self.calibration is not None and self.calibration.share is not None:
            shares = np.full(len(self), np.nan)  # all tables of a model have the same columns
        return pa.table(
            {
                "rank": pa.array(np.arange(1, len(self) + 1), pa.int64()),
                "predicate": pa.array([p.name for p in language.predicates], pa.string()).take(pa.array(index)),
                **columns,
                "probability": pa.array(self.probability, mask=refused),
                **({} if shares is None else {"share": pa.array(shares, mask=refused | np.isnan(shares))}),
                "known": pa.array(self.truths == 1, mask=~self.is_asserted),
                "closed": self.closed,
                "network": pa.array(self.network, mask=refused),
                "logit": pa.array(self.logits, mask=refused),
                **({} if self.spread is None else {"spread": pa.array(self.spread, mask=refused)}),
                "reached": self.reached,
            }
        )

    def to_pandas(self) -> "pandas.DataFrame":
        """A pandas data frame; what is not known is `pandas.NA`, neither true nor false."""
        boolean = optional_library("pandas").BooleanDtype()
        return self.to_arrow().to_pandas(types_mapper={pa.bool_(): boolean}.get)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """For every library that reads Arrow tables: DuckDB, polars, pandas, pyarrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def known_text(item: "Answer") -> str:
    """What is known of an atom; if nothing is, whether a ground rule holds it."""
    if item.closed and not item.known:
        return "closed"
    if item.known is not None:
        return "true" if item.known else "false"
    return "" if item.reached else "(no ground rule)"


@dataclass(frozen=True, eq=False)
class Question:
    """The constants (ids) that each position of a predicate may have, and which answers are wanted.

    With `?`, a question is answered by the atoms that are known or that ground rules reach, or (`everything`) by all;
    at most `top` of them; with `unknown`, only by those that are neither known nor closed.
    """

    base: HerbrandBase
    predicate: Predicate
    columns: tuple[np.ndarray, ...]
    everything: bool = False
    top: int | None = None
    unknown: bool = False

    @classmethod
    def parse(cls, base: HerbrandBase, text: str) -> "Question":
        """`locatedIn(italy, ?)`: each `?` stands for every constant of its position's domain."""
        atom = parse_atom(text) if isinstance(text, str) else None
        if atom is None or not atom.truth:
            example = f': "{question_text(base, np.zeros(1, np.int64))}"' if base.size else ""
            hint = f"write PREDICATE(CONSTANT, ...) with ? for what is asked{example}"
            raise DataError(f"'{text}' is no question", hint=hint)
        return cls.from_terms(base, atom.predicate, atom.terms, atom)

    @classmethod
    def from_terms(
        cls, base: HerbrandBase, name: str, terms: Sequence[str | None], written: AtomText | None = None
    ) -> "Question":
        """The question for atoms of a predicate with these terms; None stands for every one. Errors show `written`."""
        with _shown(written, None):
            predicate = base.language.predicate(name)
        if len(terms) != predicate.arity:
            what = f"{predicate.name} takes {predicate.arity} constants, the question has {len(terms)}"
            raise DataError(what, where=written and written.where)
        columns = []
        for i, term in enumerate(terms):
            with _shown(written, i):
                columns.append(_constants(base.language, predicate, i, term))
        return cls(base, predicate, tuple(columns))

    def __len__(self) -> int:
        return prod(map(len, self.columns))

    @property
    def open_position(self) -> int | None:
        """The only position with several constants, if there is one."""
        several = [i for i, column in enumerate(self.columns) if len(column) > 1]
        return several[0] if len(several) == 1 else None

    def codes(self) -> Codes:
        """All atoms that are asked for, ascending."""
        if len(self) > MOST_ASKED:
            raise DataError(f"the question asks for {len(self):,} atoms", hint="replace a ? by a constant")
        grids = np.meshgrid(*self.columns, indexing="ij")
        return np.sort(self.base.encode_columns(self.predicate, [grid.ravel() for grid in grids]))

    def asks_for(self, codes: Codes) -> Bool[np.ndarray, " atoms"]:
        """Which of some atoms (of this base, or of one that begins like it) are asked for."""
        index = self.base.language.predicate_index(self.predicate.name)
        start, end = self.base.offsets[index : index + 2]
        found = (codes >= start) & (codes < end)
        arguments = self.base.decode(codes[found])[1]
        inside = [np.isin(arguments[:, i], column) for i, column in enumerate(self.columns)]
        found[found] = np.logical_and.reduce(inside)
        return found


def question_text(base: HerbrandBase, code: Codes) -> str:
    """The question that asks for the last constant of an atom: `locatedIn(italy, ?)`."""
    ((predicate, constants),) = base.parts(code)
    terms = [*map(written_name, constants[:-1]), ANYTHING]
    return f"{written_name(predicate)}({', '.join(terms)})"


@contextmanager
def _shown(written: AtomText | None, term: int | None) -> Iterator[None]:
    """Errors show the term of the question that they are about, or (None) its predicate."""
    try:
        yield
    except DataError as error:
        if written is None:
            raise
        raise DataError(error.what, where=written.location(term), hint=error.hint) from None


def _constants(language: Language, predicate: Predicate, position: int, term: str | None) -> np.ndarray:
    """The constants that a term of a question stands for; hints say which there are, and how to write `?`."""
    domain = predicate.domains[position]
    members = language.members(domain)
    if term is None:
        return members
    some = [language.constants[member] for member in members[:MOST_NAMED]] + ["..."] * (len(members) > MOST_NAMED)
    has = f"domain '{domain.name}' has {', '.join(some)}" if some else f"domain '{domain.name}' is empty"
    try:
        constant = language.constant_id(term)
    except DataError as error:
        if len(term) > 1 and not term[0].isupper() and term[0] not in "_?":
            raise DataError(error.what, hint=error.hint or has) from None
        terms = [ANYTHING if i == position else "..." for i in range(predicate.arity)]
        hint = f"write ? for what is asked: {predicate.name}({', '.join(terms)})"  # it looks like a variable
        raise DataError(error.what, hint=f"{hint}; or {error.hint}" if error.hint else hint) from None
    if constant not in members:
        names = [language.constants[member] for member in members]
        what = f"constant '{term}' is outside domain '{domain.name}' (position {position + 1} of {predicate.name})"
        raise DataError(what, hint=nearest(term, names) or has)
    return np.array([constant])
