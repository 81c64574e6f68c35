"""Full grounding: every substitution over the typed domains, by index arithmetic, without joins.

Only guards, closed body atoms and candidates need a query: it yields the substitutions of the variables they bind, and
the other variables run over their domains as axes of the result.
"""

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from r2n.data.herbrand import Codes, HerbrandBase
from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.ground_rules import Grounding, GroundRules, ground_each
from r2n.grounding.joins import Kind, RuleQuery, Tables
from r2n.grounding.store import Store
from r2n.grounding.substitutions import MAX_GROUNDINGS, encode_substitutions, sorted_substitutions
from r2n.logic.formula import Constant, Variable
from r2n.logic.theory import Rule
from r2n.progress import Progress, no_progress


@dataclass(frozen=True)
class FullGrounder:
    """Every substitution whose guards hold and whose closed body atoms are not contradicted."""

    name = "full"
    reads_evidence = False  # every substitution is there, whatever is known
    starts_from_queries = False

    max_groundings: int = MAX_GROUNDINGS

    def ground(self, store: Store, queries: Codes | None = None, progress: Progress = no_progress) -> Grounding:
        """The grounding; the queries make no difference."""
        return ground_each(store, self.ground_rule, progress)

    def query(self, store: Tables, rule: Rule) -> RuleQuery:
        """The query for the substitutions of a rule, of the variables that conditions bind."""
        return uncontradicted_query(store, rule)

    def ground_rule(self, store: Store, rule: Rule) -> GroundRules:
        """The ground rules of one rule."""
        start = perf_counter()
        knowledge = store.knowledge
        query = uncontradicted_query(store, rule)
        found = store.substitutions(query, self.max_groundings).substitutions
        ordered = sorted_substitutions(found, len(knowledge.language.constants))
        rows = dict(zip(query.variables, ordered.T, strict=True))
        pairs = zip(rule.variables, store.domains(rule), strict=True)
        axes = {name: domain.codes for name, domain in pairs if name not in rows}
        if query.variables == rule.variables[: len(query.variables)]:
            atoms = _outer(knowledge.base, rule, rows, axes, len(found))
        else:
            atoms = _reordered(rule, rows, axes, len(found), knowledge)
        shape = tuple(map(len, axes.values())) if query.is_free else None
        return GroundRules(rule, atoms, len(atoms), perf_counter() - start, shape)


def uncontradicted_query(store: Tables, rule: Rule, *, every_variable: bool = False) -> RuleQuery:
    """The substitutions that guards, closed body literals and candidates allow, of the variables that they bind.

    A ground rule that contradicts a closed body literal always holds. With `every_variable`, those of all variables.
    """
    theory, candidates = store.theory, store.candidates
    over_candidates = [store.match(Kind.CANDIDATE, atom) for atom in rule.atoms if atom.predicate in candidates]
    closed = [store.known_by(rule, literal) for literal in rule.body if theory.is_closed(rule, literal.position)]
    terms = [term for guard in rule.guards for term in (guard.left, guard.right)]
    terms += [term for _, atom in (*over_candidates, *(match for match, _ in closed)) for term in atom.terms]
    bound = {term.name for term in terms if isinstance(term, Variable)}
    domains = dict(zip(rule.variables, store.domains(rule), strict=True))
    sought = {name: domain for name, domain in domains.items() if every_variable or name in bound}
    return RuleQuery(
        rule,
        tuple(sought),
        tuple(sought.values()),
        joined=(*over_candidates, *(match for match, is_in in closed if is_in)),
        absent=tuple(match for match, is_in in closed if not is_in),
    )


def _outer(
    base: HerbrandBase, rule: Rule, rows: dict[str, np.ndarray], axes: dict[str, np.ndarray], bound: int
) -> np.ndarray:
    """Codes for every row and every point of the box that the axes span: each atom is one broadcast addition."""
    shape = (bound, *map(len, axes.values()))
    atoms = np.empty((len(rule.atoms), *shape), np.int64)
    names = list(axes)

    def along_axis(name: str) -> np.ndarray:
        if name in rows:
            return rows[name].reshape(-1, *[1] * len(names))
        return axes[name].reshape([-1 if i == names.index(name) + 1 else 1 for i in range(len(shape))])

    for i, atom in enumerate(rule.atoms):
        columns = [
            np.asarray(base.language.constant_id(term.name)) if isinstance(term, Constant) else along_axis(term.name)
            for term in atom.terms
        ]
        atoms[i] = base.encode_columns(base.language.predicate(atom.predicate), columns)
    return atoms.reshape(len(rule.atoms), -1).T


def _reordered(
    rule: Rule, rows: dict[str, np.ndarray], axes: dict[str, np.ndarray], bound: int, knowledge: KnowledgeBase
) -> np.ndarray:
    """The same ground rules in the order of the rule's own variables."""
    flat = [grid.ravel() for grid in np.meshgrid(np.arange(bound), *axes.values(), indexing="ij")]
    columns = {name: column[flat[0]] for name, column in rows.items()}
    columns |= dict(zip(axes, flat[1:], strict=True))
    substitutions = np.stack([columns[name] for name in rule.variables]).T
    ordered = sorted_substitutions(substitutions, len(knowledge.language.constants))
    return encode_substitutions(knowledge.base, rule, ordered)
