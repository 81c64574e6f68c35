"""A run, served: which answers change if other facts were known, before and after."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from r2n.data.atom_text import parse_atom
from r2n.data.herbrand import Codes, HerbrandBase, closed_atoms
from r2n.data.knowledge_base import constant_ids
from r2n.errors import DataError
from r2n.model.answers import AnswerColumns, Question
from r2n.model.predictor import Predictor, Told, ask_together
from r2n.serving.queries import QueryError, parse_all
from r2n.serving.replies import Reply, refusal
from r2n.serving.session import Session

MOVED = 5e-5  # of a probability: a smaller change would be told as 0.00


def what_if(session: Session, asked: Mapping[str, Any]) -> Reply:
    """The answers to queries before and after, or the atoms that change most, where no query is asked."""
    before, after = session.predictor, session.changed(asked)
    try:
        codes = _compared(session, before, after, asked)
    except QueryError as error:
        return refusal(error.error, at=f"queries[{error.index}]")
    old = carried(codes, after.base, before.base)
    is_old = old >= 0
    was, now = before.columns(old[is_old]), after.columns(codes)
    change = _change(was, now, is_old)
    order = np.argsort(-change, kind="stable")
    moved = change >= MOVED
    if not asked["queries"]:
        order = order[moved[order]]
    order = order[: asked["top"]]
    rows = np.cumsum(is_old) - 1
    changes = [
        {"atom": name, "before": _answer(was, before, int(rows[i])) if is_old[i] else None, "after": told}
        for i, name, told in zip(order, after.base.names(codes[order]), _answers(now, after, order), strict=True)
    ]
    return Reply.of({"changes": changes, "compared": len(codes), "moved": int(moved.sum())})


def _compared(session: Session, before: Predictor, after: Predictor, asked: Mapping[str, Any]) -> Codes:
    """The atoms that are looked at, by their codes afterwards, ascending."""
    if not asked["queries"]:
        return _reached_by_rules(session, before, after, asked)
    found = [np.zeros(0, np.int64)]
    for predictor in (before, after):
        told = _told(session, predictor, asked, is_last=predictor is after)
        found += [carried(part.columns.atoms, predictor.base, after.base) for part in told]
    return np.unique(np.concatenate(found))


def _told(session: Session, predictor: Predictor, asked: Mapping[str, Any], *, is_last: bool) -> list[Told]:
    """The answers to the queries; those about new constants have none before, and that is no error."""
    try:
        questions = parse_all(predictor, asked, session.limits)
    except QueryError:
        if is_last:
            raise
        return []
    found = ask_together(predictor, questions)
    for i, told in enumerate(found):
        if isinstance(told, DataError) and is_last:
            raise QueryError(i, told)
    return [told for told in found if isinstance(told, Told)]


def _reached_by_rules(session: Session, before: Predictor, after: Predictor, asked: Mapping[str, Any]) -> Codes:
    """Open atoms that are known or that ground rules reach; where these are too many, those near what changed."""
    found = [carried(_reached(predictor), predictor.base, after.base) for predictor in (before, after)]
    near = _near(after, [*asked["with"], *asked["without"]], session.limits.candidates)
    codes = np.unique(np.concatenate([*found, near]))
    codes = codes[~closed_atoms(after.base, codes)]
    if len(codes) <= session.limits.candidates:
        return codes
    near = near[~closed_atoms(after.base, near)]
    return near[: session.limits.candidates]


def _reached(predictor: Predictor) -> Codes:
    found = predictor.known_atoms if predictor.told_of is None else predictor.told_of
    return found[found < predictor.base.size]  # atoms of reciprocal predicates come behind


def _near(predictor: Predictor, facts: Iterable[str], most: int) -> Codes:
    """The atoms that differ from a changed fact's in one constant, as many as there is room for."""
    found, number = [np.zeros(0, np.int64)], 0
    for text in facts:
        atom = parse_atom(text)
        assert atom is not None  # the session has read it
        for position in range(len(atom.terms)):
            terms = [None if i == position else term for i, term in enumerate(atom.terms)]
            question = Question.of(predictor.base, atom.predicate, terms)
            number += len(question)
            if number <= most:
                found.append(question.codes())
    return np.unique(np.concatenate(found))


def carried(codes: Codes, base: HerbrandBase, other: HerbrandBase) -> Codes:
    """The codes that atoms of one base have in another; -1 where a constant is none of its."""
    if base is other or base.language is other.language:
        return codes
    index, arguments = base.decode(codes)
    ids = np.append(constant_ids(base.language, other.language), -1)
    moved = np.full(len(codes), -1, np.int64)
    for i in np.unique(index).tolist():
        predicate, which = base.language.predicates[i], index == i
        own = ids[arguments[which][:, : predicate.arity]]
        moved[which] = np.where((own < 0).any(axis=1), -1, other.encode(predicate, own))
    return moved


def _change(was: AnswerColumns, now: AnswerColumns, is_old: np.ndarray) -> np.ndarray:
    """How far each probability moves; one that is told on one side alone moves all the way."""
    before = np.full(len(is_old), np.nan)
    before[is_old] = np.where(was.refused, np.nan, was.probability)
    after = np.where(now.refused, np.nan, now.probability)
    moved = np.abs(after - before)
    return np.where(np.isnan(before) != np.isnan(after), 1.0, np.nan_to_num(moved))


def _answers(columns: AnswerColumns, predictor: Predictor, rows: np.ndarray) -> list[dict[str, Any] | None]:
    return [_answer(columns, predictor, int(row)) for row in rows]


def _answer(columns: AnswerColumns, predictor: Predictor, row: int) -> dict[str, Any] | None:
    """One answer; None where it is refused."""
    if columns.refused[row]:
        return None
    return asdict(columns.kept(np.array([row], np.int64)).items(predictor.base)[0])
