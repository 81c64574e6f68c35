"""A run, served: the loaded run, which every worker has, and what a request makes of it for itself alone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from r2n.data.atom_text import looks_like_atom
from r2n.errors import DataError
from r2n.model.model import Model, Named, told_otherwise
from r2n.serving.limits import Limits
from r2n.serving.requests import CHANGES


@dataclass(frozen=True, eq=False)
class Session:
    """A run that was loaded from a folder; nothing that is asked changes it."""

    folder: Path
    predictor: Model
    limits: Limits

    @classmethod
    def load(cls, folder: Path, limits: Limits, device: str = "cpu") -> "Session":
        """The run in a folder, with the passes made that every question needs."""
        session = cls(folder, Model.load(folder, device=device), limits)
        session.warm()
        return session

    def warm(self) -> None:
        """Make what is made once, so that workers share it; a fact is taken back to load what that needs."""
        known = self.predictor.known_atoms[:1]
        _ = self.predictor.reachable_atoms, self.folded
        if len(known):
            self.predictor.columns(known)
            truth = self.predictor.problem.train.truth[:1]
            self.predictor.without_facts(("" if truth[0] else "!") + self.predictor.base.names(known)[0])

    @cached_property
    def folded(self) -> list[str]:
        """The names of all constants without the difference of small and capital letters."""
        return [name.casefold() for name in self.predictor.base.language.constants]

    def changed(self, asked: Mapping[str, Any]) -> Model:
        """The predictor of a request: what it says is known or not, and which rules are left out."""
        if not any(asked.get(name) for name in CHANGES):
            return self.predictor
        for name in ("with", "without"):
            _refuse_others(asked.get(name) or (), name)
        constants = asked.get("constants") or {}
        more, fewer = (asked.get(name) or [] for name in ("with", "without"))
        predictor = told_otherwise(self.predictor, more, fewer, constants, Named())
        return predictor.without_rules(asked.get("without_rules") or ())


def _refuse_others(facts: Iterable[str], field: str) -> None:
    """Facts are written out: unlike a command, a request may not name a file of the machine it asks."""
    for i, text in enumerate(facts):
        if not looks_like_atom(text):
            raise DataError(
                f"{field}[{i}] is no fact", hint="write PREDICATE(CONSTANT, ...), with ! before it if it is false"
            )
