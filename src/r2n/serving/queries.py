"""The requests that workers answer.

Those about atoms: queries, explanations, what-if comparisons, and the check of a query that is being typed. Then those
about constants and the run: search, all about one constant, the model, its rules and its report.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from itertools import pairwise, starmap
from typing import Any, Literal, get_type_hints

import numpy as np
import pyarrow as pa
from pydantic import create_model

from r2n import __version__
from r2n.data.atom_text import ANYTHING, parse_atom, written_name
from r2n.data.herbrand import Codes, closed_atoms, union
from r2n.data.knowledge_base import Evidence, recoded
from r2n.errors import DataError, R2NError, nearest
from r2n.evaluation.calibrate import Calibrated
from r2n.explanation.drawing import drawn_nodes, explanation_svg
from r2n.explanation.records import Belief, Explanation
from r2n.logic.language import Language
from r2n.model.answers import Answer, Answers, Question, Result
from r2n.model.model import Model
from r2n.model.questions import complete, questions_table
from r2n.model.rule_report import rule_report
from r2n.reporting.pages import run_charts
from r2n.reporting.run_report import build_report, read_training
from r2n.serving.session import ARROW, JSON_LINES, NOT_FOUND, Caret, Limits, RefusedError, Reply, Session, to_json

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


MOST_COMPARED = 50_000  # names whose spelling is compared
MOST_FACTS = 200
MOST_QUESTIONS = 60
MOST_AROUND = 40  # facts of the constant that are drawn
MOST_BETWEEN = 80  # facts between the constants around it that are drawn
MOST_PREDICTED = 10
PROBABLE = 0.5
SLOW_PARTS = ("rules", "answers")  # of a report: /api/rules and /api/explain compute them

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant, and the domains it is in."""

    name: str
    domains: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConstantsAnswer:
    """The first constants that match, and how many match."""

    total: int
    constants: tuple[Constant, ...]


def search_constants(session: Session, request: Request) -> ConstantsAnswer:
    """Names that begin with a text, then those that contain it; if there are none, those that are spelt nearly so."""
    language, typed, name = session.model.base.language, request["search"].casefold(), request.get("domain")
    ids, folded, domains = range(len(language.constants)), session.folded, {d.name: d for d in language.domains}
    if name is not None and name not in domains:
        hint = nearest(name, domains) or f"the domains are: {', '.join(domains)}"
        raise RefusedError(DataError(f"there is no domain '{name}'", hint=hint), at="domain")
    if name is not None:
        ids = language.members(domains[name]).tolist()
    found = sorted((i for i in ids if typed in folded[i]), key=lambda i: not folded[i].startswith(typed))
    if not found:
        by_name: dict[str, list[int]] = {}
        for i in [i for i in ids if len(folded[i]) <= 2 * len(typed) + 2][:MOST_COMPARED]:
            by_name.setdefault(folded[i], []).append(i)
        found = [i for name in get_close_matches(typed, by_name, n=50, cutoff=0.6) for i in by_name[name]]
    first = found[: request["limit"]]
    each = zip((language.constants[i] for i in first), _domains(language, first), strict=True)
    return ConstantsAnswer(len(found), tuple(starmap(Constant, each)))


