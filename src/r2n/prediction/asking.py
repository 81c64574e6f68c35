"""A trained network, asked: questions -> the atoms that each is answered by, and one pass for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from r2n.errors import DataError
from r2n.knowledge.herbrand import Codes
from r2n.prediction.answers import AnswerColumns, Answers, Question

if TYPE_CHECKING:
    from r2n.prediction.predictor import Predictor


@dataclass(frozen=True, eq=False)
class Asked:
    """A question, and which of its answers are told: the `top` ones, only what is `unknown`, or `everything`."""

    question: Question
    everything: bool = False
    top: int | None = None
    unknown: bool = False


@dataclass(frozen=True, eq=False)
class Told:
    """What is told of the atoms of a predicate that answer a question, ranked, and how many others there are."""

    predicate: str
    columns: AnswerColumns
    asked: int
    refused: int
    left_out: int
    hidden: int

    def answers(self, predictor: "Predictor") -> Answers:
        """As answers in words."""
        items, names = self.columns.items(predictor.base), predictor.argument_names([self.predicate])
        counts = (self.asked, self.refused, self.left_out, self.hidden)
        return Answers(items, *counts, predictor.calibration, names, self.columns.spread is not None)


@dataclass(frozen=True, eq=False)
class _Wanted:
    """The atoms that a question is answered by; `is_sifted`: of these, what nothing is known of is left out."""

    codes: Codes
    is_sifted: bool = False


def ask_together(predictor: "Predictor", asked: Sequence[Asked]) -> list[Told | DataError]:
    """What is told to each of some questions, in one pass; or why one of them has no answer."""
    wanted = [_wanted(predictor, one) for one in asked]
    there = [part.codes for part in wanted if isinstance(part, _Wanted)]
    if not there:
        return [part for part in wanted if isinstance(part, DataError)]
    union = there[0] if len(there) == 1 else np.unique(np.concatenate(there))
    columns = predictor.columns(union)
    return [
        part if isinstance(part, DataError) else _told(predictor, one, part, columns)
        for one, part in zip(asked, wanted, strict=True)
    ]


def _wanted(predictor: "Predictor", asked: Asked) -> _Wanted | DataError:
    try:
        return _atoms(predictor, asked.question, everything=asked.everything)
    except DataError as error:
        return error


def _atoms(predictor: "Predictor", question: Question, *, everything: bool) -> _Wanted:
    """The atoms that a question is answered by: with `?`, those that are known or that ground rules reach."""
    if everything or len(question) == 1 or not predictor.model.layers:
        return _Wanted(question.codes())
    told_of = predictor.told_of
    if told_of is None:
        return _Wanted(question.codes(), is_sifted=True)
    wanted = told_of[question.asks_for(told_of)]
    if not len(wanted) and predictor.model.trained_ids is not None:
        predictor.logits(question.codes())  # where it is a new constant that stands in the way, that is said
    return _Wanted(wanted)


def _told(predictor: "Predictor", asked: Asked, wanted: _Wanted, columns: AnswerColumns) -> Told | DataError:
    """What is told to one question, of the columns of all."""
    is_all = len(columns.atoms) == len(wanted.codes)
    own = columns if is_all else columns.kept(np.searchsorted(columns.atoms, wanted.codes))
    if own.refused.any() and own.refused.all():
        return predictor.no_answer(wanted.codes)
    if wanted.is_sifted:
        own = own.kept(own.reached | own.is_stated)
    told = own.unknown() if asked.unknown else own
    number = len(own.atoms)
    left_out = len(asked.question) - number
    refused, hidden = int(own.refused.sum()), number - len(told.atoms)
    return Told(asked.question.predicate.name, told.ranked(asked.top), number, refused, left_out, hidden)
