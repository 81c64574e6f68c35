"""A trained network, asked: questions such as `locatedIn(italy, ?)` -> atoms, and what an answer is."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from math import prod
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float64, Int64

from r2n.errors import DataError, counted, nearest
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.metrics import levels
from r2n.knowledge.atom_text import ANYTHING, AtomText, parse_atom, written_atom, written_name
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.logic.language import Domain, Language, Predicate
from r2n.prediction.shown_answers import answers_arrow, answers_html, answers_pandas, answers_polars

if TYPE_CHECKING:
    import pandas
    import polars

MOST_ASKED = 20_000_000
MOST_PRINTED = 10
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """An atom with its probability.

    A `known` atom has the probability of what is known; a `closed` one that is no fact is false, and has 0. `network`
    is the probability that the network predicts, calibrated where there is a calibration, and `logit` the
    network's logit before that. `reached`: a ground rule holds the atom (or the network reads no rules). Of an
    ensemble, the logit is the mean over its networks, and `spread` its standard deviation. `predicate` and `constants`
    are the atom's parts, by their names.
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

    @property
    def question(self) -> str:
        """The atom with its names quoted where they have to be, so that it can be asked."""
        return written_atom(self.predicate, self.constants)


@dataclass(frozen=True, slots=True)
class Answers(Sequence[Answer]):
    """The answers to a question, the most probable first.

    `asked` atoms were answered or refused, `refused` of them; `left_out` were not asked, for nothing is known of them
    and no ground rule reaches them; `hidden` are known, and were not to be told. `calibration` says on what the
    probabilities were calibrated; None: they were not. `columns` names the columns of the arguments in tables;
    `of_ensemble`: there is a spread in them.
    """

    items: tuple[Answer, ...]
    asked: int
    refused: int
    left_out: int = 0
    hidden: int = 0
    calibration: Calibrated | None = None
    columns: tuple[str, ...] = ()
    of_ensemble: bool = False

    @overload
    def __getitem__(self, index: int) -> Answer: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Answer]: ...
    def __getitem__(self, index: int | slice) -> Answer | Sequence[Answer]:
        """Some of them."""
        return self.items[index]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.items)

    def __iter__(self) -> Iterator[Answer]:
        """One after the other."""
        return iter(self.items)

    def __repr__(self) -> str:
        """How many there are, and the first of them, a line each."""
        lines = [f"{counted(len(self), 'answer')} to {counted(self.asked, 'atom')} asked"]
        for item in self.items[:MOST_PRINTED]:
            known = "" if item.known is None else f" (known: {str(item.known).lower()})"
            lines.append(f"  {item.atom} {item.probability:.4f}{' (closed)' if item.closed else known}")
        if len(self) > MOST_PRINTED:
            lines.append(f"  ... and {len(self) - MOST_PRINTED:,} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return answers_html(self)

    def to_arrow(self) -> pa.Table:
        """As a table of Arrow: a row for each answer, with the columns of `answer_table`, from `rank` on."""
        return answers_arrow(self)

    def to_pandas(self) -> "pandas.DataFrame":
        """As a data frame of pandas."""
        return answers_pandas(self)

    def to_polars(self) -> "polars.DataFrame":
        """As a data frame of polars."""
        return answers_polars(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """For whatever library reads Arrow tables: DuckDB, polars, pandas, pyarrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, eq=False)
class AnswerColumns:
    """What is said of atoms, column by column, in their order.

    `truths` has 1 for what is known to be true, 0 for what is stated or closed and so false, -1 for what is unknown.
    `network` is the probability that the network predicts, `spread` the deviation of the logits of an ensemble.
    """

    atoms: Codes
    truths: Int64[np.ndarray, " atoms"]
    is_stated: Bool[np.ndarray, " atoms"]
    logits: Float64[np.ndarray, " atoms"]
    reached: Bool[np.ndarray, " atoms"]
    refused: Bool[np.ndarray, " atoms"]
    network: Float64[np.ndarray, " atoms"]
    spread: Float64[np.ndarray, " atoms"] | None = None

    @property
    def probability(self) -> Float64[np.ndarray, " atoms"]:
        """That of what is known, else the network's."""
        return np.where(self.truths < 0, self.network, self.truths)

    @property
    def closed(self) -> Bool[np.ndarray, " atoms"]:
        """Whether an atom is false because its world is closed and it is no fact."""
        return (self.truths == 0) & ~self.is_stated

    def kept(self, which: Bool[np.ndarray, " atoms"] | Int64[np.ndarray, " kept"]) -> "AnswerColumns":
        """Those of some atoms, by a mask or by their places."""
        columns: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        kept = {name: None if column is None else column[which] for name, column in columns.items()}
        return replace(self, **kept)

    def unknown(self) -> "AnswerColumns":
        """Those of the atoms that are neither stated nor closed."""
        return self.kept(self.truths < 0)

    def ranked(self, top: int | None = None) -> "AnswerColumns":
        """The `top` atoms that are not refused: known to be true first, known to be false last, else by logit.

        Those whose logits are equal, as in a ranking, stay in order.
        """
        certainty = np.where(self.truths < 0, 0, 2 * self.truths - 1)
        order = np.lexsort((-levels(self.logits), -certainty))
        return self.kept(order[~self.refused[order]][:top])

    def items(self, base: HerbrandBase) -> tuple[Answer, ...]:
        """An answer for each atom."""
        known = [bool(truth) if stated else None for truth, stated in zip(self.truths, self.is_stated, strict=True)]
        columns = (self.probability, self.closed, self.network, self.logits, self.reached)
        spread = [None] * len(known) if self.spread is None else self.spread.tolist()
        said = zip(base.names(self.atoms), known, spread, *(column.tolist() for column in columns), strict=True)
        return tuple(
            Answer(name, probability, truth, closed, network, logit, reached, deviation, *parts)
            for (name, truth, deviation, probability, closed, network, logit, reached), parts in zip(
                said, base.parts(self.atoms), strict=True
            )
        )


@dataclass(frozen=True, eq=False)
class Question:
    """The constants (ids) that each position of a predicate may have."""

    base: HerbrandBase
    predicate: Predicate
    columns: tuple[np.ndarray, ...]

    @classmethod
    def parse(cls, base: HerbrandBase, text: str) -> "Question":
        """`locatedIn(italy, ?)`: each `?` stands for every constant of its position's domain."""
        atom = parse_atom(text)
        if atom is None or not atom.truth:
            raise DataError(
                f"'{text}' is no question",
                hint="write PREDICATE(CONSTANT, ...) with ? for what is asked"
                + (f': "{question_text(base, np.zeros(1, np.int64))}"' if base.size else ""),
            )
        return cls.of(base, atom.predicate, atom.terms, atom)

    @classmethod
    def of(
        cls, base: HerbrandBase, name: str, terms: Sequence[str | None], written: AtomText | None = None
    ) -> "Question":
        """The question for a predicate's atoms with these constants; None stands for every one.

        Errors show where in the text it is, if it was `written`.
        """
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
        """The number of atoms that are asked for."""
        return prod(map(len, self.columns))

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
        raise DataError(error.what, where=written.place(term), hint=error.hint) from None


def _constant(language: Language, predicate: Predicate, position: int, term: str) -> int:
    """The id of a constant; a name that is none but looks like a variable is answered with how to ask."""
    try:
        return language.constant_id(term)
    except DataError as error:
        if len(term) > 1 and not term[0].isupper() and term[0] not in "_?":
            raise DataError(error.what, hint=error.hint or _some(language, predicate.domains[position])) from None
        terms = [ANYTHING if i == position else "..." for i in range(predicate.arity)]
        hint = f"write ? for what is asked: {predicate.name}({', '.join(terms)})"
        raise DataError(error.what, hint=f"{hint}; or {error.hint}" if error.hint else hint) from None


def _constants(language: Language, predicate: Predicate, position: int, term: str | None) -> np.ndarray:
    members = language.members(predicate.domains[position])
    if term is None:
        return members
    constant = _constant(language, predicate, position, term)
    if constant not in members:
        names = [language.constants[member] for member in members]
        domain = predicate.domains[position].name
        raise DataError(
            f"constant '{term}' is outside domain '{domain}' (position {position + 1} of {predicate.name})",
            hint=nearest(term, names) or _some(language, predicate.domains[position]),
        )
    return np.array([constant])


def _some(language: Language, domain: Domain) -> str:
    """A few of a domain's constants, for who knows none."""
    members = language.members(domain)
    names = [language.constants[member] for member in members[:MOST_NAMED]]
    more = ["..."] * (len(members) > MOST_NAMED)
    return f"domain '{domain.name}' has {', '.join([*names, *more])}" if names else f"domain '{domain.name}' is empty"
