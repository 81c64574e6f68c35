"""A run, served: constants by what is typed of their names, and how a query may go on."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from r2n.errors import DataError, R2NError, nearest
from r2n.logic.language import Domain, Language
from r2n.model.answers import Question
from r2n.model.questions import complete
from r2n.serving.replies import NOT_FOUND, Reply, caret_of, refusal
from r2n.serving.session import Session

MOST_COMPARED = 50_000  # names whose spelling is compared
MOST_COMPLETIONS = 20


def search_constants(session: Session, asked: Mapping[str, Any]) -> Reply:
    """Names that begin with a text, then those that have it inside, then those that are spelt nearly so."""
    language, domain = session.predictor.base.language, asked.get("domain")
    if domain is not None and domain not in (known.name for known in language.domains):
        names = [known.name for known in language.domains]
        hint = nearest(domain, names) or f"the domains are: {', '.join(names)}"
        return refusal(DataError(f"there is no domain '{domain}'", hint=hint), at="domain")
    ids = _members(language, domain)
    found = _found(session, asked["search"].casefold(), ids)
    told = [{"name": language.constants[i], "domains": domains_of(language, i)} for i in found[: asked["limit"]]]
    return Reply.of({"total": len(found), "constants": told})


def _members(language: Language, domain: str | None) -> list[int]:
    if domain is None:
        return list(range(len(language.constants)))
    return next(language.members(known) for known in language.domains if known.name == domain).tolist()


def _found(session: Session, typed: str, ids: list[int]) -> list[int]:
    folded = session.folded
    first = [i for i in ids if folded[i].startswith(typed)]
    there = set(first)
    inside = [i for i in ids if typed in folded[i] and i not in there]
    if first or inside:
        return [*first, *inside]
    near = [i for i in ids if len(folded[i]) <= 2 * len(typed) + 2][:MOST_COMPARED]
    by_name: dict[str, list[int]] = {}
    for i in near:
        by_name.setdefault(folded[i], []).append(i)
    return [i for name in get_close_matches(typed, by_name, n=50, cutoff=0.6) for i in by_name[name]]


def domains_of(language: Language, constant: int) -> list[str]:
    """The domains that a constant (by its id) is in."""
    return [domain.name for domain in language.domains if _is_in(language, domain, constant)]


def _is_in(language: Language, domain: Domain, constant: int) -> bool:
    members = language.members(domain)
    place = int(np.searchsorted(members, constant))
    return place < len(members) and int(members[place]) == constant


def check_query(session: Session, asked: Mapping[str, Any]) -> Reply:
    """Whether a query can be asked, and how it may go on at its end."""
    base, text = session.predictor.base, asked["query"]
    error = _error(session, text)
    found = complete(base.language, text, most=MOST_COMPLETIONS)
    return Reply.of(
        {
            "ok": error is None,
            "what": None if error is None else error.what,
            "hint": None if error is None else error.hint or None,
            "caret": None if error is None else caret_of(error.where),
            "completions": list(found.texts),
            "at": found.start,
        }
    )


def _error(session: Session, text: str) -> R2NError | None:
    try:
        Question.parse(session.predictor.base, text)
    except R2NError as error:
        return error
    return None


def find_constant(language: Language, name: str) -> int | Reply:
    """The id of a constant, or the answer that there is none."""
    try:
        return language.constant_id(name)
    except DataError as error:
        return refusal(error, NOT_FOUND)


def positions_of(language: Language, constant: int) -> Iterator[tuple[int, int]]:
    """The predicates (by index) and positions that a constant may stand at."""
    for index, predicate in enumerate(language.predicates):
        for position, domain in enumerate(predicate.domains):
            if _is_in(language, domain, constant):
                yield index, position
