"""A run, served: all that is known and predicted of one constant, and what is around it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from r2n.data.atom_text import ANYTHING, written_name
from r2n.data.herbrand import Codes
from r2n.data.knowledge_base import Evidence
from r2n.model.answers import Question
from r2n.model.model import Asked, Model, Told, ask_together
from r2n.serving.constants import domains_of, find_constant, positions_of
from r2n.serving.limits import Limits
from r2n.serving.replies import Reply
from r2n.serving.session import Session

MOST_FACTS = 200
MOST_QUESTIONS = 60
MOST_AROUND = 40  # facts of the constant that are drawn
MOST_BETWEEN = 80  # and facts between those that it is connected with
MOST_PREDICTED = 10
PROBABLE = 0.5


def about_constant(session: Session, asked: Mapping[str, Any]) -> Reply:
    """What is known of a constant, what is predicted, its features, and what is around it."""
    predictor, language = session.predictor, session.predictor.base.language
    constant = find_constant(language, asked["name"])
    if isinstance(constant, Reply):
        return constant
    own = _facts_with(predictor, np.array([constant]))
    predictions = _predictions(predictor, constant, asked["top"], session.limits)
    return Reply.of(
        {
            "name": asked["name"],
            "domains": domains_of(language, constant),
            "facts": _told_facts(predictor, own.atoms[:MOST_FACTS], own.truth[:MOST_FACTS]),
            "facts_total": len(own.atoms),
            "predictions": predictions,
            "features": _features(predictor, constant),
            "neighbourhood": _Neighbourhood(predictor, constant).drawn(own, predictions),
        }
    )


def _facts_with(predictor: Model, constants: np.ndarray) -> Evidence:
    """What is known of atoms that name one of some constants."""
    known = predictor.problem.train
    which = np.isin(predictor.base.decode(known.atoms)[1], constants).any(axis=1)
    return Evidence(known.atoms[which], known.truth[which])


def _told_facts(predictor: Model, codes: Codes, truth: np.ndarray) -> list[dict[str, Any]]:
    predicates = predictor.base.language.predicates
    index = predictor.base.decode(codes)[0].tolist()
    rows = zip(predictor.base.names(codes), index, truth.tolist(), strict=True)
    return [{"atom": name, "predicate": predicates[i].name, "truth": true} for name, i, true in rows]


def _predictions(predictor: Model, constant: int, top: int, limits: Limits) -> list[dict[str, Any]]:
    """The most probable unknown atoms with the constant, by predicate and position."""
    base, asked, names, candidates = predictor.base, [], [], 0
    for index, position in positions_of(base.language, constant):
        predicate = base.language.predicates[index]
        terms = [base.language.constants[constant] if i == position else None for i in range(predicate.arity)]
        question = Question.of(base, predicate.name, terms)
        if predicate.closed or len(asked) == MOST_QUESTIONS or candidates + len(question) > limits.candidates:
            continue
        candidates += len(question)
        asked.append(Asked(question, top=top, unknown=True))
        names.append((predicate.name, _written(predicate.name, terms)))
    found = []
    for (predicate, text), told in zip(names, ask_together(predictor, asked), strict=True):
        if isinstance(told, Told) and len(told.columns.atoms):
            answers = [asdict(item) for item in told.answers(predictor)]
            found.append({"predicate": predicate, "question": text, "answers": answers})
    return sorted(found, key=lambda part: -part["answers"][0]["probability"])


def _written(predicate: str, terms: Sequence[str | None]) -> str:
    written = [ANYTHING if term is None else written_name(term) for term in terms]
    return f"{written_name(predicate)}({', '.join(written)})"


def _features(predictor: Model, constant: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, given in predictor.problem.knowledge.features.items():
        for row in np.flatnonzero(given.constants == constant).tolist():
            if given.texts is not None:
                found.append({"domain": name, "name": "text", "text": given.texts[row], "size": None})
            if given.vectors is not None:
                size = int(np.prod(given.vectors.shape[1:]))
                found.append({"domain": name, "name": "vector", "text": None, "size": size})
    return found


class _Neighbourhood:
    """Constants around one, and what links them, as far as a drawing has room."""

    def __init__(self, predictor: Model, centre: int) -> None:
        """Around this constant."""
        self.predictor, self.centre = predictor, centre
        self.names = predictor.base.language.constants
        self.constants: dict[int, bool] = {centre: True}
        self.links: list[dict[str, Any]] = []

    def drawn(self, own: Evidence, predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Facts of the constant, facts between its neighbours, and its most probable predictions."""
        base = self.predictor.base
        true = own.atoms[own.truth]
        self._link(true[:MOST_AROUND])
        members = np.array(sorted(self.constants))
        around = _facts_with(self.predictor, members[members != self.centre])
        arguments = base.decode(around.atoms)[1]
        inside = (np.isin(arguments, members) | (arguments < 0)).all(axis=1) & around.truth
        self._link(around.atoms[inside & ~np.isin(around.atoms, true)][:MOST_BETWEEN])
        answers = [answer for part in predictions for answer in part["answers"] if answer["probability"] >= PROBABLE]
        answers = sorted(answers, key=lambda answer: -answer["probability"])[:MOST_PREDICTED]
        for answer in answers:
            codes = Question.parse(base, answer["atom"]).codes()
            self._link(codes, answer["probability"])
        told = [{"name": self.names[i], "known": known} for i, known in self.constants.items()]
        return {"constants": told, "links": self.links}

    def _link(self, codes: Codes, probability: float | None = None) -> None:
        """The constants of atoms, each linked with the next that stands in the atom."""
        base = self.predictor.base
        index, arguments = base.decode(codes)
        for atom, i, row in zip(base.names(codes), index.tolist(), arguments.tolist(), strict=True):
            ends = [constant for constant in row if constant >= 0]
            for constant in ends:
                self.constants.setdefault(constant, probability is None)
            self.links += [
                {
                    "predicate": base.language.predicates[i].name,
                    "from": self.names[start],
                    "to": self.names[end],
                    "atom": atom,
                    "truth": True if probability is None else None,
                    "probability": 1.0 if probability is None else probability,
                }
                for start, end in pairwise(ends)
            ]
