"""Answers as tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from html import escape
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float64, Int64
from torch import Tensor, ones_like

from r2n.data.atom_text import ANYTHING, AtomText, parse_atom, written_atom, written_name
from r2n.data.herbrand import Codes, HerbrandBase
from r2n.errors import ConfigError, DataError, counted, nearest
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.metrics import levels
from r2n.explanation.text import printable, probability_text, shortened
from r2n.logic.language import Domain, Language, Predicate
from r2n.network.factor_graph import FactorGraph
from r2n.network.r2n import R2N

if TYPE_CHECKING:
    import pandas
    import polars


def supported(
    graph: FactorGraph, sources: Bool[Tensor, " atoms"], known: Bool[Tensor, " atoms"], steps: int
) -> Bool[Tensor, " atoms"]:
    """The atoms that ground rules connect, within `steps`, with a source, or with atoms that are all known.

    Each reasoning layer is a step: it leads from an atom to the others of its ground rules. A source is an open atom of
    constants that the training had, or an open fact. Closed atoms are none: that a border is there says nothing of its
    two sides. But a ground rule that misses one atom only supports that.
    """
    found = sources.clone()
    for _ in range(steps):
        before = found.clone()
        for rows in graph.neighbours:
            missing = ~known[rows]
            found[rows[missing & (_distinct(rows, missing) == 1)]] = True
            found[rows[before[rows].any(dim=1)]] = True
        if bool((found == before).all()):
            break
    return found


def _distinct(
    rows: Int64[Tensor, "rules positions"], which: Bool[Tensor, "rules positions"]
) -> Int64[Tensor, "rules 1"]:
    """How many different atoms each ground rule has among the marked positions; one may stand at several."""
    ordered, order = rows.sort(dim=1)
    is_first = ones_like(which)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return (which.gather(1, order) & is_first).sum(dim=1, keepdim=True)


def no_answer(model: R2N, base: HerbrandBase, codes: Codes, *, does_without_vectors: bool) -> DataError:
    """Why the first of some atoms has no answer: a constant of it is new to the network."""
    assert model.trained_ids is not None
    arguments, ids = base.decode(codes[:1])[1][0], model.trained_ids.numpy()
    constant = next(base.language.constants[c] for c in arguments if c >= 0 and ids[c] < 0)
    more = f", nor can {counted(len(codes) - 1, 'other atom')}" if len(codes) > 1 else ""
    if not model.layers:
        why, hint = "the network has no reasoning layer", "train one with model.layers of 1 or more"
    elif not does_without_vectors:
        why = "the network was trained without hiding, so it never learned to do without a vector"
        hint = "train one with training.hiding above 0, or with model.evidence_input = only"
    else:
        why = "no ground rule connects the atom with anything that is known"
        hint = f"tell facts about '{constant}' that lead through the rules to what the training knew"
    return DataError(
        f"{base.names(codes[:1])[0]} cannot be answered{more}: '{constant}' is no constant of the training, and {why}",
        hint=hint,
    )


MOST_ROWS = 50
LONGEST_NAME = 200
BAR = 80  # pixels
TYPES = {
    "probability": pa.float64(),
    "known": pa.bool_(),
    "closed": pa.bool_(),
    "network": pa.float64(),
    "logit": pa.float64(),
    "spread": pa.float64(),
    "reached": pa.bool_(),
}
FIXED = frozenset({"row", "rank", "predicate", "question", "atom", "label", *TYPES})
"""Columns that tables of answers have besides those of the arguments."""


def argument_names(
    language: Language, columns: Mapping[str, tuple[str, ...]], predicates: Iterable[str]
) -> tuple[str, ...]:
    """The names of the columns that hold the arguments of atoms of these predicates (of none: of any).

    They are those of the table that the facts came from (`columns`), else of the domains; a name that stands there
    twice, or that such a table has for another column, is numbered: `person_1`, `person_2`. Where the predicates
    differ in them, the columns are `argument_1`, ...
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


