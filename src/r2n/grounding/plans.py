"""Rules -> ground rules: the queries that a strategy asks of an engine, and how the engine would answer them."""

from collections.abc import Iterator

from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder, uncontradicted_query
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.known_body import KnownBodyGrounder, known_body_query
from r2n.grounding.partitioned import KeptGrounder
from r2n.grounding.rule_query import RuleQuery
from r2n.grounding.search import Search
from r2n.grounding.store import Store
from r2n.knowledge.herbrand import Codes
from r2n.logic.theory import Rule


def plans(store: Store, grounder: Grounder, queries: Codes) -> Iterator[tuple[Rule, str]]:
    """The engine's plan of each query that a strategy asks first, rule by rule."""
    if isinstance(grounder, BackwardGrounder):
        search = Search(store, grounder.max_groundings, prune=grounder.prune)
        relations = store.asked(queries)
        for rule in store.theory.rules:
            for _, query in search.queries(rule, relations, grounder.widths[0]):
                yield rule, store.explain(query)
        return
    for rule in store.theory.rules:
        query = _query(store, grounder, rule)
        if not query.is_free:
            yield rule, store.explain(query)
        else:
            yield rule, "every substitution over the domains: index arithmetic, no query"


def _query(store: Store, grounder: Grounder, rule: Rule) -> RuleQuery:
    own = grounder.grounder if isinstance(grounder, KeptGrounder) else grounder
    if isinstance(own, KnownBodyGrounder) and rule.body:
        return known_body_query(store, rule)
    assert isinstance(own, KnownBodyGrounder | FullGrounder)
    return uncontradicted_query(store, rule)
