"""Requests about atoms: queries, explanations, what-if comparisons, and the check of a query that is being typed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa
from pydantic import create_model

from r2n.data.atom_text import parse_atom
from r2n.data.herbrand import Codes, closed_atoms, union
from r2n.data.knowledge_base import recoded
from r2n.errors import DataError, R2NError
from r2n.evaluation.calibrate import Calibrated
from r2n.explanation.drawing import drawn_nodes, explanation_svg
from r2n.explanation.records import Belief, Explanation
from r2n.model.answers import Answer, Answers, Question, Result
from r2n.model.model import Model
from r2n.model.questions import complete, questions_table
from r2n.serving.requests import Limits
from r2n.serving.session import ARROW, JSON_LINES, Caret, RefusedError, Reply, Session, to_json

MOVED = 5e-5  # of a probability: a smaller change would be shown as 0.00
MOST_COMPLETIONS = 20

Request = Mapping[str, Any]
"""The fields of a request by their names; those of a query have `accept` too, the content type that is wanted."""


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """A result for each query."""

    results: tuple[Result, ...]
    calibration: Calibrated | None


def answer_queries(session: Session, requests: Sequence[Request]) -> list[Reply]:
    """A reply to each request; several are answered in one pass, and none of them may change what is known."""
    model = session.changed(requests[0]) if len(requests) == 1 else session.model
    parsed: list[list[Question] | Reply] = []
    for request in requests:
        try:
            parsed.append(_parse(model, request, session.limits))
        except RefusedError as error:
            parsed.append(error.reply)
    found = iter(model.answer_all([one for part in parsed if not isinstance(part, Reply) for one in part]))
    return [
        part if isinstance(part, Reply) else _query_reply(model, request, [next(found) for _ in part])
        for request, part in zip(requests, parsed, strict=True)
    ]


def _parse(model: Model, request: Request, limits: Limits) -> list[Question]:
    """The queries of a request, if they do not ask for too many atoms."""
    asked, candidates = [], 0
    for i, text in enumerate(request["queries"]):
        try:
            question = Question.parse(model.base, text)
            candidates += len(question)
            if candidates > limits.candidates:
                hint = f"at most {limits.candidates:,} are answered in one request: replace a ? by a constant"
                raise DataError(f"the queries ask for {candidates:,} atoms up to here", hint=hint)
        except R2NError as error:
            raise RefusedError(error, at=f"queries[{i}]") from None
        options = {name: request.get(name, False) for name in ("everything", "unknown")}
        asked.append(replace(question, top=request["top"], **options))
    return asked


def _query_reply(model: Model, request: Request, found: Sequence[Answers | DataError]) -> Reply:
    """The answers to the queries of a request, in the content type that it wants."""
    answered = [part for part in found if isinstance(part, Answers)]
    for i, error in enumerate(found):
        if isinstance(error, DataError):
            return Reply.from_error(error, at=f"queries[{i}]")
    if request.get("accept") == ARROW:
        predicates = [Question.parse(model.base, text).predicate.name for text in request["queries"]]
        table = questions_table(model, answered, predicates)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return Reply(200, ARROW, sink.getvalue().to_pybytes())
    results = [part.result(question) for question, part in zip(request["queries"], answered, strict=True)]
    if request.get("accept") == JSON_LINES:
        lines = [{"question": result.question, **asdict(answer)} for result in results for answer in result.answers]
        return Reply(200, JSON_LINES, b"".join(to_json(line) + b"\n" for line in lines))
    return Reply.from_document(QueryAnswer(tuple(results), model.calibration))


_explained = {**get_type_hints(Belief), **get_type_hints(Explanation), "labels": dict[str, str], "drawing": dict}
_fields: dict[str, Any] = {name: (kind, ...) for name, kind in _explained.items() if name != "belief"}
ExplainAnswer = create_model("ExplainAnswer", __doc__="The document of `r2n explain --json`, and a drawing.", **_fields)


def explain_atom(session: Session, request: Request) -> dict[str, Any]:
    """The document of `r2n explain --json`, and the drawing of it."""
    wanted = {name: request[name] for name in ("depth", "top", "against")}
    explanation = session.changed(request).explain(request["atom"], **wanted)
    drawing = {"svg": explanation_svg(explanation, theme="page"), "nodes": drawn_nodes(explanation)}
    return {**explanation.to_dict(), "drawing": drawing}


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """Whether a query is valid; else why not. Each of `completions` may replace the text from `at` on."""

    ok: bool
    what: str | None
    hint: str | None
    caret: Caret | None
    completions: tuple[str, ...]
    at: int


def check_query(session: Session, request: Request) -> CheckAnswer:
    """Whether a query is valid, and how it may go on at its end."""
    base, text = session.model.base, request["query"]
    start, texts = complete(base.language, text, most=MOST_COMPLETIONS)
    try:
        Question.parse(base, text)
    except R2NError as error:
        caret = Caret.from_location(error.where)
        return CheckAnswer(False, error.what, error.hint or None, caret, texts, start)
    return CheckAnswer(True, None, None, None, texts, start)


@dataclass(frozen=True, slots=True)
class Change:
    """An atom before and after; None if it cannot be answered, or does not exist."""

    atom: str
    before: Answer | None
    after: Answer | None


@dataclass(frozen=True, slots=True)
class WhatIfAnswer:
    """The changes, the largest first; how many atoms were compared, and how many moved."""

    changes: tuple[Change, ...]
    compared: int
    moved: int


def what_if(session: Session, request: Request) -> WhatIfAnswer:
    """The answers to queries before and after a change; without queries, the atoms that change most."""
    before, after = session.model, session.changed(request)
    codes = _compared_atoms(session, before, after, request)
    old = recoded(codes, after.base, before.base)
    is_old = old >= 0
    was, now = before.columns(old[is_old]), after.columns(codes)
    old_probability = np.full(len(codes), np.nan)
    old_probability[is_old] = np.where(was.is_refused, np.nan, was.probability)
    probability = np.where(now.is_refused, np.nan, now.probability)
    is_in_one = np.isnan(old_probability) != np.isnan(probability)
    change = np.where(is_in_one, 1.0, np.nan_to_num(np.abs(probability - old_probability)))
    order, moved = np.argsort(-change, kind="stable"), change >= MOVED
    if not request["queries"]:
        order = order[moved[order]]
    order, rows = order[: request["top"]], np.cumsum(is_old) - 1
    changes = tuple(
        Change(name, _answer(was, int(rows[i])) if is_old[i] else None, _answer(now, int(i)))
        for i, name in zip(order, after.base.names(codes[order]), strict=True)
    )
    return WhatIfAnswer(changes, len(codes), int(moved.sum()))


def _compared_atoms(session: Session, before: Model, after: Model, request: Request) -> Codes:
    """The atoms to compare, by their codes afterwards, ascending: the answers to the queries before and after.

    Without queries, they are the open atoms that are known or that ground rules reach; if these are too many, those
    that differ from a changed fact in one constant.
    """
    most, found = session.limits.candidates, []
    if request["queries"]:
        for model in (before, after):
            answered = _answered(session, model, request, is_after=model is after)
            found += [recoded(part.atoms, model.base, after.base) for part in answered]
        return union(*found)
    near = _atoms_near(after, [*request["with"], *request["without"]], most)
    for model in (before, after):
        reached = model.known_atoms if model.reachable_atoms is None else model.reachable_atoms
        reached = reached[reached < model.base.size]  # atoms of reciprocal predicates come behind
        found.append(recoded(reached, model.base, after.base))
    codes = union(near, *found)
    codes = codes[~closed_atoms(after.base, codes)]
    return codes if len(codes) <= most else near[~closed_atoms(after.base, near)][:most]


def _answered(session: Session, model: Model, request: Request, *, is_after: bool) -> list[Answers]:
    """The answers to the queries; those about new constants have none before the change, which is no error."""
    try:
        found = model.answer_all(_parse(model, request, session.limits))
    except RefusedError:
        if is_after:
            raise
        return []
    for i, error in enumerate(found):
        if isinstance(error, DataError) and is_after:
            raise RefusedError(error, at=f"queries[{i}]")
    return [part for part in found if isinstance(part, Answers)]


def _atoms_near(model: Model, facts: Iterable[str], most: int) -> Codes:
    """The atoms that differ from one of some facts in one constant, at most as many as can be answered."""
    found, number = [], 0
    for text in facts:
        atom = parse_atom(text)
        assert atom is not None  # the session has read it
        for position in range(len(atom.terms)):
            terms = [None if i == position else term for i, term in enumerate(atom.terms)]
            question = Question.from_terms(model.base, atom.predicate, terms)
            number += len(question)
            if number <= most:
                found.append(question.codes())
    return union(*found)


def _answer(answers: Answers, row: int) -> Answer | None:
    """One answer; None if it is refused."""
    return None if answers.is_refused[row] else answers.kept(np.array([row], np.int64))[0]
