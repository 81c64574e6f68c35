"""Grounding strategies by name, their estimates, and which queries they reach."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from r2n.data.herbrand import Codes, are_among
from r2n.errors import ConfigError, GroundingError, counted, first_names
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.cache import KeptGrounder
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Grounder, Grounding, distinct_codes
from r2n.grounding.joins import TooManyRowsError, are_candidates, encode_substitutions, joined
from r2n.grounding.paths import PathGrounder
from r2n.grounding.spark import SparkEngine, is_spark
from r2n.grounding.store import SURELY_TOO_MANY, DuckDBEngine, Engine, Store
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

    def exceeds(self, budget: int) -> bool:
        """Whether it is certain, or nearly, that there are more ground rules than the budget allows."""
        return self.count > budget * (1 if self.exact else SURELY_TOO_MANY)


def expected_size(store: Store, rule: Rule, strategy: str) -> Size:
    """The number of ground rules of a rule under full or known-body grounding: exact if that is cheap."""
    is_known_body = strategy == "known-body" and bool(rule.body)
    if store.is_left_out(rule):
        return Size(0, exact=True)
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


def expected_total(store: Store, rules: Iterable[Rule], strategy: str) -> Size:
    """The number of ground rules of some rules under full or known-body grounding."""
    sizes = [expected_size(store, rule, strategy) for rule in rules]
    return Size(sum(size.count for size in sizes), all(size.exact for size in sizes))


FEW_GROUND_RULES = 20_000  # full grounding costs little
MOST_GROUND_RULES = 2_000_000  # an epoch over more takes very long
MOST_OF_BELIEFS = 300_000  # ground rules over which beliefs about unlabelled atoms are passed on
MUCH_MORE = 20  # times as many ground rules
MOST_TRIED = 200  # queries that strategies are tried on
FEWEST_PARTS = 5  # of the facts, one of which is tried at a time: facts that are all unknown do not reach each other
AS_MANY = 0.95  # of the queries that another strategy reaches


def chosen_strategy(
    store: Store, queries: Codes, options: GroundingOptions, atoms: int, *, believes: bool = False
) -> tuple[str, str]:
    """The strategy where nobody set one, and why: full if that fits, else the smaller one that reaches the queries.

    `believes`: the input layer believes something of every atom, so that rules between unlabelled atoms say something.

    `queries` stand for what is asked, and are not read as facts; `atoms` is how many a training asks. Known-body
    grounding, over which one pass answers all, is preferred unless predicates that are asked stand in bodies: there a
    training would find facts that no query will find.
    """
    rules = store.theory.rules
    full, known = (expected_total(store, rules, strategy) for strategy in ("full", "known-body"))
    reason = f"full grounding has {full} ground rules"
    if full.count <= FEW_GROUND_RULES or full.count <= min(MOST_GROUND_RULES, MUCH_MORE * known.count):
        return "full", reason
    if believes and full.count <= MOST_OF_BELIEFS:
        return "full", f"{reason}, which pass on what features say of unlabelled atoms"
    most = min(MOST_TRIED, len(store.knowledge.evidence) // FEWEST_PARTS)
    sample = queries[:: -(-len(queries) // max(1, most)) or 1]
    unknown, found = store.without(sample), dict[str, tuple[Size, float]]()  # with the share of queries concluded
    if len(sample) and known.count <= MOST_GROUND_RULES:
        with suppress(GroundingError):
            grounding = KnownBodyGrounder(min(MOST_GROUND_RULES, options.max_groundings)).ground(unknown)
            heads = distinct_codes([part.atoms[:, list(part.rule.head_positions)] for part in grounding.ground_rules])
            found["known-body"] = known, float(np.mean(are_among(sample, heads)))
    if len(sample) and len(store.knowledge.evidence) * len(rules) <= MOST_WORK:
        with suppress(GroundingError):
            grounder = BackwardGrounder(options.width, options.depth, options.max_groundings)
            members = np.concatenate(grounder.neighbourhoods(unknown, sample).members)
            size = Size(round(len(members) / len(sample) * atoms), exact=False)
            found["backward"] = size, len(np.unique(members[:, 0])) / len(sample)
    shown = (f", {name} {size}, which conclude {share:.0%} of the queries" for name, (size, share) in found.items())
    reason += "".join(shown) or f", known-body {known}"
    found = {name: part for name, part in found.items() if part[0].count <= MOST_GROUND_RULES} or found
    best = max((share for _, share in found.values()), default=0.0)
    if not best:
        return ("full" if full.count <= MOST_GROUND_RULES else "known-body"), reason
    sizes = {name: size.count for name, (size, share) in found.items() if share >= AS_MANY * best}
    asked = {predicate.name for predicate in store.base.predicates(queries)}
    in_bodies = any(not asked.isdisjoint(rule.body_predicates) for rule in rules)
    preferred = "backward" if in_bodies else "known-body"
    return min(sizes, key=lambda name: sizes[name] * (1 if name == preferred else MUCH_MORE)), reason


def ground_rules_left_out(store: Store, strategy: str) -> str | None:
    """The number of ground rules of closed atoms alone, which are left out, and their rules."""
    rules = [rule for rule in store.theory.rules if store.is_left_out(rule)]
    size = expected_total(store.with_closed(), rules, "full" if strategy == "full" else "known-body")
    if size.is_zero:
        return None
    of_rules = f"{size} ground rules of {counted(len(rules), 'rule')} ({first_names(rule.name for rule in rules)})"
    return f"{of_rules} are left out: all their atoms are closed, so that their truth is known"


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
