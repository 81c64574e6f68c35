"""Substitutions: their order, the codes of a rule's atoms under them, and the budget of ground rules."""

import numpy as np
from jaxtyping import Bool, Int64

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import GroundingError
from r2n.logic.formula import Constant
from r2n.logic.theory import Rule

MAX_GROUNDINGS = 20_000_000

Substitutions = Int64[np.ndarray, "_ variables"]


def encode_substitutions(
    base: HerbrandBase, rule: Rule, substitutions: Substitutions
) -> Int64[np.ndarray, "ground_rules positions"]:
    """The codes of the rule's atoms under substitutions: constant ids, a column for each of the rule's variables."""
    columns = dict(zip(rule.variables, substitutions.T, strict=True))
    atoms = np.empty((len(rule.atoms), len(substitutions)), np.int64)
    for i, atom in enumerate(rule.atoms):
        arguments = [
            np.asarray(base.language.constant_id(term.name)) if isinstance(term, Constant) else columns[term.name]
            for term in atom.terms
        ]
        atoms[i] = base.encode_columns(base.language.predicate(atom.predicate), arguments)
    return atoms.T


def are_candidates(
    knowledge: KnowledgeBase, rule: Rule, atoms: Int64[np.ndarray, "ground_rules positions"]
) -> Bool[np.ndarray, " ground_rules"]:
    """Whether all atoms of a ground rule are candidates, as far as their predicates have any."""
    kept = np.ones(len(atoms), bool)
    for i, atom in enumerate(rule.atoms):
        if atom.predicate in knowledge.candidates:
            kept &= np.isin(atoms[:, i], knowledge.candidates[atom.predicate])
    return kept


def sorted_substitutions(substitutions: Substitutions, constants: int, *, distinct: bool = False) -> Substitutions:
    """Substitutions over ids below `constants` in ascending order, variable by variable; `distinct`: each once."""
    count, variables = substitutions.shape
    if constants**variables < 2**63:  # one number a substitution sorts faster than several columns
        key = _keys(substitutions, constants)
        if bool((key[1:] > key[:-1]).all()):
            return substitutions
        order = np.unique(key, return_index=True)[1] if distinct else np.argsort(key)
        return substitutions.T[:, order].T
    order = np.lexsort(substitutions.T[::-1])
    ordered = substitutions.T[:, order].T
    if distinct and count:
        ordered = ordered[np.concatenate([[True], (np.diff(ordered, axis=0) != 0).any(axis=1)])]
    return ordered


def places_of(some: Substitutions, among: Substitutions, constants: int) -> Int64[np.ndarray, " _"]:
    """Where each of some substitutions stands among sorted, distinct ones that hold them all."""
    if constants ** some.shape[1] < 2**63:
        return np.searchsorted(_keys(among, constants), _keys(some, constants))
    both = np.concatenate([among, some])
    order = np.lexsort(both.T[::-1])
    is_new = np.ones(len(both), bool)
    is_new[1:] = (np.diff(both[order], axis=0) != 0).any(axis=1)
    places = np.empty(len(both), np.int64)
    places[order] = np.cumsum(is_new) - 1
    return places[len(among) :]


def _keys(substitutions: Substitutions, constants: int) -> Int64[np.ndarray, " _"]:
    """One number a substitution, in their order."""
    keys = np.zeros(len(substitutions), np.int64)
    for column in substitutions.T:
        keys = keys * constants + column
    return keys


def check_budget(rule: Rule, estimate: int, limit: int, *, exact: bool) -> None:
    """Refuse a rule whose ground rules would be more than `limit`, before any are made."""
    if estimate > limit:
        raise budget_error(rule, estimate, limit, exact=exact)


def budget_error(rule: Rule, estimate: int, limit: int, *, exact: bool) -> GroundingError:
    """The error for a rule whose ground rules would be more than `limit`."""
    about = "" if exact else "about "
    return GroundingError(
        f"rule '{rule.name}' has {about}{estimate:,} groundings, more than max_groundings = {limit:,}",
        hint="narrow the domains of its variables (x: DOMAIN), close a predicate of its body, or take another"
        " strategy (known-body, backward); or raise max_groundings",
    )
