"""Who decides: questions such as `locatedIn(italy, ?)` -> the atoms they ask for, and what an answer is."""

from dataclasses import dataclass

import numpy as np

from r2n.errors import DataError, nearest
from r2n.knowledge.atom_text import parse_atom
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.logic.language import Language, Predicate

MOST_ASKED = 5_000_000


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
    atom = parse_atom(text)
    if atom is None or not atom.truth:
        raise DataError(
            f"'{text}' is no question",
            hint='write PREDICATE(CONSTANT, ...) with ? for what is asked: "locatedIn(italy, ?)"',
        )
    predicate = base.language.predicate(atom.predicate)
    if len(atom.terms) != predicate.arity:
        raise DataError(
            f"{predicate.name} takes {predicate.arity} constants, the question has {len(atom.terms)}", where=atom.where
        )
    columns = [_constants(base.language, predicate, i, term) for i, term in enumerate(atom.terms)]
    asked = int(np.prod([len(column) for column in columns]))
    if asked > MOST_ASKED:
        raise DataError(f"the question asks for {asked:,} atoms", hint="replace a ? by a constant")
    grids = np.meshgrid(*columns, indexing="ij")
    return np.sort(base.encode_columns(predicate, [grid.ravel() for grid in grids]))


def _constants(language: Language, predicate: Predicate, position: int, term: str | None) -> np.ndarray:
    members = language.members(predicate.domains[position])
    if term is None:
        return members
    constant = language.constant_id(term)
    if constant not in members:
        names = [language.constants[member] for member in members]
        domain = predicate.domains[position].name
        raise DataError(
            f"constant '{term}' is outside domain '{domain}' (position {position + 1} of {predicate.name})",
            hint=nearest(term, names) or None,
        )
    return np.array([constant])
