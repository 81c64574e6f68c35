"""Runs -> pages: which answers to queries are worth a look: the surest that are right, and the worst.

Only queries of one split are looked at, and only a handful of their answers is explained.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from r2n.data.atom_text import written_atom
from r2n.data.herbrand import Codes, HerbrandBase, Side
from r2n.evaluation.by_query import ByQuery, ClassifiedQueries, RankedQueries
from r2n.evaluation.ranking import Filter, row_scores
from r2n.explanation.records import Explanation
from r2n.model.model import Model
from r2n.reporting.records import ToldAnswer, ToldAnswers

MOST = 3
MOST_COMPARED = 50  # of the queries that are ranked first, evenly from all: the surest of these are told

Explain = Callable[[str, str | None], Explanation | None]
"""An atom, and maybe another to hold against it -> why it is answered as it is, where that can be told."""


@dataclass(frozen=True)
class Picked:
    """Queries to tell, by their codes, under a heading; `instead` are those that were answered instead, if any."""

    heading: str
    words: str
    atoms: Codes
    about: tuple[str, ...] = ()
    instead: tuple[int, ...] = ()


def told_answers(predictor: Model, queries: ByQuery, explain: Explain) -> tuple[ToldAnswers, ...]:
    """The surest right answers and the worst ones, each with its reasons."""
    is_ranked = isinstance(queries, RankedQueries)
    picked = _ranked(predictor, queries) if is_ranked else _classified(predictor, queries)
    return tuple(_told(predictor, queries, part, explain) for part in picked if len(part.atoms))


def _classified(predictor: Model, queries: ClassifiedQueries) -> Iterator[Picked]:
    believed = predictor.columns(queries.atoms).network > 0.5  # as it is told; a calibration may move it
    is_right, sure = believed == queries.truth, np.abs(queries.logits)
    right = _most(sure, np.flatnonzero(is_right & queries.truth))
    yield Picked("Surest right answers", "True atoms with the highest probabilities.", queries.atoms[right])
    wrong = _most(sure, np.flatnonzero(~is_right))
    if len(wrong):
        words = "Answers on the wrong side of 0.5, the surest first."
        yield Picked("Surest wrong answers", words, queries.atoms[wrong])
        return
    nearest = _most(-sure, np.arange(len(queries.atoms)))
    words = "No answer is on the wrong side of 0.5. These are the nearest to it."
    yield Picked("Least sure answers", words, queries.atoms[nearest])


def _most(values: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Those with the largest values; of equals, the first."""
    return which[np.argsort(-values[which], kind="stable")[:MOST]]


def _ranked(predictor: Model, queries: RankedQueries) -> Iterator[Picked]:
    first = np.unique(queries.atoms[queries.pessimistic == 1])
    compared = first[np.linspace(0, len(first) - 1, min(MOST_COMPARED, len(first))).astype(np.int64)]
    surest = compared[_most(predictor.logits(compared), np.arange(len(compared)))] if len(compared) else compared
    words = "True atoms in the first place of a row, with the highest logits"
    words += " of an even selection." if len(compared) < len(first) else "."
    yield Picked("Surest right answers", words, surest)
    ranks = queries.realistic
    order = np.argsort(-ranks, kind="stable")
    order = order[ranks[order] > 1]
    last = order[np.sort(np.unique(queries.atoms[order], return_index=True)[1])][:MOST]  # each atom once
    instead = [_first_place(predictor, int(queries.atoms[i]), int(queries.positions[i])) for i in last]
    about = tuple(_place_words(predictor.base, queries, int(i)) for i in last)
    words = "True atoms with the worst ranks. What stands in the first place instead is explained against the truth."
    yield Picked("Farthest from the truth", words, queries.atoms[last], about, tuple(instead))


def _place_words(base: HerbrandBase, queries: RankedQueries, i: int) -> str:
    predicate = int(base.decode(queries.atoms[i : i + 1])[0][0])
    position = int(queries.positions[i])
    return f"rank {queries.realistic[i]:,.10g} of {base.shapes[predicate][position]:,} at position {position + 1}"


def _first_place(predictor: Model, code: int, position: int) -> int:
    """The atom that stands first in the row of a query, of those that are not known to be true."""
    trained = predictor
    side = Side.of(predictor.base, int(predictor.base.decode(np.array([code]))[0][0]), position)
    row, _ = side.located(np.array([code]))
    scores = row_scores(trained.scores, side, row)[0].astype(np.float64)
    codes = row[0] + side.stride * np.arange(side.candidates)
    known = Filter.of(trained.problem).facts
    scores[np.isin(codes, known[known != code])] = -np.inf
    return int(codes[scores.argmax()])


def _told(predictor: Model, queries: ByQuery, picked: Picked, explain: Explain) -> ToldAnswers:
    base = predictor.base
    columns = predictor.columns(picked.atoms)
    names, instead = base.names(picked.atoms), base.names(np.array(picked.instead, np.int64))
    truths = _truths(queries, picked.atoms)
    answers = []
    for i, (name, truth) in enumerate(zip(names, truths, strict=True)):
        about, other = (picked.about[i] if picked.about else ""), (instead[i] if instead else None)
        if other is None or other == name:
            why = explain(atom_text(base, int(picked.atoms[i])), None)
        else:
            about += f"; first stands {other}"
            why = explain(atom_text(base, picked.instead[i]), atom_text(base, int(picked.atoms[i])))
        answers.append(ToldAnswer(name, float(columns.network[i]), truth, about, why))
    return ToldAnswers(picked.heading, picked.words, tuple(answers))


def _truths(queries: ByQuery, atoms: Codes) -> Sequence[bool]:
    if isinstance(queries, RankedQueries):
        return [True] * len(atoms)
    return queries.truth[np.searchsorted(queries.atoms, atoms)].tolist()


def atom_text(base: HerbrandBase, code: int) -> str:
    """The atom with its names quoted where they have to be, so that it can be read again."""
    return written_atom(*base.parts(np.array([code], np.int64))[0])
