"""Who decides: questions such as `locatedIn(italy, ?)` -> the atoms they ask for, and the network's answers."""

import re
from dataclasses import dataclass

import numpy as np

from r2n.errors import DataError, Location, nearest
from r2n.experiments.run import Run
from r2n.grounding.ground_rules import distinct_codes
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.logic.language import Language, Predicate

MOST_ASKED = 5_000_000
_QUESTION = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^\s("']+)\s*\((.*)\)\s*\.?\s*\Z""", re.S)
_TERM = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^,"'\s][^,"']*?)\s*(,|\Z)""")


@dataclass(frozen=True, slots=True)
class Answer:
    """An atom with its probability and logit, what the evidence says of it, and whether a ground rule reaches it."""

    atom: str
    probability: float
    logit: float
    known: bool | None
    reached: bool


def parse_question(base: HerbrandBase, text: str) -> Codes:
    """The codes of the atoms that a question asks for; each `?` stands for every constant of its position's domain."""
    match = _QUESTION.match(text)
    if match is None:
        raise DataError(
            f"'{text}' is no question",
            hint='write PREDICATE(CONSTANT, ...) with ? for what is asked: "locatedIn(italy, ?)"',
        )
    predicate = base.language.predicate(_bare(match.group(1)))
    terms = _terms(text, match)
    if len(terms) != predicate.arity:
        raise DataError(
            f"{predicate.name} takes {predicate.arity} constants, the question has {len(terms)}",
            where=Location(None, 1, match.start(2) + 1, text),
        )
    columns = [_constants(base.language, predicate, i, term) for i, term in enumerate(terms)]
    asked = int(np.prod([len(column) for column in columns]))
    if asked > MOST_ASKED:
        raise DataError(f"the question asks for {asked:,} atoms", hint="replace a ? by a constant")
    grids = np.meshgrid(*columns, indexing="ij")
    return np.sort(base.encode_columns(predicate, [grid.ravel() for grid in grids]))


def _bare(text: str) -> str:
    if text[0] in "\"'" and text[-1] == text[0] and len(text) > 1:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _terms(text: str, match: re.Match[str]) -> list[str]:
    """What stands between the commas inside the parentheses."""
    inside, terms, place, goes_on = match.group(2), [], 0, True
    while goes_on:
        term = _TERM.match(inside, place)
        if term is None:
            raise DataError("a constant or ? was expected", where=Location(None, 1, match.start(2) + place + 1, text))
        terms.append(term.group(1))
        place, goes_on = term.end(), term.group(2) == ","
    return terms


def _constants(language: Language, predicate: Predicate, position: int, term: str) -> np.ndarray:
    members = language.members(predicate.domains[position])
    if term == "?":
        return members
    constant = language.constant_id(_bare(term))
    if constant not in members:
        names = [language.constants[member] for member in members]
        domain = predicate.domains[position].name
        raise DataError(
            f"constant '{_bare(term)}' is outside domain '{domain}' (position {position + 1} of {predicate.name})",
            hint=nearest(_bare(term), names) or None,
        )
    return np.array([constant])


def answer(run: Run, codes: Codes) -> list[Answer]:
    """The answers for atoms, the most probable first."""
    logits = run.scores()(codes)
    order = np.argsort(-logits, kind="stable")
    evidence = run.problem.train
    reached = np.isin(codes, run.graph.atoms.numpy()[_in_rules(run)])
    known = {int(code): bool(truth) for code, truth in zip(evidence.atoms, evidence.truth, strict=True)}
    names = run.problem.knowledge.base.names(codes)
    return [
        Answer(
            names[i],
            float(1 / (1 + np.exp(-logits[i]))),
            float(logits[i]),
            known.get(int(codes[i])),
            bool(reached[i]) or not run.model.layers,
        )
        for i in order
    ]


def _in_rules(run: Run) -> np.ndarray:
    """Rows of the graph's atoms that stand in a ground rule."""
    return distinct_codes([part.numpy() for part in run.graph.neighbours])
