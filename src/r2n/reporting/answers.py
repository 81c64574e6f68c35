"""Example answers for a report: the most confident right ones and the worst ones of a split, with explanations."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from r2n.data.atom_text import written_atom
from r2n.data.herbrand import QueryPattern
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


_Selection = tuple[str, str, list[tuple[int, str, int | None]]]
"""A heading, a sentence, and queries: the code, a remark, and the code of the atom that is ranked first instead."""


def example_answers(
    predictor: Model, queries: ByQuery, notes: list[str], most: int | None = None
) -> tuple[AnswerGroup, ...]:
    """The most confident right answers and the worst ones; `most` are explained, and `notes` say why others are not."""
    is_ranked = isinstance(queries, RankedQueries)
    selections = _ranked(predictor, queries) if is_ranked else _classified(predictor, queries)
    base, groups, shown = predictor.base, [], 0
    for heading, sentence, chosen in selections:
        codes, answers = np.array([code for code, _, _ in chosen], np.int64), []
        probabilities = predictor.columns(codes).network
        for (code, text, rival), name, probability in zip(chosen, base.names(codes), probabilities, strict=True):
            explanation = None
            if rival is not None:
                text += f"; first is {base.names(np.array([rival], np.int64))[0]}"
            if most is None or shown < most:
                pair = [code] if rival is None else [rival, code]  # why it is, or why a rival is ranked above it
                atom, *other = (written_atom(*parts) for parts in base.parts(np.array(pair, np.int64)))
                try:
                    explanation = predictor.explain(atom, against=next(iter(other), None))
                except R2NError as error:
                    notes.append(f"{atom} is not explained: {error.what}")
            shown += 1
            truth = True if is_ranked else bool(queries.truth[np.searchsorted(queries.atoms, code)])
            answers.append(ExampleAnswer(name, float(probability), truth, text, explanation))
        groups += [AnswerGroup(heading, sentence, tuple(answers))] if answers else []
    if most is not None and shown > most:
        notes.append(f"with so many rules, {most} of {shown} answers are explained; r2n explain explains any")
    return tuple(groups)


def _classified(predictor: Model, queries: ClassifiedQueries) -> Iterator[_Selection]:
    believed = predictor.columns(queries.atoms).network > 0.5  # as shown: a calibration may move it
    is_right, confidence = believed == queries.truth, np.abs(queries.logits)

    def largest(values: np.ndarray, which: np.ndarray) -> list[tuple[int, str, int | None]]:
        order = which[np.argsort(-values[which], kind="stable")[:MOST]]  # among equals, the first
        return [(code, "", None) for code in queries.atoms[order].tolist()]

    right = largest(confidence, np.flatnonzero(is_right & queries.truth))
    yield "Surest right answers", "True atoms with the highest probabilities.", right
    if not is_right.all():
        text = "Answers on the wrong side of 0.5, the most confident first."
        yield "Surest wrong answers", text, largest(confidence, np.flatnonzero(~is_right))
        return
    text = "No answer is on the wrong side of 0.5. These are the nearest to it."
    yield "Least sure answers", text, largest(-confidence, np.arange(len(queries.atoms)))


def _ranked(predictor: Model, queries: RankedQueries) -> Iterator[_Selection]:
    first = np.unique(queries.atoms[queries.pessimistic == 1])
    compared = first[np.linspace(0, len(first) - 1, min(MOST_COMPARED, len(first))).astype(np.int64)]
    if len(compared):
        compared = compared[np.argsort(-predictor.logits(compared), kind="stable")]
    sample = " of an even sample" if min(MOST_COMPARED, len(first)) < len(first) else ""
    text = f"True atoms that rank first, with the highest logits{sample}."
    yield "Surest right answers", text, [(code, "", None) for code in compared[:MOST].tolist()]
    ranks, base, known, last = queries.realistic, predictor.base, Filter.from_problem(predictor.problem).facts, []
    order = np.argsort(-ranks, kind="stable")
    order = order[ranks[order] > 1]
    for i in order[np.sort(np.unique(queries.atoms[order], return_index=True)[1])][:MOST]:  # each atom once
        code, position = int(queries.atoms[i]), int(queries.positions[i])
        pattern = QueryPattern.from_base(base, int(base.decode(queries.atoms[i : i + 1])[0][0]), position)
        row, _ = pattern.located(np.array([code]))
        scores = row_scores(predictor.scores, pattern, row)[0].astype(np.float64)
        codes = row[0] + pattern.stride * np.arange(pattern.candidates)
        scores[np.isin(codes, known[known != code])] = -np.inf
        rival = int(codes[scores.argmax()])  # the highest-ranked candidate that is not known to be true
        remark = f"rank {ranks[i]:,.10g} of {pattern.candidates:,} at position {position + 1}"
        last.append((code, remark, None if rival == code else rival))
    text = "True atoms with the worst ranks. The atom that ranks first instead is explained in contrast to the truth."
    yield "Farthest from the truth", text, last
