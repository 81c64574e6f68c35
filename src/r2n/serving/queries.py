"""A run, served: the queries of one request, or of several that wait together -> answers, in one pass."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from r2n.errors import DataError, R2NError
from r2n.model.answers import Question
from r2n.model.model import Asked, Model, Told, ask_together
from r2n.model.questions import told_table
from r2n.serving.limits import Limits
from r2n.serving.replies import ARROW, JSON_LINES, Reply, refusal, to_json
from r2n.serving.session import Session

Request = Mapping[str, Any]
"""As `QueryRequest` has it, with `accept`: the kind of content that is wanted."""


def answer_queries(session: Session, requests: Sequence[Request]) -> list[Reply]:
    """A reply to each request; several are answered in one pass, and none of them may change what is known."""
    predictor = session.changed(requests[0]) if len(requests) == 1 else session.predictor
    parsed = [_parsed(predictor, request, session.limits) for request in requests]
    flat = [one for part in parsed if not isinstance(part, Reply) for one in part]
    told, replies = iter(ask_together(predictor, flat)), []
    for request, part in zip(requests, parsed, strict=True):
        if isinstance(part, Reply):
            replies.append(part)
        else:
            replies.append(_reply(predictor, request, [next(told) for _ in part]))
    return replies


def _parsed(predictor: Model, request: Request, limits: Limits) -> list[Asked] | Reply:
    try:
        return parse_all(predictor, request, limits)
    except QueryError as error:
        return refusal(error.error, at=f"queries[{error.index}]")


@dataclass(frozen=True)
class QueryError(Exception):
    """An error of the query with this index."""

    index: int
    error: R2NError


def parse_all(predictor: Model, request: Request, limits: Limits) -> list[Asked]:
    """The questions of a request, within what one may ask for."""
    asked, candidates = [], 0
    for i, text in enumerate(request["queries"]):
        try:
            question = Question.parse(predictor.base, text)
            candidates += len(question)
            if candidates > limits.candidates:
                hint = f"at most {limits.candidates:,} are answered in one request: replace a ? by a constant"
                raise DataError(f"the queries ask for {candidates:,} atoms up to here", hint=hint)
        except R2NError as error:
            raise QueryError(i, error) from None
        asked.append(Asked(question, request.get("everything", False), request["top"], request.get("unknown", False)))
    return asked


def _reply(predictor: Model, request: Request, told: Sequence[Told | DataError]) -> Reply:
    for i, part in enumerate(told):
        if isinstance(part, DataError):
            return refusal(part, at=f"queries[{i}]")
    found = [part for part in told if isinstance(part, Told)]
    if request.get("accept") == ARROW:
        return Reply(200, ARROW, _arrow(predictor, found))
    results = [_result(predictor, text, part) for text, part in zip(request["queries"], found, strict=True)]
    if request.get("accept") == JSON_LINES:
        lines = [{"question": one["question"], **answer} for one in results for answer in one["answers"]]
        return Reply(200, JSON_LINES, b"".join(to_json(line) + b"\n" for line in lines))
    calibration = predictor.calibration
    return Reply.of({"results": results, "calibration": None if calibration is None else asdict(calibration)})


def _result(predictor: Model, question: str, told: Told) -> dict[str, Any]:
    answers = told.answers(predictor)
    counts = {name: getattr(answers, name) for name in ("asked", "refused", "left_out", "hidden")}
    told_answers = [asdict(item) for item in answers]
    return {"question": question, "columns": answers.columns, "answers": told_answers, **counts}


def _arrow(predictor: Model, told: Sequence[Told]) -> bytes:
    """The columns of `question_table`, with the number of the query as `row`."""
    whole = told_table(predictor, [(part.predicate, part.columns) for part in told])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    return sink.getvalue().to_pybytes()