def _domains(language: Language, constants: Sequence[int]) -> list[tuple[str, ...]]:
    """For each of some constants the domains it is in."""
    members = [(domain.name, np.isin(constants, language.members(domain))) for domain in language.domains]
    return [tuple(name for name, is_in in members if is_in[i]) for i in range(len(constants))]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The most probable answers to a query about a constant."""

    predicate: str
    question: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class AboutAnswer:
    """All about a constant.

    A fact has `atom`, `predicate` and `truth`, a feature `domain`, `name` (text or vector), `text` and `size`. The
    neighbourhood has `constants` (`known`: a fact leads to it) and `links` between two of them: facts, and predictions
    (truth null).
    """

    name: str
    domains: tuple[str, ...]
    facts: list[Record]
    facts_total: int
    predictions: tuple[Prediction, ...]
    features: list[Record]
    neighbourhood: dict[Literal["constants", "links"], list[Record]]


def about_constant(session: Session, request: Request) -> AboutAnswer:
    """What is known of a constant, what is predicted, its features, and its neighbourhood."""
    model, language = session.model, session.model.base.language
    try:
        constant = language.constant_id(request["name"])
    except DataError as error:
        raise RefusedError(error, NOT_FOUND) from None
    [domains], known, features = _domains(language, [constant]), _facts_with(model, np.array([constant])), []
    predictions = _predictions(model, request["name"], domains, request["top"], session.limits)
    for name, given in model.problem.knowledge.features.items():
        for row in np.flatnonzero(given.constants == constant).tolist():
            if given.texts is not None:
                features.append({"domain": name, "name": "text", "text": given.texts[row], "size": None})
            if given.vectors is not None:
                size = int(np.prod(given.vectors.shape[1:]))
                features.append({"domain": name, "name": "vector", "text": None, "size": size})
    codes = known.atoms[:MOST_FACTS]
    rows = zip(model.base.names(codes), model.base.decode(codes)[0], known.truth.tolist(), strict=False)
    facts = [{"atom": name, "predicate": language.predicates[i].name, "truth": truth} for name, i, truth in rows]
    around = _neighbourhood(model, constant, known, predictions)
    return AboutAnswer(request["name"], domains, facts, len(known.atoms), predictions, features, around)


def _facts_with(model: Model, constants: np.ndarray) -> Evidence:
    """The evidence on atoms that name one of some constants."""
    known = model.problem.train
    which = np.isin(model.base.decode(known.atoms)[1], constants).any(axis=1)
    return Evidence(known.atoms[which], known.truth[which])


def _predictions(
    model: Model, constant: str, domains: Sequence[str], top: int, limits: Limits
) -> tuple[Prediction, ...]:
    """The most probable unknown atoms with the constant, by predicate and position."""
    base, asked, texts, candidates = model.base, [], [], 0
    open_ones = [predicate for predicate in base.language.predicates if not predicate.closed]
    positions = [(p, i) for p in open_ones for i, domain in enumerate(p.domains) if domain.name in domains]
    for predicate, position in positions:
        terms = [constant if i == position else None for i in range(predicate.arity)]
        question = Question.from_terms(base, predicate.name, terms)
        if len(asked) < MOST_QUESTIONS and candidates + len(question) <= limits.candidates:
            candidates += len(question)
            asked.append(replace(question, top=top, unknown=True))
            written = ", ".join(ANYTHING if term is None else written_name(term) for term in terms)
            texts.append(f"{written_name(predicate.name)}({written})")
    found = [
        Prediction(question.predicate.name, text, part.items)
        for text, question, part in zip(texts, asked, model.answer_all(asked), strict=True)
        if isinstance(part, Answers) and len(part)
    ]
    return tuple(sorted(found, key=lambda prediction: -prediction.answers[0].probability))


def _neighbourhood(model: Model, centre: int, known: Evidence, predictions: Sequence[Prediction]) -> dict[Any, Any]:
    """Facts of the constant, facts between its neighbours, and its most probable predictions, as many as can be drawn.

    The constants of an atom are linked, each with the next.
    """
    base, names = model.base, model.base.language.constants
    constants, links = {centre: True}, []

    def link(codes: Codes, probability: float | None = None) -> None:
        index, arguments = base.decode(codes)
        for atom, i, row in zip(base.names(codes), index.tolist(), arguments.tolist(), strict=True):
            ends, predicate = [constant for constant in row if constant >= 0], base.language.predicates[i].name
            for constant in ends:
                constants.setdefault(constant, probability is None)
            truth, belief = (True, 1.0) if probability is None else (None, probability)
            shown = {"predicate": predicate, "atom": atom, "truth": truth, "probability": belief}
            links.extend({"from": names[a], "to": names[b], **shown} for a, b in pairwise(ends))

    true = known.facts
    link(true[:MOST_AROUND])
    members = np.array(sorted(constants))
    around = _facts_with(model, members[members != centre])
    arguments = base.decode(around.atoms)[1]
    inside = (np.isin(arguments, members) | (arguments < 0)).all(axis=1) & around.truth
    link(around.atoms[inside & ~np.isin(around.atoms, true)][:MOST_BETWEEN])
    answers = [answer for part in predictions for answer in part.answers if answer.probability >= PROBABLE]
    for answer in sorted(answers, key=lambda answer: -answer.probability)[:MOST_PREDICTED]:
        link(Question.parse(base, answer.question).codes(), answer.probability)
    return {"constants": [{"name": names[i], "known": known} for i, known in constants.items()], "links": links}


def describe_run(session: Session, _: Request) -> dict[str, Any]:
    """The problem, the network, the language, the rules and the limits."""
    model, options, language = session.model, session.model.options, session.model.base.language
    domains, predicates = language.domains, language.predicates
    return {
        "problem": model.problem.name,
        "version": __version__,
        "input": options.model.input,
        "reasoner": options.model.reasoner,
        "layers": model.network.depth,
        "dim": options.model.dim,
        "strategy": options.grounding.strategy,
        "evidence_input": model.network.evidence_input,
        "networks": len(model.members),
        "calibration": None if model.calibration is None else asdict(model.calibration),
        "facts": len(model.problem.train),
        "constants": len(language.constants),
        "domains": [
            {"name": d.name, "constants": len(language.members(d)), "parts": [p.name for p in d.parts]} for d in domains
        ],
        "predicates": [
            {"name": p.name, "domains": [d.name for d in p.domains], "closed": p.closed} for p in predicates
        ],
        "rules": [{"name": rule.name, "text": str(rule)} for rule in model.problem.knowledge.theory.rules],
        "limits": asdict(session.limits),
    }


def report_rules(session: Session, _: Request) -> dict[str, Any]:
    """The document of `r2n rules --json`."""
    return rule_report(session.model).to_dict()


def report_run(session: Session, _: Request) -> dict[str, Any]:
    """Curves, and the metrics, reliability and ranks by predicate of each split."""
    model, folder = session.model, session.folder
    reports = [model.evaluate(split, baselines=True) for split in model.problem.queries]
    found = build_report(folder, model, reports, read_training(folder), seconds=0.0)
    results = [
        {
            "report": result.report.to_dict(),
            "precision_recall": [asdict(curve) for curve in result.precision_recall],
            "ranks": [{**asdict(part), "ranks": part.ranks} for part in result.ranks],
        }
        for result in found.results
    ]
    document = {name: part for name, part in asdict(replace(found, results=())).items() if name not in SLOW_PARTS}
    charts = {name: [asdict(card) for card in cards] for name, cards in run_charts(found).items()}
    return {**document, "results": results, "charts": charts}


JOBS: dict[str, Callable[[Session, Request], object]] = {
    "about": about_constant,
    "check": check_query,
    "constants": search_constants,
    "explain": explain_atom,
    "report": report_run,
    "rules": report_rules,
    "run": describe_run,
    "what-if": what_if,
}
"""The jobs of workers by their names; only queries are answered several at once."""
