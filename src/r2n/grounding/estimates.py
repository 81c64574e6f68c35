"""How many ground rules a rule would have, found out without making them: from sizes of tables, or a small join."""

from dataclasses import dataclass
from math import prod

import numpy as np

from r2n.errors import GroundingError
from r2n.grounding import join
from r2n.grounding.full import uncontradicted_query
from r2n.grounding.known_body import known_body_query
from r2n.grounding.neighbourhoods import NeighbourhoodGrounder
from r2n.grounding.store import Store
from r2n.grounding.substitutions import are_candidates, encode_substitutions
from r2n.knowledge.herbrand import Codes
from r2n.logic.theory import Rule

MOST_WORK = 2_000_000  # facts times rules: above, no rule is joined to count its ground rules
MOST_ROWS = 200_000  # of a join that counts the ground rules of a rule


@dataclass(frozen=True, slots=True)
class Size:
    """A number of ground rules: exact, or an estimate."""

    count: int
    exact: bool

    def __str__(self) -> str:
        """The number, with "about" before an estimate."""
        return f"{'' if self.exact else 'about '}{self.count:,}"

    @property
    def is_zero(self) -> bool:
        """Whether there surely is no ground rule."""
        return self.exact and not self.count


def expected_size(store: Store, rule: Rule, strategy: str) -> Size:
    """The ground rules of a rule under full or known-body grounding: exact where that takes no time."""
    is_known_body = strategy == "known-body" and bool(rule.body)
    query = known_body_query(store, rule) if is_known_body else uncontradicted_query(store, rule)
    pairs = zip(rule.variables, store.domains(rule), strict=True)
    box = prod(len(domain) for name, domain in pairs if name not in query.variables)
    if query.is_free:
        return Size(box, exact=True)
    if not box or not all(len(relation) for relation, _ in (*query.joined, *query.ranging)):
        return Size(0, exact=True)
    estimate, knowledge = query.estimate(), store.knowledge
    if estimate <= MOST_ROWS and len(knowledge.evidence) * len(knowledge.theory.rules) <= MOST_WORK:
        try:
            found = join.joined(query, store.language, MOST_ROWS)
        except join.TooManyRowsError:
            return Size(estimate * box, exact=False)
        if is_known_body and knowledge.candidates:
            found = found[are_candidates(knowledge, rule, encode_substitutions(knowledge.base, rule, found))]
        return Size(len(found) * box, exact=True)
    return Size(estimate * box, exact=False)


def mean_neighbourhood(store: Store, grounder: NeighbourhoodGrounder, sample: Codes) -> np.ndarray | None:
    """For each rule, how many ground rules an atom of the sample has on average; None where that takes long."""
    knowledge = store.knowledge
    if len(knowledge.evidence) * len(knowledge.theory.rules) > MOST_WORK:
        return None
    try:
        members = grounder.neighbourhoods(store, np.unique(sample)).members
    except GroundingError:
        return None
    return np.array([len(pairs) for pairs in members], float) / max(1, len(sample))