def answers_arrow(answers: "Answers") -> pa.Table:
    """A row for each answer; there is a `spread` where there is an ensemble."""
    arity = max((len(item.constants) for item in answers), default=len(answers.columns))
    arguments = answers.columns or unnamed_arguments(arity)
    columns: dict[str, Any] = {
        "rank": pa.array(range(1, len(answers) + 1), pa.int64()),
        "predicate": pa.array([item.predicate for item in answers], pa.string()),
    }
    for i, argument in enumerate(arguments):
        names = [item.constants[i] if i < len(item.constants) else None for item in answers]
        columns[argument] = pa.array(names, pa.string())
    for name, kind in TYPES.items():
        columns[name] = pa.array([getattr(item, name) for item in answers], kind)
    if not (answers.of_ensemble or _of_ensemble(answers)):
        del columns["spread"]
    return pa.table(columns)


def answers_pandas(answers: "Answers") -> "pandas.DataFrame":
    """What is not known is missing (`pandas.NA`), and neither true nor false."""
    boolean = _library("pandas").BooleanDtype()
    return answers_arrow(answers).to_pandas(types_mapper={pa.bool_(): boolean}.get)


def answers_polars(answers: "Answers") -> "polars.DataFrame":
    """The same table, without a copy where polars needs none."""
    return _library("polars").from_arrow(answers_arrow(answers))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        hint = f"pip install {name}, or take to_arrow(), which needs no more than r2n has"
        raise ConfigError(f"answers as a table of {name} need {name}, which is not installed", hint=hint) from None


def _of_ensemble(answers: Sequence["Answer"]) -> bool:
    return any(item.spread is not None for item in answers)


def answers_html(answers: "Answers") -> str:
    """A table for a notebook, in the colours of the page around it; names are text, never markup."""
    heads = ["", "atom", "probability", "", "known", "predicted", *["logit ± spread"] * _of_ensemble(answers)]
    shown = "".join(_row(i, item) for i, item in enumerate(answers.items[:MOST_ROWS], start=1))
    head = "".join(f'<th scope="col" style="text-align:left">{text}</th>' for text in heads)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{shown}</tbody></table>"
    return f'<div style="overflow-x:auto">{table}<p>{escape("; ".join(_foot(answers)))}</p></div>'


def _foot(answers: "Answers") -> list[str]:
    """What stands below the table."""
    texts = [f"{counted(len(answers), 'answer')} to {counted(answers.asked, 'atom')} asked"]
    texts += [f"the first {MOST_ROWS} are shown"] * (len(answers) > MOST_ROWS)
    texts += [f"{counted(answers.left_out, 'atom')} left out, which nothing is known of"] * bool(answers.left_out)
    texts += [f"{counted(answers.hidden, 'atom')} not shown, known already"] * bool(answers.hidden)
    texts += [f"{counted(answers.refused, 'atom')} of new constants cannot be answered"] * bool(answers.refused)
    calibrated = answers.calibration
    return [*texts, "not calibrated" if calibrated is None else calibrated.in_words]


def _row(number: int, item: "Answer") -> str:
    atom = escape(shortened(printable(item.atom), LONGEST_NAME))
    said = [known_text(item), probability_text(item.network)]
    said += [] if item.spread is None else [f"{item.logit:.2f} ± {item.spread:.2f}"]
    cells = [
        str(number),
        f"<code><bdi>{atom}</bdi></code>",
        escape(probability_text(item.probability)),
        _bar(item.probability),
        *map(escape, said),
    ]
    return "".join(["<tr>", *(f'<td style="text-align:left">{cell}</td>' for cell in cells), "</tr>"])


def _bar(probability: float) -> str:
    whole, part = f'width="{BAR}" height="8"', f'width="{BAR * probability:.1f}" height="8"'
    track = f'<rect {whole} rx="2" fill="currentColor" fill-opacity="0.15"/>'
    return f'<svg {whole} aria-hidden="true">{track}<rect {part} rx="2" fill="currentColor" fill-opacity="0.7"/></svg>'


def known_text(item: "Answer") -> str:
    """What is known of an atom, and whether rules speak of it: an atom of a closed predicate that is no fact is false.

    What is known needs no rule, so that only an unknown atom says that it has none.
    """
    if item.closed and not item.known:
        return "closed"
    if item.known is not None:
        return "true" if item.known else "false"
    return "" if item.reached else "(no ground rule)"


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
