"""Symbols: typed domains, predicates, and the language (C, P) they form with the constants."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from r2n.errors import DataError, counted, nearest


@dataclass(frozen=True, slots=True)
class Domain:
    """A named set of constants: listed in the theory, the union of its parts, or (neither) brought by the data."""

    name: str
    listed: tuple[str, ...] | None = None
    parts: tuple["Domain", ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether the data says what is in it: the theory neither lists its constants nor makes it a union."""
        return self.listed is None and not self.parts

    def is_within(self, other: "Domain") -> bool:
        """Whether every constant of this domain is, by declaration, one of `other`."""
        if self == other or any(self.is_within(part) for part in other.parts):
            return True
        return bool(self.parts) and all(part.is_within(other) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Predicate:
    """An n-ary predicate with a domain per position.

    `closed`: what is not a known fact is false; `closed_parts`: so are the atoms over these narrower domains.
    `reciprocal_of` names the predicate whose atoms it has in the other direction. `functional`: the last position is
    the value, of which the constants before it have one.
    """

    name: str
    domains: tuple[Domain, ...]
    closed: bool = False
    closed_parts: tuple[tuple[Domain, ...], ...] = ()
    reciprocal_of: str | None = None
    functional: bool = False

    @property
    def arity(self) -> int:
        """The number of its terms."""
        return len(self.domains)


@dataclass(frozen=True, eq=False)
class Language:
    """The language (C, P): all constants in order of their names, the domains they form, and the predicates.

    A constant's id is its index in `constants`; one symbol in several domains is one constant.
    `extensions` holds, aligned with `domains`, the ascending ids of each domain's constants.
    """

    domains: tuple[Domain, ...]
    predicates: tuple[Predicate, ...]
    constants: tuple[str, ...]
    extensions: tuple[np.ndarray, ...]

    @classmethod
    def build(
        cls, domains: Iterable[Domain], predicates: Iterable[Predicate], members: Mapping[str, Iterable[str]]
    ) -> "Language":
        """The language of these domains and predicates; `members` gives the constants that the data brings."""
        domains, predicates = tuple(domains), tuple(predicates)

        def names_of(domain: Domain) -> set[str]:
            if domain.parts:
                return set().union(*map(names_of, domain.parts))
            return set(domain.listed if domain.listed is not None else members.get(domain.name, ()))

        names = {domain.name: names_of(domain) for domain in domains}
        constants = tuple(sorted(set().union(*names.values())))
        ids = {constant: i for i, constant in enumerate(constants)}
        extensions = tuple(
            np.sort(np.fromiter((ids[name] for name in names[domain.name]), np.int64)) for domain in domains
        )
        return cls(domains, predicates, constants, extensions)

    def __repr__(self) -> str:
        parts = {"constant": self.constants, "domain": self.domains, "predicate": self.predicates}
        return f"Language({', '.join(counted(len(part), name) for name, part in parts.items())})"

    @cached_property
    def _extension_of(self) -> dict[str, np.ndarray]:
        return {domain.name: ids for domain, ids in zip(self.domains, self.extensions, strict=True)}

    @cached_property
    def _predicate_index(self) -> dict[str, int]:
        return {predicate.name: i for i, predicate in enumerate(self.predicates)}

    @cached_property
    def _constant_ids(self) -> dict[str, int]:
        return {constant: i for i, constant in enumerate(self.constants)}

    def members(self, domain: Domain) -> np.ndarray:
        """Ids of the domain's constants, ascending; int64 (constants,)."""
        return self._extension_of[domain.name]

    def predicate_index(self, name: str) -> int:
        """The index of the predicate of this name in `predicates`."""
        if name not in self._predicate_index:
            hint = nearest(name, self._predicate_index) or "declare it with: predicate NAME(DOMAIN, ...)"
            raise DataError(f"unknown predicate '{name}'", hint=hint)
        return self._predicate_index[name]

    def predicate(self, name: str) -> Predicate:
        """The predicate of this name."""
        return self.predicates[self.predicate_index(name)]

    def constant_id(self, name: str) -> int:
        """The id of the constant of this name."""
        if name not in self._constant_ids:
            raise DataError(f"unknown constant '{name}'", hint=nearest(name, self.constants))
        return self._constant_ids[name]
