"""Grounding strategies by name, their estimates, and which queries they reach."""

from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from r2n.data.herbrand import Codes, are_among
from r2n.errors import ConfigError, GroundingError
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.cache import KeptGrounder
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounder, Grounding
from r2n.grounding.joins import TooManyRowsError, are_candidates, encode_substitutions, joined
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.paths import PathGrounder
from r2n.grounding.spark import SparkEngine, is_spark
from r2n.grounding.store import DuckDBEngine, Engine, Store
from r2n.logic.theory import Rule
from r2n.options import GroundingOptions

GROUNDERS = {grounder.name: grounder for grounder in (FullGrounder, KnownBodyGrounder, BackwardGrounder)}
"""The strategies by name. The options of grounding take these names, and the fields that the strategies have."""


def reached_by(grounding: Grounding, atoms: Codes) -> Grounding:
    """The ground rules that are connected to the atoms."""
    codes = grounding.atoms
    rows = [np.searchsorted(codes, part.atoms) for part in grounding.ground_rules]
    reached = are_among(codes, np.unique(atoms))
    before, kept = -1, list[np.ndarray]()
    while (count := np.count_nonzero(reached)) > before:
        before = count
        kept = [np.any(reached[part], axis=1) for part in rows]
        for part, keep in zip(rows, kept, strict=True):
            reached[part[keep]] = True
    parts = zip(grounding.ground_rules, kept, strict=True)
    return Grounding(
        tuple(part if keep.all() else replace(part, atoms=part.atoms[keep], shape=None) for part, keep in parts)
    )


MOST_WORK = 2_000_000  # facts times rules: above, no rule is joined to count its ground rules
MOST_ROWS = 200_000  # of a join that counts the ground rules of a rule


@dataclass(frozen=True, slots=True)
class Size:
    """A number of ground rules: exact, or an estimate."""

    count: int
    exact: bool

    def __str__(self) -> str:
        return f"{'' if self.exact else 'about '}{self.count:,}"

    @property
    def is_zero(self) -> bool:
        """Whether it is certain that there is no ground rule."""
        return self.exact and not self.count


def expected_size(store: Store, rule: Rule, strategy: str) -> Size:
    """The number of ground rules of a rule under full or known-body grounding: exact if that is cheap."""
    is_known_body = strategy == "known-body" and bool(rule.body)
    query = (KnownBodyGrounder() if is_known_body else FullGrounder()).query(store, rule)
    box = store.box(query)
    if query.is_free:
        return Size(box, exact=True)
    if not box or not all(len(relation) for relation, _ in (*query.joined, *query.ranging)):
        return Size(0, exact=True)
    estimate, knowledge = query.estimate(), store.knowledge
    if estimate <= MOST_ROWS and len(knowledge.evidence) * len(knowledge.theory.rules) <= MOST_WORK:
        try:
            found = joined(query, store.language, MOST_ROWS)
        except TooManyRowsError:
            return Size(estimate * box, exact=False)
        if is_known_body and knowledge.candidates:
            found = found[are_candidates(knowledge, rule, encode_substitutions(knowledge.base, rule, found))]
        return Size(len(found) * box, exact=True)
    return Size(estimate * box, exact=False)


def mean_neighbourhood(store: Store, grounder: BackwardGrounder, sample: Codes) -> np.ndarray | None:
    """For each rule, how many ground rules an atom of the sample has on average; None if that takes long."""
    knowledge = store.knowledge
    if len(knowledge.evidence) * len(knowledge.theory.rules) > MOST_WORK:
        return None
    try:
        members = grounder.neighbourhoods(store, np.unique(sample)).members
    except GroundingError:
        return None
    return np.array([len(pairs) for pairs in members], float) / max(1, len(sample))


def make_grounder(options: GroundingOptions) -> Grounder:
    """The strategy that the options name, with its fields from the options."""
    if options.strategy == PathGrounder.name:
        raise ConfigError(
            "ground rules along paths are made for the queries of one step, and not listed for a theory",
            hint='train with model.reasoner = "paths", or take another strategy',
        )
    kind = GROUNDERS[options.strategy]
    grounder = kind(**{field.name: getattr(options, field.name) for field in fields(kind)})
    if options.kept is None:
        return grounder
    if kind.starts_from_queries:
        raise ConfigError(
            f"grounding.kept is of no use to {kind.name} grounding, which starts from what is asked",
            hint="leave it out, or take another strategy",
        )
    return KeptGrounder(grounder, Path(options.kept))


def make_engine(name: str = "duckdb", memory: int | None = None) -> Engine:
    """The engine for large queries, `duckdb` or a master of Spark; it changes no answer. `memory`: its bytes."""
    if name == "duckdb":
        return DuckDBEngine(memory)
    if is_spark(name):
        return SparkEngine(name, memory)
    hint = "there is: duckdb, spark, local[N], spark://HOST:PORT, sc://HOST:PORT"
    raise ConfigError(f"there is no engine '{name}'", hint=hint)
