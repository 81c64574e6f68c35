"""Example answers for a report: the most confident right ones and the worst ones of a split, with explanations."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from r2n.data.atom_text import written_atom
from r2n.data.herbrand import Codes, Side
from r2n.errors import R2NError
from r2n.evaluation.by_query import ByQuery, ClassifiedQueries, RankedQueries
from r2n.evaluation.ranking import Filter, row_scores
from r2n.explanation.records import Explanation
from r2n.model.model import Model

MOST = 3
MOST_COMPARED = 50  # of the queries that are ranked first, spread evenly: the most confident of these are shown


@dataclass(frozen=True, slots=True)
class ExampleAnswer:
    """An answer to a query, its truth (None if unknown), what is remarkable about it, and why it is given."""

    atom: str
    probability: float
    truth: bool | None
    text: str = ""
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """Answers of one kind, and a sentence that says which."""

    heading: str
    text: str
    answers: tuple[ExampleAnswer, ...]


@dataclass(frozen=True)
class _Selection:
    """Queries by their codes; `instead` are the atoms that were ranked first instead, by their codes."""

    heading: str
    text: str
    atoms: Codes
    remarks: tuple[str, ...] = ()
    instead: tuple[int, ...] = ()


def example_answers(
    predictor: Model, queries: ByQuery, notes: list[str], most: int | None = None
) -> tuple[AnswerGroup, ...]:
    """The most confident right answers and the worst ones; at most `most` of them are explained.

    Why an answer is not explained is added to the notes.
    """
    is_ranked = isinstance(queries, RankedQueries)
    selections = _ranked(predictor, queries) if is_ranked else _classified(predictor, queries)
    base, groups, left = predictor.base, [], most
    for part in selections:
        columns, answers = predictor.columns(part.atoms), []
        for i, code in enumerate(part.atoms.tolist()):
            name, text = base.names(part.atoms[i : i + 1])[0], part.remarks[i] if part.remarks else ""
            rival = part.instead[i] if part.instead and part.instead[i] != code else None
            if rival is not None:
                text += f"; first is {base.names(np.array([rival], np.int64))[0]}"
            explanation = None if left == 0 else _explained(predictor, code, rival, notes)
            left = None if left is None else max(left - 1, 0)
            truth = True if is_ranked else bool(queries.truth[np.searchsorted(queries.atoms, code)])
            answers.append(ExampleAnswer(name, float(columns.network[i]), truth, text, explanation))
        groups += [AnswerGroup(part.heading, part.text, tuple(answers))] if answers else []
    shown = sum(len(group.answers) for group in groups)
    if most is not None and shown > most:
        notes.append(f"with so many rules, {most} of {shown} answers are explained; r2n explain explains any")
    return tuple(groups)


def _explained(predictor: Model, code: int, rival: int | None, notes: list[str]) -> Explanation | None:
    """Why an atom is answered as it is; or why a rival is ranked above it."""
    atom, other = (
        None if each is None else written_atom(*predictor.base.parts(np.array([each], np.int64))[0])
        for each in ((code, None) if rival is None else (rival, code))
    )
    assert atom is not None
    try:
        return predictor.explain(atom, against=other)
    except R2NError as error:
        notes.append(f"{atom} is not explained: {error.what}")
        return None


def _classified(predictor: Model, queries: ClassifiedQueries) -> Iterator[_Selection]:
    believed = predictor.columns(queries.atoms).network > 0.5  # as shown: a calibration may move it
    is_right, confidence = believed == queries.truth, np.abs(queries.logits)
    right = _most(confidence, np.flatnonzero(is_right & queries.truth))
    yield _Selection("Surest right answers", "True atoms with the highest probabilities.", queries.atoms[right])
    wrong = _most(confidence, np.flatnonzero(~is_right))
    if len(wrong):
        text = "Answers on the wrong side of 0.5, the most confident first."
        yield _Selection("Surest wrong answers", text, queries.atoms[wrong])
        return
    nearest = _most(-confidence, np.arange(len(queries.atoms)))
    text = "No answer is on the wrong side of 0.5. These are the nearest to it."
    yield _Selection("Least sure answers", text, queries.atoms[nearest])


def _most(values: np.ndarray, which: np.ndarray) -> np.ndarray:
    """The indices of the largest values; among equals, the first."""
    return which[np.argsort(-values[which], kind="stable")[:MOST]]


def _ranked(predictor: Model, queries: RankedQueries) -> Iterator[_Selection]:
    first = np.unique(queries.atoms[queries.pessimistic == 1])
    compared = first[np.linspace(0, len(first) - 1, min(MOST_COMPARED, len(first))).astype(np.int64)]
    surest = compared[_most(predictor.logits(compared), np.arange(len(compared)))] if len(compared) else compared
    sample = " of an even sample" if len(compared) < len(first) else ""
    yield _Selection("Surest right answers", f"True atoms that rank first, with the highest logits{sample}.", surest)
    ranks, base = queries.realistic, predictor.base
    order = np.argsort(-ranks, kind="stable")
    order = order[ranks[order] > 1]
    last = order[np.sort(np.unique(queries.atoms[order], return_index=True)[1])][:MOST]  # each atom once
    instead, remarks = [], []
    for i in last:
        position = int(queries.positions[i])
        side = Side.of(base, int(base.decode(queries.atoms[i : i + 1])[0][0]), position)
        instead.append(_first_ranked(predictor, side, int(queries.atoms[i])))
        remarks.append(f"rank {ranks[i]:,.10g} of {side.candidates:,} at position {position + 1}")
    text = "True atoms with the worst ranks. The atom that ranks first instead is explained in contrast to the truth."
    yield _Selection("Farthest from the truth", text, queries.atoms[last], tuple(remarks), tuple(instead))


def _first_ranked(predictor: Model, side: Side, code: int) -> int:
    """The highest-ranked candidate of a query pattern that is not known to be true."""
    row, _ = side.located(np.array([code]))
    scores = row_scores(predictor.scores, side, row)[0].astype(np.float64)
    codes, known = row[0] + side.stride * np.arange(side.candidates), Filter.of(predictor.problem).facts
    scores[np.isin(codes, known[known != code])] = -np.inf
    return int(codes[scores.argmax()])
