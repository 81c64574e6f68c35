"""A trained network, asked: questions such as `locatedIn(italy, ?)` -> atoms, and what an answer is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import overload

import numpy as np
from jaxtyping import Bool

from r2n.errors import DataError, nearest
from r2n.knowledge.atom_text import parse_atom
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.logic.language import Language, Predicate

MOST_ASKED = 20_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """An atom with its probability.

    A `known` atom has the probability of what is known; a `closed` one that is no fact is false, and has 0. `network`
    is the probability that the network alone gives it, and `logit` the network's logit. `reached`: a ground rule holds
    the atom (or the network reads no rules).
    """

    atom: str
    probability: float
    known: bool | None
    closed: bool
    network: float
    logit: float
    reached: bool


@dataclass(frozen=True, slots=True)
class Answers(Sequence[Answer]):
    """The answers to a question, the most probable first.

    `asked` atoms were answered or refused, `refused` of them; `left_out` were not asked, for nothing is known of them
    and no ground rule reaches them.
    """

    items: tuple[Answer, ...]
    asked: int
    refused: int
    left_out: int = 0

    @overload
    def __getitem__(self, index: int) -> Answer: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Answer]: ...
    def __getitem__(self, index: int | slice) -> Answer | Sequence[Answer]:
        """Some of them."""
        return self.items[index]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.items)

    def __iter__(self) -> Iterator[Answer]:
        """One after the other."""
        return iter(self.items)


@dataclass(frozen=True, eq=False)
class Question:
    """The constants (ids) that each position of a predicate may have."""

    base: HerbrandBase
    predicate: Predicate
    columns: tuple[np.ndarray, ...]

    @classmethod
    def parse(cls, base: HerbrandBase, text: str) -> "Question":
        """Each `?` stands for every constant of its position's domain."""
        atom = parse_atom(text)
        if atom is None or not atom.truth:
            raise DataError(
                f"'{text}' is no question",
                hint='write PREDICATE(CONSTANT, ...) with ? for what is asked: "locatedIn(italy, ?)"',
            )
        predicate = base.language.predicate(atom.predicate)
        if len(atom.terms) != predicate.arity:
            what = f"{predicate.name} takes {predicate.arity} constants, the question has {len(atom.terms)}"
            raise DataError(what, where=atom.where)
        columns = (_constants(base.language, predicate, i, term) for i, term in enumerate(atom.terms))
        return cls(base, predicate, tuple(columns))

    def __len__(self) -> int:
        """The number of atoms that are asked for."""
        return prod(map(len, self.columns))

    def codes(self) -> Codes:
        """All atoms that are asked for, ascending."""
        if len(self) > MOST_ASKED:
            raise DataError(f"the question asks for {len(self):,} atoms", hint="replace a ? by a constant")
        grids = np.meshgrid(*self.columns, indexing="ij")
        return np.sort(self.base.encode_columns(self.predicate, [grid.ravel() for grid in grids]))

    def asks_for(self, codes: Codes) -> Bool[np.ndarray, " atoms"]:
        """Which of some atoms (of this base, or of one that begins like it) are asked for."""
        index = self.base.language.predicate_index(self.predicate.name)
        start, end = self.base.offsets[index : index + 2]
        found = (codes >= start) & (codes < end)
        arguments = self.base.decode(codes[found])[1]
        inside = [np.isin(arguments[:, i], column) for i, column in enumerate(self.columns)]
        found[found] = np.logical_and.reduce(inside)
        return found


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
